"""The scale and centre of the embedding: one streaming pass for the mean code and the mean squared norm.

Replacing phi^d by phi^d - m, m its weighted mean over the training rows, conditions the problem and makes every curve's
mean zero on the data. Sums run over fixed groups of rows in index order, so any chunking gives the same bits.
"""

from dataclasses import dataclass

import numpy as np

from linadd.encoders.rows import Space, locate, make_scratch, moment_rows, positions_dtype
from linadd.errors import DataError

LEAST_SPREAD = 1e-6  # norms are summed from float32 values: their mean is known to some 1e-7


def located(encoder, pieces, kept=None):
    """The pieces of a group of rows as positions.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    pieces : list of (int, array (n_rows, n_features), float64 array (n_rows,))
        First row's index, values and weights, as `row_groups` cuts them.
    kept : array, shape (all rows, n_features), optional
        Of the positions' dtype: where they are to be written; else each piece has an array of its own.

    Returns
    -------
    list of (int, array (n_rows, n_features), float64 array (n_rows,))
        With positions in place of values.
    """
    parts = []
    for first_row, X, weight in pieces:
        own = slice(first_row, first_row + len(X))
        positions = np.empty(X.shape, positions_dtype(encoder)) if kept is None else kept[own]
        locate(encoder, X, positions)
        parts.append((first_row, positions, weight))
    return parts


class CodeMoments:
    """Weighted sums of phi, and of its squared norm, over groups of rows that are added in order.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    """

    def __init__(self, encoder):
        self.encoder, self.basis = encoder, encoder.basis
        self.scale_squared = (encoder.scale**2).astype(np.float32)
        self.codes, self.sums = np.zeros((encoder.n_features, encoder.n_basis)), np.zeros(2)

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
        codes, sums, scratch = np.zeros_like(self.codes), np.zeros(2), make_scratch(self.encoder)
        for _, positions, weight in pieces:
            moment_rows(self.basis, positions, weight, self.scale_squared, scratch, codes, sums)
        return codes, sums

    def add(self, codes, sums):
        """Add the sums of the next group."""
        self.codes += codes
        self.sums += sums

    @property
    def mean_code(self):
        """Mean of phi over the rows so far, float64 (n_features, n_basis)."""
        return self.codes / self.sums[1]

    def centre(self, centred, unit):
        """The finished Centre.

        Parameters
        ----------
        centred : bool
            Subtract the mean code.
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
        subtracted = factor * kappa_0 * centred
        return Centre(
            scale=np.sqrt(scale_squared.astype(np.float64)),
            mean_code=codes * centred,
            mean_norm=factor * mean_square - subtracted,
            space=Space(
                scale_squared=scale_squared,
                mean_update=(updates * (square * factor)[:, None] * centred).astype(np.float32),
                kappa_0=np.float32(subtracted),
            ),
        )


@dataclass(frozen=True)
class Centre:
    """Scale and centre of a fitted embedding.

    Attributes
    ----------
    scale : float64 array (n_features,)
        s_j, 0 for a constant feature.
    mean_code : float64 array (n_features, n_basis)
        phibar; 0 without centring.
    mean_norm : float
        Weighted mean of |z_i|^2 over the training rows.
    space : Space
        The same for compiled loops.
    """

    scale: np.ndarray
    mean_code: np.ndarray
    mean_norm: float
    space: Space
