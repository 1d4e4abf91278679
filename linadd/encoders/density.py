"""How the training rows lie along each feature: their weight in cells of its coordinate, and their mean in each cell.

The cells of a local basis are equal parts of its bins, so that no knot lies inside one; those of a dense basis are
equal parts of the feature's range. With w_c and p_c the weight and the mean coordinate of cell c,

    mean of g(u) over the rows  =  sum_c w_c g(p_c)        exact where g is linear in every cell

which a curve of degree 0 or 1 is, and smooth curves nearly are. The mean of phi itself is kept beside it, so that the
mean of a curve is exact for every basis.
"""

from dataclasses import dataclass

import numpy as np

from linadd._jit import compiled
from linadd.encoders.rows import Rows, as_rows, locate, positions_dtype

__all__ = ["Density", "DensityCounter", "cell_coordinates", "n_cells"]

LOCAL_CELLS = 20  # at least: two a bin at the default of ten bins
DENSE_CELLS = 64


@dataclass(frozen=True)
class Density:
    """Distribution of the training rows, by their sample weights.

    Attributes
    ----------
    mean_code : float32 array, shape (n_features, n_basis)
        Mean of phi.
    weight : float32 array, shape (n_features, n_cells)
        Share of the rows in each cell; every feature's sum to 1. A feature of fewer bins leaves the last cells empty.
    place : float32 array, shape (n_features, n_cells)
        Mean coordinate of the rows in each cell; 0 where there are none.
    """

    mean_code: np.ndarray
    weight: np.ndarray
    place: np.ndarray


def split_bits(encoder):
    """Binary logarithm of the cells in a bin of a local basis."""
    bits = 0
    while encoder.n_bins << bits < LOCAL_CELLS:
        bits += 1
    return bits


def n_cells(encoder):
    """Cells of a feature with the most bins."""
    return encoder.n_bins << split_bits(encoder) if encoder.is_local else DENSE_CELLS


def cell_coordinates(encoder, feature):
    """Ends of the cells of one feature, as coordinates.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    feature : int
        Index of the feature.

    Returns
    -------
    float64 array, shape (cells of the feature + 1,), or None
        None for a feature that is not clamped, whose cells the encoder does not know.
    """
    axes = encoder.axes
    if encoder.is_local:
        n_own = int(axes.n_bins[feature]) << split_bits(encoder)
        return np.arange(n_own + 1) / (1 << split_bits(encoder))
    if not np.isfinite(encoder.ranges[feature]).all():
        return None
    return np.linspace(*(encoder.ranges[feature] - axes.origin[feature]) * axes.inverse[feature], DENSE_CELLS + 1)


@compiled
def count_fixed(positions, weight, bits, shift, weights, places):
    """Add rows of fixed-point positions: their weights, and weights times coordinates, to (n_features, n_cells)."""
    unit = 1.0 / (1 << bits)
    for i in range(positions.shape[0]):
        w = weight[i]
        for j in range(positions.shape[1]):
            cell = positions[i, j] >> shift
            weights[j, cell] += w
            places[j, cell] += w * (positions[i, j] * unit)


@compiled
def count_entries(rows, weight, unit, first, per_cell, weights, places, total):
    """The same for sparse Rows, without their zeros; a coordinate is a position times `unit`."""
    last = weights.shape[1] - 1
    for i in range(weight.shape[0]):
        w = weight[i]
        total[0] += w
        for e in range(rows.starts[i], rows.starts[i + 1]):
            j, u = rows.columns[e], rows.positions[e] * unit
            cell = max(0, min(last, int((u - first[j]) * per_cell[j])))
            weights[j, cell] += w
            places[j, cell] += w * u


@compiled
def count_float(positions, weight, first, per_cell, weights, places):
    """The same for rows of coordinates; `first` and `per_cell` (n_features,): where cells begin, and one over width."""
    last = weights.shape[1] - 1
    for i in range(positions.shape[0]):
        w = weight[i]
        for j in range(positions.shape[1]):
            u = np.float64(positions[i, j])
            cell = max(0, min(last, int((u - first[j]) * per_cell[j])))
            weights[j, cell] += w
            places[j, cell] += w * u


class DensityCounter:
    """Counts the rows of one pass, by groups that are added in order: chunks and threads cannot change the sums.

    Parameters
    ----------
    encoder : Encoder
        Fitted to the census.
    census : Census
        Ranges of the features, clamped or not.
    """

    def __init__(self, encoder, census):
        self.encoder, self.unit, self.is_sparse = encoder, 1.0 / (1 << encoder.bits), False
        self.weights, self.places = np.zeros((2, encoder.n_features, n_cells(encoder)))
        self.total = np.zeros(1)
        if encoder.is_local:
            self.first = np.zeros(encoder.n_features)
            self.per_cell = np.full(encoder.n_features, float(1 << split_bits(encoder)))
        else:
            axes = encoder.axes
            self.first = (census.minimum - axes.origin) * axes.inverse
            width = (census.maximum - axes.origin) * axes.inverse - self.first
            self.per_cell = DENSE_CELLS / np.where(width > 0, width, np.inf)

    def run(self, pieces, weights, places):
        """Add pieces of rows to weights and weighted coordinates (n_features, n_cells)."""
        bits = self.encoder.bits
        for _, piece, weight in pieces:
            rows = as_rows(piece)
            self.is_sparse = rows.columns is not None
            if self.is_sparse:
                count_entries(rows, weight, self.unit, self.first, self.per_cell, weights, places, self.total)
            elif self.encoder.is_local:
                count_fixed(rows.positions, weight, bits, bits - split_bits(self.encoder), weights, places)
            else:
                count_float(rows.positions, weight, self.first, self.per_cell, weights, places)

    def group(self, pieces):
        """Weights and weighted coordinates of one group of rows; any number of threads may ask at once.

        Parameters
        ----------
        pieces : list of (int, Rows or array (n_rows, n_features), float64 array (n_rows,))
            First row's index, positions and weights, as `row_groups` cuts them; not of sparse rows.

        Returns
        -------
        (float64 array, float64 array), shape (n_features, n_cells)
        """
        weights, places = np.zeros((2, *self.weights.shape))
        self.run(pieces, weights, places)
        return weights, places

    def add(self, weights, places):
        """Add the counts of the next group."""
        self.weights += weights
        self.places += places

    def finish(self, mean_code):
        """The Density, with the mean of phi that `CodeMoments` found."""
        if self.is_sparse:
            self.add_zeros()
        total = self.weights.sum(axis=1, keepdims=True)
        place = np.divide(self.places, self.weights, out=np.zeros_like(self.places), where=self.weights > 0)
        place = place.astype(np.float32)
        if self.encoder.is_local:  # rounding must not lead into the next cell, where a curve of degree 0 jumps
            ends = np.arange(1, place.shape[1] + 1, dtype=np.float32) / (1 << split_bits(self.encoder))
            place = np.minimum(place, np.nextafter(ends, np.float32(0)))
        return Density(mean_code.astype(np.float32), (self.weights / total).astype(np.float32), place)

    def add_zeros(self):
        """Put what the entries of sparse rows leave of the total weight where zero is."""
        n_features = self.encoder.n_features
        zeros = np.empty((1, n_features), positions_dtype(self.encoder))
        locate(self.encoder, np.zeros(zeros.shape), zeros)
        # Each feature has a weight of its own: one entry a row.
        rest = np.maximum(self.total - self.weights.sum(axis=1), 0.0)
        rows = Rows(zeros[0], np.arange(n_features, dtype=np.int32), np.arange(n_features + 1))
        count_entries(rows, rest, self.unit, self.first, self.per_cell, self.weights, self.places, self.total)
