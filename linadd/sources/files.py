"""Several files as one data set: their rows one after the other, with the same columns, labels and weights.

Everything that depends on the number of a row counts over all files, so that a file cut into pieces gives the census,
the plan and the model of the whole; only messages name the file, and the row in it.
"""

import hashlib
import json
from dataclasses import replace

import numpy as np
import scipy.sparse

from linadd.chunks import join_chunks
from linadd.errors import DataError
from linadd.sources.arrays import ArraySource
from linadd.sources.base import array_fingerprint
from linadd.sources.columns import match_columns

__all__ = ["FilesSource"]


class FilesSource(ArraySource):
    """The rows of several files in their order.

    Columns are matched by name where both of two files have names, else they count by position. Features have the
    least type that holds those of every file.

    Parameters
    ----------
    parts : list of Source
        The files, opened.
    origin : str
        What messages call all of them.
    y, weights : array_like, shape (n_rows,), or None
        Labels and sample weights of all rows, in the place of those in the files.

    Raises
    ------
    DataError
        A file with other columns or other names of classes, or without labels or weights where the first one has some,
        or the other way round; names it.
    """

    kind = "several files"

    def __init__(self, parts, origin, y=None, weights=None):
        self.origin, self.names = origin, ("X", "y", "weights")
        first = next((part for part in parts if part.feature_names is not None), parts[0])
        self.can_pad = all(part.can_pad for part in parts)
        self.parts = [with_columns_of(first, part) for part in parts]
        self.feature_names, self.n_features = first.feature_names, first.n_features
        self.class_names = common_class_names(parts)
        self.dtype = np.result_type(*(part.dtype for part in parts))
        self.is_sparse = all(part.is_sparse for part in parts)
        self.chunk_rows = max(part.chunk_rows for part in parts)
        self.bounds = np.concatenate([[0], np.cumsum([part.n_rows for part in parts], dtype=np.int64)])
        self.n_rows = int(self.bounds[-1])
        self._attach(y, weights)
        self.has_labels |= all_or_none(parts, "has_labels", "labels")
        self.has_weights |= all_or_none(parts, "has_weights", "sample weights")

    def _read_many(self, ranges):
        wanted = {}  # part -> what is read of it at once: number of the range, first and last row
        for i, (start, stop) in enumerate(ranges):
            first, last = np.searchsorted(self.bounds, [start + 1, stop]) - 1
            for k in range(first, last + 1):
                low, high = self.bounds[k : k + 2].tolist()
                wanted.setdefault(k, []).append((i, (max(start, low) - low, min(stop, high) - low)))
        pieces = [[] for _ in ranges]
        for k in sorted(wanted):
            chunks = self.parts[k].read_many([span for _, span in wanted[k]])
            for (i, _), chunk in zip(wanted[k], chunks, strict=True):
                pieces[i].append(replace(chunk, X=self._alike(chunk.X)))
        return [self._joined(own, *span) for own, span in zip(pieces, ranges, strict=True)]

    def _alike(self, X):
        """Rows of one file in the form of all."""
        X = X.toarray() if scipy.sparse.issparse(X) and not self.is_sparse else X
        return X.astype(self.dtype, copy=False)

    def _joined(self, pieces, start, stop):
        """The chunk of rows start..stop-1, with the labels and weights that were given for all."""
        chunk, given = join_chunks(pieces, start, self.origin), self._entries_of(start, stop)
        y, weight = (there if own is None else own for own, there in ((given.y, chunk.y), (given.weight, chunk.weight)))
        return replace(chunk, y=y, weight=weight)

    def pad(self, n_features):
        """Widen the rows of every file."""
        for part in self.parts:
            part.pad(n_features)
        self.n_features = n_features

    def fingerprint(self):
        """Of all files: names, total size, latest change, a digest of the content, and what else they agree on."""
        prints = [part.fingerprint() for part in self.parts]
        own = [{key: each[key] for key in each.keys() - {"path", "mtime_ns"}} for each in prints]
        digest = hashlib.blake2b(json.dumps(own, sort_keys=True).encode(), digest_size=16)
        shared = {key: value for key, value in own[0].items() if all(each.get(key) == value for each in own)}
        given = [entries for entries in (self.y, self.weight) if entries is not None]
        return shared | {
            "beside": array_fingerprint(*given),
            "path": self.origin,
            "files": [each["path"] for each in prints],
            "size": sum(each["size"] for each in prints),
            "mtime_ns": max(each["mtime_ns"] for each in prints),
            "digest": digest.hexdigest(),
        }

    def layout(self):
        """What all files agree on, and the bytes of them all."""
        layouts = [part.layout() for part in self.parts]
        shared = {key: value for key, value in layouts[0].items() if all(each.get(key) == value for each in layouts)}
        return shared | {"bytes": sum(each.get("bytes", 0) for each in layouts)}

    def files(self):
        """Of all files; None where labels or weights were given beside them, or one of them does not know its own."""
        own = [part.files() for part in self.parts]
        if self.y is not None or self.weight is not None or None in own:
            return None
        return [path for paths in own for path in paths]

    def label_remedy(self):
        """As the first file says."""
        return self.parts[0].label_remedy()

    def selectors(self):
        """Arrays that can select rows in every file."""
        there = [part.selectors() for part in self.parts]
        return [name for name in there[0] if all(name in names for names in there)]

    def read_selector(self, name, start, stop):
        """Entries of the array `name`, of one file after the other."""
        first, last = np.searchsorted(self.bounds, [start + 1, stop]) - 1
        entries = []
        for k in range(first, last + 1):
            low, high = self.bounds[k : k + 2].tolist()
            entries.append(self.parts[k].read_selector(name, max(start, low) - low, min(stop, high) - low))
        return np.concatenate(entries)

    def close(self):
        """Close every file."""
        for part in self.parts:
            part.close()


def with_columns_of(first, part):
    """A file with the columns of the first one, in its order; DataError where it has others."""
    names, there = set(first.feature_names or ()), set(part.feature_names or ())
    what = None
    if names and names - there and there:
        what = f"has no column {min(names - there)!r}, which {first.origin} has"
    elif names and there - names:
        what = f"has a column {min(there - names)!r}, which {first.origin} lacks"
    elif part.n_features != first.n_features:
        what = f"has {part.n_features} columns, {first.origin} has {first.n_features}"
    if what is not None:
        raise DataError(f"{what}. Give files of the same columns.", source=part.origin)
    return match_columns(part, first.feature_names)


def common_class_names(parts):
    """The class names of the files that hold some; DataError for a file that holds others."""
    named = [part for part in parts if part.class_names is not None]
    for part in named:
        if list(part.class_names) != list(named[0].class_names):
            message = f"has other class_names than {named[0].origin}. Give files whose labels mean the same."
            raise DataError(message, source=part.origin)
    return named[0].class_names if named else None


def all_or_none(parts, attribute, what):
    """Whether all files have labels, or weights; DataError for the first file that is unlike the first of all."""
    for part in parts:
        if getattr(part, attribute) != getattr(parts[0], attribute):
            has, other = ("has", "none") if getattr(part, attribute) else ("has no", "some")
            message = f"{has} {what}, {parts[0].origin} has {other}. Give files that all have them, or none."
            raise DataError(message, source=part.origin)
    return getattr(parts[0], attribute)
