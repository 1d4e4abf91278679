"""Calibration: the fits are scikit-learn's, probabilities are probabilities, and the state comes back or is refused."""

import numpy as np
import pytest
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

from linadd.calibration import CALIBRATIONS, Isotonic, Sigmoid, fit_sigmoid, restore_calibration
from linadd.errors import FormatError


def rows(n_rows=200, n_outputs=1, seed=0):
    """(decisions, is_positive, weight): sides follow the decisions, with noise; some scores are equal, some weigh 0."""
    rng = np.random.default_rng(seed)
    decisions = np.round(3 * rng.standard_normal((n_rows, n_outputs)), 1)
    noise = 2 * rng.standard_normal((n_rows, n_outputs))
    if n_outputs == 1:
        is_positive = decisions + noise > 0.5
    else:
        is_positive = np.argmax(decisions + noise, axis=1)[:, None] == np.arange(n_outputs)
    return decisions, is_positive, rng.integers(0, 3, n_rows).astype(np.float64)


def test_sigmoid_is_scikit_learns():
    decisions, is_positive, weight = rows()
    ours = Sigmoid.fit(decisions, is_positive, weight)
    theirs = _SigmoidCalibration().fit(decisions[:, 0], is_positive[:, 0].astype(int), weight)
    grid = np.linspace(-20, 20, 50)
    # L-BFGS stops at a gradient of 1e-6 there.
    found = np.exp(ours.log_probabilities(grid[:, None]))[:, 1]
    np.testing.assert_allclose(found, theirs.predict(grid), rtol=1e-4, atol=1e-7)


def test_isotonic_is_scikit_learns():
    decisions, is_positive, weight = rows()
    ours = Isotonic.fit(decisions, is_positive, weight)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(decisions[:, 0], is_positive[:, 0], weight)
    grid = np.linspace(-20, 20, 500)
    found = np.exp(ours.log_probabilities(grid[:, None]))[:, 1]
    np.testing.assert_allclose(found, theirs.predict(grid), rtol=0, atol=1e-12)
    assert len(ours.scores) == len(theirs.X_thresholds_)


@pytest.mark.parametrize("kind", CALIBRATIONS)
def test_several_outputs_are_divided_by_their_sum(kind):
    decisions, is_positive, weight = rows(n_outputs=3)
    calibration = CALIBRATIONS[kind].fit(decisions, is_positive, weight)
    found = np.exp(calibration.log_probabilities(decisions))
    alone = np.column_stack([
        np.exp(CALIBRATIONS[kind].fit(f[:, None], side[:, None], weight).log_probabilities(f[:, None]))[:, 1]
        for f, side in zip(decisions.T, is_positive.T, strict=True)
    ])  # fmt: skip
    np.testing.assert_allclose(found.sum(axis=1), 1)
    total = alone.sum(axis=1, keepdims=True)
    expected = np.where(total > 0, alone / np.where(total > 0, total, 1), 1 / 3)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def test_no_probability_at_all_is_shared_equally():
    calibration = Isotonic(np.array([0, 2, 4, 6]), np.tile([0.0, 1.0], 3), np.tile([0.0, 1.0], 3))
    found = np.exp(calibration.log_probabilities(np.array([[-1.0, -2.0, -3.0], [2.0, 0.0, 0.5]])))
    np.testing.assert_allclose(found, [[1 / 3, 1 / 3, 1 / 3], [2 / 3, 0, 1 / 3]])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_sigmoid_is_finite_for_scores_of_any_size_that_separate(scale):
    scores, side = np.array([-2.0, -1.0, 1.0, 2.0]) * scale, np.array([False, False, True, True])
    slope, offset = fit_sigmoid(scores, side, np.ones(4))
    p = 1 / (1 + np.exp(slope * scores + offset))
    # Targets are 1/4 and 3/4, so that the curve stays away from 0 and 1.
    np.testing.assert_allclose(p, 1 - p[::-1], rtol=1e-9)
    assert 0.1 < p[0] < p[1] < 0.5


def test_equal_scores_get_the_rate():
    slope, offset = fit_sigmoid(np.zeros(8), np.arange(8) < 2, np.ones(8))
    assert slope == 0 and 1 / (1 + np.exp(offset)) == pytest.approx((2 * 3 / 4 + 6 / 8) / 8, rel=1e-9)


@pytest.mark.parametrize("kind", CALIBRATIONS)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_state_comes_back(kind, n_outputs):
    decisions, is_positive, weight = rows(n_outputs=n_outputs)
    calibration = CALIBRATIONS[kind].fit(decisions, is_positive, weight)
    tensors = calibration.tensors()
    again = CALIBRATIONS[kind].restore(tensors, n_outputs)
    assert all(name.startswith("calibration_") for name in tensors)
    np.testing.assert_array_equal(again.log_probabilities(decisions), calibration.log_probabilities(decisions))


@pytest.mark.parametrize(
    "change",
    [
        {"scores": [0.0, 0.0, 0.0, 1.0]},
        {"scores": [0.0, np.nan, 0.0, 1.0]},
        {"probabilities": [0.0, 1.1, 0.0, 1.0]},
        {"probabilities": [0.5, 0.4, 0.0, 1.0]},
        {"starts": [0, 0, 4]},
        {"starts": [0, 2, 3]},
    ],
    ids=str,
)
def test_a_polygon_that_does_not_rise_is_refused(change):
    parts = {"starts": [0, 2, 4], "scores": [0.0, 1.0, 0.0, 1.0], "probabilities": [0.0, 1.0, 0.0, 1.0]}
    tensors = {f"calibration_{name}": np.array(values) for name, values in parts.items()}
    Isotonic.restore(tensors, 2)
    tensors |= {f"calibration_{name}": np.array(values) for name, values in change.items()}
    with pytest.raises(FormatError) as caught:
        Isotonic.restore(tensors, 2)
    assert str(caught.value) == "its calibration of 4 points is no rising polygon. Train the model anew."


def test_a_sigmoid_that_is_not_finite_is_refused():
    with pytest.raises(FormatError) as caught:
        Sigmoid.restore({"calibration_slope": np.array([np.inf]), "calibration_offset": np.zeros(1)}, 1)
    assert str(caught.value) == "its calibration has the slopes [inf] and offsets [0.]. Train the model anew."


def test_a_kind_of_a_later_version_is_refused():
    assert restore_calibration(None, {}, 1) is None
    with pytest.raises(FormatError) as caught:
        restore_calibration("beta", {}, 1)
    assert str(caught.value) == (
        "it has the calibration 'beta', this linadd knows sigmoid, isotonic. Upgrade linadd."
    )
