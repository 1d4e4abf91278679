"""Rows of pandas and polars frames: numeric columns, read a slice at a time; the names of the columns are kept.

The features have the least NumPy type that holds every column exactly where there is one: uint8 beside float32 becomes
float32, int64 beside float32 float64.
"""

import sys

import numpy as np

from linadd.errors import DataError
from linadd.sources.arrays import ArraySource
from linadd.sources.base import ReadOptions, array_fingerprint, check_table, dtype_remedy, rows_of_bytes
from linadd.sources.columns import choose_columns

__all__ = ["FrameSource"]

ALL_COLUMNS = ReadOptions()
# Polars' names of the types that NumPy has.
POLARS_TYPES = {"Boolean": "bool"} | {
    name: name.lower() for name in ("Float32", "Float64", *(f"{s}Int{n}" for s in ("", "U") for n in (8, 16, 32, 64)))
}


class FrameSource(ArraySource):
    """Rows of a `pandas.DataFrame` or a `polars.DataFrame`.

    Parameters
    ----------
    X : frame, shape (n_rows, n_features)
        Every column of numbers or booleans, nullable types too as long as no value is missing.
    y, weights : array_like or column, shape (n_rows,), or None
        As for `ArraySource`.
    options : ReadOptions
        Which columns are read.

    Raises
    ------
    DataError
        A column that is not numeric, or lacks values; names it, and the row.
    """

    kind = "a frame"
    selects_columns = True

    @staticmethod
    def accepts(data):
        """Whether `data` is a frame; imports neither library, without which there is none."""
        return library_of(data) is not None

    def __init__(self, X, y=None, weights=None, options=ALL_COLUMNS):
        self.library = library_of(X)
        self.origin, self.names = f"{self.library} frame", ("X", "y", "weights")
        names = list(X.columns) if all(isinstance(name, str) for name in X.columns) else None
        order, self.feature_names = choose_columns(options, names, X.shape[1], self.origin)
        if order is not None:
            X = X[:, order] if self.library == "polars" else X.iloc[:, order]
        types = [numpy_type(dtype) for dtype in X.dtypes]
        for j, (dtype, stored) in enumerate(zip(X.dtypes, types, strict=True)):
            remedy = "Encode it as numbers, or drop it." if stored is None else dtype_remedy(stored)
            if remedy:
                message = f"has dtype {dtype}; features must be real numbers. {remedy}"
                raise DataError(message, source=self.origin, column=self.column_name(j))
        self.stored = np.result_type(*types) if types else np.dtype(np.float64)
        self.dtype = check_table(X.shape, self.stored, self.origin)
        self.X, (self.n_rows, self.n_features) = X, X.shape
        self._refuse_missing()
        self.chunk_rows = rows_of_bytes(self.n_features * self.dtype.itemsize)
        self._attach(y, weights)

    def _refuse_missing(self):
        """Raise DataError on a missing value; NaN in a column of floats is found with the other values later."""
        for j in range(self.n_features):
            if self.library == "polars":
                column = self.X.to_series(j)
                is_missing = column.is_null().to_numpy() if column.null_count() else ()
            else:
                column = self.X.iloc[:, j]
                is_missing = () if isinstance(column.dtype, np.dtype) else column.isna().to_numpy()
            if np.any(is_missing):
                row = int(np.argmax(is_missing)) + 1
                message = "the value is missing. Fill it, or drop the row."
                raise DataError(message, source=self.origin, row=row, column=self.column_name(j))

    def _rows(self, rows):
        """A slice or index of rows as an array of the stored type."""
        if self.library == "polars":
            return self.X[rows].to_numpy().astype(self.stored, copy=False)
        return self.X.iloc[rows].to_numpy(self.stored)

    def _read(self, start, stop):
        chunk = self._entries_of(start, stop)
        chunk.X = self._rows(slice(start, stop))
        return chunk

    def fingerprint(self):
        """Shape, names, types and a digest of sampled rows."""
        sampled = self._rows(np.linspace(0, self.n_rows - 1, min(256, self.n_rows)).astype(np.int64))
        entries = [array for array in (self.y, self.weight) if array is not None]
        columns = {"columns": list(map(str, self.X.columns)), "shape": list(self.X.shape)}
        return columns | array_fingerprint(sampled, *entries)


def library_of(data):
    """Name of the library that a frame comes from; None for anything else."""
    for name in ("pandas", "polars"):
        module = sys.modules.get(name)
        if module is not None and isinstance(data, module.DataFrame):
            return name
    return None


def numpy_type(dtype):
    """NumPy's type for the type of a column; None for one that is no number."""
    if isinstance(dtype, np.dtype):
        return dtype
    name = POLARS_TYPES.get(str(dtype))
    if name is not None:
        return np.dtype(name)
    found = getattr(dtype, "numpy_dtype", None)  # of pandas' nullable and Arrow types
    return found if found is not None and found.kind in "biuf" else None
