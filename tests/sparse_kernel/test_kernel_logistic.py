"""The steps of one addition: scores, refits, deletion and losses against their formulas."""

import numpy as np
import pytest
from scipy.special import log_softmax

from linadd.sparse_kernel import candidate_scores, kernel_logistic
from linadd.sparse_kernel.candidate_scores import one_step_candidates
from linadd.sparse_kernel.kernel_logistic import ImportState, Multinomial, prune, refit
from linadd.sparse_kernel.kernels import RBF
from tests.sparse_kernel import plain_ivm
from tests.sparse_kernel.toy import T1, Y3, Y

KERNEL, LAM = RBF(1.5, 0.9), 0.2
Y01 = (Y > 0).astype(np.int64)


def make_state(X, y_index, n_classes=2, reference=0, lam=LAM, intercept=False):
    columns = KERNEL.bind(X)
    return ImportState(Multinomial(y_index, n_classes, reference), lam, lambda indices: columns(X[indices]),
                       KERNEL.diag(X), intercept)


def add(state, index):
    """Include a row by its one-step coefficients."""
    for block in one_step_candidates(state, np.array([index])):
        state.add(block.step_to([0]))


def scores(state, candidates):
    return np.concatenate([block.objectives for block in one_step_candidates(state, np.asarray(candidates))])


def noisy_data(n=60, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y_index = rng.integers(n_classes, size=n)
    return rng.normal(size=(n, 3)) + y_index[:, None], y_index


def test_first_step_scores_of_the_toy_data():
    state = make_state(T1, Y01)
    expected = [5.471810589, 5.173322110, 5.056922409, 4.531061996, 5.290259319, 5.423114412, 4.937264286, 4.416690916]
    np.testing.assert_allclose(scores(state, range(8)), expected, atol=1e-8)
    add(state, 7)
    assert state.coef[0, 0] == pytest.approx(1.223539994, abs=1e-8)
    softmax_state = make_state(T1, Y3, 3, None)
    expected = [8.743712182, 8.617627125, 8.456902805, 7.743407605, 8.520194032, 8.220149461, 8.579736331, 8.195331808]
    np.testing.assert_allclose(scores(softmax_state, range(8)), expected, atol=1e-8)


@pytest.mark.parametrize("block_bytes", [2**9, 2**20])
def test_scores_equal_a_newton_step_on_the_enlarged_problem(block_bytes, monkeypatch):
    """Also when rows and candidates are worked off in many small blocks, and away from the optimum."""
    monkeypatch.setattr(candidate_scores, "CACHE_BYTES", block_bytes)
    monkeypatch.setattr(candidate_scores.row_slices, "__defaults__", (8 * block_bytes,))
    X, y_index = noisy_data()
    state = make_state(X, y_index)
    for index in (3, 11, 40):
        add(state, index)
    candidates = np.setdiff1d(np.arange(len(X)), [3, 11, 40])
    plain = plain_ivm.first_step_scores(KERNEL(X), y_index, LAM, [3, 11, 40], state.coef[0])
    np.testing.assert_allclose(scores(state, candidates), plain[candidates], rtol=1e-11)


@pytest.mark.parametrize(("n_classes", "reference"), [(2, 0), (3, 2), (4, None)])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dense", [True, False])
def test_refit_reaches_a_zero_gradient(n_classes, reference, intercept, dense, monkeypatch):
    if not dense:
        monkeypatch.setattr(kernel_logistic, "DENSE_NEWTON_LIMIT", 0)
    X, y_index = noisy_data(n_classes=n_classes)
    state = make_state(X, y_index, n_classes, reference, intercept=intercept)
    for index in (0, 5, 9, 33):
        add(state, index)
    refit(state)
    P = state.likelihood.probabilities(state.F)
    gradient = (P - state.likelihood.targets) @ state.K1.T + LAM * state.coef @ state.penalty
    # Newton stops at a decrement of 1e-10 |H|, L-BFGS at 1e-8 in its own coordinates.
    np.testing.assert_allclose(gradient, 0, atol=1e-5 if dense else 2e-4)
    if reference is None:  # all outputs are penalised alike: they sum to zero, up to a free common intercept
        total = state.F.sum(axis=0)
        np.testing.assert_allclose(total - (total.mean() if intercept else 0), 0, atol=1e-4)


def test_old_newton_matrix_gives_the_same_optimum():
    """`bordered` keeps the factor usable: equal to Newton with an exact matrix in every step."""
    X, y_index = noisy_data(80, seed=3)
    fast = make_state(X, y_index)
    for index in (0, 5, 9, 33, 50):
        add(fast, index)
        assert fast.factor is not None
        refit(fast)
    plain = plain_ivm.converged(KERNEL(X), fast.indices, np.zeros(5), y_index, LAM)
    np.testing.assert_allclose(fast.coef[0], plain, atol=1e-6)


def test_a_dependent_candidate_is_infinite():
    X = np.vstack([T1, T1[:1]])
    state = make_state(X, np.append(Y01, 0))
    add(state, 0)
    assert np.isinf(scores(state, [8])).all()
    assert np.isfinite(scores(state, [1, 2])).all()


def test_prune_deletes_the_vector_that_is_missed_least():
    X, y_index = noisy_data(60, seed=1)
    state = make_state(X, y_index)
    for index in range(12):
        add(state, index)
        refit(state)
    before, last = state.objective, state.indices[-1]
    rises = []
    for position in range(11):
        smaller = state.without(position, np.delete(state.coef, position, axis=1))
        refit(smaller)
        rises.append(smaller.objective - before)
    single = prune(state, (min(rises) + 1e-9) / before)
    assert single.indices == [index for index in state.indices if index != int(np.argmin(rises))]
    assert single.objective == pytest.approx(before + min(rises), abs=1e-8)
    assert prune(state, 0.99 * min(rises) / before).indices == state.indices
    assert prune(state, 10.0).indices == [last] and len(state.indices) == 12


@pytest.mark.parametrize("reference", [None, 1, 0])
def test_losses_and_probabilities_equal_the_definition(reference):
    rng = np.random.default_rng(2)
    n_classes, y_index = 2 if reference == 0 else 3, rng.integers(2, size=1200)
    likelihood = Multinomial(y_index, n_classes, reference)
    F = np.ascontiguousarray(3 * rng.normal(size=(len(likelihood.outputs), 1200, 4)))
    F[:, 0] = 800.0  # far beyond where exp overflows
    everything = np.zeros((n_classes, 1200, 4))
    everything[likelihood.outputs] = F
    log_p = log_softmax(everything, axis=0)
    expected = -log_p[y_index, np.arange(1200)].sum(axis=0)
    np.testing.assert_allclose(likelihood.losses(F), expected, rtol=1e-12)
    np.testing.assert_allclose(likelihood.losses(F[:, 100:300].copy(), slice(100, 300)),
                               -log_p[y_index, np.arange(1200)][100:300].sum(axis=0), rtol=1e-12)
    expected = np.exp(log_p[likelihood.outputs, :, 0])
    np.testing.assert_allclose(likelihood.probabilities(F[:, :, 0]), expected, rtol=1e-10)


def test_two_classes_as_baseline_and_as_softmax_with_twice_the_penalty():
    X, y_index = noisy_data()
    binary, baseline = make_state(X, y_index), make_state(X, y_index, 2, 1)
    softmax = make_state(X, y_index, 2, None, lam=2 * LAM)
    for state in (binary, baseline, softmax):
        for index in (2, 8, 30):
            add(state, index)
        refit(state)
    np.testing.assert_allclose(baseline.F[0], -binary.F[0], atol=1e-6)
    np.testing.assert_allclose(softmax.F[1] - softmax.F[0], binary.F[0], atol=1e-6)
    np.testing.assert_allclose(softmax.F.sum(axis=0), 0, atol=1e-6)


@pytest.mark.parametrize(("n_classes", "reference"), [(2, 0), (3, None)])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_group_is_a_joint_newton_step_of_greedy_choices(n_classes, reference, intercept):
    """Greedy by the quadratic model; the step equals one Newton step of all its vectors together."""
    X, y_index = noisy_data(n_classes=n_classes, seed=6)
    state = make_state(X, y_index, n_classes, reference, intercept=intercept)
    for index in (3, 7, 55):
        add(state, index)
    (block,) = one_step_candidates(state, np.arange(10, 50))
    chosen = block.best_group(5)
    assert chosen[0] == np.argmin(block.objectives) and len(set(chosen)) == 5
    step = block.step_to(chosen)
    before = state.copy()
    state.add(step)
    P = before.likelihood.probabilities(before.F)
    for c in range(len(P)):
        K1 = np.vstack([before.K1, step.columns])
        W = P[c] * (1 - P[c])
        G = (K1 * W) @ K1.T + LAM * state.penalty
        expected = np.linalg.solve(G, K1 @ (W * before.F[c] + before.likelihood.targets[c] - P[c]))
        np.testing.assert_allclose(state.coef[c], expected, atol=1e-9)
        np.testing.assert_allclose(np.tril(state.factor) @ np.tril(state.factor).T if len(P) == 1 else G, G, atol=1e-9)

    def gain(positions):
        """Fall of the quadratic model: 1/2 rhs' schur^-1 rhs, summed over outputs."""
        part = block.step_to(positions)
        schur = part.corner - np.einsum("cqk,cql->ckl", part.border, block.direction[:, :, positions])
        return 0.5 * np.einsum("ck,ckl,cl->", part.new_coef, schur, part.new_coef)

    for k in range(1, 5):
        others = [i for i in range(40) if i not in chosen[:k]]
        assert max(others, key=lambda i, k=k: gain([*chosen[:k], i])) == chosen[k]


def test_a_group_leaves_dependent_candidates_out():
    X = np.vstack([T1, T1])
    (block,) = one_step_candidates(make_state(X, np.tile(Y01, 2)), np.arange(16))
    chosen = block.best_group(16)
    assert len(chosen) == 8 and len({index % 8 for index in chosen}) == 8
