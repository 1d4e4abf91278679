"""Any source to the native file: every row once, in order or shuffled, values held exactly, or one line."""

import logging
import os
import signal
import subprocess
import sys
import threading
import zlib

import h5py
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from linadd.errors import ConfigError
from linadd.sources import convert as module
from linadd.sources import open_source, part_file
from linadd.sources.convert import CODECS, convert, file_chunk_rows
from tests.checks.check_source import BUILDERS, WITHOUT_WEIGHTS, open_table, position_table, refusal

LABELS = np.array(["cat", "dog", "épagneul"])


@pytest.fixture(autouse=True)
def unsynced(monkeypatch):
    """Files that are not synced to the disk, which takes most of the time here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def contents(path):
    """X, y and weight of a native file."""
    source = open_source(path)
    chunk = source.read(0, source.n_rows)
    return chunk.X, chunk.y, chunk.weight


@pytest.mark.parametrize("name", BUILDERS)
def test_any_source(name, tmp_path):
    X, y, weight = position_table(13, 4)
    convert(open_table(name, tmp_path, X, y, weight, chunk_rows=3), tmp_path / "out.h5")
    found = contents(tmp_path / "out.h5")
    np.testing.assert_array_equal(found[0], X)
    np.testing.assert_array_equal(found[1], y)
    if name in WITHOUT_WEIGHTS:
        assert found[2] is None
    else:
        np.testing.assert_array_equal(found[2], weight)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("convert") / "out.h5"


@given(
    shape=st.tuples(st.integers(1, 40), st.integers(1, 6)),
    dropped=st.integers(0, 5),
    dtype=st.sampled_from(["int8", "uint8", ">i2", "uint32", "int64", "uint64", "float32", ">f8"]),
    codec=st.sampled_from(CODECS),
    chunk_rows=st.integers(1, 50) | st.none(),
    reader_rows=st.integers(1, 50),
    is_shuffled=st.booleans(),
    bucket_bytes=st.integers(1, 2000),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_round_trip(scratch, shape, dropped, dtype, codec, chunk_rows, reader_rows, is_shuffled, bucket_bytes):
    X, y, weight = position_table(*shape, dtype)
    drop = [str(dropped + 1)] if dropped < shape[1] > 1 else None
    source = open_source(X, LABELS[y], weights=weight, chunk_rows=reader_rows, drop=drop)
    kept = np.delete(X, dropped, axis=1) if drop else X
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BUCKET_BYTES", bucket_bytes)
        patch.setattr(module, "DRAWN_ROWS", 7)
        options = {"codec": codec, "chunk_rows": chunk_rows, "shuffle": is_shuffled, "seed": 5}
        summary = convert(source, scratch, **options)
    assert summary == {
        "path": str(scratch),
        "n_rows": shape[0],
        "n_features": kept.shape[1],
        "dtype": np.dtype(dtype).name,
        "bytes": scratch.stat().st_size,
        "resumed_at": 0,
        "verified": True,
    }
    found_X, found_y, found_weight = contents(scratch)
    rows = (found_weight * 4).astype(int)
    assert sorted(rows) == list(range(shape[0])) and (is_shuffled or (np.diff(rows) == 1).all())
    assert found_X.dtype == np.dtype(dtype).newbyteorder("=")
    np.testing.assert_array_equal(found_X, kept[rows])
    np.testing.assert_array_equal(found_y, LABELS[y[rows]])


def test_the_native_format(tmp_path):
    X, y, _ = position_table(2500, 3, "float32")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"], file["y"] = X, y
        file.attrs["feature_names"], file["y"].attrs["class_names"] = ["a", "b", "c"], ["u", "v", "w"]
    convert(open_source(tmp_path / "a.h5"), tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5") as file:
        assert set(file.attrs) == {"format", "format_version", "feature_names", "class_names"}
        assert (file.attrs["format"], file.attrs["format_version"]) == ("linadd", 1)
        assert file["X"].chunks == (1000, 3) and file["y"].shape == (2500,) and "weight" not in file
        assert file["X"].id.get_create_plist().get_filter(0)[0] == 32008
    source = open_source(tmp_path / "out.h5")
    assert source.feature_names == ["a", "b", "c"] and source.class_names == ["u", "v", "w"]


def test_chunks_of_the_file_fit_a_cache_and_divide_a_training_chunk():
    assert [file_chunk_rows(n) for n in (1, 1048, 1049, 8688, 2 << 20)] == [1000, 1000, 500, 100, 1]


def test_shuffling_depends_on_the_seed_only(tmp_path, monkeypatch):
    X, y, weight = position_table(600, 2)
    monkeypatch.setattr(module, "BUCKET_BYTES", 3000)

    def order(seed, **options):
        source = open_source(X, y, weights=weight, **options)
        convert(source, tmp_path / "out.h5", shuffle=True, seed=seed)
        return (contents(tmp_path / "out.h5")[2] * 4).astype(int).tolist()

    first = order(1, chunk_rows=7)
    assert first == order(1, chunk_rows=100) != order(2, chunk_rows=7)


def test_every_order_of_the_rows_is_as_likely(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BUCKET_BYTES", 40)  # two rows a bucket on average
    source = open_source([[1.0], [2.0], [3.0]], weights=[1, 2, 3])
    counts = {}
    for seed in range(300):
        batches = [(X, None, X[:, 0]) for X in np.array([[[1.0]], [[2.0]], [[3.0]]])]
        rows = module.shuffled(batches, source, source.dtype, seed, tmp_path, lambda done: None)
        key = tuple(value for _, _, weight in rows for value in weight)
        counts[key] = counts.get(key, 0) + 1
    # 50 of each expected, standard deviation 6.5: five of them allowed.
    assert len(counts) == 6 and min(counts.values()) >= 18 and max(counts.values()) <= 82


def test_a_file_converts_onto_itself(tmp_path):
    X, y, _ = position_table(50, 2)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(50, 1))
        file["y"] = y
    convert(open_source(tmp_path / "a.h5"), tmp_path / "a.h5", chunk_rows=10)
    np.testing.assert_array_equal(contents(tmp_path / "a.h5")[0], X)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"verify": False}, [4, 8, 10]),
        ({}, [2, 4, 5, 10]),
        ({"shuffle": True, "verify": False}, [2, 4, 5, 10]),
        ({"shuffle": True}, [1, 2, 3, 6, 10]),
    ],
)
def test_progress(options, expected, tmp_path):
    source, seen = open_source(position_table(10, 2)[0], chunk_rows=4), []
    convert(source, tmp_path / "a.h5", progress=lambda *at: seen.append(at), **options)
    assert seen == [(rows, 10) for rows in expected]


@pytest.mark.parametrize(
    ("stored", "value", "dtype", "is_held"),
    [
        ("float64", 255.0, "uint8", True),
        ("float64", 256.0, "uint8", False),
        ("float64", -1.0, "uint8", False),
        ("float64", 0.5, "uint8", False),
        ("float64", np.nan, "int32", False),
        ("float64", np.inf, "int64", False),
        ("float64", -(2.0**63), "int64", True),
        ("float64", 2.0**63, "int64", False),
        ("float64", 2.0**63, "uint64", True),
        ("float32", 2.0**31, "int32", False),
        ("float64", 0.1, "float32", True),
        ("float64", 1e300, "float32", False),
        ("float64", np.inf, "float32", True),
        ("float64", np.nan, "float32", True),
        ("int16", -1, "uint8", False),
        ("int8", 127, "float32", True),
        ("int64", 2**24 + 1, "float32", False),
        ("int64", 2**53 + 1, "float64", False),
        ("int64", -(2**63), "float64", True),
        ("int64", 2**63 - 1, "float64", False),
        ("uint64", 2**64 - 1, "float64", False),
        ("uint64", 2**63, "int64", False),
        ("uint16", 65535, "float16", False),
        ("int32", 70000, "float16", False),
        ("int32", -70000, "float16", False),
    ],
)
def test_values_are_held_or_named(tmp_path, stored, value, dtype, is_held):
    X = np.zeros((3, 2), stored)
    X[1, 1] = value
    path = tmp_path / "a.h5"
    source = open_source(X, chunk_rows=1)
    if is_held:
        convert(source, path, dtype=dtype)
        np.testing.assert_array_equal(contents(path)[0][1, 1], np.array(X[1, 1]).astype(dtype))
    else:
        message = f"array, row 2, column 2: value {X[1, 1]} cannot be held by {dtype}. Choose another --dtype."
        assert refusal(convert, source, path, dtype=dtype) == message
        assert os.listdir(tmp_path) == []


def test_sparse_rows_are_written_dense_by_blocks(tmp_path, monkeypatch):
    X = scipy.sparse.random_array((30, 50), density=0.1, format="csr", rng=0)
    sizes = []
    monkeypatch.setattr(module, "CHUNK_BYTES", 4 * 50 * 8)
    source = open_source(X)
    read = source.read
    monkeypatch.setattr(source, "read", lambda start, stop: sizes.append(stop - start) or read(start, stop))
    convert(source, tmp_path / "a.h5")
    np.testing.assert_array_equal(contents(tmp_path / "a.h5")[0], X.toarray())
    assert set(sizes) == {4, 2}


@pytest.mark.parametrize("is_shuffled", [False, True])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, RuntimeError])
def test_a_failure_keeps_the_target_and_of_rows_in_memory_nothing_else(tmp_path, failure, is_shuffled, monkeypatch):
    """Rows in memory are known by samples only: they may be others when the call is repeated."""
    monkeypatch.setattr(part_file, "CHECKPOINT_BYTES", 1)
    path = tmp_path / "a.h5"
    path.write_bytes(b"old")

    def stop(done, total):
        if done > 5:
            raise failure

    source = open_source(position_table(20, 2)[0], chunk_rows=3)
    with pytest.raises(failure) as caught:
        convert(source, path, progress=stop, shuffle=is_shuffled)
    assert caught.tb and not [each for each in threading.enumerate() if each.name.startswith("linadd-read")]
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.h5"]


def file_of(folder, n_rows=40, n_features=3):
    """A file of rows, text labels and weights, in small chunks."""
    X, y, weight = position_table(n_rows, n_features, "float32")
    with h5py.File(folder / "source.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(min(4, n_rows), n_features))
        file["y"], file["weight"] = LABELS[y].astype(object), weight
    return folder / "source.h5"


class Stop:
    """Progress that raises KeyboardInterrupt after so many calls."""

    def __init__(self, n_calls):
        self.n_left = n_calls

    def __call__(self, done, total):
        self.n_left -= 1
        if self.n_left == 0:
            raise KeyboardInterrupt


@given(
    n_rows=st.integers(1, 60),
    n_features=st.integers(1, 4),
    reader_rows=st.integers(1, 20),
    again_rows=st.integers(1, 20),
    is_shuffled=st.booleans(),
    codec=st.sampled_from(CODECS),
    stops=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    checkpoint_bytes=st.integers(50, 1000),
    bucket_bytes=st.integers(20, 2000),
)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_stopped_and_gone_on_with(
    tmp_path_factory, n_rows, n_features, reader_rows, again_rows, is_shuffled, codec, stops, checkpoint_bytes,
    bucket_bytes,
):  # fmt: skip
    """The same values as in one go, wherever it was stopped, and for any chunks of the reader."""
    folder = tmp_path_factory.mktemp("stopped")
    path, options = file_of(folder, n_rows, n_features), {"codec": codec, "shuffle": is_shuffled, "seed": 3}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part_file, "CHECKPOINT_BYTES", checkpoint_bytes)
        patch.setattr(module, "BUCKET_BYTES", bucket_bytes)
        patch.setattr(module, "CHUNK_BYTES", 100)  # pieces of a bucket
        expected = convert(open_source(path), folder / "whole.h5", **options)
        for n_calls in stops:
            try:
                convert(open_source(path, chunk_rows=reader_rows), folder / "a.h5", progress=Stop(n_calls), **options)
            except KeyboardInterrupt:
                assert not (folder / "a.h5").exists()
                continue
            break
        found = convert(open_source(path, chunk_rows=again_rows), folder / "a.h5", **options)
    assert not (folder / "a.h5.part").exists() and not (folder / "a.h5.part.log").exists()
    assert found["n_rows"] == expected["n_rows"]
    for one, two in zip(contents(folder / "whole.h5"), contents(folder / "a.h5"), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """A folder with a source and the part of it that was written to `a.h5`."""
    monkeypatch.setattr(part_file, "CHECKPOINT_BYTES", 1)
    with pytest.raises(KeyboardInterrupt):
        convert(open_source(file_of(tmp_path), chunk_rows=8), tmp_path / "a.h5", progress=Stop(3))
    assert sorted(os.listdir(tmp_path)) == ["a.h5.part", "a.h5.part.log", "source.h5"]
    return tmp_path


def test_the_same_call_goes_on_at_its_row(stopped, caplog):
    caplog.set_level(logging.INFO, "linadd.sources")
    source = open_source(stopped / "source.h5")
    read, starts = source.read, []
    source.read = lambda start, stop: starts.append(start) or read(start, stop)
    assert convert(source, stopped / "a.h5")["resumed_at"] == 24 == min(starts)
    assert f"{stopped}/a.h5.part: goes on at row 25 of 40" in [each.getMessage() for each in caplog.records]
    np.testing.assert_array_equal(contents(stopped / "a.h5")[0], position_table(40, 3)[0])


def test_what_was_stopped_while_it_was_read_back_is_not_read_again(tmp_path, monkeypatch):
    path, options = file_of(tmp_path), {"shuffle": True}
    with pytest.raises(KeyboardInterrupt):
        convert(open_source(path), tmp_path / "a.h5", progress=Stop(3), **options)
    source = open_source(path)
    monkeypatch.setattr(source, "read", None)
    assert convert(source, tmp_path / "a.h5", **options)["resumed_at"] == 40


@pytest.mark.parametrize(
    "change", [{"codec": "zstd"}, {"dtype": "float64"}, {"chunk_rows": 7}, {"shuffle": True}, "values", "time", "rows"]
)
def test_another_call_begins_anew(stopped, change, caplog):
    caplog.set_level(logging.INFO, "linadd.sources.part_file")
    path, where = stopped / "source.h5", None
    if change == "values":
        with h5py.File(path, "a") as file:
            file["X"][1, 1] = -5
    elif change == "time":
        os.utime(path, (1, 1))
    elif change == "rows":
        where = {"y": ["cat"]}
    options = change if isinstance(change, dict) else {}
    source = open_source(path, where=where)
    assert convert(source, stopped / "a.h5", **options)["resumed_at"] == 0
    message = f"{stopped}/a.h5.part: is of another source or of other options; begins anew"
    assert message in [each.getMessage() for each in caplog.records]
    if "shuffle" not in options:
        np.testing.assert_array_equal(contents(stopped / "a.h5")[0], source.read(0, source.n_rows).X)


KILLED = """
import os, signal, sys
from linadd.sources import convert, open_source, part_file
part_file.CHECKPOINT_BYTES, convert.CHUNK_BYTES = 2000, 1000
def progress(done, total):
    if done >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
options = {"shuffle": True, "seed": 3} if sys.argv[4] == "shuffled" else {}
convert.convert(open_source(sys.argv[1], chunk_rows=5), sys.argv[2], progress=progress, **options)
"""


@pytest.mark.parametrize("order", ["in order", "shuffled"])
def test_a_killed_process_is_gone_on_with(tmp_path, order):
    path, options = file_of(tmp_path, 400), {"shuffle": True, "seed": 3} if order == "shuffled" else {}
    command = [sys.executable, "-c", KILLED, str(path), str(tmp_path / "a.h5"), "190", order]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert convert(open_source(path), tmp_path / "a.h5", **options)["resumed_at"] > 0
    convert(open_source(path), tmp_path / "b.h5", **options)
    for one, two in zip(contents(tmp_path / "a.h5"), contents(tmp_path / "b.h5"), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("is_verified", [True, False])
def test_what_was_written_is_read_back(tmp_path, monkeypatch, is_verified):
    X, y, _ = position_table(30, 2)
    checkpoint = part_file.PartFile.checkpoint

    def turn_a_bit(self, state):
        checkpoint(self, state)
        content = bytearray(self.path.read_bytes())
        content[content.index(X[3:4].tobytes())] ^= 1
        self.path.write_bytes(content)

    monkeypatch.setattr(part_file.PartFile, "checkpoint", turn_a_bit)
    options = {"codec": "none", "verify": is_verified}
    if not is_verified:
        assert convert(open_source(X, LABELS[y]), tmp_path / "a.h5", **options)["verified"] is False
        return
    wrong = bytearray(X.tobytes())
    wrong[48] ^= 1
    values = f"checksum {zlib.crc32(wrong):08x} instead of {zlib.crc32(X.tobytes()):08x}"
    message = (
        f"{tmp_path}/a.h5.part: X as read back differs from what was written ({values}): a disk or memory at fault. "
        "Write it elsewhere."
    )
    assert refusal(convert, open_source(X, LABELS[y]), tmp_path / "a.h5", **options) == message
    assert os.listdir(tmp_path) == []


def test_checksums_do_not_depend_on_batches():
    numbers, texts = np.arange(20.0).reshape(10, 2), np.array(["", "é", "a\nb", "cat"] * 3)
    for entries in (numbers, numbers[:, 0], numbers.astype(np.uint8), texts):
        whole = module.checksum(entries)
        for step in (1, 3, 7):
            value = 0
            for start in range(0, len(entries), step):
                value = module.checksum(entries[start : start + step], value)
            assert value == whole
    assert module.checksum(np.array(["ab", ""])) != module.checksum(np.array(["a", "b"]))


def test_labels_that_change_their_type_are_named(tmp_path):
    source = open_source(np.ones((4, 1)), [1, 2, 3, 4], chunk_rows=2)
    read = source._read

    def mixed(start, stop):
        chunk = read(start, stop)
        chunk.y = chunk.y if start == 0 else chunk.y + 0.5
        return chunk

    source._read = mixed
    message = "array, row 3: y is int64 above and float64 from here on. Store it as one type."
    assert refusal(convert, source, tmp_path / "a.h5") == message


def test_messages(tmp_path):
    source = open_source(np.ones((2, 2)))
    path = tmp_path / "a.h5"
    message = "codec is 'gzip'. It is one of lz4, zstd, none."
    assert refusal(convert, source, path, codec="gzip", error=ConfigError) == message
    message = "dtype must be an integer or float type of at most 64 bits, as uint8, int16 or float32."
    for dtype in ("complex64", "text", "bool", "longdouble", object):
        assert refusal(convert, source, path, dtype=dtype, error=ConfigError) == message
    message = "chunk_rows is 0. It must be at least 1."
    assert refusal(convert, source, path, chunk_rows=0, error=ConfigError) == message
    wide = open_source(scipy.sparse.csr_array((2, 1 << 30)))
    message = (
        "a chunk of 1 rows takes 8,589,934,592 bytes, more than HDF5's 4,294,967,295. "
        "Lower --chunk-rows, or choose fewer columns by --features."
    )
    assert refusal(convert, wide, path, error=ConfigError) == message
    assert refusal(convert, source, path, seed=-1, error=ConfigError) == "seed is -1. It must not be negative."
    message = f"{tmp_path}/no/a.h5: the folder '{tmp_path}/no' does not exist. Create it first."
    assert refusal(convert, source, tmp_path / "no" / "a.h5") == message
