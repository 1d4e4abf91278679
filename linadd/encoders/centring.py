"""The scale and centre of the embedding: one streaming pass for the mean code and the mean squared norm.

Replacing phi^d by phi^d - m, m its weighted mean over the training rows, conditions the problem and makes every curve's
mean zero on the data. Sums run over fixed groups of rows in index order, so any chunking gives the same bits.

Sparse rows are anchored instead: m = phi^d(0), which the loops take off each stored entry. A free intercept takes up
the difference, so the optimum is the same; the scale is that of the dense problem, as a variance does not ask for m.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from linadd.encoders.rows import (
    Space,
    Zero,
    as_rows,
    code_of_zero,
    empty_rows,
    locate,
    locate_entries,
    make_scratch,
    moment_rows,
)
from linadd.errors import DataError

LEAST_SPREAD = 1e-6  # norms are summed from float32 values: their mean is known to some 1e-7


def located(encoder, pieces, kept=None):
    """The pieces of a group of rows as positions.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    pieces : list of (int, array or csr_array (n_rows, n_features), float64 array (n_rows,))
        First row's index, values and weights, as `row_groups` cuts them.
    kept : Rows, optional
        All rows: where positions are to be written, of sparse rows in order; else each piece has Rows of its own.

    Returns
    -------
    list of (int, Rows, float64 array (n_rows,))
        With positions in place of values.
    """
    parts = []
    for first_row, X, weight in pieces:
        is_sparse, n_rows, first = scipy.sparse.issparse(X), X.shape[0], first_row if kept is not None else 0
        rows = empty_rows(encoder, n_rows, X.nnz if is_sparse else None) if kept is None else kept
        if is_sparse:
            locate_entries(encoder, X, rows, first)
        else:
            locate(encoder, X, rows.positions[first : first + n_rows])
        parts.append((first_row, rows.part(first, first + n_rows), weight))
    return parts


class CodeMoments:
    """Weighted sums of phi, and of its squared norm, over groups of rows that are added in order; of phi - phi(0) for
    sparse rows.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    is_sparse : bool
        Whether rows come as stored entries.
    """

    def __init__(self, encoder, is_sparse=False):
        self.encoder, self.basis = encoder, encoder.basis
        self.zero = code_of_zero(encoder) if is_sparse else None
        self.scale_squared = (encoder.scale**2).astype(np.float32)
        self.codes, self.sums = np.zeros((encoder.n_features, encoder.n_basis)), np.zeros(2)

    def run(self, pieces, codes, sums):
        """Add pieces of rows to sums of codes (n_features, n_basis), and of squared norms and weights (2,)."""
        scratch = make_scratch(self.encoder, self.zero)
        for _, rows, weight in pieces:
            moment_rows(self.basis, as_rows(rows), weight, self.scale_squared, scratch, codes, sums)

    def group(self, pieces):
        """Sums of one group of rows; any number of threads may ask at once.

        Parameters
        ----------
        pieces : list of (int, array (n_rows, n_features), float64 array (n_rows,))
            First row's index, positions and weights, as `row_groups` cuts them.

        Returns
        -------
        (float64 array (n_features, n_basis), float64 array (2,))
            Of the codes; of squared norms and weights.
        """
        codes, sums = np.zeros_like(self.codes), np.zeros(2)
        self.run(pieces, codes, sums)
        return codes, sums

    def add(self, codes, sums):
        """Add the sums of the next group."""
        self.codes += codes
        self.sums += sums

    @property
    def mean_code(self):
        """Mean of phi over the rows so far, float64 (n_features, n_basis)."""
        mean = self.codes / self.sums[1]
        return mean if self.zero is None else mean + dense_code(self.zero, self.encoder.n_basis)

    def centre(self, centred, unit):
        """The finished Centre.

        Parameters
        ----------
        centred : bool
            Subtract the mean code; sparse rows have that of zero subtracted.
        unit : bool
            Divide by the root of the mean squared norm of the centred code, so that this mean becomes 1.

        Raises
        ------
        DataError
            Under `unit`, where rows differ by less than float32 can tell.
        """
        codes, mean_square = self.codes / self.sums[1], self.sums[0] / self.sums[1]
        table = self.basis.table_exact if self.encoder.is_local else np.eye(self.encoder.n_basis)
        updates = codes @ table
        square = self.encoder.scale**2
        kappa_0 = float(square @ np.einsum("ij,ij->i", codes, updates))
        spread = mean_square - kappa_0
        if unit and spread <= LEAST_SPREAD * mean_square:
            raise DataError(
                f"the rows vary by {max(spread / mean_square, 0.0):.1g} of their squared norm, less than float32 can "
                "tell. Drop features that are constant in nearly all rows."
            )
        factor = 1.0 / spread if unit else 1.0
        # Solver and certificate must mean the same problem: the square as float32 is the scale's definition.
        scale_squared = (square * factor).astype(np.float32)
        is_shifted = centred and self.zero is None
        subtracted = factor * kappa_0 * is_shifted
        return Centre(
            scale=np.sqrt(scale_squared.astype(np.float64)),
            mean_code=codes * centred if self.zero is None else dense_code(self.zero, self.encoder.n_basis),
            shifted_code=codes * is_shifted,
            mean_norm=factor * mean_square - subtracted,
            space=Space(
                scale_squared=scale_squared,
                mean_update=(updates * (square * factor)[:, None] * is_shifted).astype(np.float32),
                kappa_0=np.float32(subtracted),
            ),
            zero=self.zero,
        )


def dense_code(zero, n_basis):
    """All values of the code of zero, float64 (n_features, n_basis)."""
    n_features, code = len(zero.index), np.zeros((len(zero.index), n_basis))
    for m, values in enumerate(zero.values):
        code[np.arange(n_features), zero.index + m] = values
    return code


@dataclass(frozen=True)
class Centre:
    """Scale and centre of a fitted embedding.

    Attributes
    ----------
    scale : float64 array (n_features,)
        s_j, 0 for a constant feature.
    mean_code : float64 array (n_features, n_basis)
        m, what is subtracted from phi: phibar, or 0 without centring; the code of zero for sparse rows.
    shifted_code : float64 array (n_features, n_basis)
        m where compiled loops subtract it by a shift of all coefficients; 0 for sparse rows.
    mean_norm : float
        Weighted mean of |z_i|^2 over the training rows.
    space : Space
        The same for compiled loops.
    zero : Zero or None
        The code of zero for their scratch; None for dense rows.
    """

    scale: np.ndarray
    mean_code: np.ndarray
    shifted_code: np.ndarray
    mean_norm: float
    space: Space
    zero: Zero | None = None

    @property
    def is_sparse(self):
        """Whether solvers know of a row its stored entries only."""
        return self.zero is not None
