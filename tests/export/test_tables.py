"""The npz export holds the documented arrays and nothing else."""

import numpy as np
import pytest

from linadd.export import tables
from linadd.model_file import make_check_rows
from linadd.ranges import widened
from tests.export.toy import ENCODER_OPTIONS, toy_model

ALWAYS = {
    "format": ("U", 0),
    "format_version": ("i", 0),
    "encoder": ("U", 0),
    "classes": ("iU", 1),
    "coef": ("f", 3),
    "intercept": ("f", 1),
    "lower": ("f", 1),
    "upper": ("f", 1),
    "origin": ("f", 1),
    "inverse": ("f", 1),
    "check_rows": ("f", 2),
    "check_scores": ("f", 2),
}
SOMETIMES = {
    "link": ("U", 0),
    "lower_slope": ("f", 2),
    "upper_slope": ("f", 2),
    "is_strict": ("b", 1),
    "feature_names": ("U", 1),
    "degree": ("i", 0),
    "penalty_order": ("i", 0),
    "n_bins": ("i", 1),
    "edges": ("f", 2),
    "weights": ("f", 1),
}


@pytest.mark.parametrize(("name", "options"), ENCODER_OPTIONS, ids=str)
def test_the_file_holds_the_documented_arrays(name, options, tmp_path):
    model = toy_model(name, options, labels="text")
    path = tmp_path / "m.npz"
    tables.write(tables.model_arrays(model), path)
    arrays = tables.read(path)
    assert arrays.keys() >= ALWAYS.keys()
    for key, array in arrays.items():
        kinds, n_dim = (ALWAYS | SOMETIMES)[key]
        assert array.dtype.kind in kinds and array.ndim == n_dim, key
    assert ("degree" in arrays) == ("n_bins" in arrays) == (name == "bspline") != ("weights" in arrays)
    assert ("edges" in arrays) == (name == "bspline" and options.get("knots") != "uniform")
    assert str(arrays["encoder"]) == name
    np.testing.assert_array_equal(arrays["coef"], model.coef)
    np.testing.assert_array_equal(arrays["classes"], model.classes)
    assert arrays["feature_names"].tolist() == model.feature_names


def test_check_rows_come_with_the_scores_of_the_model():
    model = toy_model()
    arrays = tables.model_arrays(model)
    expected = make_check_rows(widened(model.ranges, np.array([True])), seed=5)
    np.testing.assert_array_equal(arrays["check_rows"], expected)
    np.testing.assert_array_equal(arrays["check_scores"], model.decision_function(arrays["check_rows"]))


def test_every_array_name_is_documented():
    for name in ALWAYS | SOMETIMES:
        assert name in tables.__doc__
