"""The slow twin of stochastic gradient: w, decay and average by their definitions. The specification of sgd.py."""

import numpy as np

from linadd.losses import dual_step, loss_slope, loss_value
from tests.solvers.problems import costs_of, explicit_codes, signs_of


class PlainSGD:
    """w, b and their average for every output, float64, from zero; n_expected is n of lambda = 1 / (n C)."""

    def __init__(self, problem, n_expected, schedule):
        self.problem, self.Z, self.signs = problem, explicit_codes(problem), signs_of(problem)
        self.weights, self.n_outputs = costs_of(problem) / problem.cost, problem.n_outputs
        self.strength, self.is_pegasos = 1 / (n_expected * problem.cost), schedule == "pegasos"
        self.start = 1.0 if self.is_pegasos else 2 * problem.centre.mean_norm / self.strength
        self.point = np.zeros((problem.n_outputs, self.Z.shape[1] + 1))  # b is the last column
        self.average, self.loss, self.t = self.point.copy(), np.zeros(problem.n_outputs), 0

    def visit(self, i):
        """One step of every output on row i; a row of weight 0 is none."""
        if self.weights[i, 0] == 0:
            return
        self.t += 1
        code, square = self.problem.loss.code, self.problem.intercept_square
        eta = 1 / (self.strength * (self.t + self.start)) * np.ones(self.n_outputs)
        row, norm = np.append(self.Z[i], square), self.Z[i] @ self.Z[i] + square
        for o in range(self.n_outputs):
            w, sign, weight = self.point[o], self.signs[i, o], self.weights[i, o]
            margin = sign * (self.Z[i] @ w[:-1] + w[-1])
            self.loss[o] += weight * loss_value(code, margin)
            step = -eta[o] * weight * loss_slope(code, margin)
            if not self.is_pegasos:  # the implicit step: the gradient where it ends
                step = dual_step(code, 0.0, margin, norm, eta[o] * weight)
            keep = 1 - eta[o] * self.strength[o]
            w[:-1] *= keep
            w[-1] *= keep if self.problem.intercept == "penalised" else 1.0
            w += sign * step * row
            if self.is_pegasos:
                w[:-1] *= min(1.0, 1 / np.sqrt(self.strength[o] * (w[:-1] @ w[:-1])))
        rho = 4 / (self.t + 3)
        self.average = (1 - rho) * self.average + rho * self.point
