"""scripts/export_weights.py runs as its docstring says, and its plain scores are the model's."""

import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "export_weights.py"


def run(*arguments):
    """The script's lines of output."""
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def two_classes(tmp_path):
    """An HDF5 file with an even feature and one of many zeros, which gets knots of its own."""
    rng = np.random.default_rng(0)
    X = np.stack([rng.uniform(-1, 1, 400), np.maximum(rng.standard_normal(400), 0)], axis=1)
    path = tmp_path / "train.h5"
    with h5py.File(path, "w") as file:
        file["X"], file["y"] = X, (X[:, 0] ** 2 + X[:, 1] > 0.5).astype(int)
    return path


def check_output(lines, folder, least_accuracy):
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "model.npz", "model.safetensors"]
    assert [re.sub(r"[\d.]+e-\d+", "E", line) for line in lines[:2]] == [
        f"{folder / 'model.npz'}: 32 check rows within E",
        f"{folder / 'model.json'}: 32 check rows within E",
    ]
    for line in lines[2:4]:
        assert float(re.search(r"differ from the model's by (\S+) of the largest", line)[1]) < 1e-12
    assert float(lines[4].removeprefix("accuracy on the training rows: ")) > least_accuracy


def test_digits_are_scored_like_the_model_scores_them(tmp_path):
    check_output(run("--out", tmp_path / "weights"), tmp_path / "weights", least_accuracy=0.95)


def test_a_file_of_two_classes_is_scored_like_the_model_scores_it(two_classes, tmp_path):
    check_output(run(two_classes, "--out", tmp_path / "weights"), tmp_path / "weights", least_accuracy=0.9)
