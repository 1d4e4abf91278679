"""Validation rows: which they are, what is scored, when training ends, and which model is kept."""

import h5py
import numpy as np
import pytest

from linadd.errors import ConfigError, DataError
from linadd.metrics import predicted_indices
from linadd.options import Options
from linadd.search import search
from linadd.solvers.memory import Memory
from linadd.sources import open_source
from linadd.train import train
from linadd.validation import ValidationRows, is_held_out
from tests.solvers.problems import LOSSES, fit, toy

# On C = 1000, 40 bins and noisy rows every solver fits the noise after a few passes.
OVERFIT = {"C": 1000.0, "n_bins": 40, "tol": 1e-7, "max_epochs": 12, "validation": 0.25, "patience": 2}
SOLVERS = ("dual-cd", "newton", "sgd")


def held_out(n_rows, fraction=0.25, seed=0):
    """Mask of the rows that a fraction holds out."""
    return is_held_out(0, n_rows, fraction, seed)


def plain_figures(model, X, y, weight=None):
    """(loss, error) of rows under a logistic model of two or more classes, by NumPy."""
    weight = np.ones(len(y)) if weight is None else weight
    f = model.decision_function(X).reshape(len(X), -1)
    signs = np.where(y[:, None] == ([1] if f.shape[1] == 1 else np.arange(f.shape[1])), 1.0, -1.0)
    loss = weight @ np.logaddexp(0, -signs * f).sum(axis=1) / weight.sum()
    return loss, weight @ (predicted_indices(f) != y) / weight.sum()


def test_a_fraction_is_the_same_rows_from_any_chunks():
    whole = held_out(10_000)
    assert abs(whole.mean() - 0.25) < 0.02 and not np.array_equal(whole, held_out(10_000, seed=1))
    parts = [is_held_out(start, 250, 0.25, 0) for start in range(0, 10_000, 250)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert (whole <= held_out(10_000, 0.5)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_held_out_rows_cost_nothing_and_are_scored_after_every_pass(solver, n_classes, recwarn):
    X, y = toy(n_rows=400, n_classes=n_classes)
    mask, weight = held_out(400), np.random.default_rng(0).uniform(1, 2, 400)
    choices = {"solver": solver, "knots": "uniform", "max_epochs": 4, "tol": 1e-3}
    model = fit(X, y, weight, validation=0.25, **choices)
    same = fit(X, y, weight * ~mask, **choices)
    np.testing.assert_array_equal(model.coef, same.coef)
    expected = plain_figures(model, X[mask], y[mask], weight[mask])
    report = model.summary["validation"]
    np.testing.assert_allclose((report["loss"], report["error"]), expected, rtol=1e-6)
    assert report["pass"] == model.summary["passes"] == len(model.history)
    assert all(0 < record["validation_loss"] < 3 for record in model.history)
    assert {record["validation_error"] <= 1 for record in model.history} == {True}
    assert "validation" not in same.summary and "validation_loss" not in same.history[0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_early_stopping_keeps_the_best_pass(solver, recwarn):
    X, y = toy(n_rows=300, noise=1.5)
    free = fit(X, y, solver=solver, **OVERFIT)
    model = fit(X, y, solver=solver, early_stopping=True, **OVERFIT)
    losses = [record["validation_loss"] for record in model.history]
    best = int(np.argmin(losses)) + 1
    assert losses == [record["validation_loss"] for record in free.history][: len(losses)]
    assert model.summary["passes"] == best + 2 < free.summary["passes"]
    assert model.summary["converged"] and model.summary["validation"]["pass"] == best
    assert model.summary["validation"]["loss"] < free.summary["validation"]["loss"]
    certified = solver != "sgd"
    assert (model.summary["gap"] is not None) == certified
    # The certificate is of the model that is kept: between the bounds of the one that is trained on.
    if certified:
        assert model.summary["objective"] > free.summary["objective"] * (1 - 1e-9)
        assert model.summary["dual_objective"] <= free.summary["objective"]
        assert model.summary["gap"] > free.summary["gap"]


def test_the_loss_is_that_which_is_trained_on():
    X, y = toy(n_rows=300)
    for loss in LOSSES:
        model = fit(X, y, loss=loss, solver="sgd", max_epochs=1, validation=0.3, class_weight={0: 3.0})
        mask = held_out(300, 0.3)
        margins = np.where(y[mask] == 1, 1, -1) * model.decision_function(X[mask]).ravel()
        values = {
            "hinge": np.maximum(0, 1 - margins),
            "squared_hinge": np.maximum(0, 1 - margins) ** 2,
            "logistic": np.logaddexp(0, -margins),
        }
        costs = np.where(y[mask] == 0, 3.0, 1.0)
        np.testing.assert_allclose(model.summary["validation"]["loss"], costs @ values[loss] / costs.sum(), rtol=1e-9)
        assert model.summary["validation"]["error"] == np.mean(margins < 0)


def test_rows_of_a_file_are_watched(tmp_path):
    X, y = toy(n_rows=300)
    with h5py.File(tmp_path / "watched.h5", "w") as file:
        file["X"], file["y"] = X[200:], np.array([b"no", b"yes"])[y[200:]]
    labels = np.array(["no", "yes"])[y]
    model = fit(X[:200], labels[:200], validation=tmp_path / "watched.h5")
    np.testing.assert_allclose(
        (model.summary["validation"]["loss"], model.summary["validation"]["error"]),
        plain_figures(model, X[200:], y[200:]), rtol=1e-12,
    )  # fmt: skip
    assert model.options["validation"] == str(tmp_path / "watched.h5")
    given = train(
        open_source(X[:200], labels[:200]), Options(validation="other.h5"),
        validation=open_source(X[200:], labels[200:]),
    )  # fmt: skip
    assert given.summary["validation"] == model.summary["validation"]


@pytest.mark.parametrize("by_path", [True, False])
def test_columns_of_a_file_are_matched_by_name(by_path, tmp_path):
    X, y = toy(n_rows=300)
    names = [f"x{j}" for j in range(X.shape[1])]
    for name, order in (("rows", slice(None)), ("same", slice(None)), ("turned", slice(None, None, -1))):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["X"], file["y"] = X[:, order], y
            file.attrs["feature_names"] = names[order]

    def figures(name):
        path = tmp_path / f"{name}.h5"
        given = None if by_path else open_source(path)
        model = train(open_source(tmp_path / "rows.h5"), Options(validation=path), validation=given)
        return model.summary["validation"]

    assert figures("turned") == figures("same")
    with h5py.File(tmp_path / "turned.h5", "a") as file:
        file.attrs["feature_names"] = ["other", *names[:0:-1]]
    with pytest.raises(DataError) as caught:
        figures("turned")
    message = "has no column 'x0', which the model needs. Its columns: 'other', 'x3', 'x2', 'x1'."
    assert str(caught.value) == f"{tmp_path / 'turned.h5'}: {message}"


def test_rows_that_do_not_fit_are_read_again(recwarn):
    X, y = toy(n_rows=300)
    source, memory = open_source(X, y), Memory(4 * 300 * (4 * 8 + 12))
    rows = ValidationRows(source, np.array([0, 1]), memory)
    again = ValidationRows(source, np.array([0, 1]), memory)
    found = [[np.concatenate([piece.X for piece in each.pieces()]) for _ in range(3)] for each in (rows, again)]
    np.testing.assert_array_equal(np.array(found), np.array([[X] * 3] * 2))
    assert (rows.reads, again.reads) == (1, 3) and memory.left == 3 * 300 * (4 * 8 + 12)
    choices = {"solver": "sgd", "max_epochs": 3, "validation": 0.5}
    in_blocks, in_memory = (fit(X, y, memory_limit=limit, **choices).summary for limit in (2000, 10**9))
    assert in_memory["reads"] == 3  # census, centre and one of the validation rows
    assert in_blocks["reads"] == 2 + 3 + 3


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((2, 3)), [0, 1], "array: has 3 features; the training rows have 4."),
        (np.zeros((2, 4)), [0, 2], "array, row 2: the label 2 is not among the classes 0, 1."),
        (
            np.full((2, 4), np.nan),
            [0, 1],
            "array, row 1, column 1: the value is nan. linadd takes no NaN or infinity: fill or drop this row.",
        ),
    ],
)
def test_rows_that_cannot_be_scored_are_refused(X, y, message):
    rows, labels = toy()
    with pytest.raises(DataError) as caught:
        train(open_source(rows, labels), Options(validation="f.h5"), validation=open_source(X, np.array(y)))
    assert str(caught.value) == message


def test_rows_without_weight_are_refused():
    X, y = toy()
    with pytest.raises(DataError) as caught:
        fit(X, y, validation=1e-9)
    assert str(caught.value) == "array: no validation row has any weight. Give more of them."


def test_a_search_has_folds_of_its_own():
    X, y = toy()
    with pytest.raises(ConfigError) as caught:
        search(open_source(X, y), Options(validation=0.5))
    assert str(caught.value) == "validation: a search holds out folds of its own. Leave it out, or use `train`."
