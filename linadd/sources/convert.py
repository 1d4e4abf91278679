"""Any source as a native file: HDF5 in whole rows, which train fast, written whole or not at all.

Native format, version 1: dataset `X` (n_rows, n_features) in chunks of whole rows; `y` (n_rows,), numbers or text;
optional `weight` (n_rows,) float64; attributes of the root `format`, `format_version`, `feature_names`, `class_names`.
"""

import json
import logging
import os
import tempfile
import zlib
from contextlib import closing
from functools import partial

import h5py
import numpy as np

from linadd.atomic import writing
from linadd.chunks import prefetch
from linadd.errors import ConfigError, DataError
from linadd.sources.base import CHUNK_BYTES, dtype_remedy, rows_of_bytes
from linadd.sources.part_file import PartFile

__all__ = ["CODECS", "FORMAT_VERSION", "convert"]

logger = logging.getLogger(__name__)

FORMAT_VERSION = 1
CODECS = ("lz4", "zstd", "none")

# One chunk of the file should fit HDF5's chunk cache, and its rows divide the 1000 that the solver asks for at a time.
FILE_CHUNK_BYTES = 1 << 20
FILE_CHUNK_ROWS = (1000, 500, 250, 200, 125, 100, 50, 40, 25, 20, 10, 8, 5, 4, 2, 1)
MOST_CHUNK_BYTES = (1 << 32) - 1  # of HDF5's formats before 2.0
# Rows that are shuffled in memory at a time.
BUCKET_BYTES = 64 << 20
DRAWN_ROWS = 1 << 20


def convert(
    source, path, *, dtype=None, codec="lz4", chunk_rows=None, shuffle=False, seed=0, verify=True, progress=None
):
    """Write all rows of a source as a native HDF5 file.

    Takes the memory of a few reader chunks; shuffling, of 64 MB besides, and of the table's size in the target's folder
    while it runs. The same source and options give the same values in the same order, for any chunks of the reader.

    What is stopped by a kill, Ctrl-C or a full disk leaves `path` as it was and TARGET.part with its log beside it. If
    the source is in files, the same call goes on there, at the last of the checkpoints that are made every 256 MB
    (shuffled rows are scattered again first); any other begins anew. Data that cannot be written leave nothing.

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
    verify : bool
        Whether to read the file back, before it replaces the target, and compare checksums (CRC-32 of X, labels and
        weights) with those of what was handed to HDF5.
    progress : callable, optional
        Called as progress(n_rows_done, n_rows) after each batch of rows; of the moves of a row (scattering, writing,
        reading back, as far as there are any) each counts the same share.

    Returns
    -------
    dict
        `path`, `n_rows`, `n_features`, `dtype`, `bytes` of what was written, `resumed_at` (rows of an earlier part that
        were kept), `verified`.

    Raises
    ------
    ConfigError
        An option that is not possible.
    DataError
        A value that the dtype cannot hold, with row and column; a target that cannot be written, or whose part another
        process is writing; what was read back differs; as the source reads.
    """
    if codec not in CODECS:
        raise ConfigError(f"codec is {codec!r}. It is one of {', '.join(CODECS)}.")
    if chunk_rows is not None and chunk_rows < 1:
        raise ConfigError(f"chunk_rows is {chunk_rows}. It must be at least 1.")
    if seed < 0:
        raise ConfigError(f"seed is {seed}. It must not be negative.")
    dtype = target_dtype(source.dtype if dtype is None else dtype)
    chunk_rows = min(chunk_rows or file_chunk_rows(source.n_features * dtype.itemsize), source.n_rows)
    chunk_bytes = chunk_rows * source.n_features * dtype.itemsize
    if chunk_bytes > MOST_CHUNK_BYTES:
        message = f"a chunk of {chunk_rows:,} rows takes {chunk_bytes:,} bytes, more than HDF5's {MOST_CHUNK_BYTES:,}."
        raise ConfigError(f"{message} Lower --chunk-rows, or choose fewer columns by --features.")
    layout = {"dtype": dtype.str, "codec": codec, "chunk_rows": chunk_rows, "seed": seed if shuffle else None}
    moves = Moves(progress or (lambda done, total: None), source.n_rows, 1 + shuffle + verify)
    with writing(path), PartFile(path, key_of(source, layout)) as part:
        first = part.state.get("rows", 0)
        if first:
            logger.info("%s: goes on at row %d of %d", part.path, first + 1, source.n_rows)
        if first < source.n_rows:
            write_rows(part, source, layout, moves)
        if verify:
            check_rows(part, moves)
        part.finish()
    shape = {"n_rows": source.n_rows, "n_features": source.n_features, "dtype": dtype.name}
    written = {"bytes": os.path.getsize(path), "resumed_at": first, "verified": verify}
    return {"path": os.fspath(path)} | shape | written


class Moves:
    """Progress over the moves of all rows: `done(move, rows)` reports the rows of move 0, 1, ... that are done."""

    def __init__(self, report, n_rows, n_moves):
        self.report, self.n_rows, self.n_moves = report, n_rows, n_moves

    def done(self, move, rows):
        """Report the whole as rows of a single move."""
        self.report((move * self.n_rows + rows) // self.n_moves, self.n_rows)


def key_of(source, layout):
    """What makes the rows and the layout of a file, as text; None for a source in memory, known by samples only."""
    described = json.dumps([source.fingerprint(), FORMAT_VERSION, source.n_rows, layout], sort_keys=True)
    return described if '"mtime_ns"' in described else None


def write_rows(part, source, layout, moves):
    """Write the rows that the part lacks, with a checkpoint now and then and at the end."""
    state = part.state or {"rows": 0, "checksums": {}}
    done, checksums, dtype = state["rows"], dict(state["checksums"]), np.dtype(layout["dtype"])
    is_shuffled = layout["seed"] is not None
    cache = 4 * max(FILE_CHUNK_BYTES, layout["chunk_rows"] * source.n_features * dtype.itemsize)
    with part.hdf5(cache) as file:
        if not done:
            describe(file, source, dtype, layout["codec"], layout["chunk_rows"])
        with closing(read_batches(source, dtype, 0 if is_shuffled else done)) as batches:
            if is_shuffled:
                folder = part.path.parent
                batches = shuffled(batches, source, dtype, layout["seed"], folder, partial(moves.done, 0), done)
            for X, y, weight in batches:
                columns = {"X": X, "y": y, "weight": weight}
                columns = {name: entries for name, entries in columns.items() if entries is not None}
                write_batch(file, source, done, columns)
                for name, entries in columns.items():
                    checksums[name] = checksum(entries, checksums.get(name, 0))
                done += len(X)
                part.check()
                if part.is_due and done < source.n_rows:
                    file.flush()
                    part.checkpoint({"rows": done, "checksums": dict(checksums)})
                moves.done(int(is_shuffled), done)
    part.checkpoint({"rows": done, "checksums": checksums})


def check_rows(part, moves):
    """Read the part back and compare checksums; DataError where they differ."""
    expected = part.state["checksums"]
    found = dict.fromkeys(expected, 0)
    with h5py.File(part.path, "r", locking=False) as file:  # the part holds the lock
        n_rows, row_bytes = len(file["X"]), file["X"].dtype.itemsize * file["X"].shape[1]
        step = max(1, rows_of_bytes(row_bytes) // file["X"].chunks[0]) * file["X"].chunks[0]
        for start in range(0, n_rows, step):
            stop = min(start + step, n_rows)
            for name in found:
                is_text = h5py.check_string_dtype(file[name].dtype) is not None
                entries = file[name].asstr()[start:stop].astype(str) if is_text else file[name][start:stop]
                found[name] = checksum(entries, found[name])
            moves.done(moves.n_moves - 1, stop)
    for name in found:
        if found[name] != expected[name]:
            values = f"checksum {found[name]:08x} instead of {expected[name]:08x}"
            message = f"{name} as read back differs from what was written ({values}): a disk or memory at fault."
            raise DataError(f"{message} Write it elsewhere.", source=part.path)


def checksum(entries, value=0):
    """CRC-32 of numbers, or of text as UTF-8 with a zero after each, going on from that of earlier entries."""
    if entries.dtype.kind == "U":
        return zlib.crc32("".join(f"{text}\0" for text in entries.tolist()).encode(), value)
    return zlib.crc32(np.ascontiguousarray(entries).view(np.uint8).data, value)


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


def write_batch(file, source, start, columns):
    """Write entries of X, y and weight from row `start` on; the datasets of the latter are made at the first."""
    for name, entries in columns.items():
        is_text = entries.dtype.kind == "U"
        dtype = h5py.string_dtype() if is_text else entries.dtype
        if name not in file:
            file.create_dataset(name, (source.n_rows,), dtype)
        elif file[name].dtype != dtype:
            kinds = ["text" if each.kind == "O" else str(each) for each in (file[name].dtype, dtype)]
            message = f"{name} is {kinds[0]} above and {kinds[1]} from here on. Store it as one type."
            raise DataError(message, source=source.origin, row=start + 1)
        file[name][start : start + len(entries)] = entries.astype(object) if is_text else entries


def read_batches(source, dtype, first):
    """Yield X (dense, of `dtype`), y and weight of the rows from `first` on, the next being read in the background."""
    # A sparse source counts its chunks in stored entries: dense rows may be far larger.
    dense_rows = max(1, CHUNK_BYTES // (source.n_features * source.dtype.itemsize))
    step = min(source.chunk_rows, dense_rows) if source.is_sparse else source.chunk_rows
    bounds = ((start, min(start + step, source.n_rows)) for start in range(first, source.n_rows, step))
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


def shuffled(batches, source, dtype, seed, folder, report, first=0):
    """Yield the rows of the batches in a uniform random order, by way of a temporary file of the table's size.

    Of that order the first `first` rows are left out.

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
            order = np.random.default_rng([seed, 1, bucket]).permutation(count)[max(first - (end - count), 0) :]
            for rows in gather(file, record, end - count, count, order):
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


def gather(file, record, start, count, order):
    """Yield those records of a bucket (`count` of them from `start` on) that `order` lists, in pieces."""
    if not len(order):
        return
    file.seek(start * record.itemsize)
    records = np.fromfile(file, record, count)
    step = max(1, CHUNK_BYTES // record.itemsize)
    for first in range(0, len(order), step):
        yield records[order[first : first + step]]
