"""Estimates: memory within a quarter of a real run, time within a factor of two, from a few rows of any file."""

import json
import subprocess
import sys

import h5py
import numpy as np
import pytest
import scipy.sparse

from linadd import estimate as module
from linadd.errors import ConfigError, DataError
from linadd.estimate import estimate
from linadd.options import Options
from linadd.sources import open_source
from linadd.sources.arrays import ArraySource


class CountedSource(ArraySource):
    """Rows that are counted as they are read."""

    n_read = 0

    def _read(self, start, stop):
        self.n_read += stop - start
        return super()._read(start, stop)


def table(n_rows=3000, n_features=6, n_classes=2, seed=0):
    """Features, and labels by the sum of their sizes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)).astype(np.float32)
    score = np.abs(X[:, :4]).sum(axis=1) + 0.3 * rng.standard_normal(n_rows)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def test_a_run_in_memory():
    X, y = table()
    found = estimate(open_source(X, y), Options(loss="hinge", n_bins=5, knots="uniform"))
    assert found.plan.fits and found.bytes_per_pass == 0 and found.memory["rows"] == 4 * X.size + 8 * len(X)
    assert (found.solver, found.n_classes, found.is_reached, found.probe_rows) == ("dual-cd", 2, True, 3000)
    assert found.seconds > found.passes * found.seconds_per_pass > 0
    assert 3 <= found.reads < 2 + found.passes


def test_a_run_in_blocks(tmp_path):
    X, y = table()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"], file["y"] = X, y
    found = estimate(open_source(tmp_path / "a.h5"), Options(loss="hinge", n_bins=5, memory_limit=80_000))
    assert not found.plan.fits and found.plan.n_sweeps == 3
    assert found.bytes_per_pass == X.nbytes and found.reads > found.passes + 2
    assert found.memory["rows"] < 80_000 and found.memory["read ahead"] < 80_000


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_no_more_rows_are_read_than_the_probe_and_some_chunks(form, monkeypatch):
    monkeypatch.setattr(module, "PROBE_VALUES", 1800)
    X, y = table(20_000)
    X *= np.random.default_rng(0).random(X.shape) < 0.15
    data = form(X) if form is not np.asarray else X
    source = CountedSource(X, y) if form is np.asarray else open_source(data, y)
    found = estimate(source, Options(n_bins=4, memory_limit=300_000, rows="auto"))
    assert found.probe_rows == 296 if form is np.asarray else 296 < found.probe_rows < 2500
    assert found.plan.n_rows == 20_000 and found.plan.is_sparse == scipy.sparse.issparse(data)
    if form is np.asarray:
        assert source.n_read <= found.probe_rows + 1 + module.N_CHUNKS * found.plan.chunk_rows


def test_newton_is_foreseen_where_it_would_run():
    X, y = table(400)
    assert estimate(open_source(X, y), Options(n_bins=4)).solver == "newton"
    assert estimate(open_source(X, y), Options(n_bins=4, memory_limit=16_000)).solver == "dual-cd"


def test_sgd_makes_all_passes():
    X, y = table(400)
    found = estimate(open_source(X, y), Options(n_bins=4, solver="sgd", max_epochs=7))
    assert (found.passes, found.is_reached, found.reads) == (7, False, 2)


def test_a_probe_that_takes_too_long_ends(monkeypatch):
    monkeypatch.setattr(module, "PROBE_SECONDS", 0.0)
    X, y = table(400)
    found = estimate(open_source(X, y), Options(loss="hinge", tol=1e-12, max_epochs=40))
    assert found.passes == 40 and not found.is_reached


def test_code_is_loaded_before_it_is_timed(monkeypatch):
    """The first run, of one pass, is not told to the clock."""
    X, y = table(400)
    runs = []
    solver = module.SOLVERS["dual-cd"]

    def solve(problem, run):
        runs.append((run.max_epochs, run.on_epoch.__self__))
        return solver.solve(problem, run)

    monkeypatch.setitem(module.SOLVERS, "dual-cd", solver._replace(solve=solve))
    estimate(open_source(X, y), Options(loss="hinge", max_epochs=9))
    (first, silent), (second, clock) = runs
    assert (first, second) == (1, 9) and not isinstance(silent, module.Clock) and isinstance(clock, module.Clock)


def test_what_cannot_be_foreseen_is_said(monkeypatch):
    X, y = table(400)
    with pytest.raises(ConfigError) as caught:
        estimate(open_source(X, y), Options(solver="liblinear"))
    message = "solver: 'liblinear' holds all rows and makes no passes. Estimate dual-cd, newton or sgd."
    assert str(caught.value) == message
    with pytest.raises(DataError) as caught:
        estimate(open_source(X), Options())
    assert str(caught.value) == "array: has no labels. Give y."
    monkeypatch.setattr(module, "MOST_ROWS", 80)
    X[397, 2] = np.nan
    with pytest.raises(DataError) as caught:
        estimate(open_source(X, y), Options())
    assert (caught.value.row, caught.value.column) == (398, 3)


def child(*arguments):
    """The object that a command prints, in a process of its own."""
    command = [sys.executable, "-m", "linadd", *map(str, arguments), "--json", "--quiet"]
    return json.loads(subprocess.run(command, capture_output=True, text=True).stdout)


SHAPES = {
    "in memory": ((40_000, 200, 2), "--loss hinge"),
    "in blocks": ((60_000, 200, 2), "--loss hinge --memory-limit 60MB"),
    "newton": ((60_000, 150, 2), ""),
    "many classes": ((30_000, 20, 100), "--loss hinge"),
    "wide": ((1500, 6000, 2), "--loss hinge"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="the resident memory is read from /proc")
@pytest.mark.parametrize("name", SHAPES)
def test_the_memory_of_a_run_is_foreseen(name, tmp_path):
    shape, options = SHAPES[name]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"], file["y"] = table(*shape)
    with h5py.File(tmp_path / "few.h5", "w") as file:
        file["X"], file["y"] = table(5 * shape[2] + 100, *shape[1:])
    common = [*options.split(), "--max-epochs", "2"]
    # First the few rows, which compile what all need.
    least, real = (
        child("train", tmp_path / name, tmp_path / "m", *common)["peak_memory_bytes"] for name in ("few.h5", "a.h5")
    )
    found = child("estimate", tmp_path / "a.h5", *common)
    assert abs(found["peak_memory_bytes"] - real) < 0.25 * real
    assert 0.5 < found["data_bytes"] / (real - least) < 2  # the program itself varies by 15 MB


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_the_time_of_a_run_is_foreseen(name, tmp_path):
    """By the clock: for a machine that does nothing else."""
    (n_rows, n_features, n_classes), options = SHAPES[name]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"], file["y"] = table(4 * n_rows, n_features, n_classes)
    real = child("train", tmp_path / "a.h5", tmp_path / "m", "--no-cache", *options.split())
    found = child("estimate", tmp_path / "a.h5", *options.split())
    assert 0.5 < found["seconds"] / real["seconds"] < 2
