"""scripts/gallery.py makes the pictures of docs/gallery.md; here from a few rows."""

import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
MOST_BYTES = 150_000

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def stand_ins(folder):
    """Files of the form of adult.npz and of prepared pedestrians, of random values."""
    rng = np.random.default_rng(0)
    X = rng.random((160, 4)).astype(np.float32)
    y = (X[:, 0] > 0.6).astype(int)
    np.savez(folder / "adult.npz", X_train=X, y_train=y, feature_names=["age", "b=x", "c", "d"])
    names = [f"level{level}.unshifted.row{r}.col{c}.angle{a}" for level, rows, columns in ((0, 1, 1), (2, 12, 6))
             for r in range(rows) for c in range(columns) for a in range(8)]  # fmt: skip
    with h5py.File(folder / "few.h5", "w") as file:
        file.create_dataset("train/X", data=rng.random((160, len(names))).astype(np.float32), track_order=True)
        file["train/X"].attrs.create("feature_names", names, dtype=h5py.string_dtype())
        file["train/y"] = rng.integers(0, 2, 160) * 2 - 1
    return ["--adult", folder / "adult.npz", "--pedestrians", folder / "few.h5"]


def test_every_picture_is_made(tmp_path):
    command = [sys.executable, ROOT / "scripts/gallery.py", "--out", tmp_path / "out", "--rows", "80"]
    command += stand_ins(tmp_path)
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    shown = set(re.findall(r"images/(\w+\.png)", (ROOT / "docs/gallery.md").read_text("utf-8")))
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert shown == {name for name in made if name.endswith(".png")} and {"digits.html", "adult.html"} <= made
    told = [line for line in run.stdout.splitlines() if line.startswith("linadd plot")]
    assert len(told) == len(shown) + 2


def test_the_pictures_of_the_gallery_are_there_and_small():
    text = (ROOT / "docs/gallery.md").read_text("utf-8")
    pictures = re.findall(r"\((images/[^)]+)\)", text)
    assert pictures
    for picture in pictures:
        assert 0 < (ROOT / "docs" / picture).stat().st_size < MOST_BYTES
