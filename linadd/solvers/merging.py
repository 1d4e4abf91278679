"""Partial solutions merged by an exact line search, and the centre folded into the coefficients.

From the same point v0, a0 each partial solution k moved its own rows: dv = sum_k (v_k - v0) and da. Along eta in [0, 1]
the point (v0 + eta dv, a0 + eta da) is feasible, and

    dD/d eta = sum_i da_i conjugate'(a_i + eta da_i) - r w0.dw - b da.y - eta (r |dw|^2 + q_b (da.y)^2)

with r = 1 + kappa of the proximal term, is decreasing: eta = 1 if it is not negative there, else its root, by Newton
inside a bracket (the first step is exact for hinge and squared hinge). Deterministic CoCoA [Jaggi2014; Ma2015].
"""

import numpy as np

from linadd._jit import compiled
from linadd.losses import LOGISTIC, conjugate_curvature, conjugate_slope
from linadd.solvers.outputs import row_cost

INTERCEPT, SHIFT, MEAN_SCORE, BALANCE, SHARE = range(5)


@compiled
def line_terms(rows, block, before, outputs, eta, slopes, curvatures):
    """Derivatives of sum conjugate(a + eta da) over the rows of a segment, per output; `before` holds their old a."""
    slopes[:] = 0.0
    curvatures[:] = 0.0
    for k in range(rows.shape[0]):
        i = rows[k]
        for o in range(before.shape[1]):
            step = np.float64(block.duals[i, o]) - before[k, o]
            if step != 0.0:
                cost = row_cost(outputs, o, block.costs[i], block.folds[i])
                dual = before[k, o] + eta[o] * step
                if outputs.code == LOGISTIC:
                    dual = min(max(dual, 1e-12 * cost), cost * (1.0 - 1e-12))
                slopes[o] += step * conjugate_slope(outputs.code, dual, cost)
                curvatures[o] += step * step * conjugate_curvature(outputs.code, dual, cost)


@compiled
def scale_duals(rows, block, before, eta):
    """a = before + eta (a - before) for the rows of a segment."""
    for k in range(rows.shape[0]):
        for o in range(before.shape[1]):
            if eta[o] != 1.0:
                old = np.float64(before[k, o])
                block.duals[rows[k], o] = old + eta[o] * (block.duals[rows[k], o] - old)


@compiled
def merge_products(start, parts, n_basis, order, inverse_square, products):
    """products[0] = w0 . dw, products[1] = |dw|^2 of each lane, with w = D_d v / s.

    The innermost loops run over the lanes, or over the basis of a single one, so that LLVM turns them into vectors.
    """
    n_groups, n_features, _, lanes = start.shape
    point, change = np.zeros((n_basis, lanes)), np.zeros((n_basis, lanes))
    for group in range(n_groups):
        own = products[:, group * lanes : (group + 1) * lanes]
        for j in range(n_features):
            for i in range(n_basis):
                for lane in range(lanes):
                    point[i, lane] = start[group, j, i, lane]
                    change[i, lane] = np.float64(parts[0, group, j, i, lane]) - point[i, lane]
            for k in range(1, parts.shape[0]):
                for i in range(n_basis):
                    for lane in range(lanes):
                        change[i, lane] += np.float64(parts[k, group, j, i, lane]) - point[i, lane]
            for _ in range(order):
                for i in range(n_basis - 1, 0, -1):
                    for lane in range(lanes):
                        point[i, lane] -= point[i - 1, lane]
                        change[i, lane] -= change[i - 1, lane]
            weight = inverse_square[j]
            for i in range(n_basis):
                for lane in range(lanes):
                    own[0, lane] += weight * point[i, lane] * change[i, lane]
                    own[1, lane] += weight * change[i, lane] * change[i, lane]


@compiled
def move(start, parts, eta):
    """start += eta * sum_k (parts_k - start), per lane."""
    n_groups, n_features, width, lanes = start.shape
    for group in range(n_groups):
        for j in range(n_features):
            for i in range(width):
                for lane in range(lanes):
                    before = start[group, j, i, lane]
                    change = parts[0, group, j, i, lane] - before
                    for k in range(1, parts.shape[0]):
                        change += parts[k, group, j, i, lane] - before
                    start[group, j, i, lane] = before + eta[group * lanes + lane] * change


def line_search(derivatives, n_outputs):
    """eta of each output: 1 where the derivative is not negative there, else its root in (0, 1).

    derivatives : callable
        eta (n_outputs,) -> first and second derivative of the dual objective, which is concave.
    """
    eta, low, high = np.ones(n_outputs), np.zeros(n_outputs), np.ones(n_outputs)
    slope, curvature = derivatives(eta)
    is_open = slope < 0
    for _ in range(60):
        if not is_open.any():
            break
        high = np.where(is_open & (slope < 0), eta, high)
        low = np.where(is_open & (slope > 0), eta, low)
        newton = eta - np.divide(slope, curvature, out=np.full(n_outputs, np.nan), where=curvature < 0)
        inside = (newton > low) & (newton < high)
        proposal = np.where(inside, newton, 0.5 * (low + high))
        is_open = is_open & (np.abs(proposal - eta) > 1e-9)
        eta = np.where(is_open, proposal, eta)
        slope, curvature = derivatives(eta)
    return eta


def merge(problem, outputs, state, parts, block, rows, duals_before):
    """Move state to the best point between itself and the sum of the partial solutions' steps.

    Parameters
    ----------
    problem : Problem
        For penalty and scale.
    outputs : Outputs
        Loss and costs.
    state : State
        The common starting point; changed in place.
    parts : (float32 array, float64 array)
        Coefficients and terms of each partial solution, along the first axis.
    block : Block
        `duals` hold the partial solutions' values; changed where eta < 1.
    rows : int64 array
        The segment.
    duals_before : float32 array, shape (len(rows), n_outputs)
        Duals at the starting point.
    """
    coefs, terms = parts
    n_outputs, encoder = len(outputs.positive), problem.encoder
    order = encoder.penalty_order if encoder.is_local else 0
    square = problem.centre.space.scale_squared.astype(np.float64)
    inverse = np.divide(1.0, square, out=np.zeros_like(square), where=square > 0)
    lanes_of = np.zeros((2, state.coef.shape[0] * state.coef.shape[3]))
    merge_products(state.coef, coefs, encoder.n_basis, order, inverse, lanes_of)
    product, norm = lanes_of[:, :n_outputs] / state.terms[SHARE]
    change = (terms - state.terms).sum(axis=0)
    step_sum = change[BALANCE]
    slopes, curvatures = np.zeros(n_outputs), np.zeros(n_outputs)

    def derivatives(eta):
        line_terms(rows, block, duals_before, outputs, eta, slopes, curvatures)
        quadratic = norm + outputs.intercept_square * step_sum**2
        linear = product + state.terms[INTERCEPT] * step_sum
        return slopes - linear - eta * quadratic, curvatures - quadratic

    eta = line_search(derivatives, n_outputs)
    all_eta = np.ones(lanes_of.shape[1], np.float32)
    all_eta[:n_outputs] = eta
    move(state.coef, coefs, all_eta)
    state.terms[...] += eta * change
    if (eta < 1).any():
        scale_duals(rows, block, duals_before, eta)


@compiled
def subtract_centre(coef, mean_update, shift):
    """u -= shift * L phibar for each lane: v itself."""
    n_groups, n_features, _, lanes = coef.shape
    for group in range(n_groups):
        for j in range(n_features):
            for i in range(mean_update.shape[1]):
                for lane in range(min(lanes, shift.shape[0] - group * lanes)):
                    coef[group, j, i, lane] -= np.float32(shift[group * lanes + lane] * mean_update[j, i])
    shift[:] = 0.0


@compiled
def mean_scores(coef, mean_code, scores):
    """scores[o] = v . phibar in float64."""
    n_groups, n_features, _, lanes = coef.shape
    scores[:] = 0.0
    for group in range(n_groups):
        for j in range(n_features):
            for i in range(mean_code.shape[1]):
                for lane in range(min(lanes, scores.shape[0] - group * lanes)):
                    scores[group * lanes + lane] += np.float64(coef[group, j, i, lane]) * mean_code[j, i]
