"""Bounds as text: rounded away from what they bound, so that what is printed is true too."""

from decimal import ROUND_CEILING, Context

__all__ = ["bound"]


def bound(value, digits=2):
    """An upper bound in so many digits, rounded up: 1.119e-05 is at most `1.2e-05`."""
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(value)))  # as it is printed
    return f"{float(rounded):.{digits}g}"
