"""Which row enters the active set next, and with which site; the list `SELECTIONS` (name -> function).

A selection is called with (state, rng, options) and returns (index, column, alpha, nu) as `SparseGPState.add` takes
them, or None when no usable row is left. Design page 3.4 and 3.5.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from linadd.sparse_kernel.probit import log_phi, phi, standardised_margin
from linadd.sparse_kernel.probit_losses import trial_losses

__all__ = ["SAMPLING_WEIGHTS", "SELECTIONS", "SelectionOptions", "predictive_loss_site", "select"]

# Of 59 rows drawn at random one is among the best 5 % with probability 0.95.
VALIDATION_CANDIDATES = 59
# The search interval of a site is shrunk by this share at both ends, where m or the new variance are undefined.
INTERVAL_MARGIN = 1e-4
LEAST_VARIANCE_SHARE = 1e-3


class SelectionOptions(NamedTuple):
    """The estimator's options that a selection needs, by the same names."""

    selection: str
    n_candidates: int | None
    sampling_weights: str
    site_update: str


def draw_random(state, usable, rng, options):
    """One usable row, uniformly."""
    return rng.choice(usable, 1)


def least_entropy(state, usable, rng, options):
    """The row whose inclusion reduces the entropy of its own marginal most: argmin log(1 - nu A)."""
    return usable[[np.argmin(log_shrinkage(state, usable)[0])]]


def most_information(state, usable, rng, options):
    """argmax KL(new marginal || old marginal) of the row itself."""
    log_share, alpha = log_shrinkage(state, usable)
    gain = 0.5 * (-log_share + np.expm1(log_share) + alpha**2 * state.variance[usable])
    return usable[[np.argmax(gain)]]


def worst_margin(state, usable, rng, options):
    """The row that is predicted worst: argmin z."""
    return usable[[np.argmin(state.margins()[usable])]]


def draw_for_validation(state, usable, rng, options):
    """59 (or `n_candidates`) rows, uniformly without replacement."""
    return rng.choice(usable, min(options.n_candidates or VALIDATION_CANDIDATES, len(usable)), replace=False)


def draw_adaptively(state, usable, rng, options):
    """1 (or `n_candidates`) rows without replacement, a row the more likely the worse it is predicted."""
    weights = SAMPLING_WEIGHTS[options.sampling_weights](state.margins())
    weights *= state.usable
    cumulative = np.cumsum(weights)
    if not cumulative[-1] > 0:
        weights = state.usable.astype(float)
        cumulative = np.cumsum(weights)
    n_drawn = options.n_candidates or 1
    if n_drawn > 1:
        return rng.choice(len(weights), min(n_drawn, np.count_nonzero(weights)), replace=False,
                          p=weights / weights.sum())
    return np.searchsorted(cumulative, [rng.random() * cumulative[-1]], side="right")


SELECTIONS = {
    "random": draw_random,
    "entropy": least_entropy,
    "information_gain": most_information,
    "validation": draw_for_validation,
    "adaptive": draw_adaptively,
    "worst": worst_margin,
}

SAMPLING_WEIGHTS = {"one_minus_phi": lambda z: phi(-z), "loss": lambda z: -log_phi(z)}


def log_shrinkage(state, indices):
    """(log(1 - nu A), alpha) at the given rows."""
    alpha, nu = state.moments(indices)
    return np.log1p(-nu * state.variance[indices]), alpha


def select(state, rng, options, order=None):
    """Choose a row (the next of `order`, if given) and its site; None if no usable row is left.

    Returns
    -------
    (index, column, alpha, nu) or None
        As `SparseGPState.add` takes them.
    """
    while True:
        if order is not None:
            drawn = np.array(order[:1], dtype=np.int64)
            del order[:1]
        else:
            usable = np.flatnonzero(state.usable)
            drawn = SELECTIONS[options.selection](state, usable, rng, options) if len(usable) else usable
        if not len(drawn):
            return None
        alpha, nu = state.moments(drawn)
        admissible = [state.is_admissible(index, value) for index, value in zip(drawn, nu, strict=True)]
        drawn, alpha, nu = drawn[admissible], alpha[admissible], nu[admissible]
        if len(drawn):
            break
    columns = state.columns(drawn)
    best = 0
    if len(drawn) > 1:
        best = int(np.argmin(losses_after(state, drawn, columns, alpha, nu, options.selection == "validation")))
    index, column = int(drawn[best]), columns[:, best]
    if options.site_update == "moment":
        return index, column, alpha[best], nu[best]
    return index, column, *predictive_loss_site(state, index, column, alpha[best])


def losses_after(state, drawn, columns, alpha, nu, validation):
    """What the drawn rows are compared by: NLP of the other free rows, or LOSS of all rows, after inclusion."""
    if not validation:
        return trial_losses(state, columns, alpha, nu, np.ones(len(state.y), dtype=bool)) / (len(state.y) * np.log(2.0))
    totals = trial_losses(state, columns, alpha, nu, state.free)
    own = columns[drawn, np.arange(len(drawn))]
    variance = np.maximum(state.variance[drawn] - nu * own**2, 0.0)
    z = standardised_margin(state.y[drawn], state.mean[drawn] + alpha * own, variance, state.bias, state.slope)
    return (totals + log_phi(z)) / max(1, np.count_nonzero(state.free) - 1)


def predictive_loss_site(state, index, column, alpha):
    """Site of a row by minimising LOSS over the step of the mean (design page 3.5); returns (alpha, nu).

    The variance coefficient is tied to the step by the probit relation nu(a) = a (a + c); the interval keeps the sign
    of the label, nu >= 0, and a share of the row's variance. The moment-matched step lies inside; it is kept if better.
    """
    own, y = state.variance[index], state.y[index]
    c = (state.mean[index] + state.bias) / (state.noise + own)
    share = min(LEAST_VARIANCE_SHARE, 0.5 / (1.0 + own / state.noise))
    reach = np.sqrt(c**2 + 4.0 * (1.0 - share) / own)
    low, high = (max(0.0, -c), (reach - c) / 2) if y > 0 else (-(c + reach) / 2, min(0.0, -c))
    everywhere, column = np.ones(len(state.y), dtype=bool), np.ascontiguousarray(column)[:, None]

    def loss(a):
        return trial_losses(state, column, np.array([a]), np.array([a * (a + c)]), everywhere)[0]

    margin = INTERVAL_MARGIN * (high - low)
    found = minimize_scalar(loss, bounds=(low + margin, high - margin), method="bounded",
                            options={"xatol": 1e-6 * (high - low)})
    best = found.x if found.fun < loss(alpha) else alpha
    return best, best * (best + c)
