"""What a problem derives from its parts."""

import numpy as np
import pytest

from linadd.encoders.rows import coef_shape
from linadd.solvers.base import FREE_INTERCEPT_SQUARE
from tests.solvers.problems import explicit_codes, make_run, toy


@pytest.mark.parametrize("n_classes", [2, 3, 16, 17, 40])
def test_coefficients_leave_the_lanes_in_the_order_of_the_outputs(n_classes):
    X, y = toy(n_rows=80, n_features=3, n_classes=n_classes)
    problem, _ = make_run(X, y, n_bins=4)
    n_outputs, lanes = problem.n_outputs, 1 if n_classes == 2 else 16
    shape = (-(-n_outputs // lanes), *coef_shape(problem.encoder, lanes))
    coef = np.full(shape, np.nan)
    for o in range(n_outputs):
        for j in range(3):
            for i in range(5):
                coef[o // lanes, j, i, o % lanes] = 100 * o + 10 * j + i
    o, j, i = np.meshgrid(np.arange(n_outputs), np.arange(3), np.arange(5), indexing="ij")
    expected = np.moveaxis(100 * o + 10 * j + i, 0, 2)
    np.testing.assert_array_equal(problem.encoder_coef(coef), expected)


def test_the_feature_of_the_intercept():
    X, y = toy()
    free, _ = make_run(X, y, scale="none", n_bins=5)
    mean_norm = (explicit_codes(free) ** 2).sum(axis=1).mean()
    np.testing.assert_allclose(free.intercept_square, FREE_INTERCEPT_SQUARE * mean_norm, rtol=1e-5)
    assert make_run(X, y, intercept="penalised", intercept_scale=3.0)[0].intercept_square == 9.0
    assert make_run(X, y, intercept="none", intercept_scale=3.0)[0].intercept_square == 0.0


def test_two_classes_have_one_output_and_more_have_one_each():
    X, y = toy(n_classes=2)
    assert make_run(X, y)[0].positive.tolist() == [1]
    X, y = toy(n_classes=3)
    assert make_run(X, y, C=2.0)[0].positive.tolist() == [0, 1, 2]
    assert make_run(X, y, C=2.0)[0].cost.tolist() == [2.0, 2.0, 2.0]
