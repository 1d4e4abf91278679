"""Averaged stochastic gradient and Pegasos, one row a step, for data or streams that are seen a few times or once.

    minimise  lambda/2 |w|^2 + 1/n sum_i c_i loss(y_i f(x_i)),    lambda = 1 / (n C): the problem of base.py over n C

    w_(t+1) = (1 - eta_t lambda) w_t + eta_t g_i y_i z_i,    eta_t = 1 / (lambda (t + t0)),   v = D_d^-1 w is kept

`shifted` (default): t0 = 2 |z|^2 / lambda, |z|^2 the mean squared row norm, and an implicit step: g_i eta_t is the dual
step of cost eta_t c_i from 0, which equals the gradient step for small eta_t and never overshoots. `pegasos`: t0 = 1,
gradient steps, projection on |w| <= 1 / sqrt(lambda) [ShalevShwartz2007]. The reported iterate is the average with
polynomial decay, rho_t = 4 / (t + 3) [Shamir2013]. Decay and average cost O(1) a step, in lazy form for each output:

    v = scale * (u - shift L phibar)
    average = mix * (z + share * v / scale),   a step d on u adds -share * d to z, then share += rho scale / mix

Scalars are folded back into u and z at steps that depend on t alone, so any batching of the rows gives the same bits.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from linadd._jit import compiled
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
from linadd.losses import dual_step, loss_slope, loss_value
from linadd.solvers.base import SolverResult
from linadd.solvers.blocks import BlockReader
from linadd.solvers.stopping import certify_primal, squared_norms

FOLD_STEPS = 1024  # scalars are folded at powers of two up to here, where the average moves fast, then at multiples
DECAY = 3.0  # exponent of the average


class Rule(NamedTuple):
    """The fixed part of the steps."""

    code: int  # of the loss
    positive: np.ndarray  # int32 (n_outputs,)
    strength: np.ndarray  # float64 (n_outputs,): lambda
    start: np.ndarray  # float64 (n_outputs,): t0
    is_pegasos: bool
    intercept_square: float
    is_penalised: bool  # the intercept decays with w


class State(NamedTuple):
    """The iterate and its average."""

    coef: np.ndarray  # float32 (n_groups, n_features, basis, lanes): u
    average: np.ndarray  # the same: z
    terms: np.ndarray  # float64 (N_TERMS, n_outputs)
    clock: np.ndarray  # float64 (1,): t


N_TERMS = 11
INTERCEPT, MEAN_INTERCEPT, SCALE, SHIFT, MEAN_SCORE, MIX, SHARE, SHIFT_Z, MEAN_SCORE_Z, SQUARE, LOSS = range(N_TERMS)


@compiled
def fold(state, mean_update, mean_code):
    """Write v to u and the average to z, with all scalars neutral and the mean scores exact."""
    coef, average, terms = state.coef, state.average, state.terms
    n_features, lanes = coef.shape[1], coef.shape[3]
    for o in range(terms.shape[1]):
        group, lane = o // lanes, o % lanes
        scale, mix, share = terms[SCALE, o], terms[MIX, o], terms[SHARE, o]
        mean_u, mean_z = 0.0, 0.0
        for j in range(n_features):
            for i in range(mean_code.shape[1]):
                u = coef[group, j, i, lane] - terms[SHIFT, o] * mean_update[j, i]
                z = average[group, j, i, lane] - terms[SHIFT_Z, o] * mean_update[j, i]
                coef[group, j, i, lane] = scale * u
                average[group, j, i, lane] = mix * (z + share * u)
                mean_u += coef[group, j, i, lane] * mean_code[j, i]
                mean_z += average[group, j, i, lane] * mean_code[j, i]
        terms[SCALE, o], terms[MIX, o], terms[SHARE, o] = 1.0, 1.0, 0.0
        terms[SHIFT, o], terms[SHIFT_Z, o] = 0.0, 0.0
        terms[MEAN_SCORE, o], terms[MEAN_SCORE_Z, o] = mean_u, mean_z


@compiled
def step_size(rule, terms, o, t, score, sign, norm, weight):
    """Decay the iterate of output o and return what the row adds to w, in units of its code."""
    eta = 1.0 / (rule.strength[o] * (t + rule.start[o]))
    margin = sign * score
    terms[LOSS, o] += weight * loss_value(rule.code, margin)
    if rule.is_pegasos:
        step = -sign * eta * weight * loss_slope(rule.code, margin)
    else:
        step = sign * dual_step(rule.code, 0.0, margin, norm + rule.intercept_square, eta * weight)
    keep = 1.0 - eta * rule.strength[o]
    inner = score - terms[INTERCEPT, o]
    terms[SQUARE, o] = keep * keep * terms[SQUARE, o] + 2.0 * keep * step * inner + step * step * norm
    terms[SCALE, o] *= keep
    if rule.is_penalised:
        terms[INTERCEPT, o] *= keep
    terms[INTERCEPT, o] += step * rule.intercept_square
    return step


@compiled
def learn(rows, block, basis, space, rule, state, mean_code, scratch, scores, steps):
    """One step for each of `rows` of a block, in order; a row of weight 0 is no step at all."""
    terms, clock, n_outputs = state.terms, state.clock, rule.positive.shape[0]
    lanes = state.coef.shape[3]
    for i in rows:
        weight = np.float64(block.costs[i])
        if weight <= 0.0:
            continue
        clock[0] += 1.0
        t = clock[0]
        rho = (1.0 + DECAY) / (t + DECAY)
        load_row(basis, block, i, scratch)
        kappa, norm = np.float64(block.kappas[i]), np.float64(block.norms[i])
        for group in range(state.coef.shape[0]):
            coef, average = state.coef[group].reshape(-1), state.average[group].reshape(-1)
            if lanes == 1:
                scores[0] = decide_one(basis, scratch, coef)
            else:
                decide_lanes(basis, scratch, coef, scores)
            has_moved = False
            for lane in range(min(lanes, n_outputs - group * lanes)):
                o = group * lanes + lane
                raw = scores[lane] - terms[SHIFT, o] * kappa - terms[MEAN_SCORE, o]
                score = terms[SCALE, o] * raw + terms[INTERCEPT, o]
                sign = 1.0 if block.targets[i] == rule.positive[o] else -1.0
                change = step_size(rule, terms, o, t, score, sign, norm, weight) / terms[SCALE, o]
                steps[0, lane] = change
                steps[1, lane] = -terms[SHARE, o] * change
                terms[SHIFT, o] += change
                terms[SHIFT_Z, o] += steps[1, lane]
                terms[MEAN_SCORE, o] += change * (kappa - space.kappa_0)
                has_moved = has_moved or change != 0.0
                if rule.is_pegasos and terms[SQUARE, o] * rule.strength[o] > 1.0:
                    terms[SCALE, o] /= np.sqrt(terms[SQUARE, o] * rule.strength[o])
                    terms[SQUARE, o] = 1.0 / rule.strength[o]
            if has_moved and lanes == 1:
                update_one(basis, scratch, space.scale_squared, steps[0, 0], coef)
                update_one(basis, scratch, space.scale_squared, steps[1, 0], average)
            elif has_moved:
                update_lanes(basis, scratch, space.scale_squared, steps[0], coef)
                update_lanes(basis, scratch, space.scale_squared, steps[1], average)
        advance_average(terms, rho, t == 1.0)
        if t % FOLD_STEPS == 0 or (t < FOLD_STEPS and np.int64(t) & (np.int64(t) - 1) == 0):
            fold(state, space.mean_update, mean_code)


@compiled
def advance_average(terms, rho, is_first):
    """Let the average take its share of the present iterate; the first iterate is the whole of it."""
    for o in range(terms.shape[1]):
        if is_first:
            terms[MIX, o], terms[SHARE, o] = 1.0, terms[SCALE, o]
            terms[MEAN_INTERCEPT, o] = terms[INTERCEPT, o]
        else:
            terms[MIX, o] *= 1.0 - rho
            terms[SHARE, o] += rho * terms[SCALE, o] / terms[MIX, o]
            terms[MEAN_INTERCEPT, o] += rho * (terms[INTERCEPT, o] - terms[MEAN_INTERCEPT, o])


class SGD:
    """The solver as a machine that is fed blocks: `train --solver sgd` and `partial_fit` are the same code.

    Parameters
    ----------
    problem : Problem
        Only encoder, centre, loss, positive, cost and intercept are used.
    n_expected : int
        n of lambda = 1 / (n C).
    schedule : {"shifted", "pegasos"}
        Step sizes.
    """

    def __init__(self, problem, n_expected, schedule="shifted"):
        self.problem, encoder, n_outputs = problem, problem.encoder, problem.n_outputs
        lanes = 1 if n_outputs == 1 else N_LANES
        shape = (-(-n_outputs // lanes), *coef_shape(encoder, lanes))
        terms = np.zeros((N_TERMS, n_outputs))
        terms[[SCALE, MIX]] = 1.0
        self.state = State(aligned_zeros(shape), aligned_zeros(shape), terms, np.zeros(1))
        strength, is_pegasos = 1.0 / (n_expected * problem.cost), schedule == "pegasos"
        self.rule = Rule(
            problem.loss.code, problem.positive, strength,
            np.ones(n_outputs) if is_pegasos else 2.0 * problem.centre.mean_norm / strength,
            is_pegasos, problem.intercept_square, problem.intercept == "penalised",
        )  # fmt: skip
        self.basis, self.scratch = encoder.basis, make_scratch(encoder, problem.centre.zero)
        self.steps = aligned_zeros((3, N_LANES))

    def start(self, start):
        """Go to given coefficients, as if the rows that they were trained on had just been seen once."""
        state, problem = self.state, self.problem
        state.coef[...] = state.average[...] = problem.solver_coef(start.coef)
        mean_scores = problem.mean_scores(start.coef)
        state.terms[[MEAN_SCORE, MEAN_SCORE_Z]] = mean_scores * (not problem.centre.is_sparse)
        state.terms[[INTERCEPT, MEAN_INTERCEPT]] = start.intercept + mean_scores
        state.terms[SQUARE] = squared_norms(problem, start.coef)
        state.clock[0] = start.n_rows

    def feed(self, block, rows):
        """One step for each of `rows` (int64 indices) of a block, in that order."""
        centre, steps = self.problem.centre, self.steps
        learn(
            rows, block, self.basis, centre.space, self.rule, self.state, centre.shifted_code, self.scratch, steps[2],
            steps[:2],
        )  # fmt: skip

    def point(self, is_average=True):
        """(coef, intercept) of the average, or of the last iterate; the state is not changed.

        Returns
        -------
        coef : float32 array, shape (n_features, n_basis, n_outputs)
        intercept : float64 array, shape (n_outputs,)
            Of the uncentred code.
        """
        copy = State(*(array.copy() for array in self.state))
        fold(copy, self.problem.centre.space.mean_update, self.problem.centre.mean_code)
        coef, terms = copy.average if is_average else copy.coef, copy.terms
        rows = (MEAN_INTERCEPT, MEAN_SCORE_Z) if is_average else (INTERCEPT, MEAN_SCORE)
        return self.problem.encoder_coef(coef), terms[rows[0]] - terms[rows[1]]

    def objective(self):
        """Objective of each output from the losses of the rows since the last call, each before its step."""
        terms = self.state.terms
        primal = 0.5 * terms[SQUARE] + self.problem.cost * terms[LOSS]
        terms[LOSS] = 0.0
        return primal


def solve(problem, run):
    """Train by stochastic gradient for `max_epochs` passes.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    run : Run
        How; `options` holds schedule, average, shuffle and certify.

    Returns
    -------
    SolverResult
        With a certificate only if `certify` asks for the two more reads.
    """
    options = run.options
    machine = SGD(problem, run.plan.n_rows, options["schedule"])
    if run.start is not None:
        machine.start(run.start)
    run.memory.take(2 * machine.state.coef.nbytes)
    reader = BlockReader(problem, run.plan, run.memory, run.n_threads)
    history, interrupted, epoch = [], False, 0
    for epoch in range(run.max_epochs):
        for index, block in reader.blocks(epoch, options["shuffle"]):
            n_rows = len(block.norms)
            rows = run.plan.generator(epoch, index).permutation(n_rows) if options["shuffle"] else np.arange(n_rows)
            machine.feed(block, rows)
            interrupted = run.should_stop()
            if interrupted:
                break
        figures, is_over = run.look(partial(machine.point, options["average"]))
        history.append({
            "epoch": epoch + 1, "objective": float(machine.objective().sum()), "dual_objective": None, "gap": None,
            "certified_gap": None, **figures,
        })  # fmt: skip
        run.on_epoch(history[-1])
        if interrupted or is_over:
            break
    coef, intercept = machine.point(options["average"])
    reads, certificate = reader.reads, None
    if options["certify"]:
        certificate, intercept = certify_primal(problem, run.memory, coef, intercept, run.n_threads)
        reads += 2
    return SolverResult(coef, intercept, not interrupted, epoch + 1, reads, history, certificate, interrupted)
