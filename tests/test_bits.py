"""The contract of bits: the same values, options and seed give the same model, however they are stored and read."""

import h5py
import numpy as np
import pytest
import scipy.sparse

from linadd.options import Options
from linadd.sources import open_source
from linadd.train import train
from tests.solvers.problems import fit, thin, toy

SOLVERS = ("dual-cd", "sgd")
# Rows in memory; in blocks of a tenth, 3 sweeps each.
LIMITS = {"in memory": 10**9, "in blocks": 30_000}


def rows(n_classes=3):
    """Float32 rows, more than one group of the census."""
    X, y = toy(n_rows=1100, n_features=5, n_classes=n_classes)
    return X.astype(np.float32), y


def options(limit, **choices):
    """Of a short run."""
    return {"max_epochs": 2, "tol": 1e-9, "memory_limit": LIMITS[limit], "certify": True, "n_bins": 7} | choices


@pytest.fixture
def quiet(monkeypatch):
    """Runs that are too short to converge say nothing."""
    monkeypatch.setattr("linadd.train.warn_of_convergence", lambda *args: None)


pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_reader_chunks_and_formats(solver, limit, tmp_path):
    X, y = rows()
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(64, 2), compression="gzip")
        file["y"] = y
    np.save(tmp_path / "rows.npy", X)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    entries = [[f"{j + 1}:{float(value)!r}" for j, value in enumerate(row)] for row in X]
    lines = [" ".join([str(label), *row]) for row, label in zip(entries, y, strict=True)]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    expected = fit(X, y, **options(limit, solver=solver))
    assert expected.summary["plan"]["fits"] == (limit == "in memory")
    sources = [open_source(X, y, chunk_rows=chunk_rows) for chunk_rows in (100, 1000, 5000)]
    for name, labels in (("rows.h5", None), ("rows.npy", y), ("rows.npz", None), ("rows.svm", None)):
        sources.append(open_source(tmp_path / name, labels, chunk_rows=333))
    sources += [open_source(tmp_path / "rows.h5"), open_source(scipy.sparse.csr_array(X), y, chunk_rows=500)]
    for source in sources:
        model = train(source, Options(**options(limit, solver=solver)))
        assert model.digest == expected.digest, source.origin
        assert model.summary["gap"] == expected.summary["gap"] > 0


@pytest.mark.parametrize("limit", {"in memory": 10**9, "in blocks": 13_000})
@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_rows_of_any_storage(solver, limit, tmp_path):
    X, y = rows()
    X = thin(X, 0.2)
    X[40:45] = 0
    stored = scipy.sparse.csr_array(np.where(X == 0, np.where(np.arange(X.size).reshape(X.shape) % 7, 0, 99), X))
    stored.data[stored.data == 99] = 0
    entries = [[f"{j + 1}:{float(row[j])!r}" for j in np.flatnonzero(row)] for row in X]
    lines = [" ".join([str(label), *row]) for row, label in zip(entries, y, strict=True)]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    doubled = scipy.sparse.coo_array((np.tile(0.5 * X[X != 0], 2), np.tile(np.nonzero(X), 2)), X.shape)
    shuffled = scipy.sparse.csr_array(X)
    shuffled.indices[:2], shuffled.data[:2] = shuffled.indices[1::-1].copy(), shuffled.data[1::-1].copy()
    choices = options("in memory", solver=solver) | {"memory_limit": {"in memory": 10**9, "in blocks": 13_000}[limit]}
    expected = fit(scipy.sparse.csr_array(X), y, **choices)
    assert expected.summary["plan"]["row_entries"] == np.count_nonzero(X) / len(X)
    assert expected.summary["plan"]["fits"] == (limit == "in memory")
    sources = [open_source(scipy.sparse.csr_array(X), y, chunk_rows=chunk_rows) for chunk_rows in (1, 100, 1000)]
    sources += [open_source(table, y, chunk_rows=333) for table in (stored, doubled, shuffled)]
    for source in (*sources, open_source(tmp_path / "rows.svm", chunk_rows=77)):
        model = train(source, Options(**choices))
        assert model.digest == expected.digest, source.origin
        assert model.summary["gap"] == expected.summary["gap"] > 0
    assert fit(X, y, **choices, rows="sparse").coef.tobytes() == expected.coef.tobytes()
    assert fit(scipy.sparse.csr_array(X), y, **choices, n_jobs=3).digest == expected.digest


@pytest.mark.parametrize("dtype", ["u1", "i2", "<f4", ">f8", "i8", "f2"])
@pytest.mark.parametrize("encoder", ["bspline", "fourier", "hermite", "identity"])
def test_equal_values_of_any_dtype(encoder, dtype):
    X = np.random.default_rng(0).integers(0, 255, (150, 3))
    y = (X[:, 0] > X[:, 1]).astype(int)
    for memory_limit in (10**9, 3000):
        choices = {"max_epochs": 1, "memory_limit": memory_limit, "encoder": encoder, "loss": "hinge"}
        expected = fit(X.astype(np.float64), y, **choices)
        model = fit(X.astype(dtype), y, **choices)
        assert model.digest == expected.digest
        np.testing.assert_array_equal(model.decision_function(X.astype(dtype)), expected.decision_function(X))


@pytest.mark.parametrize("memory_order", ["F", "strided", "read-only"])
def test_any_layout_in_memory(memory_order):
    X, y = rows()
    changed = {
        "F": np.asfortranarray(X),
        "strided": np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
        "read-only": X.copy(),
    }[memory_order]
    changed.flags.writeable = memory_order != "read-only"
    assert fit(changed, y, **options("in memory")).digest == fit(X, y, **options("in memory")).digest


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("n_partial", [1, 3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_never_change_the_result(n_classes, n_partial, limit):
    X, y = rows(n_classes)
    choices = options(limit, solver="dual-cd", loss="squared_hinge", partial_solutions=n_partial)
    digests = {fit(X, y, **choices, n_jobs=n_jobs).digest for n_jobs in (1, 1, 2, 3, 4)}
    assert len(digests) == 1


@pytest.mark.parametrize("precision", ["uint16", "uint8"])
@pytest.mark.parametrize("solver", ["dual-cd", "newton", "sgd"])
def test_codes_are_the_same_from_any_chunks_and_threads(solver, precision):
    X, y = rows()
    choices = options("in memory", solver=solver, precision=precision, hessian_sample=0.9)
    expected = fit(X, y, **choices)
    assert expected.summary["plan"]["precision"] == precision
    for chunk_rows, n_jobs in ((100, 1), (333, 2), (5000, 3), (1000, 4)):
        model = fit(X.astype(np.float64), y, chunk_rows=chunk_rows, **choices, n_jobs=n_jobs)
        assert model.digest == expected.digest
        assert model.summary["gap"] == expected.summary["gap"] > 0


def test_what_the_contract_lets_change_the_bits_does():
    X, y = rows()
    base = options("in blocks", solver="dual-cd", loss="hinge")
    changes = ({}, {"seed": 1}, {"memory_limit": 3000}, {"training_chunk": 2})
    assert len({fit(X, y, **base | change).coef.tobytes() for change in changes}) == 4
