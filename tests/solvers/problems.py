"""Small problems for the solvers, made by the same steps as `train` makes them, and their explicit codes."""

import numpy as np
from scipy.special import xlogy

from linadd.embedding import embed
from linadd.encoders.exact import encode
from linadd.losses import HINGE, SQUARED_HINGE
from linadd.options import Options
from linadd.penalty import penalised_code
from linadd.solvers.base import Run
from linadd.solvers.memory import Memory
from linadd.sources import open_source
from linadd.train import Progress, make_problem, plan_of, survey, train

LOSSES = ("hinge", "squared_hinge", "logistic")


class Full(Memory):
    """An account that has no place for what grows with the rows."""

    def zeros(self, name, shape, dtype):
        """In a file."""
        with self.scope(unused=-self.left):
            return super().zeros(name, shape, dtype)


def toy(n_rows=120, n_features=4, n_classes=2, noise=0.5, seed=0):
    """Gaussian rows whose label follows a curve, with some noise: (X, y)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    score = X[:, 0] ** 2 + X[:, 1 % n_features] + noise * rng.standard_normal(n_rows)
    ranks = np.argsort(np.argsort(score))
    return X, ranks * n_classes // n_rows


def thin(X, density=0.4, seed=0):
    """X with zeros in the place of most values."""
    return np.where(np.random.default_rng(seed).random(X.shape) < density, X, 0.0)


def fit(X, y=None, weights=None, chunk_rows=None, **choices):
    """The model of rows in memory, or of a path, under options."""
    return train(open_source(X, y, weights=weights, chunk_rows=chunk_rows), Options(**choices))


def make_run(X, y, weights=None, chunk_rows=None, **choices):
    """(Problem, Run) of rows in memory under options."""
    options = Options(**choices)
    source = open_source(X, y, weights=weights, chunk_rows=chunk_rows)
    census, memory = survey(source, options, Progress()), Memory(options.memory_limit)
    plan = plan_of(source, options, census)
    problem = make_problem(source, embed(source, options, plan, memory, Progress(), census), options)
    run = Run(
        plan, memory, options.tol, options.max_epochs, options.n_jobs, options.stop_on, options.record()
    )  # fmt: skip
    return problem, run


def penalty_order(problem):
    """d, as it enters the code: dense bases have no difference penalty."""
    return problem.encoder.penalty_order if problem.encoder.is_local else 0


def mean_code(problem):
    """m, the mean of s phi^d that centring subtracts, float64 (n_features * n_basis,)."""
    mean = penalised_code(problem.centre.mean_code, penalty_order(problem))
    return (mean * problem.centre.scale[:, None]).ravel()


def explicit_codes(problem):
    """z_i = s phi^d(x_i) - m for all rows, float64 (n_rows, n_features * n_basis)."""
    X = np.concatenate([chunk.dense() for chunk in problem.source.chunks()])
    codes = encode(problem.encoder, X.astype(np.float64), penalised=True).toarray()
    return codes * np.repeat(problem.centre.scale, problem.encoder.n_basis) - mean_code(problem)


def difference_matrix(n_basis, order):
    """D_d: D_1 is 1 on the diagonal, -1 below it."""
    return np.linalg.matrix_power(np.eye(n_basis) - np.eye(n_basis, k=-1), order)


def weights_of(problem, coef):
    """w of coefficients v (n_features, n_basis, n_outputs): D_d v / s, float64 (n_outputs, n_features * n_basis)."""
    D = difference_matrix(problem.encoder.n_basis, penalty_order(problem))
    scale = np.where(problem.centre.scale > 0, problem.centre.scale, np.inf)
    w = np.einsum("kl,jlo->ojk", D, np.asarray(coef, np.float64)) / scale[:, None]
    return w.reshape(len(w), -1)


def signs_of(problem):
    """y_io, -1 or +1, float64 (n_rows, n_outputs)."""
    return np.where(problem.targets[:, None] == problem.positive, 1.0, -1.0)


def costs_of(problem):
    """C_io, float64 (n_rows, n_outputs)."""
    return problem.costs[:, None].astype(np.float64) * problem.cost


def conjugates(problem, duals):
    """The terms of the dual objective, float64 (n_rows, n_outputs)."""
    a, costs = np.asarray(duals, np.float64), costs_of(problem)
    if problem.loss.code == HINGE:
        return a
    if problem.loss.code == SQUARED_HINGE:
        return a - a**2 / (4 * costs)
    a = np.minimum(a, costs)
    return -xlogy(a, a / costs) - xlogy(costs - a, 1 - a / costs)


def loss_values(problem, margins):
    """The loss at margins of any shape, float64."""
    if problem.loss.code == HINGE:
        return np.maximum(0, 1 - margins)
    if problem.loss.code == SQUARED_HINGE:
        return np.maximum(0, 1 - margins) ** 2
    return np.logaddexp(0, -margins)
