"""The list of solvers: name -> what it declares and the module that solves."""

import logging
from typing import NamedTuple

from linadd.solvers import dual_cd, liblinear, newton, sgd

log = logging.getLogger(__name__)

MAX_NEWTON_COLUMNS = 2000  # coefficients an output, up to which `auto` takes Newton's method


class Solver(NamedTuple):
    """What the rest of the program knows of a solver."""

    solve: object  # (problem, run) -> SolverResult
    certifies: bool  # reports a duality gap without extra reads
    starts: bool = False  # from the coefficients of `run.start`, where there are any


SOLVERS = {
    "dual-cd": Solver(dual_cd.solve, True),
    "newton": Solver(newton.solve, True, True),
    "sgd": Solver(sgd.solve, False, True),
    "liblinear": Solver(liblinear.solve, False),
}


def choose_solver(problem, run):
    """Name of the solver that `auto` stands for: newton where it takes the fewest passes, else dual-cd.

    Newton's method needs a smooth loss, at most 2,000 coefficients an output, Gram matrices within a quarter of the
    memory limit, and all that it takes within what is left of that. An option that dual-cd alone has (`stop_on`,
    `partial_solutions`) asks for dual-cd, and so do sparse rows.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    run : Run
        `options` holds memory_limit and partial_solutions.
    """
    n_columns = problem.encoder.n_features * problem.encoder.n_basis
    is_asked_for_dual = run.stop_on != "gap" or run.options["partial_solutions"] != "auto" or problem.centre.is_sparse
    can_newton = problem.loss.is_smooth and n_columns <= MAX_NEWTON_COLUMNS and not is_asked_for_dual
    fits = can_newton and newton.gram_bytes(problem) <= run.options["memory_limit"] // 4
    name = "newton" if fits and newton.missing_bytes(problem, run) <= 0 else "dual-cd"
    log.info("solver auto: %s, for %d outputs of %d coefficients.", name, problem.n_outputs, n_columns)
    return name
