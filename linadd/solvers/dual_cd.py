"""Dual coordinate descent for hinge, squared hinge and logistic loss [Hsieh2008; Yu2011].

    maximise D(a) = sum_i conjugate(a_i) - 1/2 |w|^2 - intercept,   w = sum_i a_i y_i z_i,  z_i a row's centred code

over the box of the loss, one a_i at a time: Q_ii = |z_i|^2 + q_b, the margin y_i f_i from v = D_d^-1 w, and a step s =
(new - old) y_i. No code is stored. With L = D_d^-1 D_d'^-1,

    v     = u - shift * L phibar       u += s L phi(x_i), shift += s: the centre costs one scalar a step
    f_i   = u . phi(x_i) - shift * kappa_i - mean_score + b
    mean_score = v . phibar            += s (kappa_i - kappa_0)

A free intercept has a small feature of square q_b whose penalty is centred on the present b at the start of every epoch
(a proximal-point step), so that sum a_i y_i tends to 0. For w there are such steps
too, which divide s in the update of v, and |z_i|^2, by 1 + kappa (`proximal.py`). Several partial solutions take
disjoint rows of a segment, each on its own copy of v, and are merged by an exact line search; their number is the
plan's, whatever the threads.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from linadd._jit import compiled, run_threads
from linadd._simd import N_LANES, aligned_zeros
from linadd.encoders.rows import (
    coef_shape,
    decide_lanes,
    decide_one,
    load_row,
    make_scratch,
    update_lanes,
    update_one,
)
from linadd.losses import LOGISTIC, conjugate, conjugate_slope, dual_step, loss_value, projected_gradient
from linadd.solvers.base import SolverResult
from linadd.solvers.blocks import BlockReader
from linadd.solvers.held_codes import is_floor, on_codes
from linadd.solvers.merging import mean_scores, merge, subtract_centre
from linadd.solvers.outputs import row_cost
from linadd.solvers.proximal import Proximal
from linadd.solvers.stopping import Certifier, GapForecast, Reading, relative_gap, squared_norms
from linadd.solvers.together import run_together


class State(NamedTuple):
    """The primal point; each partial solution owns one."""

    coef: np.ndarray  # float32 (n_groups, n_features, basis, lanes): u, in groups of up to 16 outputs
    terms: np.ndarray  # float64 (5, n_outputs): intercept b, shift, mean_score, balance sum a y, 1 / (1 + kappa)


INTERCEPT, SHIFT, MEAN_SCORE, BALANCE, SHARE = range(5)


class Visit(NamedTuple):
    """What a partial solution notes during a visit to a block."""

    loss: np.ndarray  # float64 (n_outputs,): C loss of each row at its first visit
    bounds: np.ndarray  # float64 (2, n_outputs): least and greatest projected gradient of this sweep
    limits: np.ndarray  # float64 (2, n_outputs): of the last sweep, for shrinking
    scores: np.ndarray  # float32 (16,)
    steps: np.ndarray  # float32 (16,)


@compiled
def is_any_active(active, i, first, end):
    """Whether row i is active for one of the outputs first .. end - 1."""
    n_active = 0
    for o in range(first, end):
        n_active += active[i, o]
    return n_active > 0


@compiled
def sweep(rows, block, active, basis, space, outputs, state, visit, scratch, is_first):
    """One visit to each of `rows` of a block, in order; see the head of this file.

    active : uint8 (n_block_rows, n_outputs), cleared where a variable is shrunk [Hsieh2008, section 3.2]; all are
    active in a visit's first sweep (`is_first`), which also notes the loss of every row before its step.
    """
    n_outputs, n_groups = outputs.positive.shape[0], state.coef.shape[0]
    intercept, shift, mean_score, balance, share = state.terms
    lanes = 1 if n_outputs == 1 else N_LANES
    for i in rows:
        load_row(basis, block, i, scratch)
        kappa = np.float64(block.kappas[i])
        for group in range(n_groups):
            first = group * N_LANES
            if not is_any_active(active, i, first, min(first + N_LANES, n_outputs)):
                continue
            coef = state.coef[group].reshape(-1)
            if lanes == 1:
                visit.scores[0] = decide_one(basis, scratch, coef)
            else:
                decide_lanes(basis, scratch, coef, visit.scores)
            has_moved = False
            for lane in range(lanes):
                o = first + lane
                visit.steps[lane] = 0
                if o >= n_outputs or not active[i, o]:
                    continue
                cost = row_cost(outputs, o, block.costs[i], block.folds[i])
                if cost <= 0.0:
                    continue
                sign = 1.0 if block.targets[i] == outputs.positive[o] else -1.0
                score = visit.scores[lane] - shift[o] * kappa - mean_score[o] + intercept[o]
                margin, dual = sign * score, np.float64(block.duals[i, o])
                if is_first:
                    visit.loss[o] += cost * loss_value(outputs.code, margin)
                if outputs.code != LOGISTIC or dual > 0.0:
                    gradient = projected_gradient(outputs.code, dual, margin, cost)
                    visit.bounds[0, o] = min(visit.bounds[0, o], gradient)
                    visit.bounds[1, o] = max(visit.bounds[1, o], gradient)
                    if abs(gradient) <= outputs.least_violation:
                        if gradient == 0.0 and outputs.code != LOGISTIC:
                            slope = margin - conjugate_slope(outputs.code, dual, cost)
                            if slope > visit.limits[1, o] or slope < visit.limits[0, o]:
                                active[i, o] = 0
                        continue
                norm = share[o] * block.norms[i] + outputs.intercept_square
                block.duals[i, o] = dual_step(outputs.code, dual, margin, norm, cost)
                step = sign * (block.duals[i, o] - dual)
                balance[o] += step
                intercept[o] += step * outputs.intercept_square
                has_moved = has_moved or step != 0.0
                step *= share[o]
                visit.steps[lane] = step
                shift[o] += step
                mean_score[o] += step * (kappa - space.kappa_0)
            if has_moved:
                if lanes == 1:
                    update_one(basis, scratch, space.scale_squared, visit.steps[0], coef)
                else:
                    update_lanes(basis, scratch, space.scale_squared, visit.steps, coef)


@compiled
def total_conjugate(duals, costs, folds, outputs):
    """sum_i conjugate(a_i) of each output."""
    total = np.zeros(duals.shape[1])
    for i in range(duals.shape[0]):
        for o in range(duals.shape[1]):
            cost = row_cost(outputs, o, costs[i], folds[i])
            total[o] += conjugate(outputs.code, np.float64(duals[i, o]), cost)
    return total


def coef_bytes(encoder, n_outputs, n_partial):
    """Memory of all coefficients: state (4 bytes each), partial solutions, average (8), the proximal centre (4), and
    the certificate's: the best (4), two candidates twice (16), two sums (16)."""
    lanes = 1 if n_outputs == 1 else N_LANES
    n_coefs = -(-n_outputs // lanes) * int(np.prod(coef_shape(encoder, lanes)))
    return n_coefs * (52 + 4 * n_partial * (n_partial > 1))


class DualCD:
    """One run of dual coordinate descent.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    run : Run
        How.
    others : list of DualCD
        Machines over the same rows, with which it may share a buffer of positions.

    Attributes
    ----------
    is_waiting : bool
        Asks for a certificate (`reading`, `take`) before it goes on.
    is_over : bool
        The stopping rule, or a limit, is met.
    """

    def __init__(self, problem, run, others=()):
        self.run, self.plan, self.encoder, self.basis = run, run.plan, problem.encoder, problem.encoder.basis
        self.n_outputs, n_outputs, n_partial = problem.n_outputs, problem.n_outputs, run.plan.n_partial
        lanes = 1 if n_outputs == 1 else N_LANES
        shape = (-(-n_outputs // lanes), *coef_shape(self.encoder, lanes))
        self.state = State(aligned_zeros(shape), np.zeros((5, n_outputs)))
        # A single partial solution works on the state itself.
        self.parts = aligned_zeros((n_partial, *shape)) if n_partial > 1 else self.state.coef[None]
        self.part_terms = np.zeros((n_partial, 5, n_outputs)) if n_partial > 1 else self.state.terms[None]
        self.visits = [make_visit(n_outputs) for _ in range(n_partial)]
        self.scratches = [make_scratch(self.encoder, problem.centre.zero) for _ in range(n_partial)]
        self.average, self.n_averaged = np.zeros(shape), 0
        run.memory.take(coef_bytes(self.encoder, n_outputs, n_partial))
        readers = [machine.reader for machine in others]
        self.reader = BlockReader(problem, run.plan, run.memory, run.n_threads, readers)
        self.conjugates = np.zeros(n_outputs)
        self.set_problem(problem)

    def set_problem(self, problem):
        """Make the problem, at the present point, the one that is solved."""
        run, n_outputs = self.run, self.n_outputs
        self.problem = problem
        # LIBLINEAR's rule is about LIBLINEAR's own steps.
        self.proximal = Proximal(problem, self.state.coef.shape, run.stop_on == "gap")
        self.certifier = Certifier(problem, run.memory, run.plan.n_rows, run.n_threads)
        coded = on_codes(problem)
        self.code_certifier = None if coded is None else Certifier(coded, run.memory, run.plan.n_rows)
        self.gap_on_codes, self.is_at_floor = None, False
        least_violation = 0.0 if run.stop_on == "violation" else min(1e-3, 0.1 * run.tol)
        self.outputs = problem.outputs(least_violation)
        self.forecast = GapForecast(n_outputs, problem.loss.is_smooth)
        self.history, self.last_certified = [], 0
        self.is_open = np.ones(n_outputs, bool)  # not frozen
        self.is_waiting = self.is_over = self.converged = self.interrupted = False

    def raise_cost(self, cost):
        """Go on with higher values of C, float64 (n_outputs,), from the present dual variables, which stay feasible.

        Multiplied by the ratio of the values, as the bounded ones will be, they took up to twice the passes (tenfold
        steps on pedestrians and ijcnn1, all losses).
        """
        self.state.coef[...] = self.proximal.dual_coef(self.state.coef)
        self.set_problem(replace(self.problem, cost=cost))
        self.proximal.rest()
        self.conjugates = total_conjugate(
            self.reader.duals, self.problem.costs, self.problem.folds, self.outputs
        )  # fmt: skip
        self.forecast.dual = self.estimate()[1]

    def solve(self):
        """Run epochs until the stopping rule is met; returns a SolverResult."""
        run_together([self])
        return self.result()

    def result(self):
        """The best point so far, as a SolverResult."""
        certifier, passes = self.certifier, len(self.history)
        return SolverResult(
            certifier.coef, certifier.intercept, self.converged, passes, self.reader.reads + certifier.reads,
            self.history, certifier.certificate, self.interrupted, self.gap_on_codes,
        )  # fmt: skip

    def start_epoch(self):
        """Move the centres of the proximal terms, that of a free intercept to its present value; empty the notes."""
        terms = self.state.terms
        self.proximal.move(self.state.coef)
        terms[SHARE] = self.proximal.share
        mean_scores(self.state.coef, self.problem.centre.shifted_code, terms[MEAN_SCORE])
        if self.problem.intercept == "free":
            terms[INTERCEPT] += self.outputs.intercept_square * terms[BALANCE]
        self.average[...] = 0
        self.n_averaged = 0
        self.violation = np.array([np.full(self.n_outputs, np.inf), np.full(self.n_outputs, -np.inf)])
        for visit in self.visits:
            visit.loss[...] = 0

    def visit(self, block, epoch, index):
        """The sweeps over one block, its rows in a fresh order each time."""
        random = self.plan.generator(epoch, index)
        active = np.ones((len(block.norms), self.n_outputs), np.uint8)
        active[:, ~self.is_open] = 0
        before = total_conjugate(block.duals, block.costs, block.folds, self.outputs)
        for visit in self.visits:
            visit.limits[0], visit.limits[1] = -np.inf, np.inf
        for k in range(self.plan.n_sweeps):
            rows = random.permutation(len(block.norms))
            if k > 0:
                rows = rows[active[rows].any(axis=1)]
            for visit in self.visits:
                visit.bounds[0], visit.bounds[1] = np.inf, -np.inf
            for start in range(0, len(rows), self.plan.segment_rows):
                self.segment(rows[start : start + self.plan.segment_rows], block, active, k == 0)
            self.note_violation(is_first=k == 0)
        self.conjugates += total_conjugate(block.duals, block.costs, block.folds, self.outputs) - before

    def segment(self, rows, block, active, is_first):
        """Partial solutions on disjoint rows from the same point, then their merge."""
        n_partial = self.plan.n_partial
        shares = [np.ascontiguousarray(rows[k::n_partial]) for k in range(n_partial)]
        if n_partial > 1:
            self.parts[...] = self.state.coef
            self.part_terms[...] = self.state.terms
            duals = block.duals[rows]
        centre, states = self.problem.centre, [*map(State, self.parts, self.part_terms)]
        workers = zip(shares, states, self.visits, self.scratches, strict=True)
        tasks = [
            (share, block, active, self.basis, centre.space, self.outputs, state, visit, scratch, is_first)
            for share, state, visit, scratch in workers
        ]
        run_threads(sweep, tasks, self.run.n_threads)
        for state in states:
            subtract_centre(state.coef, centre.space.mean_update, state.terms[SHIFT])
        if n_partial > 1:
            merge(self.problem, self.outputs, self.state, (self.parts, self.part_terms), block, rows, duals)
        # From v itself, so that the running sum cannot drift.
        mean_scores(self.state.coef, centre.shifted_code, self.state.terms[MEAN_SCORE])
        self.average += self.state.coef
        self.n_averaged += 1

    def note_violation(self, is_first):
        """Take the bounds of the projected gradients as the next sweep's limits of shrinking."""
        for visit in self.visits:
            low, high = visit.bounds
            visit.limits[0] = np.where(low < 0, low, -np.inf)
            visit.limits[1] = np.where(high > 0, high, np.inf)
            if is_first:
                self.violation[0] = np.minimum(self.violation[0], low)
                self.violation[1] = np.maximum(self.violation[1], high)

    def estimate(self):
        """(primal, dual) of each output from the notes of the epoch: what the certificate is likely to find."""
        problem, terms = self.problem, self.state.terms
        points = self.state.coef, self.proximal.dual_coef(self.state.coef)
        norms, dual_norms = (squared_norms(problem, problem.encoder_coef(coef)) for coef in points)
        primal = 0.5 * norms + sum(visit.loss for visit in self.visits)
        dual = self.conjugates - 0.5 * dual_norms
        if problem.intercept == "free":  # sum a y is not quite 0: at the best b the Lagrangian is a bound all the same
            dual = dual - terms[INTERCEPT] * terms[BALANCE]
        if problem.intercept == "penalised":
            square = problem.intercept_square
            primal = primal + terms[INTERCEPT] ** 2 / (2 * square)
            dual = dual - 0.5 * square * terms[BALANCE] ** 2
        certifier = self.certifier
        return np.where(self.is_open, primal, certifier.primal), np.where(self.is_open, dual, certifier.dual)

    def candidates(self):
        """The last point, and the average over the pass: float32 (n_features, n_basis, n_outputs) each."""
        found = [self.problem.encoder_coef(self.state.coef)]
        if self.n_averaged > 1:
            found.append(self.problem.encoder_coef((self.average / self.n_averaged).astype(np.float32)))
        return found

    def point(self):
        """(coef, intercept) of the average over the pass."""
        coef = np.ascontiguousarray(self.candidates()[-1])
        return coef, self.state.terms[INTERCEPT] - self.problem.mean_scores(coef)

    def end_epoch(self):
        """Note the epoch; ask for a certificate if it is the last, or the estimate says that the rule is met."""
        run, epoch = self.run, len(self.history) + 1
        figures, is_over = run.look(self.point)
        primal, dual = self.estimate()
        self.proximal.steer(self.proximal.dual_coef(self.state.coef) - self.state.coef, primal - dual)
        gaps = self.forecast.update(primal, dual)
        gap = float(gaps.max())
        violation = float((self.violation[1] - self.violation[0]).max())
        self.history.append({
            "epoch": epoch, "objective": float(primal.sum()), "dual_objective": float(dual.sum()),
            "gap": gap if np.isfinite(gap) else None, "certified_gap": None,
            # Minus infinity: logistic rows at their first visit have no violation yet.
            "violation": violation if violation >= 0 else None, **figures,
        })  # fmt: skip
        by_violation = run.stop_on == "violation"
        is_likely = ~self.is_open | (gaps <= run.tol)
        is_met = 0 <= violation <= run.tol if by_violation else is_likely.all()
        overdue = not by_violation and epoch >= 2 * self.last_certified + 8
        # Half of the outputs that are left: as many certificates as the logarithm of their number.
        can_freeze = run.freezes and 2 * (is_likely & self.is_open).sum() >= self.is_open.sum()
        self.converged = by_violation and is_met
        self.is_last = is_over or epoch == run.max_epochs
        self.is_waiting = is_met or overdue or can_freeze or self.is_last or self.interrupted

    def reading(self):
        """What a certificate asks of the rows: the last point and the average over the pass, for what is open."""
        which = np.flatnonzero(self.is_open)
        return Reading(
            self.certifier, self.candidates(), self.reader.duals, self.state.terms[INTERCEPT], which
        )  # fmt: skip

    def take(self, reading):
        """Take the certificate that was asked for: go on, or be over."""
        tol, gaps, self.gap_on_codes = self.run.tol, reading.finish().gaps, None
        if self.code_certifier is not None and (gaps > tol).any():
            above = np.flatnonzero(gaps > tol)
            self.code_certifier.certify(reading.candidates, self.reader.duals, reading.start, above)
            coded = relative_gap(self.code_certifier.primal[above], self.code_certifier.dual[above])
            self.gap_on_codes, self.is_at_floor = float(coded.max()), is_floor(gaps[above], coded, tol).all()
        self.history[-1]["certified_gap"] = float(gaps.max())
        self.forecast.learn(gaps)
        self.last_certified = len(self.history)
        if self.run.stop_on == "gap":
            self.converged = bool(gaps.max() <= tol)
        if self.run.freezes:
            self.is_open = gaps > tol
        self.is_waiting = False
        self.is_over = self.converged or self.is_last or self.interrupted or self.is_at_floor


def make_visit(n_outputs):
    """Empty notes."""
    return Visit(
        np.zeros(n_outputs), np.zeros((2, n_outputs)), np.zeros((2, n_outputs)),
        aligned_zeros(N_LANES), aligned_zeros(N_LANES),
    )  # fmt: skip


def solve(problem, run):
    """Train by dual coordinate descent.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    run : Run
        How.

    Returns
    -------
    SolverResult
        With the certificate's best primal point.
    """
    return DualCD(problem, run).solve()
