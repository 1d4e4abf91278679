"""Rows of pandas and polars frames, read a slice at a time.

The features have the least NumPy type that holds every column exactly where there is one: uint8 beside float32 becomes
float32, int64 beside float32 float64.
"""

import sys
from dataclasses import replace

import numpy as np

from linadd.errors import DataError
from linadd.sources.arrays import ArraySource
from linadd.sources.base import array_fingerprint, rows_of_bytes
from linadd.sources.tables import TableSource

__all__ = ["FrameSource"]

# Polars' names of the types that NumPy has.
POLARS_TYPES = {"Boolean": "bool"} | {
    name: name.lower() for name in ("Float32", "Float64", *(f"{s}Int{n}" for s in ("", "U") for n in (8, 16, 32, 64)))
}


class FrameSource(TableSource, ArraySource):
    """Rows of a `pandas.DataFrame` or a `polars.DataFrame`.

    Parameters
    ----------
    X : frame, shape (n_rows, n_columns)
        Every feature of numbers or booleans, nullable types too as long as no value is missing.
    y, weights : array_like or column, shape (n_rows,), or str, or None
        As for `ArraySource`, or the name of a column of X, which then is no feature.
    options : ReadOptions
        Which other columns are features.

    Raises
    ------
    DataError
        A feature that is not numeric, or lacks values; names it, and the row. A lazy frame.
    """

    kind = "a frame"

    @staticmethod
    def accepts(data):
        """Whether `data` is a frame; imports neither library, without which there is none."""
        return library_of(data) is not None

    def __init__(self, X, y, weights, options):
        self.library = library_of(X)
        self.origin, self.names = f"{self.library} frame", ("X", "y", "weights")
        if not hasattr(X, "shape"):
            raise DataError("is lazy: its rows are not there yet. Give frame.collect().", source=self.origin)
        self.X = X
        names = list(X.columns) if all(isinstance(name, str) for name in X.columns) else None
        y_name, weights_name = (each if isinstance(each, str) else None for each in (y, weights))
        self._take_columns(names, X.shape[1], replace(options, y=y_name, weights=weights_name))
        self._take_types([(numpy_type(dtype), dtype) for dtype in X.dtypes], len(X))
        self._refuse_missing()
        self.chunk_rows = rows_of_bytes(self.n_features * self.dtype.itemsize)
        self._attach(
            y if y_name is None else self._column(self.label_place),
            weights if weights_name is None else self._column(self.weight_place),
        )

    def _column(self, place):
        """A column, as its library has it."""
        return self.X.to_series(place) if self.library == "polars" else self.X.iloc[:, place]

    def _refuse_missing(self):
        """Raise DataError on a missing value; NaN in a column of floats is found with the other values later."""
        for place in self.columns.tolist():
            column = self._column(place)
            if self.library == "polars":
                is_missing = column.is_null().to_numpy() if column.null_count() else ()
            else:
                is_missing = () if isinstance(column.dtype, np.dtype) else column.isna().to_numpy()
            if np.any(is_missing):
                row, name = int(np.argmax(is_missing)) + 1, self.column_names[place]
                message = "the value is missing. Fill it, or drop the row."
                raise DataError(message, source=self.origin, row=row, column=name)

    def _rows(self, rows):
        """Features of a slice or index of rows as an array of the stored type."""
        is_whole = np.array_equal(self.columns, np.arange(self.X.shape[1]))
        columns = slice(None) if is_whole else self.columns
        if self.library == "polars":
            return self.X[rows, columns].to_numpy().astype(self.stored, copy=False)
        return self.X.iloc[rows, columns].to_numpy(self.stored)

    def _read(self, start, stop):
        chunk = self._entries_of(start, stop)
        chunk.X = self._rows(slice(start, stop))
        return chunk

    def read_selector(self, name, start, stop):
        """Entries of a column."""
        return self._column(self.column_names.index(name))[start:stop].to_numpy()

    def fingerprint(self):
        """Shape, names, types and a digest of sampled rows."""
        sampled = self._rows(np.linspace(0, self.n_rows - 1, min(256, self.n_rows)).astype(np.int64))
        entries = [array for array in (self.y, self.weight) if array is not None]
        return self.column_prints() | {"shape": list(self.X.shape)} | array_fingerprint(sampled, *entries)


def library_of(data):
    """Name of the library that a frame comes from; None for anything else."""
    for name in ("pandas", "polars"):
        module = sys.modules.get(name)
        if module is not None and isinstance(data, (module.DataFrame, getattr(module, "LazyFrame", ()))):
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
