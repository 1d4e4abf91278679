"""A command runner, and small files that the verbs are run on."""

import json
from typing import NamedTuple

import h5py
import numpy as np
import pytest

from linadd.cli import main

NAMES = ["age", "height", "dose"]


class Run(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def record(self):
        """The object of --json."""
        return json.loads(self.out)


@pytest.fixture
def linadd(capsys):
    """Run a command line in this process."""

    def run(*arguments):
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        return Run(status, *capsys.readouterr())

    return run


def write_h5(path, **arrays):
    """An HDF5 file of named arrays; text is stored as such."""
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            values = np.asarray(values)
            kind = h5py.string_dtype() if values.dtype.kind in "UO" else values.dtype
            file.create_dataset(name, data=values.astype(object) if values.dtype.kind == "U" else values, dtype=kind)
    return path


def write_libsvm(path, X, y):
    """A libsvm text file."""
    rows = [" ".join(f"{j}:{x!r}" for j, x in enumerate(row, 1)) for row in X.tolist()]
    path.write_text("".join(f"{label} {row}\n" for label, row in zip(y, rows, strict=True)))
    return path


def rows_and_labels(n_rows=300, seed=0):
    """Three features in [-1, 1], two classes by the square of the first; about 5 % of the labels are turned."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 3)).astype(np.float32)
    y = (X[:, 0] ** 2 + 0.3 * X[:, 1] > 0.3).astype(np.int64)
    return X, np.where(rng.random(n_rows) < 0.05, 1 - y, y)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A folder with `train.h5` (X, y, part, own_weight) and `test.h5`, whose first value is out of range."""
    folder = tmp_path_factory.mktemp("data")
    X, y = rows_and_labels()
    write_h5(folder / "train.h5", X=X, y=y, part=np.arange(len(y)) % 3, own_weight=np.linspace(0, 2, len(y)))
    X, y = rows_and_labels(200, seed=1)
    X[0, 0] = 7.5
    write_h5(folder / "test.h5", X=X, y=y, part=np.arange(len(y)) % 2)
    for name in ("train.h5", "test.h5"):
        with h5py.File(folder / name, "r+") as file:
            file["X"].attrs["feature_names"] = NAMES
    return folder


@pytest.fixture(scope="session")
def model(data):
    """A logistic model of `train.h5`."""
    path = data / "model.safetensors"
    options = ["--n-bins", "4", "--knots", "uniform", "--solver", "dual-cd", "--quiet"]
    assert main(["train", str(data / "train.h5"), str(path), *options]) == 0
    return path


@pytest.fixture(scope="session")
def kernel_model(data):
    """A model of a kernel classifier."""
    from linadd.sparse_kernel import LeastSquaresProbabilisticClassifier

    path = data / "kernel.safetensors"
    LeastSquaresProbabilisticClassifier(random_state=0).fit(*rows_and_labels(40)).save(path)
    return path


@pytest.fixture(scope="session")
def three_classes(data):
    """A model of three classes with text labels, of hinge loss: `three.h5`, `three.safetensors`."""
    X, y = rows_and_labels()
    labels = np.array(["low", "mid — é", "high"])[y + (X[:, 2] > 0.5)]
    write_h5(data / "three.h5", X=X, y=labels)
    path = data / "three.safetensors"
    options = ["--n-bins", "4", "--knots", "uniform", "--loss", "hinge", "--quiet", "--max-epochs", "200"]
    assert main(["train", str(data / "three.h5"), str(path), *options]) == 0
    return path
