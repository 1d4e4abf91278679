"""Merge and line search against a brute-force search of the dual objective along the line."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from linadd.solvers.dual_cd import BALANCE, INTERCEPT, MEAN_SCORE, SHIFT, DualCD, State, sweep
from linadd.solvers.merging import line_search, mean_scores, merge, subtract_centre
from tests.solvers.problems import (
    LOSSES,
    conjugates,
    explicit_codes,
    make_run,
    signs_of,
    toy,
    weights_of,
)


def overlapping(n_classes, **options):
    """A problem whose rows each occur twice, an even number apart: partial solutions that overshoot when added."""
    X, y = toy(n_rows=60, n_classes=n_classes, noise=0.0)  # separable: few duals stop at the box
    problem, run = make_run(np.repeat(X, 2, axis=0), np.repeat(y, 2), **options)
    return problem, run, np.arange(len(y) * 2).reshape(-1, 2).T.ravel()


def partial_solutions(machine, block, rows, n_partial, n_sweeps=1):
    """(parts, duals before) after each partial solution took its share of the rows, some times, from one start."""
    terms, coef = machine.state.terms.copy(), machine.state.coef.copy()
    parts = np.stack([coef] * n_partial), np.stack([terms] * n_partial)
    before = block.duals[rows]
    active = np.ones(block.duals.shape, np.uint8)
    for share, *state in zip(np.array_split(rows, n_partial), *parts, strict=True):
        state = State(*state)
        sweep(
            np.tile(share, n_sweeps), block, active, machine.basis, machine.problem.centre.space, machine.outputs,
            state, machine.visits[0], machine.scratches[0], True,
        )  # fmt: skip
        subtract_centre(state.coef, machine.problem.centre.space.mean_update, state.terms[SHIFT])
    return parts, before


def along(problem, before, after, centre, o, share):
    """-D_c of output o (c = 0) as a function of eta on the line from `before` to `after` duals (n_rows, n_outputs)."""
    Z, signs = explicit_codes(problem), signs_of(problem)[:, o]

    def negative(eta):
        duals = before.astype(np.float64) + eta * (after.astype(np.float64) - before)
        signed = signs * duals[:, o]
        w, balance = signed @ Z, signed.sum()
        intercept = centre[o] * balance + 0.5 * problem.intercept_square * balance**2
        return 0.5 * share * w @ w + intercept - conjugates(problem, duals)[:, o].sum()

    return negative


@pytest.mark.parametrize("n_partial", [2, 3])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("intercept", ["free", "penalised"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_merged_point_is_the_best_on_the_line(loss, intercept, n_classes, n_partial):
    problem, run, rows = overlapping(n_classes, loss=loss, intercept=intercept, C=100.0, n_bins=5)
    machine = DualCD(problem, run)
    machine.start_epoch()
    block = machine.reader.whole
    machine.segment(rows[:20], block, np.ones(block.duals.shape, np.uint8), True)  # a start that is not zero
    terms = machine.state.terms
    centre = terms[INTERCEPT] - problem.intercept_square * terms[BALANCE]
    begin = block.duals.copy()
    # Each solves its share almost alone, so that the sum of their steps overshoots.
    parts, before = partial_solutions(machine, block, rows, n_partial, n_sweeps=50)
    end = block.duals.copy()
    merge(problem, machine.outputs, machine.state, parts, block, rows, before)
    shortest = 1.0
    for o in range(problem.n_outputs):
        share = machine.proximal.share[o]
        negative = along(problem, begin, end, centre, o, share)
        best = minimize_scalar(negative, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
        reached = along(problem, begin, block.duals, centre, o, share)(1.0)
        # Flat at the maximum: float32 duals cost some 1e-7 of the value.
        assert reached <= min(best.fun, negative(1.0)) + 1e-6 * abs(best.fun)
        assert reached < negative(0.0)
        shortest = min(shortest, best.x)
    assert shortest < 0.9  # the search had something to do


@pytest.mark.parametrize("n_classes", [2, 17])
def test_the_merged_state_belongs_to_the_merged_duals(n_classes):
    problem, run, rows = overlapping(n_classes, loss="squared_hinge")
    machine = DualCD(problem, run)
    machine.start_epoch()
    block = machine.reader.whole
    parts, before = partial_solutions(machine, block, rows, 2)
    merge(problem, machine.outputs, machine.state, parts, block, rows, before)
    signed = block.duals * signs_of(problem)
    w = weights_of(problem, problem.encoder_coef(machine.proximal.dual_coef(machine.state.coef)))
    np.testing.assert_allclose(w, signed.T @ explicit_codes(problem), atol=1e-4 * np.abs(w).max())
    np.testing.assert_allclose(machine.state.terms[BALANCE], signed.sum(axis=0), atol=1e-5)
    intercept = problem.intercept_square * signed.sum(axis=0)
    np.testing.assert_allclose(machine.state.terms[INTERCEPT], intercept, atol=1e-5)
    mean_scores(machine.state.coef, problem.centre.mean_code, machine.state.terms[MEAN_SCORE])
    coef = problem.encoder_coef(machine.state.coef).astype(np.float64)
    expected = np.einsum("jko,jk->o", coef, problem.centre.mean_code)
    np.testing.assert_allclose(machine.state.terms[MEAN_SCORE], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_disjoint_partial_solutions_are_added_whole(loss):
    # Rows that share no basis function: the sum of the steps is the joint solution, and eta is 1.
    X = np.repeat(np.eye(4) * 9, 5, axis=0)
    y = np.arange(20) % 2
    options = {"encoder": "identity", "scale": "none", "center": False, "intercept": "none"}
    problem, run = make_run(X, y, loss=loss, **options)
    machine = DualCD(problem, run)
    machine.start_epoch()
    block = machine.reader.whole
    parts, before = partial_solutions(machine, block, np.arange(20), 2)
    expected, end = parts[0].sum(axis=0), block.duals.copy()
    merge(problem, machine.outputs, machine.state, parts, block, np.arange(20), before)
    np.testing.assert_array_equal(block.duals, end)
    np.testing.assert_array_equal(machine.state.coef, expected)


def test_line_search_finds_the_root_or_the_end():
    roots = np.array([0.3, 0.999, 1.0, 7.0, 1e-6])

    def derivatives(eta):
        return roots**3 - eta**3, -3 * eta**2  # concave along the line, and curved: Newton needs its bracket

    eta = line_search(derivatives, len(roots))
    np.testing.assert_allclose(eta, np.minimum(roots, 1.0), atol=1e-8)


def test_line_search_without_curvature_goes_to_the_end_or_halves():
    def derivatives(eta):
        return np.where(eta > 0.25, -1.0, 1.0) * [1.0, -1.0, 0.0], np.zeros(3)

    eta = line_search(derivatives, 3)
    np.testing.assert_allclose(eta, [0.25, 1.0, 1.0], atol=1e-8)


def test_subtracting_the_centre_leaves_the_padding_alone():
    coef = np.ones((1, 2, 3, 16), np.float32)
    shift = np.array([2.0, 0.5])
    subtract_centre(coef, np.array([[1, 2, 3], [0, 0, 1]], np.float32), shift)
    assert coef[0, :, :, 0].tolist() == [[-1, -3, -5], [1, 1, -1]]
    assert coef[0, :, :, 1].tolist() == [[0.5, 0, -0.5], [1, 1, 0.5]]
    assert (coef[..., 2:] == 1).all() and (shift == 0).all()
