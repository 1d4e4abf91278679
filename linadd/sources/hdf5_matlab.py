"""MATLAB's v7.3 files, which are HDF5: what their datasets mean, beside numbers.

Axes are reversed, and the attribute MATLAB_class says what an array is: texts are codes of UTF-16, a cell array holds
references, and of an empty array its shape is stored. The format is not published; matio's mat73.c knows it.
"""

import h5py
import numpy as np

from linadd.sources.hdf5_text import read_attribute
from linadd.sources.mat import NUMBERS, TEXTS, check_class

__all__ = ["check_matlab", "matlab_class", "read_cells", "read_characters"]


def matlab_class(entry):
    """MATLAB's name for the class of an open dataset or group, "sparse" for its sparse matrices; None if not of it."""
    if "MATLAB_class" not in entry.attrs:
        return None
    if "MATLAB_sparse" in entry.attrs:
        return "sparse"
    name = read_attribute(entry, "MATLAB_class")
    return name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)


def check_matlab(entry, name, origin, is_table=False):
    """Raise DataError for a variable of MATLAB that is no full matrix or, unless `is_table`, column of texts."""
    kind = matlab_class(entry)
    if kind is not None:
        is_empty = kind in NUMBERS | TEXTS and "MATLAB_empty" in entry.attrs
        check_class("empty" if is_empty else kind, name, origin, NUMBERS if is_table else NUMBERS | TEXTS)


def read_characters(dataset, start, stop):
    """Rows start..stop-1 of an open matrix of characters, without the blanks at their ends, as an array of str."""
    return np.array([text_of(codes).rstrip() for codes in dataset[:, start:stop].T], str)


def read_cells(dataset):
    """The texts of an open cell array as an array (n,) of str; 0.1 ms each, as every cell is an object of the file.

    Raises
    ------
    ValueError
        A cell that holds something else.
    """
    references = dataset[()].reshape(-1)
    return np.array([cell_text(dataset, reference, row) for row, reference in enumerate(references, 1)], str)


def cell_text(dataset, reference, row):
    """The text that a reference stands for."""
    cell = h5py.h5r.dereference(reference, dataset.id)
    if h5py.h5a.exists(cell, b"MATLAB_empty"):
        return ""
    if not isinstance(cell, h5py.h5d.DatasetID) or cell.dtype != np.uint16:
        raise ValueError(f"cell {row} holds no text")
    codes = np.empty(cell.shape, np.uint16)
    cell.read(h5py.h5s.ALL, h5py.h5s.ALL, codes)
    return text_of(codes)


def text_of(codes):
    """The text of an array of codes of UTF-16."""
    return codes.astype("<u2").tobytes().decode("utf-16-le")
