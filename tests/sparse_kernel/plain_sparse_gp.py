"""The sparse Gaussian process classifier with full n x n matrices, as its formulas read: the twin."""

import numpy as np
from scipy.special import log_ndtr, ndtr


class PlainSparseGP:
    """Posterior N(mean, covariance) of all rows; one more Gaussian site an inclusion."""

    def __init__(self, K, y, bias, slope=1.0):
        self.K, self.y, self.bias, self.s2 = K, y, bias, 1 / slope**2
        self.mean, self.covariance, self.active = np.zeros(len(y)), K.copy(), []
        self.precision, self.site_mean = [], []

    def z(self, mean, variance):
        return self.y * (mean + self.bias) / np.sqrt(self.s2 + variance)

    def moments(self, i):
        t = self.s2 + self.covariance[i, i]
        z = self.z(self.mean, np.diag(self.covariance))[i]
        alpha = self.y[i] * np.exp(-z * z / 2) / np.sqrt(2 * np.pi) / ndtr(z) / np.sqrt(t)
        return alpha, alpha * (alpha + (self.mean[i] + self.bias) / t)

    def after(self, i, alpha, nu):
        column = self.covariance[:, i]
        return self.mean + alpha * column, np.diag(self.covariance) - nu * column**2

    def loss(self, mean, variance):
        return -np.mean(log_ndtr(self.z(mean, variance))) / np.log(2)

    def nlp(self, mean, variance, without):
        rows = np.setdiff1d(np.arange(len(self.y)), without)
        return -np.mean(log_ndtr(self.z(mean, variance)[rows]))

    def add(self, i, alpha, nu):
        own = self.covariance[i, i]
        self.precision.append(nu / (1 - nu * own))
        self.site_mean.append(self.mean[i] + alpha / nu)
        column = self.covariance[:, i].copy()
        self.mean = self.mean + alpha * column
        self.covariance = self.covariance - nu * np.outer(column, column)
        self.active.append(i)

    def best_of(self, candidates, selection):
        """The candidate of least LOSS, or for "validation" of least NLP, after inclusion with matched moments."""
        values = []
        for i in candidates:
            mean, variance = self.after(i, *self.moments(i))
            validation = selection == "validation"
            values.append(self.nlp(mean, variance, [*self.active, i]) if validation else self.loss(mean, variance))
        return candidates[int(np.argmin(values))]


def batch(K, active, precision, site_mean):
    """(L, M, f, A) of the batch formulas for given sites."""
    root = np.sqrt(precision)
    L = np.linalg.cholesky(np.eye(len(active)) + root[:, None] * K[np.ix_(active, active)] * root)
    M = np.linalg.solve(L, root[:, None] * K[active])
    return L, M, M.T @ np.linalg.solve(L, root * np.asarray(site_mean)), np.diag(K) - np.sum(M**2, axis=0)
