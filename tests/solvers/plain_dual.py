"""The slow twin of the dual sweep: explicit codes, float64, one row after another. The specification of dual_cd.py."""

import numpy as np

from linadd.losses import dual_step, loss_value, projected_gradient
from tests.solvers.problems import costs_of, explicit_codes, signs_of


class PlainDual:
    """Duals (n_rows, n_outputs), w (n_outputs, p), intercept and balance sum a y of every output, from zero.

    share : 1 / (1 + kappa) of the proximal term of each output, centred on 0.
    """

    def __init__(self, problem, share, least_violation=0.0):
        self.Z, self.signs, self.costs = explicit_codes(problem), signs_of(problem), costs_of(problem)
        self.problem, self.square, self.least, self.share = problem, problem.intercept_square, least_violation, share
        n_rows, n_outputs = self.signs.shape
        self.duals, self.active = np.zeros((n_rows, n_outputs)), np.ones((n_rows, n_outputs), bool)
        self.w, self.intercept = np.zeros((n_outputs, self.Z.shape[1])), np.zeros(n_outputs)
        self.loss = np.zeros(n_outputs)
        self.from_limit = np.full((n_rows, n_outputs), np.inf)  # of the slope when it was last compared with a limit
        self.start_sweep(np.full((2, n_outputs), np.nan))

    @property
    def balance(self):
        """sum_i a_i y_i of every output."""
        return (self.duals * self.signs).sum(axis=0)

    def start_sweep(self, bounds):
        """Shrink by the bounds of the projected gradient of the last sweep; NaN for none."""
        low, high = bounds
        self.limits = np.array([np.where(low < 0, low, -np.inf), np.where(high > 0, high, np.inf)])
        self.bounds = np.array([np.full(len(low), np.inf), np.full(len(low), -np.inf)])

    def visit(self, i, is_first):
        """One step on every dual variable of row i."""
        code, square = self.problem.loss.code, self.Z[i] @ self.Z[i]
        for o in np.flatnonzero(self.active[i] & (self.costs[i] > 0)):
            dual, cost, sign = self.duals[i, o], self.costs[i, o], self.signs[i, o]
            margin = sign * (self.Z[i] @ self.w[o] + self.intercept[o])
            self.loss[o] += cost * loss_value(code, margin) * is_first
            if dual > 0.0 or self.problem.loss.is_shrinkable:
                gradient = projected_gradient(code, dual, margin, cost)
                self.bounds[:, o] = min(self.bounds[0, o], gradient), max(self.bounds[1, o], gradient)
                if abs(gradient) <= self.least:
                    slope = margin - 1.0 + (dual / (2 * cost) if not self.problem.loss.is_bounded else 0.0)
                    self.from_limit[i, o] = np.abs(slope - self.limits[:, o]).min()
                    is_out = slope > self.limits[1, o] or slope < self.limits[0, o]
                    if gradient == 0.0 and self.problem.loss.is_shrinkable and is_out:
                        self.active[i, o] = False
                    continue
            self.duals[i, o] = dual_step(code, dual, margin, self.share[o] * square + self.square, cost)
            step = sign * (self.duals[i, o] - dual)
            self.w[o] += self.share[o] * step * self.Z[i]
            self.intercept[o] += step * self.square
