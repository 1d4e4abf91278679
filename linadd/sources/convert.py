"""Any source as a native file: HDF5 in whole rows, which train fast, written whole or not at all.

Native format, version 1: dataset `X` (n_rows, n_features) in chunks of whole rows; `y` (n_rows,), numbers or text;
optional `weight` (n_rows,) float64; attributes of the root `format`, `format_version`, `feature_names`, `class_names`.
"""

import os
import tempfile
from contextlib import closing
from functools import partial

import h5py
import numpy as np

from linadd.chunks import prefetch
from linadd.errors import ConfigError, DataError
from linadd.sources.base import CHUNK_BYTES, dtype_remedy
from linadd.sources.new_hdf5 import new_hdf5

__all__ = ["CODECS", "FORMAT_VERSION", "convert"]

FORMAT_VERSION = 1
CODECS = ("lz4", "zstd", "none")

# One chunk of the file should fit HDF5's chunk cache, and its rows divide the 1000 that the solver asks for at a time.
FILE_CHUNK_BYTES = 1 << 20
FILE_CHUNK_ROWS = (1000, 500, 250, 200, 125, 100, 50, 40, 25, 20, 10, 8, 5, 4, 2, 1)
# Rows that are shuffled in memory at a time.
BUCKET_BYTES = 64 << 20
DRAWN_ROWS = 1 << 20
# Bytes of a number, or of the reference that stands for a text, in a dataset of labels.
ENTRY_BYTES = 16


def convert(source, path, *, dtype=None, codec="lz4", chunk_rows=None, shuffle=False, seed=0, progress=None):
    """Write all rows of a source as a native HDF5 file.

    Takes the memory of a few reader chunks; shuffling, of 64 MB besides, and of the table's size in the target's folder
    while it runs. The same source and options give the same values in the same order, for any chunks of the reader.

    Parameters
    ----------
    source : Source
        Sparse rows are written dense.
    path : str or path-like
        The target, replaced when all is written; on any failure it stays as it was. It may be the source's own file.
    dtype : str or numpy.dtype, optional
        Type of X, by default the source's. Values must be representable, except that floats may be rounded to shorter
        ones (not to infinity).
    codec : {"lz4", "zstd", "none"}
        Compression of X, with bits shuffled (bitshuffle).
    chunk_rows : int, optional
        Rows of a chunk of the file; by default at most 1000 and 1 MB.
    shuffle : bool
        Whether to permute the rows, uniformly, by `seed`.
    seed : int
        Seed of the permutation.
    progress : callable, optional
        Called as progress(n_rows_done, n_rows) after each batch of rows; when shuffling, each row counts half at each
        of its two moves.

    Returns
    -------
    dict
        `path`, `n_rows`, `n_features`, `dtype`, `bytes` of what was written.

    Raises
    ------
    ConfigError
        An option that is not possible.
    DataError
        A value that the dtype cannot hold, with row and column; a target that cannot be written; as the source reads.
    """
    if codec not in CODECS:
        raise ConfigError(f"codec is {codec!r}. It is one of {', '.join(CODECS)}.")
    if chunk_rows is not None and chunk_rows < 1:
        raise ConfigError(f"chunk_rows is {chunk_rows}. It must be at least 1.")
    if seed < 0:
        raise ConfigError(f"seed is {seed}. It must not be negative.")
    dtype = target_dtype(source.dtype if dtype is None else dtype)
    row_bytes = source.n_features * dtype.itemsize
    chunk_rows = min(chunk_rows or file_chunk_rows(row_bytes), source.n_rows)
    report = progress or (lambda done, total: None)
    with new_hdf5(path, 4 * max(FILE_CHUNK_BYTES, chunk_rows * row_bytes)) as (file, reserve):
        describe(file, source, dtype, codec, chunk_rows)
        done = 0
        with closing(read_batches(source, dtype)) as batches:
            if shuffle:
                folder = os.path.dirname(os.path.abspath(path))
                batches = shuffled(batches, source, dtype, seed, folder, lambda rows: report(rows // 2, source.n_rows))
            for X, y, weight in batches:
                columns = {name: entries for name, entries in (("y", y), ("weight", weight)) if entries is not None}
                write_batch(file, reserve, slice(done, done + len(X)), X, columns)
                done += len(X)
                report((source.n_rows + done) // 2 if shuffle else done, source.n_rows)
    shape = {"n_rows": source.n_rows, "n_features": source.n_features}
    return {"path": os.fspath(path)} | shape | {"dtype": dtype.name, "bytes": os.path.getsize(path)}


def target_dtype(dtype):
    """The dtype that was asked for, or ConfigError."""
    try:
        dtype = np.dtype(dtype)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "iuf" or dtype_remedy(dtype):
        raise ConfigError("dtype must be an integer or float type of at most 64 bits, as uint8, int16 or float32.")
    return dtype.newbyteorder("=")


def file_chunk_rows(row_bytes):
    """Rows of a chunk of the file, for rows of so many bytes."""
    return next((rows for rows in FILE_CHUNK_ROWS if rows * row_bytes <= FILE_CHUNK_BYTES), 1)


def describe(file, source, dtype, codec, chunk_rows):
    """Make the dataset X and the attributes."""
    packing = {}
    if codec != "none":
        import hdf5plugin  # 0.2 s that training need not wait for

        packing = dict(hdf5plugin.Bitshuffle(cname=codec))
    shape = (source.n_rows, source.n_features)
    file.create_dataset("X", shape, dtype, chunks=(chunk_rows, source.n_features), **packing)
    file.attrs["format"], file.attrs["format_version"] = "linadd", FORMAT_VERSION
    for name in ("feature_names", "class_names"):
        if getattr(source, name) is not None:
            file.attrs[name] = np.array(getattr(source, name), h5py.string_dtype())


def write_batch(file, reserve, rows, X, columns):
    """Write the slice `rows` of X and of the columns, whose datasets are made at the first; text is stored as UTF-8."""
    n_rows = file["X"].shape[0]
    for name, entries in columns.items():
        if name not in file:
            reserve(n_rows * ENTRY_BYTES)
            file.create_dataset(name, (n_rows,), h5py.string_dtype() if entries.dtype.kind == "U" else entries.dtype)
    # An incompressible chunk grows by less than a part in 64; text lies apart from its entry.
    reserve(X.nbytes + X.nbytes // 64 + sum(2 * entries.nbytes + 64 * len(X) for entries in columns.values()))
    file["X"][rows] = X
    for name, entries in columns.items():
        file[name][rows] = entries.astype(object) if entries.dtype.kind == "U" else entries


def read_batches(source, dtype):
    """Yield X (dense, of `dtype`), y and weight of consecutive rows, the next ones being read in the background."""
    # A sparse source counts its chunks in stored entries: dense rows may be far larger.
    dense_rows = max(1, CHUNK_BYTES // (source.n_features * source.dtype.itemsize))
    step = min(source.chunk_rows, dense_rows) if source.is_sparse else source.chunk_rows
    bounds = ((start, min(start + step, source.n_rows)) for start in range(0, source.n_rows, step))
    for chunk in prefetch(partial(source.read, *pair) for pair in bounds):
        yield cast(chunk, dtype, source), chunk.y, chunk.weight


def cast(chunk, dtype, source):
    """X of a chunk, dense, in another dtype; DataError for a value that it cannot hold."""
    X = chunk.dense()
    if X.dtype == dtype:
        return X
    with np.errstate(invalid="ignore", over="ignore"):
        converted = X.astype(dtype)
    held = is_held(X, converted)
    if not held.all():
        row, column = (int(index[0]) for index in np.nonzero(~held))
        message = f"value {X[row, column]} cannot be held by {dtype}. Choose another --dtype."
        names = {"row": chunk.row_number(row), "column": source.column_name(column)}
        raise DataError(message, source=source.origin, **names)
    return converted


def is_held(X, converted):
    """Whether each value is held by its converted one: exactly, but floats by shorter floats up to rounding."""
    target = converted.dtype
    if target.kind == "f":
        if X.dtype.kind == "f":
            return np.isfinite(converted) | ~np.isfinite(X)
        # What rounds up to the power of two beyond the integers must not be converted back.
        is_within = np.isfinite(converted) & (converted < np.float64(int(np.iinfo(X.dtype).max) + 1))
        return is_within & (np.where(is_within, converted, 0).astype(X.dtype) == X)
    low, high = int(np.iinfo(target).min), int(np.iinfo(target).max)
    if X.dtype.kind == "f":
        # high + 1 is a power of two, so that both bounds are exact in float64, also where high is not.
        return (float(low) <= X) & (float(high + 1) > X) & (np.trunc(X) == X)
    return (low <= X) & (high >= X)


def shuffled(batches, source, dtype, seed, folder, report):
    """Yield the rows of the batches in a uniform random order, by way of a temporary file of the table's size.

    Each row draws one of the file's buckets, independently, and each bucket is permuted in memory: every order of all
    rows is then equally likely. What is drawn depends on seed and shape only, never on the batches.
    """
    texts = {}  # label -> code, where labels are text
    record, is_text = record_dtype(source, dtype)
    n_buckets = -(-source.n_rows * record.itemsize // BUCKET_BYTES)
    counts = np.zeros(n_buckets, np.int64)
    draws = np.random.default_rng([seed, 0])
    for start in range(0, source.n_rows, DRAWN_ROWS):
        counts += np.bincount(draw(draws, min(DRAWN_ROWS, source.n_rows - start), n_buckets), minlength=n_buckets)
    ends = np.cumsum(counts)
    with tempfile.TemporaryFile(dir=folder) as file:
        draws, done = np.random.default_rng([seed, 0]), 0
        filled = ends - counts
        for X, y, weight in batches:
            records = np.empty(len(X), record)
            records["X"] = X
            if y is not None:
                records["y"] = [texts.setdefault(text, len(texts)) for text in y.tolist()] if is_text else y
            if weight is not None:
                records["weight"] = weight
            scatter(file, records, draw(draws, len(X), n_buckets), filled)
            done += len(X)
            report(done)
        labels = np.array(list(texts))
        for bucket, (count, end) in enumerate(zip(counts.tolist(), ends.tolist(), strict=True)):
            order = np.random.default_rng([seed, 1, bucket]).permutation(count)
            for rows in gather(file, record, end - count, order):
                y = None if not source.has_labels else labels[rows["y"]] if is_text else rows["y"]
                yield rows["X"], y, rows["weight"] if source.has_weights else None


def record_dtype(source, dtype):
    """The type of a row with its label (text as a code) and weight, and whether labels are text."""
    fields, is_text = [("X", dtype, (source.n_features,))], False
    if source.has_labels:
        label_dtype = source.read(0, 1).y.dtype
        is_text = label_dtype.kind == "U"
        fields.append(("y", np.int64 if is_text else label_dtype))
    if source.has_weights:
        fields.append(("weight", np.float64))
    return np.dtype(fields), is_text


def draw(generator, n_rows, n_buckets):
    """A bucket for each row, by one draw of 64 bits: the same ones however many are drawn at once."""
    return (generator.random(n_rows) * n_buckets).astype(np.int64)


def scatter(file, records, buckets, filled):
    """Append each record to its bucket in the file; `filled` (changed in place) says where each bucket goes on."""
    order = np.argsort(buckets, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(buckets[order])) + 1):
        bucket = buckets[part[0]]
        file.seek(filled[bucket] * records.itemsize)
        file.write(records[part].tobytes())
        filled[bucket] += len(part)


def gather(file, record, start, order):
    """Yield the records of a bucket, which begins at `start`, in pieces and in the given order."""
    file.seek(start * record.itemsize)
    records = np.fromfile(file, record, len(order))
    step = max(1, CHUNK_BYTES // record.itemsize)
    for first in range(0, len(order), step):
        yield records[order[first : first + step]]
