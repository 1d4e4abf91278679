"""What each output is trained for, for compiled loops, and the cost of a row for it.

Outputs are columns of the decision: classes, and in a search also values of C and held-out folds. They differ in their
positive class, their C and the fold whose rows they never see; all else of a row is shared, so one stream of rows
trains them all. `row_cost` is the only place where a loop learns what a row costs.
"""

from typing import NamedTuple

import numpy as np

from linadd._jit import compiled

NO_FOLD = -1  # held out of an output that sees all rows


class Outputs(NamedTuple):
    """The outputs of a problem, and the constants of a solver that its loops need with them."""

    code: int  # of the loss
    positive: np.ndarray  # int32 (n_outputs,): place in the classes
    cost: np.ndarray  # float64 (n_outputs,): C
    held_out: np.ndarray  # int16 (n_outputs,): fold whose rows cost nothing; NO_FOLD for none
    intercept_square: float
    least_violation: float  # rows that violate less are left alone

    def take(self, which):
        """The outputs of these indices."""
        return self._replace(
            positive=self.positive[which], cost=self.cost[which], held_out=self.held_out[which]
        )  # fmt: skip


@compiled
def row_cost(outputs, o, factor, fold):
    """C_io of a row with that factor of C in that fold; 0 where the fold is held out of output o."""
    return 0.0 if fold == outputs.held_out[o] else outputs.cost[o] * factor


@compiled
def row_costs(outputs, o, factors, folds):
    """`row_cost` of every row, float64 (n_rows,)."""
    costs = np.empty(factors.shape[0])
    for i in range(factors.shape[0]):
        costs[i] = row_cost(outputs, o, factors[i], folds[i])
    return costs
