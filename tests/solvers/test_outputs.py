"""Outputs: what a row costs each of them."""

import numpy as np

from linadd.solvers.outputs import NO_FOLD, Outputs, row_cost, row_costs

OUTPUTS = Outputs(
    0, np.array([1, 0, 2], np.int32), np.array([0.5, 2.0, 3.0]), np.array([NO_FOLD, 0, 2], np.int16), 0.1, 1e-3
)


def test_a_row_costs_nothing_where_its_fold_is_held_out():
    costs = [[row_cost(OUTPUTS, o, 4.0, fold) for fold in range(3)] for o in range(3)]
    assert costs == [[2.0, 2.0, 2.0], [0.0, 8.0, 8.0], [12.0, 12.0, 0.0]]


def test_all_rows_cost_what_each_of_them_does():
    factors, folds = np.array([1.0, 0.0, 2.0, 0.5], np.float32), np.array([0, 1, 2, 2], np.int16)
    for o in range(3):
        expected = [row_cost(OUTPUTS, o, factor, fold) for factor, fold in zip(factors, folds, strict=True)]
        costs = row_costs(OUTPUTS, o, factors, folds)
        assert costs.tolist() == expected and costs.dtype == np.float64


def test_some_outputs_keep_the_constants():
    some = OUTPUTS.take(np.array([2, 0]))
    assert some.positive.tolist() == [2, 1] and some.cost.tolist() == [3.0, 0.5] and some.held_out.tolist() == [2, -1]
    assert (some.code, some.intercept_square, some.least_violation) == (0, 0.1, 1e-3)
