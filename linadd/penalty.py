"""The difference penalty of order d as running sums; no matrix is needed, so none is formed here but one small table.

D_1 is n x n lower bidiagonal, 1 on the diagonal and -1 below it; D_d = D_1^d [Maji2011; Eilers1996]. Its inverse is d
prefix sums, the inverse of its transpose d suffix sums:

    penalised code   phi^d = D_d'^-1 phi              d suffix sums
    update code      L_d phi = D_d^-1 D_d'^-1 phi     then d prefix sums
    norm             |w_j|^2 = |D_d v_j|^2            d differences

Dense bases carry the penalty in the weights of their functions: |w|^2 is then the norm of the d-th derivative of the
curve, up to a constant [Maji2012].
"""

import math

import numpy as np

from linadd.errors import ConfigError

MAX_ORDER = 3
# The condition number of L_3 is 5e7 there, six times 1 / eps of float32: coefficients would be noise.
MAX_BASIS_ORDER_3 = 20


def check_order(penalty_order, n_basis):
    """Raise ConfigError for an order outside 0..3, and for order 3 on more than 20 basis functions."""
    if penalty_order not in range(MAX_ORDER + 1):
        raise ConfigError(f"penalty_order: {penalty_order!r} is not one of 0, 1, 2, 3.")
    if penalty_order == MAX_ORDER and n_basis > MAX_BASIS_ORDER_3:
        raise ConfigError(
            f"penalty_order: 3 with {n_basis} basis functions has a condition number above 5e7, beyond float32. "
            f"Use at most {MAX_BASIS_ORDER_3} (n_bins + degree), or penalty_order 2."
        )


def penalised_code(values, penalty_order):
    """D_d'^-1 along the last axis: phi to phi^d, in a new float64 array of the same shape."""
    values = np.asarray(values, np.float64)
    for _ in range(penalty_order):
        values = np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]
    return values


def from_penalised(coef, penalty_order):
    """D_d^-1 along the last axis: w to v, in a new float64 array of the same shape."""
    coef = np.asarray(coef, np.float64)
    for _ in range(penalty_order):
        coef = np.cumsum(coef, axis=-1)
    return coef


def differences(coef, penalty_order):
    """D_d along the last axis: v to w, in a new float64 array of the same shape."""
    coef = np.asarray(coef, np.float64)
    for _ in range(penalty_order):
        coef = np.diff(coef, axis=-1, prepend=0.0)
    return coef


def update_table(n_basis, penalty_order):
    """L_d, float64 (n_basis, n_basis); row i is what a dual step on basis function i adds to coef."""
    return from_penalised(penalised_code(np.eye(n_basis), penalty_order), penalty_order)


def fourier_weights(n_harmonics, penalty_order):
    """1 / k^d of sine and cosine of each harmonic k = 1..m, float64 (2 m,)."""
    return np.repeat(np.arange(1.0, n_harmonics + 1) ** -penalty_order, 2)


def hermite_weights(n_terms, penalty_order):
    """1 / sqrt((k!)^2 / (k-d)!) of He_k for k >= d, 1 / sqrt(k!) for k < d, k = 1..m, float64 (m,).

    The first is 1 over the norm of the d-th derivative of He_k under the Gaussian; that derivative vanishes for k < d,
    where the norm of He_k itself is used.
    """
    return np.array([
        math.sqrt(math.factorial(k - penalty_order)) / math.factorial(k)
        if k >= penalty_order
        else 1.0 / math.sqrt(math.factorial(k))
        for k in range(1, n_terms + 1)
    ])  # fmt: skip
