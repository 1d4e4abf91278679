"""The loop over additions of the Import Vector Machine, its stopping rule, and the path of penalties.

Design page "sparse kernel classifiers", 4.4 to 4.6.
"""

import logging
from typing import NamedTuple

import numpy as np

from linadd.sparse_kernel.candidate_scores import one_step_candidates
from linadd.sparse_kernel.kernel_logistic import ImportState, prune, refit

__all__ = ["Grown", "GrowthOptions", "follow_path", "grow"]

logger = logging.getLogger(__name__)

ALL_CANDIDATES_LIMIT = 2000
DEFAULT_CANDIDATES = 150


class GrowthOptions(NamedTuple):
    """The estimator's options that the loop needs, by the same names."""

    algorithm: str
    refit: str
    tol: float
    delta_k: int
    max_import_vectors: int | None
    n_candidates: int | None
    n_additions: int
    prune_tol: float
    max_newton_iter: int
    memory_limit: float

    def n_drawn(self, n_rows):
        """Candidates for one addition."""
        if self.n_candidates is not None:
            return self.n_candidates
        return n_rows if n_rows <= ALL_CANDIDATES_LIMIT else DEFAULT_CANDIDATES

    def has_converged(self, history):
        """Whether H changed by less than tol, relatively, over the last `delta_k` additions."""
        if len(history) <= self.delta_k:
            return False
        return abs(history[-1] - history[-1 - self.delta_k]) < self.tol * abs(history[-1])


class Grown(NamedTuple):
    """A state after its last complete addition, H after each, and why it stopped early ("" if it did not)."""

    state: ImportState
    history: list
    stopped: str
    part: np.ndarray | None = None  # rows of the data that the state's indices count, None for all


def grow(state, options, rng, order=None):
    """Add (and delete) import vectors until the stopping rule holds.

    Parameters
    ----------
    state : ImportState
        Empty, or a warm start, whose refit is then the first entry of the history. Modified.
    options : GrowthOptions
    rng : numpy Generator
        Draws candidates.
    order : sequence of int, optional
        Include these rows, in this order, without a stopping rule.

    Returns
    -------
    Grown
        Ctrl-C and `memory_limit` end the loop with the state after the last complete addition.
    """
    n_rows = len(state.kernel_diag)
    supply = Supply(state, options, rng, order)
    limit = min(options.max_import_vectors or n_rows, n_rows)
    held = int(options.memory_limit // (8 * n_rows))
    history, done, stopped = [], state.copy(), ""
    try:
        if state.size:
            refit(state, options.max_newton_iter)
        if state.indices:
            history.append(state.objective)
        done = state.copy()
        while len(state.indices) < limit and not (order is None and options.has_converged(history)):
            if len(state.indices) >= held:
                stopped = (f"one more column of {n_rows} rows would pass memory_limit = {options.memory_limit:.3g} "
                           "bytes. Raise memory_limit or tol.")
                break
            if not supply.add(state, min(limit, held) - len(state.indices)):
                break
            if options.prune_tol > 0 and order is None:
                state = prune(state, options.prune_tol, options.max_newton_iter)
            history.append(state.objective)
            done = state.copy()
            logger.info("import vectors %d, objective %.8g", len(state.indices), state.objective)
    except KeyboardInterrupt:
        if not done.indices:
            raise
        stopped = "interrupted by Ctrl-C, the model so far is kept. Fit again for a converged one."
    return Grown(done, history, stopped)


class Supply:
    """Where the next import vector comes from: a given order, or the best of all (or of drawn) remaining rows."""

    def __init__(self, state, options, rng, order):
        self.options, self.rng = options, rng
        self.order = None if order is None else [int(index) for index in order]
        self.remaining = np.setdiff1d(np.arange(len(state.kernel_diag)), state.indices)

    def candidates(self):
        """Row indices for the next addition, sorted; none when there are none left."""
        if self.order is not None:
            head, self.order = self.order[:1], self.order[1:]
            return np.array(head, dtype=np.int64)
        n_drawn = self.options.n_drawn(len(self.remaining))
        if n_drawn >= len(self.remaining):
            return self.remaining
        return np.sort(self.rng.choice(self.remaining, n_drawn, replace=False))

    def add(self, state, n_most):
        """Include the best row (or up to `n_additions`, and n_most, at once) and refit; False if no row is left."""
        size = 1 if self.order is not None else min(self.options.n_additions, n_most)
        while len(candidates := self.candidates()):
            step, coef = best_step(state, candidates, size, self.options)
            if step is None:
                self.remaining = np.setdiff1d(self.remaining, candidates)  # dependent now, so dependent for good
                continue
            state.add(step)
            if coef is not None:
                state.set_coef(coef)
            elif self.options.refit == "newton":
                refit(state, self.options.max_newton_iter)
            self.remaining = np.setdiff1d(self.remaining, step.indices)
            return True
        return False


def best_step(state, candidates, size, options):
    """The step of least H and, for the basic algorithm, its converged coefficients; (None, None) if all depend."""
    best, best_coef, least = None, None, np.inf
    for block in one_step_candidates(state, candidates):
        if options.algorithm == "revised":
            if block.objectives.min() < least:
                best, least = block.step_to(block.best_group(size)), block.objectives.min()
            continue
        for i in np.flatnonzero(np.isfinite(block.objectives)):
            trial = state.copy()
            trial.add(block.step_to([i]))
            refit(trial, options.max_newton_iter)
            if trial.objective < least:
                best, best_coef, least = block.step_to([i]), trial.coef, trial.objective
    return best, best_coef


def follow_path(state, reg_path, judge, scoring, options, rng):
    """Grow one state along decreasing penalties, each from the one before.

    Parameters
    ----------
    state : ImportState
        Empty. Modified.
    reg_path : sequence of float
        From large to small.
    judge : callable
        State -> (mean log loss, share of errors) on held-out rows.
    scoring : {"deviance", "error"}
        What the chosen penalty minimises; ties of "error" by the log loss.
    options : GrowthOptions
    rng : numpy Generator

    Returns
    -------
    chosen : Grown
        The model of the best penalty; `stopped` tells if Ctrl-C or memory ended the path.
    path : list of dict
    """
    chosen, least, path = None, None, []
    for reg_lambda in reg_path:
        state.set_reg_lambda(reg_lambda)
        grown = grow(state, options, rng)
        state = grown.state.copy()
        log_loss, error = judge(state)
        path.append({"reg_lambda": float(reg_lambda), "n_import": len(state.indices),
                     "objective": float(state.objective), "log_loss": log_loss, "error": error})
        score = (error, log_loss) if scoring == "error" else (log_loss,)
        if least is None or score < least:
            chosen, least = grown, score
        chosen = chosen._replace(stopped=grown.stopped)
        if grown.stopped:
            break
    return chosen, path
