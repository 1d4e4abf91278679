"""Laws of every solver in the list, through `train`: what a user may rely on whichever one is chosen.

Each check takes a name of SOLVERS. A solver without certificate is judged by the one that `certify` makes. Those that
refuse a problem do so by a ConfigError that names them: `fit_unless_refused` makes that an expected outcome, and the
tests of the solver read the message.
"""

import warnings

import numpy as np
import pytest

from linadd.errors import ConfigError, ConvergenceWarning
from linadd.options import Options
from linadd.solvers import SOLVERS
from linadd.sources import open_source
from linadd.train import Progress, train

# A penalised intercept without centring: the problem that all solvers can be given with every loss.
COMMON = {"intercept": "penalised", "center": False, "n_bins": 5, "certify": True, "C": 0.3}
COMPAT = {"encoder": "identity", "scale": "none", "center": False, "clamp": False, "intercept": "none", "certify": True}
LOSSES = ("hinge", "squared_hinge", "logistic")
# Relative distance of the objective from the optimum at the effort below: what a solver certifies, or has shown.
CERTIFIED = 1e-4
REACHED = {"sgd": 1e-2, "liblinear": 1e-3}
EFFORT = {"sgd": {"max_epochs": 200}, "liblinear": {"tol": 1e-3}}
LITTLE = {"liblinear": {"tol": 1.0}}


def reached(name):
    """Relative distance from the optimum that the solver's effort leads to."""
    return REACHED.get(name, CERTIFIED)


def effort(name):
    """Options that lead there."""
    return EFFORT.get(name, {"tol": CERTIFIED, "max_epochs": 1000})


def little(name):
    """Options that lead less far."""
    return LITTLE.get(name, {"max_epochs": 1})


def losses_of(name):
    """The losses that the solver takes: all, or the smooth ones."""
    X, y = rows()
    return [loss for loss in LOSSES if fit_unless_refused(name, X, y, loss=loss, **COMMON, **little(name))]


def rows(n_rows=240, n_classes=2, seed=0):
    """Rows of three features on unlike scales, the second one skewed; labels from a curve with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3))
    score = np.abs(X[:, 0]) + X[:, 1] + 0.7 * rng.standard_normal(n_rows)
    X[:, 1] = np.exp(X[:, 1])
    ranks = np.argsort(np.argsort(score))
    return X, ranks * n_classes // n_rows


def fit(name, X, y, weights=None, chunk_rows=None, progress=None, **choices):
    """A model by the solver, whether or not it reached its tolerance."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        source = open_source(X, y, weights=weights, chunk_rows=chunk_rows)
        return train(source, Options(solver=name, **choices), progress)


def fit_unless_refused(name, *data, **choices):
    """A model by the solver; None where it refuses the problem, in its own name."""
    try:
        return fit(name, *data, **choices)
    except ConfigError as error:
        assert f"solver {name}" in str(error)


def optimum(X, y, **choices):
    """(lower, upper) bounds of the optimum."""
    summary = fit("dual-cd", X, y, **(choices | effort("dual-cd"))).summary
    assert summary["gap"] <= CERTIFIED
    return summary["dual_objective"], summary["objective"]


def check_objective(name):
    """It falls with the effort, from below that of the zero classifier to the optimum."""
    X, y = rows()
    for loss in losses_of(name):
        least = fit(name, X, y, loss=loss, **COMMON, **little(name)).summary["objective"]
        most = fit(name, X, y, loss=loss, **COMMON, **effort(name)).summary["objective"]
        lower, upper = optimum(X, y, loss=loss, **COMMON)
        at_zero = len(y) * COMMON["C"] * (np.log(2) if loss == "logistic" else 1.0)
        assert lower * (1 - 1e-9) <= most <= upper * (1 + reached(name))
        assert most <= least <= at_zero


def check_several_outputs(name):
    """One-versus-rest: each output is the two-class problem of its class."""
    X, y = rows(n_classes=3)
    model = fit(name, X, y, loss="squared_hinge", **COMMON, **effort(name))
    single = [optimum(X, y == label, loss="squared_hinge", **COMMON) for label in range(3)]
    total = model.summary["objective"]
    assert sum(lower for lower, _ in single) <= total <= sum(upper for _, upper in single) * (1 + reached(name))
    assert model.coef.shape[2] == len(model.intercept) == 3


def check_certificate(name):
    """The gap is there without asking where the list says so; then it falls below tol, and reaching it is success."""
    X, y = rows()
    choices = {**COMMON, "certify": False, "loss": "squared_hinge", **effort(name)}
    summary = fit(name, X, y, **choices).summary
    assert (summary["gap"] is not None) == SOLVERS[name].certifies
    if SOLVERS[name].certifies:
        assert summary["converged"] and 0 <= summary["gap"] <= choices["tol"]
        short = fit(name, X, y, **(choices | {"tol": 1e-12, "max_epochs": 2})).summary
        assert not short["converged"] and short["gap"] > 1e-12
    gap = fit(name, X, y, **(choices | {"certify": True})).summary["gap"]
    assert 0 <= gap < 0.1


def check_blocks(name):
    """Rows in blocks lead to the optimum of rows in memory, or are refused."""
    X, y = rows()
    small = {"memory_limit": 5000}
    choices = {**COMMON, "loss": "squared_hinge", **effort(name), "max_epochs": 50}
    blocks = fit_unless_refused(name, X, y, **choices, **small)
    if blocks is None:
        return
    whole = fit(name, X, y, **choices)
    assert whole.summary["plan"]["fits"] and not blocks.summary["plan"]["fits"]
    lower, upper = optimum(X, y, loss="squared_hinge", **COMMON)
    for model in (whole, blocks):
        assert lower <= model.summary["objective"] <= upper * (1 + 3 * reached(name))


def check_identity_is_liblinear(name):
    """The identity encoder as a plain linear classifier: the objective and the weights of liblinear-official."""
    liblinearutil = pytest.importorskip("liblinear.liblinearutil", reason="the extra `baseline` is not installed")
    X, y = rows()
    for loss in losses_of(name):
        number = {"hinge": 3, "squared_hinge": 1, "logistic": 7}[loss]
        model = fit(name, X, y, loss=loss, C=0.5, **COMPAT, **effort(name))
        theirs = liblinearutil.train(2 * y - 1, X, f"-s {number} -c 0.5 -e 1e-6 -q")
        w = np.array(theirs.get_decfun()[0]) * theirs.get_labels()[0]
        margins = (2 * y - 1) * (X @ w)
        terms = {"hinge": np.maximum(0, 1 - margins), "squared_hinge": np.maximum(0, 1 - margins) ** 2}
        objective = 0.5 * w @ w + 0.5 * terms.get(loss, np.logaddexp(0, -margins)).sum()
        np.testing.assert_allclose(model.summary["objective"], objective, rtol=reached(name))
        assert model.intercept == 0.0
        # The objective is strongly convex: |w - w*|^2 / 2 is at most what it lies above the optimum.
        distance = np.sqrt(2 * 1.1 * reached(name) * objective)
        assert np.linalg.norm(model.coef[:, 0, 0] - w) <= distance
        assert model.decision_function(10 * X).max() > 5 * model.decision_function(X).max()  # not clamped


def check_bits(name):
    """Two runs, any reader chunk, any number of threads, any order of memory: the same bits of model and gap."""
    X, y = rows(n_rows=600, n_classes=3)
    choices = {**COMMON, "loss": "logistic", "max_epochs": 5}
    expected = fit(name, X, y, **choices).digest
    for chunk_rows in (1, 77, 1000):
        assert fit(name, X, y, chunk_rows=chunk_rows, **choices).digest == expected
    assert fit(name, np.asfortranarray(X), y, n_jobs=3, **choices).digest == expected


def check_weights(name):
    """A weight is a factor of C: rows of weight 2 are rows that occur twice, rows of weight 0 rows left out."""
    X, y = rows()
    weights = np.arange(len(y)) % 3 * 1.0
    choices = {**COMMON, "loss": "squared_hinge", "scale": "none", "knots": "uniform", **effort(name)}
    model, counts = fit_unless_refused(name, X, y, weights, **choices), weights.astype(int)
    if model is None:
        return
    lower, upper = optimum(np.repeat(X, counts, axis=0), np.repeat(y, counts), **(choices | effort("dual-cd")))
    assert lower <= model.summary["objective"] <= upper * (1 + reached(name))


def check_interruption(name):
    """Ctrl-C: a whole model and its record, not converged; a solver of one step ends as ever."""

    class Stop(Progress):
        def should_stop(self):
            return True

    X, y = rows()
    model = fit(name, X, y, progress=Stop(), **COMMON)
    assert model.summary["interrupted"] != model.summary["converged"]
    assert model.summary["passes"] == 1 and model.summary["gap"] >= 0
    assert np.isfinite(model.decision_function(X)).all()


def check_history(name):
    """One record an epoch, told as it is made; objectives are numbers."""
    records = []

    class Listener(Progress):
        def epoch(self, record):
            records.append(record)

    X, y = rows()
    model = fit(name, X, y, progress=Listener(), max_epochs=3, tol=1e-9, **COMMON)
    assert model.history == records
    assert [record["epoch"] for record in records] in ([1, 2, 3], [])
    for record in records:
        assert np.isfinite(record["objective"])
        assert record.keys() >= {"epoch", "objective", "dual_objective", "gap", "certified_gap"}


CHECKS = [value for key, value in list(globals().items()) if key.startswith("check_")]
