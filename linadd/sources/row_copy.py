"""A table copied to a temporary file, where its layout makes rows slow to read and they are read again and again."""

import logging
import os
import tempfile
import threading
import weakref

import numpy as np

from linadd.errors import DataError
from linadd.sources.base import CHUNK_BYTES, ReadOptions
from linadd.sources.npy import NpySource
from linadd.sources.text import remove_file

__all__ = ["RowCopy", "SlowRows"]

logger = logging.getLogger(__name__)

# Bytes read in vain that no copy is worth.
LEAST_BYTES = 8 * CHUNK_BYTES


class SlowRows:
    """What reading rows from a slow layout has cost so far, and their copy from when that passed the cost of one.

    So the cost is at most about twice the least one, however often and in whatever order rows are going to be read; who
    streams through the file in its own chunks never pays for a copy. Pickled without the copy.

    Parameters
    ----------
    n_rows, row_bytes : int
        Size of the table.
    together : int
        Rows that cost as much as one of them, in groups from row 0 on.
    """

    def __init__(self, n_rows, row_bytes, together):
        self.n_rows, self.row_bytes, self.together = n_rows, row_bytes, together
        self._vain_bytes, self._copy, self._lock = 0, None, threading.Lock()

    def copy_for(self, ranges, make):
        """The copy to read the ranges of rows from; None while there is none.

        Parameters
        ----------
        ranges : list of (int, int)
            start and stop of each.
        make : callable
            make() gives the RowCopy, or what else has a `close`.
        """
        return self.copy_after(sum(self._rows_in_vain(*pair) for pair in ranges), make)

    def copy_after(self, n_vain, make):
        """As `copy_for`, of a read of which is known that it costs `n_vain` rows beside those that it wants."""
        with self._lock:
            if self._copy is None:
                self._vain_bytes += self.row_bytes * n_vain
                if self._vain_bytes > max(self.n_rows * self.row_bytes, LEAST_BYTES):
                    self._copy = make()
            return self._copy

    def _rows_in_vain(self, start, stop):
        """Rows beside start..stop-1 that reading these costs."""
        last = min(-(-stop // self.together) * self.together, self.n_rows)
        return last - start // self.together * self.together - (stop - start)

    def close(self):
        """Remove the copy."""
        with self._lock:
            self._copy, copy = None, self._copy
        if copy is not None:
            copy.close()

    def __getstate__(self):
        return {"n_rows": self.n_rows, "row_bytes": self.row_bytes, "together": self.together}

    def __setstate__(self, state):
        self.__init__(**state)


class RowCopy(NpySource):
    """Rows of a table that is copied to a temporary `.npy` file, which is removed with this object, or at exit.

    Parameters
    ----------
    panels : iterable of (int, int, array)
        First row and first column of each part of the table, and its values, of any strides.
    shape : tuple of int
        (n_rows, n_features).
    dtype : numpy.dtype
        Type of the values.
    in_rows : bool
        Whether the parts are whole rows: the file then has row by row, else column by column.
    origin : str
        The source, for messages.

    Raises
    ------
    DataError
        The temporary folder lacks the space.
    """

    def __init__(self, panels, shape, dtype, in_rows, origin):
        handle, path = tempfile.mkstemp(prefix="linadd-", suffix=".npy")
        self._remove = weakref.finalize(self, remove_file, path)
        size = f"{shape[0] * shape[1] * dtype.itemsize / 1e6:.1f} MB"
        logger.info("%s: copying its rows to the temporary file %s of %s", origin, path, size)
        with os.fdopen(handle, "wb") as file:
            try:
                write_table(file, panels, shape, dtype, in_rows)
            except OSError as error:
                message = f"a copy of its rows takes {size} in {tempfile.gettempdir()} ({error.strerror or error})."
                remedy = "Set TMPDIR to a larger folder, or rewrite the file: linadd convert"
                raise DataError(f"{message} {remedy}", source=origin) from error
        super().__init__(path, ReadOptions())

    def close(self):
        """Remove the file."""
        self._remove()


def write_table(file, panels, shape, dtype, in_rows):
    """Write the panels of a table as a `.npy` file, whose space is claimed before the work is done."""
    header = {"descr": dtype.str, "fortran_order": not in_rows, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    offset = file.tell()
    size = offset + shape[0] * shape[1] * dtype.itemsize
    file.truncate(size)
    if hasattr(os, "posix_fallocate"):  # not on macOS
        os.posix_fallocate(file.fileno(), 0, size)
    for start, first, panel in panels:
        if in_rows:  # some at a time, as they may have to be transposed
            step = max(1, CHUNK_BYTES // panel[0].nbytes)
            runs = [((start + i) * shape[1], panel[i : i + step]) for i in range(0, len(panel), step)]
        else:
            runs = [((first + j) * shape[0] + start, column) for j, column in enumerate(panel.T)]
        for position, values in runs:
            file.seek(offset + position * dtype.itemsize)
            file.write(np.ascontiguousarray(values))
