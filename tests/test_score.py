"""The NumPy scorer, from arrays written down by hand: what the documentation of the arrays promises."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from linadd import score
from linadd.calibration import CALIBRATIONS
from linadd.encoders import ENCODERS
from linadd.errors import ConfigError, DataError, FormatError, LinaddError
from linadd.export import export_model, json, tables
from linadd.model_file import save_model, score_difference
from linadd.score import PHI, Scorer, arrays_of, coordinates, decision_function, knot_coordinate, load_scorer
from tests.export.toy import ENCODER_OPTIONS, edge_rows, toy_model


def two_bins(**changes):
    """One feature on [0, 4], u = x / 2, two classes."""
    arrays = {
        "encoder": np.array("bspline"),
        "coef": np.array([[[1.0], [2.0], [4.0]]], np.float32),
        "intercept": np.array([0.5]),
        "lower": np.array([0.0]),
        "upper": np.array([4.0]),
        "origin": np.array([0.0]),
        "inverse": np.array([0.5]),
        "degree": np.array(1),
        "n_bins": np.array([2]),
    }
    return {**arrays, **changes}


def test_every_encoder_has_its_phi():
    assert PHI.keys() == ENCODERS.keys()


def test_values_are_interpolated_and_clamped():
    X = np.array([[-1.0], [0.0], [1.0], [2.0], [3.0], [4.0], [9.0]])
    expected = 0.5 + np.array([1, 1, 1.5, 2, 3, 4, 4])
    np.testing.assert_allclose(decision_function(two_bins(), X)[:, 0], expected, rtol=1e-15)


def test_outputs_are_columns():
    coef = np.stack([np.eye(3), 2 * np.eye(3)])
    arrays = two_bins(
        coef=coef, intercept=np.array([0.0, 0.0, 7.0]), n_bins=np.array([2, 2]),
        lower=np.zeros(2), upper=np.full(2, 4.0), origin=np.zeros(2), inverse=np.full(2, 0.5),
    )  # fmt: skip
    np.testing.assert_array_equal(decision_function(arrays, [[0.0, 2.0]]), [[1, 2, 7]])


def test_knots_map_to_whole_coordinates_and_a_spike_to_the_middle_of_its_bin():
    edges = np.array([-1.0, 0.0, 0.0, 2.0, 5.0])
    x = np.array([-1.0, -0.5, 0.0, 1.0, 2.0, 3.5, 5.0])
    np.testing.assert_allclose(knot_coordinate(x, edges), [0, 0.5, 1.5, 2.5, 3, 3.5, 4])
    assert knot_coordinate(np.array([5.0]), np.array([0.0, 5.0, 5.0])) == 1.5


def test_rows_of_edges_belong_to_features_and_nan_means_uniform():
    arrays = two_bins(
        lower=np.zeros(2), upper=np.full(2, 4.0), origin=np.zeros(2), inverse=np.full(2, 0.5), n_bins=np.array([2, 1]),
        edges=np.array([[np.nan, np.nan, np.nan], [0.0, 4.0, np.nan]]),
    )  # fmt: skip
    np.testing.assert_allclose(coordinates(arrays, np.array([[1.0, 1.0], [9.0, 9.0]])), [[0.5, 0.25], [2, 1]])


@pytest.mark.parametrize("degree", range(4))
def test_spline_values_sum_to_one(degree):
    u = np.linspace(0, 3, 50)[:, None]
    phi = PHI["bspline"](
        {"n_bins": np.array([3]), "degree": np.array(degree), "coef": np.zeros((1, 3 + degree, 1))}, u
    )
    np.testing.assert_allclose(phi.sum(axis=2), 1, rtol=1e-14)
    assert (phi >= 0).all()


def test_dense_bases_follow_their_formulas():
    u = np.random.default_rng(0).uniform(-1, 1, (5, 1))
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    phi = PHI["fourier"]({"weights": weights}, u)[:, 0].T
    x = u[:, 0]
    sines = [function(k * np.pi * x) for k in (1, 2) for function in (np.sin, np.cos)]
    np.testing.assert_allclose(phi / weights[:, None], sines)
    phi = PHI["hermite"]({"weights": weights}, u)[:, 0].T
    np.testing.assert_allclose(phi / weights[:, None], [x, x**2 - 1, x**3 - 3 * x, x**4 - 6 * x**2 + 3])
    np.testing.assert_array_equal(PHI["identity"]({"weights": weights[:1]}, u)[:, :, 0], u)


@pytest.mark.parametrize("policy", ["clamp", "linear", "linear,2=clamp"])
@pytest.mark.parametrize(("name", "options"), ENCODER_OPTIONS, ids=str)
def test_numpy_alone_gives_the_scores_of_the_model(name, options, policy, tmp_path):
    model = replace(toy_model(name, options, 3, "text"), range_policy=policy)
    scorer = Scorer.from_state(*model.to_state())
    X = edge_rows(model.encoder)
    assert score_difference(scorer.decision_function(X), model.decision_function(X)) <= 1e-12
    assert (scorer.predict(X) == model.predict(X)).all() and scorer.classes.tolist() == model.classes.tolist()


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_probabilities_are_those_of_the_model(n_outputs):
    model = replace(toy_model(n_outputs=n_outputs), loss="logistic")
    X = edge_rows(model.encoder)
    scorer = Scorer(arrays_of(*model.to_state()))
    np.testing.assert_allclose(scorer.predict_proba(X), model.predict_proba(X), rtol=1e-9)


def refusal(function, *arguments):
    with pytest.raises(LinaddError) as caught:
        function(*arguments)
    return type(caught.value), str(caught.value)


def test_what_cannot_be_scored_is_refused():
    model = replace(toy_model(), range_policy="clamp,4=error")
    scorer, X = Scorer(arrays_of(*model.to_state())), np.clip(np.zeros((5, 4)), *model.ranges.T)
    assert scorer.decision_function(X).shape == (5, 1) and scorer.decision_function(X[:0]).shape == (0, 1)
    X[3, 2] = np.nan
    assert refusal(scorer.predict, X) == (
        DataError, "array, row 4, column 3: the value is nan. linadd needs finite numbers: fill or drop this row."
    )  # fmt: skip
    X[3, 2], X[4, 3] = -2.5, 2.0
    kind, text = refusal(scorer.predict, X)
    assert kind is DataError and text.startswith("array, row 5, column 4: the value 2.0 is outside the training range ")
    assert refusal(scorer.predict, X[:, 1:]) == (
        DataError, "array: the data have shape (5, 3); the model needs 4 features a row."
    )  # fmt: skip
    assert refusal(scorer.predict_proba, X) == (
        ConfigError, "a model of this loss has no probabilities. Train with the logistic loss."
    )  # fmt: skip


def test_rows_are_scored_in_pieces(monkeypatch):
    model = toy_model()
    X, scorer = edge_rows(model.encoder), Scorer(arrays_of(*model.to_state()))
    whole = scorer.decision_function(X)
    monkeypatch.setattr(score, "PIECE_BYTES", 3 * 8 * model.coef[:, :, 0].size)
    seen = []

    def counted(arrays, X):
        seen.append(len(X))
        return decision_function(arrays, X)

    monkeypatch.setattr(score, "decision_function", counted)
    np.testing.assert_allclose(scorer.decision_function(X), whole, rtol=1e-13)
    assert max(seen) == 3 and sum(seen) == len(X)


def test_a_scorer_is_the_compiled_model_where_there_is_numba(tmp_path):
    model = toy_model()
    model.save(tmp_path / "m.safetensors")
    assert load_scorer(tmp_path / "m.safetensors").digest == model.digest


BLOCKED = ["numba", "llvmlite", "scipy", "h5py", "dask", "sklearn", "safetensors", "typer", "rich", "pandas", "onnx"]


def test_only_numpy_is_needed(tmp_path):
    """In a process where every other package is missing."""
    model = replace(toy_model("hermite", labels="text", n_outputs=3), range_policy="linear", loss="logistic")
    model.save(tmp_path / "m.safetensors")
    X = edge_rows(model.encoder)
    np.save(tmp_path / "X.npy", X)
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({BLOCKED!r}))\n"
        "import numpy as np\n"
        "from linadd.score import load_scorer\n"
        "scorer = load_scorer('m.safetensors')\n"
        "X = np.load('X.npy')\n"
        "np.savez('out.npz', f=scorer.decision_function(X), p=scorer.predict_proba(X), y=scorer.predict(X))\n"
        "print(type(scorer).__name__)\n"
    )
    root = str(Path(score.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": root}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, "Scorer\n", "")
    found = np.load(tmp_path / "out.npz")
    assert score_difference(found["f"], model.decision_function(X)) <= 1e-12
    np.testing.assert_allclose(found["p"], model.predict_proba(X), rtol=1e-9, atol=1e-300)
    assert (found["y"] == model.predict(X)).all()


def test_a_file_that_is_no_additive_model_is_refused(tmp_path):
    save_model(tmp_path / "k.safetensors", {}, {"class": "lspc"})
    kind, text = refusal(load_scorer, tmp_path / "k.safetensors")
    assert kind is FormatError
    assert text == f"{tmp_path}/k.safetensors: is of class 'lspc'; linadd.score knows additive. Use load_model."
    tensors, header = toy_model().to_state()
    tensors["check_scores"] = tensors["check_scores"] + 1
    save_model(tmp_path / "m.safetensors", tensors, header)
    kind, text = refusal(load_scorer, tmp_path / "m.safetensors")
    assert kind is FormatError and text.startswith(f"{tmp_path}/m.safetensors: the scores of its check rows differ ")


@pytest.mark.parametrize("kind", CALIBRATIONS)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_calibration_takes_the_place_of_the_link(kind, n_outputs, tmp_path):
    rng = np.random.default_rng(2)
    side = rng.random((50, n_outputs)) < 0.5
    calibration = CALIBRATIONS[kind].fit(rng.standard_normal((50, n_outputs)), side, np.ones(50))
    model = replace(toy_model(n_outputs=n_outputs), loss="logistic", calibration=calibration)
    rows = edge_rows(model.encoder)
    expected = model.predict_proba(rows)
    arrays = arrays_of(*model.to_state())
    assert "link" not in arrays
    np.testing.assert_allclose(Scorer(arrays).predict_proba(rows), expected, rtol=1e-9, atol=1e-12)
    for to, read in (("npz", tables.read), ("json", json.read)):
        export_model(model, tmp_path / f"m.{to}", to)
        found = Scorer(read(tmp_path / f"m.{to}")).predict_proba(rows)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
