"""The proximal term of dual-cd: its laws, and what it is for."""

import numpy as np
import pytest

from linadd.solvers.dual_cd import DualCD
from linadd.solvers.proximal import GAP_PART, KINK, MOST_CHANGE, MOST_KAPPA, Proximal
from tests.solvers.problems import LOSSES, make_run, toy, weights_of


def proximal_of(n_classes, **options):
    """(problem, Proximal, coefficients of its shape) at random places."""
    problem, run = make_run(*toy(n_classes=n_classes), n_bins=5, **options)
    shape, random = DualCD(problem, run).state.coef.shape, np.random.default_rng(0)
    proximal = Proximal(problem, shape, True)
    proximal.centre[...] = random.standard_normal(shape)
    return problem, proximal, random.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("n_classes", [2, 3, 17])
def test_a_move_keeps_the_point_of_the_duals(n_classes):
    problem, proximal, coef = proximal_of(n_classes)
    proximal.kappa = np.linspace(0, 3, problem.n_outputs)
    proximal.next_kappa = np.linspace(5, 0, problem.n_outputs)
    own, w = problem.encoder_coef(proximal.dual_coef(coef)), problem.encoder_coef(coef).copy()
    proximal.move(coef)
    np.testing.assert_array_equal(proximal.kappa, proximal.next_kappa)
    tolerance = {"rtol": 1e-5, "atol": 1e-5}  # float32
    np.testing.assert_allclose(problem.encoder_coef(proximal.dual_coef(coef)), own, **tolerance)
    centre, kappa = problem.encoder_coef(proximal.centre), proximal.kappa
    np.testing.assert_allclose(problem.encoder_coef(coef), (own + kappa * centre) / (1 + kappa), **tolerance)
    np.testing.assert_array_equal(centre, w)


def test_kappa_is_steered_by_the_part_of_the_gap_between_the_two_points():
    problem, proximal, coef = proximal_of(3, C=100.0)
    proximal.kappa = np.full(3, 2.0)
    difference = proximal.dual_coef(coef) - coef
    part = 0.5 * (weights_of(problem, problem.encoder_coef(difference)) ** 2).sum(axis=1)
    proximal.steer(difference, part / GAP_PART * np.array([1.5**2, 100.0, -1.0]))
    np.testing.assert_allclose(proximal.next_kappa, [3.0, 2.0 * MOST_CHANGE, 2.0 / MOST_CHANGE])
    assert (proximal.kappa == 2.0).all()  # in force until the centre moves
    proximal.steer(np.zeros_like(difference), part)  # two points in one say nothing
    np.testing.assert_array_equal(proximal.next_kappa, proximal.kappa)
    most = MOST_KAPPA * np.sqrt(0.25 * 100.0 * problem.centre.mean_norm)  # a logistic loss curves by 1/4
    proximal.kappa = np.full(3, 0.9 * most)
    proximal.steer(difference, 100 * part / GAP_PART)
    np.testing.assert_allclose(proximal.next_kappa, most)


def test_without_a_proximal_term_the_point_is_that_of_the_duals():
    problem, run = make_run(*toy(n_rows=200), loss="hinge", C=100.0, stop_on="violation", max_epochs=5)
    machine = DualCD(problem, run)
    machine.solve()
    assert (machine.proximal.kappa == 0).all()
    np.testing.assert_array_equal(machine.proximal.dual_coef(machine.state.coef), machine.state.coef)


@pytest.mark.parametrize(("loss", "curvature"), [("logistic", 0.25), ("squared_hinge", 2.0), ("hinge", KINK)])
def test_a_small_cost_starts_with_a_small_kappa(loss, curvature):
    problem, _ = make_run(*toy(), loss=loss, C=0.01)
    expected = (0.01 * curvature * problem.centre.mean_norm) ** 2
    assert Proximal(problem, (1, 1, 16, 1), True).kappa == pytest.approx(expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_large_cost_takes_a_fraction_of_the_passes(loss):
    X, y = toy(n_rows=600)
    passes = []
    for is_on in (True, False):
        problem, run = make_run(X, y, loss=loss, C=100.0, tol=1e-2, max_epochs=300)
        machine = DualCD(problem, run)
        machine.proximal = Proximal(problem, machine.state.coef.shape, is_on)
        result = machine.solve()
        assert result.converged or not is_on
        passes.append(result.passes)
    assert passes[0] < 0.5 * passes[1]
