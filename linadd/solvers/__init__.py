"""The list of solvers: name -> what it declares and the module that solves."""

from typing import NamedTuple

from linadd.solvers import dual_cd, liblinear, sgd


class Solver(NamedTuple):
    """What the rest of the program knows of a solver."""

    solve: object  # (problem, run) -> SolverResult
    certifies: bool  # reports a duality gap without extra reads


SOLVERS = {
    "dual-cd": Solver(dual_cd.solve, True),
    "sgd": Solver(sgd.solve, False),
    "liblinear": Solver(liblinear.solve, False),
}
