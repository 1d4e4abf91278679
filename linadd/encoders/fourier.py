"""Trigonometric basis: with theta = pi u, u = (x - centre) / half-range in [-1, 1], and penalty order d

    phi = sin(theta)/1, cos(theta)/1, sin(2 theta)/2^d, cos(2 theta)/2^d, ..., sin(m theta)/m^d, cos(m theta)/m^d

The weights 1/k^d are the penalty (`penalty.py`). Higher harmonics come from the angle-addition recurrence. The basis is
dense (L = I): score and update use the same vector.
"""

import numpy as np

from linadd import penalty
from linadd._jit import compiled
from linadd.encoders.base import DenseEncoder, check_count

CODE = 1  # branch in rows.py and exact.py


@compiled
def encode_coordinate(u, weights, j, values):
    """Write the 2 m values at coordinate u to values[:, j]; the recurrence runs in float64."""
    sin_1, cos_1 = np.sin(np.pi * u), np.cos(np.pi * u)
    sin_k, cos_k = sin_1, cos_1
    for k in range(weights.shape[0] // 2):
        values[2 * k, j] = weights[2 * k] * sin_k
        values[2 * k + 1, j] = weights[2 * k + 1] * cos_k
        sin_k, cos_k = sin_k * cos_1 + cos_k * sin_1, cos_k * cos_1 - sin_k * sin_1


class Fourier(DenseEncoder):
    """Sines and cosines over the training range of each feature.

    Parameters
    ----------
    n_harmonics : int
        Harmonics m, 1 to 256; n_basis = 2 m.
    penalty_order : {0, 1, 2, 3}
        Harmonic k is divided by k ** penalty_order.
    """

    name = "fourier"
    code = CODE

    def __init__(self, n_harmonics=4, penalty_order=1):
        check_count("n_harmonics", n_harmonics, 1, 256)
        super().__init__(n_local=2 * n_harmonics, n_basis=2 * n_harmonics, penalty_order=penalty_order)
        self.n_harmonics = int(n_harmonics)
        self.weights = penalty.fourier_weights(self.n_harmonics, self.penalty_order)

    @property
    def options(self):
        """The constructor's arguments."""
        return {"n_harmonics": self.n_harmonics, "penalty_order": self.penalty_order}

    def derivative(self, u):
        """k pi cos(k theta), -k pi sin(k theta), ... times the weights."""
        k = np.pi * np.arange(1, self.n_harmonics + 1)
        angle = u[..., None] * k
        return np.stack([k * np.cos(angle), -k * np.sin(angle)], axis=-1).reshape(*u.shape, -1) * self.weights
