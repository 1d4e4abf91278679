"""Compiled sums of -log Phi over rows, for many trial updates of a Gaussian process posterior at once."""

import math

import numpy as np

from linadd._jit import compiled, compiled_sums

__all__ = ["trial_losses"]

SQRT_HALF = math.sqrt(0.5)
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
# Phi(-5) = 2.9e-7: a product of this many factors stays above 1e-210, so one logarithm is enough for all of them.
PRODUCT_FLOOR = -5.0
GROUP = 32
# Below -37 erfc leaves the normal numbers of float64; there the asymptotic series is exact to the last digits.
ERFC_FLOOR = -37.0


@compiled
def log_phi_left(z):
    """log Phi(z) for z below about -5."""
    if z > ERFC_FLOOR:
        return math.log(0.5 * math.erfc(-z * SQRT_HALF))
    w = 1.0 / (z * z)
    series = 1.0 - w * (1.0 - 3.0 * w * (1.0 - 5.0 * w * (1.0 - 7.0 * w)))
    return -0.5 * z * z - LOG_SQRT_2PI - math.log(-z) + math.log(series)


@compiled_sums
def add_trial_losses(columns, mean, variance, y, counted, alpha, nu, bias, noise, out):
    """out[k] += sum over counted rows of -log Phi(y (f' + bias) / sqrt(noise + A')).

    With trial k: f' = mean + alpha[k] columns[:, k] and A' = max(variance - nu[k] columns[:, k]^2, 0).
    """
    n_trials = out.shape[0]
    product = np.ones(n_trials)
    n_factors = 0
    for i in range(mean.shape[0]):
        if not counted[i]:
            continue
        for k in range(n_trials):
            c = columns[i, k]
            t = noise + max(variance[i] - nu[k] * c * c, 0.0)
            z = y[i] * (mean[i] + alpha[k] * c + bias) / math.sqrt(t)
            if z > PRODUCT_FLOOR:
                product[k] *= 0.5 * math.erfc(-z * SQRT_HALF)
            else:
                out[k] -= log_phi_left(z)
        n_factors += 1
        if n_factors == GROUP:
            for k in range(n_trials):
                out[k] -= math.log(product[k])
                product[k] = 1.0
            n_factors = 0
    for k in range(n_trials):
        out[k] -= math.log(product[k])


def trial_losses(state, columns, alpha, nu, counted):
    """Sum of -log Phi(z) over the counted rows after each of several trial inclusions.

    Parameters
    ----------
    state : SparseGPState
    columns : float64 array (n, n_trials), C-contiguous
        Posterior covariance of all rows with each trial row.
    alpha, nu : float64 arrays (n_trials,)
        The trial adds alpha * column to the mean and takes nu * column^2 from the variance.
    counted : bool array (n,)

    Returns
    -------
    float64 array (n_trials,)
    """
    out = np.zeros(columns.shape[1])
    add_trial_losses(columns, state.mean, state.variance, state.y, counted, alpha, nu, float(state.bias),
                     state.noise, out)
    return out
