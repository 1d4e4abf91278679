"""Files of predictions: `.csv`, `.npy` and `.h5`, written as the rows come; one writer each, in the list at the end.

A writer is a context (path, table, n_rows) that gives a function for the next rows, shape (n,) or (n, n_columns).
"""

import contextlib
import csv
import os
from dataclasses import dataclass

import numpy as np

from linadd.errors import ConfigError

__all__ = ["WRITERS", "PredictionTable", "find_writer"]


@dataclass(frozen=True)
class PredictionTable:
    """What is written.

    Attributes
    ----------
    output : {"label", "decision", "proba"}
        Kind of prediction.
    columns : list of str
        Name of each column; one column is stored as a one-dimensional array.
    dtype : numpy.dtype
        Of the entries.
    metadata : dict of str to str
        Where the format has a place for it: the model's path and digest.
    """

    output: str
    columns: list
    dtype: np.dtype
    metadata: dict

    @classmethod
    def of(cls, output, model, path):
        """The table of a model that was loaded from `path`."""
        columns, dtype = [output], np.dtype(np.float64)
        if output == "label":
            dtype = model.classes.dtype
        elif output == "proba" or model.n_outputs > 1:
            columns = [str(label) for label in model.classes.tolist()]
        return cls(output, columns, dtype, {"model": path, "model_digest": model.digest})

    def shape(self, n_rows):
        """Shape of the array of `n_rows` predictions."""
        return (n_rows,) if len(self.columns) == 1 else (n_rows, len(self.columns))


@contextlib.contextmanager
def csv_writer(path, table, n_rows):
    """A header line, then a line a row; numbers in the shortest form that reads back to the same double."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(table.columns)
        yield lambda rows: lines.writerows(rows.reshape(len(rows), -1).tolist())


@contextlib.contextmanager
def npy_writer(path, table, n_rows):
    """One array, its rows appended behind the header."""
    with open(path, "wb") as file:
        header = {"descr": table.dtype.str, "fortran_order": False, "shape": table.shape(n_rows)}
        np.lib.format.write_array_header_2_0(file, header)
        yield lambda rows: file.write(np.ascontiguousarray(rows, table.dtype).data)


@contextlib.contextmanager
def hdf5_writer(path, table, n_rows):
    """A dataset named after the output; attributes `columns`, `model` and `model_digest`."""
    import h5py  # 0.1 s

    text = h5py.string_dtype()
    is_text = table.dtype.kind == "U"
    with h5py.File(path, "w") as file:
        data = file.create_dataset(table.output, table.shape(n_rows), text if is_text else table.dtype)
        data.attrs.create("columns", table.columns, dtype=text)
        data.attrs.update(table.metadata)
        n_done = 0

        def write(rows):
            nonlocal n_done
            data[n_done : n_done + len(rows)] = rows.astype(object) if is_text else rows
            n_done += len(rows)

        yield write


WRITERS = {".csv": csv_writer, ".npy": npy_writer, ".h5": hdf5_writer}


def find_writer(path):
    """The writer for a path's suffix, or ConfigError with those that exist."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in WRITERS:
        raise ConfigError(f"{path}: predictions are written as {', '.join(WRITERS)}, not {suffix or 'without suffix'}.")
    return WRITERS[suffix]
