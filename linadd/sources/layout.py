"""What the chunks that a file is stored in mean for reading it by rows, the same for every format that has chunks."""

import os
import shlex
import sys
import warnings

from linadd.errors import DataWarning
from linadd.sources.base import CHUNK_BYTES, rows_of_bytes
from linadd.sources.row_copy import SlowRows

__all__ = ["PANEL_BYTES", "panels", "slow_rows", "whole_chunks"]

# Rows that the solver asks for at a time (`--training-chunk`), the measure of a layout that is slow to read by rows.
TRAINING_ROWS = 1000
# What is unpacked at a time for a copy in rows, at most, unless one chunk of the file is larger.
PANEL_BYTES = 8 * CHUNK_BYTES
DEFAULT_NAMES = ("X", "y", "weight", None)  # of arrays, which a command need not name


def whole_chunks(row_bytes, file_rows):
    """Rows of a reader chunk of a file that is stored in chunks.

    Whole chunks of the file, as one that is read twice is unpacked twice; but no more than eight times the aim.

    Parameters
    ----------
    row_bytes : int
        Bytes of a row.
    file_rows : int
        Rows of a chunk of the file.

    Returns
    -------
    int
    """
    rows = rows_of_bytes(row_bytes)
    return max(file_rows, rows - rows % file_rows) if file_rows <= 8 * rows else rows


def slow_rows(source, path, what, names, chunks, together):
    """The account of a layout in which a training chunk costs over four times its rows; None for a better one.

    Parameters
    ----------
    source : Source
        With origin, shape and dtype set.
    path : str
        Its file.
    what : str
        The array of features in it, for the message.
    names : dict of str to (str or None)
        Names of the arrays that are read, by their options.
    chunks : tuple of int, or None
        Shape of the chunks that it is stored in; None for whole columns.
    together : int
        Rows that cost as much as one of them, in groups from row 0 on.

    Returns
    -------
    SlowRows or None

    Warns
    -----
    DataWarning
        Such a layout of rows that do not stay in the nearer caches; gives the `linadd convert` command.
    """
    together, row_bytes = min(together, source.n_rows), source.n_features * source.dtype.itemsize
    if together <= 4 * TRAINING_ROWS:
        return None
    if together * row_bytes >= CHUNK_BYTES // 2:
        layout = f"chunks of {' x '.join(map(str, chunks))}" if chunks else "columns"
        target = os.path.splitext(path)[0] + "_rows.h5"
        others = [f"--{option} {shlex.quote(name)}" for option, name in names.items() if name not in DEFAULT_NAMES]
        command = " ".join(["linadd convert", shlex.quote(source.origin), shlex.quote(target), *others])
        message = f"{source.origin}: {what} is stored in {layout}, which is slow to read by rows."
        warnings.warn(f"{message} Rewrite it once: {command}", DataWarning, stacklevel=depth_here())
    return SlowRows(source.n_rows, row_bytes, together)


def depth_here():
    """The stack level at which the caller's warning points to the line outside of linadd that led to it."""
    depth, frame = 0, sys._getframe(1)
    while frame.f_back and frame.f_globals["__name__"].startswith("linadd."):
        depth, frame = depth + 1, frame.f_back
    return depth + 1


def panels(shape, chunk, itemsize):
    """The parts of a table in which each chunk is read once, in bounded memory unless one chunk is larger.

    Parameters
    ----------
    shape, chunk : tuple of int
        Rows and columns of the table, and of a chunk of it.
    itemsize : int
        Bytes of a value.

    Returns
    -------
    spans : iterator of ((int, int), (int, int))
        Start and stop of the rows and of the columns of each part.
    in_rows : bool
        Whether the parts are whole rows.
    """
    n_rows = max(1, PANEL_BYTES // (shape[1] * itemsize * chunk[0])) * chunk[0]
    n_columns = max(1, PANEL_BYTES // (n_rows * chunk[1] * itemsize)) * chunk[1]
    spans = ((rows, columns) for rows in pieces(shape[0], n_rows) for columns in pieces(shape[1], n_columns))
    return spans, n_columns >= shape[1]


def pieces(length, step):
    """(start, stop) of each piece of a length that is cut every `step`."""
    return [(start, min(start + step, length)) for start in range(0, length, step)]
