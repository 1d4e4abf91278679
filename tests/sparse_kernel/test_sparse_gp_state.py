"""Incremental posterior, selections and sites: vectors and properties of the design page, and the plain version."""

import numpy as np
import pytest

from linadd.sparse_kernel.expectation_propagation import dense_ep
from linadd.sparse_kernel.kernels import RBF
from linadd.sparse_kernel.probit import log_phi
from linadd.sparse_kernel.probit_losses import trial_losses
from linadd.sparse_kernel.sparse_gp_selection import (
    SAMPLING_WEIGHTS,
    SELECTIONS,
    SelectionOptions,
    log_shrinkage,
    losses_after,
    most_information,
    predictive_loss_site,
    select,
)
from linadd.sparse_kernel.sparse_gp_state import SparseGPState
from tests.sparse_kernel.plain_sparse_gp import PlainSparseGP, batch
from tests.sparse_kernel.toy import BIAS, T1, Y

KERNEL = RBF(1.5, 0.9)
MOMENT = SelectionOptions("adaptive", None, "one_minus_phi", "moment")
OTHERS = np.array([0, 2, 4, 5, 7])


def make_state(X=T1, y=Y, kernel=KERNEL, bias=BIAS, slope=1.0, order=()):
    columns = kernel.bind(X)
    state = SparseGPState(lambda indices: columns(X[indices]), kernel.diag(X), y.astype(float), bias, slope, len(X))
    order = list(order)
    while order:
        state.add(*select(state, None, MOMENT, order))
    return state


@pytest.fixture
def toy():
    return make_state(order=[3, 6, 1])


def noisy(n=70, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


def test_sites_and_factor_of_the_toy_data(toy):
    np.testing.assert_allclose(toy.precision, [0.397550221, 0.426763568, 0.383355959], atol=1e-8)
    np.testing.assert_allclose(toy.site_mean, [1.925148163, -2.038303173, 1.965375483], atol=1e-8)
    np.testing.assert_allclose(toy.L, [[1.263457689, 0, 0], [0.001620139, 1.280680572, 0],
                                       [0.099042166, 0.023607157, 1.250866616]], atol=1e-8)
    np.testing.assert_allclose(toy.mean, [0.102513827, 0.782130824, -0.328965289, 0.808563672, -0.207174616,
                                          0.249363487, -0.773418726, 0.723336376], atol=1e-8)
    np.testing.assert_allclose(toy.variance, [1.299904798, 0.941387459, 1.272572629, 0.929782702, 1.450091896,
                                              1.321788489, 0.914041946, 1.155920380], atol=1e-8)
    assert toy.loss() == pytest.approx(0.725199960, abs=1e-8)
    assert toy.nlp() == pytest.approx(0.608712421, abs=1e-8)


def test_moments_along_the_toy_order():
    for prefix, j, alpha, nu in [([], 3, 0.479440539, 0.249040852), ([3], 6, -0.530984495, 0.260199043),
                                 ([3, 6], 1, 0.453603891, 0.245007972)]:
        np.testing.assert_allclose(np.ravel(make_state(order=prefix).moments([j])), [alpha, nu], atol=1e-8)


def test_scores_of_the_next_candidate(toy):
    log_share, _ = log_shrinkage(toy, OTHERS)
    np.testing.assert_allclose(log_share, [-0.419746233, -0.411294151, -0.458535079, -0.492936300, -0.310040470],
                               atol=1e-8)
    for name, expected in (("one_minus_phi", [0.199734619, 0.196496388, 0.211275354, 0.264001316, 0.128492323]),
                           ("loss", [0.194570888, 0.190295033, 0.210278767, 0.293486451, 0.111368861])):
        weights = SAMPLING_WEIGHTS[name](toy.margins()[OTHERS])
        np.testing.assert_allclose(weights / weights.sum(), expected, atol=1e-8)
    alpha, nu = toy.moments(OTHERS)
    columns = toy.columns(OTHERS)
    np.testing.assert_allclose(losses_after(toy, OTHERS, columns, alpha, nu, validation=False),
                               [0.717151969, 0.647966696, 0.682118048, 0.642724667, 0.673620113], atol=1e-8)
    np.testing.assert_allclose(losses_after(toy, OTHERS, columns, alpha, nu, validation=True),
                               [0.673460447, 0.590267480, 0.629524461, 0.515494835, 0.662086117], atol=1e-8)


def test_information_gain_is_the_divergence_of_the_marginals(toy):
    alpha, nu = toy.moments(OTHERS)
    old = toy.variance[OTHERS]
    new, shift = old - nu * old**2, alpha * old
    divergence = 0.5 * (np.log(old / new) + new / old - 1 + shift**2 / old)
    np.testing.assert_allclose(divergence, [0.182896121, 0.175719002, 0.213973476, 0.308426712, 0.083097441], atol=1e-8)
    assert most_information(toy, OTHERS, None, MOMENT)[0] == 5


@pytest.mark.parametrize(("selection", "index"), [("entropy", 5), ("information_gain", 5), ("worst", 5),
                                                  ("validation", 5)])
def test_selections_of_the_toy_data(toy, selection, index):
    options = MOMENT._replace(selection=selection)
    assert select(toy, np.random.default_rng(0), options)[0] == index


def test_adaptive_draws_follow_the_weights(toy):
    rng = np.random.default_rng(0)
    drawn = np.array([SELECTIONS["adaptive"](toy, OTHERS, rng, MOMENT)[0] for _ in range(4000)])
    share = [np.mean(drawn == index) for index in OTHERS]
    # 3 standard errors of a share of 0.2 over 4000 draws.
    np.testing.assert_allclose(share, [0.199734619, 0.196496388, 0.211275354, 0.264001316, 0.128492323], atol=0.02)
    pair = SELECTIONS["adaptive"](toy, OTHERS, rng, MOMENT._replace(n_candidates=2))
    assert len(set(pair.tolist())) == 2


def test_adaptive_draws_uniformly_when_all_weights_underflow(toy):
    toy.mean = 1e4 * toy.y
    rng = np.random.default_rng(1)
    drawn = [SELECTIONS["adaptive"](toy, OTHERS, rng, MOMENT)[0] for _ in range(200)]
    assert set(drawn) == set(OTHERS.tolist())


def test_site_by_predictive_loss(toy):
    step, nu = predictive_loss_site(toy, 2, toy.columns([2])[:, 0], toy.moments([2])[0][0])
    assert step == pytest.approx(-0.836987, abs=1e-5)
    assert nu == pytest.approx(0.784875, abs=1e-5)
    toy.add(2, toy.columns([2])[:, 0], step, nu)
    assert toy.loss() == pytest.approx(0.590873425, abs=1e-5)
    options = MOMENT._replace(site_update="predictive_loss")
    X, y = noisy()
    state, rng = make_state(X, y), np.random.default_rng(2)
    for _ in range(10):
        index, column, step, nu = select(state, rng, options)
        matched = losses_after(state, np.array([index]), column[:, None].copy(), *state.moments([index]), False)[0]
        assert np.sign(step) == y[index] and nu > 0
        state.add(index, column, step, nu)
        assert state.loss() <= matched + 1e-12
        assert state.precision[-1] > 0 and np.all(state.variance >= 0)


@pytest.mark.parametrize("selection", ["adaptive", "validation"])
def test_equals_the_plain_version_step_by_step(selection):
    """Candidates are drawn by the same seed; mean, variance, sites and choices agree to 1e-12."""
    X, y = noisy()
    options = MOMENT._replace(selection=selection, n_candidates=6)
    fast, plain = make_state(X, y), PlainSparseGP(KERNEL(X), y, BIAS)
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(25):
        candidates = SELECTIONS[selection](fast, np.flatnonzero(fast.usable), twin, options)
        chosen = select(fast, rng, options)
        best = plain.best_of(candidates, selection)
        assert chosen[0] == best
        fast.add(*chosen)
        plain.add(best, *plain.moments(best))
        np.testing.assert_allclose(fast.mean, plain.mean, atol=1e-12)
        np.testing.assert_allclose(fast.variance, np.diag(plain.covariance), atol=1e-12)
    np.testing.assert_allclose(fast.precision, plain.precision, rtol=1e-11)
    np.testing.assert_allclose(fast.site_mean, plain.site_mean, rtol=1e-11)


def test_invariants_hold_at_every_step():
    X, y = noisy()
    state, rng = make_state(X, y), np.random.default_rng(4)
    for _ in range(40):
        before = state.variance.copy()
        state.add(*select(state, rng, MOMENT))
        assert np.all(state.variance <= before + 1e-15)
        assert 0 < state.precision[-1] < 1
        assert np.mean(y * (state.mean + BIAS) <= 0) <= state.loss()
    L, M, mean, variance = batch(KERNEL(X), state.active, np.array(state.precision), state.site_mean)
    for fast, plain in ((state.L, L), (state.M, M), (state.mean, mean), (state.variance, variance)):
        np.testing.assert_allclose(fast, plain, atol=1e-12)
    precision, site_mean = state.precision, state.site_mean
    state.set_sites(np.array(precision), np.array(site_mean))
    for fast, plain in ((state.L, L), (state.M, M), (state.mean, mean), (state.variance, variance)):
        np.testing.assert_allclose(fast, plain, atol=1e-12)


def test_all_rows_in_order_equal_one_sweep_of_dense_ep():
    state = make_state(order=range(8))
    expected = [0.407225721, 0.746308308, -1.025825660, 1.033657031, -0.738553455, -0.616549301, -1.000926666,
                1.288846797]
    np.testing.assert_allclose(state.mean, expected, atol=1e-8)
    expected = [0.756402140, 0.821626318, 0.674470443, 0.879276004, 0.859464643, 0.711554531, 0.820834623, 0.819112731]
    np.testing.assert_allclose(state.variance, expected, atol=1e-8)
    sweep = dense_ep(KERNEL(T1), Y, BIAS, max_sweeps=1)
    np.testing.assert_allclose(state.precision, sweep.tau, atol=1e-12)
    np.testing.assert_allclose(state.mean, sweep.mean, atol=1e-12)
    np.testing.assert_allclose(state.variance, np.diag(sweep.covariance), atol=1e-12)


def test_flipped_labels_negate_the_mean_and_a_common_scale_is_redundant(toy):
    flipped = make_state(y=-Y, bias=-BIAS, order=[3, 6, 1])
    np.testing.assert_allclose(flipped.mean, -toy.mean, atol=1e-14)
    scaled = make_state(kernel=RBF(6.0, 0.9), bias=2 * BIAS, slope=0.5, order=[3, 6, 1])
    np.testing.assert_allclose(scaled.margins(), toy.margins(), atol=1e-13)


def test_a_row_that_changes_nothing_is_offered_once():
    """A row of variance 0 (kernel column 0) is skipped; the search goes on with the others, and ends."""
    X = np.array([[0.0], [1.0], [-1.0]])

    class Odd(RBF):
        def diag(self, X):
            return np.where(X[:, 0] == 0, 0.0, 1.5)

    state = make_state(X, np.array([1, 1, -1]), kernel=Odd(1.5, 0.9))
    rng = np.random.default_rng(0)
    chosen = [select(state, rng, MOMENT) for _ in range(2) if not state.active]
    while chosen := select(state, rng, MOMENT):
        state.add(*chosen)
    assert sorted(state.active) == [1, 2]
    assert make_state(X, np.array([1, 1, -1]), kernel=Odd(1.5, 0.9)).is_admissible(0, 0.5) is False


def test_trial_losses_equal_the_sum_of_logs_far_into_the_tails(toy):
    rng = np.random.default_rng(0)
    n, n_trials = 500, 7
    toy.y, toy.mean = np.where(rng.random(n) < 0.5, 1.0, -1.0), rng.normal(size=n) * np.geomspace(0.1, 300, n)
    toy.variance = rng.uniform(size=n)
    columns, alpha, nu = rng.normal(size=(n, n_trials)), rng.normal(size=n_trials), rng.uniform(size=n_trials)
    counted = rng.random(n) < 0.7
    variance = np.maximum(toy.variance[:, None] - nu * columns**2, 0)
    z = toy.y[:, None] * (toy.mean[:, None] + alpha * columns + BIAS) / np.sqrt(1 + variance)
    assert z.min() < -100
    np.testing.assert_allclose(trial_losses(toy, columns, alpha, nu, counted), -log_phi(z[counted]).sum(axis=0),
                               rtol=1e-13)
    for z in (-4.9, -5.1, -36.9, -37.1):
        toy.y, toy.mean, toy.variance = np.ones(1), np.array([z - BIAS]), np.zeros(1)
        loss = trial_losses(toy, np.zeros((1, 1)), np.zeros(1), np.zeros(1), np.ones(1, dtype=bool))[0]
        assert loss == pytest.approx(-log_phi(z), rel=1e-14)
