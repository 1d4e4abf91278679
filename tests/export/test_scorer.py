"""The NumPy scorer, from arrays written down by hand: what the documentation of the arrays promises."""

import numpy as np
import pytest

from linadd.encoders import ENCODERS
from linadd.export.scorer import PHI, coordinates, decision_function, knot_coordinate


def arrays_of(**changes):
    """One feature on [0, 4], u = x / 2, two classes."""
    arrays = {
        "encoder": np.array("bspline"),
        "coef": np.array([[[1.0], [2.0], [4.0]]], np.float32),
        "intercept": np.array([0.5]),
        "lower": np.array([0.0]),
        "upper": np.array([4.0]),
        "origin": np.array([0.0]),
        "inverse": np.array([0.5]),
        "degree": np.array(1),
        "n_bins": np.array([2]),
    }
    return {**arrays, **changes}


def test_every_encoder_has_its_phi():
    assert PHI.keys() == ENCODERS.keys()


def test_values_are_interpolated_and_clamped():
    X = np.array([[-1.0], [0.0], [1.0], [2.0], [3.0], [4.0], [9.0]])
    expected = 0.5 + np.array([1, 1, 1.5, 2, 3, 4, 4])
    np.testing.assert_allclose(decision_function(arrays_of(), X)[:, 0], expected, rtol=1e-15)


def test_outputs_are_columns():
    coef = np.stack([np.eye(3), 2 * np.eye(3)])
    arrays = arrays_of(
        coef=coef, intercept=np.array([0.0, 0.0, 7.0]), n_bins=np.array([2, 2]),
        lower=np.zeros(2), upper=np.full(2, 4.0), origin=np.zeros(2), inverse=np.full(2, 0.5),
    )  # fmt: skip
    np.testing.assert_array_equal(decision_function(arrays, [[0.0, 2.0]]), [[1, 2, 7]])


def test_knots_map_to_whole_coordinates_and_a_spike_to_the_middle_of_its_bin():
    edges = np.array([-1.0, 0.0, 0.0, 2.0, 5.0])
    x = np.array([-1.0, -0.5, 0.0, 1.0, 2.0, 3.5, 5.0])
    np.testing.assert_allclose(knot_coordinate(x, edges), [0, 0.5, 1.5, 2.5, 3, 3.5, 4])
    assert knot_coordinate(np.array([5.0]), np.array([0.0, 5.0, 5.0])) == 1.5


def test_rows_of_edges_belong_to_features_and_nan_means_uniform():
    arrays = arrays_of(
        lower=np.zeros(2), upper=np.full(2, 4.0), origin=np.zeros(2), inverse=np.full(2, 0.5), n_bins=np.array([2, 1]),
        edges=np.array([[np.nan, np.nan, np.nan], [0.0, 4.0, np.nan]]),
    )  # fmt: skip
    np.testing.assert_allclose(coordinates(arrays, np.array([[1.0, 1.0], [9.0, 9.0]])), [[0.5, 0.25], [2, 1]])


@pytest.mark.parametrize("degree", range(4))
def test_spline_values_sum_to_one(degree):
    u = np.linspace(0, 3, 50)[:, None]
    phi = PHI["bspline"](
        {"n_bins": np.array([3]), "degree": np.array(degree), "coef": np.zeros((1, 3 + degree, 1))}, u
    )
    np.testing.assert_allclose(phi.sum(axis=2), 1, rtol=1e-14)
    assert (phi >= 0).all()


def test_dense_bases_follow_their_formulas():
    u = np.random.default_rng(0).uniform(-1, 1, (5, 1))
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    phi = PHI["fourier"]({"weights": weights}, u)[:, 0].T
    x = u[:, 0]
    sines = [function(k * np.pi * x) for k in (1, 2) for function in (np.sin, np.cos)]
    np.testing.assert_allclose(phi / weights[:, None], sines)
    phi = PHI["hermite"]({"weights": weights}, u)[:, 0].T
    np.testing.assert_allclose(phi / weights[:, None], [x, x**2 - 1, x**3 - 3 * x, x**4 - 6 * x**2 + 3])
    np.testing.assert_array_equal(PHI["identity"]({"weights": weights[:1]}, u)[:, :, 0], u)
