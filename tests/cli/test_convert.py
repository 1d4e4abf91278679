"""`linadd convert`: its options reach the writer, and what it cannot do is said before anything is read."""

import os
import signal

import h5py
import numpy as np
import pytest

from linadd.sources import convert, part_file
from tests.cli.conftest import NAMES, rows_and_labels, write_h5, write_libsvm


def test_rows_are_written_as_asked(linadd, data, tmp_path):
    out = tmp_path / "rows.h5"
    options = ["--dtype", "float64", "--codec", "none", "--chunk-rows", "7", "--where", "part=1"]
    run = linadd("convert", data / "train.h5", out, *options)
    X, y = rows_and_labels()
    with h5py.File(out) as file:
        assert (file["X"][:] == X[1::3]).all() and (file["y"][:] == y[1::3]).all()
        assert file["X"].dtype == np.float64 and file["X"].chunks == (7, 3) and file["X"].compression is None
        assert file.attrs["feature_names"].tolist() == NAMES
    assert run.out.startswith(f"{out}: 100 rows of 3 features, float64, ") and run.status == 0
    assert run.out.endswith(", verified\n")
    assert "verified" not in linadd("convert", data / "train.h5", out, "--no-verify").out


def test_names_and_labels_are_changed(linadd, data, tmp_path):
    out = tmp_path / "rows.h5"
    options = ["--drop", "dose", "--rename", "age=years", "--rename", "height=x=1", "--label", "0=-1", "--label", "7=2"]
    run = linadd("convert", data / "train.h5", out, *options)
    X, y = rows_and_labels()
    with h5py.File(out) as file:
        assert file.attrs["feature_names"].tolist() == ["years", "x=1"]
        assert (file["X"][:] == X[:, :2]).all() and (file["y"][:] == np.where(y == 0, -1, 1)).all()
    assert run.err == "warning: --label 7=2: no row has the label '7'.\n"


def test_a_stop_is_gone_on_with(linadd, data, tmp_path, monkeypatch):
    """Ctrl-C ends the command behind a batch; the same command then finds the part."""
    out, calls = tmp_path / "rows.h5", []
    monkeypatch.setattr(part_file, "CHECKPOINT_BYTES", 1)
    read_batches = convert.read_batches

    def interrupted(source, dtype, first):
        for X, y, weight in read_batches(source, dtype, first):
            for start in range(0, len(X), 100):
                calls.append(start)
                if len(calls) == 2:
                    os.kill(os.getpid(), signal.SIGINT)
                rows = slice(start, start + 100)
                yield X[rows], y[rows], weight

    monkeypatch.setattr(convert, "read_batches", interrupted)
    run = linadd("convert", data / "train.h5", out)
    assert run.status == 130 and sorted(os.listdir(tmp_path)) == ["rows.h5.part", "rows.h5.part.log"]
    assert run.err.splitlines()[-3:] == [
        "Stopping after these rows; Ctrl-C again aborts.",
        f"{out}.part: keeps what was written; the same command goes on from there",
        "error: interrupted.",
    ]
    monkeypatch.setattr(convert, "read_batches", read_batches)
    run = linadd("convert", data / "train.h5", out, "--json")
    assert run.record["resumed_at"] == 200 and run.record["verified"] is True
    assert f"{out}.part: goes on at row 201 of 300" in run.err.splitlines()
    with h5py.File(out) as file:
        assert (file["X"][:] == rows_and_labels()[0]).all()


def test_text_becomes_hdf5(linadd, tmp_path):
    X, y = rows_and_labels(40)
    path = write_libsvm(tmp_path / "rows.libsvm", X, y)
    record = linadd("convert", path, tmp_path / "rows.h5", "--json").record
    expected = {"path": f"{tmp_path}/rows.h5", "n_rows": 40, "n_features": 3, "dtype": "float64", "source": str(path)}
    assert expected.items() <= record.items() and record["bytes"] == (tmp_path / "rows.h5").stat().st_size


def test_rows_are_shuffled_by_the_seed(linadd, data, tmp_path):
    X, _ = rows_and_labels()
    orders = []
    for seed in (0, 0, 1):
        linadd("convert", data / "train.h5", tmp_path / "rows.h5", "--shuffle", "--seed", seed)
        with h5py.File(tmp_path / "rows.h5") as file:
            orders.append(file["X"][:])
            assert (np.sort(orders[-1], axis=0) == np.sort(X, axis=0)).all()
    assert (orders[0] == orders[1]).all() and (orders[0] != orders[2]).any() and (orders[0] != X).any()


def test_the_file_that_is_read_is_not_replaced(linadd, tmp_path):
    """It may hold more than the rows that were asked for."""
    X, y = rows_and_labels(20)
    path = write_h5(tmp_path / "rows.h5", **{"a/X": X, "a/y": y, "b/X": X})
    before = path.read_bytes()
    run = linadd("convert", f"{path}::a", path)
    assert (run.status, run.err) == (2, f"error: {path}: would be overwritten while it is read. Give another name.\n")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("rows.csv", "", "rows.csv: convert writes HDF5. Give a name that ends in .h5 or .hdf5."),
        ("rows.h5", "--codec gzip", "codec is 'gzip'. It is one of lz4, zstd, none."),
        ("rows.h5", "--chunk-rows 0", "chunk_rows is 0. It must be at least 1."),
        ("rows.h5", "--rename age", "--rename age: is not OLD=NEW."),
        ("rows.h5", "--rename age=a --rename age=b", "--rename age=b: gives 'age' a second new name. Give it one."),
        ("rows.h5", "--label 0=1 --label 0=2", "--label 0=2: gives '0' a second new label. Give it one."),
        (
            "rows.h5",
            "--chunk-rows few",
            "Invalid value for '--chunk-rows': 'few' is not an integer. See `linadd convert --help`.",
        ),
    ],
)
def test_a_usage_error_is_one_line_and_2(target, options, message, linadd, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = linadd("convert", data / "train.h5", target, *options.split())
    assert (run.status, run.err) == (2, f"error: {message}\n")
    assert not list(tmp_path.iterdir())


def test_a_value_that_the_type_cannot_hold_is_named(linadd, data, tmp_path):
    run = linadd("convert", data / "train.h5", tmp_path / "rows.h5", "--dtype", "int8")
    value = rows_and_labels()[0][0, 0]
    message = f"value {value} cannot be held by int8. Choose another --dtype."
    assert (run.status, run.err) == (1, f"error: {data}/train.h5, row 1, column 'age': {message}\n")
    assert not list(tmp_path.iterdir())


def test_the_slow_layout_that_is_about_to_change_is_not_warned_of(linadd, tmp_path):
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file.create_dataset("a x", data=np.zeros((40_000, 30), np.float32), chunks=(40_000, 1))
    warned = linadd("doctor", tmp_path / "t.h5", "--x", "a x").out
    assert f"linadd convert {tmp_path / 't.h5'} {tmp_path / 't_rows.h5'} --x 'a x'" in warned
    done = linadd("convert", tmp_path / "t.h5", tmp_path / "t_rows.h5", "--x", "a x")
    assert done.status == 0 and "slow to read" not in done.err
