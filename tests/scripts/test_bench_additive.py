"""The benchmark scripts of the additive trainer run, at toy size: they check their answers themselves."""

import importlib
import json
from pathlib import Path

import h5py
import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def run(capsys, monkeypatch):
    """A function that gives what a script's `main` prints with --json."""
    monkeypatch.chdir(SCRIPTS.parent)
    monkeypatch.syspath_prepend(SCRIPTS)

    def call(name, *arguments):
        importlib.import_module(f"scripts.{name}").main([*map(str, arguments), "--json"])
        return json.loads(capsys.readouterr().out)

    return call


def labelled(n_rows, n_classes, rng):
    """Rows of 20 features, one of which tells each class apart, and labels."""
    y = rng.integers(0, n_classes, n_rows)
    X = rng.random((n_rows, 20), np.float32)
    X[np.arange(n_rows), y] += 0.6
    return X, y


def test_bench_rows(run):
    figures = run("bench_rows", "--rows", 60, "--features", 21, "--repeats", 1)
    assert set(figures["update, 1 output"]) == {"naive", "closed form", "fast"}


def test_bench_passes(run, tmp_path):
    random = np.random.default_rng(0)
    X = random.standard_normal((900, 3)).astype(np.float32)
    y = np.where(X[:, 0] ** 2 + X[:, 1] + random.standard_normal(900) > 1, 1, -1).astype(np.int8)
    np.savez(tmp_path / "ijcnn1.npz", X_train=X, y_train=y)
    records = run("bench_passes", "--data", tmp_path, "--C", 0.1, 1)
    assert [(record["data"], record["C"]) for record in records] == [("ijcnn1", 0.1), ("ijcnn1", 1.0)] * 3
    assert all(record["converged"] and record["gap"] <= 1e-3 for record in records)
    assert all(record["reads"] > record["passes"] for record in records)  # the blocks are read, not kept


def test_bench_passes_names_the_data_that_are_missing(tmp_path, capsys):
    importlib.import_module("scripts.bench_passes").main(["--data", str(tmp_path), "--sets", "covertype"])
    assert capsys.readouterr().err == f"covertype: no {tmp_path / 'covertype_397k.npz'}\n"


def test_bench_search(run, tmp_path):
    random = np.random.default_rng(0)
    X = random.standard_normal((12_000, 5)).astype(np.float32)
    y = np.where(X[:, 0] ** 2 + X[:, 1] + random.standard_normal(12_000) > 1, 1, -1).astype(np.int8)
    np.savez(tmp_path / "ijcnn1.npz", X_train=X, y_train=y)
    own = ("--rows", 12_000, "--losses", "squared_hinge", "--max-epochs", 2)
    rows = run("bench_search", "--data", tmp_path, *own)
    assert [row["what"] for row in rows] == ["path", "path", "grid", "grid", "in turn"]
    path, _, in_memory, in_blocks, in_turn = rows
    for row in rows[:2]:  # held-out scores, and certificates of those that are done early
        assert row["base_reads"] < row["reads"] <= row["base_reads"] + 3
    assert in_memory["reads"] < 0.5 * in_memory["base_reads"] and in_blocks["reads"] < in_blocks["base_reads"]
    assert in_turn["reads"] > in_turn["base_reads"] and all(row["ratio"] > 0 for row in (path, in_turn))


@pytest.fixture
def pedestrians(tmp_path):
    """A file of the layout of data_prep/daimler.py."""
    rng = np.random.default_rng(0)
    with h5py.File(tmp_path / "toy.h5", "w") as file:
        for group, n_parts in (("train", 3), ("test", 2)):
            file[f"{group}/X"], file[f"{group}/y"] = labelled(6000 * n_parts, 2, rng)
            file[f"{group}/part"] = np.repeat(np.arange(1, n_parts + 1), 6000)
    return tmp_path / "toy.h5"


def test_bench_train(run, pedestrians):
    pytest.importorskip("liblinear", reason="liblinear-official is not installed")
    report = run("bench_train", pedestrians, "--quick", "--repeats", 1)
    assert report["n_rows"] == 240
    assert all(run["gap"] <= 1e-2 for run in report["linadd_runs"].values())
    assert report["fastest"] in report["liblinear"]
    for other in (*report["sklearn"].values(), report["embedding"]):
        assert other["linadd"]["objective"] <= other["objective"] * (1 + 1e-4)
    assert set(report["processes"]) == {"linadd train digits.h5", "linadd --help"}


def test_bench_mnist(run, tmp_path):
    pytest.importorskip("liblinear", reason="liblinear-official is not installed")
    rng = np.random.default_rng(0)
    with h5py.File(tmp_path / "toy.h5", "w") as file:
        for group in ("train", "test"):
            file[f"{group}/X"], file[f"{group}/y"] = labelled(500, 10, rng)
    report = run("bench_mnist", tmp_path / "toy.h5", "--quick")
    assert report["linear_times"][0] > 0 and set(report["runs"]) == {"1", "2"}
    for records in report["runs"].values():
        assert set(records) == {"3", "4"} and all(record["gap"] > 0 for record in records.values())


def test_the_first_stable_count_of_passes(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    first_stable = importlib.import_module("scripts.bench_mnist").first_stable
    errors = {3: 0.009, 4: 0.008, 5: 0.0086, 6: 0.0085, 8: 0.007}
    assert first_stable(errors, 0.0085) == 6
    assert first_stable(errors, 0.009) == 3
    assert first_stable(errors, 0.006) is None


def test_bench_predict(run):
    pytest.importorskip("liblinear", reason="liblinear-official is not installed")
    report = run("bench_predict", "--quick")
    for times in report["times"].values():
        assert {"float32", "uint8", "HDF5 file, float32", "LIBLINEAR predict"} <= set(times)


def test_bench_io(run):
    pytest.importorskip("zarr", reason="zarr is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    report = run("bench_io", "--megabytes", 0.2, "--features", 7, "--repeats", 1)
    assert set(report) == {"hdf5", "hdf5 lz4", "npy", "zarr 2", "zarr 3", "parquet", "libsvm"}
    assert all(record["ratio"] > 0 for record in report.values())
    assert set(report["libsvm"]["megabytes_per_second"]) == {"opening", "reading"}


def test_bench_out_of_core(run):
    report = run("bench_out_of_core", "--quick")
    assert set(report["pass"]) == {"array", "plain HDF5", "lz4 HDF5"}
    assert report["memory"]["bytes"] == 1524 * 656 * 4
    assert set(report["scaling"]["seconds"]) == {"2000", "20000", "200000"}


def test_bench_accuracy(run, tmp_path):
    rng = np.random.default_rng(0)
    sets = {"adult": labelled(400, 2, rng), "credit_default": labelled(20_400, 2, rng)}
    X, y = sets["adult"]
    np.savez(tmp_path / "adult.npz", X_train=X[:300], y_train=y[:300], X_test=X[300:], y_test=y[300:])
    X, y = sets["credit_default"]
    np.savez(tmp_path / "credit_default.npz", X=X, y=y)
    arguments = ("--data", "adult,credit default", "--rows", 300, "--skip-boosters")
    report = run("bench_accuracy", tmp_path, *arguments)
    for figures in report["sets"].values():
        assert figures["n_rows"] == 300
        for record in figures["models"].values():
            assert record["auc"] > 0.8
    assert report["sets"]["adult"]["target"] == 0.92


def test_bench_sparse(run, tmp_path, capsys):
    pytest.importorskip("liblinear", reason="liblinear-official is not installed")
    rng = np.random.default_rng(0)
    X = (rng.random((4000, 8)) < 0.1).astype(np.uint8)
    np.savez(tmp_path / "w8a.npz", X=X, y=np.where(X[:, 0] + X[:, 1] + (rng.random(4000) < 0.05) > 0, 1, -1))
    report = run("bench_sparse", tmp_path, "--quick", "--repeats", 1)["w8a"]
    assert report["shape"] == [160, 8]
    for rows in ("sparse", "dense"):
        assert report[rows]["gap"] <= 1e-2 and report[rows]["accuracy"] > 0.9


def test_bench_estimate(run):
    figures = run("bench_estimate", "--factor", 0.01, "--repeats", 1, "--shapes", "in memory")["in memory"]
    assert figures["ratios"].keys() == {"peak_memory_bytes", "seconds"}
    assert figures["estimate"]["n_rows"] == 3000 and len(figures["real"]["seconds"]) == 1
