"""Dense expectation propagation: the vectors of the design page and its own fixed-point equations."""

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import multivariate_normal, norm

from linadd.sparse_kernel.expectation_propagation import cavity, dense_ep
from linadd.sparse_kernel.kernels import RBF
from linadd.sparse_kernel.probit import moments
from tests.sparse_kernel.toy import BIAS, T1, Y

K = RBF(1.5, 0.9)(T1)


def test_toy_data():
    ep = dense_ep(K, Y, BIAS)
    assert ep.log_evidence == pytest.approx(-5.027850188, abs=1e-8)
    np.testing.assert_allclose(ep.tau, [0.481281396, 0.398278649, 0.376096233, 0.329649038, 0.441391867, 0.474132030,
                                        0.380604367, 0.275328808], atol=1e-8)
    np.testing.assert_allclose(ep.mean, [0.397127169, 0.736494260, -1.038035482, 1.027483938, -0.738257632,
                                         -0.625746435, -1.007473017, 1.281652626], atol=1e-8)
    np.testing.assert_allclose(np.diag(ep.covariance), [0.714214388, 0.792617115, 0.733169141, 0.907096515, 0.868955622,
                                                        0.722927233, 0.835318910, 0.815000750], atol=1e-8)


@pytest.mark.parametrize("slope", [0.5, 2.0])
def test_sites_match_the_moments_of_their_cavities(slope):
    ep = dense_ep(K, Y, BIAS, slope)
    for i in range(len(Y)):
        m, v = cavity(ep.covariance[i, i], ep.mean[i], ep.tau[i], ep.eta[i])
        _, alpha, nu = moments(float(Y[i]), m, v, BIAS, slope)
        assert m + v * alpha == pytest.approx(ep.mean[i], abs=1e-9)
        assert v - v**2 * nu == pytest.approx(ep.covariance[i, i], abs=1e-9)
    again = dense_ep(K, Y, BIAS, slope, ep.tau, ep.eta, max_sweeps=1)
    np.testing.assert_allclose(again.tau, ep.tau, atol=1e-9)
    np.testing.assert_array_equal(dense_ep(K, Y, max_sweeps=0).mean, 0)


def test_evidence_of_two_rows_is_close_to_the_integral():
    """EP is an approximation; for probit sites it is known to be accurate to about 1e-3 in the log evidence."""
    small, y = K[:2, :2], Y[:2]
    prior = multivariate_normal(np.zeros(2), small)
    exact = dblquad(lambda f, g: norm.cdf(y[0] * f) * norm.cdf(y[1] * g) * prior.pdf([f, g]), -7, 7, -7, 7,
                    epsabs=1e-6)[0]
    assert dense_ep(small, y).log_evidence == pytest.approx(np.log(exact), abs=1e-3)
