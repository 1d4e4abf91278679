"""From a feature's value x to its coordinate u, and the coordinate as the solver stores it.

u is always computed in float64 from the widened x, so equal values give equal bits from any dtype:

    affine     u = (clamp(x) - origin) * inverse
    knots      u = k + (clamp(x) - edge_k) / (edge_(k+1) - edge_k)      monotone, through quantiles of the feature
    spike      edge_k = edge_(k+1) = x: a bin of its own, u = k + 1/2

A *position* is what a block of rows keeps, 4 bytes a value: for local bases u in fixed point (int32; the bin is exact,
the fraction within 2^-24), for dense bases u rounded once to float32.
"""

from typing import NamedTuple

import numpy as np

from linadd._jit import compiled

MAX_FRACTION_BITS = 24  # what a float32 fraction can hold


class Axes(NamedTuple):
    """The map of every feature, as arrays of length n_features for compiled loops."""

    lower: np.ndarray  # values are clamped to [lower, upper]
    upper: np.ndarray
    origin: np.ndarray
    inverse: np.ndarray  # 0 for a constant feature
    n_bins: np.ndarray  # int64, bins in use; 0 where the basis is dense
    edges: np.ndarray  # (n_features, n_edges); a feature without knots of its own starts with NaN
    has_knots: bool  # any feature has


def fraction_bits(n_bins):
    """Bits of the fraction in a fixed-point position of up to n_bins bins."""
    return min(MAX_FRACTION_BITS, 31 - int(n_bins).bit_length())


@compiled
def knot_coordinate(x, edges, n_bins):
    """Coordinate of a clamped x among n_bins + 1 sorted edges."""
    low, high = 0, n_bins + 1  # edges[low] <= x < edges[high]
    while high - low > 1:
        middle = (low + high) // 2
        if edges[middle] <= x:
            low = middle
        else:
            high = middle
    if low > 0 and edges[low] == x and edges[low - 1] == x:
        return low - 0.5
    if low == n_bins:
        return float(n_bins)
    return low + (x - edges[low]) / (edges[low + 1] - edges[low])


@compiled
def coordinate(x, j, axes):
    """u of value x (float64) of feature j."""
    x = min(max(x, axes.lower[j]), axes.upper[j])
    if axes.has_knots and axes.edges[j, 0] == axes.edges[j, 0]:
        return knot_coordinate(x, axes.edges[j], axes.n_bins[j])
    return (x - axes.origin[j]) * axes.inverse[j]


@compiled
def fixed_positions(X, axes, bits, positions):
    """Positions of a block of rows X under a local basis, into int32 `positions` of the same shape."""
    one = float(1 << bits)
    for i in range(X.shape[0]):
        if axes.has_knots:
            for j in range(X.shape[1]):
                limit = axes.n_bins[j] * one - 1.0
                positions[i, j] = np.int32(min(coordinate(np.float64(X[i, j]), j, axes) * one, limit))
        else:
            for j in range(X.shape[1]):
                x = min(max(np.float64(X[i, j]), axes.lower[j]), axes.upper[j])
                u = (x - axes.origin[j]) * axes.inverse[j]
                positions[i, j] = np.int32(min(u * one, axes.n_bins[j] * one - 1.0))


@compiled
def float_positions(X, axes, positions):
    """Positions of a block of rows X under a dense basis, into float32 `positions` of the same shape."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = min(max(np.float64(X[i, j]), axes.lower[j]), axes.upper[j])
            positions[i, j] = np.float32((x - axes.origin[j]) * axes.inverse[j])
