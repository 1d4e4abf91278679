"""Hermite basis: with u = (x - centre) / half-range in [-1, 1] and penalty order d

    phi_k = He_k(u) weight_k,  k = 1..m;    He_1 = u, He_2 = u^2 - 1, He_(k+1) = u He_k - k He_(k-1)

The weights are the penalty (`penalty.hermite_weights`). The basis is dense (L = I).
"""

import numpy as np

from linadd import penalty
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
        self.weights = penalty.hermite_weights(self.n_terms, self.penalty_order)

    @property
    def options(self):
        """The constructor's arguments."""
        return {"n_terms": self.n_terms, "penalty_order": self.penalty_order}

    def derivative(self, u):
        """k He_(k-1)(u) times the weights."""
        values = [np.ones_like(u), u]
        for k in range(1, self.n_terms - 1):
            values.append(u * values[-1] - k * values[-2])
        k = np.arange(1, self.n_terms + 1)
        return np.stack(values[: self.n_terms], axis=-1) * k * self.weights
