"""LIBLINEAR as a solver: the problem it is given, and what it refuses, read whole."""

import sys
import threading

import numpy as np
import pytest

from linadd.errors import ConfigError, ConvergenceWarning
from linadd.solvers.liblinear import call_until_stopped, embed
from linadd.solvers.stopping import certify_primal
from tests.solvers.problems import LOSSES, explicit_codes, fit, make_run, toy

pytest.importorskip("liblinear", reason="the extra `baseline` (liblinear-official) is not installed")


def refusal(X, y, weights=None, **choices):
    """The message of a refused fit."""
    with pytest.raises(ConfigError) as caught:
        fit(X, y, weights, solver="liblinear", **choices)
    return str(caught.value)


@pytest.mark.parametrize("encoder", ["bspline", "fourier", "hermite", "identity"])
def test_the_embedding_is_the_explicit_code(encoder):
    X, y = toy(n_features=3)
    problem, _ = make_run(X, y, encoder=encoder, penalty_order=2, center=False, chunk_rows=50)
    np.testing.assert_allclose(embed(problem).toarray(), explicit_codes(problem), rtol=1e-13)


# A free intercept with hinge loss is refused, see below.
SOLVED = [(loss, kind) for loss in LOSSES for kind in ("penalised", "none")]
SOLVED += [("squared_hinge", "free"), ("logistic", "free")]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("loss", "intercept"), SOLVED)
@pytest.mark.filterwarnings("ignore::linadd.errors.ConvergenceWarning")
def test_it_reaches_the_optimum_that_the_certificate_bounds(loss, intercept, n_classes):
    X, y = toy(n_classes=n_classes)
    choices = {"loss": loss, "intercept": intercept, "intercept_scale": 0.5, "center": False, "n_bins": 5, "C": 0.1}
    ours = fit(X, y, tol=1e-4, max_epochs=500, **choices)
    # tol is LIBLINEAR's own: on gradients, not on the objective. For hinge it ends at its limit of 1,000 iterations.
    theirs = fit(X, y, solver="liblinear", tol=1e-5, certify=True, **choices)
    np.testing.assert_allclose(theirs.summary["objective"], ours.summary["objective"], rtol=2e-4)
    assert theirs.summary["objective"] >= ours.summary["dual_objective"]
    np.testing.assert_allclose(theirs.decision_function(X), ours.decision_function(X), atol=0.05)
    assert theirs.summary["gap"] is not None and theirs.summary["passes"] == 1 and theirs.summary["reads"] == 5


def test_without_a_request_there_is_no_certificate():
    X, y = toy()
    summary = fit(X, y, solver="liblinear").summary
    assert summary["gap"] is None and summary["objective"] is None and summary["reads"] == 3 and summary["converged"]


def test_a_run_that_ends_at_its_limit_says_so():
    X, y = toy()
    choices = {"loss": "hinge", "intercept": "none", "center": False, "C": 1e6}
    with pytest.warns(ConvergenceWarning) as caught:
        model = fit(X, y, solver="liblinear", tol=1e-13, **choices)
    assert [str(each.message) for each in caught] == [
        "solver liblinear: stopped before its tolerance 1e-13: reaching max number of iterations. Raise tol, lower C, "
        "or use dual-cd."
    ]
    assert not model.summary["converged"]


def test_a_run_is_left_behind_when_a_stop_is_asked_for():
    assert call_until_stopped(lambda: 3, lambda: True) == 3  # it was done before anybody looked
    end = threading.Event()
    with pytest.raises(KeyboardInterrupt):
        call_until_stopped(end.wait, lambda: True)
    end.set()
    with pytest.raises(ZeroDivisionError):
        call_until_stopped(lambda: 1 / 0, lambda: False)


def test_runs_repeat_and_follow_the_seed():
    X, y = toy(n_classes=3)
    choices = {"solver": "liblinear", "loss": "hinge", "intercept": "none", "center": False, "tol": 0.1}
    first, again, other = (fit(X, y, seed=seed, **choices).coef for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_its_intercept_is_that_of_the_problem():
    X, y = toy()
    choices = {"loss": "squared_hinge", "intercept": "penalised", "intercept_scale": 2.0, "center": False, "C": 0.1}
    model = fit(X, y, solver="liblinear", tol=1e-6, **choices)
    problem, run = make_run(X, y, **choices)
    _, best = certify_primal(problem, run.memory, model.coef, model.intercept)
    np.testing.assert_allclose(model.intercept, best, atol=1e-3)


def test_a_free_intercept_with_hinge_loss_is_refused():
    assert refusal(*toy(), loss="hinge") == (
        "solver liblinear: hinge loss is solved in the dual, where LIBLINEAR's intercept is always penalised. Use "
        "--intercept penalised, or the solver dual-cd."
    )


@pytest.mark.parametrize("intercept", ["penalised", "none"])
def test_a_centred_embedding_is_refused_unless_the_intercept_is_free(intercept):
    assert refusal(*toy(), intercept=intercept) == (
        f"solver liblinear: with the intercept {intercept!r} a centred embedding is another problem than LIBLINEAR's. "
        "Use --no-center."
    )


def test_weights_are_refused():
    message = "solver liblinear: sample weights and class weights are not supported. Use dual-cd."
    X, y = toy()
    assert refusal(X, y, np.where(y == 0, 1.0, 2.0)) == message
    assert refusal(X, y, class_weight={0: 3.0}) == message


def test_an_embedding_beyond_the_limit_is_refused():
    X, y = toy(n_rows=1000, n_features=5)
    # 1000 rows, 5 features, 11 coefficients of 28 bytes; labels, costs, folds and positions are held already.
    assert refusal(X, y, memory_limit=1_000_000) == (
        "solver liblinear: the explicit embedding needs 2 MB, above what is left of the memory limit, 1 MB. Raise "
        "--memory-limit, or use dual-cd, which never builds it."
    )
    needed = 1000 * 5 * 11 * 28 + 1000 * (4 + 4 + 2 + 5 * 4)
    assert fit(X, y, solver="liblinear", memory_limit=needed).summary["solver"] == "liblinear"
    assert refusal(X, y, memory_limit=needed - 1)
    assert fit(X, y, solver="liblinear", memory_limit=needed // 2, penalty_order=0).summary["converged"]


def test_without_the_package_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "liblinear", None)
    assert refusal(*toy()) == (
        "solver liblinear: needs the package liblinear-official. Install it by pip install 'linadd[baseline]'."
    )
