"""The certificate against explicit matrices and general-purpose minimisers, in float64."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from linadd.losses import LOSSES as TABLE
from linadd.losses import loss_value
from linadd.solvers.dual_cd import DualCD
from linadd.solvers.stopping import (
    HINGE_MULTIPLE,
    MULTIPLES,
    SMOOTH_MULTIPLE,
    Certificate,
    Certifier,
    GapForecast,
    balancing_factors,
    best_intercept,
    certify_primal,
    relative_gap,
)
from tests.solvers.problems import (
    LOSSES,
    conjugates,
    costs_of,
    explicit_codes,
    loss_values,
    make_run,
    signs_of,
    thin,
    toy,
    weights_of,
)

EXACT = 1e-10  # float64 sums of a few hundred terms
INTERCEPTS = ("free", "penalised", "none")
OPTIONS = [
    {"n_bins": 5},
    {"n_bins": 5, "degree": 3, "penalty_order": 2, "scale": "libspline"},
    {"encoder": "fourier"},
    {"encoder": "identity", "scale": "none"},
]
SPARSE = [{**options, "rows": "sparse"} for options in (*OPTIONS[:3], {"encoder": "identity"})]
CASES = [(options, intercept, center) for options in OPTIONS for intercept in INTERCEPTS for center in (True, False)]
CASES += [(options, "free", True) for options in SPARSE]


def random_point(problem, seed=0):
    """(coef, duals inside the box) that belong to no run; small duals, so that D > 0, which any certificate has."""
    rng = np.random.default_rng(seed)
    encoder = problem.encoder
    coef = rng.standard_normal((encoder.n_features, encoder.n_basis, problem.n_outputs)).astype(np.float32)
    costs = costs_of(problem)
    reach = costs if problem.loss.is_bounded else 3 * costs
    duals = rng.uniform(0, 2e-4, costs.shape) * reach * rng.integers(0, 2, costs.shape)
    return coef, duals.astype(np.float32)


def explicit_primal(problem, coef, o):
    """P of output o, as a function of an intercept added to w . z."""
    w, signs, costs = weights_of(problem, coef)[o], signs_of(problem)[:, o], costs_of(problem)[:, o]
    scores, norm = explicit_codes(problem) @ w, 0.5 * w @ w
    ridge = 1 / problem.intercept_square if problem.intercept == "penalised" else 0.0

    def primal(intercept):
        return norm + costs @ loss_values(problem, signs * (scores + intercept)) + 0.5 * ridge * intercept**2

    return primal


def explicit_dual(problem, duals, o):
    """D of output o, after the heavier side was scaled down where the intercept is free."""
    signs, a = signs_of(problem)[:, o], duals.astype(np.float64)
    if problem.intercept == "free":
        heavy = np.sign(signs @ a[:, o])
        a[signs == heavy, o] *= a[signs != heavy, o].sum() / a[signs == heavy, o].sum()
        assert abs(signs @ a[:, o]) < 1e-12 * a.sum()
    signed = signs * a[:, o]
    w = signed @ explicit_codes(problem)
    penalised = problem.intercept_square * signed.sum() ** 2 if problem.intercept == "penalised" else 0.0
    return conjugates(problem, a)[:, o].sum() - 0.5 * w @ w - 0.5 * penalised


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("options", "intercept", "center"), CASES, ids=str)
def test_bounds_are_those_of_explicit_matrices(options, loss, intercept, n_classes, center):
    X, y = toy(n_rows=90, n_features=3, n_classes=n_classes)
    X = thin(X) if "rows" in options else X
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    choices = {"loss": loss, "intercept": intercept, "intercept_scale": 0.5, "center": center, **options}
    problem, run = make_run(X, y, weights, chunk_rows=40, **choices)
    coef, duals = random_point(problem)
    certifier = Certifier(problem, run.memory, len(y))
    certificate = certifier.certify([coef], duals, np.full(problem.n_outputs, 0.3))
    mean_scores = np.einsum("jko,jk->o", coef.astype(np.float64), problem.centre.mean_code)
    for o in range(problem.n_outputs):
        bias = certifier.intercept[o] + mean_scores[o]  # of the centred code
        primal = explicit_primal(problem, coef, o)
        np.testing.assert_allclose(certificate.primal[o], primal(bias), rtol=EXACT)
        np.testing.assert_allclose(certificate.dual[o], explicit_dual(problem, duals, o), rtol=1e-9, atol=1e-9)
        if intercept == "none":
            assert abs(bias) < 1e-12
        else:
            least = minimize_scalar(primal, bracket=(-5, 5), tol=1e-12)
            assert primal(bias) <= least.fun + EXACT * abs(least.fun)
    assert certifier.reads == 1
    np.testing.assert_array_equal(certifier.coef, coef)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_lies_between_the_bounds(loss):
    X, y = toy(n_rows=60, n_features=2)
    problem, run = make_run(X, y, loss=loss, n_bins=3, tol=1e-6, max_epochs=500)
    certificate = DualCD(problem, run).solve().certificate
    Z, signs, costs = explicit_codes(problem), signs_of(problem)[:, 0], costs_of(problem)[:, 0]

    def objective(point):
        return 0.5 * point[1:] @ point[1:] + costs @ loss_values(problem, signs * (Z @ point[1:] + point[0]))

    method = "Powell" if loss == "hinge" else "BFGS"
    best = minimize(objective, np.zeros(Z.shape[1] + 1), method=method, options={"maxiter": 10**5}).fun
    assert certificate.dual[0] <= best * (1 + 1e-9)
    assert certificate.primal[0] <= best * (1 + 1e-5)
    assert 0 <= certificate.gap < 1e-6


def test_a_dual_point_below_that_of_zeros_is_not_reported():
    X, y = toy()
    problem, run = make_run(X, y, loss="squared_hinge")
    coef, duals = random_point(problem)
    certificate = Certifier(problem, run.memory, len(y)).certify([coef], duals * 5e5, np.zeros(1))
    assert certificate.dual.tolist() == [0.0] and certificate.gap == 1.0


def test_the_best_primal_and_dual_points_of_all_calls_are_kept_by_output():
    X, y = toy(n_rows=90, n_classes=3)
    problem, run = make_run(X, y, loss="hinge")
    points = [random_point(problem, seed) for seed in range(3)]
    single = []
    for coef, duals in points:
        certifier = Certifier(problem, run.memory, len(y))
        single.append(certifier.certify([coef], duals, np.zeros(3)))
    certifier, left = Certifier(problem, run.memory, len(y)), run.memory.left
    certifier.certify([points[0][0], points[1][0]], points[0][1], np.zeros(3))
    assert run.memory.left == left  # decisions are given back
    together = certifier.certify([points[2][0]], points[2][1], np.zeros(3))
    primal = np.stack([certificate.primal for certificate in single])
    np.testing.assert_allclose(together.primal, primal.min(axis=0), rtol=1e-14)
    np.testing.assert_allclose(together.dual, np.maximum(single[0].dual, single[2].dual), rtol=1e-14)
    for o, best in enumerate(primal.argmin(axis=0)):
        np.testing.assert_array_equal(certifier.coef[:, :, o], points[best][0][:, :, o])
    assert len(set(primal.argmin(axis=0))) > 1


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_a_primal_point_is_certified_by_its_own_duals(loss, intercept):
    X, y = toy()
    problem, run = make_run(X, y, loss=loss, intercept=intercept, tol=1e-5, max_epochs=300, chunk_rows=50)
    result = DualCD(problem, run).solve()
    certificate, bias = certify_primal(problem, run.memory, result.coef, result.intercept)
    np.testing.assert_allclose(certificate.primal, result.certificate.primal, rtol=1e-12)
    np.testing.assert_allclose(bias, result.intercept, atol=1e-6)
    assert (certificate.dual <= result.certificate.primal).all()
    if problem.loss.is_smooth:  # a = -C loss' is the optimum's dual point; a hinge's is not known at its kinks
        assert certificate.gap < 1e-2


@pytest.mark.parametrize("ridge", [0.0, 3.0])
@pytest.mark.parametrize("start", [0.0, -7.3, 1e6])
@pytest.mark.parametrize("loss", LOSSES)
def test_best_intercept_is_scipys(loss, start, ridge):
    rng = np.random.default_rng(0)
    code = TABLE[loss].code
    for n_rows in (1, 2, 7, 400):
        scores, costs = rng.standard_normal(n_rows) * 3, rng.uniform(0, 2, n_rows) * rng.integers(0, 2, n_rows)
        signs = np.where(rng.random(n_rows) < 0.3, 1.0, -1.0)
        signs[0], costs[0] = 1.0, 1.0
        if n_rows > 1:
            signs[1], costs[1] = -1.0, 1.0

        def value(b, code=code, scores=scores, costs=costs, signs=signs):
            losses = [loss_value(code, margin) for margin in signs * (scores + b)]
            return costs @ losses + 0.5 * ridge * (b + 2) ** 2

        b, found = best_intercept(code, scores, signs, costs, start, ridge, 2.0)
        np.testing.assert_allclose(found, value(b), rtol=1e-12)
        kinks = np.concatenate([signs - scores, np.linspace(-20, 20, 81)])
        least = min(minimize_scalar(value, bounds=(-40, 40), method="bounded").fun, min(map(value, kinks)))
        assert found <= least + 1e-9 * max(least, 1.0)


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_with_all_rows_on_one_side_the_loss_vanishes(loss, side):
    scores = np.linspace(-5, 5, 11)
    b, value = best_intercept(TABLE[loss].code, scores, np.full(11, side), np.ones(11), 0.0)
    assert 5 < side * b < 5000 and 0 <= value < 1e-12


def test_rows_without_cost_have_no_say():
    scores, signs = np.array([0.0, 1.0, -50.0]), np.array([1.0, -1.0, 1.0])
    costs = np.array([1.0, 1.0, 0.0])
    for loss in LOSSES:
        code = TABLE[loss].code
        kept = best_intercept(code, scores[:2], signs[:2], costs[:2], 0.0)
        np.testing.assert_allclose(best_intercept(code, scores, signs, costs, 0.0), kept, rtol=1e-12)
        assert best_intercept(code, scores, signs, np.zeros(3), 0.4) == (0.4, 0.0)


def test_factors_balance_the_duals_and_never_raise_one():
    sums = np.array([[2.0, 1.0, 0.0, 0.0], [1.0, 4.0, 3.0, 0.0]])
    factors = balancing_factors(sums)
    assert factors.tolist() == [[0.5, 1.0, 0.0, 0.0], [1.0, 0.25, 0.0, 0.0]]
    np.testing.assert_array_equal(*(factors * sums))


def test_relative_gap():
    primal, dual = np.array([2.0, 0.0, 1.0, 1e-300]), np.array([1.0, 0.0, -4.0, 0.0])
    assert relative_gap(primal, dual).tolist() == [0.5, 0.0, 1.25, 1.0]
    certificate = Certificate(primal, dual)
    assert certificate.gap == 1.25 and certificate.gaps.tolist() == [0.5, 0.0, 1.25, 1.0]


def test_the_forecast_of_a_smooth_loss_is_what_a_geometric_rise_has_left():
    limit, rate = np.array([4.0, 100.0]), np.array([0.5, 0.8])
    forecast = GapForecast(2, is_smooth=True)
    gaps = [forecast.update(np.full(2, np.nan), limit * (1 - rate**epoch)) for epoch in range(1, 5)]
    assert np.isnan(gaps[0]).all()  # one rise has no rate
    left = rate**4 / (1 - rate**4)
    np.testing.assert_allclose(gaps[-1], SMOOTH_MULTIPLE * left)
    forecast.learn(np.array([3.0 * left[0], 1e9]))
    expected = np.array([3.0, MULTIPLES[1]]) * rate**5 / (1 - rate**5)
    np.testing.assert_allclose(forecast.update(np.full(2, np.nan), limit * (1 - rate**5)), expected)


def test_the_forecast_of_a_dual_value_that_stands_is_zero_and_of_one_that_jumps_is_bounded():
    forecast = GapForecast(2, is_smooth=True)
    for dual in ([1.0, 1.0], [2.0, 1.5], [2.0, 4.5]):
        gaps = forecast.update(np.full(2, np.nan), np.array(dual))
    assert gaps[0] == 0.0 and np.isfinite(gaps[1])
    forecast.learn(np.array([0.1, 0.1]))  # nothing left to rise says nothing about the multiple
    assert forecast.multiple[0] == SMOOTH_MULTIPLE


def test_the_forecast_of_the_hinge_loss_is_in_proportion_to_the_gap_of_the_losses_noted():
    forecast = GapForecast(3, is_smooth=False)
    primal, dual = np.array([4.0, 10.0, 1.0]), np.array([3.0, 5.0, 2.0])  # noted losses are no bound
    np.testing.assert_allclose(forecast.update(primal, dual), HINGE_MULTIPLE * np.array([0.25, 0.5, 0.5]))
    forecast.learn(np.array([0.2, 0.25, 1e-9]))
    np.testing.assert_allclose(forecast.update(primal, dual), [0.2, 0.25, MULTIPLES[0] * 0.5])


def test_any_reader_chunking_gives_the_same_bits():
    X, y = toy(n_rows=2500, n_classes=3)
    found = []
    for chunk_rows in (1, 333, 1000, 4000):
        problem, run = make_run(X, y, loss="logistic", chunk_rows=chunk_rows)
        coef, duals = random_point(problem)
        certificate = Certifier(problem, run.memory, len(y)).certify([coef], duals, np.zeros(3))
        found.append([*certificate.primal, *certificate.dual])
    assert found[0] == found[1] == found[2] == found[3]
    for o in range(3):  # over more than one group of rows
        np.testing.assert_allclose(certificate.dual[o], explicit_dual(problem, duals, o), rtol=1e-9)
