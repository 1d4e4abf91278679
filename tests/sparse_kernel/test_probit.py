"""Probit helpers: derivatives against differences, extremes, the values of the design page."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from linadd.sparse_kernel.probit import density_ratio, moments, standardised_margin


def test_density_ratio():
    np.testing.assert_allclose(density_ratio([-40, -5, 0, 3]), [40.0249688, 5.18650397, 0.797884561, 4.43783904e-3],
                               rtol=1e-8)
    assert density_ratio(60.0) == 0.0
    assert density_ratio(-1e8) == pytest.approx(1e8)


@pytest.mark.parametrize("slope", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_derivatives_equal_differences(slope, y):
    mean = np.linspace(-4, 4, 17)
    log_z, alpha, nu = moments(y, mean, 0.7, bias=0.2, slope=slope)
    h = 1e-4
    above, below = (moments(y, mean + step, 0.7, bias=0.2, slope=slope)[0] for step in (h, -h))
    np.testing.assert_allclose(alpha, (above - below) / (2 * h), rtol=1e-6, atol=1e-8)
    # Second differences lose 8 digits of 16 at h = 1e-4.
    np.testing.assert_allclose(nu, -(above - 2 * log_z + below) / h**2, atol=1e-5)


def test_log_z_is_the_expected_likelihood():
    expected = quad(lambda f: norm.cdf(2.0 * -1 * (f + 0.3)) * norm.pdf(f, 0.4, np.sqrt(0.6)), -8, 8)[0]
    assert np.exp(moments(-1.0, 0.4, 0.6, bias=0.3, slope=2.0)[0]) == pytest.approx(expected, rel=1e-9)
    assert standardised_margin(-1.0, 0.4, 0.6, bias=0.3, slope=2.0) == pytest.approx(norm.ppf(expected))


def test_curvature_stays_inside_its_bounds_at_the_extremes():
    mean = np.array([-1e8, -1e3, -40.0, 0.0, 40.0, 1e3, 1e8])
    for variance in (0.0, 1e-8, 1.0, 1e8):
        log_z, alpha, nu = moments(1.0, mean, variance)
        t = 1.0 + variance
        assert np.all(np.isfinite(log_z)) and np.all(alpha >= 0)
        assert np.all((nu >= 1e-12 / t) & (nu <= (1 - 1e-12) / t))
