"""Newton's method for smooth losses, each output by itself, its Hessian accumulated in one pass over the rows.

    minimise P(w, b) = 1/2 |w|^2 + b^2 / (2 B^2) + sum_i C_i loss(y_i (w . z_i + b))

with w = D_d v / s, z_i = s D_d'^-1 (phi(x_i) - phibar); a free intercept has no second term, or there is none at all.
A pass at a point gives P, the gradient and H = I + sum_i C_i loss'' z z'. The intercept is eliminated exactly from

    [H   c] [dw]     [g  ]          c = sum_i h_i z_i,  h_i = C_i loss''(m_i)
    [c'  k] [db] = - [g_b]          k = sum_i h_i + 1/B^2

Where the full step does not lower P enough, the decisions at both ends are known, and P along the step is minimised
without a read. The dual point that comes with a step is the linear one, from the decisions before and after it:

    a_i = -C_i (loss'(m_i) + loss''(m_i) (m_i^new - m_i)), clipped to its box

By the equations of the step sum_i a_i y_i z_i = w + dw, and sum_i a_i y_i = 0 for a free intercept, so that P - D is
the second-order error of the linear model: far less than 1/2 |grad P|^2, the gap of a_i = -C_i loss'(m_i^new), which
stands in where there was no step before.

The first point is the optimum of a sample of the rows that is kept in memory, which saves two or three passes. With the
option `hessian_sample` H is that of the sample too, times its inverse share: cheaper passes, but some more of them.
"""

import logging
import math
from dataclasses import replace
from functools import partial

import numpy as np

from linadd import penalty
from linadd._jit import run_threads
from linadd.choices import PRECISIONS
from linadd.chunks import prefetch
from linadd.encoders.rows import locate, positions_dtype
from linadd.errors import ConfigError
from linadd.solvers.base import SolverResult
from linadd.solvers.gram import CURVATURE, RESIDUAL, complete_hessian, factorise, penalise_rows_and_columns, substitute
from linadd.solvers.held_codes import is_floor, on_codes
from linadd.solvers.row_sums import RowSums, working_bytes
from linadd.solvers.stopping import Certifier, best_intercept, intercept_terms, relative_gap

log = logging.getLogger(__name__)

START_SHARES = 0.1, 0.5  # of the rows, least and most, for the first point
START_ROWS, HESSIAN_ROWS = 10, 50  # of a sample, for each coefficient, or it is too far from all rows for that use
N_RUNS = 1000  # of consecutive rows, which a sample is drawn from
ENOUGH_DECREASE = 1e-4  # of what the slope promises [Armijo1966]
ROUNDING = 1e-14  # of P, a sum over rows
LABEL_BYTES, OUTPUT_BYTES = 10, 24  # of a row: target, cost and fold; for each output two decisions and two duals


class Newton:
    """One run of Newton's method.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    run : Run
        How.
    first : float64 array, shape (n_outputs, n_columns + 1), optional
        w and b, where it begins; else at `run.start`, or at zero.
    curved : RowSums, optional
        Of a sample of the rows, where the Hessian comes from; else it is that of all rows.
    """

    def __init__(self, problem, run, first=None, curved=None):
        self.problem, self.run = problem, run
        encoder, n_outputs = problem.encoder, problem.n_outputs
        self.order = encoder.penalty_order if encoder.is_local else 0
        self.shape = (encoder.n_features, encoder.n_basis)
        self.inverse_square = 1.0 / problem.intercept_square if problem.intercept == "penalised" else 0.0
        self.mean = self.penalised(problem.centre.mean_code)
        run.memory.take(vector_bytes(problem))
        self.rows = RowSums(problem, run.memory, curved is None)
        self.curved = self.rows if curved is None else curved
        # w and b of each output; one array, so that a step moves both.
        self.point, self.step = np.zeros((2, n_outputs, encoder.n_features * encoder.n_basis + 1))
        self.at_zero = np.array([self.best_at_zero(o) for o in range(n_outputs)])
        if first is not None:
            self.point[...] = first
        elif run.start is not None:
            self.point[...] = self.point_of(run.start)
        else:
            self.point[:, -1] = self.at_zero[:, 0]
        self.primal, self.dual = np.full(n_outputs, np.inf), np.zeros(n_outputs)  # D(0) = 0
        self.duals = run.memory.zeros("dual variables", self.rows.duals.shape, np.float32)
        self.targets = np.full(n_outputs, run.tol)  # of the gap of each output
        self.is_stalled = np.zeros(n_outputs, bool)
        self.passes, self.gap_on_codes, self.is_coded = 0, None, on_codes(problem) is not None

    def penalised(self, code):
        """s D_d'^-1 phi, flat, of sums of plain codes."""
        code = penalty.penalised_code(code.reshape(self.shape), self.order)
        return (code * self.problem.centre.scale[:, None]).ravel()

    def coef(self, point):
        """v of points (n_outputs, n_columns + 1), float64 (n_features, n_basis, n_outputs)."""
        w = point[:, :-1].reshape(-1, *self.shape)
        v = penalty.from_penalised(w, self.order) * self.problem.centre.scale[:, None]
        return np.ascontiguousarray(np.moveaxis(v, 0, 2))

    def point_of(self, start):
        """w and b of given coefficients, float64 (n_outputs, n_columns + 1): the inverse of `coef`."""
        scale = self.problem.centre.scale[:, None]
        w = penalty.differences(np.moveaxis(start.coef, 2, 0), self.order)
        w = np.divide(w, scale, out=np.zeros_like(w), where=scale > 0)
        intercept = start.intercept + self.problem.mean_scores(start.coef)
        return np.column_stack([w.reshape(len(w), -1), intercept])

    def best_at_zero(self, o):
        """(b, P) of the best intercept for w = 0."""
        problem = self.problem
        is_positive = problem.targets == problem.positive[o]
        costs, signs = problem.cost[o] * np.bincount(is_positive, problem.costs, 2), np.array([-1.0, 1.0])
        if problem.intercept == "none":
            return 0.0, intercept_terms(problem.loss.code, np.zeros(2), signs, costs, 0.0)[0]
        return best_intercept(problem.loss.code, np.zeros(2), signs, costs, 0.0, self.inverse_square)

    @property
    def gaps(self):
        """Relative gap of each output so far; infinite before the first pass."""
        is_known = np.isfinite(self.primal)
        return np.where(is_known, relative_gap(np.where(is_known, self.primal, 1.0), self.dual), np.inf)

    @property
    def active(self):
        """Outputs that have not reached their gap."""
        return np.flatnonzero((self.gaps > self.targets) & ~self.is_stalled)

    def minimise(self):
        """Passes until every output has reached its gap or cannot get on; False where it ended before."""
        while len(self.active):
            if self.passes == self.run.max_epochs or not self.advance():
                return False
        return True

    def advance(self):
        """One pass at the end of the present steps, and the next steps from there; False where it was left."""
        outputs, end = self.active, self.point + self.step
        self.passes += 1
        if not self.evaluate(self.rows, end, outputs):
            return False
        duals = self.rows.dual_objectives()
        for o in outputs:
            if duals[o] > self.dual[o]:
                self.dual[o] = duals[o]
                self.duals[:, o] = self.rows.duals[:, o]
        arrived = np.array([o for o in outputs if self.settle(o)], np.int64)
        if self.curved is not self.rows and len(arrived) and not self.evaluate(self.curved, self.point, arrived):
            return False
        n_each = max(self.run.n_threads // max(len(arrived), 1), 1)
        run_threads(self.turn, [(o, n_each) for o in arrived], self.run.n_threads)
        return True

    def evaluate(self, rows, point, outputs):
        """A pass over rows at a point."""
        coef = self.coef(point)
        offset = point[:, -1] - self.problem.mean_scores(coef)
        return rows.run(coef, offset, outputs, self.run.n_threads, self.run.should_stop)

    def along(self, o, eta):
        """(P, dP/deta, d2P/deta2) of an output at point + eta step."""
        ridge = np.ones(self.point.shape[1])
        ridge[-1] = self.inverse_square
        value, slope, curvature = self.rows.line(o, eta)[:3]
        point, step = self.point[o] + eta * self.step[o], self.step[o]
        return value + 0.5 * point @ (ridge * point), slope + step @ (ridge * point), curvature + step @ (ridge * step)

    def settle(self, o):
        """Go to the end of the step, if that is low enough, else to the lowest point along it: then False."""
        value, slope = self.along(o, 1.0)[0], self.along(o, 0.0)[1]
        if np.isinf(self.primal[o]) and value > (1 + 1e-9) * self.at_zero[o, 1]:
            self.restart(o)
            return False
        limit = self.primal[o] + ENOUGH_DECREASE * slope
        if np.isinf(self.primal[o]) or value <= limit + ROUNDING * abs(limit):
            eta, self.primal[o] = 1.0, value
        else:
            eta, self.primal[o] = self.search(o, slope)
        self.point[o] += eta * self.step[o]
        self.step[o] = 0
        self.rows.old[o] += eta * (self.rows.new[o] - self.rows.old[o])
        return eta == 1.0

    def restart(self, o):
        """Go to w = 0: the first point is worse, of a sample that lacks a class, where P may be flat."""
        intercept, self.primal[o] = self.at_zero[o]
        self.point[o], self.point[o, -1] = 0.0, intercept
        self.rows.old[o] = intercept

    def search(self, o, first_slope):
        """(eta, P) of the least P along a step that is too long: Newton inside a bracket."""
        low, high, eta = 0.0, 1.0, 0.5
        for _ in range(60):
            value, slope, curvature = self.along(o, eta)
            if abs(slope) <= 1e-3 * abs(first_slope):
                break
            low, high = (eta, high) if slope < 0 else (low, eta)
            newton = eta - slope / curvature
            eta = newton if low < newton < high else 0.5 * (low + high)
        return eta, value

    def turn(self, o, n_threads):
        """The step of an output from its present point."""
        rows, curved = self.rows, self.curved
        matrix = curved.gram[o]
        penalise_rows_and_columns(matrix, self.shape[1], self.order, self.problem.centre.scale)
        balance, curvature = rows.line(o, 0.0)[3], curved.line(o, 1.0)[4]
        denominator = curvature + self.inverse_square if self.problem.intercept != "none" else 0.0
        inverse = 1.0 / denominator if denominator > np.finfo(np.float64).tiny else 0.0
        code_sum, c = self.penalised(curved.sums[o, CURVATURE]), np.empty(matrix.shape[0])
        complete_hessian(matrix, code_sum, self.mean, curvature, inverse, c)
        factorise(matrix, n_threads)
        residual = self.penalised(rows.sums[o, RESIDUAL]) - balance * self.mean
        gradient, gradient_b = self.point[o, :-1] - residual, self.inverse_square * self.point[o, -1] - balance
        step = inverse * gradient_b * c - gradient
        substitute(matrix, step)
        self.step[o, :-1], self.step[o, -1] = step, -inverse * (gradient_b + c @ step)
        decrease = -(gradient @ step + gradient_b * self.step[o, -1])
        self.is_stalled[o] = decrease <= ROUNDING * abs(self.primal[o])


    def solve(self):
        """Passes, and a certificate when the gap is small; returns a SolverResult."""
        run, history, certified, interrupted, is_over = self.run, [], np.inf, False, False
        certifier = Certifier(self.problem, run.memory, len(self.duals), run.n_threads)
        while certified > run.tol and len(self.active) and not (interrupted or is_over):
            is_whole = self.advance()
            interrupted = not is_whole or run.should_stop()
            figures, is_over = run.look(self.current) if is_whole else ({}, False)
            is_over |= self.passes == run.max_epochs
            is_last = interrupted or is_over
            certified = self.certify(certifier) if is_last or not len(self.active) else np.inf
            if is_whole:
                history.append({
                    "epoch": self.passes, "objective": float(self.primal.sum()),
                    "dual_objective": float(self.dual.sum()), "gap": float(self.gaps.max()),
                    "certified_gap": certified if np.isfinite(certified) else None, **figures,
                })  # fmt: skip
                run.on_epoch(history[-1])
        return SolverResult(
            certifier.coef, certifier.intercept, certified <= run.tol, self.passes,
            self.rows.reads + certifier.reads, history, certifier.certificate, interrupted, self.gap_on_codes,
        )  # fmt: skip

    def current(self):
        """(coef, intercept) of the present points, as they would be stored."""
        coef = self.coef(self.point).astype(np.float32)
        return coef, self.point[:, -1] - self.problem.mean_scores(coef)

    def certify(self, certifier):
        """Judge the present points and the ends of their steps; returns the certified gap of the worst output.

        An output that is found above the tolerance, by float32 coefficients, gets a stricter target, unless the codes
        that its rows are kept as are the cause.
        """
        candidates = [self.coef(point).astype(np.float32) for point in (self.point, self.point + self.step)]
        gaps = certifier.certify(candidates, self.duals, self.point[:, -1]).gaps
        is_above, self.gap_on_codes = gaps > self.run.tol, None
        if self.is_coded and is_above.any():
            self.gap_on_codes = float(self.gaps.max())
            is_above &= ~is_floor(gaps, self.gaps, self.run.tol)
        self.targets = np.where(is_above, np.minimum(self.targets, 0.1 * self.gaps), self.targets)
        return float(gaps.max())


def check(problem, run):
    """Raise ConfigError, with the reason, for what Newton's method cannot do."""
    if not problem.loss.is_smooth:
        raise ConfigError(
            "solver newton: the hinge loss has a kink, so it has no second derivative. Use --loss squared_hinge, or "
            "the solver dual-cd."
        )
    if run.stop_on != "gap":
        raise ConfigError("solver newton: stops on the duality gap. Use --stop-on gap, or the solver dual-cd.")
    missing = missing_bytes(problem, run)
    if missing > 0:
        needed, n_columns = required_bytes(problem), problem.encoder.n_features * problem.encoder.n_basis
        limit = run.options["memory_limit"]
        enough = limit + missing
        row_bytes = len(problem.targets) * problem.encoder.n_features * PRECISIONS[run.options["precision"]]
        if problem.positions is None and 2 * row_bytes <= enough:  # then it holds the rows too
            enough += row_bytes
        raise ConfigError(
            f"solver newton: {problem.n_outputs} outputs of {n_columns:,} coefficients need {needed / 1e6:,.1f} MB, "
            f"most of it for Gram matrices, above the {(needed - missing) / 1e6:,.1f} MB that are left of "
            f"memory_limit, {limit / 1e6:,.1f} MB. Give at least {math.ceil(enough / 1e5) / 10:,.1f} MB, or use the "
            "solver dual-cd, which has none."
        )


def gram_bytes(problem):
    """Bytes of the Gram matrices of all outputs."""
    return 8 * problem.n_outputs * (problem.encoder.n_features * problem.encoder.n_basis) ** 2


def vector_bytes(problem):
    """Bytes of what is as long as the coefficients: points, steps, gradients (64 each), the certificate's (36)."""
    return 100 * problem.n_outputs * problem.encoder.n_features * problem.encoder.n_basis


def required_bytes(problem):
    """Bytes that a run takes, whatever the number of rows."""
    return working_bytes(problem) + vector_bytes(problem)


def unused_bytes(problem, run):
    """Bytes of a block of rows, where the plan has one that is read anew in every pass: here rows come one by one."""
    return run.plan.block_bytes(problem.encoder.n_features) if problem.positions is None else 0


def missing_bytes(problem, run):
    """Bytes by which what is left of the memory limit is too little; 0 or less where a run fits."""
    return required_bytes(problem) - run.memory.left - unused_bytes(problem, run)


def draw_sample(problem, run, share):
    """The problem of about a share of the rows, in memory: random runs of them, as many as fit beside the matrices."""
    n_rows, n_features = len(problem.targets), problem.encoder.n_features
    run_rows = min(run.plan.chunk_rows, -(-n_rows // N_RUNS))
    n_runs = -(-n_rows // run_rows)
    dtype = positions_dtype(problem.encoder) if problem.positions is None else problem.positions.dtype
    row_bytes = n_features * np.dtype(dtype).itemsize + LABEL_BYTES + OUTPUT_BYTES * problem.n_outputs
    # Half, as decisions and dual variables of all rows are held beside a sampled Hessian.
    fitting = max(run.memory.left - required_bytes(problem), 0) // 2 // (run_rows * row_bytes)
    n_drawn = min(round(share * n_runs), fitting)
    drawn = np.sort(run.plan.generator(0, 0).choice(n_runs, n_drawn, replace=False)) * run_rows
    slices = [slice(start, min(start + run_rows, n_rows)) for start in drawn.tolist()]
    rows = np.concatenate([np.arange(own.start, own.stop) for own in slices] or [np.empty(0, np.int64)])
    positions = np.empty((len(rows), n_features), dtype)
    run.memory.take(positions.nbytes + LABEL_BYTES * len(rows))
    if problem.positions is not None:
        np.take(problem.positions, rows, axis=0, out=positions)
    else:
        reads = prefetch(partial(problem.source.read, own.start, own.stop) for own in slices)
        for k, chunk in enumerate(reads):
            locate(problem.encoder, chunk.dense(), positions[k * run_rows : k * run_rows + chunk.n_rows])
    return replace(
        problem, targets=problem.targets[rows], costs=problem.costs[rows], folds=problem.folds[rows],
        positions=positions, cost=problem.cost * (n_rows / max(len(rows), 1)),
    )  # fmt: skip


def first_point(problem, run):
    """(w and b, RowSums) of a sample of the rows: its optimum, and its Hessian if asked for and good enough, or None.

    (None, None) where there is no sample: it would be too large, or another start is given.
    """
    n_rows, n_columns = len(problem.targets), problem.encoder.n_features * problem.encoder.n_basis
    asked, needed = run.options["hessian_sample"], HESSIAN_ROWS * n_columns
    is_sampled = asked < 1.0 and asked * n_rows >= needed
    least, most = START_SHARES
    share = asked if is_sampled else max(least, START_ROWS * n_columns / n_rows)
    sample = None
    if is_sampled or (share <= most and run.start is None):
        sample = draw_sample(problem, run, share)
        is_sampled &= len(sample.targets) >= needed  # the memory may hold fewer
    if asked < 1.0 and not is_sampled:
        log.info(
            "newton: a Hessian of %d coefficients needs a sample of %d rows; all rows are taken.", n_columns, needed
        )
    if sample is None:
        return None, None
    machine = Newton(sample, run)
    machine.minimise()
    return machine.point, machine.rows if is_sampled else None


def solve(problem, run):
    """Train by Newton's method.

    Parameters
    ----------
    problem : Problem
        What is minimised; of a smooth loss.
    run : Run
        How; `options` holds hessian_sample, memory_limit and precision.

    Returns
    -------
    SolverResult
        With the certificate's best primal point.

    Raises
    ------
    ConfigError
        For the hinge loss, LIBLINEAR's stopping rule, and Gram matrices beyond what is left of the memory limit.
    """
    check(problem, run)
    with run.memory.scope(unused_bytes(problem, run)):
        with run.memory.scope():  # of the sample: only its optimum outlives it, unless its Hessian is taken
            first, curved = first_point(problem, run)
            if curved is not None:
                result = Newton(problem, run, first, curved).solve()
        if curved is None:
            result = Newton(problem, run, first).solve()
    return replace(result, reads=result.reads + (first is not None and problem.positions is None))
