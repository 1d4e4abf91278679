"""Stable functions of the probit likelihood Phi(slope * y * (f + bias)), used by the Gaussian process classifiers.

With f ~ N(mean, variance), s = 1 / slope, t = s^2 + variance and z = y (mean + bias) / sqrt(t):

    log_z = log Phi(z),    alpha = d log_z / d mean = y R(z) / sqrt(t),    nu = -d^2 log_z / d mean^2

where R = N / Phi is the ratio of the normal density to its distribution function.
"""

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

__all__ = ["density_ratio", "log_phi", "moments", "phi", "standardised_margin"]

NU_MARGIN = 1e-12

phi = ndtr
log_phi = log_ndtr


def density_ratio(z):
    """R(z) = N(z) / Phi(z) = sqrt(2/pi) / erfcx(-z / sqrt(2)), accurate for every z; float64 of the shape of z."""
    return np.sqrt(2.0 / np.pi) / erfcx(-np.asarray(z, dtype=float) / np.sqrt(2.0))


def standardised_margin(y, mean, variance, bias=0.0, slope=1.0):
    """z = y (mean + bias) / sqrt(1/slope^2 + variance); arrays broadcast, y in {-1, +1}."""
    return y * (mean + bias) / np.sqrt(1.0 / slope**2 + variance)


def moments(y, mean, variance, bias=0.0, slope=1.0):
    """Return (log_z, alpha, nu): log-probability of y under f ~ N(mean, variance) and its derivatives in the mean.

    Parameters
    ----------
    y : float64 array, values -1 and +1
    mean, variance : float64 arrays that broadcast with y
    bias, slope : float
        Of the likelihood Phi(slope * y * (f + bias)).

    Returns
    -------
    log_z, alpha, nu : float64 arrays
        nu = alpha (alpha + (mean + bias) / t), clipped into (0, 1/t) where it lies but for rounding.
    """
    t = 1.0 / slope**2 + variance
    z = y * (mean + bias) / np.sqrt(t)
    alpha = y * density_ratio(z) / np.sqrt(t)
    nu = np.clip(alpha * (alpha + (mean + bias) / t), NU_MARGIN / t, (1.0 - NU_MARGIN) / t)
    return log_phi(z), alpha, nu
