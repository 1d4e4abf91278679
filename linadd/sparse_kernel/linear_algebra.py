"""Cholesky with the jitter rule of the design page, section 1.4."""

import numpy as np
from scipy.linalg import LinAlgError, cholesky

__all__ = ["jittered_cholesky"]


def jittered_cholesky(G):
    """Lower Cholesky factor of a symmetric positive semi-definite matrix, float64 (q, q).

    If it fails, 1e-10 * mean(diag) is added to the diagonal, then ten times that, up to 1e-4.

    Raises
    ------
    scipy.linalg.LinAlgError
        If even the largest jitter does not help.
    """
    if not len(G):
        return np.empty((0, 0))
    jitter = 0.0
    while True:
        try:
            return cholesky(G + jitter * np.eye(len(G)) if jitter else G, lower=True)
        except LinAlgError:
            scale = np.mean(np.diag(G))
            jitter = 10 * jitter if jitter else 1e-10 * scale
            if not jitter <= 1e-4 * scale * (1 + 1e-9):
                raise
