"""NumPy's files: `.npy`, read by position without a memory map, and `.npz`, whose arrays are loaded whole."""

import os
import tokenize
import zipfile
import zlib
from contextlib import contextmanager

import numpy as np

from linadd.chunks import Chunk
from linadd.errors import DataError, LinaddError
from linadd.sources.arrays import as_array
from linadd.sources.base import (
    Source,
    array_fingerprint,
    check_length,
    check_table,
    file_fingerprint,
    plain_labels,
    reading,
    rows_of_bytes,
)
from linadd.sources.loaded import LoadedSource

__all__ = ["NpySource", "NpzSource"]

# What NumPy raises on a file that is damaged or not its own.
NUMPY_ERRORS = (
    ValueError,
    TypeError,
    EOFError,
    KeyError,
    SyntaxError,
    RuntimeError,
    MemoryError,
    OverflowError,
    NotImplementedError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


class NpySource(Source):
    """Rows of the table in a `.npy` file.

    Read with ordinary reads into fresh arrays: pages of a memory map that were touched count as resident memory, which
    would then grow to the size of the file. Fortran order costs one read a column and chunk.

    Parameters
    ----------
    path : str
        The file.
    options : ReadOptions
        `y` and `weights`: arrays, or paths of `.npy` files (as they stand, or beside `path`), held in memory. The
        default name of `y` means no labels.

    Raises
    ------
    DataError
        A file that is damaged or holds objects; a table or entries that do not fit.
    """

    kind = ".npy"
    suffixes = (".npy",)

    def __init__(self, path, options):
        options.refuse(path, self.kind, "group", "x", "index_base")
        self.path = self.origin = path
        with opening(path):
            table = np.lib.format.open_memmap(path, mode="r")  # for its header; checks the file's length
        self.dtype = check_table(table.shape, table.dtype, path, "the array")
        self.n_rows, self.n_features = table.shape
        self.stored_dtype, self.offset = table.dtype, table.offset
        self.is_fortran = table.flags.f_contiguous and not table.flags.c_contiguous
        self.chunk_rows = rows_of_bytes(self.n_features * self.dtype.itemsize)
        y = None if isinstance(options.y, str) and options.y == "y" else options.y
        beside = [self._path_of(each) for each in (y, options.weights) if each is not None and each is not False]
        self._files = None if None in beside else [path, *beside]
        self.y, self.weight = self._entries(y, "y"), self._entries(options.weights, "weights")
        if self.y is not None:
            self.y = plain_labels(self.y, Chunk(None, None, None, 0, path))
        self.has_labels, self.has_weights = self.y is not None, self.weight is not None

    @staticmethod
    def matches(head):
        """Whether the first bytes are those of a `.npy` file."""
        return head.startswith(b"\x93NUMPY")

    def _path_of(self, entries):
        """Where a named `.npy` file is: as it stands, or beside this one; None for an array."""
        if not isinstance(entries, (str, os.PathLike)):
            return None
        return entries if os.path.exists(entries) else os.path.join(os.path.dirname(self.path), entries)

    def _entries(self, entries, what):
        """One entry a row, from an array or a `.npy` path; None for None."""
        if entries is None or entries is False:
            return None
        path = self._path_of(entries)
        if path is not None:
            what, entries = os.fspath(entries), load_npy(os.fspath(path))
        entries = as_array(entries, what, self.origin)
        check_length(self.n_rows, entries.shape, self.origin, what, "the array")
        return entries.reshape(-1)

    def _read(self, start, stop):
        rows = stop - start
        X = np.empty((rows, self.n_features), self.stored_dtype, order="F" if self.is_fortran else "C")
        # Runs of the file that make up the rows: all of them at once, or a piece of each column.
        itemsize = self.stored_dtype.itemsize
        if self.is_fortran:
            runs = [(X[:, j], (j * self.n_rows + start) * itemsize) for j in range(self.n_features)]
        else:
            runs = [(X, start * self.n_features * itemsize)]
        with reading(self.path), open(self.path, "rb", buffering=0) as file:
            for target, position in runs:
                read_into(file, self.offset + position, target, self.path)
        y, weight = (entries if entries is None else entries[start:stop] for entries in (self.y, self.weight))
        return Chunk(X, y, weight, start, self.origin)

    def fingerprint(self):
        """Of the file, and of labels and weights, which come from elsewhere."""
        arrays = [entries for entries in (self.y, self.weight) if entries is not None]
        return file_fingerprint(self.path) | {"beside": array_fingerprint(*arrays)}

    def files(self):
        """The file, and those of labels and weights; None where these were given as arrays."""
        return self._files

    def layout(self):
        """Bytes of the table; in Fortran order it is stored by columns, one chunk each."""
        layout = {"bytes": self.n_rows * self.n_features * self.stored_dtype.itemsize}
        return layout | ({"chunks": [self.n_rows, 1]} if self.is_fortran else {})

    def label_remedy(self):
        """Where the labels of a file of one array come from."""
        return "Give them as another .npy file with --y (in Python: y=array)."


class NpzSource(LoadedSource):
    """Rows of an array in a `.npz` archive; see LoadedSource for parameters and errors."""

    kind = ".npz"
    suffixes = (".npz",)

    @staticmethod
    def matches(head):
        """Whether the first bytes are a zip archive's that begins with a `.npy` member."""
        return head.startswith(b"PK\x03\x04") and b".npy" in head[:300]

    def _list(self):
        with opening_archive(self.path) as archive:
            members = [name for name in archive.zip.namelist() if name.endswith(".npy")]
            return {name.removesuffix(".npy"): array_header(archive.zip, name) for name in members}

    def _load(self, name):
        with opening_archive(self.path) as archive:
            return archive[name]


def array_header(archive, name):
    """(shape, type) of the array that is the member `name` of an open zip archive."""
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(file)
        return shape, str(dtype)


@contextmanager
def opening(path):
    """Turn what NumPy raises on a damaged or foreign file into one line."""
    try:
        with reading(path):
            yield
    except LinaddError:
        raise
    except NUMPY_ERRORS as error:
        with open(path, "rb") as file:
            is_numpy = file.read(6).startswith((b"\x93NUMPY", b"PK"))
        if is_numpy and "bject" in str(error):
            message = "holds Python objects (dtype object); features and labels must be numbers or text. Store them so."
        elif not is_numpy:
            message = "is named as a NumPy file, but holds none. Name it by its format, or write it again."
        else:
            message = f"is no whole NumPy file ({error}): damaged, cut short or of another format. Write it again."
        raise DataError(message, source=path) from error


def load_npy(path):
    """The array in a `.npy` file."""
    with opening(path), open(path, "rb") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


@contextmanager
def opening_archive(path):
    """The open archive; closed also if NumPy, which then leaves its file open, finds it damaged."""
    with opening(path), open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        if not hasattr(archive, "files"):
            raise ValueError("it is no archive")
        yield archive


def read_into(file, position, target, path):
    """Fill the contiguous array `target` from `position` of an unbuffered file."""
    view = memoryview(target.reshape(-1, order="A").view(np.uint8))
    file.seek(position)
    done = 0
    # One call reads at most 2 GiB, and may read less.
    while done < len(view):
        count = file.readinto(view[done:])
        if not count:
            raise DataError("ends before its last row. It changed while it was read: write it again.", source=path)
        done += count
