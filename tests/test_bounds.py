"""Bounds are rounded up."""

import pytest

from linadd.bounds import bound


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1.119549e-5, 2, "1.2e-05"), (0.00054559, 1, "0.0006"), (0.001, 2, "0.001"), (9.96e-4, 2, "0.001"),
        (0.0, 2, "0"), (float("inf"), 2, "inf"), (0.25, 2, "0.25"), (1.0, 1, "1"),
    ],
)  # fmt: skip
def test_what_is_printed_is_not_below_the_bound(value, digits, text):
    assert bound(value, digits) == text
    assert float(text) >= value
