"""Pictures of curves: which features, how far they reach, and a file that is a picture."""

import numpy as np
import pytest

from linadd.errors import ConfigError, DataError
from linadd.plots import curve_spans, plot_curves
from tests.export.toy import toy_model


def test_the_span_is_that_of_the_largest_output():
    model = toy_model("bspline", {"degree": 1, "n_bins": 4, "knots": "uniform"}, n_outputs=3)
    spans = curve_spans(model)
    # A linear spline has its extremes at the knots, where it is its coefficient; feature 2 is constant.
    expected = np.ptp(model.coef.astype(np.float64), axis=1).max(axis=1)
    assert spans[[0, 1, 3]] == pytest.approx(expected[[0, 1, 3]], rel=1e-2)
    assert spans[2] == 0


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_picture_is_written(n_outputs, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / "curves.png"
    plot_curves(toy_model(n_outputs=n_outputs, labels="text"), path, n_curves=3)
    assert path.read_bytes().startswith(b"\x89PNG") and [each.name for each in tmp_path.iterdir()] == ["curves.png"]


def test_curves_without_end_are_refused(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    model = toy_model("identity", {"clamp": False})
    assert np.isnan(curve_spans(model)).all()
    with pytest.raises(ConfigError) as caught:
        plot_curves(model, tmp_path / "curves.png")
    assert str(caught.value) == "plots need curves with a training range; this model does not clamp its features."


def test_a_folder_that_is_missing_is_named(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    with pytest.raises(DataError, match=r"no/curves\.png: the folder '.*/no' does not exist\. Create it first\.$"):
        plot_curves(toy_model(), tmp_path / "no" / "curves.png")
