"""Rows of dask arrays, computed a block at a time on whatever scheduler the user has set up."""

import sys
import threading

import numpy as np
import scipy.sparse

from linadd.chunks import join_rows
from linadd.errors import DataError
from linadd.sources.arrays import ArraySource, canonical_csr
from linadd.sources.base import array_fingerprint, check_table, rows_of_bytes

__all__ = ["DaskSource"]


class DaskSource(ArraySource):
    """Rows of a dask array, which may hold scipy sparse blocks.

    A block of rows is computed whole, and the last one kept, so that reading in order computes each block once for any
    `chunk_rows`. Blocks of columns are joined.

    Parameters
    ----------
    X : dask.array.Array, shape (n_rows, n_features)
        Of known chunk sizes.
    y, weights : dask arrays or array_like, shape (n_rows,), or None
        Labels and sample weights, computed at once: they take no more memory than the solver's dual variables.

    Raises
    ------
    DataError
        Unknown chunk sizes; a table or entries that do not fit; on reading, a block that is not as dask was told.
    """

    kind = "a dask array"

    @staticmethod
    def accepts(data):
        """Whether `data` is a dask array; does not import dask, without which there is none."""
        return "dask.array" in sys.modules and isinstance(data, sys.modules["dask.array"].Array)

    def __init__(self, X, y=None, weights=None):
        self.origin, self.names = "dask array", ("X", "y", "weights")
        if np.isnan(X.shape).any():
            raise DataError("X has chunks of unknown size. Call X.compute_chunk_sizes() first.", source=self.origin)
        self.dtype = check_table(X.shape, X.dtype, self.origin)
        self.X = X
        self.n_rows, self.n_features = X.shape
        self.is_sparse = scipy.sparse.issparse(X._meta)
        self.chunk_rows = rows_of_bytes(self.n_features * self.dtype.itemsize)
        self._bounds = np.concatenate([[0], np.cumsum(self.X.chunks[0], dtype=np.int64)])
        self._attach(y, weights)
        self._keep_nothing()

    def _keep_nothing(self):
        self._lock, self._kept = threading.Lock(), (None, None)

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "_kept")}

    def __setstate__(self, state):
        self.__dict__ |= state
        self._keep_nothing()

    def _block(self, k):
        """Block k of rows, computed if it is not the one that is kept."""
        with self._lock:
            if self._kept[0] != k:
                block = self.X.blocks[k].compute()
                block = canonical_csr(block) if self.is_sparse else np.asarray(block)
                rows = int(self._bounds[k + 1] - self._bounds[k])
                if block.shape != (rows, self.n_features) or block.dtype != self.X.dtype:
                    found, told = f"{block.shape} {block.dtype}", f"{(rows, self.n_features)} {self.X.dtype}"
                    message = f"block {k} of X is {found}; dask was told {told}. Correct its dtype and chunks."
                    raise DataError(message, source=self.origin)
                self._kept = k, block
            return self._kept[1]

    def _read(self, start, stop):
        first, last = np.searchsorted(self._bounds, [start + 1, stop]) - 1
        pieces = []
        for k in range(first, last + 1):
            low, high = self._bounds[k : k + 2]
            pieces.append(self._block(k)[max(start, low) - low : min(stop, high) - low])
        chunk = self._entries_of(start, stop)
        chunk.X = join_rows(pieces)
        return chunk

    def fingerprint(self):
        """Shape, dtype and dask's own name of the array, which follows from what it is computed from."""
        arrays = [entries for entries in (self.y, self.weight) if entries is not None]
        X = {"name": self.X.name, "shape": list(self.X.shape), "dtype": self.X.dtype.str}
        return X | array_fingerprint(*arrays)
