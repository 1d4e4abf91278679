"""Newton's method: the optimum of dual descent, its dual point, its line search, its sample, and what it refuses."""

import logging
import re
import tracemalloc
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from linadd.errors import ConfigError
from linadd.solvers import dual_cd, gram, newton
from linadd.solvers.memory import Memory
from linadd.solvers.newton import Newton
from linadd.solvers.stopping import Certificate
from linadd.sources import open_source
from tests.solvers.problems import (
    conjugates,
    costs_of,
    explicit_codes,
    fit,
    loss_values,
    make_run,
    signs_of,
    toy,
    weights_of,
)

DATA = Path(__file__).parents[2] / "../shared/data"
SMOOTH = ("squared_hinge", "logistic")
INTERCEPTS = ("free", "penalised", "none")


def digits():
    """Handwritten digits 3, 5 and 8 of scikit-learn: (X, y), 541 rows of 64 features, some of them constant."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    kept = np.isin(y, [3, 5, 8])
    return X[kept], y[kept]


def objective(problem, point):
    """P of points (w, b) of all outputs, from explicit codes."""
    scores = explicit_codes(problem) @ point[:, :-1].T + point[:, -1]
    losses = (costs_of(problem) * loss_values(problem, signs_of(problem) * scores)).sum(axis=0)
    ridge = 1 / problem.intercept_square if problem.intercept == "penalised" else 0.0
    return losses + 0.5 * (point[:, :-1] ** 2).sum(axis=1) + 0.5 * ridge * point[:, -1] ** 2


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_optimum_is_that_of_dual_descent(loss, intercept, n_classes):
    X, y = toy(n_rows=300, n_classes=n_classes)
    choices = {"loss": loss, "intercept": intercept, "tol": 1e-6, "max_epochs": 1000}
    ours, theirs = (solver.solve(*make_run(X, y, **choices)).certificate for solver in (newton, dual_cd))
    assert (ours.gaps <= 1e-6).all() and (ours.gaps >= 0).all()
    np.testing.assert_allclose(ours.primal, theirs.primal, rtol=2e-6)
    assert (ours.dual <= theirs.primal).all() and (theirs.dual <= ours.primal).all()


@pytest.mark.filterwarnings("ignore:.*constant features")
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_optimum_of_digits_is_that_of_dual_descent(loss):
    X, y = digits()
    choices = {"loss": loss, "tol": 1e-6, "max_epochs": 1000, "n_bins": 5}
    ours, theirs = (solver.solve(*make_run(X, y, **choices)) for solver in (newton, dual_cd))
    assert ours.converged and ours.passes < theirs.passes
    np.testing.assert_allclose(ours.certificate.primal, theirs.certificate.primal, rtol=2e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"degree": 0},
        {"degree": 3, "penalty_order": 2},
        {"encoder": "fourier"},
        {"encoder": "identity", "scale": "none"},
        {"center": False},
        {"center": False, "intercept": "none"},
    ],
    ids=str,
)
def test_every_embedding_is_certified(options):
    X, y = toy(n_rows=200)
    result = newton.solve(*make_run(X, y, loss="logistic", tol=1e-7, **options))
    assert result.converged and 0 <= result.certificate.gap <= 1e-7


@pytest.mark.parametrize("intercept", ["penalised", "none"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_without_a_step_the_gap_is_half_the_squared_gradient(loss, intercept):
    X, y = toy()
    problem, run = make_run(X, y, loss=loss, intercept=intercept, C=0.2)
    machine = Newton(problem, run)
    machine.point[...] = 0.1 * np.random.default_rng(0).standard_normal(machine.point.shape)
    machine.point[:, -1] *= intercept != "none"
    machine.evaluate(machine.rows, machine.point, np.arange(1))
    a, signs = machine.rows.duals.astype(np.float64), signs_of(problem)
    w, b = machine.point[0, :-1], machine.point[0, -1]
    gradient = w - (a * signs)[:, 0] @ explicit_codes(problem)
    square = problem.intercept_square
    along_b = b / square**0.5 - square**0.5 * (a * signs).sum() if intercept == "penalised" else 0.0
    gap = objective(problem, machine.point)[0] - machine.rows.dual_objectives()[0]
    np.testing.assert_allclose(gap, 0.5 * (gradient @ gradient + along_b**2), rtol=1e-4)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_the_dual_point_of_a_step_belongs_to_its_end(intercept):
    X, y = toy()
    problem, run = make_run(X, y, loss="squared_hinge", intercept=intercept, C=1e-3)  # all margins stay below 1
    machine = Newton(problem, run)
    machine.advance()
    end = machine.point + machine.step
    machine.advance()
    signed = (machine.rows.duals * signs_of(problem))[:, 0]
    assert (machine.rows.duals > 0).all()
    np.testing.assert_allclose(signed @ explicit_codes(problem), end[0, :-1], rtol=0, atol=1e-6)
    if intercept == "free":
        assert abs(signed.sum()) < 1e-6
    np.testing.assert_allclose(machine.primal, objective(problem, machine.point), rtol=1e-6)
    # The loss is quadratic there: one step is the optimum, and its dual point proves it.
    assert machine.gaps[0] < 1e-6
    total = conjugates(problem, machine.duals)[:, 0].sum() - 0.5 * (end[0, :-1] ** 2).sum()
    if intercept != "penalised":
        np.testing.assert_allclose(machine.dual[0], total, rtol=1e-5)


def test_a_step_that_is_too_long_is_cut_at_the_least_objective(monkeypatch):
    X, y = toy(n_rows=600)
    problem, run = make_run(X, y, loss="squared_hinge", C=1000.0, tol=1e-6)
    cuts, search = [], Newton.search

    def spy(self, o, first_slope):
        point, step = self.point.copy(), self.step.copy()
        eta, value = search(self, o, first_slope)
        along = [objective(problem, point + at * step)[o] for at in (0.0, 0.98 * eta, eta, 1.02 * eta, 1.0)]
        np.testing.assert_allclose(value, along[2], rtol=1e-5)
        assert along[2] < along[0] and along[2] <= along[1] and along[2] <= along[3] and along[2] < along[4]
        cuts.append(eta)
        return eta, value

    monkeypatch.setattr(Newton, "search", spy)
    result = newton.solve(problem, run)
    assert result.converged and cuts and all(0 < eta < 1 for eta in cuts)
    objectives = [record["objective"] for record in result.history]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(objectives))
    duals = [record["dual_objective"] for record in result.history]
    assert duals == sorted(duals) and result.certificate.dual[0] >= duals[-1] * (1 - 1e-6)


@pytest.mark.parametrize("loss", SMOOTH)
def test_separable_duplicated_and_constant_features_converge(loss):
    X, y = toy(n_rows=150, noise=0.0)
    X = np.column_stack([X, X, np.full(len(y), 7.0), y])
    problem, run = make_run(X, y, loss=loss, C=1e5, tol=1e-5, max_epochs=100)
    result = newton.solve(problem, run)
    assert result.converged
    w = weights_of(problem, result.coef)[0].reshape(10, -1)
    assert not w[8].any()
    np.testing.assert_allclose(w[:4], w[4:8], rtol=0, atol=1e-4 * np.abs(w).max())


def test_coefficients_in_float32_end_the_run_where_the_tolerance_is_beyond_them():
    X, y = toy()
    result = newton.solve(*make_run(X, y, loss="logistic", tol=1e-16))
    assert not result.converged and not result.interrupted
    assert result.passes < 15 and 0 <= result.certificate.gap < 1e-8


def test_a_run_ends_where_steps_no_longer_lower_the_objective():
    X, y = toy()
    machine = Newton(*make_run(X, y, loss="logistic", max_epochs=50))
    machine.targets[...] = -1.0
    assert machine.minimise() and machine.is_stalled.all() and machine.passes < 15


def test_an_output_that_its_certificate_finds_above_tol_goes_on():
    class Half:
        def certify(self, *_):
            return Certificate(primal=np.array([2.0, 1.0, 1.0]), dual=np.array([1.0, 1.0, 1.0]))

    X, y = toy(n_classes=3)
    machine = Newton(*make_run(X, y, loss="logistic"))
    assert machine.minimise() and not len(machine.active)
    assert machine.certify(Half()) == 0.5
    np.testing.assert_allclose(machine.targets, [0.1 * machine.gaps[0], 1e-3, 1e-3])
    np.testing.assert_array_equal(machine.active, [0])


def test_the_end_of_the_last_step_is_judged_too():
    X, y = toy()
    result = newton.solve(*make_run(X, y, loss="logistic", max_epochs=2))
    assert result.certificate.primal[0] < 0.99 * result.history[-1]["objective"]


def test_weights_are_factors_of_the_cost():
    X, y = toy(n_rows=200)
    counts = np.arange(len(y)) % 3
    choices = {"loss": "logistic", "tol": 1e-7, "scale": "none", "knots": "uniform", "solver": "newton"}
    weighted = fit(X, y, weights=counts.astype(float), **choices).summary
    repeated = fit(np.repeat(X, counts, axis=0), np.repeat(y, counts), **choices).summary
    np.testing.assert_allclose(weighted["objective"], repeated["objective"], rtol=1e-6)


def large(seed=0):
    """Rows enough for a sample of 18 coefficients: (X, y)."""
    return toy(n_rows=6000, n_features=3, seed=seed)


LARGE = {"n_bins": 5, "loss": "logistic", "C": 10.0, "tol": 1e-6}


def test_the_optimum_of_a_sample_is_a_good_start(monkeypatch):
    X, y = large()
    problem, run = make_run(X, y, **LARGE)
    warm = newton.solve(problem, run)
    monkeypatch.setattr(newton, "START_SHARES", (0.1, 0.0))
    cold = newton.solve(*make_run(X, y, **LARGE))
    assert warm.history[0]["objective"] < 1.05 * warm.certificate.primal[0] < cold.history[0]["objective"]
    assert warm.passes < cold.passes
    np.testing.assert_allclose(warm.certificate.primal, cold.certificate.primal, rtol=2e-6)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", SMOOTH)
def test_a_sample_without_a_class_is_left_for_zero(loss, intercept, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5000, 4)), np.zeros(5000, int)
    y[::1000] = 1
    X[y == 1] += 4
    choices = {"loss": loss, "intercept": intercept, "max_epochs": 300}
    problem, run = make_run(X, y, **choices)
    samples, draw = [], newton.draw_sample
    monkeypatch.setattr(newton, "draw_sample", lambda *args: samples.append(draw(*args)) or samples[-1])
    ours, theirs = newton.solve(problem, run), dual_cd.solve(*make_run(X, y, **choices))
    assert ours.converged and theirs.converged and ours.passes < 20 and not (samples[0].targets == 1).any()
    np.testing.assert_allclose(ours.certificate.primal, theirs.certificate.primal, rtol=2e-3)


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_a_source_gives_the_bits_of_memory_for_any_reader_and_threads(share):
    X, y = large()
    problem, run = make_run(X, y, hessian_sample=share, **LARGE)
    expected = newton.solve(problem, run)
    assert expected.reads == 1  # the certificate
    for chunk_rows, n_threads in ((700, 1), (6000, 2)):
        other = replace(problem, source=open_source(X, y, chunk_rows=chunk_rows), positions=None)
        found = newton.solve(other, replace(run, n_threads=n_threads))
        np.testing.assert_array_equal(found.coef, expected.coef)
        assert found.history == expected.history and (found.intercept == expected.intercept).all()
        assert found.reads == 1 + found.passes + expected.reads  # one of them for the sample


def test_a_sampled_hessian_leads_to_the_optimum_without_a_gram_of_all_rows():
    X, y = large()
    problem, run = make_run(X, y, hessian_sample=0.4, **LARGE)
    first, curved = newton.first_point(problem, run)
    assert len(curved.problem.targets) == 2400
    assert Newton(problem, run, first, curved).rows.gram.shape[0] == 0
    whole = newton.solve(*make_run(X, y, **LARGE)).certificate
    np.testing.assert_allclose(newton.solve(problem, run).certificate.primal, whole.primal, rtol=2e-6)


def test_a_sample_that_is_too_small_is_said_and_all_rows_taken(caplog):
    X, y = large()
    problem, run = make_run(X, y, hessian_sample=0.1, **LARGE)
    with caplog.at_level(logging.INFO, "linadd.solvers.newton"):
        first, curved = newton.first_point(problem, run)
    assert first.any() and curved is None
    assert caplog.messages == ["newton: a Hessian of 18 coefficients needs a sample of 900 rows; all rows are taken."]


def test_a_sample_is_random_and_its_costs_stand_for_all_rows():
    X, y = large()
    problem, run = make_run(X, y, **LARGE)
    sample = newton.draw_sample(problem, run, 0.1)
    again = newton.draw_sample(problem, replace(run, plan=replace(run.plan, seed=1)), 0.1)
    assert len(sample.positions) == 600 and (sample.positions != again.positions).any()
    rows = [np.flatnonzero((problem.positions == position).all(axis=1))[0] for position in sample.positions]
    np.testing.assert_array_equal(problem.targets[rows], sample.targets)
    np.testing.assert_allclose(sample.cost * len(sample.costs), problem.cost * len(y))
    run.memory.left = newton.required_bytes(problem) + 2 * 50 * (3 * 4 + 10 + 24)
    assert len(newton.draw_sample(problem, run, 0.1).positions) in (48, 50)  # whole runs of consecutive rows


class Watched(Memory):
    """An account that knows the least that was left."""

    def __init__(self, left):
        self.lowest = left
        super().__init__(left)

    @property
    def left(self):
        """Bytes that are left now."""
        return self.now

    @left.setter
    def left(self, value):
        self.now, self.lowest = value, min(value, self.lowest)


@pytest.mark.parametrize("options", [{}, {"hessian_sample": 0.9}, {"precision": "uint8"}], ids=str)
@pytest.mark.parametrize("is_kept", [True, False])
def test_the_account_holds_all_that_is_allocated_and_one_gram_at_a_time(options, is_kept, monkeypatch):
    X, y = large()
    choices = LARGE | {"n_bins": 127, "tol": 1e-3, "knots": "uniform"} | options
    problem, run = make_run(X, y, **choices)
    if not is_kept:
        problem = replace(problem, source=open_source(X, y, chunk_rows=100), positions=None)
    monkeypatch.setattr(newton, "START_ROWS", 5)
    monkeypatch.setattr(newton, "HESSIAN_ROWS", 10)
    monkeypatch.setattr(gram, "PIECE_BYTES", 200_000)  # so that the matrix is the most of all
    needed = newton.required_bytes(problem)
    watched = replace(run, memory=Watched(10**8))
    newton.solve(problem, watched)  # compiles
    assert watched.memory.left == 10**8
    taken = 10**8 - watched.memory.lowest
    tracemalloc.start()
    newton.solve(problem, watched)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert needed < taken < needed + 0.9 * newton.gram_bytes(problem)
    assert 0.7 * taken < peak < taken + 0.4 * newton.gram_bytes(problem)  # what the source holds, and Python


@pytest.mark.parametrize("rows_fit", [True, False])
def test_a_refusal_names_the_memory_that_is_enough(rows_fit):
    X, y = toy(n_rows=3000, n_features=20)
    choices = {"loss": "logistic", "knots": "uniform", "max_epochs": 1}
    choices |= {"memory_limit": 500_000 if rows_fit else 400_000, "n_bins": 19 if rows_fit else 29}
    problem, run = make_run(X, y, **choices)
    assert (problem.positions is not None) == rows_fit
    with pytest.raises(ConfigError, match=r"need .* MB, most of it for Gram matrices") as caught:
        newton.solve(problem, run)
    enough = float(re.search("at least ([0-9.]+) MB", str(caught.value))[1])
    assert newton.solve(*make_run(X, y, **choices | {"memory_limit": int(1e6 * enough)})).passes == 1
    with pytest.raises(ConfigError, match=f"at least {enough} MB"):
        newton.solve(*make_run(X, y, **choices | {"memory_limit": int(1e6 * (enough - 0.1))}))


def test_ctrl_c_within_a_pass_keeps_the_point_before_it():
    X, y = toy(n_rows=20_000, n_features=2)
    problem, run = make_run(X, y, loss="logistic", n_bins=5, tol=1e-12)
    n_pieces = -(-len(y) // gram.piece_rows(problem.encoder, 1, len(y)))
    calls = iter(range(1000))  # one after each piece, the last one after the pass
    run = replace(run, should_stop=lambda: next(calls) == n_pieces)
    result = newton.solve(problem, run)
    assert result.interrupted and not result.converged
    assert n_pieces > 1 and len(result.history) == 1 and result.passes == 2
    assert 0 < result.certificate.primal[0] <= result.history[0]["objective"]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (
            {"loss": "hinge"},
            "solver newton: the hinge loss has a kink, so it has no second derivative. Use --loss squared_hinge, or "
            "the solver dual-cd.",
        ),
        (
            {"loss": "logistic", "stop_on": "violation"},
            "solver newton: stops on the duality gap. Use --stop-on gap, or the solver dual-cd.",
        ),
        (
            {"loss": "logistic", "n_bins": 99, "memory_limit": 4_000_000},
            "solver newton: 3 outputs of 400 coefficients need 4.0 MB, most of it for Gram matrices, above the 4.0 MB "
            "that are left of memory_limit, 4.0 MB. Give at least 4.1 MB, or use the solver dual-cd, which has none.",
        ),
    ],
)
def test_refusals_give_the_reason(choices, message):
    X, y = toy(n_classes=3)
    with pytest.raises(ConfigError) as caught:
        newton.solve(*make_run(X, y, **choices))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("choices", "name"),
    [
        ({}, "newton"),
        ({"loss": "squared_hinge"}, "newton"),
        ({"loss": "hinge"}, "dual-cd"),
        ({"stop_on": "violation"}, "dual-cd"),
        ({"partial_solutions": 2}, "dual-cd"),
        ({"memory_limit": 100_000}, "newton"),
        ({"memory_limit": 60_000}, "dual-cd"),
        ({"n_bins": 499}, "newton"),
        ({"n_bins": 500}, "dual-cd"),
    ],
    ids=str,
)
def test_auto_takes_newton_for_smooth_losses_of_few_coefficients(choices, name, caplog):
    X, y = toy()
    with caplog.at_level(logging.INFO, "linadd.solvers"):
        model = fit(X, y, **({"tol": 0.1, "max_epochs": 1000, "knots": "uniform"} | choices))
    assert model.summary["solver"] == name
    n_columns = 4 * (choices.get("n_bins", 10) + 1)
    assert f"solver auto: {name}, for 1 outputs of {n_columns} coefficients." in caplog.messages


@pytest.mark.skipif(not (DATA / "ijcnn1.npz").exists(), reason="../shared/data/ijcnn1.npz is absent")
@pytest.mark.parametrize("loss", SMOOTH)
def test_fewer_passes_than_dual_descent_on_ijcnn1(loss):
    with np.load(DATA / "ijcnn1.npz") as data:
        X, y = data["X_train"][:8000], data["y_train"][:8000]
    choices = {"loss": loss, "C": 3.0, "tol": 1e-3, "max_epochs": 200}
    ours, theirs = (solver.solve(*make_run(X, y, **choices)) for solver in (newton, dual_cd))
    assert ours.converged and theirs.converged and ours.passes < theirs.passes
