"""The ONNX export: inputs, outputs, rows that are not finite, refusals; scores are under the shared laws."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from linadd.errors import ConfigError
from linadd.export import export_model
from linadd.export import onnx as export_onnx
from linadd.export.tables import model_arrays
from linadd.onnx_graph import OPSET, Graph
from tests.export.toy import calibrated, edge_rows, toy_model

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def session_of(model, path, dtype="float64"):
    export_model(model, path, "onnx", dtype=dtype)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_outputs_of_a_logistic_model(dtype, n_outputs, tmp_path):
    model = replace(toy_model(n_outputs=n_outputs), loss="logistic")
    session = session_of(model, tmp_path / "m.onnx", dtype)
    kind = {"float64": "tensor(double)", "float32": "tensor(float)"}[dtype]
    (X,) = session.get_inputs()
    assert (X.name, X.type, X.shape) == ("X", kind, ["n", 4])
    n_classes = len(model.classes)
    assert [(each.name, each.type, each.shape) for each in session.get_outputs()] == [
        ("label", "tensor(int64)", ["n"]),
        ("scores", kind, ["n", n_outputs]),
        ("probabilities", kind, ["n", n_classes]),
    ]
    rows = edge_rows(model.encoder).astype(dtype)
    label, scores, proba = session.run(None, {"X": rows})
    tolerance = {"float64": 1e-12, "float32": 1e-5}[dtype]
    np.testing.assert_allclose(scores, model.decision_function(rows), atol=20 * tolerance)
    np.testing.assert_allclose(proba, model.predict_proba(rows), atol=20 * tolerance)
    clear = np.abs(model.decision_function(rows)).min(axis=1) > 1e-3
    assert (label == model.predict(rows))[clear].all()
    assert session.run(None, {"X": rows[:0]})[1].shape == (0, n_outputs)


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_calibrated_probabilities(n_outputs, kind, tmp_path):
    model = toy_model(n_outputs=n_outputs)
    rows = edge_rows(model.encoder)
    arrays, expected = calibrated(kind, model.decision_function(rows))
    export_onnx.write(model_arrays(model) | arrays, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(["probabilities"], {"X": rows})[0], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("classes", "kind"),
    [(["no", "yes é"], "tensor(string)"), ([False, True], "tensor(bool)"), ([0.5, 2.5], "tensor(double)")],
    ids=str,
)
def test_labels_keep_their_type(classes, kind, tmp_path):
    model = replace(toy_model(), classes=np.array(classes))
    session = session_of(model, tmp_path / "m.onnx")
    assert [each.type for each in session.get_outputs()] == [kind, "tensor(double)"]  # hinge: no probabilities
    rows = edge_rows(model.encoder)
    assert session.run(["label"], {"X": rows})[0].tolist() == model.predict(rows).tolist()


def test_a_row_that_is_not_finite_has_no_scores(tmp_path):
    model = replace(toy_model("bspline", {"knots": "quantile"}, 3), range_policy="linear")
    session = session_of(model, tmp_path / "m.onnx")
    rows = edge_rows(model.encoder)[:4]
    expected = model.decision_function(rows)
    rows[0, 1], rows[2, 0] = np.nan, np.inf
    scores = session.run(["scores"], {"X": rows})[0]
    assert np.isnan(scores[[0, 2]]).all()
    np.testing.assert_allclose(scores[[1, 3]], expected[[1, 3]], rtol=1e-12)


def test_a_single_precision_graph_keeps_the_digits_of_a_time_stamp(tmp_path):
    """A double that float32 rounds by 64 s is lost; one that it holds is not lost on the way to its bin."""
    model = toy_model()
    model.encoder.axes = model.encoder.axes._replace(
        lower=np.full(4, 2.0**24), upper=np.full(4, 2.0**24 + 16), origin=np.full(4, 2.0**24 - 0.3),
        inverse=np.full(4, 10 / 16.3), edges=np.full((4, 1), np.nan), n_bins=np.full(4, 10), has_knots=False,
    )  # fmt: skip
    rows = 2.0**24 + 2 * np.random.default_rng(0).integers(0, 9, (50, 4))
    session = session_of(model, tmp_path / "m.onnx", "float32")
    scores = session.run(["scores"], {"X": rows.astype(np.float32)})[0]
    np.testing.assert_allclose(scores, model.decision_function(rows), atol=1e-5)


def test_the_file_says_its_opset_and_holds_the_check_rows(tmp_path):
    model = toy_model()
    export_model(model, tmp_path / "m.onnx", "onnx")
    proto = onnx.load(tmp_path / "m.onnx")
    assert [(each.domain, each.version) for each in proto.opset_import] == [("", OPSET)]
    checks = {each.key: json.loads(each.value) for each in proto.metadata_props}
    np.testing.assert_array_equal(model.decision_function(checks["check_rows"]), checks["check_scores"])


def refusal(function, *arguments, **options):
    with pytest.raises(ConfigError) as caught:
        function(*arguments, **options)
    return str(caught.value)


def test_a_strict_model_is_refused(tmp_path):
    model = replace(toy_model(), range_policy="clamp,1=error")
    assert refusal(export_model, model, tmp_path / "m.onnx", "onnx") == (
        "export: ONNX cannot refuse a row, as the range policy 'error' asks. Export with --range clamp, or *.json."
    )


def test_missing_packages_are_named(tmp_path, monkeypatch):
    export_onnx.write(model_arrays(toy_model()), tmp_path / "m.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert refusal(export_onnx.score, tmp_path / "m.onnx", np.zeros((1, 4))) == (
        "export: ONNX files are checked by the package onnxruntime. Run: pip install 'linadd[onnx]'."
    )
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert refusal(Graph) == "export: ONNX files need the package onnx. Run: pip install 'linadd[onnx]'."


def test_a_file_that_protobuf_cannot_hold_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("linadd.onnx_graph.LARGEST_FILE", 1000)
    text = refusal(export_onnx.write, model_arrays(toy_model()), "m.onnx")
    assert text.startswith("m.onnx: an ONNX file holds up to 2 GB, this one takes ")
    assert text.endswith(" bytes. Export *.npz.")
