"""The certificate: how far from the optimum the coefficients are, exactly, in float64, in one read of all rows.

For each output, with v the coefficients as stored and a the dual variables:

    P(v) = 1/2 sum_j |D_d v_j|^2 / s_j^2 + sum_i C_i loss(y_i (f_i + b)),   b minimised exactly (convex)
    D(a) = sum_i conjugate(a_i) - 1/2 sum_j s_j^2 |D_d'^-1 (sum_i a_i y_i phi(x_ij) - S phibar_j)|^2,  S = sum_i a_i y_i

A free intercept needs S = 0: the duals of the heavier class are scaled down first, which keeps a true lower bound. A
penalised one adds b^2 / (2 B^2) to P and takes B^2 S^2 / 2 from D. gap = (P - D) / max(|P|, |D|).
"""

from contextlib import closing
from dataclasses import dataclass

import numpy as np

from linadd import penalty
from linadd._jit import compiled, stream_threads
from linadd.chunks import row_groups
from linadd.encoders.exact import certify_rows, decide, make_scratch, scores_of_zero, values_of
from linadd.losses import conjugate, dual_upper, loss_curvature, loss_slope, loss_value
from linadd.solvers.outputs import row_cost, row_costs

SLOWEST_RATE = 0.95  # where two rises of the dual value say that it does not slow down at all
SMOOTH_MULTIPLE, HINGE_MULTIPLE = 1.0, 0.45  # the certified gap over what GapForecast makes of an epoch, on real data
MULTIPLES = (0.2, 5.0)  # bounds of what a certificate finds it to be


@dataclass
class Certificate:
    """Bounds on the optimum of each output.

    Attributes
    ----------
    primal, dual : float64 arrays, shape (n_outputs,)
        The objective reached, and a lower bound on the least.
    """

    primal: np.ndarray
    dual: np.ndarray

    @property
    def gaps(self):
        """Relative duality gap of each output."""
        return relative_gap(self.primal, self.dual)

    @property
    def gap(self):
        """Of the worst output."""
        return float(self.gaps.max())


def relative_gap(primal, dual):
    """(P - D) / max(|P|, |D|), elementwise; 0 where both are 0."""
    size = np.maximum(np.abs(primal), np.abs(dual))
    return np.divide(primal - dual, size, out=np.zeros_like(size), where=size > 0)


def squared_norms(problem, coef):
    """|w|^2 = sum_j |D_d v_j|^2 / s_j^2 of each output; coef (n_features, n_basis, n_outputs)."""
    order = problem.encoder.penalty_order if problem.encoder.is_local else 0
    w = penalty.differences(np.moveaxis(np.asarray(coef, np.float64), 1, 2), order)
    scale = problem.centre.scale
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    return np.einsum("jol,jol,j->o", w, w, inverse**2)


def dual_squared_norms(problem, sums, balance):
    """|w|^2 of the point with sums (n_features, n_basis, n_outputs) of a y phi and balance S (n_outputs,)."""
    order = problem.encoder.penalty_order if problem.encoder.is_local else 0
    centred = sums - problem.centre.mean_code[:, :, None] * balance
    w = penalty.penalised_code(np.moveaxis(centred, 1, 2), order)
    return np.einsum("jol,jol,j->o", w, w, problem.centre.scale**2)


class GapForecast:
    """The gap that a certificate is likely to find, from what an epoch notes in passing, at no cost.

    Of a smooth loss the dual values rise almost geometrically: after the rises r' and r, with q = r / r', about
    r q / (1 - q) is left. Of the hinge loss they do not, but the losses that an epoch notes make a gap with the dual
    value that keeps its proportion. The certified gap is a multiple of either that each certificate measures anew.

    Parameters
    ----------
    n_outputs : int
        Outputs.
    is_smooth : bool
        Of the loss.
    """

    def __init__(self, n_outputs, is_smooth):
        self.is_smooth, self.dual, self.rise = is_smooth, np.zeros(n_outputs), np.full(n_outputs, np.nan)
        self.multiple = np.full(n_outputs, SMOOTH_MULTIPLE if is_smooth else HINGE_MULTIPLE)

    def update(self, primal, dual):
        """Take an epoch's P of first visits and D, (n_outputs,); returns the likely relative gaps, NaN if unknown."""
        if self.is_smooth:
            rise = np.abs(dual - self.dual)
            rate = np.divide(rise, self.rise, out=np.ones_like(rise), where=self.rise > 0)
            rate = np.clip(rate, 0.0, SLOWEST_RATE) + 0.0 * self.rise
            size = np.maximum(np.abs(dual), np.finfo(np.float64).tiny)
            self.left = rise * rate / (1.0 - rate) / size
            self.dual, self.rise = dual, rise
        else:
            self.left = np.abs(relative_gap(primal, dual))
        return self.multiple * self.left

    def learn(self, gaps):
        """Take the certified gaps (n_outputs,) of the epoch of the last update."""
        found = np.divide(gaps, self.left, out=np.full_like(gaps, np.nan), where=self.left > 0)
        self.multiple = np.where(np.isfinite(found), np.clip(found, *MULTIPLES), self.multiple)


@compiled
def intercept_terms(code, scores, signs, costs, intercept):
    """(sum C loss, its derivative, its curvature) with respect to an intercept added to all scores."""
    value, slope, curvature = 0.0, 0.0, 0.0
    for i in range(scores.shape[0]):
        margin = signs[i] * (scores[i] + intercept)
        value += costs[i] * loss_value(code, margin)
        slope += costs[i] * signs[i] * loss_slope(code, margin)
        curvature += costs[i] * loss_curvature(code, margin)
    return value, slope, curvature


def best_intercept(code, scores, signs, costs, start, ridge=0.0, centre=0.0):
    """Least of sum C loss(y (score + b)) + ridge/2 (b + centre)^2 over b, by Newton inside a bracket.

    Parameters
    ----------
    code : int
        Of the loss.
    scores, signs, costs : float64 arrays, shape (n_rows,)
        Scores without intercept, labels -1 or +1, and C_i.
    start : float
        First value of b.
    ridge, centre : float
        The penalty of a penalised intercept.

    Returns
    -------
    (float, float)
        b and the value there. A hinge loss has a kink at its least: the bracket is halved down to it.
    """

    def terms(b):
        value, slope, curvature = intercept_terms(code, scores, signs, costs, b)
        offset = b + centre
        return value + 0.5 * ridge * offset**2, slope + ridge * offset, curvature + ridge

    low, high, b = -np.inf, np.inf, start
    best, best_value, reach = start, np.inf, max(1.0, abs(start)) / 64
    for _ in range(200):
        value, slope, curvature = terms(b)
        if value < best_value:
            best, best_value = b, value
        if slope == 0.0 or high - low <= 1e-13 * max(1.0, abs(b)):
            break
        low, high = (b, high) if slope < 0 else (low, b)
        step = b - slope / curvature if curvature > 0 else np.nan
        if low < step < high and abs(step - b) <= 1e-12 * max(1.0, abs(b)):
            break
        is_inside, is_open = low < step < high, np.isinf(low) or np.isinf(high)
        if is_inside and (abs(step - b) < reach or not is_open):
            b = step
        elif is_open:
            b -= np.sign(slope) * reach
            reach *= 4
        else:
            b = 0.5 * (low + high)
    return best, best_value


@compiled
def signed_dual_rows(outputs, duals, targets, costs, folds, factors, signed, conjugates, balance):
    """signed = a y with each class's factor; adds the conjugate of the scaled a, and a y, to the sums a output."""
    for i in range(duals.shape[0]):
        for o in range(duals.shape[1]):
            side = 1 if targets[i] == outputs.positive[o] else 0
            dual = factors[side, o] * np.float64(duals[i, o])
            sign = 1.0 if side == 1 else -1.0
            cost = row_cost(outputs, o, costs[i], folds[i])
            dual = min(dual, dual_upper(outputs.code, cost))
            conjugates[o] += conjugate(outputs.code, dual, cost)
            signed[i, o] = sign * dual
            balance[o] += sign * dual


@compiled
def class_sums(duals, targets, positive):
    """Sum of the duals of each output's negative and positive rows, float64 (2, n_outputs)."""
    sums = np.zeros((2, positive.shape[0]))
    for i in range(duals.shape[0]):
        for o in range(positive.shape[0]):
            sums[1 if targets[i] == positive[o] else 0, o] += duals[i, o]
    return sums


def balancing_factors(sums):
    """Factor of the duals of each side that makes a_+ = a_-: at most 1; (2, n_outputs)."""
    least = sums.min(axis=0)
    return np.divide(least, sums, out=np.zeros_like(sums), where=sums > 0)


@compiled
def duals_of_decisions(outputs, decisions, targets, costs, folds, duals):
    """a_i = -C_i loss'(y_i f_i), the dual point that belongs to a primal one."""
    for i in range(duals.shape[0]):
        for o in range(duals.shape[1]):
            sign = 1.0 if targets[i] == outputs.positive[o] else -1.0
            cost = row_cost(outputs, o, costs[i], folds[i])
            duals[i, o] = -cost * loss_slope(outputs.code, sign * decisions[i, o])


def certify_primal(problem, memory, coef, intercept, n_threads=1):
    """Certificate of a primal point whose solver keeps no dual variables, by two reads.

    Parameters
    ----------
    problem : Problem
        The problem.
    memory : Memory
        Holds decisions and duals.
    coef : float32 array, shape (n_features, n_basis, n_outputs)
        The point.
    intercept : float64 array, shape (n_outputs,)
        Of the uncentred code.
    n_threads : int
        Threads; never changes the result.

    Returns
    -------
    (Certificate, float64 array)
        The bounds, and the intercept that is best for these coefficients.
    """
    n_rows, n_outputs = len(problem.targets), problem.n_outputs
    certifier = Certifier(problem, memory, n_rows, n_threads)
    duals = memory.zeros("dual variables", (n_rows, n_outputs), np.float32)
    for chunk in problem.source.chunks():
        rows = slice(chunk.first_row, chunk.first_row + chunk.n_rows)
        decisions = decide(problem.encoder, problem.values(chunk), coef, intercept, n_threads)
        duals_of_decisions(
            problem.outputs(), decisions, problem.targets[rows], problem.costs[rows], problem.folds[rows], duals[rows]
        )
    certificate = certifier.certify([coef], duals, intercept + problem.mean_scores(coef))
    memory.release(duals)
    return certificate, certifier.intercept


class Certifier:
    """Certifies candidates against the dual variables; keeps the best primal and the best dual point of each output.

    Parameters
    ----------
    problem : Problem
        The problem.
    memory : Memory
        Holds the decisions of all rows.
    n_rows : int
        Rows of the source.
    n_threads : int
        Threads that share the groups of rows; never changes the result.
    """

    def __init__(self, problem, memory, n_rows, n_threads=1):
        self.problem, self.n_rows, self.memory, self.n_threads = problem, n_rows, memory, n_threads
        self.n_outputs = problem.n_outputs
        self.primal = np.full(self.n_outputs, np.inf)
        self.dual = np.zeros(self.n_outputs)  # of a = 0, which is always feasible
        encoder = problem.encoder
        self.coef = np.zeros((encoder.n_features, encoder.n_basis, self.n_outputs), np.float32)
        self.intercept = np.zeros(self.n_outputs)
        self.reads = 0

    @property
    def certificate(self):
        """The best bounds so far."""
        return Certificate(self.primal.copy(), self.dual.copy())

    def certify(self, candidates, duals, start, which=None):
        """Judge candidate coefficients against dual variables in one read.

        Parameters
        ----------
        candidates : list of float32 arrays, shape (n_features, n_basis, n_outputs)
            Primal points.
        duals : float32 array, shape (n_rows, n_outputs)
            The dual point.
        start : float64 array, shape (n_outputs,)
            Where the search for the intercept starts.
        which : int64 array, optional
            The outputs to judge; all by default.

        Returns
        -------
        Certificate
            With the best primal and dual point of all calls so far.
        """
        reading = Reading(self, candidates, duals, start, which)
        read_together([reading], self.n_threads)
        return reading.finish()

    def judge(self, candidate, decisions, start, which):
        """Primal objective of a candidate for the outputs `which`; keeps it where it is the best."""
        problem = self.problem
        norms = squared_norms(problem, candidate)
        mean_scores = problem.mean_scores(candidate)
        ridge = 1.0 / problem.intercept_square if problem.intercept == "penalised" else 0.0
        for k, o in enumerate(which):
            signs = np.where(problem.targets == problem.positive[o], 1.0, -1.0)
            scores = np.ascontiguousarray(decisions[:, k])
            costs = row_costs(problem.outputs(), o, problem.costs, problem.folds)
            if problem.intercept == "none":
                intercept = -mean_scores[o]
                value = intercept_terms(problem.loss.code, scores, signs, costs, intercept)[0]
            else:
                intercept, value = best_intercept(
                    problem.loss.code, scores, signs, costs, start[o] - mean_scores[o], ridge, mean_scores[o]
                )
            primal = value + 0.5 * norms[o]
            if primal < self.primal[o]:
                self.primal[o], self.intercept[o] = primal, intercept
                self.coef[:, :, o] = candidate[:, :, o]


class Reading:
    """What one read of all rows finds for one Certifier: decisions of its candidates, and the dual objective.

    Parameters
    ----------
    certifier : Certifier
        What it is for.
    candidates, duals, start, which
        As in `Certifier.certify`.
    """

    def __init__(self, certifier, candidates, duals, start, which=None):
        self.certifier, self.candidates, self.duals, self.start = certifier, candidates, duals, start
        self.problem = problem = certifier.problem
        self.which = which = np.arange(certifier.n_outputs) if which is None else which
        self.coef = np.ascontiguousarray(np.concatenate([each[:, :, which] for each in candidates], axis=2))
        factors = np.ones((2, certifier.n_outputs))
        if problem.intercept == "free":
            factors = balancing_factors(class_sums(duals, problem.targets, problem.positive))
        self.factors, self.outputs = factors.take(which, axis=1), problem.outputs().take(which)
        shape = (certifier.n_rows, self.coef.shape[2])
        self.decisions = certifier.memory.zeros("decisions", shape, np.float64)
        self.is_sparse = problem.centre.is_sparse
        if self.is_sparse:
            self.decisions += scores_of_zero(problem.encoder, self.coef)
        self.sums = np.zeros((problem.encoder.n_features, problem.encoder.n_basis, len(which)))
        self.conjugates, self.balance = np.zeros(len(which)), np.zeros(len(which))

    def group(self, pieces):
        """Write the decisions of a group of rows; returns its sums, conjugates and balance.

        Sums of sparse rows are added at once, since a group fills few of them: one thread then takes all groups.
        """
        problem, encoder = self.problem, self.problem.encoder
        sums = self.sums if self.is_sparse else np.zeros_like(self.sums)
        scratch = make_scratch(encoder, self.is_sparse)
        conjugates, balance = np.zeros_like(self.conjugates), np.zeros_like(self.balance)
        for first_row, X, weight in pieces:
            rows = slice(first_row, first_row + len(weight))
            signed = np.empty((len(weight), len(self.which)))
            own = self.duals[rows].take(self.which, axis=1)  # C-contiguous, which an index is not
            signed_dual_rows(
                self.outputs, own, problem.targets[rows], problem.costs[rows], problem.folds[rows], self.factors,
                signed, conjugates, balance,
            )  # fmt: skip
            certify_rows(
                values_of(X), encoder.axes, encoder.basis, self.coef, signed, self.decisions[rows], sums, scratch
            )  # fmt: skip
        return sums, conjugates, balance

    def add(self, sums, conjugates, balance):
        """Add what `group` found, in the order of the rows."""
        if not self.is_sparse:
            self.sums += sums
        self.conjugates += conjugates
        self.balance += balance

    def finish(self):
        """Note the dual objective, judge the candidates and free the decisions; the Certificate so far."""
        problem, certifier, which, balance = self.problem, self.certifier, self.which, self.balance
        certifier.reads += 1
        if self.is_sparse:
            self.sums += problem.centre.mean_code[:, :, None] * balance  # of every row, which the entries' sums lack
        penalised = problem.intercept_square * balance**2 * (problem.intercept != "free")
        dual = self.conjugates - 0.5 * dual_squared_norms(problem, self.sums, balance) - 0.5 * penalised
        certifier.dual[which] = np.maximum(certifier.dual[which], dual)
        for k, candidate in enumerate(self.candidates):
            columns = self.decisions[:, k * len(which) : (k + 1) * len(which)]
            certifier.judge(candidate, columns, self.start, which)
        certifier.memory.release(self.decisions)
        return certifier.certificate


def read_together(readings, n_threads):
    """One read of the rows that several Readings, of one source, are of; threads never change what they find."""
    problem = readings[0].problem
    is_sparse = problem.centre.is_sparse

    def found(pieces):
        """What each reading finds in a group of rows."""
        return [reading.group(pieces) for reading in readings]

    with closing(problem.source.chunks()) as chunks:
        tasks = ((pieces,) for pieces in row_groups(chunks, is_sparse))
        for parts in stream_threads(found, tasks, 1 if is_sparse else n_threads):
            for reading, part in zip(readings, parts, strict=True):
                reading.add(*part)
