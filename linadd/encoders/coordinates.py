"""From a feature's value x to its coordinate u, and the coordinate as the solver stores it.

u is always computed in float64 from the widened x, so equal values give equal bits from any dtype:

    affine     u = (clamp(x) - origin) * inverse
    knots      u = k + (clamp(x) - edge_k) / (edge_(k+1) - edge_k)      monotone, through quantiles of the feature
    spike      edge_k = edge_(k+1) = x: a bin of its own, u = k + 1/2

A *position* is what a block of rows keeps, 4 bytes a value: for local bases u in fixed point (int32; the bin is exact,
the fraction within 2^-24), for dense bases u rounded once to float32. A *code* is kept instead on request, 1 or 2 bytes
a value: the nearest of evenly spaced coordinates, which a grid of each feature names (`Grid`).
"""

from typing import NamedTuple

import numpy as np

from linadd._jit import compiled
from linadd.choices import PRECISIONS
from linadd.errors import ConfigError

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


class Grid(NamedTuple):
    """The coordinates that codes stand for, as arrays of length n_features: code c is min(first + c step, last).

    The ends of the range, the edges of all bins and the spikes have codes of their own. A feature of whole numbers,
    fewer than there are codes, on an affine map has one code a number. A basis of degree 0 has one code a bin.
    """

    first: np.ndarray  # float32
    step: np.ndarray  # float32
    last: np.ndarray  # float32; just below n_bins, so that the last bin closes; infinite for a dense basis
    rate: np.ndarray  # float64: codes a unit of u, 1 / step before its rounding
    top: np.ndarray  # float64: the greatest code

    def steps(self):
        """first, step and last as one array (3, n_features), for the loops of the solvers.

        A loop pays for every array of a tuple that it hands on, at every row.
        """
        return np.stack([self.first, self.step, self.last])


NO_GRID = Grid(*(np.empty(0, dtype) for dtype in (np.float32, np.float32, np.float32, np.float64, np.float64)))


def codes_per_bin(precision, n_bins, degree):
    """Codes of each of n_bins bins: 1 for degree 0, else an even number, as a spike stands in the middle of its bin.

    Raises
    ------
    ConfigError
        Where there are too many bins for the codes of this precision.
    """
    top = 256 ** PRECISIONS[precision] - 1
    most = top // 2 if degree else top + 1
    if n_bins > most:
        raise ConfigError(
            f"precision: the codes of {precision!r} tell up to {most} bins apart; n_bins={n_bins} is above. Use "
            "'uint16' or 'exact'."
        )
    return 2 * (top // (2 * n_bins)) if degree else 1


def whole_numbers(census, dtype, precision):
    """Mask of the features whose values are integers of a range that has a code for each, bool (n_features,)."""
    span = census.maximum - census.minimum
    return (span > 0) & (span < 256 ** PRECISIONS[precision]) & (np.dtype(dtype).kind in "iu")


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
def feature_of(columns, e):
    """Feature of entry e of a row. A dense row has no `columns`, but every feature in order: numba drops the test."""
    if columns is None:
        return e
    return np.int64(columns[e])


@compiled
def locate_values(x, columns, axes, u):
    """Coordinates of the entries x of a row, into float64 u; in this order of the bounds NaN too stays within them.

    The arrays of `axes` are taken out of the loops: numba would hand on all of them for every value.
    """
    lower, upper, origin, inverse = axes.lower, axes.upper, axes.origin, axes.inverse
    for e in range(x.shape[0]):
        j = feature_of(columns, e)
        u[e] = (max(lower[j], min(upper[j], np.float64(x[e]))) - origin[j]) * inverse[j]
    if axes.has_knots:
        edges, n_bins = axes.edges, axes.n_bins
        for e in range(x.shape[0]):
            j = feature_of(columns, e)
            if edges[j, 0] == edges[j, 0]:
                clamped = max(lower[j], min(upper[j], np.float64(x[e])))
                u[e] = knot_coordinate(clamped, j, edges, n_bins[j])


@compiled
def locate_row(X, i, axes, u):
    """Coordinates of row i of a dense X, into float64 u (n_features,)."""
    locate_values(X[i], None, axes, u)


@compiled
def fixed_position(u, n_bins, bits):
    """A coordinate in fixed point; the last bin is closed."""
    one = float(1 << bits)
    return np.int32(min(u * one, n_bins * one - 1.0))


@compiled
def fixed_positions(X, axes, bits, u, positions):
    """Positions of a block of rows X under a local basis, into int32 `positions` of the same shape; u is scratch."""
    n_bins = axes.n_bins
    for i in range(X.shape[0]):
        locate_row(X, i, axes, u)
        for j in range(X.shape[1]):
            positions[i, j] = fixed_position(u[j], n_bins[j], bits)


@compiled
def float_positions(X, axes, u, positions):
    """Positions of a block of rows X under a dense basis, into float32 `positions` of the same shape; u is scratch."""
    for i in range(X.shape[0]):
        locate_row(X, i, axes, u)
        for j in range(X.shape[1]):
            positions[i, j] = np.float32(u[j])


@compiled
def grid_codes(X, axes, grid, u, codes):
    """Codes of a block of rows X, into unsigned `codes` of the same shape; u is scratch."""
    first, rate, top = grid.first, grid.rate, grid.top
    for i in range(X.shape[0]):
        locate_row(X, i, axes, u)
        for j in range(X.shape[1]):
            codes[i, j] = np.int64(min((u[j] - first[j]) * rate[j] + 0.5, top[j]))


@compiled
def coordinate(positions, steps, j):
    """Coordinate of feature j, float32, of a row of codes or of float32 positions: the branch is the compiler's."""
    if positions.itemsize < 4:
        return min(steps[0, j] + steps[1, j] * np.float32(positions[j]), steps[2, j])
    return np.float32(positions[j])


@compiled
def entry_positions(values, columns, starts, axes, bits, u, rows, first):
    """Positions of the entries of sparse rows, into Rows from row `first` on; bits 0 for a dense basis."""
    n_bins, end = axes.n_bins, rows.starts[first]
    for i in range(starts.shape[0] - 1):
        start, stop = starts[i], starts[i + 1]
        locate_values(values[start:stop], columns[start:stop], axes, u)
        for e in range(stop - start):
            j = columns[start + e]
            rows.columns[end] = j
            rows.positions[end] = fixed_position(u[e], n_bins[j], bits) if bits else np.float32(u[e])
            end += 1
        rows.starts[first + i + 1] = end
