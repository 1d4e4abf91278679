"""From values to coordinates: bounds, knots, spikes, and the fixed point that solvers keep."""

import numpy as np
import pytest

from linadd.encoders.coordinates import (
    STRIDE,
    Axes,
    fixed_positions,
    float_positions,
    fraction_bits,
    knot_coordinate,
    locate_row,
)
from tests.encoders import explicit


def axes_of(edges, n_bins=None):
    """Axes of one feature with knots."""
    edges = np.array([edges], np.float64)
    last = edges.shape[1] - 1 if n_bins is None else n_bins
    return Axes(edges[:, 0], edges[:, last], edges[:, 0], np.ones(1), np.array([last]), edges, True)


def place(axes, values):
    """Coordinates of values of the first feature."""
    u = np.empty((len(values), len(axes.lower)))
    for i in range(len(values)):
        locate_row(np.array(values, np.float64)[:, None], i, axes, u[i])
    return u[:, 0]


def test_knots_by_hand():
    axes = axes_of([0, 1, 1, 3, 7])  # a spike at 1
    np.testing.assert_array_equal(
        place(axes, [-5, 0, 0.25, 0.75, 1, 2, 3, 5, 7, 8]), [0, 0, 0.25, 0.75, 1.5, 2.5, 3, 3.5, 4, 4]
    )
    # Just beside the spike: the ends of the bins beside its own.
    below, above = place(axes, [np.nextafter(1, 0), np.nextafter(1, 2)])
    assert 1 - 1e-9 < below < 1 and 2 <= above < 2 + 1e-9


def test_spikes_at_both_ends():
    np.testing.assert_array_equal(place(axes_of([0, 0, 1, 1]), [-1, 0, 0.5, 1, 2]), [0.5, 0.5, 1.5, 2.5, 2.5])


@pytest.mark.parametrize("n_bins", [1, 2, STRIDE - 1, STRIDE, STRIDE + 1, 2 * STRIDE, 2 * STRIDE + 1, 500])
def test_every_count_of_edges_equals_a_search(n_bins):
    rng = np.random.default_rng(n_bins)
    edges = np.sort(rng.normal(size=n_bins + 1))
    if n_bins > 3:
        edges[n_bins // 2 + 1] = edges[n_bins // 2]
        edges[-2] = edges[-1]
    axes = axes_of(np.append(edges, [np.nan] * 3), n_bins)
    x = np.concatenate([edges, np.nextafter(edges, 9), np.nextafter(edges, -9), rng.uniform(*edges[[0, -1]], 200)])
    expected = [explicit.coordinate(axes, value, 0) for value in x]
    np.testing.assert_array_equal(place(axes, x), expected)
    assert (np.diff(place(axes, np.sort(x))) >= 0).all()
    assert knot_coordinate(edges[0], 0, axes.edges, n_bins) == 0.0


def test_features_with_and_without_knots_stand_side_by_side():
    axes = Axes(
        np.zeros(2), np.full(2, 4.0), np.zeros(2), np.full(2, 0.5), np.array([2, 2]),
        np.array([[np.nan] * 3, [0.0, 1.0, 4.0]]), True,
    )  # fmt: skip
    u = np.empty(2)
    locate_row(np.array([[3.0, 2.5]]), 0, axes, u)
    np.testing.assert_array_equal(u, [1.5, 1.5])


@pytest.mark.parametrize("has_knots", [False, True])
def test_nan_and_infinity_stay_within_the_bounds(has_knots):
    axes = axes_of([0.0, 1.0, 2.0])._replace(has_knots=has_knots)
    u = place(axes, [np.nan, np.inf, -np.inf])
    np.testing.assert_array_equal(u, [2, 2, 0])
    positions = np.empty((1, 1), np.int32)
    fixed_positions(np.array([[np.nan]]), axes, 20, np.empty(1), positions)
    assert positions == (2 << 20) - 1


@pytest.mark.parametrize("n_bins", [1, 10, 127, 128, 255, 256, 1000, 4096])
def test_positions_fit_int32_and_float32(n_bins):
    bits = fraction_bits(n_bins)
    assert n_bins << bits <= 2**31 and bits <= 24
    assert bits == 24 or n_bins << (bits + 1) > 2**30  # nearly all of the 31 bits are used
    assert bits >= 18  # of a bin: what uint16 codes lose is said to be harmless


def test_positions_by_hand():
    axes = Axes(
        np.array([0.0]), np.array([10.0]), np.array([0.0]), np.array([1.0]), np.array([10]), np.full((1, 1), np.nan),
        False,
    )  # fmt: skip
    X = np.array([[-1.0], [0.0], [2.75], [9.999], [10.0], [11.0]])
    fixed, u = np.empty(X.shape, np.int32), np.empty(1)
    fixed_positions(X, axes, 8, u, fixed)
    np.testing.assert_array_equal(fixed[:, 0], [0, 0, 2 * 256 + 192, 9 * 256 + 255, 10 * 256 - 1, 10 * 256 - 1])
    floats = np.empty(X.shape, np.float32)
    float_positions(X, axes, u, floats)
    np.testing.assert_array_equal(floats[:, 0], np.float32([0, 0, 2.75, 9.999, 10, 10]))
