"""Zarr stores, versions 2 and 3, in a folder or a zip file: arrays of any name and group, read by whole chunks.

The arrays are opened anew for each read (0.4 ms each against 10 ms for 8 MB): no file stays open, and an array that is
no longer there is missed. Chunks that are not there hold the fill value, as Zarr defines it. The package `zarr` is
imported only when there is a store to read.
"""

import hashlib
import logging
import os
import re
import sys
from contextlib import ExitStack, contextmanager, suppress
from itertools import product

import numpy as np

from linadd.chunks import Chunk
from linadd.errors import ConfigError, DataError, LinaddError
from linadd.sources.arrays import ArraySource
from linadd.sources.base import (
    Source,
    array_fingerprint,
    check_length,
    check_table,
    file_fingerprint,
    plain_labels,
)
from linadd.sources.layout import panels, slow_rows, whole_chunks
from linadd.sources.row_copy import RowCopy

__all__ = ["ZarrArraySource", "ZarrSource"]

logger = logging.getLogger(__name__)

# The files that make a folder a group or an array.
MARKS = ("zarr.json", ".zgroup", ".zarray")
BLOSC_LENGTH = slice(12, 16)  # where the header of a Blosc chunk has the chunk's own length
N_SAMPLES, SAMPLE_BYTES = 16, 4096
REMEDY = "The store is damaged or of a kind unknown to zarr: write it again."


class ZarrSource(Source):
    """Rows of an array of a Zarr store.

    Parameters
    ----------
    path : str
        The folder, or a `.zip` file of it.
    options : ReadOptions
        `group`; names relative to it of features (`x`), labels (`y`; without the default name there are none; None for
        none) and `weights` (by default `weight`, if there is one; False for none). Names of columns and classes are
        the attributes or arrays `feature_names` and `class_names` of group or array. A store, or a group of it, that
        is itself an array has features only.

    Raises
    ------
    DataError
        A store that is damaged or lacks a name (the ones it has are listed), a codec that is not installed, or no
        package `zarr`.

    Warns
    -----
    DataWarning
        Rows are slow to read in the store's layout; gives the `linadd convert` command.
    """

    kind = "Zarr"
    suffixes = (".zarr", ".zip")

    def __init__(self, path, options):
        options.refuse(path, self.kind, "index_base")
        self.path, self.group = path, options.group or ""
        self.origin = path if options.group is None else f"{path}::{options.group}"
        weights = "weight" if options.weights is None else None if options.weights is False else options.weights
        self.names = {"x": options.x, "y": options.y, "weights": weights}
        with self._open() as node:
            found = {name: self._array(node, name) for name in self.names}
            self._describe(node, *found.values())
        self.places = {name: None if array is None else array.path for name, array in found.items()}
        self.zarr_format = found["x"].metadata.zarr_format
        self.has_labels, self.has_weights = found["y"] is not None, found["weights"] is not None
        if self.has_weights and options.weights is None:
            logger.info("%s: array 'weight' holds sample weights; weights=False leaves them out", self.origin)

    @staticmethod
    def matches(head):
        """Whether the first bytes are a zip archive's that begins with a member of a Zarr store."""
        return head.startswith(b"PK\x03\x04") and any(mark.encode() in head[:300] for mark in MARKS)

    @staticmethod
    def is_store(folder):
        """Whether a folder holds a group or an array."""
        return any(os.path.exists(os.path.join(folder, mark)) for mark in MARKS)

    def _describe(self, node, X, y, weight):
        """Take shape, types, names and layout from the open store."""
        x = f"array {self.names['x']!r}"
        self.dtype = check_table(X.shape, X.dtype, self.origin, x)
        (self.n_rows, self.n_features), self.stored_dtype = X.shape, X.dtype
        for array, option in ((y, "y"), (weight, "weights")):
            if array is not None:
                check_length(self.n_rows, array.shape, self.origin, f"array {self.names[option]!r}", x)
        self.feature_names = self._names_of(node, X, "feature_names", self.n_features)
        if y is not None:
            self.class_names = self._names_of(node, y, "class_names")
            plain_labels(self._entries(y, 0, 1), Chunk(None, None, None, 0, self.origin))
        self.chunk_rows = whole_chunks(self.n_features * self.dtype.itemsize, X.chunks[0])
        self.slow_rows = slow_rows(self, self.path, x, self.names, X.chunks, X.chunks[0])

    def _read_many(self, ranges):
        first, last = min(start for start, _ in ranges), max(stop for _, stop in ranges)
        copy, chunks = self.slow_rows and self.slow_rows.copy_for(ranges, self._copied), []
        with self._opened(f"rows {first + 1} to {last}") as (zarr, store):
            X, y, weight = (self._again(zarr, store, option) for option in self.names)
            for start, stop in ranges:
                table = copy.read(start, stop).X if copy else self._values(X, (start, stop), (0, self.n_features))
                entries = (array if array is None else self._entries(array, start, stop) for array in (y, weight))
                chunks.append(Chunk(table, *entries, start, self.origin))
        return chunks

    def _copied(self):
        """All rows in a temporary file, read by panels of whole chunks, each of which is unpacked once."""
        with self._opened("its rows") as (zarr, store):
            X = self._again(zarr, store, "x")
            spans, in_rows = panels(X.shape, X.chunks, self.dtype.itemsize)
            blocks = ((rows[0], columns[0], self._values(X, rows, columns)) for rows, columns in spans)
            return RowCopy(blocks, X.shape, self.stored_dtype.newbyteorder("="), in_rows, self.origin)

    def _values(self, array, *spans):
        """Values of an array in (start, stop) of each axis."""
        if array.shards is None and any("blosc" in type(codec).__name__.lower() for codec in array.compressors):
            self._check_lengths(array, spans)
        return array[tuple(slice(*span) for span in spans)]

    def _check_lengths(self, array, spans):
        """Refuse a chunk of a folder that is shorter than its header says, as Blosc would read on beyond its end."""
        if os.path.isfile(self.path):  # zip archives have checksums
            return
        chunks = (range(start // n, -(-stop // n)) for (start, stop), n in zip(spans, array.chunks, strict=True))
        for place in product(*chunks):
            path = os.path.join(self.path, array.path, array.metadata.encode_chunk_key(place))
            if os.path.exists(path):
                with open(path, "rb") as file:
                    length = int.from_bytes(file.read(BLOSC_LENGTH.stop)[BLOSC_LENGTH], "little")
                if length != os.path.getsize(path):
                    raise DataError(f"the chunk {path!r} is cut short or damaged. {REMEDY}", source=self.origin)

    def _entries(self, array, start, stop):
        """Entries start..stop-1 of an array that has one a row: (n,), (n, 1) or (1, n)."""
        spans = [(0, 1)] * array.ndim
        spans[array.ndim == 2 and array.shape[1] != 1] = start, stop
        return self._values(array, *spans).reshape(-1)

    def close(self):
        """Remove the copy of the rows, if one was made."""
        if self.slow_rows:
            self.slow_rows.close()

    def fingerprint(self):
        """Of the file or folder, with the names of what is read from it."""
        of_store = file_fingerprint if os.path.isfile(self.path) else folder_fingerprint
        return of_store(self.path) | {"group": self.group} | self.names

    def files(self):
        """All files of the store."""
        return [self.path] if os.path.isfile(self.path) else files_below(self.path)

    def layout(self):
        """Bytes, chunks and codec of the features."""
        with self._open() as node:
            X = self._array(node, "x")
            codecs = [type(codec).__name__.removesuffix("Codec").lower() for codec in X.compressors]
            layout = {"bytes": X.nbytes_stored(), "chunks": list(X.chunks)}
            return layout | ({"codec": codecs[0]} if codecs else {})

    def label_remedy(self):
        """The arrays that the labels could be in."""
        there = ", ".join(map(repr, self.selectors())) or "none for it"
        return f"Name their array with --y (y_name=): the store has {there}."

    def selectors(self):
        """Arrays beside X with one entry a row."""
        with self._open() as node:
            beside = dict(node.arrays()) if hasattr(node, "arrays") else {}
            return sorted(name for name, array in beside.items() if name != self.names["x"] and self._is_entries(array))

    def _is_entries(self, array):
        return array.size == self.n_rows and (array.ndim == 1 or (array.ndim == 2 and 1 in array.shape))

    def read_selector(self, name, start, stop):
        """Entries of the array `name`."""
        with self._open(f"rows {start + 1} to {stop}") as node:
            return self._entries(node[name], start, stop)

    def _again(self, zarr, store, option):
        """The array of an option, by the place where it was at first; None for none."""
        place = self.places[option]
        if place is None:
            return None
        return zarr.open_array(store, path=place, mode="r", zarr_format=self.zarr_format)

    @contextmanager
    def _open(self, what="its metadata"):
        """The group, or the array in its place, open for reading."""
        with self._opened(what) as (zarr, store):
            node = zarr.open(store, mode="r")
            group = node if not self.group else node.get(self.group) if hasattr(node, "get") else None
            if group is None:
                message = f"group {self.group!r} does not exist. There are {listing(node)}."
                raise DataError(message, source=self.path)
            yield group

    @contextmanager
    def _opened(self, what):
        """The package and the store; what zarr and its codecs say of a damaged one becomes one line."""
        zarr = import_zarr(self.path)
        try:
            is_file = os.path.isfile(self.path)
            storage = zarr.storage
            store = storage.ZipStore(self.path, mode="r") if is_file else storage.LocalStore(self.path, read_only=True)
            with ExitStack() as stack:
                stack.callback(close_store, store)
                yield zarr, store
        except LinaddError:
            raise
        except Exception as error:  # stores and codecs raise what they like
            raise DataError(f"{what} cannot be read ({reason(error)}). {REMEDY}", source=self.origin) from error

    def _array(self, node, option):
        """The array that an option names in the open group; None if it names none, or only by default."""
        name = self.names[option]
        if name is None:
            return None
        if not isinstance(name, str):
            raise ConfigError(f"{self.origin}: {option} is an array; for Zarr it must be the name of one in the store.")
        if not hasattr(node, "get"):  # an array by itself
            found = node if option == "x" and name == "X" else None
        else:
            try:
                found = node.get(name)
            except Exception as error:
                codec = re.search(r"'+([^']+)'+", str(error)) if type(error).__name__ == "UnknownCodecError" else None
                if codec is None:
                    raise
                message = f"array {name!r} is packed with the codec {codec[1]!r}, which is not installed."
                remedy = "Install the package that has it, or write the store with another."
                raise DataError(f"{message} {remedy}", source=self.origin) from error
        if hasattr(found, "chunks"):
            return found
        if found is None and (option, name) in (("y", "y"), ("weights", "weight")):
            return None
        state = "does not exist" if found is None else "is a group"
        message = f"array {name!r} {state}. There are {listing(node)}. Name one with --{option} or as FILE::group."
        raise DataError(message, source=self.origin)

    def _names_of(self, node, array, key, length=None):
        """The list of names `key`: an attribute of the array or of the group, or an array of the group; or None."""
        holders = [each for each in (array, node) if key in each.attrs]
        if holders:
            names = holders[0].attrs[key]
        elif hasattr(node, "get") and hasattr(node.get(key), "chunks"):
            names = self._entries(node[key], 0, node[key].size)
        else:
            return None
        names = [name.decode() if isinstance(name, bytes) else str(name) for name in np.atleast_1d(names)]
        if length is not None and len(names) != length:
            message = f"{key} has {len(names)} names for {length} columns. Correct or delete it."
            raise DataError(message, source=self.origin)
        return names


class ZarrArraySource(ArraySource):
    """Rows of a `zarr.Array` that the caller has opened.

    Parameters
    ----------
    X : zarr.Array, shape (n_rows, n_features)
        Of any store; read by whole chunks.
    y, weights
        As for `ArraySource`.
    """

    kind = "a zarr array"

    @staticmethod
    def accepts(data):
        """Whether `data` is a zarr array; does not import zarr, without which there is none."""
        return "zarr" in sys.modules and isinstance(data, sys.modules["zarr"].Array)

    def __init__(self, X, y=None, weights=None):
        self.origin, self.names = "zarr array", ("X", "y", "weights")
        self.dtype = check_table(X.shape, X.dtype, self.origin)
        self.X, (self.n_rows, self.n_features) = X, X.shape
        self.chunk_rows = whole_chunks(self.n_features * self.dtype.itemsize, X.chunks[0])
        self._attach(y, weights)

    def fingerprint(self):
        """Shape, dtype and a digest of sampled rows, which takes as many chunks."""
        rows = np.linspace(0, self.n_rows - 1, min(N_SAMPLES, self.n_rows)).astype(np.int64)
        sampled = np.concatenate([self.X[row : row + 1] for row in rows.tolist()])
        entries = [array for array in (self.y, self.weight) if array is not None]
        return {"shape": [self.n_rows, self.n_features]} | array_fingerprint(sampled, *entries)


def import_zarr(path):
    """The package zarr, or DataError that says how to install it."""
    try:
        import zarr
        import zarr.storage
    except ImportError as error:
        message = "reading Zarr takes the package zarr, version 3. Install it: pip install 'linadd[zarr]'"
        raise DataError(message, source=path) from error
    return zarr


def close_store(store):
    """Close a store; zarr's of a zip file that could not be opened lacks what it would close."""
    with suppress(AttributeError):
        store.close()


def files_below(path):
    """All files in a folder and those below it, in the order of their names."""
    return sorted(os.path.join(folder, name) for folder, _, files in os.walk(path) for name in files)


def folder_fingerprint(path):
    """Path of a folder, size of its files, latest change, and a digest of their names, sizes and sampled contents."""
    names = files_below(path)
    status = [os.stat(name) for name in names]
    digest = hashlib.blake2b(digest_size=16)
    for name, each in zip(names, status, strict=True):
        digest.update(f"{os.path.relpath(name, path)}\0{each.st_size}\0".encode())
    described = [name for name in names if os.path.basename(name).startswith((".z", "zarr."))]
    for name in described[:N_SAMPLES] + names[:: max(1, len(names) // N_SAMPLES)]:
        with open(name, "rb") as file:
            digest.update(file.read(SAMPLE_BYTES))
    return {
        "path": os.path.abspath(path),
        "size": sum(each.st_size for each in status),
        "mtime_ns": max(each.st_mtime_ns for each in status),
        "digest": digest.hexdigest(),
    }


def listing(node, limit=10):
    """Names, shapes and types of the arrays below a group, for a message."""
    found = []
    for name, member in node.members(max_depth=None) if hasattr(node, "members") else ():
        if hasattr(member, "chunks"):
            found.append(f"{name!r} {member.shape} {member.dtype}")
    found.sort()
    return (", ".join(found[:limit]) + (" and more" if len(found) > limit else "")) or "no arrays"


def reason(error):
    """What an exception says, in one line."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__
