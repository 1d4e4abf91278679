"""The running sums of the penalty against the explicit difference matrices."""

import numpy as np
import pytest

from linadd import penalty
from linadd.errors import ConfigError

# Running sums and a matrix inverse differ by rounding: d sums of n terms, sizes up to n^d.
SHAPES = [(n, d) for n in (1, 2, 5, 17) for d in range(4)]


def difference_matrix(n, d):
    """D_d = D_1^d, D_1 with 1 on the diagonal and -1 just below it."""
    return np.linalg.matrix_power(np.eye(n) - np.eye(n, k=-1), d)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_running_sums_are_the_matrix_inverses(n, d):
    D, a = difference_matrix(n, d), np.random.default_rng(n).normal(size=(3, 2, n))
    inverse = np.linalg.inv(D)
    scale = np.abs(inverse).sum(axis=0).max() ** 2
    np.testing.assert_allclose(penalty.penalised_code(a, d), a @ inverse, atol=1e-14 * scale)
    np.testing.assert_allclose(penalty.from_penalised(a, d), a @ inverse.T, atol=1e-14 * scale)
    np.testing.assert_allclose(penalty.differences(a, d), a @ D.T, atol=1e-14 * scale)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_update_table_is_the_inverse_of_both_matrices(n, d):
    D = difference_matrix(n, d)
    # Whole numbers below 2^53: the sums are exact.
    np.testing.assert_array_equal(penalty.update_table(n, d), np.rint(np.linalg.inv(D.T @ D)))


def test_update_table_of_order_one_is_a_ramp():
    i = np.arange(1, 8)
    np.testing.assert_array_equal(penalty.update_table(7, 1), np.minimum(i[:, None], i))


@pytest.mark.parametrize("function", [penalty.penalised_code, penalty.from_penalised, penalty.differences])
@pytest.mark.parametrize("order", [0, 2])
def test_the_input_is_left_alone_and_the_result_is_float64(function, order):
    values = np.ones((2, 5), np.float32)
    result = function(values, order)
    assert result.dtype == np.float64
    assert not np.shares_memory(result, values)
    np.testing.assert_array_equal(values, np.ones((2, 5)))


def test_differences_undo_from_penalised():
    w = np.random.default_rng(0).integers(-9, 9, size=(4, 12)).astype(np.float64)
    for order in range(4):
        np.testing.assert_array_equal(penalty.differences(penalty.from_penalised(w, order), order), w)


@pytest.mark.parametrize(("order", "n_basis"), [(0, 10_000), (2, 10_000), (3, 20), (np.int64(1), 3)])
def test_orders_that_can_work(order, n_basis):
    penalty.check_order(order, n_basis)


@pytest.mark.parametrize("order", [-1, 4, 1.5, "1", None])
def test_an_order_outside_the_range_is_refused(order):
    with pytest.raises(ConfigError) as caught:
        penalty.check_order(order, 10)
    assert str(caught.value) == f"penalty_order: {order!r} is not one of 0, 1, 2, 3."


def test_order_three_is_refused_where_float32_would_be_noise():
    with pytest.raises(ConfigError) as caught:
        penalty.check_order(3, 21)
    assert str(caught.value) == (
        "penalty_order: 3 with 21 basis functions has a condition number above 5e7, beyond float32. "
        "Use at most 20 (n_bins + degree), or penalty_order 2."
    )


def test_the_bound_of_order_three_is_where_the_message_says():
    largest = penalty.MAX_BASIS_ORDER_3
    # The message says so of every refused table, hence of the first one.
    assert np.linalg.cond(penalty.update_table(largest + 1, 3)) > 5e7
    assert np.linalg.cond(penalty.update_table(largest - 1, 3)) < 5e7
