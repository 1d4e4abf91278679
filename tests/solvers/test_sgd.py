"""Stochastic gradient against its slow twin, whatever the batching of the rows."""

import numpy as np
import pytest

from linadd.solvers.base import Run
from linadd.solvers.blocks import measured
from linadd.solvers.sgd import (
    FOLD_STEPS,
    INTERCEPT,
    LOSS,
    MEAN_INTERCEPT,
    MEAN_SCORE,
    MEAN_SCORE_Z,
    MIX,
    SCALE,
    SGD,
    SHARE,
    SHIFT,
    SHIFT_Z,
    SQUARE,
    fold,
    solve,
)
from tests.solvers.plain_sgd import PlainSGD
from tests.solvers.problems import LOSSES, explicit_codes, make_run, mean_code, signs_of, thin, toy, weights_of

SCHEDULES = [("hinge", "pegasos"), *((loss, "shifted") for loss in LOSSES)]


def block_of(problem):
    """All rows."""
    return measured(problem, problem.positions, problem.targets, problem.costs)


def assert_points_agree(machine, plain, problem, tolerance):
    """Last iterate and average of both, with the intercept of the uncentred code."""
    for is_average, expected in ((False, plain.point), (True, plain.average)):
        coef, intercept = machine.point(is_average)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(weights_of(problem, coef), expected[:, :-1], atol=tolerance * scale)
        uncentred = expected[:, -1] - expected[:, :-1] @ mean_code(problem)
        np.testing.assert_allclose(intercept, uncentred, atol=3 * tolerance * scale)


@pytest.mark.parametrize("n_classes", [2, 3, 17])
@pytest.mark.parametrize("intercept", ["free", "free, sparse", "penalised", "none"])
@pytest.mark.parametrize(("loss", "schedule"), SCHEDULES)
def test_every_step_is_the_twins(loss, schedule, intercept, n_classes):
    X, y = toy(n_rows=51, n_classes=n_classes)
    intercept, *is_sparse = intercept.split(", ")
    X, rows = (thin(X), "sparse") if is_sparse else (X, "dense")
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], len(y))
    weights[np.unique(y, return_index=True)[1]] = 1.0
    options = {"loss": loss, "intercept": intercept, "schedule": schedule, "n_bins": 5, "rows": rows}
    problem, _ = make_run(X, y, weights, center=intercept == "free", **options)
    machine, plain, block = SGD(problem, 40, schedule), PlainSGD(problem, 40, schedule), block_of(problem)
    for i in np.random.default_rng(0).permutation(len(y)):
        machine.feed(block, np.array([i]))
        plain.visit(i)
        if plain.t in (1, 2, 3, 5) or plain.t % 8 == 0:
            assert_points_agree(machine, plain, problem, 1e-4)
    np.testing.assert_allclose(machine.state.terms[LOSS], plain.loss, rtol=1e-4)
    np.testing.assert_allclose(machine.state.terms[SQUARE], (plain.point[:, :-1] ** 2).sum(axis=1), rtol=1e-3)
    assert machine.state.clock[0] == plain.t == np.count_nonzero(weights)


@pytest.mark.parametrize(("loss", "schedule"), SCHEDULES)
@pytest.mark.parametrize("encoder", ["bspline", "fourier"])
def test_long_runs_stay_with_the_twin(loss, schedule, encoder):
    X, y = toy(n_rows=300)
    problem, _ = make_run(X, y, loss=loss, encoder=encoder)
    machine, plain, block = SGD(problem, 300, schedule), PlainSGD(problem, 300, schedule), block_of(problem)
    rows = np.random.default_rng(0).integers(0, len(y), 2 * FOLD_STEPS + 500)
    machine.feed(block, rows)
    for i in rows:
        plain.visit(i)
    # A hinge's steps jump where float32 and float64 see a margin on two sides of 1; the runs meet again.
    assert_points_agree(machine, plain, problem, 1e-3 if loss == "hinge" else 1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("loss", "schedule"), SCHEDULES)
def test_any_batching_of_the_rows_gives_the_same_bits(loss, schedule, n_classes):
    X, y = toy(n_rows=250, n_classes=n_classes)
    problem, _ = make_run(X, y, loss=loss)
    block, rows = block_of(problem), np.random.default_rng(0).integers(0, len(y), 1400)
    points = []
    for n_pieces in (1, 2, 17, 700):
        machine = SGD(problem, 1000, schedule)
        for piece in np.array_split(rows, n_pieces):
            machine.feed(block, piece)
            machine.point()  # looking at the point changes nothing
        points.append((machine.point(True), machine.point(False), machine.state.terms.copy()))
    for point in points[1:]:
        for (coef, intercept), (other, other_intercept) in zip(points[0][:2], point[:2], strict=True):
            np.testing.assert_array_equal(coef, other)
            np.testing.assert_array_equal(intercept, other_intercept)
        np.testing.assert_array_equal(points[0][2], point[2])


def test_scalars_are_folded_at_steps_that_depend_on_t_alone():
    problem, _ = make_run(*toy(n_rows=120))
    machine, block, folded = SGD(problem, 1000), block_of(problem), []
    for t in range(1, 3 * FOLD_STEPS + 1):
        machine.feed(block, np.array([t % 120]))
        if machine.state.terms[SHARE, 0] == 0:
            folded.append(t)
    powers = [2**k for k in range(20) if 2**k < FOLD_STEPS]
    assert folded == [*powers, FOLD_STEPS, 2 * FOLD_STEPS, 3 * FOLD_STEPS]


@pytest.mark.parametrize(("loss", "schedule"), SCHEDULES)
def test_rows_of_weight_zero_are_no_steps(loss, schedule):
    X, y = toy(n_rows=200)
    weights = (np.arange(200) % 3 > 0) * 1.0
    problem, _ = make_run(X, y, weights, loss=loss)
    block = block_of(problem)
    all_rows, kept = SGD(problem, 100, schedule), SGD(problem, 100, schedule)
    all_rows.feed(block, np.arange(200))
    kept.feed(block, np.flatnonzero(weights))
    for state, other in zip(all_rows.state, kept.state, strict=True):
        np.testing.assert_array_equal(state, other)


def test_pegasos_stays_in_its_ball():
    X, y = toy(n_rows=100)
    problem, _ = make_run(X, y, loss="hinge", C=100.0)
    machine, block = SGD(problem, 100, "pegasos"), block_of(problem)
    radius = np.sqrt(100 * 100.0)
    for i in range(20):
        machine.feed(block, np.array([i]))
        w = weights_of(problem, machine.point(False)[0])
        assert np.linalg.norm(w) <= radius * (1 + 1e-5)
    assert machine.state.terms[SQUARE, 0] <= radius**2 * (1 + 1e-12)


def test_the_objective_is_the_penalty_and_the_losses_of_the_steps_since_the_last_call():
    X, y = toy(n_rows=100, n_classes=3)
    problem, _ = make_run(X, y, loss="logistic", C=2.0)
    machine, plain, block = SGD(problem, 100, "shifted"), PlainSGD(problem, 100, "shifted"), block_of(problem)
    for _ in range(2):
        plain.loss[...] = 0
        machine.feed(block, np.arange(100))
        for i in range(100):
            plain.visit(i)
        expected = 0.5 * (plain.point[:, :-1] ** 2).sum(axis=1) + 2.0 * plain.loss
        np.testing.assert_allclose(machine.objective(), expected, rtol=1e-4)


def run_of(problem, run, **changes):
    """A run with other options."""
    return Run(**{name: getattr(run, name) for name in Run.__dataclass_fields__} | changes)


def test_a_run_without_shuffling_takes_the_rows_in_file_order_in_memory_and_in_blocks():
    X, y = toy(n_rows=300)
    options = {"solver": "sgd", "loss": "logistic", "max_epochs": 2, "shuffle": False, "training_chunk": 7}
    results = [solve(*make_run(X, y, memory_limit=limit, **options)) for limit in (10**9, 9000)]
    problem, _ = make_run(X, y, **options)
    machine = SGD(problem, 300)
    machine.feed(block_of(problem), np.tile(np.arange(300), 2))
    for result in results:
        np.testing.assert_array_equal(result.coef, machine.point()[0])
        np.testing.assert_array_equal(result.intercept, machine.point()[1])
        assert result.passes == 2 and result.converged and not result.interrupted and result.certificate is None
    assert [result.reads for result in results] == [0, 2]


def test_the_average_is_reported_unless_the_last_iterate_is_asked_for():
    X, y = toy()
    problem, run = make_run(X, y, solver="sgd", max_epochs=1)
    last, average = (solve(problem, run_of(problem, run, options=run.options | {"average": a})) for a in (False, True))
    machine = SGD(problem, len(y))
    machine.feed(block_of(problem), run.plan.generator(0, 0).permutation(len(y)))
    np.testing.assert_array_equal(last.coef, machine.point(False)[0])
    np.testing.assert_array_equal(average.coef, machine.point(True)[0])


def test_a_certificate_is_made_on_request_with_the_best_intercept():
    X, y = toy()
    problem, run = make_run(X, y, solver="sgd", max_epochs=30, certify=True)
    result = solve(problem, run)
    assert result.reads == 2 and 0 < result.certificate.gap < 0.1
    Z, signs = explicit_codes(problem), signs_of(problem)[:, 0]
    w = weights_of(problem, result.coef)[0]
    bias = result.intercept[0] + w @ mean_code(problem)
    objective = 0.5 * w @ w + np.logaddexp(0, -signs * (Z @ w + bias)).sum()
    np.testing.assert_allclose(result.certificate.primal[0], objective, rtol=1e-6)


def test_ctrl_c_ends_after_the_block():
    X, y = toy(n_rows=300)
    problem, run = make_run(X, y, solver="sgd", memory_limit=9000, training_chunk=10)
    records = []
    stop = run_of(problem, run, should_stop=lambda: True, on_epoch=records.append)
    result = solve(problem, stop)
    assert result.interrupted and not result.converged and result.passes == 1 and len(result.history) == 1
    assert records == result.history and records[0]["epoch"] == 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_objective_falls_over_the_epochs(n_classes):
    X, y = toy(n_classes=n_classes)
    for loss in LOSSES:
        problem, run = make_run(X, y, solver="sgd", loss=loss, max_epochs=20)
        objectives = [record["objective"] for record in solve(problem, run).history]
        assert objectives[-1] < 0.99 * objectives[1] < objectives[0]


@pytest.mark.parametrize("n_classes", [2, 17])
def test_folding_changes_the_scalars_not_the_point(n_classes):
    X, y = toy(n_rows=51, n_classes=n_classes)
    problem, _ = make_run(X, y, loss="hinge", n_bins=5)
    machine, rng, n_basis = SGD(problem, 50), np.random.default_rng(0), problem.encoder.n_basis
    state, space, mean_code = machine.state, problem.centre.space, problem.centre.mean_code
    for array in (state.coef, state.average):
        array[:, :, :n_basis] = rng.standard_normal(array[:, :, :n_basis].shape)
    state.terms[...] = rng.uniform(0.5, 2, state.terms.shape)
    scale, mix, share, shift, shift_z = state.terms[[SCALE, MIX, SHARE, SHIFT, SHIFT_Z]].copy()
    u, z = (problem.encoder_coef(array).astype(np.float64) for array in (state.coef, state.average))
    u, z = u - shift * space.mean_update[:, :, None], z - shift_z * space.mean_update[:, :, None]
    kept = state.terms[[INTERCEPT, MEAN_INTERCEPT, SQUARE, LOSS]].copy()
    fold(state, space.mean_update, mean_code)
    coef, average = problem.encoder_coef(state.coef), problem.encoder_coef(state.average)
    np.testing.assert_allclose(coef, scale * u, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(average, mix * (z + share * u), rtol=1e-5, atol=1e-5)
    neutral = state.terms[[SCALE, MIX, SHARE, SHIFT, SHIFT_Z]]
    np.testing.assert_array_equal(neutral, np.repeat([[1.0], [1.0], [0.0], [0.0], [0.0]], problem.n_outputs, axis=1))
    for row, v in ((MEAN_SCORE, coef), (MEAN_SCORE_Z, average)):
        expected = np.einsum("jko,jk->o", v.astype(np.float64), mean_code)
        np.testing.assert_allclose(state.terms[row], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(state.terms[[INTERCEPT, MEAN_INTERCEPT, SQUARE, LOSS]], kept)
    before = [array.copy() for array in state]
    fold(state, space.mean_update, mean_code)
    for array, same in zip(state, before, strict=True):
        np.testing.assert_array_equal(array, same)
