"""Dual coordinate descent against its slow twin, step by step under a dictated order, and its laws."""

from dataclasses import replace

import numpy as np
import pytest

from linadd.solvers.dual_cd import BALANCE, INTERCEPT, DualCD, sweep
from tests.solvers.plain_dual import PlainDual
from tests.solvers.problems import (
    LOSSES,
    conjugates,
    costs_of,
    explicit_codes,
    make_run,
    signs_of,
    thin,
    toy,
    weights_of,
)

# Margins are sums of some 50 float32 products; a dual variable follows its margin by at most 1 / Q_ii, about 1 here.
FLOAT32 = {"rtol": 1e-4, "atol": 1e-4}
SETTINGS = {
    "centred, free": {},
    "centred, penalised": {"intercept": "penalised", "intercept_scale": 0.7},
    "not centred, free": {"center": False},
    "sparse": {"rows": "sparse"},
    "not centred, none": {"center": False, "intercept": "none", "scale": "libspline"},
}


def machine_of(problem, run):
    """A machine at the start of its first epoch, and its block of all rows."""
    machine = DualCD(problem, run)
    machine.start_epoch()
    return machine, machine.reader.whole


def take(machine, block, rows, active, is_first):
    """The compiled sweep over rows, in that order."""
    sweep(
        rows, block, active, machine.basis, machine.problem.centre.space, machine.outputs, machine.state,
        machine.visits[0], machine.scratches[0], is_first,
    )  # fmt: skip


def twins(problem, run, least_violation=0.0):
    """The compiled machine and the plain one at the same start, with the mask of active variables."""
    machine, block = machine_of(problem, run)
    machine.outputs = machine.outputs._replace(least_violation=least_violation)
    active = np.ones(block.duals.shape, np.uint8)
    begin_visit(machine)
    return machine, block, active, PlainDual(problem, machine.proximal.share, least_violation)


def begin_visit(machine):
    """What `visit` does before its first sweep."""
    machine.visits[0].limits[0], machine.visits[0].limits[1] = -np.inf, np.inf
    begin_sweep(machine)


def begin_sweep(machine):
    """What `visit` does before each sweep."""
    machine.visits[0].bounds[0], machine.visits[0].bounds[1] = np.inf, -np.inf


@pytest.mark.parametrize("n_classes", [2, 3, 17])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_step_is_the_twins(loss, setting, n_classes):
    X, y = toy(n_rows=51, n_classes=n_classes)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], len(y))
    weights[np.unique(y, return_index=True)[1]] = 1.0
    X = thin(X) if setting == "sparse" else X
    problem, run = make_run(X, y, weights, loss=loss, n_bins=5, C=3.0, **SETTINGS[setting])
    machine, block, active, plain = twins(problem, run)
    for k in range(2):
        for i in np.random.default_rng(k).permutation(len(y)):
            take(machine, block, np.array([i]), active, k == 0)
            plain.visit(i, k == 0)
            np.testing.assert_allclose(block.duals[i], plain.duals[i], **FLOAT32)
    terms = machine.state.terms
    np.testing.assert_allclose(terms[INTERCEPT], plain.intercept, **FLOAT32)
    np.testing.assert_allclose(terms[BALANCE], plain.balance, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(machine.visits[0].loss, plain.loss, rtol=1e-4)
    np.testing.assert_allclose(machine.visits[0].bounds, plain.bounds, rtol=1e-3, atol=1e-4)
    assert (block.duals[weights == 0] == 0).all()


@pytest.mark.parametrize("options", [{"degree": 0}, {"degree": 3, "penalty_order": 2, "n_bins": 15}, {"n_bins": 40}])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_v_belongs_to_the_duals(rows, options, n_classes):
    X, y = toy(n_classes=n_classes)
    problem, run = make_run(thin(X), y, loss="squared_hinge", max_epochs=3, rows=rows, **options)
    machine, block = machine_of(problem, run)
    for epoch in range(3):
        machine.visit(block, epoch, 0)
    w = (block.duals * signs_of(problem)).T @ explicit_codes(problem)
    found = weights_of(problem, problem.encoder_coef(machine.proximal.dual_coef(machine.state.coef)))
    # v is a running float32 sum, and D_2 amplifies its rounding; what it costs is certified, see stopping.py.
    np.testing.assert_allclose(found, w, rtol=0, atol=5e-4 * np.abs(w).max())


@pytest.mark.parametrize("encoder", ["fourier", "hermite", "identity"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_steps_of_dense_bases_are_the_twins(rows, encoder, n_classes):
    X, y = toy(n_rows=60, n_classes=n_classes)
    problem, run = make_run(thin(X), y, loss="hinge", encoder=encoder, rows=rows)
    machine, block, active, plain = twins(problem, run)
    for i in np.random.default_rng(0).permutation(len(y)):
        take(machine, block, np.array([i]), active, True)
        plain.visit(i, True)
        np.testing.assert_allclose(block.duals[i], plain.duals[i], **FLOAT32)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_shrinking_leaves_out_what_the_twin_leaves_out(loss, n_classes):
    X, y = toy(n_rows=150, n_classes=n_classes)
    problem, run = make_run(X, y, loss=loss, C=0.3)
    machine, block, active, plain = twins(problem, run, least_violation=1e-4)
    for k in range(5):
        for i in np.random.default_rng(k).permutation(len(y)):
            take(machine, block, np.array([i]), active, k == 0)
            plain.visit(i, k == 0)
        differs = active != plain.active
        # float32 against float64: only a slope at the limit itself may be taken differently, which is rare.
        assert differs.sum() <= 1 and (plain.from_limit[differs] < 1e-5).all()
        plain.active[...] = active
        np.testing.assert_allclose(block.duals, plain.duals, rtol=1e-3, atol=1e-4)
        machine.note_violation(is_first=k == 0)
        plain.start_sweep(plain.bounds)
        np.testing.assert_allclose(machine.visits[0].limits, plain.limits, rtol=1e-2, atol=1e-4)
        begin_sweep(machine)
    assert 0.05 < 1 - active.mean() < 0.9


def test_bounds_that_no_row_went_beyond_do_not_shrink():
    problem, run = make_run(*toy(n_classes=3), loss="hinge")
    machine, _ = machine_of(problem, run)
    machine.visits[0].bounds[...] = [[-0.5, 0.0, -1.0], [0.0, 0.25, 2.0]]
    machine.note_violation(is_first=True)
    assert machine.visits[0].limits.tolist() == [[-0.5, -np.inf, -1.0], [np.inf, 0.25, 2.0]]
    assert machine.violation.tolist() == [[-0.5, 0.0, -1.0], [0.0, 0.25, 2.0]]
    machine.visits[0].bounds[...] = [[-9.0] * 3, [9.0] * 3]
    machine.note_violation(is_first=False)  # of later sweeps over a block the rule takes no notice
    assert machine.violation.tolist() == [[-0.5, 0.0, -1.0], [0.0, 0.25, 2.0]]


def test_the_logistic_loss_is_never_shrunk():
    X, y = toy()
    problem, run = make_run(X, y, loss="logistic")
    machine, block, active, _ = twins(problem, run, least_violation=10.0)
    machine.visits[0].limits[...] = 0.0
    take(machine, block, np.arange(len(y)), active, False)
    take(machine, block, np.arange(len(y)), active, False)
    assert active.all()


@pytest.mark.parametrize("n_classes", [2, 17])
def test_one_call_is_many_calls(n_classes):
    X, y = toy(n_classes=n_classes)
    problem, run = make_run(X, y, loss="hinge")
    rows = np.random.default_rng(0).permutation(len(y))
    whole, block, active, _ = twins(problem, run)
    take(whole, block, rows, active, True)
    parts, same, active, _ = twins(problem, make_run(X, y, loss="hinge")[1])
    for piece in np.array_split(rows, 7):
        take(parts, same, piece, active, True)
    assert np.array_equal(whole.state.coef, parts.state.coef) and np.array_equal(block.duals, same.duals)
    assert np.array_equal(whole.state.terms, parts.state.terms)


def dual_value(problem, duals, centre, proximal=None):
    """D of every output, explicitly: a free intercept's penalty is centred on `centre` (n_outputs,).

    With a Proximal: what an epoch maximises, D_c.
    """
    signed = duals * signs_of(problem)
    w, balance = signed.T @ explicit_codes(problem), signed.sum(axis=0)
    norms = (w**2).sum(axis=1)
    if proximal is not None:
        w += proximal.kappa[:, None] * weights_of(problem, problem.encoder_coef(proximal.centre))
        norms = proximal.share * (w**2).sum(axis=1)
    intercept = centre * balance + 0.5 * problem.intercept_square * balance**2
    return conjugates(problem, duals).sum(axis=0) - 0.5 * norms - intercept


@pytest.mark.parametrize("memory_limit", [10**9, 5000], ids=["in memory", "in blocks"])
@pytest.mark.parametrize("n_partial", [1, 2, 3])
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("intercept", ["free", "penalised"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_dual_value_never_decreases(loss, intercept, n_classes, n_partial, memory_limit):
    X, y = toy(n_rows=200, n_classes=n_classes)
    options = {"loss": loss, "intercept": intercept, "partial_solutions": n_partial, "memory_limit": memory_limit}
    problem, run = make_run(X, y, training_chunk=30, **options)
    assert (problem.positions is None) == (memory_limit < 10**9)
    machine = DualCD(problem, run)
    for epoch in range(3):
        machine.start_epoch()
        terms, duals = machine.state.terms, machine.reader.duals
        centre = terms[INTERCEPT] - problem.intercept_square * terms[BALANCE]
        # A proximal-point step changes the function: its value is compared within an epoch only.
        before = dual_value(problem, duals, centre, machine.proximal)
        for index, block in machine.reader.blocks(epoch):
            machine.visit(block, epoch, index)
        value = dual_value(problem, duals, centre, machine.proximal)
        assert (value >= before - 1e-6 * np.abs(before)).all()
    assert (dual_value(problem, duals, centre) > 0).all()


@pytest.mark.parametrize("memory_limit", [10**9, 7000], ids=["in memory", "in blocks"])
@pytest.mark.parametrize("n_partial", [1, 3])
def test_every_row_is_visited_by_one_partial_solution(n_partial, memory_limit):
    # From 0, "not seen yet", a visit moves every dual variable of the logistic loss.
    X, y = toy(n_rows=301)
    problem, run = make_run(X, y, loss="logistic", partial_solutions=n_partial, memory_limit=memory_limit)
    machine = DualCD(problem, run)
    machine.start_epoch()
    for index, block in machine.reader.blocks(0):
        machine.visit(block, 0, index)
    assert (machine.reader.duals > 0).all()


@pytest.mark.parametrize("n_partial", [1, 3])
@pytest.mark.parametrize("intercept", ["penalised", "none"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_estimate_is_the_dual_value_and_the_losses_of_the_first_visit(loss, intercept, n_partial):
    X, y = toy()
    problem, run = make_run(X, y, loss=loss, intercept=intercept, partial_solutions=n_partial)
    machine, block = machine_of(problem, run)
    machine.visit(block, 0, 0)
    primal, dual = machine.estimate()
    w = (block.duals * signs_of(problem)).T @ explicit_codes(problem)
    expected = dual_value(problem, block.duals, np.zeros(1))
    if intercept == "free":
        expected -= machine.state.terms[INTERCEPT] * machine.state.terms[BALANCE]
    np.testing.assert_allclose(dual, expected, rtol=1e-5)
    w = weights_of(problem, problem.encoder_coef(machine.state.coef))
    penalty = 0.5 * (w**2).sum() + 0.5 * problem.intercept_square * (block.duals * signs_of(problem)).sum() ** 2
    noted = sum(visit.loss for visit in machine.visits)
    np.testing.assert_allclose(primal, penalty + noted, rtol=1e-5)
    assert noted[0] < costs_of(problem).sum()  # of a zero classifier, whose loss is 1 or ln 2


def test_a_free_intercept_balances_the_duals():
    X, y = toy(n_classes=3)
    problem, run = make_run(X, y, loss="hinge", tol=1e-6, max_epochs=400)
    machine = DualCD(problem, run)
    assert machine.solve().converged
    assert (np.abs(machine.state.terms[BALANCE]) < 1e-3 * machine.reader.duals.sum(axis=0)).all()


def test_an_interrupted_block_keeps_its_duals():
    X, y = toy(n_rows=400)
    problem, run = make_run(X, y, loss="hinge", memory_limit=10_000, training_chunk=20)
    object.__setattr__(run, "should_stop", lambda: True)
    machine = DualCD(problem, run)
    result = machine.solve()
    assert result.interrupted and not result.converged and result.passes == 1
    rows = run.plan.block_chunks * run.plan.chunk_rows
    assert problem.positions is None and 0.5 * rows < (machine.reader.duals > 0).sum() <= rows
    # v and the duals are of one point: the certificate's dual value is that of the estimate.
    w = (machine.reader.duals * signs_of(problem)).T @ explicit_codes(problem)
    found = weights_of(problem, problem.encoder_coef(machine.proximal.dual_coef(machine.state.coef)))
    np.testing.assert_allclose(found, w, atol=1e-4 * np.abs(w).max())


@pytest.mark.parametrize("loss", LOSSES)
def test_a_violation_rule_is_not_met_before_anything_was_measured(loss):
    # No dual variable of the logistic loss is measured in the first epoch: each is 0, "not seen yet".
    X, y = toy()
    problem, run = make_run(X, y, loss=loss, stop_on="violation", tol=0.5)
    result = DualCD(problem, run).solve()
    assert result.converged and result.passes > 1
    violations = [record["violation"] for record in result.history]
    assert (violations[0] is None) == (loss == "logistic")
    assert violations[-1] <= 0.5 and all(violation is None or violation > 0.5 for violation in violations[:-1])


def test_certificates_are_asked_for_when_the_estimate_says_so_and_at_the_end():
    X, y = toy(n_rows=300)
    for options in ({"tol": 1e-4}, {"tol": 1e-9, "max_epochs": 12}):
        problem, run = make_run(X, y, loss="hinge", **options)
        result = DualCD(problem, run).solve()
        certified = [record["certified_gap"] for record in result.history]
        assert certified[-1] is not None and result.converged == (certified[-1] <= options["tol"])
        assert result.reads == sum(gap is not None for gap in certified) < len(certified) / 2
        assert result.certificate.gap == min(gap for gap in certified if gap is not None)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_free_intercept_moves_at_tiny_costs(loss):
    # The duals sum to n C: a step of the intercept must not be as small as they are.
    X, y = toy(n_rows=300)
    problem, run = make_run(X, (y > 0) | (X[:, 0] > 0), loss=loss, C=1e-8, tol=1e-3)
    assert DualCD(problem, run).solve().converged


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_higher_cost_begins_at_the_same_dual_point(loss, setting):
    X, y = toy()
    problem, run = make_run(X, y, loss=loss, C=1.0, max_epochs=500, **SETTINGS[setting])
    machine = DualCD(problem, run)
    machine.solve()
    duals = machine.reader.duals.copy()
    machine.raise_cost(np.array([4.0]))
    np.testing.assert_array_equal(machine.reader.duals, duals)
    w = weights_of(problem, machine.problem.encoder_coef(machine.state.coef))
    np.testing.assert_allclose(w, (duals * signs_of(problem)).T @ explicit_codes(problem), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(machine.conjugates, conjugates(machine.problem, duals).sum(axis=0), rtol=1e-6)
    result = machine.solve()
    cold = DualCD(replace(problem, cost=np.array([4.0])), run).solve()
    assert result.converged and cold.converged
    assert result.history[0]["dual_objective"] > cold.history[0]["dual_objective"]
    bounds = [(each.certificate.dual[0], each.certificate.primal[0]) for each in (result, cold)]
    assert max(low for low, _ in bounds) <= min(high for _, high in bounds) * (1 + 1e-9)
