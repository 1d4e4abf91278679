"""Inputs of users.md that concern the whole of linadd: memory of a process, dtypes as stored, dask, odd values.

Memory is that of a process of its own: its peak less its peak after the same run on 100 rows.
"""

import json
import subprocess
import sys

import h5py
import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from linadd import AdditiveClassifier
from linadd.errors import DataError
from linadd.options import Options
from linadd.sources import open_source
from linadd.train import train
from tests.solvers.problems import fit

MB = 10**6

# Rows by number, made when they are read: standard normal, the first of them large in the rare class.
RUN = """
import json, resource, sys
import numpy as np
from linadd.chunks import Chunk
from linadd.options import Options
from linadd.sources import Source
from linadd.train import train

n_rows, n_features, share, choices = json.loads(sys.argv[1])

class Rows(Source):
    origin, dtype, has_labels = "generated", np.dtype(np.float32), True

    def __init__(self, n_rows):
        self.n_rows, self.n_features, self.chunk_rows = n_rows, n_features, 5000

    def group(self, i):
        rng = np.random.default_rng([7, i])
        y = rng.permutation(np.arange(1000) < round(1000 * share)).astype(int)
        X = rng.random((1000, n_features), dtype=np.float32)
        X[:, 0] += y
        return X, y

    def _read(self, start, stop):
        groups = [self.group(i) for i in range(start // 1000, (stop - 1) // 1000 + 1)]
        rows = slice(start - start // 1000 * 1000, stop - start // 1000 * 1000)
        X, y = (np.concatenate(parts)[rows] for parts in zip(*groups))
        return Chunk(X, y, None, start, self.origin)

    def fingerprint(self):
        return {"digest": "none"}

def peak():
    # Linux keeps the peak of the parent in ru_maxrss across fork and exec; VmHWM is the process's own.
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024

options = Options(**choices)
train(Rows(1000), options)
before = peak()
model = train(Rows(n_rows), options)
first = Rows(n_rows).read(0, 5000)
found = model.predict(first.X) == 1
print(json.dumps({"rise": peak() - before, "gap": model.summary["gap"], "recall": float(found[first.y == 1].mean()),
                  "wrong": float(found[first.y == 0].mean()), "plan": model.summary["plan"]}))
"""


def run(n_rows, n_features, share=0.5, **choices):
    """What a process of its own finds when it trains on generated rows."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the peak memory of a process is read from Linux's /proc")
    arguments = json.dumps([n_rows, n_features, share, {"solver": "dual-cd", "max_epochs": 3} | choices])
    command = [sys.executable, "-W", "ignore", "-c", RUN, arguments]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_memory_is_bounded_whatever_the_embedding():  # users.md C01
    """100,000 x 20: an embedding of 20 knots and degree 3 would be 368 MB dense, 64 MB sparse in float32."""
    found = run(100_000, 20, n_bins=19, degree=3, memory_limit=40 * MB)
    assert found["rise"] < 64 * MB and found["recall"] > 0.95 and found["wrong"] < 0.05


@pytest.mark.parametrize(
    ("n_rows", "memory_limit"),
    [(60_000, 8 * MB), pytest.param(1_073_122, 200 * MB, marks=pytest.mark.slow)],
)
def test_rare_positives_in_rows_that_never_lie_in_memory(n_rows, memory_limit):  # users.md C02
    """66 features, 0.3 % positives; the rows would take 16 MB, or 283 MB."""
    found = run(n_rows, 66, share=0.003, memory_limit=memory_limit, class_weight="balanced")
    assert not found["plan"]["fits"]
    assert found["rise"] < memory_limit + 30 * MB and found["recall"] > 0.95 and found["wrong"] < 0.05


@pytest.mark.parametrize("n_rows", [60_000, pytest.param(500_000, marks=pytest.mark.slow)])
def test_threads_share_the_rows(n_rows):  # users.md C03
    """n x 50: two threads take no second copy of the 12 MB, or 100 MB, of rows."""
    one, two = (run(n_rows, 50, n_jobs=n_jobs, max_epochs=2) for n_jobs in (1, 2))
    rows = n_rows * 50 * 4
    assert one["plan"]["fits"] and one["gap"] == two["gap"]
    assert two["rise"] < one["rise"] + rows / 2


def test_pixels_stay_bytes_until_a_chunk_is_read(tmp_path):  # users.md C05
    """uint8 in HDF5: read as such, and the model of the same values as float64, to the bit."""
    X, y = load_digits(return_X_y=True)
    X, y = np.minimum(X[y < 3] * 16, 255), y[y < 3]
    models, sources = [], []
    for dtype in ("u1", "f8"):
        with h5py.File(tmp_path / f"{dtype}.h5", "w") as file:
            file["X"], file["y"] = X.astype(dtype), y
        source = open_source(tmp_path / f"{dtype}.h5")
        sources.append(source)
        options = Options(max_epochs=1, tol=0.5, solver="dual-cd", memory_limit=100_000)
        with pytest.warns():  # constant columns, and a short run
            models.append(train(source, options))
    assert sources[0].dtype == sources[0].read(0, 5).X.dtype == np.uint8
    assert sources[0].chunk_rows == 8 * sources[1].chunk_rows
    assert models[0].digest == models[1].digest and np.mean(models[0].predict(X) == y) > 0.95


def test_three_classes_by_dask():  # users.md C14
    import dask.array as da

    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    X, y = X[order], y[order]
    by_dask = AdditiveClassifier().fit(da.from_array(X, chunks=(40, 2)), da.from_array(y, chunks=50))
    assert by_dask.classes_.tolist() == [0, 1, 2]
    assert by_dask.score(X, y) > 0.95
    np.testing.assert_array_equal(by_dask.coef_, AdditiveClassifier().fit(X, y).coef_)


def test_a_level_that_was_never_seen(recwarn):  # users.md C30
    """Levels 0, 1, 2 in training, 3 when scored: as level 2, refused by name, or scored and told."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (300, 1)).astype(float)
    model = fit(X, (X[:, 0] > 0).astype(int))
    at_2, at_3 = model.decision_function([[2.0], [3.0]])
    assert at_2 == at_3
    model.range_policy = "error"
    with pytest.raises(DataError, match=r"row 1, column 1: the value 3\.0 is outside"):
        model.decision_function([[3.0]])
    model.range_policy = "report"
    assert model.decision_function([[3.0]]) == at_2
    assert "outside the training range" in str(recwarn.pop().message)


@pytest.mark.parametrize("rows", [slice(3, None, 20), slice(None)])
def test_missing_values_are_refused_with_their_place(rows):  # users.md C32
    """5 % of a column, or all of it: never a model that is NaN, or that knows nothing of it."""
    rng = np.random.default_rng(0)
    X = rng.random((200, 3))
    y = (X[:, 0] > 0.5).astype(int)
    model = fit(X, y)
    X[rows, 1] = np.nan
    first = 4 if rows.start else 1
    for call in (lambda: fit(X, y), lambda: model.decision_function(X)):
        with pytest.raises(DataError, match=f"row {first}, column 2: the value is nan") as caught:
            call()
        assert "fill or drop" in str(caught.value)
