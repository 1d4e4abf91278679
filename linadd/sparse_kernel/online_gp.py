"""The sparse online Gaussian process of one latent function: the arrays of `online_gp_steps`, and the sweeps over rows.

Rows are scaled and labels are -1 and +1 (any real target for the gaussian likelihood); the estimator that users meet is
in `sparse_online_gp`.
"""

import logging

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from linadd.sparse_kernel.base import check_memory
from linadd.sparse_kernel.kernel_base import row_slices
from linadd.sparse_kernel.linear_algebra import jittered_cholesky
from linadd.sparse_kernel.online_gp_refine import gaussian_of_sites, log_evidence, refine_sweep
from linadd.sparse_kernel.online_gp_steps import Posterior, Sites, Swaps, catch_up_sites, process_rows

__all__ = ["OnlineGP", "check_basis_memory", "train_model"]

logger = logging.getLogger(__name__)

BLOCK_ROWS = 256
SWAPS_KEPT = 64
# The search for kernel parameters: EP at every trial, steps of L-BFGS, and the step of finite differences in a
# log-parameter. At an EP fixed point the evidence is stationary in the sites, so their tolerance enters squared.
SEARCH_TOL, SEARCH_SWEEPS, SEARCH_STEPS, SEARCH_DIFFERENCE = 1e-5, 20, 15, 1e-4
# Rebuilds of the basis, each after a search; the smallest move of a log-parameter that is worth another.
SEARCH_ROUNDS, LEAST_MOVE = 4, 1e-3


class OnlineGP:
    """Posterior, sites and basis of one latent function.

    Parameters
    ----------
    kernel : Kernel
    settings : Settings
    max_basis : int
    n_features : int

    Attributes
    ----------
    basis : float64 array (max_basis + 1, n_features)
        Scaled rows; the first `size` are in use.
    posterior : Posterior
    sites : Sites
    n_forgotten : int
        Rows seen before the first of `sites`; those among the basis vectors have a negative owner.
    """

    def __init__(self, kernel, settings, max_basis, n_features):
        m = max_basis + 1
        self.kernel, self.settings, self.max_basis = kernel, settings, max_basis
        self.basis, self.n_forgotten = np.zeros((m, n_features)), 0
        self.posterior = Posterior(np.zeros(m), *(np.zeros((m, m)) for _ in range(4)), np.full(m, -1), np.zeros(1, int))
        self.sites = Sites(np.zeros(0), np.zeros(0), np.zeros((0, m)), np.zeros(0, int))
        self.swaps = Swaps(np.zeros(SWAPS_KEPT, int), np.zeros((SWAPS_KEPT, m)), np.zeros(1, int))

    @property
    def size(self):
        """Number of basis vectors."""
        return int(self.posterior.size[0])

    def set_posterior(self, basis, basis_indices, alpha, C, n_forgotten):
        """Take over a posterior without its sites (of a model file); later sites are added to it.

        Parameters
        ----------
        basis : float64 array (n_basis, n_features)
        basis_indices : int64 array (n_basis,)
        alpha, C : float64 arrays (n_basis,), (n_basis, n_basis)
        n_forgotten : int
            Rows seen so far.
        """
        d = len(alpha)
        posterior, G = self.posterior, self.kernel(basis)
        self.n_forgotten = n_forgotten
        self.basis[:d], posterior.alpha[:d], posterior.size[0] = basis, alpha, d
        posterior.owner[:d] = basis_indices - n_forgotten
        posterior.C[:d, :d], posterior.G[:d, :d] = C, G
        posterior.Q[:d, :d] = cho_solve((jittered_cholesky(G), True), np.eye(d))
        posterior.site_gram[:d, :d] = -np.linalg.solve(np.eye(d) + C @ G, C)

    @property
    def n_seen(self):
        """Rows seen so far."""
        return self.n_forgotten + len(self.sites.precision)

    @property
    def basis_indices(self):
        """Rows that are basis vectors, counted over all that were seen, int64 (size,)."""
        return self.posterior.owner[: self.size] + self.n_forgotten

    def add_sites(self, count):
        """Append `count` empty sites."""
        empty = Sites(np.zeros(count), np.zeros(count), np.zeros((count, self.max_basis + 1)), np.zeros(count, int))
        self.sites = Sites(*(np.concatenate(pair) for pair in zip(self.sites, empty, strict=True)))

    def sweep(self, X, y, order, first_site=0, is_frozen=False):
        """Process rows once: take their sites out, match moments, put them back.

        Parameters
        ----------
        X : float64 array (n_rows, n_features)
        y : float64 array (n_rows,)
        order : int array
            Rows in the order in which they are processed.
        first_site : int
            Site of row 0.
        is_frozen : bool
            Leave the basis as it is.
        """
        settings = self.settings._replace(is_frozen=is_frozen)
        scratch = np.zeros((8, self.max_basis + 1))
        for start in range(0, len(order), BLOCK_ROWS):
            rows = order[start : start + BLOCK_ROWS]
            block = X[rows]
            cross = np.zeros((len(rows), self.max_basis + 1))
            cross[:, : self.size] = self.kernel(block, self.basis[: self.size])
            owner = self.posterior.owner.copy()
            try:
                process_rows(rows + first_site, y[rows], cross, self.kernel(block), self.posterior, self.sites,
                             self.swaps, settings, scratch)
            finally:  # also when Ctrl-C arrived while the compiled loop ran
                changed = np.flatnonzero(self.posterior.owner != owner)
                self.basis[changed] = X[self.posterior.owner[changed] - first_site]
        catch_up_sites(self.sites, self.swaps, self.size)

    def train(self, X, y, *, max_sweeps, freeze_after, tol, rng=None, basis_indices=None):
        """Add the rows as sites and sweep until no site changes by `tol`; `freeze_after` sweeps may change the basis.

        Parameters
        ----------
        X, y : float64 arrays (n_rows, n_features), (n_rows,)
        max_sweeps, freeze_after : int
        tol : float
            For the largest change of a site's precision, and precision times mean.
        rng : numpy Generator, optional
            Draws the order of every sweep; None keeps the order of the rows.
        basis_indices : int array, optional
            The rows that become the basis, and no others do.

        Returns
        -------
        n_sweeps : int
            Sweeps done; an interrupted one counts.
        change : float
            That largest change in the last sweep; infinite where it was interrupted or there was one sweep.
        is_interrupted : bool
            Ctrl-C came; the posterior is that of the sites at that moment.
        """
        self.add_sites(len(X))
        change, n_sweeps = np.inf, 0
        try:
            if basis_indices is not None:
                self.sweep(X, y, np.asarray(basis_indices))
                freeze_after = 0
            while n_sweeps < min(freeze_after + 1, max_sweeps) and not change < tol:
                old = self.sites.precision.copy(), self.sites.precision * self.sites.mean
                n_sweeps += 1
                order = np.arange(len(X)) if rng is None else rng.permutation(len(X))
                self.sweep(X, y, order, is_frozen=n_sweeps > freeze_after)
                self.resync()
                change = site_change(*old, self.sites.precision, self.sites.precision * self.sites.mean)
                logger.info("sweep %d, basis vectors %d, largest change of a site %.3g", n_sweeps, self.size, change)
        except KeyboardInterrupt:
            self.resync()
            return n_sweeps, np.inf, True
        if n_sweeps == max_sweeps or change < tol:
            return n_sweeps, change if n_sweeps > 1 else np.inf, False
        n_done, change, is_interrupted = self.refine(X, y, tol, max_sweeps - n_sweeps, rng)
        return n_sweeps + n_done, change, is_interrupted

    def resync(self):
        """Recompute alpha, C and Q from the sites by the closed form of section 7.1: it takes out rounding drift."""
        d, posterior = self.size, self.posterior
        catch_up_sites(self.sites, self.swaps, d)
        P = self.sites.projection[:, :d]
        weighted = P * self.sites.precision[:, None]
        site_gram, G = weighted.T @ P, posterior.G[:d, :d]
        system = np.eye(d) + site_gram @ G
        solution = np.linalg.solve(system, np.column_stack([weighted.T @ self.sites.mean, site_gram]))
        posterior.alpha[:d] = solution[:, 0]
        posterior.C[:d, :d] = -0.5 * (solution[:, 1:] + solution[:, 1:].T)
        posterior.Q[:d, :d] = cho_solve((jittered_cholesky(G), True), np.eye(d))
        posterior.site_gram[:d, :d] = site_gram

    def whiten(self, X, kernel=None):
        """Coordinates in which the prior of the basis values is N(0, I); the formulas are in `online_gp_refine`.

        Parameters
        ----------
        X : float64 array (n_rows, n_features)
        kernel : Kernel, optional
            Instead of the model's own.

        Returns
        -------
        L, U, gamma : float64 arrays (size, size), (n_rows, size), (n_rows,)
        """
        kernel = self.kernel if kernel is None else kernel
        basis = self.basis[: self.size]
        factor = jittered_cholesky(kernel(basis))
        U = np.empty((len(X), self.size))
        for rows in row_slices(len(X), self.size):
            U[rows] = solve_triangular(factor, kernel(basis, X[rows]), lower=True).T
        return factor, U, np.maximum(kernel.diag(X) - np.einsum("ij,ij->i", U, U), 0.0)

    def refine(self, X, y, tol, n_sweeps, rng):
        """EP sweeps with the basis fixed until no site changes by `tol`; every P_i must be Q k_i already.

        Parameters
        ----------
        X, y, tol, rng
            As for `train`.
        n_sweeps : int
            At most so many.

        Returns
        -------
        n_done, change, is_interrupted
            As for `train`.
        """
        factor, U, gamma = self.whiten(X)
        precision, mean = self.sites.precision, self.sites.mean
        n_done, change, is_interrupted = refine_sites(U, gamma, y, (precision, mean), self.settings, tol, n_sweeps, rng)
        d, posterior = self.size, self.posterior
        P = solve_triangular(factor, U.T, lower=True, trans="T").T
        beta, B = gaussian_of_sites(U, precision, mean)
        posterior.alpha[:d] = solve_triangular(factor, beta, lower=True, trans="T")
        half = solve_triangular(factor, B - np.eye(d), lower=True, trans="T")
        posterior.C[:d, :d] = solve_triangular(factor, half.T, lower=True, trans="T")
        posterior.Q[:d, :d] = cho_solve((factor, True), np.eye(d))
        posterior.site_gram[:d, :d] = (P * precision[:, None]).T @ P
        self.sites.projection[:, :d] = P
        return n_done, change, is_interrupted

    def best_kernel(self, X, y, bounds):
        """The kernel of largest evidence that L-BFGS finds from this one, with the rows of the basis as they are.

        Parameters
        ----------
        X, y : float64 arrays (n_rows, n_features), (n_rows,)
        bounds : float64 array (n_parameters, 2)
            Of the log-parameters.

        Returns
        -------
        Kernel
        """
        precision, mean = self.sites.precision.copy(), self.sites.mean.copy()

        def loss(theta):
            """Minus the evidence, at sites that start from those of the last call."""
            _, U, gamma = self.whiten(X, self.kernel.with_theta(theta))
            refine_sites(U, gamma, y, (precision, mean), self.settings, SEARCH_TOL, SEARCH_SWEEPS, None)
            return -log_evidence(U, gamma, y, precision, mean, self.settings)

        found = minimize(loss, np.clip(self.kernel.theta, *bounds.T), method="L-BFGS-B", bounds=bounds,
                         options={"maxiter": SEARCH_STEPS, "eps": SEARCH_DIFFERENCE})
        return self.kernel.with_theta(found.x)

    def log_evidence(self, X, y):
        """EP estimate of log P(y | kernel), with the projections that the sites have.

        Parameters
        ----------
        X, y : float64 arrays (n_rows, n_features), (n_rows,)
            The rows of the sites.
        """
        gamma = self.whiten(X)[2]
        U = self.sites.projection[:, : self.size] @ jittered_cholesky(self.posterior.G[: self.size, : self.size])
        return log_evidence(U, gamma, y, self.sites.precision, self.sites.mean, self.settings)

    def latent(self, X):
        """Mean and variance of the latent function at rows X, float64 (n_rows,) each."""
        d = self.size
        mean, variance = np.empty(len(X)), self.kernel.diag(X)
        for rows in row_slices(len(X), d):
            k = self.kernel(X[rows], self.basis[:d])
            mean[rows] = k @ self.posterior.alpha[:d]
            variance[rows] += np.einsum("ij,ij->i", k @ self.posterior.C[:d, :d], k)
        return mean, np.maximum(variance, 0.0)


def check_basis_memory(n_rows, n_models, max_basis, memory_limit):
    """Raise ConfigError if the arrays of some models pass `memory_limit` bytes.

    Parameters
    ----------
    n_rows, n_models, max_basis : int
    memory_limit : float
    """
    m = max_basis + 1
    n_lines = n_models * (n_rows + 4 * m) + n_rows  # P and four matrices of each, and U of the one that is refined
    check_memory("the table of projections of the rows on the basis", n_lines, m, memory_limit)


def train_model(model, X, y, search, options):
    """Train an empty model, in turns with searches for its kernel if asked to.

    Parameters
    ----------
    model : OnlineGP
        Without sites.
    X, y : float64 arrays (n_rows, n_features), (n_rows,)
    search : bool
        Maximise the evidence over the kernel's parameters.
    options : dict
        Keyword arguments of `OnlineGP.train`.

    Returns
    -------
    model : OnlineGP
        The one of largest evidence.
    evidence : float
        -inf where the basis is empty.
    report : tuple
        What `OnlineGP.train` returned for it; `is_interrupted` if Ctrl-C came at any time.
    """
    bounds, best = model.kernel.bounds(), None
    for _ in range(SEARCH_ROUNDS if search else 1):
        report = model.train(X, y, **options)
        evidence = model.log_evidence(X, y) if model.size else -np.inf
        is_better = best is None or evidence > best[1]
        best = (model, evidence, report) if is_better else (*best[:2], (*best[2][:2], report[2]))
        if not search or report[2] or not is_better:
            break
        try:
            kernel = model.best_kernel(X, y, bounds)
        except KeyboardInterrupt:
            return *best[:2], (*report[:2], True)
        if np.abs(kernel.theta - model.kernel.theta).max() < LEAST_MOVE:
            break
        model = OnlineGP(kernel, model.settings, model.max_basis, X.shape[1])
    return best


def refine_sites(U, gamma, y, sites, settings, tol, n_sweeps, rng):
    """Sweeps of `refine_sweep` over `sites` = (precision, mean), changed in place, until none changes by `tol`.

    Returns what `OnlineGP.train` does.
    """
    precision, mean = sites
    change, n_done = np.inf, 0
    try:
        while n_done < n_sweeps and not change < tol:
            n_done += 1
            old = precision.copy(), precision * mean
            beta, B = gaussian_of_sites(U, precision, mean)
            order = np.arange(len(U)) if rng is None else rng.permutation(len(U))
            refine_sweep(order, U, gamma, y, precision, mean, beta, B, settings)
            change = site_change(*old, precision, precision * mean)
    except KeyboardInterrupt:
        return n_done, np.inf, True
    return n_done, change, False


def site_change(precision, weighted_mean, new_precision, new_weighted_mean):
    """Largest change of any site's precision, or precision times mean."""
    return max(np.abs(new_precision - precision).max(), np.abs(new_weighted_mean - weighted_mean).max())
