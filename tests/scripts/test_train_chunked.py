"""scripts/train_chunked.py runs as its docstring says; its stream is the one-pass training of the command line."""

import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from linadd.cli import main
from linadd.models import load_model

SCRIPT = Path(__file__).parents[2] / "scripts" / "train_chunked.py"


def run(*arguments, cwd):
    """The script's lines of output."""
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_bundled_example(tmp_path):
    lines = run(cwd=tmp_path)
    fed = [re.fullmatch(r" *([\d,]+) rows fed: ([\d.]+)% of the test rows wrong", line) for line in lines[:-2]]
    assert [match[1] for match in fed] == ["200", "400", "600", "800", "1,000", "1,200", "1,347"]
    assert float(fed[-1][2]) < 5 < float(fed[0][2])
    assert lines[-2] == f"chunked.safetensors: {fed[-1][2]}% of the test rows wrong"
    one_call = re.fullmatch(r"fit, \d+ passes, gap 0\.00\d: ([\d.]+)% of the test rows wrong", lines[-1])
    assert float(one_call[1]) < 4
    assert [path.name for path in tmp_path.iterdir()] == ["chunked.safetensors"]


@pytest.mark.parametrize("chunk_rows", ["70", "1000"])
def test_a_file_of_ones_own(chunk_rows, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    with h5py.File(tmp_path / "train.h5", "w") as file:
        file["X"], file["y"], file["weight"] = X, (X[:, 0] ** 2 > 0.3).astype(int), rng.random(400)
    run("train.h5", "--chunk-rows", chunk_rows, "--out", "a.safetensors", cwd=tmp_path)
    options = ["--loss", "squared_hinge", "--solver", "sgd", "--max-epochs", "1", "--no-shuffle", "--quiet"]
    assert main(["train", str(tmp_path / "train.h5"), str(tmp_path / "b.safetensors"), *options]) == 0
    fed, trained = (load_model(tmp_path / f"{name}.safetensors") for name in "ab")
    assert (fed.coef == trained.coef).all() and (fed.intercept == trained.intercept).all()
