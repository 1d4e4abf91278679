"""A chunk of rows, the one thing that travels from sources to encoders and solvers."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse


@dataclass
class Chunk:
    """Consecutive rows of a source.

    Attributes
    ----------
    X : array, shape (n_rows, n_features), or scipy.sparse.csr_array
        Feature values in the dtype they are stored in (any bool, integer or float type; native byte order).
    y : array, shape (n_rows,), or None
        Labels as stored: numbers or strings, not yet mapped to classes.
    weight : array, shape (n_rows,), float64, or None
        Sample weights; None means 1 for each row.
    first_row : int
        Index of the first row in its source, from 0.
    origin : str
        The source's name, for messages.
    """

    X: np.ndarray | scipy.sparse.csr_array
    y: np.ndarray | None
    weight: np.ndarray | None
    first_row: int
    origin: str

    @property
    def n_rows(self):
        """Number of rows."""
        return self.X.shape[0]

    def dense(self):
        """X as a C-contiguous array of its stored dtype, shape (n_rows, n_features); a copy only where it must be."""
        X = self.X.toarray() if scipy.sparse.issparse(self.X) else self.X
        return np.ascontiguousarray(X)
