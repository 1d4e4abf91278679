"""Likelihoods of the online Gaussian process: log E[P(y|f)] for f ~ N(mean, variance), and its derivatives, compiled.

With s = 1 / slope: probit Phi(y (f + bias) / s), y in {-1, +1}; logit 1 / (1 + exp(-y (f + bias) / s)), by 32-point
Gauss-Hermite quadrature; gaussian N(y; f + bias, s^2), any real y. Two classes are told apart by a gaussian as targets
-1 and +1, and its probability of the positive class is that of f + bias + noise > 0.
"""

import math

import numpy as np
from scipy.special import log_ndtr, logsumexp

from linadd._jit import compiled
from linadd.sparse_kernel.probit import NU_MARGIN

__all__ = ["LIKELIHOODS", "derivatives", "log_evidence_terms", "log_positive_probability"]

PROBIT, LOGIT, GAUSSIAN = range(3)
LIKELIHOODS = {"probit": PROBIT, "logit": LOGIT, "gaussian": GAUSSIAN}
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
# Below it erfc(-z / sqrt 2) heads for underflow, and 16 terms of the continued fraction are exact to the last bit.
FRACTION_BELOW, FRACTION_TERMS = -5.0, 16


@compiled
def density_ratio(z):
    """R(z) = N(z) / Phi(z) of a float64; below FRACTION_BELOW by the continued fraction of Laplace."""
    if z > FRACTION_BELOW:
        return math.sqrt(2.0 / math.pi) * math.exp(-0.5 * z * z) / math.erfc(-z / math.sqrt(2.0))
    ratio = -z
    for k in range(FRACTION_TERMS, 0, -1):
        ratio = -z + k / ratio
    return ratio


@compiled
def derivatives(likelihood, y, mean, variance, bias, slope):
    """First and second derivative of log E[P(y|f)] in the mean; the second is negative for all three likelihoods.

    For the logit they are those of the quadrature sum itself: E[P'] / E[P] and E[P''] / E[P] - first^2.

    Parameters
    ----------
    likelihood : int
        A value of `LIKELIHOODS`.
    y, mean, variance, bias, slope : float

    Returns
    -------
    first, second : float
    """
    total = 1.0 / (slope * slope) + variance
    if likelihood == GAUSSIAN:
        return (y - bias - mean) / total, -1.0 / total
    if likelihood == PROBIT:
        first = y * density_ratio(y * (mean + bias) / math.sqrt(total)) / math.sqrt(total)
        curvature = first * (first + (mean + bias) / total)
        return first, -min(max(curvature, NU_MARGIN / total), (1.0 - NU_MARGIN) / total)
    deviation = math.sqrt(variance)
    # Only ratios count: all are scaled by exp(-shift), so that far on the wrong side they do not underflow together.
    shift = min(y * slope * (mean + bias) + slope * deviation * NODES[-1], 0.0)
    value, first, second = 0.0, 0.0, 0.0
    for node in range(NODES.shape[0]):
        z = y * slope * (mean + bias + deviation * NODES[node])
        p = 1.0 / (1.0 + math.exp(-z)) if z > 0.0 else math.exp(z) / (1.0 + math.exp(z))
        weight = WEIGHTS[node] * (p if z > 0.0 else math.exp(z - shift) / (1.0 + math.exp(z)))
        change = weight * (1.0 - p)
        value += weight
        first += change
        second += change * (1.0 - 2.0 * p)
    first *= y * slope / value
    return first, slope * slope * second / value - first * first


def log_evidence_terms(likelihood, y, mean, variance, bias, slope):
    """log E[P(y|f)], elementwise.

    Parameters
    ----------
    likelihood : int
        A value of `LIKELIHOODS`.
    y, mean, variance : float64 arrays of one shape
    bias, slope : float

    Returns
    -------
    float64 array of that shape
    """
    total = 1.0 / slope**2 + variance
    if likelihood == GAUSSIAN:
        return -0.5 * (np.log(2.0 * np.pi * total) + (y - bias - mean) ** 2 / total)
    if likelihood == PROBIT:
        return log_ndtr(y * (mean + bias) / np.sqrt(total))
    z = (y * slope)[..., None] * (mean[..., None] + bias + np.sqrt(variance)[..., None] * NODES)
    return logsumexp(-np.logaddexp(0.0, -z), b=WEIGHTS, axis=-1)


def log_positive_probability(likelihood, mean, variance, bias, slope):
    """log P(positive class), elementwise.

    Parameters
    ----------
    likelihood : int
        A value of `LIKELIHOODS`.
    mean, variance : float64 arrays of one shape
    bias, slope : float

    Returns
    -------
    float64 array of that shape
    """
    kind = LOGIT if likelihood == LOGIT else PROBIT
    return log_evidence_terms(kind, np.ones_like(mean), mean, variance, bias, slope)
