"""What the hyper-parameters of the sparse Gaussian process classifier minimise, with gradients; the sites stay fixed.

theta = [log kernel parameters, bias, log s], s = 1 / slope. With P = diag(p), S = K_uu + P^-1 and u the active rows:

    NLP                    -(1/#c) sum_{i in c} log Phi(z_i) over the rows c that are not active
    marginal likelihood    1/2 m' S^-1 m + 1/2 log|S| + d/2 log 2 pi          (kernel parameters only)

Design page 3.6.
"""

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from linadd.sparse_kernel.probit import density_ratio, log_phi

__all__ = ["SiteProblem"]

GAUSS_HERMITE_POINTS = 40


class SiteProblem:
    """The sites of an active set, whose consequences are computed for any kernel, bias and slope.

    Parameters
    ----------
    rows : float64 array (n, n_features)
    y : float64 array (n,), values -1 and +1
    active : sequence of int (d,)
    precision, site_mean : float64 arrays (d,)
        p and m.
    """

    def __init__(self, rows, y, active, precision, site_mean):
        self.rows, self.y = rows, y
        self.basis = rows[np.asarray(active)]
        self.root, self.site_mean = np.sqrt(precision), np.asarray(site_mean)
        counted = np.ones(len(y), dtype=bool)
        counted[active] = False
        if not counted.any():
            counted[:] = True
        self.weight = counted / np.count_nonzero(counted)

    def _factor(self, kernel):
        """(K_uu, L, R, R m) with R = L^-1 P^(1/2): M = R K_u., S^-1 = R' R."""
        K_uu = kernel(self.basis)
        L = cholesky(np.eye(len(self.root)) + self.root[:, None] * K_uu * self.root, lower=True)
        R = solve_triangular(L, np.diag(self.root), lower=True)
        return K_uu, L, R, R @ self.site_mean

    def nlp(self, kernel, bias, slope):
        """NLP and its gradient in [log kernel parameters, bias, log s].

        Returns
        -------
        value : float
        gradient : float64 array (len(kernel.theta) + 2,)
        """
        _, _, R, half = self._factor(kernel)
        M = R @ kernel(self.basis, self.rows)
        mean = half @ M
        variance = np.maximum(kernel.diag(self.rows) - np.einsum("ij,ij->j", M, M), 0.0)
        w, V = half @ R, R.T @ M
        t = 1.0 / slope**2 + variance
        z = self.y * (mean + bias) / np.sqrt(t)
        by_z = -self.weight * density_ratio(z)
        by_mean = by_z * self.y / np.sqrt(t)
        by_variance = -0.5 * by_z * z / t
        weighted = V * by_variance
        by_K_uu = weighted @ V.T - np.outer((M @ by_mean) @ R, w)
        by_K = np.multiply.outer(w, by_mean)
        by_K -= 2.0 * weighted
        by_kernel = kernel.grad_dot(self.basis, self.rows, by_K) + kernel.grad_dot(self.basis, self.basis, by_K_uu)
        by_kernel += [by_variance @ derivative for derivative in kernel.grad_diag(self.rows)]
        by_log_s = 2.0 / slope**2 * by_variance.sum()
        return -float(self.weight @ log_phi(z)), np.concatenate([by_kernel, [by_mean.sum(), by_log_s]])

    def negative_log_marginal(self, kernel):
        """Negative log marginal likelihood of the sites and its gradient in the log kernel parameters."""
        _, L, R, half = self._factor(kernel)
        d = len(half)
        value = 0.5 * half @ half + np.sum(np.log(np.diag(L))) - np.sum(np.log(self.root)) + d / 2 * np.log(2 * np.pi)
        w = half @ R
        return float(value), 0.5 * kernel.grad_dot(self.basis, self.basis, R.T @ R - np.outer(w, w))

    def lower_bound(self, kernel, bias, slope):
        """Lower bound of the log evidence: sum_i E log Phi(slope y_i (f_i + bias)) - KL(posterior || prior)."""
        K_uu, L, R, half = self._factor(kernel)
        M = R @ kernel(self.basis, self.rows)
        mean = half @ M
        variance = np.maximum(kernel.diag(self.rows) - np.einsum("ij,ij->j", M, M), 0.0)
        nodes, weights = np.polynomial.hermite_e.hermegauss(GAUSS_HERMITE_POINTS)
        f = mean[:, None] + np.sqrt(variance)[:, None] * nodes
        expected = log_phi(slope * self.y[:, None] * (f + bias)) @ (weights / np.sqrt(2 * np.pi))
        w = half @ R
        # tr(B^-1) is the squared norm of L^-1 = R P^(-1/2).
        kl = np.sum(np.log(np.diag(L))) + 0.5 * (np.sum((R / self.root) ** 2) + w @ K_uu @ w - len(half))
        return float(expected.sum() - kl)
