"""Hermite basis: with u = (x - centre) / half-range in [-1, 1] and penalty order d

    phi_k = He_k(u) * weight_k,  k = 1..m;    He_1 = u, He_2 = u^2 - 1, He_(k+1) = u He_k - k He_(k-1)
    weight_k = 1 / sqrt((k!)^2 / (k-d)!)  for k >= d,   1 / sqrt(k!)  for k < d

The first weight is 1 over the norm of the d-th derivative of He_k under the Gaussian [Maji2012]; that derivative
vanishes for k < d, where the norm of He_k itself is used. The basis is dense (L = I).
"""

import math

import numpy as np

from linadd._jit import compiled
from linadd.encoders.base import DenseEncoder, check_count

CODE = 2  # branch in rows.py and exact.py


@compiled
def encode_coordinate(u, weights, j, values):
    """Write the m values at coordinate u to values[:, j]; the recurrence runs in float64."""
    before, here = 1.0, u
    for k in range(weights.shape[0]):
        values[k, j] = weights[k] * here
        before, here = here, u * here - (k + 1) * before


def weight(k, order):
    """Weight of term k >= 1 under a penalty order."""
    if k >= order:
        return math.sqrt(math.factorial(k - order)) / math.factorial(k)
    return 1.0 / math.sqrt(math.factorial(k))


class Hermite(DenseEncoder):
    """Hermite polynomials over the training range of each feature, without the constant.

    Parameters
    ----------
    n_terms : int
        Polynomials m, 1 to 32; n_basis = m.
    penalty_order : {0, 1, 2, 3}
        Order of the derivative whose norm is penalised.
    """

    name = "hermite"
    code = CODE

    def __init__(self, n_terms=4, penalty_order=1):
        check_count("n_terms", n_terms, 1, 32)
        super().__init__(n_local=n_terms, n_basis=n_terms, penalty_order=penalty_order)
        self.n_terms = int(n_terms)
        self.weights = np.array([weight(k, penalty_order) for k in range(1, n_terms + 1)])

    @property
    def options(self):
        """The constructor's arguments."""
        return {"n_terms": self.n_terms, "penalty_order": self.penalty_order}
