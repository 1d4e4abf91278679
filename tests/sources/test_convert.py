"""Any source to the native file: every row once, in order or shuffled, values held exactly, or one line."""

import os
import threading

import h5py
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from linadd.errors import ConfigError
from linadd.sources import convert as module
from linadd.sources import open_source
from linadd.sources.convert import CODECS, convert, file_chunk_rows
from tests.checks.check_source import BUILDERS, WITHOUT_WEIGHTS, open_table, position_table, refusal

LABELS = np.array(["cat", "dog", "épagneul"])


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
    dtype=st.sampled_from(["uint8", "int16", "int64", "float32", "float64"]),
    codec=st.sampled_from(CODECS),
    chunk_rows=st.integers(1, 50) | st.none(),
    reader_rows=st.integers(1, 50),
    is_shuffled=st.booleans(),
    bucket_bytes=st.integers(1, 2000),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_round_trip(scratch, shape, dtype, codec, chunk_rows, reader_rows, is_shuffled, bucket_bytes):
    X, y, weight = position_table(*shape, dtype)
    source = open_source(X, LABELS[y], weights=weight, chunk_rows=reader_rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BUCKET_BYTES", bucket_bytes)
        patch.setattr(module, "DRAWN_ROWS", 7)
        options = {"codec": codec, "chunk_rows": chunk_rows, "shuffle": is_shuffled, "seed": 5}
        summary = convert(source, scratch, **options)
    assert summary == {
        "path": str(scratch),
        "n_rows": shape[0],
        "n_features": shape[1],
        "dtype": dtype,
        "bytes": scratch.stat().st_size,
    }
    found_X, found_y, found_weight = contents(scratch)
    rows = (found_weight * 4).astype(int)
    assert sorted(rows) == list(range(shape[0])) and (is_shuffled or (np.diff(rows) == 1).all())
    assert found_X.dtype == dtype
    np.testing.assert_array_equal(found_X, X[rows])
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


def test_progress(tmp_path):
    source = open_source(position_table(10, 2)[0], chunk_rows=4)
    for is_shuffled, expected in ((False, [4, 8, 10]), (True, [2, 4, 5, 10])):
        seen = []
        convert(source, tmp_path / "a.h5", shuffle=is_shuffled, progress=lambda *at, seen=seen: seen.append(at))
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
def test_a_failure_keeps_the_target_and_leaves_nothing_else(tmp_path, failure, is_shuffled):
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
    assert refusal(convert, source, path, seed=-1, error=ConfigError) == "seed is -1. It must not be negative."
    message = f"{tmp_path}/no/a.h5: the folder '{tmp_path}/no' does not exist. Create it first."
    assert refusal(convert, source, tmp_path / "no" / "a.h5") == message
