"""Frames that a model gets count by their names."""

import numpy as np
import pytest

from linadd import AdditiveClassifier, load_model
from linadd.errors import DataError
from linadd.named_columns import rows_by_name

NAMES = ["a", "b"]


@pytest.fixture(params=["pandas", "polars"])
def frame(request):
    """A function that makes a frame of either library."""
    library = pytest.importorskip(request.param)
    return library.DataFrame


def test_columns_are_taken_by_name(frame):
    X = frame({"b": [3.0, 4.0], "more": ["x", "y"], "a": [1.0, 2.0]})
    np.testing.assert_array_equal(rows_by_name(X, NAMES), [[1, 3], [2, 4]])
    np.testing.assert_array_equal(rows_by_name(frame({"a": [1.0], "b": [2.0]}), NAMES), [[1, 2]])
    # Without names on one of the sides columns count by position.
    np.testing.assert_array_equal(rows_by_name(frame({"b": [3.0], "a": [1.0]}), None), [[3, 1]])
    np.testing.assert_array_equal(rows_by_name([[3.0, 1.0]], NAMES), [[3, 1]])


@pytest.mark.parametrize("names", [NAMES, np.array(NAMES)], ids=["list", "array"])
def test_a_column_that_is_missing_is_named(frame, names):
    with pytest.raises(DataError) as caught:
        rows_by_name(frame({"a": [1.0], "c": [2.0]}), names)
    assert str(caught.value) == (
        "array: has no column 'b', which the model needs once. Give a frame of the model's columns."
    )


def test_a_column_that_is_there_twice_is_named():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError) as caught:
        rows_by_name(pandas.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "a"]), NAMES)
    assert str(caught.value) == (
        "array: has 2 columns named 'a', which the model needs once. Give a frame of the model's columns."
    )


def test_a_path_is_none():
    with pytest.raises(DataError) as caught:
        rows_by_name("rows.csv", NAMES)
    assert str(caught.value) == (
        "rows.csv: is a path, and a model takes rows. Read it by open_source(path), or use `linadd predict`."
    )


def test_a_loaded_model_scores_a_frame_by_its_names(frame, tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.random(300), rng.random(300)
    X, turned = frame({"a": a, "b": b}), frame({"b": b, "id": np.arange(300.0), "a": a})
    fitted = AdditiveClassifier(n_bins=4).fit(X, (a > 0.5).astype(int))
    fitted.save(tmp_path / "m.safetensors")
    model = load_model(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(model.decision_function(turned), fitted.decision_function(X)[:, None])
    np.testing.assert_array_equal(model.explain(turned), model.explain(X))
