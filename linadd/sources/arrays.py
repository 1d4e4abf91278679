"""Rows of arrays in memory: NumPy arrays (also memory-mapped), lists, and scipy CSR."""

import numpy as np
import scipy.sparse

from linadd.chunks import Chunk, csr_rows
from linadd.errors import DataError
from linadd.sources.base import Source, array_fingerprint, check_length, check_table, plain_labels, rows_of_bytes

__all__ = ["ArraySource", "SparseSource"]


class ArraySource(Source):
    """Rows of a NumPy array, or of a list, which is copied once; chunks are views wherever the dtype is kept.

    Parameters
    ----------
    X : array_like, shape (n_rows, n_features)
        Real numbers; any strides, read-only or memory-mapped.
    y : array_like, shape (n_rows,), or None
        Labels: numbers or text.
    weights : array_like, shape (n_rows,), or None
        Sample weights.
    origin : str
        Name for messages.
    names : tuple of str
        What messages call X, y and weights.

    Raises
    ------
    DataError
        As `check_table` and `check_length`; ragged lists, masked values, labels of mixed type.
    """

    kind = "an array"

    @staticmethod
    def accepts(data):
        """True: what NumPy cannot read is refused with a reason."""
        return True

    def __init__(self, X, y=None, weights=None, origin="array", names=("X", "y", "weights")):
        self.origin, self.names = origin, names
        self.X = as_array(X, names[0], origin)
        self.dtype = check_table(self.X.shape, self.X.dtype, origin, names[0])
        self.n_rows, self.n_features = self.X.shape
        self.chunk_rows = rows_of_bytes(self.n_features * self.dtype.itemsize)
        self._attach(y, weights)

    def _attach(self, y, weights):
        """Take labels and weights of all rows; labels are made plain as a whole, so that every chunk has their type."""
        self.y = self._entries(y, self.names[1])
        if self.y is not None:
            self.y = plain_labels(self.y, Chunk(None, None, None, 0, self.origin))
        self.weight = self._entries(weights, self.names[2])
        self.has_labels, self.has_weights = self.y is not None, self.weight is not None

    def _entries(self, entries, name):
        """One entry a row, as a vector; None for None."""
        if entries is None:
            return None
        entries = as_array(entries, name, self.origin)
        check_length(self.n_rows, entries.shape, self.origin, name, self.names[0])
        return entries.reshape(-1)

    def _entries_of(self, start, stop):
        """Chunk of the labels and weights of rows start..stop-1, its X to be set."""
        y, weight = (None if entries is None else entries[start:stop] for entries in (self.y, self.weight))
        return Chunk(None, y, weight, start, self.origin)

    def _read(self, start, stop):
        chunk = self._entries_of(start, stop)
        chunk.X = self.X[start:stop]
        return chunk

    def fingerprint(self):
        """Shape, dtype and a digest of sampled rows."""
        return array_fingerprint(*(array for array in (self.X, self.y, self.weight) if array is not None))


class SparseSource(ArraySource):
    """Rows of a scipy sparse matrix or array; any format but CSR is converted once.

    Parameters
    ----------
    X : scipy.sparse array or matrix, shape (n_rows, n_features)
        Never changed: entries are sorted, and repeated ones summed, on a copy.
    y, weights, origin, names
        As for `ArraySource`.
    """

    kind = "a sparse array"
    is_sparse = True

    @staticmethod
    def accepts(data):
        """Whether `data` is a scipy sparse array or matrix."""
        return scipy.sparse.issparse(data)

    def __init__(self, X, y=None, weights=None, origin="array", names=("X", "y", "weights")):
        self.origin, self.names = origin, names
        self.dtype = check_table(X.shape, X.dtype, origin, names[0])
        self.X = canonical_csr(X)
        self.n_rows, self.n_features = self.X.shape
        self.chunk_rows = rows_of_bytes(self.X.nnz * (self.dtype.itemsize + 4) / self.n_rows + 8)
        self._attach(y, weights)

    def _read(self, start, stop):
        chunk = super()._read(start, stop)
        chunk.X = csr_rows(chunk.X.data, chunk.X.indices, chunk.X.indptr, chunk.X.shape)
        return chunk

    def layout(self):
        """Bytes and density of the entries."""
        n_bytes = self.X.data.nbytes + self.X.indices.nbytes + self.X.indptr.nbytes
        return {"bytes": n_bytes, "density": self.X.nnz / (self.n_rows * self.n_features)}

    def fingerprint(self):
        """Shape, dtype and a digest of sampled entries."""
        arrays = (self.X.data, self.X.indices, self.X.indptr, self.y, self.weight)
        return {"shape": list(self.X.shape)} | array_fingerprint(*(array for array in arrays if array is not None))


def canonical_csr(X):
    """A sparse array or matrix as csr_array with sorted indices, each once; what must change is changed in a copy."""
    X = scipy.sparse.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def as_array(data, what, origin):
    """`data` as a NumPy array; DataError where NumPy finds no shape or would lose a mask."""
    if np.ma.is_masked(data):
        raise DataError(f"{what} has masked values. Fill them, for instance with .filled(0).", source=origin)
    try:
        return np.asarray(data)
    except (ValueError, TypeError):
        message = f"{what} is no rectangular array. Give rows of equal length."
        raise DataError(message, source=origin) from None
