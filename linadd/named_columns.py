"""Rows of a model that are handed over as a frame: its columns by name, whatever the library."""

import os

import numpy as np

from linadd.errors import DataError

__all__ = ["rows_by_name"]


def rows_by_name(X, names, origin="array"):
    """An array of rows in the order of a model's columns.

    Parameters
    ----------
    X : array_like or frame, shape (n_rows, n_columns)
        A frame (anything with `columns`, all of them str) of a model with names may have them in any order, and others
        beside them; all else counts by position.
    names : sequence of str, or None
        The model's feature names.
    origin : str
        Name of the data, for messages.

    Returns
    -------
    array

    Raises
    ------
    DataError
        A frame that lacks a column, or has it twice; a path.
    """
    if isinstance(X, (str, os.PathLike)):
        message = "is a path, and a model takes rows. Read it by open_source(path), or use `linadd predict`."
        raise DataError(message, source=os.fspath(X))
    columns = list(getattr(X, "columns", []))
    if names is None or not columns or not all(isinstance(name, str) for name in columns) or columns == list(names):
        return np.asarray(X)
    names = list(map(str, names))  # of an array: a message would show numpy's type
    for name in names:
        if columns.count(name) != 1:
            state = "no column" if name not in columns else f"{columns.count(name)} columns named"
            message = f"has {state} {name!r}, which the model needs once. Give a frame of the model's columns."
            raise DataError(message, source=origin)
    return np.asarray(X[names])
