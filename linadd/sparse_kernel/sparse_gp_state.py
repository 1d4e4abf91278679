"""The posterior of a sparse Gaussian process classifier while basis vectors are added.

With the likelihood Phi(y (f + bias) / s) and Gaussian sites exp(-p_i (f_i - m_i)^2 / 2) on the active rows u:

    B = I + P^(1/2) K_uu P^(1/2) = L L',    M = L^-1 P^(1/2) K_u.,    P = diag(p)
    posterior covariance of all rows  K - M' M,    mean f,    marginal variances A

The n x n covariance is never formed: M has n_active rows, kernel columns are computed when they are asked for.
Sundararajan and Shevade (arXiv 1206.6030); design page section 3.
"""

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from linadd.sparse_kernel.probit import log_phi, moments, standardised_margin

__all__ = ["SparseGPState"]

# A row whose inclusion would change its own variance by less than this share changes nothing.
LEAST_SHRINKAGE = 1e-12


class SparseGPState:
    """Active rows, their sites, and mean and variance of every training row.

    Parameters
    ----------
    gram : callable
        Row indices -> K(X, X[indices]), (n, len(indices)).
    kernel_diag : float64 array (n,)
    y : float64 array (n,), values -1 and +1
    bias, slope : float
        Of the likelihood Phi(slope * y * (f + bias)).
    capacity : int
        Active rows to make room for.

    Attributes
    ----------
    active : list of int
    precision, site_mean : lists of float, p and m of the active rows
    mean, variance : float64 arrays (n,), f and A
    free : bool array (n,), rows outside the active set
    usable : bool array (n,), free rows that have not been found useless
    """

    def __init__(self, gram, kernel_diag, y, bias, slope, capacity):
        self.gram, self.y, self.bias, self.slope = gram, y, float(bias), slope
        self.noise = 1.0 / slope**2
        n = len(y)
        self.active, self.precision, self.site_mean = [], [], []
        self.mean, self.variance, self.kernel_diag = np.zeros(n), kernel_diag.copy(), kernel_diag
        self.free, self.usable = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
        self.rows = np.empty((capacity, n))
        self.factor_rows = np.zeros((capacity, capacity))

    @property
    def M(self):
        """M, (n_active, n)."""
        return self.rows[: len(self.active)]

    @property
    def L(self):
        """L, lower triangular (n_active, n_active)."""
        return self.factor_rows[: len(self.active), : len(self.active)]

    def margins(self):
        """z of every row, float64 (n,)."""
        return standardised_margin(self.y, self.mean, self.variance, self.bias, self.slope)

    def loss(self):
        """LOSS: mean over all rows of -log2 Phi(z); an upper bound of the training error."""
        return -float(np.mean(log_phi(self.margins()))) / np.log(2.0)

    def nlp(self):
        """NLP: mean over the free rows (all rows, if none is free) of -log Phi(z)."""
        counted = self.free if self.free.any() else slice(None)
        return -float(np.mean(log_phi(self.margins()[counted])))

    def moments(self, indices):
        """(alpha, nu) of moment matching at the given rows."""
        _, alpha, nu = moments(self.y[indices], self.mean[indices], self.variance[indices], self.bias, self.slope)
        return alpha, nu

    def columns(self, indices):
        """Posterior covariance of all rows with the given ones, float64 (n, len(indices)), C-contiguous."""
        out = self.gram(indices)
        if len(indices) == 1:
            out[:, 0] -= self.M[:, indices[0]] @ self.M  # a matrix product of one column is half as fast
        else:
            out -= self.M.T @ self.M[:, indices]
        return out

    def is_admissible(self, index, nu):
        """Whether including the row would change anything; if not, it is not offered again."""
        if nu * self.variance[index] >= LEAST_SHRINKAGE:
            return True
        self.usable[index] = False
        return False

    def add(self, index, column, alpha, nu):
        """Include a row: f += alpha column, A -= nu column^2, and one more row of L and M.

        Parameters
        ----------
        index : int
        column : float64 array (n,)
            Posterior covariance of all rows with this one.
        alpha, nu : float
            Change of the mean and of the variance in units of the column; p = nu / (1 - nu A_jj), m = f_j + alpha / nu.
        """
        d = len(self.active)
        own = self.variance[index]
        p = nu / (1.0 - nu * own)
        root, corner = np.sqrt(p), np.sqrt(1.0 + p * own)
        self.factor_rows[d, :d] = root * self.rows[:d, index]
        self.factor_rows[d, d] = corner
        np.multiply(column, root / corner, out=self.rows[d])
        self.precision.append(float(p))
        self.site_mean.append(float(self.mean[index] + alpha / nu))
        self.active.append(int(index))
        self.free[index] = self.usable[index] = False
        self.mean += alpha * column
        self.variance -= nu * column**2
        np.maximum(self.variance, 0.0, out=self.variance)

    def set_sites(self, precision, site_mean):
        """Replace the sites of the active rows; everything else is computed anew from them."""
        d = len(self.active)
        root = np.sqrt(precision)
        columns = self.gram(np.array(self.active)).T
        K_uu = columns[:, self.active]
        self.factor_rows[:d, :d] = cholesky(np.eye(d) + root[:, None] * K_uu * root, lower=True)
        self.rows[:d] = solve_triangular(self.L, root[:, None] * columns, lower=True)
        self.mean = self.M.T @ solve_triangular(self.L, root * site_mean, lower=True)
        self.variance = np.maximum(self.kernel_diag - np.einsum("ij,ij->j", self.M, self.M), 0.0)
        self.precision, self.site_mean = list(map(float, precision)), list(map(float, site_mean))
