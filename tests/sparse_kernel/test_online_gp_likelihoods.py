"""Likelihoods of the online GP: derivatives against differences, the vectorised probit, and dense quadrature."""

import numpy as np
import pytest
from scipy.special import expit

from linadd.sparse_kernel import probit
from linadd.sparse_kernel.online_gp_likelihoods import (
    GAUSSIAN,
    LIKELIHOODS,
    LOGIT,
    PROBIT,
    density_ratio,
    derivatives,
    log_evidence_terms,
    log_positive_probability,
)


def test_density_ratio_equals_the_vectorised_one():
    z = np.concatenate([np.linspace(-300, 300, 4001), [-5.0, -5.0 + 1e-12, -40, -5, 0, 3]])
    # exp(-z^2/2) carries z^2/2 ulp; both sides are normal numbers above z = -37, and equal 0 together beyond z = 39
    np.testing.assert_allclose([density_ratio(value) for value in z], probit.density_ratio(z), rtol=1e-12, atol=1e-300)


def test_probit_derivatives_equal_the_vectorised_ones():
    rng = np.random.default_rng(0)
    mean, variance, y = rng.normal(0, 20, 500), rng.exponential(5, 500), rng.choice([-1.0, 1.0], 500)
    _, alpha, nu = probit.moments(y, mean, variance, 0.3, 2.0)
    q, r = np.array([derivatives(PROBIT, *row, 0.3, 2.0) for row in zip(y, mean, variance, strict=True)]).T
    np.testing.assert_allclose(q, alpha, rtol=1e-12)
    np.testing.assert_allclose(-r, nu, rtol=1e-8, atol=1e-14)  # a difference of nearly equal numbers in both


@pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)
@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (3.0, 0.01), (-4.0, 6.0)])
def test_derivatives_are_those_of_the_evidence(likelihood, mean, variance):
    def value(at):
        arguments = np.array([1.0]), np.array([at]), np.array([variance]), 0.2, 1.5
        return log_evidence_terms(likelihood, *arguments)[0]

    q, r = derivatives(likelihood, 1.0, mean, variance, 0.2, 1.5)
    h = 1e-4
    np.testing.assert_allclose(q, (value(mean + h) - value(mean - h)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(r, (value(mean + h) - 2 * value(mean) + value(mean - h)) / h**2, rtol=1e-4, atol=1e-6)
    assert r < 0


def test_logit_moments_equal_the_formulas_of_the_specification():
    mean, variance, slope = 0.7, 1.3, 1.5
    f = np.linspace(mean - 12, mean + 12, 200_001)
    weight = np.exp(-((f - mean) ** 2) / (2 * variance))
    weight *= expit(-slope * (f + 0.2)) / weight.sum()
    Z, centred = weight.sum(), f - mean
    q = (weight * centred / variance).sum() / Z
    r = (weight * (centred**2 / variance**2 - 1 / variance)).sum() / Z - q**2
    # 32 nodes are good to about 1e-5 here; the right-hand side is a fine grid
    np.testing.assert_allclose(derivatives(LOGIT, -1.0, mean, variance, 0.2, slope), [q, r], rtol=2e-5)
    terms = log_evidence_terms(LOGIT, np.array([-1.0]), np.array([mean]), np.array([variance]), 0.2, slope)
    np.testing.assert_allclose(terms, np.log(Z), rtol=1e-6)


def test_gaussian_moments():
    np.testing.assert_allclose(derivatives(GAUSSIAN, 1.0, 0.3, 2.0, 0.1, 2.0), [0.6 / 2.25, -1 / 2.25], rtol=1e-15)


def test_far_logit_rows_stay_finite():
    q, r = derivatives(LOGIT, 1.0, -2000.0, 1.0, 0.0, 1.0)
    assert np.isfinite([q, r]).all()
    assert q > 0


@pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)
def test_positive_and_negative_probability_sum_to_one(likelihood):
    mean, variance = np.linspace(-3, 3, 7), np.full(7, 0.8)
    positive = np.exp(log_positive_probability(likelihood, mean, variance, 0.0, 1.3))
    np.testing.assert_allclose(positive + positive[::-1], 1, atol=1e-12)
    assert np.all(np.diff(positive) > 0)
