"""Pictures are written whole; the criterion path is that of the fit."""

import sys

import numpy as np
import pytest

from linadd.errors import ConfigError
from linadd.sparse_kernel.import_vector_machine import ImportVectorMachine
from linadd.sparse_kernel.plots import criterion_path, plot_boundary, plot_criterion
from linadd.sparse_kernel.sparse_gp import SparseGPClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
Y = {2: np.where(X[:, 0] > 0, "b", "a"), 3: np.digitize(X[:, 0], [-0.5, 0.5])}
GP = {"n_basis": 6, "max_outer_iter": 2, "random_state": 0}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", [ImportVectorMachine(), SparseGPClassifier(**GP)], ids=lambda m: m.key)
def test_pictures(model, n_classes, tmp_path):
    model.fit(X, Y[n_classes])
    plot_boundary(model, X, Y[n_classes], tmp_path / "boundary.png")
    plot_criterion(model, X, Y[n_classes], tmp_path / "criterion.png")
    assert all((tmp_path / f"{name}.png").stat().st_size > 5000 for name in ("boundary", "criterion"))


def test_criterion_path_ends_at_the_model():
    y = np.where(Y[2] == "b", 1.0, -1.0)
    model = SparseGPClassifier(**GP).fit(X, y)
    (path,) = criterion_path(model, X, y)
    p_true = model.predict_proba(X)[np.arange(80), (y > 0).astype(int)]
    assert len(path) == 6 and path[-1] == pytest.approx(-np.mean(np.log2(p_true)), rel=1e-9)
    ivm = ImportVectorMachine().fit(X, y)
    np.testing.assert_array_equal(criterion_path(ivm, X, y), [ivm.objective_history_])


def test_messages(tmp_path, monkeypatch):
    wide = ImportVectorMachine().fit(np.column_stack([X, X]), Y[2])
    with pytest.raises(ConfigError) as error:
        plot_boundary(wide, X, Y[2], tmp_path / "p.png")
    assert str(error.value) == "plot: a boundary is drawn over 2 features, this model has 4. Train on two of them."
    model = ImportVectorMachine().fit(X, Y[2])
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigError) as error:
        plot_criterion(model, X, Y[2], tmp_path / "p.png")
    assert str(error.value) == "plots need matplotlib. Install it by pip install 'linadd[plot]'."
    assert list(tmp_path.iterdir()) == []
