"""The problem on codes: that of rows rounded to a grid, which a solver minimises when rows are kept as codes.

Its optimum is not that of the rows themselves, so the exact gap, which alone is reported as the certificate, has a
floor that no more passes lower. It is told from a solver that is not done yet by the gap on the codes: this needs no
read, as the codes are in memory.
"""

import copy
from dataclasses import replace

import numpy as np

from linadd._jit import compiled
from linadd.chunks import Chunk
from linadd.encoders.coordinates import Axes, coordinate

PIECE_ROWS = 1000  # decoded at once


@compiled
def decode_rows(codes, steps, u):
    """Coordinates of rows of codes, into float64 u of the same shape."""
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            u[i, j] = coordinate(codes[i], steps, j)


class CodedRows:
    """Rows kept as codes, as a source of their coordinates.

    Parameters
    ----------
    codes : uint8 or uint16 array, shape (n_rows, n_features)
        The rows.
    grid : Grid
        What the codes stand for.
    """

    def __init__(self, codes, grid):
        self.codes, self.steps = codes, grid.steps()

    def chunks(self):
        """Yield the rows in order, as Chunks of float64 coordinates."""
        for start in range(0, len(self.codes), PIECE_ROWS):
            codes = self.codes[start : start + PIECE_ROWS]
            u = np.empty(codes.shape)
            decode_rows(codes, self.steps, u)
            yield Chunk(u, None, None, start, "codes")


def on_codes(problem):
    """The same problem over the rows that codes stand for, or None where the rows are not kept as codes."""
    if problem.positions is None or problem.centre.is_sparse or problem.positions.dtype.itemsize == 4:
        return None
    encoder = copy.copy(problem.encoder)
    n_features = encoder.n_features
    bounds, zeros = np.full(n_features, np.inf), np.zeros(n_features)
    encoder.axes = Axes(
        -bounds, bounds, zeros, np.ones(n_features), encoder.axes.n_bins, np.full((n_features, 1), np.nan), False
    )  # fmt: skip
    return replace(problem, source=CodedRows(problem.positions, encoder.grid), encoder=encoder)


def is_floor(gaps, gaps_on_codes, tol):
    """Where the exact gap is above tol because of the codes, bool (n_outputs,): what is the solver's is within tol, and
    without it the gap would still be above, or lower by less than a tenth."""
    return (gaps > tol) & (gaps_on_codes <= tol) & (gaps - gaps_on_codes > np.minimum(tol, 0.9 * gaps))
