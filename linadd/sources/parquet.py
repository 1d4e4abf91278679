"""Parquet files: columns of any name, read by pyarrow in batches of rows, never a whole row group at once.

Within a row group rows can only be decoded from its first on. So the place where a read ended is kept, with its open
file, until another read takes it up there, the last row is reached, or the source is closed or pickled: reading in
order decodes every row once, for any size of row groups. Where rows are read in another order, they are copied once
that has cost as much (`row_copy.py`); nobody is warned, as nearly all Parquet files have large row groups.
"""

import os
import re
import threading
from contextlib import contextmanager

import numpy as np

from linadd.errors import DataError, LinaddError
from linadd.sources.arrow_tables import ArrowSource, as_array, require_arrow
from linadd.sources.base import file_fingerprint, rows_of_bytes
from linadd.sources.row_copy import SlowRows
from linadd.sources.table_copy import TableCopy

__all__ = ["ParquetSource"]

SIGNATURE = b"PAR1"
# Bytes that all columns together read ahead in the file.
BUFFER_BYTES = 8 << 20
TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
PANDAS_INDEX = re.compile(r"__index_level_\d+__")
# What pyarrow raises on a file that is damaged, or changes while it is read.
ARROW_ERRORS = (
    OSError, ValueError, KeyError, IndexError, TypeError, NotImplementedError, MemoryError, OverflowError
)  # fmt: skip


class ParquetSource(ArrowSource):
    """Rows of a Parquet file.

    Features have the least NumPy type that holds every column exactly where there is one; decimals are float64, and
    dictionaries what they stand for. A missing value is NaN in a column of floats, and refused elsewhere. An index that
    pandas has stored is no feature.

    Parameters
    ----------
    path : str
        The file.
    options : ReadOptions
        Columns of labels (`y`; without the default name there are none) and `weights`, and which others are features.

    Raises
    ------
    DataError
        A file that is damaged; a feature that is not of numbers; on reading, a missing value, with its row and column;
        a file that changed after it was opened.
    """

    kind = "Parquet"
    suffixes = (".parquet", ".pq")

    def __init__(self, path, options):
        options.refuse(path, self.kind, "group", "x", "index_base")
        self.path = self.origin = path
        require_arrow(path)
        self._keep_nothing()
        with self._reading("its header"):
            self._stamp = stamp_of(path)
            with self._open() as file:
                self._describe(file, options)

    def _describe(self, file, options):
        """Take names, types and the bounds of the row groups from an open file."""
        schema, metadata = file.schema_arrow, file.metadata
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        if min(sizes, default=0) < 0 or sum(sizes) != metadata.num_rows:
            raise ValueError(f"row groups of {sizes[:5]} rows make {metadata.num_rows}")
        self._bounds = np.cumsum([0, *sizes], dtype=np.int64)
        index = [name for name in schema.names if PANDAS_INDEX.fullmatch(name)]
        self._take_columns(schema.names, len(schema.names), options, dict.fromkeys(index, "an index of pandas"))
        self._take_types([(numpy_type(each), shorten(each)) for each in schema.types], metadata.num_rows)
        row_bytes = self.n_features * self.dtype.itemsize
        self.chunk_rows = rows_of_bytes(row_bytes)
        self.slow_rows = SlowRows(self.n_rows, row_bytes, max(sizes))

    @staticmethod
    def matches(head):
        """Whether the first bytes are Parquet's."""
        return head.startswith(SIGNATURE)

    @contextmanager
    def _reading(self, what):
        """Turn what pyarrow raises into one line."""
        try:
            yield
        except LinaddError:
            raise
        except ARROW_ERRORS as error:
            reason = getattr(error, "strerror", None) or shorten(error, 200)
            message = f"{what} cannot be read ({reason}). The file is damaged, or of a kind unknown to pyarrow."
            raise DataError(message, source=self.origin) from error

    def _open(self):
        import pyarrow.parquet as parquet

        columns = max(1, len(getattr(self, "columns", ())))
        buffer_bytes = min(max(BUFFER_BYTES // columns, 1 << 13), 1 << 20)
        return parquet.ParquetFile(self.path, buffer_size=buffer_bytes, pre_buffer=False)

    def _keep_nothing(self):
        self._lock, self._kept = threading.Lock(), None

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "_kept")}

    def __setstate__(self, state):
        self.__dict__ |= state
        self._keep_nothing()

    def close(self):
        """Close the file where the last read ended, and remove the copy of the rows, if one was made."""
        self._keep(None)
        self.slow_rows.close()

    def _keep(self, cursor):
        """Keep a cursor for the next read, or None; closes the one that another thread has kept meanwhile."""
        with self._lock:
            kept, self._kept = self._kept, cursor
        if kept is not None:
            kept.file.close()

    def _take(self, places):
        """The cursor that is kept, if it reads the columns; else a new one."""
        with self._lock:
            kept, self._kept = self._kept, None
        if stamp_of(self.path) != self._stamp:
            raise DataError("changed after it was opened. Open it again.", source=self.origin)
        if kept is not None and kept.places != places:
            kept.file.close()
            kept = None
        return kept or Cursor(self._open(), self._bounds, places, self.column_names)

    def _read_many(self, ranges):
        places, chunks = self._places(), [None] * len(ranges)
        with self._reading("its rows"):
            copy = self.slow_rows.copy_after(self._rows_in_vain(places, ranges), self._copied)
        for k in sorted(range(len(ranges)), key=ranges.__getitem__):  # each batch is decoded once for all of them
            start, stop = ranges[k]
            with self._reading(f"rows {start + 1} to {stop}"):
                pieces = copy.pieces(start, stop) if copy else self._pieces(places, start, stop)
                chunks[k] = self._chunk(start, stop, pieces)
        return chunks

    def _rows_in_vain(self, places, ranges):
        """Rows that have to be decoded before those of the ranges, from the place that is kept on."""
        kept, n_vain = self._kept, 0
        first, end = kept.span() if kept is not None and kept.places == places else (0, 0)
        for start, stop in sorted(ranges):
            group = int(self._bounds[np.searchsorted(self._bounds, start, "right") - 1])
            if not first <= start <= end:
                n_vain += start - (end if group <= end < start else group)
            first, end = start, stop
        return n_vain

    def _copied(self):
        """The columns of all rows in a temporary file."""
        places = self._places()
        return TableCopy((batch for _, batch, _ in self._pieces(places, 0, self.n_rows)), self.origin)

    def _pieces(self, places, start, stop):
        cursor, row = self._take(places), start
        while row < stop:
            first, batch = cursor.seek(row)
            part = batch.slice(row - first, stop - row)
            yield row, part, np.arange(row + 1, row + 1 + part.num_rows)
            row += part.num_rows
        if stop < self.n_rows:
            self._keep(cursor)
        else:
            cursor.file.close()

    def read_selector(self, name, start, stop):
        """Entries of a column."""
        with self._reading(f"rows {start + 1} to {stop}"):
            return super().read_selector(name, start, stop)

    def _numbers(self, column, place, numbers):
        if hasattr(column, "dictionary_decode"):
            column = column.dictionary_decode()
        if str(column.type).startswith("decimal"):  # the direct way rounds twice: 0.10 becomes 0.09999999999999999
            column = column.cast("string").cast("float64")
        return super()._numbers(column, place, numbers)

    def _entries(self, column, place, numbers):
        kind = numpy_type(column.type)
        if kind is not None:
            return self._numbers(column, place, numbers)
        if column.null_count:
            raise self._missing(place, numbers, column)
        if not hasattr(column, "dictionary"):
            column = column if str(column.type) in TEXTS else column.cast("string")
            column = column.dictionary_encode()
        texts = column.dictionary.to_pylist()
        return np.array(texts, object if isinstance(texts[0], bytes) else str)[as_array(column.indices)]

    def layout(self):
        """Bytes of the features, rows of the largest row group, and codec."""
        with self._reading("its header"), self._open() as file:
            names = {self.column_names[place] for place in self.columns}
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            columns = [group.column(j) for group in groups for j in range(group.num_columns)]
            columns = [column for column in columns if column.path_in_schema in names]
            codec = columns[0].compression.lower()
            n_bytes = sum(column.total_compressed_size for column in columns)
        layout = {"bytes": n_bytes, "chunks": [int(np.diff(self._bounds).max()), 1]}
        return layout if codec == "uncompressed" else layout | {"codec": codec}

    def fingerprint(self):
        """Of the file, with the columns that are read."""
        return file_fingerprint(self.path) | self.column_prints()

    def files(self):
        """The file."""
        return [self.path]


class Cursor:
    """A place in an open Parquet file: the batch of rows that was read last.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
        Closed by the owner of the cursor.
    bounds : int64 array, shape (n_row_groups + 1,)
        First row of each row group, and the end.
    places : list of int
        Columns to read, ascending.
    names : list of str
        Names of all columns.

    Attributes
    ----------
    first : int
        Index of the first row of the batch.
    batch : pyarrow.RecordBatch
        Its columns named by their places.
    """

    def __init__(self, file, bounds, places, names):
        self.file, self.bounds, self.places = file, bounds, places
        self.batch = None
        self._names = list(dict.fromkeys(names[place] for place in places))
        # pyarrow reads all columns of a name, in the order of the names.
        self._read = [str(place) for name in self._names for place, each in enumerate(names) if each == name]
        self._batch_rows = rows_of_bytes(8 * len(self._read))

    def span(self):
        """First row of the batch, and the row behind it."""
        return (0, 0) if self.batch is None else (self.first, self.first + self.batch.num_rows)

    def seek(self, row):
        """The first row's index and the batch that holds a row."""
        group = np.searchsorted(self.bounds, row, "right") - 1
        first, end = self.span()
        if self.batch is None or row < first or end < self.bounds[group]:
            groups = list(range(group, len(self.bounds) - 1))
            self._batches = self.file.iter_batches(self._batch_rows, groups, self._names, use_threads=False)
            self.first = int(self.bounds[group])
            self.batch = self._next()
        while row >= self.first + self.batch.num_rows:
            self.first += self.batch.num_rows
            self.batch = self._next()
        return self.first, self.batch

    def _next(self):
        batch = next(self._batches, None)
        if batch is None or batch.num_columns != len(self._read):
            raise ValueError("there is less than its header says")
        return batch.rename_columns(self._read)


def stamp_of(path):
    """Size and time of change of a file."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def numpy_type(arrow_type):
    """NumPy's type for the numbers of a column, of decimals float64; None for one that has none."""
    import pyarrow.types as types

    if types.is_dictionary(arrow_type):
        return numpy_type(arrow_type.value_type)
    if types.is_decimal(arrow_type):
        return np.dtype(np.float64)
    is_number = types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_boolean(arrow_type)
    return np.dtype(arrow_type.to_pandas_dtype()) if is_number else None


def shorten(thing, limit=60):
    """The text of something in one line of limited length."""
    text = " ".join(str(thing).split())
    return text if len(text) <= limit else text[:limit] + "..."
