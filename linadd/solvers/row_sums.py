"""One pass over the rows for Newton's method: decisions, gradient, dual point and Gram matrix, at one point.

Rows come in index order, from memory or from the source, so either gives the same bits (see `gram.py`). Rows that are
kept as bytes are scored by tables, and their weights summed by code: see `encoders/tables.py`.
"""

import math
from contextlib import closing
from itertools import pairwise

import numpy as np

from linadd._jit import compiled, run_threads
from linadd.encoders.rows import locate, make_scratch, positions_dtype
from linadd.encoders.tables import N_CODES, add_tables, collect_codes, every_code, scatter_codes, tabulate_codes
from linadd.losses import dual_upper, loss_curvature, loss_slope, loss_value
from linadd.solvers import gram
from linadd.solvers.gram import CURVATURE, NEGATIVE, POSITIVE, RESIDUAL
from linadd.solvers.stopping import balancing_factors, class_sums, dual_squared_norms, signed_dual_rows

TABLED_BYTES = 1_000_000  # of rows, and their weights, that are scored by tables at once: they stay in a cache


@compiled
def weigh_rows(loss, old, new, targets, costs, positive, cost, weights, duals, o):
    """Weights (4, n_rows) of the sums of output o, and its dual point, from the decisions before and after a step."""
    for i in range(new.shape[0]):
        row_cost = cost * np.float64(costs[i])
        side = 1 if targets[i] == positive else 0
        sign = 2.0 * side - 1.0
        margin, before = sign * new[i], sign * old[i]
        weights[RESIDUAL, i] = -sign * row_cost * loss_slope(loss, margin)
        weights[CURVATURE, i] = row_cost * loss_curvature(loss, margin)
        slope = loss_slope(loss, before) + loss_curvature(loss, before) * (margin - before)
        duals[i, o] = max(-row_cost * slope, 0.0)
        duals[i, o] = min(np.float64(duals[i, o]), dual_upper(loss, row_cost))
        weights[NEGATIVE, i] = weights[POSITIVE, i] = 0.0
        weights[NEGATIVE + side, i] = sign * duals[i, o]


@compiled
def line_terms(loss, old, new, eta, targets, costs, positive, cost):
    """Along old + eta (new - old): sum C loss, its two derivatives in eta, sum of a y and of h = C loss''."""
    value, slope, curvature, balance, total = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(new.shape[0]):
        row_cost, sign = cost * np.float64(costs[i]), 1.0 if targets[i] == positive else -1.0
        change = new[i] - old[i]
        margin = sign * (old[i] + eta * change)
        residual = sign * row_cost * loss_slope(loss, margin)
        h = row_cost * loss_curvature(loss, margin)
        value += row_cost * loss_value(loss, margin)
        slope += residual * change
        curvature += h * change * change
        balance -= residual
        total += h
    return value, slope, curvature, balance, total


def table_shapes(problem, has_gram):
    """Shapes of the float64 sums and tables of a RowSums: `sums`, `gram`, `code_sums` and `tables`."""
    encoder, n_outputs = problem.encoder, problem.n_outputs
    n_columns = encoder.n_features * encoder.n_basis
    n_tabled = n_outputs if is_bytes(problem) else 0
    return {
        "sums": (n_outputs, 4, n_columns),
        "gram": (n_outputs * has_gram, n_columns, n_columns),
        "code_sums": (n_tabled, 4, encoder.n_features, N_CODES),
        "tables": (n_tabled, encoder.n_features, N_CODES),
    }


def is_bytes(problem):
    """Whether rows are kept as bytes, so that tables score them."""
    return problem.positions is not None and problem.positions.dtype == np.uint8


def working_bytes(problem, has_gram=True):
    """Bytes that a RowSums takes for sums, tables and a piece of rows: all of it that does not grow with the rows."""
    encoder, n_outputs = problem.encoder, problem.n_outputs
    n_piece = gram.piece_rows(encoder, n_outputs, len(problem.targets))
    n_values = sum(math.prod(shape) for shape in table_shapes(problem, has_gram).values())
    return 8 * n_values + n_piece * gram.row_bytes(encoder, n_outputs)


class RowSums:
    """What one pass over the rows of a problem leaves behind.

    Parameters
    ----------
    problem : Problem
        The rows.
    memory : Memory
        Holds the decisions and dual variables of all rows.
    has_gram : bool
        Sum the Gram matrices too.

    Attributes
    ----------
    old, new : float64 arrays, shape (n_outputs, n_rows)
        Decisions before the step (equal to those after it in the first pass), and after it.
    duals : float32 array, shape (n_rows, n_outputs)
        The dual point of the step.
    sums : float64 array, shape (n_outputs, 4, n_columns)
        Of a y phi, h phi, and of the dual point's a y phi over the negative and the positive rows.
    gram : float64 array, shape (n_outputs, n_columns, n_columns)
        Of h phi phi', lower triangle; `direction` overwrites it.
    """

    def __init__(self, problem, memory, has_gram):
        self.problem, n_rows, n_outputs = problem, len(problem.targets), problem.n_outputs
        self.old = memory.zeros("decisions", (n_outputs, n_rows), np.float64)
        self.new = memory.zeros("decisions", (n_outputs, n_rows), np.float64)
        self.duals = memory.zeros("dual variables", (n_rows, n_outputs), np.float32)
        memory.take(working_bytes(problem, has_gram))
        tables = {name: np.zeros(shape) for name, shape in table_shapes(problem, has_gram).items()}
        self.sums, self.gram, self.code_sums, self.tables = tables.values()
        self.codes = gram.empty_codes(problem.encoder, gram.piece_rows(problem.encoder, n_outputs, n_rows))
        self.is_bytes = is_bytes(problem)
        self.reads, self.has_old = 0, False

    def pieces(self):
        """Yield (first row, positions) of all rows in order; from the source where they are not in memory."""
        size, encoder = len(self.codes.columns), self.problem.encoder
        if self.is_bytes and not len(self.gram):
            size = max(TABLED_BYTES // (encoder.n_features + gram.WEIGHT_BYTES * self.problem.n_outputs), 1)
        if self.problem.positions is not None:
            for start in range(0, len(self.problem.positions), size):
                yield start, self.problem.positions[start : start + size]
            return
        buffer = np.empty((size, encoder.n_features), positions_dtype(encoder))
        with closing(self.problem.source.chunks()) as chunks:
            for chunk in chunks:
                X = chunk.dense()
                for start in range(0, len(X), size):
                    rows = X[start : start + size]
                    locate(encoder, rows, buffer[: len(rows)])
                    yield chunk.first_row + start, buffer[: len(rows)]
        self.reads += 1

    def run(self, coef, offset, outputs, n_threads, should_stop):
        """One pass at a point, for some outputs.

        Parameters
        ----------
        coef : float64 array, shape (n_features, n_basis, n_outputs)
            v, in phi units.
        offset : float64 array, shape (n_outputs,)
            Intercept of the uncentred code.
        outputs : int64 array
            Those whose sums are wanted.
        n_threads : int
            Threads.
        should_stop : callable
            Asked between pieces.

        Returns
        -------
        bool
            False where the pass was left, and its sums are of no use.
        """
        self.sums[...] = 0
        self.gram[...] = 0
        self.code_sums[...] = 0
        encoder = self.problem.encoder
        fixed = encoder.basis, every_code(encoder.n_features)
        if self.is_bytes:
            tabulate_codes(*fixed, coef, self.tables, make_scratch(encoder))
        with closing(self.pieces()) as pieces:
            for first_row, positions in pieces:
                if first_row and should_stop():
                    return False
                self.add(first_row, positions, coef, offset, outputs, n_threads)
        for code_sums, sums in zip(self.code_sums, self.sums, strict=False):  # none, or one for each output
            collect_codes(*fixed, code_sums, make_scratch(encoder), sums)
        self.has_old = True
        return True

    def add(self, first_row, positions, coef, offset, outputs, n_threads):
        """Add one piece of rows."""
        problem, encoder, n_rows = self.problem, self.problem.encoder, len(positions)
        own, codes = slice(first_row, first_row + n_rows), self.codes.rows(n_rows)
        scores = np.tile(offset, (n_rows, 1))
        n_encoded = 0 if self.is_bytes else problem.n_outputs
        if self.is_bytes:
            bounds = np.linspace(0, n_rows, n_threads + 1).astype(int)
            parts = [slice(*pair) for pair in pairwise(bounds)]
            run_threads(add_tables, [(positions[part], 0, self.tables, scores[part]) for part in parts], n_threads)
        if not self.is_bytes or len(self.gram):
            gram.encode(encoder, positions, coef[..., :n_encoded], codes, scores[:, :n_encoded], n_threads)
        self.new[:, own] = scores.T
        weights = np.empty((problem.n_outputs, 4, n_rows))
        before = self.old if self.has_old else self.new
        for o in outputs:
            weigh_rows(
                problem.loss.code, before[o, own], self.new[o, own], problem.targets[own], problem.costs[own],
                problem.positive[o], problem.cost[o], weights[o], self.duals[own], o,
            )  # fmt: skip
        shares = gram.shares_of_triangle(encoder.n_features, n_threads)
        if self.is_bytes:
            tasks = [(positions, weights[o], *share, self.code_sums[o]) for o in outputs for share in shares]
            run_threads(scatter_codes, tasks, n_threads)
        if not self.is_bytes or len(self.gram):
            sums = self.sums[:, : 0 if self.is_bytes else None]
            tasks = [(*codes, weights, outputs, share, encoder.is_local, sums, self.gram) for share in shares]
            run_threads(gram.add_rows, tasks, n_threads)

    def line(self, o, eta):
        """line_terms of an output."""
        problem = self.problem
        return line_terms(
            problem.loss.code, self.old[o], self.new[o], eta, problem.targets, problem.costs, problem.positive[o],
            problem.cost[o],
        )  # fmt: skip

    def dual_objectives(self):
        """D at the dual points of all outputs, float64 (n_outputs,), as the certificate means it."""
        problem, n_outputs = self.problem, self.problem.n_outputs
        factors = np.ones((2, n_outputs))
        if problem.intercept == "free":
            factors = balancing_factors(class_sums(self.duals, problem.targets, problem.positive))
        conjugates, balance = np.zeros(n_outputs), np.zeros(n_outputs)
        signed = np.empty((len(self.codes.columns), n_outputs))
        for start in range(0, len(self.duals), len(signed)):
            own = slice(start, start + len(signed))
            signed_dual_rows(
                problem.outputs(), self.duals[own], problem.targets[own], problem.costs[own], problem.folds[own],
                factors, signed, conjugates, balance,
            )  # fmt: skip
        total = factors[0] * self.sums[:, NEGATIVE].T + factors[1] * self.sums[:, POSITIVE].T
        shape = (problem.encoder.n_features, problem.encoder.n_basis, n_outputs)
        penalised = problem.intercept_square * balance**2 * (problem.intercept != "free")
        return conjugates - 0.5 * (dual_squared_norms(problem, total.reshape(shape), balance) + penalised)
