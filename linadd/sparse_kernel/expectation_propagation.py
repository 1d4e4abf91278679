"""Expectation propagation for the probit likelihood with a full kernel matrix (design page 1.3).

Sites are Gaussians in natural parameters, exp(-tau f^2 / 2 + eta f). A baseline for small data, what the sparse methods
tend to as every row becomes a basis vector, and the optional sweeps on the active set of `SparseGPClassifier`.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from linadd.sparse_kernel.probit import log_phi, moments

__all__ = ["Posterior", "dense_ep"]


class Posterior(NamedTuple):
    """Sites tau and eta (n,), mean (n,), covariance (n, n), log evidence, and the sweeps that were made."""

    tau: np.ndarray
    eta: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    log_evidence: float
    n_sweeps: int


def dense_ep(K, y, bias=0.0, slope=1.0, tau=None, eta=None, max_sweeps=100, tol=1e-10):
    """Sweep over the sites in order until none changes by more than `tol`.

    Parameters
    ----------
    K : float64 array (n, n)
        Kernel matrix.
    y : float64 array (n,), values -1 and +1
    bias, slope : float
        Of the likelihood Phi(slope * y * (f + bias)).
    tau, eta : float64 arrays (n,), optional
        Sites to start from, default 0; copied.
    max_sweeps : int
    tol : float
        Largest change of tau and eta in the last sweep.

    Returns
    -------
    Posterior
    """
    n = len(y)
    tau = np.zeros(n) if tau is None else np.array(tau, dtype=float)
    eta = np.zeros(n) if eta is None else np.array(eta, dtype=float)
    covariance, mean, log_det = posterior(K, tau, eta)
    n_sweeps, change = 0, np.inf
    while n_sweeps < max_sweeps and change >= tol:
        before = np.concatenate([tau, eta])
        for i in range(n):
            cavity_mean, cavity_variance = cavity(covariance[i, i], mean[i], tau[i], eta[i])
            _, alpha, nu = moments(y[i], cavity_mean, cavity_variance, bias, slope)
            shrunk = 1.0 - nu * cavity_variance
            step = nu / shrunk - tau[i]
            tau[i], eta[i] = nu / shrunk, (nu * cavity_mean + alpha) / shrunk
            column = covariance[:, i].copy()
            covariance -= np.outer(step / (1.0 + step * column[i]) * column, column)
            mean = covariance @ eta
        covariance, mean, log_det = posterior(K, tau, eta)
        change = np.max(np.abs(np.concatenate([tau, eta]) - before))
        n_sweeps += 1
    evidence = log_evidence(y, mean, np.diag(covariance), tau, eta, log_det, bias, slope) if n_sweeps else np.nan
    return Posterior(tau, eta, mean, covariance, evidence, n_sweeps)


def cavity(variance, mean, tau, eta):
    """Mean and variance of a marginal without its site."""
    precision = 1.0 / variance - tau
    return (mean / variance - eta) / precision, 1.0 / precision


def posterior(K, tau, eta):
    """Covariance (K^-1 + diag tau)^-1, mean, and log det(I + S K S), S = diag(sqrt tau)."""
    root = np.sqrt(tau)
    L = cholesky(np.eye(len(K)) + root[:, None] * K * root, lower=True)
    V = solve_triangular(L, root[:, None] * K, lower=True)
    covariance = K - V.T @ V
    return covariance, covariance @ eta, 2.0 * np.sum(np.log(np.diag(L)))


def log_evidence(y, mean, variance, tau, eta, log_det, bias, slope):
    """Log of the EP approximation of the evidence.

    With a = eta/tau and w = v + 1/tau it is the sum of log Phi(z_i) + log(2 pi w_i)/2 + (m_i - a_i)^2/(2 w_i) plus
    log N(a | 0, K + diag(1/tau)); its determinant is det(I + S K S) / prod tau, and (K + diag(1/tau))^-1 a is
    eta - tau * mean.
    """
    m, v = cavity(variance, mean, tau, eta)
    a, w = eta / tau, v + 1.0 / tau
    z = y * (m + bias) / np.sqrt(1.0 / slope**2 + v)
    sites = log_phi(z) + 0.5 * np.log(2 * np.pi * w) + (m - a) ** 2 / (2 * w)
    gaussian = -0.5 * (a @ (eta - tau * mean) + log_det - np.sum(np.log(tau)) + len(y) * np.log(2 * np.pi))
    return float(sites.sum() + gaussian)
