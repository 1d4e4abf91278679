"""Exports of the Rodeo density classifier: the search from the file alone is the model's, to 1e-12."""

import json
import math

import numpy as np
import pytest

from linadd.errors import LinaddError
from linadd.sparse_kernel import export, rodeo_export
from linadd.sparse_kernel.export import export_kernel_model, read_npz, score_onnx, score_tables
from linadd.sparse_kernel.rodeo_bandwidths import local_bandwidths
from linadd.sparse_kernel.rodeo_density import RodeoDensityClassifier
from linadd.sparse_kernel.rodeo_export import log_density, rodeo_outputs
from tests.sparse_kernel.test_rodeo_bandwidths import search_twin

RNG = np.random.default_rng(0)
Y = np.array(["a", "b", "c"])[RNG.integers(3, size=120)]
X = RNG.normal(size=(120, 4))
X[:, 1] = np.round(X[:, 1], 1)  # equal values
X[Y == "b", 0] += 2
NEW = 2 * RNG.normal(size=(30, 4))
MODELS = {
    "default": RodeoDensityClassifier(),
    "priors": RodeoDensityClassifier(class_prior="empirical", c0=0.3, beta=0.8, threshold_constant=3, scale="standard"),
    "selected": RodeoDensityClassifier(restrict_to_selected=True),
    "none selected": RodeoDensityClassifier(restrict_to_selected=True, z_cutpoint=-100.0),
    "first bandwidth only": RodeoDensityClassifier(c0=0.1, min_bandwidth=1.0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["npz", "json", "onnx"])
def test_the_file_alone_gives_scores_and_probabilities(name, kind, tmp_path):
    model, path = MODELS[name].fit(X, Y), tmp_path / f"model.{kind}"
    record = export_kernel_model(model, path)
    assert (record["to"], record["n_check_rows"], record["label_flips"]) == (kind, 32, 0)
    assert record["difference"] < 1e-12
    if kind == "onnx":
        scores, proba = score_onnx(path, NEW)
    else:
        scores, proba = score_tables(read_npz(path) if kind == "npz" else json.loads(path.read_text()), NEW)
    np.testing.assert_allclose(scores, model.scores(NEW), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(proba, model.predict_proba(NEW), atol=1e-12)


def test_the_records_are_rows_rule_and_prior():
    model = MODELS["priors"].fit(X, Y)
    outputs, link = rodeo_outputs(model)
    assert link == "density" and len(outputs) == 3
    for c, output in enumerate(outputs):
        own = X[np.array(["a", "b", "c"])[c] == Y]
        m = len(own)
        np.testing.assert_allclose(output["points"], model.scaling_(own))
        assert output["columns"].tolist() == [0, 1, 2, 3]
        np.testing.assert_allclose(output["bandwidths"][:2], 0.3 / math.log(math.log(m)) * np.array([1, 0.8]))
        assert output["bandwidths"][-1] >= 1e-3 > 0.8 * output["bandwidths"][-1]
        assert output["threshold"] == pytest.approx(math.sqrt(2 * math.log(3 * m)))
        assert output["log_prior"] == pytest.approx(math.log(m / 120))
        rule = {name: output[name] for name in ("beta", "c0", "min_bandwidth", "threshold_constant")}
        assert rule == {"beta": 0.8, "c0": 0.3, "min_bandwidth": 1e-3, "threshold_constant": 3.0}


def test_only_selected_features_are_compared():
    model = MODELS["selected"].fit(X, Y)
    outputs, _ = rodeo_outputs(model)
    assert [output["columns"].tolist() for output in outputs] == [chosen.tolist() for chosen in model.selected_]
    assert all(output["points"].shape[1] == len(output["columns"]) < 4 for output in outputs)


def test_the_search_is_algorithm_1():
    """`search_twin` follows the formulas one statement a step."""
    points = RNG.random((40, 3))
    points[:, 0] = 0.5 + 0.05 * points[:, 0]
    model = RodeoDensityClassifier(scale=None).fit(np.vstack([points, points]), np.repeat([0, 1], 40))
    output = rodeo_outputs(model)[0][0]
    for query in RNG.random((10, 3)):
        expected = search_twin(query, points)[1]
        found = log_density(query, output["points"], output["bandwidths"], output["threshold"])
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_one_point_and_rows_out_of_reach():
    steps, far = np.array([1.0, 0.5]), np.array([[1e200]])
    point = np.zeros((1, 1))
    assert log_density(np.array([1.0]), point, steps, 2.0) == pytest.approx(-0.5 - 0.5 * math.log(2 * math.pi))
    with np.errstate(over="ignore"):
        assert log_density(far[0], point, steps, 2.0) == -np.inf == local_bandwidths(far, point)[1][0]
        record = {"columns": [0], "points": point, "bandwidths": steps, "threshold": 2.0}
        outputs = [record | {"log_prior": math.log(0.25)}, record | {"log_prior": math.log(0.75)}]
        assert rodeo_export.density_scores(outputs, far).tolist() == [[math.log(0.25), math.log(0.75)]]


def test_a_difference_beyond_1e_12_is_not_written(tmp_path, monkeypatch):
    write, score = export.WRITERS["json"]
    monkeypatch.setitem(export.WRITERS, "json", (write, lambda path, X: [(1 + 1e-11) * p for p in score(path, X)]))
    path = tmp_path / "model.json"
    with pytest.raises(LinaddError) as error:
        export_kernel_model(MODELS["default"].fit(X, Y), path)
    assert str(error.value) == (f"{path}: not written: check_scores of the export differ from the model's by 1.0e-11 "
                                "(allowed 1e-12). Report this model.")
    assert list(tmp_path.iterdir()) == []
