"""Data that break trainers: finite results, a gap that is true, and a warning where it is not small."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from linadd.encoders import ENCODERS
from linadd.errors import ConvergenceWarning, DataError, DataWarning
from linadd.solvers import SOLVERS
from tests.solvers.problems import LOSSES, fit, toy

LONG = {"max_epochs": 1000}


def sound(X, y, weights=None, **choices):
    """A model whose numbers are finite; a solver that certifies warns unless its gap is within tol."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit(X, y, weights, **choices)
    assert np.isfinite(model.coef).all() and np.isfinite(model.intercept).all()
    assert np.isfinite(model.decision_function(X)).all()
    gap, has_warned = model.summary["gap"], any(warning.category is ConvergenceWarning for warning in caught)
    if gap is not None:
        assert -1e-12 <= gap <= 2
        assert not SOLVERS[model.summary["solver"]].certifies or has_warned == (gap > model.options["tol"])
    assert has_warned != model.summary["converged"]
    return model


def accuracy(model, X, y):
    """Share of right labels."""
    return np.mean(model.predict(X) == y)


# Of the standard deviation, which the identity divides by, float64 has the square.
FACTORS = [(encoder, scale) for encoder in ENCODERS for scale in (1e-300, 1e-30, 1e30, 1e150, 1e300)]
FACTORS = [pair for pair in FACTORS if pair not in (("identity", 1e-300), ("identity", 1e300))]


@pytest.mark.parametrize(("encoder", "scale"), FACTORS)
def test_a_common_factor_of_the_features_changes_nothing_but_rounding(encoder, scale):
    X, y = toy()
    plain, scaled = fit(X, y, encoder=encoder), sound(X * scale, y, encoder=encoder)
    np.testing.assert_allclose(scaled.summary["objective"], plain.summary["objective"], rtol=1e-6)
    np.testing.assert_allclose(scaled.decision_function(X * scale), plain.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("solver", ["dual-cd", "sgd"])
def test_columns_on_unlike_scales_and_far_from_zero(solver, encoder, loss):
    X, y = toy()
    unlike = X * [1e-30, 1e30, 1e-3, 1.0] + [0, 0, 5, 1e6]
    model = sound(unlike, y, encoder=encoder, loss=loss, solver=solver, certify=True)
    plain = fit(X, y, encoder=encoder, loss=loss, solver=solver, certify=True)
    np.testing.assert_allclose(model.summary["objective"], plain.summary["objective"], rtol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_duplicate_columns_share_the_curve(solver):
    X, y = toy(n_features=2)
    model = sound(np.hstack([X, X, X]), y, solver=solver, knots="uniform")
    curves = model.coef.reshape(3, 2, -1)
    np.testing.assert_allclose(curves[0], curves[1], atol=1e-2 * np.abs(curves).max())
    assert accuracy(model, np.hstack([X, X, X]), y) > 0.8


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_one_feature(encoder, loss):
    x = np.linspace(-1, 1, 200)[:, None]
    y = (x[:, 0] > 0.1).astype(int)
    assert accuracy(sound(x, y, encoder=encoder, loss=loss, C=10.0, **LONG), x, y) > 0.9


@pytest.mark.filterwarnings("ignore:array. constant features:linadd.errors.DataWarning")
@pytest.mark.parametrize("encoder", ENCODERS)
def test_constant_features_contribute_nothing(encoder):
    X, y = toy(n_features=3)
    mixed = np.insert(X, [0, 1, 3], [5.0, 0.0, -1e9], axis=1)
    model = sound(mixed, y, encoder=encoder)
    assert (model.coef[[0, 2, 5]] == 0).all()
    np.testing.assert_allclose(model.summary["objective"], fit(X, y, encoder=encoder).summary["objective"], rtol=1e-5)


def test_nothing_but_constant_features_is_refused():
    with pytest.raises(DataError) as caught:
        fit(np.ones((4, 2)), [0, 1, 0, 1])
    assert str(caught.value) == "array: every feature is constant: there is nothing to learn from."


@pytest.mark.parametrize("loss", LOSSES)
def test_one_positive_in_a_thousand(loss):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5000, 4)), np.zeros(5000, int)
    y[::1000] = 1
    X[y == 1] += 4
    model = sound(X, y, loss=loss, **LONG)
    assert model.summary["converged"] and accuracy(model, X, y) >= 0.999
    balanced = sound(X, y, loss=loss, class_weight="balanced", tol=1e-2, **LONG)
    assert balanced.predict(X)[y == 1].all() and accuracy(balanced, X, y) > 0.98


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_rows", [2, 3, 5])
def test_a_handful_of_rows(n_rows, loss):
    X, y = np.random.default_rng(0).standard_normal((n_rows, 3)), np.arange(n_rows) % 2
    assert accuracy(sound(X, y, loss=loss, C=100.0, **LONG), X, y) == 1.0


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_classes", [26, 33])
def test_more_outputs_than_lanes_and_than_rows_of_a_class(n_classes, solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_classes + 3, 4))
    y = np.array([f"class {i:02}" for i in [*range(n_classes), 0, 1, 2]])
    model = sound(X, y, solver=solver, C=100.0)
    assert model.classes.tolist() == sorted(set(y.tolist())) and model.coef.shape[2] == n_classes
    assert accuracy(model, X, y) > 0.7


@pytest.mark.parametrize(
    "labels", [[-1, 1], [1, 2], ["no", "yes"], [False, True], [0.0, 1.0], [-7.5, 2.25], np.array([3, 200], np.uint8)]
)
def test_any_two_labels_are_the_same_problem(labels):
    X, y = toy()
    named = np.array(labels)[y]
    model = sound(X, named)
    np.testing.assert_array_equal(model.coef, fit(X, y).coef)
    assert set(model.predict(X).tolist()) == set(np.array(labels).tolist())


@pytest.mark.parametrize("intercept", ["free", "penalised"])
@pytest.mark.parametrize("solver", ["dual-cd", "sgd"])
def test_rows_of_weight_zero_are_rows_left_out(solver, intercept):
    # To 1e-4, not to the bit: the solver draws its orders for all rows.
    X, y = toy(n_rows=200)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.5], 200)
    X[weights == 0] *= 50  # which would widen the ranges
    kept = weights > 0
    choices = {"solver": solver, "intercept": intercept, "loss": "squared_hinge", "knots": "uniform", "certify": True}
    tolerance = {"dual-cd": 1e-4, "sgd": 1e-2}[solver]
    choices |= {"tol": 5e-5, "max_epochs": 400} if solver == "dual-cd" else {"max_epochs": 200}
    with_zeros, without = sound(X, y, weights, **choices), sound(X[kept], y[kept], weights[kept], **choices)
    np.testing.assert_array_equal(with_zeros.encoder.ranges, without.encoder.ranges)
    np.testing.assert_allclose(with_zeros.summary["objective"], without.summary["objective"], rtol=tolerance)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("encoder", ["bspline", "identity"])
@pytest.mark.parametrize("scale", ["unit", "none"])
def test_sgd_does_not_diverge(encoder, scale):  # users.md C17
    X, y = load_breast_cancer(return_X_y=True)
    choices = {"solver": "sgd", "loss": "squared_hinge", "encoder": encoder, "scale": scale, "certify": True}
    model = sound(X * 1e3, y, **choices)
    zero = fit(X, y, solver="sgd", loss="squared_hinge", certify=True, C=1e-12).summary["objective"] * 1e12
    assert model.summary["objective"] < zero
    assert accuracy(model, X * 1e3, y) > 0.85


def test_sgd_stops_near_the_objective_that_it_minimises():  # users.md C16
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 50))
    y = (X @ rng.standard_normal(50) + 3 * rng.standard_normal(20_000) > 0).astype(int)
    choices = {"encoder": "identity", "loss": "hinge", "C": 0.5}
    dual = fit(X, y, **choices)
    sgd = fit(X, y, solver="sgd", max_epochs=10, certify=True, **choices)
    assert sgd.summary["objective"] <= 1.01 * dual.summary["objective"]
    assert sgd.summary["gap"] is not None


def test_passes_over_the_data_help():  # users.md C10
    X, y = load_digits(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        one, twenty = (fit(X, y, solver="sgd", max_epochs=n, certify=True) for n in (1, 20))
    assert [one.summary["passes"], twenty.summary["passes"]] == [1, 20]
    assert twenty.summary["gap"] < 0.3 * one.summary["gap"]


def test_rows_sorted_by_label_are_learned_as_well():  # users.md C11
    X, y = toy(n_rows=2000)
    order = np.argsort(y, kind="stable")
    small = {"memory_limit": 20_000, "loss": "hinge", "solver": "dual-cd"}
    for choices in (small, small | {"solver": "sgd", "max_epochs": 10}):
        by_label = sound(X[order], y[order], chunk_rows=100, **choices)
        assert accuracy(by_label, X, y) > accuracy(sound(X, y, **choices), X, y) - 0.01
