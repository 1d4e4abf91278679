"""Expectation propagation over all sites with the basis fixed, in coordinates where the prior of the basis is N(0, I).

With G = L L', u = L^-1 k, gamma = k(x, x) - u'u: f(x) = u'w + N(0, gamma), w ~ N(0, I) a priori. The posterior of w is
N(beta, B), B = (I + U' Lambda U)^-1, beta = B U' Lambda a, and site i is refined by section 7.2 of the design page
with P_i = Q k_i. Its removal and its return both change B along B u_i: an example costs one product and one rank-1
update.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from linadd._jit import compiled_sums
from linadd.sparse_kernel.online_gp_likelihoods import derivatives, log_evidence_terms
from linadd.sparse_kernel.online_gp_steps import LEAST_CURVATURE, LEAST_SLACK

__all__ = ["gaussian_of_sites", "log_evidence", "refine_sweep"]


@compiled_sums
def refine_sweep(order, U, gamma, y, precision, mean, beta, B, settings):
    """Refine the sites in `order`.

    Parameters
    ----------
    order : int array
    U : float64 array (n_sites, m)
    gamma, y : float64 arrays (n_sites,)
    precision, mean : float64 arrays (n_sites,)
        Of the sites; changed in place.
    beta, B : float64 arrays (m,), (m, m)
        The posterior of these sites; changed in place.
    settings : Settings
    """
    size = beta.shape[0]
    direction = np.empty(size)
    for i in order:
        u = U[i]
        value, projected = 0.0, 0.0
        for a in range(size):
            total, row = 0.0, B[a]
            for b in range(size):
                total += row[b] * u[b]
            direction[a] = total
            value += u[a] * beta[a]
            projected += u[a] * total
        slack = 1.0 - precision[i] * projected
        if slack <= LEAST_SLACK:
            continue
        v = precision[i] / slack
        shift = v * (value - mean[i])
        growth = 1.0 + v * projected
        cavity_mean, cavity = value + shift * projected, projected * growth + gamma[i]
        q, r = derivatives(settings.likelihood, y[i], cavity_mean, cavity, settings.bias, settings.slope)
        if not r <= -LEAST_CURVATURE:
            continue
        precision[i] = -1.0 / (1.0 / r + cavity)
        mean[i] = cavity_mean - q / r
        eta = 1.0 / (1.0 + gamma[i] * r)
        factor = v + r * eta * growth * growth
        step = shift + q * eta * growth
        for a in range(size):
            beta[a] += step * direction[a]
            scaled, row = factor * direction[a], B[a]
            for b in range(size):
                row[b] += scaled * direction[b]


def gaussian_of_sites(U, precision, mean):
    """Posterior of the whitened basis values from all sites.

    Parameters
    ----------
    U : float64 array (n_sites, m)
    precision, mean : float64 arrays (n_sites,)

    Returns
    -------
    beta, B : float64 arrays (m,), (m, m)
    """
    weighted = U * precision[:, None]
    B = cho_solve(cho_factor(np.eye(U.shape[1]) + weighted.T @ U, lower=True), np.eye(U.shape[1]))
    return B @ (weighted.T @ mean), B


def log_evidence(U, gamma, y, precision, mean, settings):
    """EP estimate of log P(y) at the sites given.

    sum_i [log Z_i + log(2 pi w_i) / 2 + (m_i - a_i)^2 / (2 w_i)] + log N(a | 0, U U' + diag(1 / lambda)), with
    (m_i, v_i) the cavity of u_i'w and w_i = v_i + 1 / lambda_i; what diverges as lambda_i goes to 0 is cancelled here.

    Parameters
    ----------
    U : float64 array (n_sites, m)
    gamma, y, precision, mean : float64 arrays (n_sites,)
    settings : Settings

    Returns
    -------
    float
    """
    beta, B = gaussian_of_sites(U, precision, mean)
    projected = np.einsum("ia,ab,ib->i", U, B, U, optimize=True)
    slack = np.maximum(1.0 - precision * projected, LEAST_SLACK)
    cavity = projected / slack
    cavity_mean = (U @ beta - precision * projected * mean) / slack
    log_z = log_evidence_terms(settings.likelihood, y, cavity_mean, cavity + gamma, settings.bias, settings.slope)
    spread = 1.0 + precision * cavity
    sites = log_z + 0.5 * (np.log(spread) + precision * (cavity_mean - mean) ** 2 / spread - precision * mean**2)
    gradient = U.T @ (precision * mean)
    return float(sites.sum() + 0.5 * (np.linalg.slogdet(B)[1] + gradient @ beta))
