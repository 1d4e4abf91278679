"""The benchmark scripts of the additive trainer run, at toy size: they check their answers themselves."""

import importlib
import json
from pathlib import Path

import h5py
import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def run(name, arguments, capsys):
    """What a script's `main` prints with --json."""
    importlib.import_module(f"scripts.{name}").main([*arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def test_bench_rows(capsys):
    figures = run("bench_rows", ["--rows", "60", "--features", "21", "--repeats", "1"], capsys)
    assert set(figures["update, 1 output"]) == {"naive", "closed form", "fast"}


@pytest.fixture
def pedestrians(tmp_path):
    """A file of the layout of data_prep/daimler.py, 20 features that tell the classes apart."""
    random = np.random.default_rng(0)
    with h5py.File(tmp_path / "toy.h5", "w") as file:
        for group, n_parts in (("train", 3), ("test", 2)):
            y = random.integers(0, 2, 6000 * n_parts)
            X = random.random((len(y), 20), np.float32) + 0.3 * y[:, None].astype(np.float32)
            file[f"{group}/X"], file[f"{group}/y"] = X, y
            file[f"{group}/part"] = np.repeat(np.arange(1, n_parts + 1), 6000)
    return tmp_path / "toy.h5"


def test_bench_train(pedestrians, capsys, monkeypatch):
    pytest.importorskip("liblinear", reason="liblinear-official is not installed")
    monkeypatch.chdir(SCRIPTS.parent)
    report = run("bench_train", [str(pedestrians), "--toy", "--repeats", "1"], capsys)
    assert report["n_rows"] == 240
    assert all(run["gap"] <= 1e-2 for run in report["linadd_runs"].values())
    assert report["fastest"] in report["liblinear"]
