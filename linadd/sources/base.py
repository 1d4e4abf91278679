"""The protocol of a source of rows, and the checks that every source shares, each written once.

A source knows a file format and nothing of learning: shape, dtype, names, and rows by position. Values are delivered as
stored; whether they are finite is for the census to say.
"""

import hashlib
import math
import os
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse

from linadd.chunks import prefetch
from linadd.errors import ConfigError, DataError

__all__ = ["ReadOptions", "Source", "WrappedSource"]

# A reader chunk of about this size keeps the call overhead below a percent and three of them in the nearer caches.
CHUNK_BYTES = 8 << 20


@dataclass(frozen=True)
class ReadOptions:
    """What `open_source` was asked for beside the data; see there for the meaning of each."""

    group: str | None = None
    x: str = "X"
    y: object = "y"
    weights: object = None
    index_base: int | str = "auto"
    n_features: int | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] | None = None
    match: tuple[str, ...] | None = None
    like: dict | None = None
    where: tuple[str, ...] = ()

    def refuse(self, origin, kind, *names):
        """Raise ConfigError for the first of the options that was given though a kind of data has no use for it.

        Parameters
        ----------
        origin, kind : str
            The source, and what it is, for the message.
        *names : str
            Names of the options.
        """
        for name in names:
            given, default = getattr(self, name), getattr(ReadOptions, name)
            if type(given) is not type(default) or given != default:
                shown = repr(given) if isinstance(given, (str, int)) else "an array"
                raise ConfigError(f"{origin}: {name}={shown} has no meaning for {kind}. Leave it out.")


class Source(ABC):
    """Rows of features, by position, in bounded memory.

    Attributes
    ----------
    origin : str
        Path (with `::group`) or "array", for messages.
    n_rows, n_features : int
        Shape of the table.
    dtype : numpy.dtype
        Type of the X that chunks carry: the stored one in native byte order; bool becomes uint8, float16 float32.
    feature_names, class_names : list of str, or None
        Names of columns and of classes, where the format holds them.
    has_labels, has_weights : bool
        Whether chunks carry `y` and `weight`.
    is_sparse : bool
        Whether chunks carry a `scipy.sparse.csr_array`.
    can_pad : bool
        Whether `pad` can add features: in libsvm text the last of them need not occur in every file.
    chunk_rows : int
        Rows of a reader chunk.
    opened_ns : int, or None
        When its files were opened, in nanoseconds since 1970; None if nothing is to be kept of it for the next run
        (`census_cache.py`). Set by `open_source`.
    selects_columns : bool
        Class attribute: whether the constructor takes a ReadOptions and delivers the columns that `choose_columns` of
        `sources/columns.py` finds by it. Other sources deliver all their columns, and are wrapped.

    A subclass sets them in its constructor, and `kind`, its name in messages; it writes `_read` and `fingerprint`. One
    of arrays takes (X, y, weights) and has `accepts(data)`; one of files takes (path, ReadOptions) and has `suffixes`
    and `matches(head)`, which recognises a file of another suffix by its first bytes. Methods may be called from
    several threads; no open file is kept or pickled.
    """

    kind = "a source"
    suffixes = ()
    feature_names = None
    class_names = None
    has_labels = False
    has_weights = False
    is_sparse = False
    can_pad = False
    selects_columns = False
    opened_ns = None

    def _read(self, start, stop):
        """Chunk of rows start..stop-1, as stored."""
        raise NotImplementedError

    def _read_many(self, ranges):
        """Chunks of the ranges, as stored; for a format where opening costs, which then needs no `_read`."""
        return [self._read(start, stop) for start, stop in ranges]

    def read(self, start, stop):
        """Rows `start` to `stop - 1`.

        Parameters
        ----------
        start, stop : int
            0 <= start < stop <= n_rows.

        Returns
        -------
        Chunk
            X of `dtype`, of any strides, or csr_array with sorted indices, int32 where they fit; y raw numbers or str;
            weight float64. Sources in memory give views, which must not be written to.

        Raises
        ------
        DataError
            A range outside the source; a file that changed or is damaged; a weight that is negative or not finite.
        """
        return self.read_many([(start, stop)])[0]

    def read_many(self, ranges):
        """Several ranges of rows, in the order given, the file being opened once; see `read`.

        Parameters
        ----------
        ranges : list of (int, int)
            start and stop of each.

        Returns
        -------
        list of Chunk
        """
        for start, stop in ranges:
            if not 0 <= start < stop <= self.n_rows:
                raise DataError(f"rows {start} to {stop} were asked for; there are {self.n_rows}.", source=self.origin)
        chunks = self._read_many(ranges) if ranges else []
        for chunk in chunks:
            chunk.X = plain_features(chunk.X)
            if chunk.y is not None:
                chunk.y = plain_labels(chunk.y, chunk)
            if chunk.weight is not None:
                chunk.weight = plain_weights(chunk.weight, chunk)
        return chunks

    def chunks(self, start_row=0):
        """Yield the reader chunks from row `start_row` on, in file order, the next one being read in the background."""
        starts = range(start_row - start_row % self.chunk_rows, self.n_rows, self.chunk_rows)
        bounds = ((max(start, start_row), min(start + self.chunk_rows, self.n_rows)) for start in starts)
        return prefetch(partial(self.read, *pair) for pair in bounds)

    @abstractmethod
    def fingerprint(self):
        """JSON-able dict that changes when the data do: path, size, mtime and a digest of sampled content."""

    def files(self):
        """Paths of all files that the rows come from; None where some rows are in memory, or not all files are known.

        What was learned of the rows is kept for the next run only where these tell whether they have changed.
        """
        return None

    def layout(self):
        """How the rows are stored, as far as it matters for speed; by default nothing is known.

        Returns
        -------
        dict
            JSON values, each where it applies: `bytes` (of the features as stored, or of the text), `chunks` (rows and
            columns of a chunk of the file), `codec`, `is_text`, `density` (share of the values that are stored).
        """
        return {}

    def column_name(self, column):
        """What a message calls column `column` (from 0): its name, or its number from 1."""
        return column + 1 if self.feature_names is None else self.feature_names[column]

    def pad(self, n_features):
        """Widen the rows with zeros to `n_features`, where `can_pad`."""
        raise NotImplementedError(f"pad to {n_features}: {self.kind} has its own width")

    def selectors(self):
        """Names of the arrays beside X that can select rows, for `where`."""
        return []

    def read_selector(self, name, start, stop):
        """Entries of an array that can select rows.

        Parameters
        ----------
        name : str
            One of `selectors()`.
        start, stop : int
            0 <= start < stop <= n_rows.

        Returns
        -------
        array, shape (stop - start,)
            As stored.
        """
        raise NotImplementedError(name)

    def require_labels(self):
        """Raise DataError, with the remedy, unless the source has labels."""
        if not self.has_labels:
            raise DataError(f"has no labels. {self.label_remedy()}", source=self.origin)

    def label_remedy(self):
        """What to do when labels are missing."""
        return "Give y."

    def close(self):  # noqa: B027 - most sources hold nothing
        """Release what the source holds (temporary files); reading from it afterwards is an error."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


class WrappedSource(Source):
    """A source that delivers another one's rows in another form: the same attributes, unless a subclass changes them.

    Parameters
    ----------
    source : Source
        The rows; closed with this one.
    """

    def __init__(self, source):
        self.source = source
        self.origin, self.kind, self.dtype = source.origin, source.kind, source.dtype
        self.n_rows, self.n_features, self.chunk_rows = source.n_rows, source.n_features, source.chunk_rows
        self.feature_names, self.class_names = source.feature_names, source.class_names
        self.has_labels, self.has_weights, self.is_sparse = source.has_labels, source.has_weights, source.is_sparse

    def files(self):
        """As the source says."""
        return self.source.files()

    def layout(self):
        """As the source says."""
        return self.source.layout()

    def label_remedy(self):
        """As the source says."""
        return self.source.label_remedy()

    def close(self):
        """Close the source."""
        self.source.close()


def rows_of_bytes(row_bytes):
    """Rows that make a reader chunk of about CHUNK_BYTES."""
    return max(1, CHUNK_BYTES // max(1, int(row_bytes)))


def check_table(shape, dtype, origin, what="X"):
    """Check that features form a numeric table with rows and columns; returns the dtype that chunks will have.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array of features.
    dtype : numpy.dtype
        Its stored type.
    origin, what : str
        The source, and the array in it, for messages.

    Raises
    ------
    DataError
        Not two-dimensional, not real numbers, zero rows or zero columns.
    """
    remedy = dtype_remedy(dtype)
    if remedy:
        raise DataError(f"{what} has dtype {dtype}; features must be real numbers. {remedy}", source=origin)
    if len(shape) != 2:
        flat = "reshape(-1, 1) if it holds one feature, reshape(1, -1) if it holds one row"
        remedy = flat if len(shape) == 1 else "reshape(n_rows, n_features)"
        message = f"{what} has shape {shape}; a table of rows and features is needed. Reshape it: {remedy}."
        raise DataError(message, source=origin)
    for size, name in zip(shape, ("rows", "columns"), strict=True):
        if size == 0:
            raise DataError(f"{what} has shape {shape}: no {name}. Give data that have some.", source=origin)
    return delivered_dtype(dtype)


def dtype_remedy(dtype):
    """What to do with features of a dtype that is not a real number of at most 64 bits; None if it is one."""
    if dtype.kind in "biuf" and dtype.itemsize <= 8:
        return None
    remedies = {
        "O": "Convert it, for instance with astype('float32').",
        "c": "Store the real and imaginary parts as separate features.",
        "V": "Store its fields as the columns of one numeric table.",
        "f": "Convert it to float64.",
    }
    return remedies.get(dtype.kind, "Encode it as numbers first.")


def delivered_dtype(dtype):
    """The dtype of delivered features for a stored one: native, bool as uint8, float16 widened to float32."""
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    return np.dtype(np.float32) if dtype == np.float16 else np.dtype(dtype.str).newbyteorder("=")


def check_length(n_rows, shape, origin, what="y", table="X"):
    """Check that the array `what` has one entry for each row of `table`; (n, 1) and (1, n) count as (n,)."""
    if len(shape) not in (1, 2) or (len(shape) == 2 and 1 not in shape):
        raise DataError(f"{what} has shape {shape}; one entry a row is needed.", source=origin)
    length = n_entries(shape)
    if length != n_rows:
        remedy = "Both must describe the same rows."
        raise DataError(f"{table} has {n_rows} rows and {what} has {length} entries. {remedy}", source=origin)


def n_entries(shape):
    """Entries of an array that has one a row, of shape (n,), (n, 1) or (1, n); 0 for any other."""
    return math.prod(shape) if len(shape) == 1 or (len(shape) == 2 and 1 in shape) else 0


def plain_features(X):
    """X in its delivered dtype, copied only where the stored one differs."""
    if scipy.sparse.issparse(X):
        X.data = X.data.astype(delivered_dtype(X.dtype), copy=False)
        return X
    return X.astype(delivered_dtype(X.dtype), copy=False)


def plain_labels(y, chunk):
    """Labels of a chunk as numbers in native byte order or as str.

    Bytes are decoded as UTF-8; objects must be all text or all numbers.

    Raises
    ------
    DataError
        Labels of another type, or bytes that are no text; names the row where one is at fault.
    """
    kind = y.dtype.kind
    if kind in "biufU":
        return y.astype(y.dtype.newbyteorder("="), copy=False)
    if kind not in "SOT":
        raise DataError(f"labels have dtype {y.dtype}; they must be numbers or text.", source=chunk.origin)
    values = [decode_label(value, chunk, row) for row, value in enumerate(y.tolist())]
    is_text = [isinstance(value, str) for value in values]
    if all(is_text):
        return np.array(values, dtype=str)
    numbers = [isinstance(value, (bool, int, float, np.number)) for value in values]
    if all(numbers):
        return np.array(values)
    if not any(numbers) and not any(is_text):
        raise DataError(f"labels have dtype {y.dtype}; they must be numbers or text.", source=chunk.origin)
    row = numbers.index(False) if any(numbers) else is_text.index(False)
    message = f"label {values[row]!r} stands among others of another type. Use numbers only or text only."
    raise DataError(message, source=chunk.origin, row=chunk.row_number(row))


def decode_label(label, chunk, row):
    """A label with bytes decoded as UTF-8, or DataError with the row."""
    try:
        return label.decode() if isinstance(label, bytes) else label
    except UnicodeDecodeError:
        message = f"label {label!r} is not UTF-8 text. Store the labels as numbers or UTF-8."
        raise DataError(message, source=chunk.origin, row=chunk.row_number(row)) from None


def plain_weights(weight, chunk):
    """Sample weights of a chunk as float64; DataError with the row on one that is negative or not finite."""
    if weight.dtype.kind not in "biuf":
        raise DataError(f"sample weights have dtype {weight.dtype}; they must be numbers.", source=chunk.origin)
    weight = weight.astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        message = f"sample weight {weight[bad[0]]:g}; weights must be finite and not negative."
        raise DataError(message, source=chunk.origin, row=chunk.row_number(int(bad[0])))
    return weight


@contextmanager
def reading(path):
    """Turn an OSError into one line that names the file."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error}).", source=path) from error


def file_fingerprint(path, n_samples=16, sample_bytes=4096):
    """Path, size, mtime and a digest of the head of a file and of evenly spaced samples of it."""
    status = os.stat(path)
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        for i in range(n_samples + 1):
            file.seek(i * max(status.st_size - sample_bytes, 0) // n_samples)
            digest.update(file.read(sample_bytes))
    path = os.path.abspath(path)
    return {"path": path, "size": status.st_size, "mtime_ns": status.st_mtime_ns, "digest": digest.hexdigest()}


def array_fingerprint(*arrays, n_samples=256):
    """Shapes, dtypes and a digest of arrays in memory: of evenly spaced rows of tables, of all labels and weights."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        if array.ndim > 1:
            array = array[np.linspace(0, len(array) - 1, min(n_samples, len(array))).astype(np.int64)]
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    described = [[list(array.shape), array.dtype.str] for array in arrays]
    return {"arrays": described, "digest": digest.hexdigest()}
