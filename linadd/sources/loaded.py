"""Files of named arrays that are loaded whole, for formats that cannot be read by rows."""

import os
import threading
from abc import abstractmethod

import scipy.sparse

from linadd.errors import ConfigError, DataError
from linadd.sources.arrays import ArraySource, SparseSource
from linadd.sources.base import Source, file_fingerprint, n_entries

__all__ = ["LoadedSource"]


class LoadedSource(Source):
    """Rows of an array in a file; the arrays asked for are loaded whole, once in a process.

    A subclass writes `_list`, `_load` and `matches`, and sets `item`, what its messages call an array.

    Parameters
    ----------
    path : str
        The file.
    options : ReadOptions
        Names of the arrays of features (`x`), labels (`y`; without the default name there are none) and `weights`.
        Names of columns and classes are the arrays `feature_names` and `class_names`.

    Raises
    ------
    DataError
        A file that is damaged or lacks a name (the ones it has are listed).
    """

    item = "array"

    def __init__(self, path, options):
        options.refuse(path, self.kind, "group", "index_base")
        self.path = self.origin = path
        self.there = self._list()
        self.names = {"x": options.x, "y": options.y, "weights": None if options.weights is False else options.weights}
        self._lock = threading.Lock()
        self._loaded = None
        table = self._table()
        for name in ("n_rows", "n_features", "dtype", "chunk_rows", "has_labels", "has_weights", "is_sparse"):
            setattr(self, name, getattr(table, name))
        self.feature_names, self.class_names = self._names("feature_names"), self._names("class_names")
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            message = f"feature_names has {len(self.feature_names)} names for {self.n_features} columns. Correct it."
            raise DataError(message, source=path)

    @abstractmethod
    def _list(self):
        """Dict of the file's arrays, none of them loaded: name -> (shape, type as messages call it)."""

    @abstractmethod
    def _load(self, name):
        """The array `name`, dense or sparse."""

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "_loaded")}

    def __setstate__(self, state):
        self.__dict__ |= state | {"_lock": threading.Lock(), "_loaded": None}

    def _table(self):
        """The arrays asked for, as a source in memory; loaded at the first call in a process."""
        with self._lock:
            if self._loaded is None:
                arrays = [self._member(name, option) for option, name in self.names.items()]
                names = [f"{self.item} {name!r}" for name in self.names.values()]
                in_memory = SparseSource if scipy.sparse.issparse(arrays[0]) else ArraySource
                self._loaded = in_memory(*arrays, self.path, names)
            return self._loaded

    def _member(self, name, option):
        """The array `name`; None if it is None or the absent default y."""
        if name is None:
            return None
        if not isinstance(name, str):
            message = f"{self.path}: {option} is an array; for {self.kind} it must be the name of one in the file."
            raise ConfigError(message)
        if name in self.there:
            return self._load(name)
        if option == "y" and name == "y":
            return None
        message = f"{self.item} {name!r} does not exist. There are {self._listing()}. Name one with --{option}."
        raise DataError(message, source=self.path)

    def _listing(self, limit=10):
        """The file's arrays, for a message."""
        shown = [f"{name!r} {shape} {kind}" for name, (shape, kind) in self.there.items()]
        return (", ".join(shown[:limit]) or "none") + (" and more" if len(shown) > limit else "")

    def _names(self, key):
        """The array `key` of names as a list of str; None if there is none."""
        return [str(name) for name in self._load(key).reshape(-1)] if key in self.there else None

    def _read(self, start, stop):
        return self._table()._read(start, stop)

    def fingerprint(self):
        """Of the file, with the names of what is read from it."""
        return file_fingerprint(self.path) | self.names

    def files(self):
        """The file."""
        return [self.path]

    def layout(self):
        """Bytes of the file."""
        return {"bytes": os.path.getsize(self.path)}

    def label_remedy(self):
        """The arrays that the labels could be in."""
        there = ", ".join(map(repr, self.selectors())) or "none for it"
        return f"Name their {self.item} with --y (y_name=): the file has {there}."

    def selectors(self):
        """Arrays beside X with one entry a row."""
        lengths = {name: n_entries(shape) for name, (shape, _) in self.there.items() if name != self.names["x"]}
        return [name for name, length in lengths.items() if length == self.n_rows]

    def read_selector(self, name, start, stop):
        """Entries of the array `name`."""
        return self._load(name).reshape(-1)[start:stop]
