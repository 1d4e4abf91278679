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
STRIDE = 64  # edges that are compared at once, by vectors: faster than halving, up to some thousand bins


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
def bin_coordinate(x, j, edges, n_bins, low):
    """Coordinate of x whose last edge not above it is `low`, among the edges of feature j."""
    if low > 0 and edges[j, low] == x and edges[j, low - 1] == x:
        return low - 0.5
    if low == n_bins:
        return float(n_bins)
    return low + (x - edges[j, low]) / (edges[j, low + 1] - edges[j, low])


@compiled
def knot_coordinate(x, j, edges, n_bins):
    """Coordinate of a clamped x among the n_bins + 1 sorted edges of feature j (in two functions: half the time)."""
    low = 0
    while low + STRIDE <= n_bins and edges[j, low + STRIDE] <= x:
        low += STRIDE
    row, start, n_left = np.uint64(j), np.uint64(low + 1), min(STRIDE - 1, n_bins - low)
    for k in range(n_left):
        low += edges[row, start + np.uint64(k)] <= x
    return bin_coordinate(x, j, edges, n_bins, low)


@compiled
def locate_row(X, i, axes, u):
    """Coordinates of row i of X, into float64 u (n_features,); in this order of the bounds NaN too stays within them.

    The arrays of `axes` are taken out of the loops: numba would hand on all of them for every value.
    """
    lower, upper, origin, inverse = axes.lower, axes.upper, axes.origin, axes.inverse
    for j in range(X.shape[1]):
        u[j] = (max(lower[j], min(upper[j], np.float64(X[i, j]))) - origin[j]) * inverse[j]
    if axes.has_knots:
        edges, n_bins = axes.edges, axes.n_bins
        for j in range(X.shape[1]):
            if edges[j, 0] == edges[j, 0]:
                x = max(lower[j], min(upper[j], np.float64(X[i, j])))
                u[j] = knot_coordinate(x, j, edges, n_bins[j])


@compiled
def fixed_positions(X, axes, bits, u, positions):
    """Positions of a block of rows X under a local basis, into int32 `positions` of the same shape; u is scratch."""
    one = float(1 << bits)
    n_bins = axes.n_bins
    for i in range(X.shape[0]):
        locate_row(X, i, axes, u)
        for j in range(X.shape[1]):
            positions[i, j] = np.int32(min(u[j] * one, n_bins[j] * one - 1.0))


@compiled
def float_positions(X, axes, u, positions):
    """Positions of a block of rows X under a dense basis, into float32 `positions` of the same shape; u is scratch."""
    for i in range(X.shape[0]):
        locate_row(X, i, axes, u)
        for j in range(X.shape[1]):
            positions[i, j] = np.float32(u[j])
