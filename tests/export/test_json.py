"""The JSON export reads back to the very arrays of the npz export, and holds no NaN."""

import json

import numpy as np
import pytest

from linadd.export import json as export_json
from linadd.export.tables import model_arrays
from tests.export.toy import ENCODER_OPTIONS, toy_model


@pytest.mark.parametrize("labels", ["numbers", "text"])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("name", "options"), ENCODER_OPTIONS, ids=str)
def test_the_object_reads_back_to_the_same_arrays(name, options, n_outputs, labels, tmp_path):
    arrays = model_arrays(toy_model(name, options, n_outputs, labels))
    path = tmp_path / "m.json"
    export_json.write(arrays, path)
    again = export_json.read(path)
    assert again.keys() == arrays.keys()
    for key, array in arrays.items():
        assert again[key].dtype == array.dtype and again[key].shape == array.shape, key
        np.testing.assert_array_equal(again[key], array, err_msg=key)


def strict(text):
    raise AssertionError(f"{text} is not JSON")


@pytest.mark.parametrize(("name", "options"), ENCODER_OPTIONS, ids=str)
def test_no_number_is_nan_or_infinite(name, options, tmp_path):
    path = tmp_path / "m.json"
    export_json.write(model_arrays(toy_model(name, options)), path)
    document = json.loads(path.read_text("utf-8"), parse_constant=strict)
    is_clamped = options.get("clamp", True)
    for feature in document["features"]:
        assert (feature["lower"] is not None) == (feature["upper"] is not None) == is_clamped


def test_nan_is_not_written(tmp_path):
    arrays = model_arrays(toy_model("hermite"))
    arrays["weights"] = np.full(4, np.nan)
    with pytest.raises(ValueError, match="not JSON compliant"):
        export_json.write(arrays, tmp_path / "m.json")


def test_the_documented_keys_are_those_of_the_object(tmp_path):
    path = tmp_path / "m.json"
    export_json.write(model_arrays(toy_model("bspline", {"knots": "quantile"}, labels="text")), path)
    document = json.loads(path.read_text("utf-8"))
    keys = [*document, *document["features"][0]]
    assert document["format"] == "linadd-json" and document["format_version"] == 1
    assert sorted(document["features"][0]) == ["coef", "edges", "inverse", "lower", "n_bins", "name", "origin", "upper"]
    for key in [*keys, "weights"]:
        assert f'"{key}"' in export_json.__doc__, key
    # A constant feature has no knots of its own among features that have.
    assert ["edges" in feature for feature in document["features"]] == [True, True, False, True]
