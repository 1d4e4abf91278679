"""Exports of kernel models: every format gives the model's scores and probabilities, from the file alone."""

import json
import sys

import numpy as np
import pytest
from scipy.special import erfcx

from linadd.errors import ConfigError, LinaddError
from linadd.sparse_kernel import export
from linadd.sparse_kernel.export import export_kernel_model, kernel_tables, read_npz, score_onnx, score_tables
from linadd.sparse_kernel.import_vector_machine import ImportVectorMachine
from linadd.sparse_kernel.kernels import ChiSquared, Intersection, Linear, Polynomial
from linadd.sparse_kernel.lspc import LeastSquaresProbabilisticClassifier
from linadd.sparse_kernel.onnx_graph import tail_polynomial
from linadd.sparse_kernel.sparse_gp import SparseGPClassifier
from linadd.sparse_kernel.sparse_online_gp import SparseOnlineGPClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
LABELS = {2: np.where(X[:, 0] > 0, "b", "a"), 3: RNG.integers(3, size=60)}
NEW = 2 * RNG.normal(size=(20, 3))
GP = {"n_basis": 6, "max_outer_iter": 1, "random_state": 0}
MODELS = {
    "ivm": (ImportVectorMachine(fit_intercept=True), 2),
    "ivm ard": (ImportVectorMachine("ard"), 2),
    "ivm softmax": (ImportVectorMachine(Polynomial(0.1) * Linear(0.5, 0.5)), 3),
    "ivm baseline": (ImportVectorMachine(Intersection(), scale="minmax", multi_class="baseline"), 3),
    "gp": (SparseGPClassifier(probit_slope=2.0, **GP), 2),
    "gp sum": (SparseGPClassifier(Polynomial(0.1) + Linear(), **GP), 2),
    "online gp": (SparseOnlineGPClassifier(max_basis=9, probit_slope=2.0, bias=0.2, random_state=0), 2),
    "online gp classes": (SparseOnlineGPClassifier(likelihood="gaussian", random_state=0), 3),
    "lspc": (LeastSquaresProbabilisticClassifier(sigma=0.3, reg_lambda=0.1), 2),
    "lspc shared": (LeastSquaresProbabilisticClassifier(sigma=0.02, reg_lambda=0.1, centers="all"), 3),
    "gp classes": (SparseGPClassifier(Intersection(), scale="minmax", **GP), 3),
}


def fitted(name):
    model, n_classes = MODELS[name]
    return model.fit(X, LABELS[n_classes])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("suffix", ["npz", "json", "onnx"])
def test_the_file_alone_gives_scores_and_probabilities(name, suffix, tmp_path):
    model, path = fitted(name), tmp_path / f"model.{suffix}"
    export_kernel_model(model, path)
    if suffix == "onnx":
        scores, proba = score_onnx(path, NEW)
    else:
        scores, proba = score_tables(read_npz(path) if suffix == "npz" else json.loads(path.read_text()), NEW)
    decide = model.predict_raw if name.startswith("lspc") else model.decision_function
    np.testing.assert_allclose(scores, decide(NEW), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(proba, model.predict_proba(NEW), atol=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_onnx_declares_the_shapes_that_come(name, tmp_path, capfd):
    """onnxruntime warns on stderr of any other."""
    export_kernel_model(fitted(name), tmp_path / "model.onnx")
    assert capfd.readouterr().err == ""


def test_a_model_of_named_features_is_exported(tmp_path):
    pandas = pytest.importorskip("pandas")
    model = ImportVectorMachine().fit(pandas.DataFrame(X, columns=["a", "b", "c"]), LABELS[2])
    export_kernel_model(model, tmp_path / "model.json")
    assert len(json.loads((tmp_path / "model.json").read_text())["check_rows"]) == 32


def test_tail_polynomial():
    """Relative accuracy of Phi(-a) for every a >= 0."""
    a = np.concatenate([np.linspace(0, 37, 2001), [1e3, 1e6]])
    q = np.polyval(tail_polynomial(), (a - 4) / (a + 4))
    np.testing.assert_allclose(q / (1 + a), 0.5 * erfcx(a * np.sqrt(0.5)), rtol=1e-14)


def test_a_wrong_export_is_not_written(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    write, score = export.WRITERS["json"]
    monkeypatch.setitem(export.WRITERS, "json", (write, lambda path, X: [1.5 * part for part in score(path, X)]))
    with pytest.raises(LinaddError) as error:
        export_kernel_model(fitted("ivm"), path)
    assert str(error.value) == (f"{path}: not written: check_scores of the export differ from the model's by 5.0e-01 "
                                "(allowed 1e-09). Report this model.")
    assert list(tmp_path.iterdir()) == []


def test_messages(tmp_path):
    with pytest.raises(ConfigError) as error:
        export_kernel_model(fitted("ivm"), "model.pickle")
    assert str(error.value) == "export: 'pickle' is not one of npz, json, onnx."
    with pytest.raises(ConfigError) as error:
        export_kernel_model(fitted("ivm"), "model.npz", "json")
    assert str(error.value) == "model.npz: the export 'json' is a *.json file. Give the name that suffix."
    with pytest.raises(ConfigError) as error:
        kernel_tables(SparseOnlineGPClassifier(likelihood="logit"))
    assert str(error.value) == ("export: likelihood='logit' has no tables, its probabilities are integrals. Train with "
                                "likelihood='probit'.")
    model = ImportVectorMachine(ChiSquared(), scale="minmax").fit(X, LABELS[2])
    with pytest.raises(ConfigError) as error:
        export_kernel_model(model, tmp_path / "model.onnx")
    assert str(error.value) == ("export: ONNX cannot hold the kernel chi-squared. Export *.npz or *.json, or use "
                                "another kernel.")


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ConfigError) as error:
        export_kernel_model(fitted("ivm"), tmp_path / "model.onnx")
    assert str(error.value) == "export: ONNX files need the package onnx. Run: pip install 'linadd[onnx]'."
