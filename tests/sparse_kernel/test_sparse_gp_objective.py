"""Objectives of the hyper-parameters: values of the design page, gradients against central differences."""

import numpy as np
import pytest

from linadd.sparse_kernel.expectation_propagation import dense_ep
from linadd.sparse_kernel.kernels import ARD, RBF, Linear
from linadd.sparse_kernel.sparse_gp_objective import SiteProblem
from tests.sparse_kernel.test_sparse_gp_state import make_state, noisy
from tests.sparse_kernel.toy import BIAS, T1, Y

KERNEL = RBF(1.5, 0.9)


def toy_problem(order=(3, 6, 1)):
    state = make_state(order=order)
    return SiteProblem(T1, Y.astype(float), state.active, state.precision, state.site_mean)


def test_values_of_the_toy_data():
    problem = toy_problem()
    value, gradient = problem.nlp(KERNEL, BIAS, 1.0)
    assert value == pytest.approx(0.608712421, abs=1e-8)
    np.testing.assert_allclose(gradient, [-0.032386309, -0.098727741, 0.154975414, 0.028065692], atol=1e-8)
    assert problem.negative_log_marginal(KERNEL)[0] == pytest.approx(6.251452067, abs=1e-8)
    assert problem.lower_bound(KERNEL, BIAS, 1.0) == pytest.approx(-6.750256063, abs=1e-8)


@pytest.mark.parametrize("kernel", [KERNEL, ARD(0.8, (0.5, 1.0, 2.0)), RBF(1.0, 1.1) + Linear(0.3, 0.2)], ids=repr)
def test_gradients_equal_central_differences(kernel):
    X, y = noisy(40)
    problem = SiteProblem(X, y, [3, 7, 11, 20], np.array([0.3, 0.5, 0.8, 0.2]), np.array([1.0, -0.4, 2.0, 0.1]))
    h, theta = 1e-5, np.concatenate([kernel.theta, [0.2, np.log(0.8)]])

    def nlp(values):
        return problem.nlp(kernel.with_theta(values[:-2]), values[-2], np.exp(-values[-1]))[0]

    def marginal(values):
        return problem.negative_log_marginal(kernel.with_theta(values[:-2]))[0]

    steps = h * np.eye(len(theta))
    numeric = [(nlp(theta + step) - nlp(theta - step)) / (2 * h) for step in steps]
    np.testing.assert_allclose(problem.nlp(kernel, 0.2, 1 / 0.8)[1], numeric, rtol=1e-6, atol=1e-9)
    numeric = [(marginal(theta + step) - marginal(theta - step)) / (2 * h) for step in steps[:-2]]
    np.testing.assert_allclose(problem.negative_log_marginal(kernel)[1], numeric, rtol=1e-6, atol=1e-9)


def test_rows_that_count_are_those_outside_the_basis_or_all():
    np.testing.assert_array_equal(toy_problem().weight > 0, [True, False, True, False, True, True, False, True])
    np.testing.assert_array_equal(toy_problem(range(8)).weight, np.full(8, 1 / 8))


def test_lower_bound_is_below_the_evidence():
    """With converged sites of all rows the bound is close below the EP evidence (not a theorem for EP; measured)."""
    ep = dense_ep(KERNEL(T1), Y, BIAS)
    problem = SiteProblem(T1, Y.astype(float), np.arange(8), ep.tau, ep.eta / ep.tau)
    assert ep.log_evidence - 0.2 < problem.lower_bound(KERNEL, BIAS, 1.0) < ep.log_evidence
