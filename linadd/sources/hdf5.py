"""HDF5 files: datasets of any name and group, read by path and slice.

The file is opened anew for each read (0.3 ms against 4 ms for 8 MB): h5py handles can neither be pickled nor shared
between threads, and one that stays open locks the file for its writer. MATLAB's v7.3 files, which hold features x rows,
are read in place.
"""

import errno
import logging
import os
import re
from contextlib import contextmanager

import h5py
import numpy as np

from linadd.chunks import Chunk
from linadd.errors import ConfigError, DataError, LinaddError
from linadd.sources.base import (
    Source,
    check_length,
    check_table,
    file_fingerprint,
    n_entries,
    plain_labels,
)
from linadd.sources.hdf5_chunks import ChunkCheck
from linadd.sources.hdf5_matlab import check_matlab, matlab_class, read_cells, read_characters
from linadd.sources.hdf5_text import read_attribute, read_dataset
from linadd.sources.layout import PANEL_BYTES, panels, slow_rows, whole_chunks
from linadd.sources.row_copy import RowCopy

__all__ = ["HDF5Source"]

logger = logging.getLogger(__name__)

SIGNATURE = b"\x89HDF\r\n\x1a\n"
# The shortest piece of a column that is read about as fast as the whole column.
RUN_BYTES = 64 << 10
# Filters that unpack, by their registered numbers; what stands before or after them only shuffles or checks.
CODECS = {
    1: "gzip", 4: "szip", 307: "bzip2", 32000: "lzf", 32001: "blosc", 32004: "lz4", 32008: "bitshuffle", 32013: "zfp",
    32015: "zstd", 32026: "blosc2",
}  # fmt: skip
# What h5py raises on a file that is damaged, or changes while it is read.
H5PY_ERRORS = (OSError, RuntimeError, KeyError, ValueError, TypeError, UnicodeDecodeError, MemoryError)


class HDF5Source(Source):
    """Rows of a dataset of an HDF5 file.

    Parameters
    ----------
    path : str
        The file; opened read-only, with locking where the file system has it.
    options : ReadOptions
        `group`; names relative to it of features (`x`), labels (`y`; without the default name there are none; None for
        none) and `weights` (by default `weight`, if there is one; False for none). Names of columns and classes are
        the attributes or datasets `feature_names` and `class_names` of group or dataset.

    Raises
    ------
    DataError
        A file that is locked, damaged or lacks a name (the ones it has are listed), or a compression filter that is
        not installed.

    Warns
    -----
    DataWarning
        Rows are slow to read in the file's layout; gives the `linadd convert` command.
    """

    kind = "HDF5"
    suffixes = (".h5", ".hdf5", ".hdf", ".he5")

    def __init__(self, path, options):
        options.refuse(path, self.kind, "index_base")
        self.path, self.group = path, options.group or "/"
        self.origin = path if options.group is None else f"{path}::{options.group}"
        weights = "weight" if options.weights is None else None if options.weights is False else options.weights
        with self._open() as group:
            self.x = self._name(group, options.x, "x")
            self.y = self._name(group, options.y, "y", optional="y")
            self.weight = self._name(group, weights, "weights", optional="weight")
            self._describe(group, group[self.x])
        self.has_labels, self.has_weights = self.y is not None, self.weight is not None
        if self.has_weights and options.weights is None:
            logger.info("%s: dataset 'weight' holds sample weights; weights=False leaves them out", self.origin)

    @staticmethod
    def matches(head):
        """Whether the first bytes are HDF5's, at the start or behind MATLAB's 512 bytes of text."""
        return head.startswith(SIGNATURE) or head[512:].startswith(SIGNATURE)

    def _describe(self, group, X):
        """Take shape, types, names and layout from the open file."""
        self.is_transposed, self._cells = matlab_class(X) is not None, {}
        shape = (X.shape or ())[:: -1 if self.is_transposed else 1]
        self.dtype = check_table(shape, X.dtype, self.origin, f"dataset {self.x!r}")
        self.n_rows, self.n_features = shape
        for name in (self.y, self.weight):
            if name is not None:
                self._check_entries(group, name)
        self.feature_names = read_names(group, X, "feature_names", self.origin, self.n_features)
        if self.y is not None:
            self.class_names = read_names(group, group[self.y], "class_names", self.origin)
            plain_labels(self._entries(group, self.y, 0, 1), Chunk(None, None, None, 0, self.origin))
        self._check_chunks = ChunkCheck(X) if X.chunks else None
        chunk = X.chunks and X.chunks[:: -1 if self.is_transposed else 1]
        self.chunk_rows = whole_chunks(self.n_features * self.dtype.itemsize, chunk[0] if chunk else 1)
        names, what = {"x": self.x, "y": self.y, "weights": self.weight}, f"dataset {self.x!r}"
        self.slow_rows = slow_rows(self, self.path, what, names, X.chunks, self._rows_together(X, chunk))

    def _rows_together(self, X, chunk):
        """Rows that cost as much as one of them: those of a packed or narrow chunk (rows, columns), or of a run."""
        if chunk is None:
            row_bytes = self.n_features * self.dtype.itemsize
            return min(RUN_BYTES // X.dtype.itemsize, PANEL_BYTES // row_bytes) if self.is_transposed else 1
        is_packed = X.id.get_create_plist().get_nfilters() > 0
        return chunk[0] if is_packed or chunk[1] < self.n_features else 1

    def _read_many(self, ranges):
        first, last = min(start for start, _ in ranges), max(stop for _, stop in ranges)
        copy = self.slow_rows and self.slow_rows.copy_for(ranges, self._copied)
        with self._open(f"rows {first + 1} to {last}") as group:
            chunks = []
            for start, stop in ranges:
                X = copy.read(start, stop).X if copy else self._block(group[self.x], (start, stop))
                y, weight = (name and self._entries(group, name, start, stop) for name in (self.y, self.weight))
                chunks.append(Chunk(X, y, weight, start, self.origin))
            return chunks

    def _block(self, X, rows, columns=None):
        """Values of the open dataset in (start, stop) rows and columns, by default all, in an array of their own."""
        rows, columns = slice(*rows), slice(*columns or (0, self.n_features))
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        block = np.empty(shape[::-1] if self.is_transposed else shape, native(X.dtype))
        selection = (columns, rows) if self.is_transposed else (rows, columns)
        if self._check_chunks:
            self._check_chunks(X, selection)
        X.read_direct(block, selection)
        return block.T if self.is_transposed else block

    def _entries(self, group, name, start, stop):
        """Entries start..stop-1 of a dataset that has one a row; those of a cell array, slow to come, are read once."""
        if matlab_class(group[name]) != "cell":
            return read_entries(group[name], start, stop)
        if name not in self._cells:
            self._cells[name] = read_cells(group[name])
        return self._cells[name][start:stop]

    def _copied(self):
        """All rows in a temporary file, read by panels of whole chunks, each of which is unpacked once."""
        with self._open("its rows") as group:
            X = group[self.x]
            shape, chunk = (self.n_rows, self.n_features), (X.chunks or (1, 1))[:: -1 if self.is_transposed else 1]
            spans, in_rows = panels(shape, chunk, self.dtype.itemsize)
            blocks = ((rows[0], columns[0], self._block(X, rows, columns)) for rows, columns in spans)
            return RowCopy(blocks, shape, native(X.dtype), in_rows, self.origin)

    def close(self):
        """Remove the copy of the rows, if one was made."""
        if self.slow_rows:
            self.slow_rows.close()

    def fingerprint(self):
        """Of the file, with the names of what is read from it."""
        names = {"group": self.group, "x": self.x, "y": self.y, "weights": self.weight}
        return file_fingerprint(self.path) | names

    def files(self):
        """The file; None where datasets are links to others, or made of parts of others."""
        with self._open() as group:
            for dataset in (group[name] for name in (self.x, self.y, self.weight) if name is not None):
                if dataset.is_virtual or dataset.external or dataset.file.id != group.file.id:
                    return None
        return [self.path]

    def layout(self):
        """Bytes, chunks and codec of the features; no chunks where they are contiguous."""
        with self._open() as group:
            X = group[self.x]
            properties, layout = X.id.get_create_plist(), {"bytes": X.id.get_storage_size()}
            codes = [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]
            if X.chunks:
                layout["chunks"] = list(X.chunks[:: -1 if self.is_transposed else 1])
            if codec := next((CODECS[code] for code in codes if code in CODECS), None):
                layout["codec"] = codec
            return layout

    def label_remedy(self):
        """The datasets that the labels could be in."""
        there = ", ".join(map(repr, self.selectors())) or "none for it"
        return f"Name their dataset with --y (y_name=): the file has {there}."

    def selectors(self):
        """Datasets beside X with one entry a row."""
        with self._open() as group:
            beside = {name: group.get(name) for name in group if name != self.x}
            shapes = {name: entry_shape(each) for name, each in beside.items() if isinstance(each, h5py.Dataset)}
            return [name for name, shape in shapes.items() if n_entries(shape) == self.n_rows]

    def read_selector(self, name, start, stop):
        """Entries of the dataset `name`."""
        with self._open(f"rows {start + 1} to {stop}") as group:
            return self._entries(group, name, start, stop)

    @contextmanager
    def _open(self, what="its header"):
        """The group, open for reading; what h5py says of a locked or damaged file becomes one line."""
        try:
            file = h5py.File(self.path, "r", locking="best-effort")
        except OSError as error:
            raise DataError(opening_failed(error), source=self.path) from error
        with file:
            try:
                group = file.get(self.group)
                if not isinstance(group, h5py.Group):
                    state = "does not exist" if group is None else "is a dataset; name that with --x"
                    raise DataError(f"group {self.group!r} {state}. There are {listing(file)}.", source=self.path)
                yield group
            except LinaddError:
                raise
            except H5PY_ERRORS as error:
                message = f"{what} cannot be read ({reason(error)}). The file is damaged or of a kind unknown to h5py."
                raise DataError(message, source=self.origin) from error

    def _name(self, group, name, option, optional=None):
        """Check that the dataset `name` exists and can be unpacked; None if it is None or the absent optional one."""
        if name is None:
            return None
        if not isinstance(name, str):
            raise ConfigError(f"{self.origin}: {option} is an array; for HDF5 it must be the name of a dataset.")
        link = group.get(name, getlink=True) if name in group else None
        try:
            dataset = None if link is None else group[name]  # get() would take one that is damaged for none
        except (KeyError, OSError):
            if not isinstance(link, (h5py.ExternalLink, h5py.SoftLink)):
                raise
            target = link.filename if isinstance(link, h5py.ExternalLink) else link.path
            message = f"dataset {name!r} is a link to {target!r}, which cannot be opened. Put it there."
            raise DataError(message, source=self.origin) from None
        if dataset is not None:
            check_matlab(dataset, name, self.origin, option == "x")
        if isinstance(dataset, h5py.Dataset):
            self._check_filters(dataset, name)
            return name
        if name == optional:
            return None
        state = "is a group" if isinstance(dataset, h5py.Group) else "does not exist"
        message = f"dataset {name!r} {state}. There are {listing(group)}. Name one with --{option} or as FILE::group."
        raise DataError(message, source=self.origin)

    def _check_filters(self, dataset, name):
        """Load the plugins of a dataset's compression, or name the missing one; name missing parts of a virtual one."""
        properties = dataset.id.get_create_plist()
        filters = [properties.get_filter(i) for i in range(properties.get_nfilters())]
        if not all(h5py.h5z.filter_avail(entry[0]) for entry in filters):
            import hdf5plugin  # noqa: F401 - registers its filters; 0.2 s that plain files need not wait for
        for code, _, _, label in filters:
            if not h5py.h5z.filter_avail(code):
                codec = f"filter {code} ({label.decode(errors='replace')})"
                remedy = "Put its plugin on HDF5_PLUGIN_PATH, or unpack elsewhere: h5repack -f NONE SRC DST"
                message = f"dataset {name!r} is packed with {codec}, which is not installed. {remedy}"
                raise DataError(message, source=self.origin)
        folder = os.path.dirname(self.path)
        for part in dataset.virtual_sources() if dataset.is_virtual else ():
            if part.file_name != "." and not os.path.exists(os.path.join(folder, part.file_name)):
                message = f"dataset {name!r} is virtual and needs {part.file_name!r}, which does not exist beside it."
                raise DataError(message, source=self.origin)

    def _check_entries(self, group, name):
        """Check that a dataset of labels or weights has one entry a row."""
        shape = entry_shape(group[name])
        check_length(self.n_rows, shape, self.origin, f"dataset {name!r}", f"dataset {self.x!r}")


def native(dtype):
    """The dtype in native byte order, without HDF5's annotations."""
    return np.dtype(dtype.str).newbyteorder("=")


def entry_shape(dataset):
    """Shape of a dataset of one entry a row, where a row of MATLAB's characters is one."""
    shape = dataset.shape or ()
    return shape[1:] if matlab_class(dataset) == "char" else shape


def read_entries(dataset, start, stop):
    """Entries start..stop-1 of a dataset that has one a row."""
    if matlab_class(dataset) == "char":
        return read_characters(dataset, start, stop)
    rows = slice(start, stop)
    if len(dataset.shape) == 1:
        return read_dataset(dataset, rows)
    return read_dataset(dataset, (rows, 0) if dataset.shape[1] == 1 else (0, rows))


def read_names(group, dataset, key, origin, length=None):
    """The list of names `key`: an attribute of the dataset or of the group, or a dataset of the group; None without."""
    holders = [holder for holder in (dataset, group) if key in holder.attrs]
    if holders:
        names = read_attribute(holders[0], key)
    elif key in group and isinstance(group[key], h5py.Dataset):
        is_cell = matlab_class(group[key]) == "cell"
        names = read_cells(group[key]) if is_cell else read_dataset(group[key], ())
    else:
        return None
    names = [name.decode() if isinstance(name, bytes) else str(name) for name in np.atleast_1d(names)]
    if length is not None and len(names) != length:
        message = f"{key} has {len(names)} names for {length} columns. Correct or delete it."
        raise DataError(message, source=origin)
    return names


def listing(group, limit=10):
    """Names, shapes and types of the datasets below a group, for a message."""
    found = []

    def visit(name, entry):
        if isinstance(entry, h5py.Dataset):
            found.append(f"{name!r} {entry.shape} {entry.dtype}")
        return True if len(found) > limit else None

    group.visititems(visit)
    if not found:
        return "no datasets"
    return ", ".join(found[:limit]) + (" and more" if len(found) > limit else "")


def reason(error):
    """The part of an h5py message that says what happened: what stands in brackets at its end."""
    text = str(error)
    inner = re.search(r"\((.*)\)'?$", text)
    return inner.group(1) if inner else text


def opening_failed(error):
    """What to say of a file that does not open as HDF5."""
    if error.errno == errno.EAGAIN or "unable to lock" in str(error) or "already open" in str(error):
        return "is open for writing in another program, which has locked it. Close it there first."
    if error.errno is not None:
        return f"cannot be read ({os.strerror(error.errno)})."
    return f"is no whole HDF5 file ({reason(error)}): damaged, cut short or not closed by its writer. Write it again."
