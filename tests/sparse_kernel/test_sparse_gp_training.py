"""The outer loop: building, bounds, what a step of the hyper-parameters does, patience."""

import numpy as np
import pytest

from linadd.sparse_kernel import sparse_gp_training
from linadd.sparse_kernel.kernels import RBF
from linadd.sparse_kernel.sparse_gp_objective import SiteProblem
from linadd.sparse_kernel.sparse_gp_selection import SelectionOptions
from linadd.sparse_kernel.sparse_gp_training import (
    PATIENCE,
    TrainingOptions,
    build,
    improve,
    model_of,
    train,
    train_from,
)
from tests.sparse_kernel.test_sparse_gp_state import noisy

KERNEL = RBF(1.5, 0.9)
OPTIONS = TrainingOptions(12, True, "nlp", 4, 10, 2, 1e-3, 0.1, 1.0, 0)
SELECTION = SelectionOptions("adaptive", 1, "one_minus_phi", "moment")
X, Y = noisy(90)


def built(**changes):
    return build(X, Y, KERNEL, 0.1, OPTIONS._replace(**changes), SELECTION, np.random.default_rng(0))[0]


def test_build_fills_the_basis_or_follows_the_order():
    assert len(set(built().active)) == 12
    assert len(built(n_basis=500).active) == 90
    state, interrupted = build(X, Y, KERNEL, 0.1, OPTIONS, SELECTION, np.random.default_rng(0), order=[4, 8, 2])
    assert state.active == [4, 8, 2] and not interrupted


def test_prediction_at_training_rows_equals_the_state():
    """To 1e-13: the state is incremental, the prediction solves with L."""
    for sweeps in (0, 3):
        state = built(ep_sweeps=sweeps)
        mean, variance = model_of(state, KERNEL, X).latent(X)
        np.testing.assert_allclose(mean, state.mean, atol=1e-13)
        np.testing.assert_allclose(variance, state.variance, atol=1e-13)


def test_sweeps_on_the_basis_leave_it_at_a_fixed_point():
    converged, more = built(ep_sweeps=100), built(ep_sweeps=200)
    np.testing.assert_allclose(converged.precision, more.precision, rtol=1e-8)
    assert not np.allclose(converged.precision, built().precision, rtol=1e-3)


@pytest.mark.parametrize("objective", ["nlp", "marginal_likelihood"])
def test_a_step_lowers_its_objective_within_the_bounds(objective):
    state = built()
    problem = SiteProblem(X, Y, state.active, state.precision, state.site_mean)
    bounds = KERNEL.bounds(3.0)
    kernel, bias = improve(problem, KERNEL, 0.1, bounds, OPTIONS._replace(objective=objective))
    assert np.all(bounds[:, 0] <= kernel.theta + 1e-12) and np.all(kernel.theta <= bounds[:, 1] + 1e-12)
    if objective == "nlp":
        assert problem.nlp(kernel, bias, 1.0)[0] < problem.nlp(KERNEL, 0.1, 1.0)[0]
    else:
        assert problem.negative_log_marginal(kernel)[0] < problem.negative_log_marginal(KERNEL)[0]
        assert problem.nlp(kernel, bias, 1.0)[0] <= problem.nlp(kernel, bias + 0.01, 1.0)[0]


def test_a_start_outside_the_bounds_is_moved_inside():
    state = built()
    problem = SiteProblem(X, Y, state.active, state.precision, state.site_mean)
    kernel, bias = improve(problem, RBF(np.exp(6.0), 0.9), 9.0, KERNEL.bounds(3.0), OPTIONS)
    assert np.log(kernel.variance) <= 3.0 + 1e-12 and abs(bias) <= 5.0


def test_the_best_model_is_kept_with_its_own_kernel(monkeypatch):
    """NLP rises after the second rebuild: that model and kernel are returned, and patience ends the loop."""
    values = iter([0.5, 0.4] + [0.6] * 20)
    kernels = []

    def worse(state, kernel, rows):
        model = model_of(state, kernel, rows)
        kernels.append(kernel)
        model.nlp = next(values)
        return model

    monkeypatch.setattr(sparse_gp_training, "model_of", worse)
    model, interrupted = train_from(X, Y, KERNEL, 3.0, OPTIONS._replace(max_outer_iter=20, tol=0.0), SELECTION,
                                    np.random.default_rng(0), None)
    assert model.nlp == 0.4 and model.kernel == kernels[1] and not interrupted
    assert model.nlp_history == [0.5, 0.4] + [0.6] * PATIENCE


def test_the_loop_ends_when_nothing_moves(monkeypatch):
    monkeypatch.setattr(sparse_gp_training, "improve", lambda problem, kernel, bias, *rest: (kernel, bias + 5e-4))
    model, _ = train_from(X, Y, KERNEL, 3.0, OPTIONS, SELECTION, np.random.default_rng(0), None)
    assert len(model.nlp_history) == 1


def test_the_better_start_wins():
    rng = np.random.default_rng(0)
    both, _ = train(X, Y, KERNEL, OPTIONS, SELECTION, rng)
    rng = np.random.default_rng(0)
    starts = [train_from(X, Y, KERNEL, upper, OPTIONS, SELECTION, rng, None)[0] for upper in (3.0, 7.0)]
    assert both.nlp == min(start.nlp for start in starts)
    single, _ = train(X, Y, KERNEL, OPTIONS._replace(n_restarts=1), SELECTION, np.random.default_rng(0))
    assert single.nlp == starts[0].nlp
    fixed, _ = train(X, Y, KERNEL, OPTIONS._replace(optimize_hyperparameters=False), SELECTION,
                     np.random.default_rng(0))
    assert fixed.kernel == KERNEL and len(fixed.nlp_history) == 1
