"""Laws over the list of losses, and the values that the literature gives."""

import numpy as np
import pytest

from linadd import losses
from linadd.losses import HINGE, LOGISTIC, LOSSES, SQUARED_HINGE
from tests.checks.check_loss import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", LOSSES)
def test_law(name, check):
    check(LOSSES[name])


def test_codes_are_distinct():
    assert len({loss.code for loss in LOSSES.values()}) == len(LOSSES)


def test_values_by_hand():
    margins = [-1.0, 0.0, 0.5, 1.0, 2.0]
    expected = {
        HINGE: [2.0, 1.0, 0.5, 0.0, 0.0],
        SQUARED_HINGE: [4.0, 1.0, 0.25, 0.0, 0.0],
        LOGISTIC: [np.log(1 + np.exp(-m)) for m in margins],
    }
    for code, values in expected.items():
        np.testing.assert_allclose([losses.loss_value(code, m) for m in margins], values, rtol=1e-15)


@pytest.mark.parametrize("x", [-1e9, -800.0, -40.0, -1.0, 0.0, 1.0, 40.0, 800.0, 1e9])
def test_log1p_exp_and_sigmoid_neither_overflow_nor_lose_digits(x):
    np.testing.assert_allclose(losses.log1p_exp(x), np.logaddexp(0.0, x), rtol=1e-15)
    np.testing.assert_allclose(losses.sigmoid(x), np.exp(-np.logaddexp(0.0, -x)), rtol=1e-14)


def test_the_hinge_step_is_liblinears():
    # Hsieh et al., equation 9: a <- min(max(a - G / Q, 0), C).
    assert losses.dual_step(HINGE, 0.5, 0.2, 4.0, 1.0) == 0.5 + 0.8 / 4.0
    assert losses.dual_step(HINGE, 0.5, 0.2, 1.0, 1.0) == 1.0
    assert losses.dual_step(HINGE, 0.5, 3.0, 1.0, 1.0) == 0.0


def test_a_hinge_row_of_norm_zero_goes_where_its_gradient_points():
    assert [losses.dual_step(HINGE, 0.5, margin, 0.0, 2.0) for margin in (0.0, 1.0, 2.0)] == [2.0, 0.5, 0.0]


def test_the_logistic_step_keeps_digits_at_both_ends():
    # With norm 0 the root is known: a = C sigmoid(-margin), down to the smallest floats and up to C.
    for margin in (-700.0, -30.0, 0.0, 30.0, 700.0):
        expected = 3.0 * np.exp(-np.logaddexp(0.0, margin))
        np.testing.assert_allclose(losses.dual_step(LOGISTIC, 1.0, margin, 0.0, 3.0), expected, rtol=1e-14)


def test_only_the_logistic_loss_estimates_probabilities():
    assert [name for name, loss in LOSSES.items() if loss.has_probabilities] == ["logistic"]


def test_shrinkable_duals_reach_their_bounds():
    for loss in LOSSES.values():
        at_zero = losses.dual_step(loss.code, 0.5, 50.0, 1.0, 1.0) == 0.0
        assert at_zero == loss.is_shrinkable
