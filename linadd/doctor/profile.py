"""What the rows of a source hold, from a sample of spans or from one read of all, in bounded memory.

Ranges, distinct values and density are the census's own, taken with the values that are not finite (which end a census)
replaced by 0; those are counted here, and the columns that have some are left out of every other finding. Labels go
through the counts that training makes, and what these refuse is kept as it was raised.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from linadd._jit import compiled
from linadd.census import Census, CensusTaker
from linadd.embedding import check_costs
from linadd.errors import DataError
from linadd.labels import Labels
from linadd.options import Options
from linadd.row_sample import SAMPLE_ROWS, RowSample, hash_rows

__all__ = ["Profile", "take_profile"]

SAMPLE_BYTES = 64 << 20  # of the sample as float64
LEAST_ROWS = 256
N_SPANS = 16  # pieces of the file that a sample is read from
UNPACKED_BYTES = 256 << 20  # that reading the sample may unpack, where chunks of the file hold many rows
SIXTEENTH = 16  # of the memory limit, that the sample and the hashes of rows may each take
SEED = 0

HIGH, LOW, FACTOR = np.uint64(32), np.uint64(29), np.uint64(0x9E3779B97F4A7C15)


@compiled
def mix(x):
    """64 bits of a value, 0 for 0: low bits too depend on its sign, exponent and leading digits."""
    bits = np.float64(x + 0.0).view(np.uint64)
    bits = (bits ^ (bits >> HIGH)) * FACTOR
    return bits ^ (bits >> LOW)


@compiled
def hash_table(X, row_keys, column_keys, columns, rows):
    """Add a table to the hashes of its columns and rows."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            bits = mix(np.float64(X[i, j]))
            columns[j] += bits * row_keys[i]
            rows[i] += bits * column_keys[j]


@compiled
def hash_entries(values, indices, starts, row_keys, column_keys, columns, rows):
    """`hash_table` of sparse rows: row i has the entries from starts[i] to starts[i + 1]."""
    for i in range(rows.shape[0]):
        for e in range(starts[i], starts[i + 1]):
            bits = mix(np.float64(values[e]))
            columns[indices[e]] += bits * row_keys[i]
            rows[i] += bits * column_keys[indices[e]]


class Faults:
    """Counts, and the first row, of a kind of bad value in each column.

    Attributes
    ----------
    counts : int64 array, shape (n_features,)
        Bad values.
    first_rows : int64 array, shape (n_features,)
        Numbers of the file; 0 where there is none.
    """

    def __init__(self, n_features):
        self.counts, self.first_rows = np.zeros(n_features, np.int64), np.zeros(n_features, np.int64)

    def add(self, rows, columns, chunk):
        """Count the bad values at these places of a chunk, in the order of the rows."""
        found, first = np.unique(columns, return_index=True)
        for j, i in zip(found, rows[first], strict=True):
            self.first_rows[j] = self.first_rows[j] or chunk.row_number(int(i))
        np.add.at(self.counts, columns, 1)


class LabelTally:
    """Labels, counted as training does, the missing ones apart.

    Attributes
    ----------
    labels : Labels
        Counts so far.
    n_missing, first_missing : int
        NaN or infinite labels, and the row of the first one (None without).
    error : DataError, or None
        Why training refuses the labels; nothing is counted after it.
    """

    def __init__(self):
        self.labels, self.n_missing, self.first_missing, self.error = Labels(), 0, None, None

    def update(self, chunk, weight):
        """Count the labels of a chunk."""
        y = chunk.y
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            is_bad = ~np.isfinite(y)
            self.n_missing += int(is_bad.sum())
            self.first_missing = self.first_missing or chunk.row_number(int(np.argmax(is_bad)))
            y, weight = y[~is_bad], weight[~is_bad]
        if self.error is None and len(y):
            try:
                self.labels.update(replace(chunk, y=y), weight)
            except DataError as error:
                self.error = error


@dataclass(frozen=True)
class Profile:
    """What the rows that were looked at hold.

    Attributes
    ----------
    n_rows : int
        Rows looked at.
    is_whole : bool
        They are all rows.
    census : Census, or None
        Of these rows, bad values as 0; None where all weights are zero, as `weight_error` says.
    missing, infinite : Faults
        NaN and infinite values.
    labels : LabelTally
        Empty for a source without labels.
    X, y : arrays, shapes (n, n_features) and (n,)
        A sample of these rows, dense or CSR, bad values as 0; y is None without labels.
    column_hashes : uint64 array, shape (n_features,)
        Equal for equal columns.
    row_hashes : uint64 array
        Equal for equal rows; of those looked at, or the sample of them that the memory limit allows.
    is_rising : bool array, shape (n_features,)
        Columns that rise from each row to the next; none of a sparse source.
    weight_error : DataError, or None
        Why training refuses the weights.
    """

    n_rows: int
    is_whole: bool
    census: Census | None
    missing: Faults
    infinite: Faults
    labels: LabelTally
    X: np.ndarray
    y: np.ndarray | None
    column_hashes: np.ndarray
    row_hashes: np.ndarray
    is_rising: np.ndarray
    weight_error: DataError | None

    @property
    def is_clean(self):
        """Columns without bad values, bool (n_features,)."""
        return (self.missing.counts + self.infinite.counts) == 0


class Profiler:
    """A profile in the making: `update` with chunks in the order of the file, then `finish`.

    Parameters
    ----------
    source : Source
        Where the chunks come from.
    sample_rows : int
        Rows to keep.
    hashed_rows : int
        Rows to keep a hash of.
    """

    def __init__(self, source, sample_rows, hashed_rows):
        n_features = source.n_features
        self.taker = CensusTaker(source.origin, n_features, 0, SEED, source.feature_names)
        self.missing, self.infinite, self.labels = Faults(n_features), Faults(n_features), LabelTally()
        # The same rows by the same hashes: features with their labels, and with the hashes of rows.
        self.samples = {"X": RowSample(sample_rows, SEED), "y": RowSample(sample_rows, SEED)}
        self.samples["hashes"] = RowSample(hashed_rows, SEED)
        self.column_keys = hash_rows(np.arange(n_features), SEED + 1) | np.uint64(1)
        self.column_hashes = np.zeros(n_features, np.uint64)
        self.is_rising, self.last = np.full(n_features, not source.is_sparse), None
        self.n_rows, self.weight_error = 0, None

    def update(self, chunk):
        """Add a chunk."""
        chunk = replace(chunk, X=self.without_bad(chunk), first_row=self.n_rows, row_numbers=chunk.numbers())
        X, weight = chunk.X, chunk.weights()
        if chunk.y is not None:
            self.labels.update(chunk, weight)
            self.samples["y"].update(chunk.y[:, None], np.ones(len(weight)), self.n_rows)
        self.taker.update(replace(chunk, y=None))
        self.samples["X"].update(X, np.ones(len(weight)), self.n_rows)
        self.samples["hashes"].update(self.hash_rows(X)[:, None], np.ones(len(weight)), self.n_rows)
        if self.is_rising.any():
            self.follow(X)
        self.n_rows += chunk.n_rows
        if self.weight_error is None:
            self.check_weights(chunk, weight)

    def without_bad(self, chunk):
        """X of a chunk, as the compiled loops take it, with 0 for what is not finite, which is counted."""
        is_sparse = scipy.sparse.issparse(chunk.X)
        X = chunk.sparse() if is_sparse else chunk.dense()
        values = X.data if is_sparse else X
        if values.dtype.kind != "f" or np.isfinite(values).all():
            return X
        for faults, is_fault in ((self.missing, np.isnan), (self.infinite, np.isinf)):
            places = np.nonzero(is_fault(values))
            if is_sparse:
                places = np.searchsorted(X.indptr, places[0], side="right") - 1, X.indices[places[0]]
            faults.add(*places, chunk)
        filled = np.where(np.isfinite(values), values, 0)
        return scipy.sparse.csr_array((filled, X.indices, X.indptr), X.shape) if is_sparse else filled

    def hash_rows(self, X):
        """Hashes of the rows of X, uint64 (n_rows,); those of the columns go on."""
        keys = hash_rows(np.arange(self.n_rows, self.n_rows + X.shape[0]), SEED + 2) | np.uint64(1)
        hashes = np.zeros(X.shape[0], np.uint64)
        if scipy.sparse.issparse(X):
            hash_entries(X.data, X.indices, X.indptr, keys, self.column_keys, self.column_hashes, hashes)
        else:
            hash_table(X, keys, self.column_keys, self.column_hashes, hashes)
        return hashes

    def follow(self, X):
        """Keep the columns that rise, from the row before X on."""
        columns = np.flatnonzero(self.is_rising)
        values = X[:, columns]
        is_rising = (values[1:] > values[:-1]).all(axis=0)
        if self.last is not None:
            is_rising &= values[0] > self.last[columns]
        self.is_rising[columns], self.last = is_rising, X[-1].copy()

    def check_weights(self, chunk, weight):
        """Keep what training at the default C has against the weights of a chunk."""
        try:
            check_costs(weight, Options.C, chunk)
        except DataError as error:
            self.weight_error = error

    def finish(self, is_whole):
        """The Profile."""
        census, weight_error = None, self.weight_error
        try:
            census = self.taker.finish()
        except DataError as error:
            weight_error = error
        X, y, hashes = (sample.finish()[0] for sample in self.samples.values())
        return Profile(
            self.n_rows, is_whole, census, self.missing, self.infinite, self.labels, X, y[:, 0] if y.size else None,
            self.column_hashes, hashes[:, 0], self.is_rising, weight_error,
        )  # fmt: skip


def take_profile(source, full=False, memory_limit=1_000_000_000, on_rows=None):
    """Look at the rows of a source.

    Parameters
    ----------
    source : Source
        The rows.
    full : bool
        Read all of them; else a sample of a fixed size from spans that are spread over the file.
    memory_limit : int
        Bytes; a sixteenth may hold the sample.
    on_rows : callable, optional
        Called with (rows looked at so far, rows to look at), for progress.

    Returns
    -------
    Profile

    Raises
    ------
    DataError
        Rows that cannot be read.
    """
    layout = source.layout()
    row_values = max(1, int(source.n_features * layout.get("density", 1.0)))
    fitting = min(SAMPLE_BYTES, memory_limit // SIXTEENTH) // (8 * row_values)
    sample_rows = int(np.clip(fitting, LEAST_ROWS, SAMPLE_ROWS))
    is_whole = full or source.n_rows <= sample_rows
    if is_whole:
        chunks, n_rows = source.chunks(), source.n_rows
    else:
        ranges = spans(source.n_rows, sample_rows, layout, source.n_features * source.dtype.itemsize)
        chunks, n_rows = map(source.read, *zip(*ranges, strict=True)), sum(stop - start for start, stop in ranges)
    profiler = Profiler(source, sample_rows, max(LEAST_ROWS, memory_limit // SIXTEENTH // 64))
    for chunk in chunks:
        profiler.update(chunk)
        if on_rows is not None:
            on_rows(profiler.n_rows, n_rows)
    return profiler.finish(is_whole)


def spans(n_rows, sample_rows, layout, row_bytes):
    """(start, stop) of the rows of a sample: spans of like length, the first and the last row among them.

    There are fewer of them where each makes the file's library unpack a chunk of very many rows.
    """
    chunk_bytes = (layout.get("chunks") or [1])[0] * row_bytes
    n_spans = int(np.clip(UNPACKED_BYTES // max(1, chunk_bytes), 1, N_SPANS))
    length = max(1, sample_rows // n_spans)
    starts = np.linspace(0, n_rows - length, n_spans).astype(np.int64).tolist()
    return [(start, start + length) for start in starts]
