"""The problem, fixed, and what a solver returns; every solver file states its objective above its loop.

    minimise  sum_o [ 1/2 sum_j |D_d v_jo|^2 / s_j^2 + intercept penalty + sum_i C_io loss(y_io f_o(x_i)) ]

with f_o(x) = sum_j v_jo . (phi(x_j) - phibar_j) + b_o, s_j the scale of a feature and y_io = +1 where row i is of the
positive class of output o, else -1.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from linadd._simd import N_LANES, aligned_zeros
from linadd.census import Census
from linadd.encoders.base import Encoder
from linadd.encoders.centring import Centre
from linadd.encoders.rows import Rows, coef_shape
from linadd.losses import Loss
from linadd.solvers.memory import Memory
from linadd.solvers.outputs import Outputs
from linadd.solvers.plan import Plan

# Square of the intercept's feature, in units of the mean squared row norm, when the intercept is free: small values
# converge fastest (a value of 1 took 3 times, 10 took 10-30 times the epochs).
FREE_INTERCEPT_SQUARE = 0.1


@dataclass(frozen=True)
class Problem:
    """What is minimised, over which rows.

    Attributes
    ----------
    source : Source
        The training rows.
    census : Census
        Of the same rows.
    encoder : Encoder
        Fitted.
    centre : Centre
        Scale and mean of the embedding.
    loss : Loss
        Row of the table of losses.
    targets : int32 array, shape (n_rows,)
        Place of each row's label in the sorted classes.
    costs : float32 array, shape (n_rows,)
        Class weight times sample weight of each row, a factor of C.
    folds : int16 array, shape (n_rows,)
        Fold of each row; 0 where there are none.
    positions : array, shape (n_rows, n_features), Rows of sparse rows, or None
        All rows as the solver keeps them, positions or codes, where they fit the memory limit.
    positive : int32 array, shape (n_outputs,)
        Place in the classes of each output's positive class.
    cost : float64 array, shape (n_outputs,)
        C of each output.
    held_out : int16 array, shape (n_outputs,)
        Fold whose rows cost an output nothing; -1 where it is trained on all rows. Only dual-cd trains on folds.
    intercept : {"free", "penalised", "none"}
        Kind of intercept.
    intercept_scale : float
        B, feature value of a penalised intercept.
    """

    source: object
    census: Census
    encoder: Encoder
    centre: Centre
    loss: Loss
    targets: np.ndarray
    costs: np.ndarray
    folds: np.ndarray
    positions: np.ndarray | Rows | None
    positive: np.ndarray
    cost: np.ndarray
    held_out: np.ndarray
    intercept: str = "free"
    intercept_scale: float = 1.0

    @property
    def n_outputs(self):
        """Columns of the decision."""
        return len(self.positive)

    @property
    def intercept_square(self):
        """Square of the intercept's feature value, as the dual solver and SGD use it."""
        if self.intercept == "free":
            # With tiny costs the duals sum to little, and b would hardly move in an epoch.
            total_cost = float(self.cost.max()) * self.census.weight_sum
            return max(FREE_INTERCEPT_SQUARE * self.centre.mean_norm, 1.0 / total_cost)
        return self.intercept_scale**2 if self.intercept == "penalised" else 0.0

    def values(self, chunk):
        """The rows of a Chunk as the exact loops take them: an array, or a csr_array where rows are sparse."""
        return chunk.sparse() if self.centre.is_sparse else chunk.dense()

    def outputs(self, least_violation=0.0):
        """The outputs as compiled loops take them."""
        return Outputs(
            self.loss.code, self.positive, self.cost, self.held_out, self.intercept_square, least_violation
        )  # fmt: skip

    def encoder_coef(self, coef):
        """Solver's coefficients (n_groups, n_features, basis, lanes) as (n_features, n_basis, n_outputs)."""
        flat = np.moveaxis(coef[:, :, : self.encoder.n_basis], 0, 2)
        return flat.reshape(*flat.shape[:2], -1)[:, :, : self.n_outputs]

    def solver_coef(self, coef):
        """Coefficients (n_features, n_basis, n_outputs) as a solver keeps them: the inverse of `encoder_coef`."""
        lanes = 1 if self.n_outputs == 1 else N_LANES
        n_groups, shape = -(-self.n_outputs // lanes), coef_shape(self.encoder, lanes)
        solver = aligned_zeros((n_groups, *shape))
        for o in range(self.n_outputs):
            solver[o // lanes, :, : self.encoder.n_basis, o % lanes] = coef[:, :, o]
        return solver

    def mean_scores(self, coef):
        """v . m of each output, float64 (n_outputs,): what separates the intercepts with and without centre."""
        return np.einsum("jlo,jl->o", np.asarray(coef, np.float64), self.centre.mean_code)


class Start(NamedTuple):
    """Where a solver begins, if not at zero."""

    coef: np.ndarray  # float32 (n_features, n_basis, n_outputs): v
    intercept: np.ndarray  # float64 (n_outputs,): of the uncentred code
    n_rows: int  # that it was trained on


@dataclass(frozen=True)
class Run:
    """How to solve: everything that changes the path to the optimum, not the optimum.

    Attributes
    ----------
    plan : Plan
        Order of the rows.
    tol : float
        Relative duality gap to reach, or the violation of a compat rule.
    max_epochs : int
        Passes at most.
    memory : Memory
        Account of the memory limit.
    n_threads : int
        Threads; never changes the result.
    stop_on : {"gap", "violation"}
        The declared stopping rule; violation is LIBLINEAR's.
    options : dict
        Options of one solver only.
    on_epoch : callable
        Called with each record of the history.
    should_stop : callable
        Asked after each block; True ends the run there (Ctrl-C).
    watch : callable or None
        Called with (coef, intercept) after each pass: returns entries for its record, and whether to end the run there.
    freezes : bool
        Leave an output alone once its certified gap is within `tol`, so that slow ones do not hold up the others.
    start : Start or None
        Where to begin; only for the solvers whose list entry says so.
    """

    plan: Plan
    memory: Memory
    tol: float = 1e-3
    max_epochs: int = 50
    n_threads: int = 1
    stop_on: str = "gap"
    options: dict = field(default_factory=dict)
    on_epoch: Callable = lambda record: None
    should_stop: Callable = lambda: False
    watch: Callable | None = None
    freezes: bool = False
    start: Start | None = None

    def look(self, point):
        """`watch` of what the callable `point` gives, (coef, intercept); ({}, False) where nothing is watched."""
        return ({}, False) if self.watch is None else self.watch(*point())


@dataclass
class SolverResult:
    """What a solver found.

    Attributes
    ----------
    coef : float32 array, shape (n_features, n_basis, n_outputs)
        v, in phi units.
    intercept : float64 array, shape (n_outputs,)
        Of the uncentred code: the centre is folded in.
    converged : bool
        The declared stopping rule was met.
    passes, reads : int
        Passes over the data during optimisation; reads of the source in all.
    history : list of dict
        One record an epoch.
    certificate : Certificate or None
        Primal and dual bounds a output; None where the solver has none.
    interrupted : bool
        Stopped by Ctrl-C.
    gap_on_codes : float or None
        Relative duality gap, of the worst output, of the problem on the codes that the rows were kept as, where the
        certified gap of the rows themselves did not reach `tol`; else None.
    """

    coef: np.ndarray
    intercept: np.ndarray
    converged: bool
    passes: int
    reads: int
    history: list
    certificate: object = None
    interrupted: bool = False
    gap_on_codes: float | None = None
