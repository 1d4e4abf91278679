"""Kernel logistic regression on a growing set of import vectors.

Minimise over the coefficients a_c of every output c, with K1 = K(X, S) and K2 = K(S, S) for import vectors S,

    H = -sum_i log P(y_i | x_i) + reg_lambda / 2 sum_c a_c' K2 a_c,    f_c = K1 a_c,

P the softmax of the f_c. Two classes have one output (class 0 is the reference with f = 0), C classes have C outputs,
or C - 1 with class C - 1 as the reference. Zhu and Hastie (2001), Roscher et al. (2012); design page section 4.

Arrays put the output first and the training row last: F (n_outputs, n), coef (n_outputs, q), K1' (q, n).
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from linadd.sparse_kernel.linear_algebra import jittered_cholesky
from linadd.sparse_kernel.logistic_losses import logistic_losses, softmax_losses

__all__ = ["ImportState", "Multinomial", "prune", "refit"]

NEWTON_TOL = 1e-10
# A step with an old Newton matrix that shrinks the decrement less than this is a reason to compute the matrix anew.
STALE_RATE = 0.1
# Such steps converge linearly, so the last one must be shorter to end as near the optimum as a true Newton step.
STALE_TOL = 1e-4 * NEWTON_TOL
DENSE_NEWTON_LIMIT = 3000


class Multinomial:
    """The likelihood: outputs, their targets, losses and probabilities.

    Parameters
    ----------
    y_index : int64 array (n,)
        Class of every row, 0 .. n_classes - 1.
    n_classes : int
    reference : int or None
        The class without an output of its own (f = 0).
    """

    def __init__(self, y_index, n_classes, reference):
        self.outputs = [c for c in range(n_classes) if c != reference]
        self.targets = (y_index == np.array(self.outputs)[:, None]).astype(float)
        self.has_reference = reference is not None

    def probabilities(self, F):
        """P of the class of every output, of the shape of F (n_outputs, n)."""
        top = np.maximum(F.max(axis=0), 0.0) if self.has_reference else F.max(axis=0)
        weights = np.exp(F - top)
        return weights / (weights.sum(axis=0) + (np.exp(-top) if self.has_reference else 0.0))

    def losses(self, F, rows=slice(None)):
        """-sum_i log P(y_i) for F (n_outputs, n_rows, n_models) of the training rows `rows`: float64 (n_models,)."""
        targets = self.targets[:, rows]
        if len(F) == 1 and self.has_reference:
            return logistic_losses(F[0], np.exp(-np.abs(F[0])), targets[0])
        return softmax_losses(F, targets, self.has_reference)

    def loss(self, F):
        """-sum_i log P(y_i), a float, for F (n_outputs, n)."""
        return float(self.losses(np.ascontiguousarray(F)[:, :, None])[0])


@dataclass
class ImportState:
    """Import vectors, coefficients and fit; K1' starts with a row of ones if there is an intercept.

    Parameters
    ----------
    likelihood : Multinomial
    reg_lambda : float
    gram : callable
        Row indices -> K(X, X[indices]), (n, len(indices)).
    kernel_diag : float64 array (n,)
    fit_intercept : bool
    """

    likelihood: Multinomial
    reg_lambda: float
    gram: object
    kernel_diag: np.ndarray
    fit_intercept: bool = False
    indices: list = field(default_factory=list)

    def __post_init__(self):
        n_outputs, n_rows = self.likelihood.targets.shape
        self.n_fixed = int(self.fit_intercept)
        self.columns = np.ones((self.n_fixed, n_rows))
        self.penalty = np.zeros((self.n_fixed, self.n_fixed))
        self.coef = np.zeros((n_outputs, self.n_fixed))
        self.set_coef(self.coef)

    @property
    def size(self):
        """Number of coefficients of an output."""
        return self.coef.shape[1]

    @property
    def K1(self):
        """Columns of K1 as rows: (q, n)."""
        return self.columns[: self.size]

    def copy(self):
        """Return a state that shares no coefficient with this one (columns are shared; `add` writes beyond them)."""
        other = ImportState.__new__(ImportState)
        other.__dict__.update(self.__dict__)
        other.indices = list(self.indices)
        return other

    def penalty_of(self, coef):
        """reg_lambda / 2 sum_c a_c' K2 a_c."""
        return 0.5 * self.reg_lambda * float(np.sum((coef @ self.penalty) * coef))

    def set_coef(self, coef):
        """Take other coefficients (n_outputs, q); F and the objective follow."""
        self.coef = coef
        self.F = coef @ self.K1
        self.objective = self.likelihood.loss(self.F) + self.penalty_of(coef)
        self.factor = None

    def set_reg_lambda(self, reg_lambda):
        """Change the penalty; the objective follows, the coefficients stay."""
        self.reg_lambda = reg_lambda
        self.set_coef(self.coef)

    def add(self, step):
        """Include the rows of a `candidate_scores.Step` with the coefficients of its Newton step."""
        q, new_size = self.size, self.size + len(step.indices)
        if new_size > len(self.columns):
            grown = np.empty((max(16, 2 * q, new_size), self.columns.shape[1]))
            grown[:q] = self.columns[:q]
            self.columns = grown
        self.columns[q:new_size] = step.columns
        penalty = np.zeros((new_size, new_size))
        penalty[:q, :q] = self.penalty
        penalty[self.n_fixed :, q:] = self.columns[self.n_fixed : new_size, step.indices]
        penalty[q:, self.n_fixed :] = penalty[self.n_fixed :, q:].T
        self.penalty = penalty
        factor = self.factor
        self.indices.extend(step.indices)
        self.set_coef(np.hstack([step.old_coef, step.new_coef]))
        if factor is not None and len(self.coef) == 1:
            self.factor = bordered(factor, step.border[0], step.corner[0])

    def without(self, position, coef):
        """Return a copy without the coefficient at `position` and with the given ones (n_outputs, q - 1)."""
        keep = np.delete(np.arange(self.size), position)
        other = self.copy()
        other.columns = self.columns[keep]
        other.penalty = self.penalty[np.ix_(keep, keep)]
        del other.indices[position - self.n_fixed]
        other.set_coef(coef)
        return other

    def newton_block(self, P, c, k):
        """Block (c, k) of the Newton matrix: K1' diag(P_c (delta_ck - P_k)) K1 + reg_lambda delta_ck K2, (q, q)."""
        if c != k:
            return -(self.K1 * (P[c] * P[k])) @ self.K1.T
        root = self.K1 * np.sqrt(P[c] * (1.0 - P[c]))
        return root @ root.T + self.reg_lambda * self.penalty


def bordered(factor, border, corner):
    """Lower Cholesky factor of [[G, border], [border', corner]] from that of G; border (q, k), corner (k, k)."""
    q = len(factor)
    out = np.zeros((q + len(corner), q + len(corner)))
    out[:q, :q] = factor
    if q:
        out[q:, :q] = solve_triangular(factor, border, lower=True).T
    out[q:, q:] = jittered_cholesky(corner - out[q:, :q] @ out[q:, :q].T)
    return out


def refit(state, max_iter=50):
    """Minimise H over the coefficients of the present import vectors, in place (design page 4.2 and 4.7).

    Newton steps with halving. The matrix of an earlier step is used again while it shrinks the Newton decrement tenfold
    a step: the fixed point is the same, and a step then costs O(n q) instead of O(n q^2).
    """
    if state.size == 0:
        return
    if state.coef.size > DENSE_NEWTON_LIMIT:
        return refit_lbfgs(state, max_iter)
    last = np.inf
    for _ in range(max_iter):
        P = state.likelihood.probabilities(state.F)
        gradient = (P - state.likelihood.targets) @ state.K1.T + state.reg_lambda * state.coef @ state.penalty
        fresh = state.factor is None
        if fresh:
            state.factor = newton_factor(state, P)
        step = cho_solve((state.factor, True), gradient.ravel()).reshape(gradient.shape)
        slope = float(np.vdot(gradient, step))
        if not fresh and slope > STALE_RATE * last:
            state.factor, last = None, np.inf
            continue
        last = slope
        enough = (NEWTON_TOL if fresh else STALE_TOL) * max(1.0, abs(state.objective))
        if not line_search(state, step, slope) or slope / 2 < enough:
            return


def newton_factor(state, P):
    """Lower Cholesky factor of the Newton matrix of all outputs, (n_outputs q, n_outputs q)."""
    n_outputs, q = state.coef.shape
    G = np.empty((n_outputs, q, n_outputs, q))
    for c in range(n_outputs):
        for k in range(c + 1):
            G[c, :, k] = state.newton_block(P, c, k)
            G[k, :, c] = G[c, :, k].T
    return jittered_cholesky(G.reshape(n_outputs * q, n_outputs * q))


def line_search(state, step, slope):
    """Halve the step until H falls by 1e-4 of the predicted slope; False if rounding leaves nothing to gain."""
    objective, change = state.objective, step @ state.K1
    size = 1.0
    while size > 1e-10:
        coef, F = state.coef - size * step, state.F - size * change
        new = state.likelihood.loss(F) + state.penalty_of(coef)
        if new <= objective - 1e-4 * size * slope:
            state.coef, state.F, state.objective = coef, F, new
            return True
        size /= 2
    return False


def refit_lbfgs(state, max_iter):
    """As `refit` without the full Newton matrix: L-BFGS in the coordinates of its diagonal blocks."""
    P = state.likelihood.probabilities(state.F)
    factors = [jittered_cholesky(state.newton_block(P, c, c)) for c in range(len(P))]
    shape = state.coef.shape

    def coef_of(u):
        return np.stack([solve_triangular(L, v, lower=True, trans="T") for L, v in zip(factors, u.reshape(shape),
                                                                                      strict=True)])

    def objective(u):
        coef = coef_of(u)
        F = coef @ state.K1
        gradient = (state.likelihood.probabilities(F) - state.likelihood.targets) @ state.K1.T
        gradient += state.reg_lambda * coef @ state.penalty
        by_u = [solve_triangular(L, g, lower=True) for L, g in zip(factors, gradient, strict=True)]
        return state.likelihood.loss(F) + state.penalty_of(coef), np.concatenate(by_u)

    start = np.concatenate([L.T @ a for L, a in zip(factors, state.coef, strict=True)])
    found = minimize(objective, start, jac=True, method="L-BFGS-B",
                     options={"maxiter": 20 * max_iter, "ftol": 1e-12, "gtol": 1e-8})
    state.set_coef(coef_of(found.x))


def prune(state, prune_tol, max_iter=50):
    """Return the state after deleting import vectors while H rises by at most prune_tol |H| (design page 4.5).

    The vector added last is kept. The estimate of the rise is a_j^2 / (2 (G^-1)_jj), summed over outputs.
    """
    while len(state.indices) > 1:
        P = state.likelihood.probabilities(state.F)
        rise = np.zeros(state.size)
        inverses = []
        for c in range(len(P)):
            factor = jittered_cholesky(state.newton_block(P, c, c))
            inverses.append(cho_solve((factor, True), np.eye(state.size)))
            rise += state.coef[c] ** 2 / (2 * np.diag(inverses[c]))
        j = state.n_fixed + int(np.argmin(rise[state.n_fixed : -1]))
        coef = np.stack([a - inv[:, j] * (a[j] / inv[j, j]) for a, inv in zip(state.coef, inverses, strict=True)])
        smaller = state.without(j, np.delete(coef, j, axis=1))
        refit(smaller, max_iter)
        if smaller.objective - state.objective > prune_tol * abs(state.objective):
            break
        state = smaller
    return state
