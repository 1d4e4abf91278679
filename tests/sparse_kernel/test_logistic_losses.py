"""Compiled loss sums against SciPy, also where exp overflows and across the groups of a product."""

import numpy as np
import pytest
from scipy.special import logsumexp

from linadd.sparse_kernel.logistic_losses import GROUP, add_logistic_losses, logistic_losses, softmax_losses


@pytest.mark.parametrize("n_rows", [1, GROUP - 1, GROUP, GROUP + 1, 3 * GROUP + 7])
def test_logistic_losses_for_any_number_of_rows(n_rows):
    rng = np.random.default_rng(n_rows)
    F, target = rng.normal(0, 3, size=(n_rows, 3)), rng.integers(2, size=n_rows).astype(float)
    expected = np.sum(np.logaddexp(0, F) - target[:, None] * F, axis=0)
    np.testing.assert_allclose(logistic_losses(F, np.exp(-np.abs(F)), target), expected, rtol=1e-13)


def test_losses_of_zero_are_log_two_exactly_enough():
    """All factors are 2: the product of a group, 2^512, must not overflow."""
    F = np.zeros((2 * GROUP, 1))
    np.testing.assert_allclose(logistic_losses(F, np.ones_like(F), np.zeros(2 * GROUP)), 2 * GROUP * np.log(2))


@pytest.mark.parametrize("size", [1e3, 1e9])
def test_extremes_are_finite(size):
    F, target = np.array([[size], [-size]]), np.array([1.0, 0.0])
    np.testing.assert_array_equal(logistic_losses(F, np.exp(-np.abs(F)), target), [0.0])
    np.testing.assert_allclose(logistic_losses(F, np.exp(-np.abs(F)), 1 - target), [2 * size])
    outputs = np.stack([F, -F])
    onehot = np.array([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(softmax_losses(outputs, onehot, False), [0.0])
    np.testing.assert_allclose(softmax_losses(outputs, onehot[::-1], False), [4 * size])


@pytest.mark.parametrize("has_reference", [False, True])
def test_softmax_losses_equal_scipy(has_reference):
    rng = np.random.default_rng(1)
    F, y = rng.normal(0, 3, size=(3, 50, 4)), rng.integers(3 + has_reference, size=50)
    targets = (y == np.arange(3)[:, None]).astype(float)
    everything = np.concatenate([F, np.zeros((1, 50, 4))]) if has_reference else F
    expected = np.sum(logsumexp(everything, axis=0) - everything[y, np.arange(50)], axis=0)
    np.testing.assert_allclose(softmax_losses(F, targets, has_reference), expected, rtol=1e-13)


def test_one_compiled_version_serves_a_fit():
    """Columns of any origin are made contiguous before the loop: no second signature."""
    F = np.random.default_rng(2).normal(size=(20, 2))
    logistic_losses(F, np.exp(-np.abs(F)), np.zeros((20, 3))[:, 1])
    logistic_losses(F, np.exp(-np.abs(F)), np.zeros(20))
    if hasattr(add_logistic_losses, "signatures"):  # absent with the compiler off
        assert len(add_logistic_losses.signatures) == 1
