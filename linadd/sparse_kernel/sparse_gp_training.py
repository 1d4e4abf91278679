"""Training of one sparse Gaussian process classifier: build an active set, move the hyper-parameters, keep the best.

Algorithm 1 of Sundararajan and Shevade (arXiv 1206.6030); design page 3.7.
"""

import logging
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize, minimize_scalar

from linadd.sparse_kernel.expectation_propagation import dense_ep
from linadd.sparse_kernel.kernel_base import Kernel, row_slices
from linadd.sparse_kernel.sparse_gp_objective import SiteProblem
from linadd.sparse_kernel.sparse_gp_selection import select
from linadd.sparse_kernel.sparse_gp_state import SparseGPState

__all__ = ["SparseGPModel", "TrainingOptions", "build", "train"]

logger = logging.getLogger(__name__)

# One start with variances up to e^3, one up to e^7: on ringnorm the wide range alone is a trap (11 % error against
# 1.6 %), while the NLP of twonorm prefers e^7.
LOG_VARIANCE_UPPERS = (3.0, 7.0)
BIAS_BOUNDS = (-5.0, 5.0)
PATIENCE = 5


class TrainingOptions(NamedTuple):
    """The estimator's options that training needs, by the same names."""

    n_basis: int
    optimize_hyperparameters: bool
    objective: str
    max_outer_iter: int
    max_cg_iter: int
    n_restarts: int
    tol: float
    bias: float
    probit_slope: float
    ep_sweeps: int


@dataclass
class SparseGPModel:
    """One fitted binary classifier, all that prediction needs.

    Parameters
    ----------
    kernel : Kernel
    bias, slope : float
    indices : int64 array (d,)
    basis : float64 array (d, n_features), scaled rows
    precision, site_mean : float64 arrays (d,)
    L : float64 array (d, d), lower triangular
    nlp : float
    nlp_history : list of float
        NLP of every outer iteration.
    """

    kernel: Kernel
    bias: float
    slope: float
    indices: np.ndarray
    basis: np.ndarray
    precision: np.ndarray
    site_mean: np.ndarray
    L: np.ndarray
    nlp: float
    nlp_history: list = field(default_factory=list)

    def latent(self, rows):
        """Mean and variance of f, float64 (n_rows,) each, for scaled rows."""
        root = np.sqrt(self.precision)
        half = solve_triangular(self.L, root * self.site_mean, lower=True)
        mean, variance = np.empty(len(rows)), np.empty(len(rows))
        for block in row_slices(len(rows), len(root)):
            M = solve_triangular(self.L, root[:, None] * self.kernel(self.basis, rows[block]), lower=True)
            mean[block] = half @ M
            variance[block] = self.kernel.diag(rows[block]) - np.einsum("ij,ij->j", M, M)
        return mean, np.maximum(variance, 0.0, out=variance)


def model_of(state, kernel, rows):
    """The model of a state."""
    indices = np.array(state.active, dtype=np.int64)
    return SparseGPModel(kernel, state.bias, state.slope, indices, rows[indices], np.array(state.precision),
                         np.array(state.site_mean), state.L.copy(), state.nlp())


def build(rows, y, kernel, bias, options, selection, rng, order=None):
    """Fill an active set of `options.n_basis` rows (or of those in `order`) for fixed hyper-parameters.

    Parameters
    ----------
    rows : float64 array (n, n_features)
    y : float64 array (n,), values -1 and +1
    kernel : Kernel
    bias : float
    options : TrainingOptions
    selection : SelectionOptions
    rng : numpy Generator
    order : sequence of int, optional

    Returns
    -------
    state : SparseGPState
    interrupted : bool
        Ctrl-C ended the selection; the state holds what was complete (at least one row, else the exception goes on).
    """
    columns = kernel.bind(rows)
    order = None if order is None else [int(index) for index in order]
    n_basis = min(options.n_basis, len(y)) if order is None else len(order)
    state = SparseGPState(lambda indices: columns(rows[indices]), kernel.diag(rows), y, bias, options.probit_slope,
                          n_basis)
    interrupted = False
    try:
        while len(state.active) < n_basis and (chosen := select(state, rng, selection, order)):
            state.add(*chosen)
    except KeyboardInterrupt:
        if not state.active:
            raise
        interrupted = True
    if options.ep_sweeps and not interrupted:
        u = np.array(state.active)
        p, m = np.array(state.precision), np.array(state.site_mean)
        sites = dense_ep(kernel(rows[u]), y[u], bias, options.probit_slope, p, p * m, options.ep_sweeps)
        state.set_sites(sites.tau, sites.eta / sites.tau)
    return state, interrupted


def train(rows, y, kernel, options, selection, rng, order=None):
    """Fit one binary classifier from every start; return the one of least NLP, and whether Ctrl-C ended the search.

    Parameters
    ----------
    rows, y, kernel, options, selection, rng, order
        As in `build`; `kernel` is where the search starts.

    Returns
    -------
    model : SparseGPModel
    interrupted : bool
    """
    best = None
    for upper in LOG_VARIANCE_UPPERS[: options.n_restarts if options.optimize_hyperparameters else 1]:
        try:
            model, interrupted = train_from(rows, y, kernel, upper, options, selection, rng, order)
        except KeyboardInterrupt:
            if best is None:
                raise
            return best, True
        if best is None or model.nlp < best.nlp:
            best = model
        if interrupted:
            return best, True
    return best, False


def train_from(rows, y, kernel, log_variance_upper, options, selection, rng, order):
    """One start of `train`: alternate between the active set and the hyper-parameters."""
    best, history, bias, since_best = None, [], options.bias, 0
    bounds = kernel.bounds(log_variance_upper)
    interrupted = False
    n_iter = options.max_outer_iter if options.optimize_hyperparameters else 1
    for iteration in range(n_iter):
        try:
            state, interrupted = build(rows, y, kernel, bias, options, selection, rng, order)
            if interrupted and best is not None:
                break  # fewer basis vectors than the models before
            model = model_of(state, kernel, rows)
            history.append(model.nlp)
            logger.info("basis vectors %d, NLP %.6g, %r, bias %.4g", len(state.active), model.nlp, kernel, bias)
            since_best += 1
            if best is None or model.nlp < best.nlp:
                best, since_best = model, 0
            if interrupted or since_best >= PATIENCE or iteration == n_iter - 1:
                break
            problem = SiteProblem(rows, y, state.active, state.precision, state.site_mean)
            old = np.append(kernel.theta, bias)
            kernel, bias = improve(problem, kernel, bias, bounds, options)
        except KeyboardInterrupt:
            if best is None:
                raise
            interrupted = True
            break
        if np.max(np.abs(np.append(kernel.theta, bias) - old)) < options.tol:
            break
    best.nlp_history = history
    return best, interrupted


def improve(problem, kernel, bias, bounds, options):
    """Kernel and bias after at most `max_cg_iter` L-BFGS iterations on the objective, sites fixed."""
    slope = options.probit_slope
    settings = {"method": "L-BFGS-B", "jac": True, "options": {"maxiter": options.max_cg_iter}}
    start = np.clip(kernel.theta, *bounds.T)
    if options.objective == "marginal_likelihood":
        found = minimize(lambda theta: problem.negative_log_marginal(kernel.with_theta(theta)), start,
                         bounds=bounds, **settings)
        kernel = kernel.with_theta(found.x)
        bias = minimize_scalar(lambda b: problem.nlp(kernel, b, slope)[0], bounds=BIAS_BOUNDS, method="bounded").x
        return kernel, float(bias)

    def nlp(theta):
        value, gradient = problem.nlp(kernel.with_theta(theta[:-1]), theta[-1], slope)
        return value, gradient[:-1]

    found = minimize(nlp, np.append(start, np.clip(bias, *BIAS_BOUNDS)), bounds=[*bounds, BIAS_BOUNDS], **settings)
    return kernel.with_theta(found.x[:-1]), float(found.x[-1])
