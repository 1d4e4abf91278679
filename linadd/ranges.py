"""What a model does with values outside the training range of their feature, and the counts of such values.

    clamp    score as the nearer end of the range
    report   the same, and say so
    linear   continue the curve by the straight line of its slope at that end
    error    refuse the row

A policy of a whole model is text such as `clamp` or `linear,age=clamp,3=error`: the policy of all features, then those
of single ones, by name or by number from 1. Values that are not finite are refused under every policy.
"""

import numpy as np

from linadd.choices import RANGE_POLICIES
from linadd.errors import ConfigError, DataError

__all__ = ["count_outside", "feature_policies", "refuse_outside", "widened"]

WIDENING = 1 / 8  # of the span


def feature_policies(policy, n_features, feature_names=None):
    """The policy of each feature.

    Parameters
    ----------
    policy : str, or sequence of str
        As above, or the policy of each feature.
    n_features : int
        Number of features.
    feature_names : list of str, optional
        Their names.

    Returns
    -------
    array of str, shape (n_features,)

    Raises
    ------
    ConfigError
        On a policy or a feature that does not exist.
    """
    if not isinstance(policy, str):
        for own in policy:
            check_policy(own)
        return np.array(policy, "U6")
    whole, *single = policy.split(",")
    check_policy(whole)
    policies = np.full(n_features, whole, "U6")
    for part in single:
        name, mark, own = part.rpartition("=")
        if not mark:
            raise ConfigError(f"range: {part!r} is not FEATURE=POLICY. Write it as linear,age=clamp,3=error.")
        check_policy(own)
        policies[feature_index(name, n_features, feature_names)] = own
    return policies


def check_policy(name):
    """Raise ConfigError unless it is one of the policies."""
    if name not in RANGE_POLICIES:
        raise ConfigError(f"range: {name!r} is not one of {', '.join(RANGE_POLICIES)}.")


def feature_index(name, n_features, feature_names):
    """Index of a feature by its name, or by its number from 1."""
    n_named = (feature_names or []).count(name)
    if n_named > 1:
        where = f"Give their numbers, from 1 to {n_features}."
        raise ConfigError(f"range: {n_named} features have the name {name!r}. {where}")
    if n_named:
        return feature_names.index(name)
    if name.isdecimal() and 1 <= int(name) <= n_features:
        return int(name) - 1
    raise ConfigError(f"range: {name!r} is no feature of the model. Give a name, or a number from 1 to {n_features}.")


def count_outside(X, ranges):
    """How many values of each feature lie outside its range.

    Parameters
    ----------
    X : array, shape (n_rows, n_features)
        Feature values.
    ranges : float64 array, shape (n_features, 2)
        Lowest and highest training value; infinite where there is no bound.

    Returns
    -------
    int64 array, shape (2, n_features)
        Values below and above.
    """
    return np.stack([(ranges[:, 0] > X).sum(axis=0), (ranges[:, 1] < X).sum(axis=0)])


def refuse_outside(X, ranges, is_refused, origin="array", feature_names=None, row_number=lambda i: i + 1):
    """Raise DataError on the first value outside the range of a feature of the policy `error`.

    Parameters
    ----------
    X, ranges
        As in `count_outside`.
    is_refused : bool array, shape (n_features,)
        Features of that policy.
    origin : str
        Name of the data.
    feature_names : list of str, optional
        Names of the columns.
    row_number : callable
        Row index to the number that the message gives.
    """
    outside = is_refused & ((ranges[:, 0] > X) | (ranges[:, 1] < X))
    if outside.any():
        i, j = (int(index) for index in np.argwhere(outside)[0])
        lower, upper = ranges[j]
        raise DataError(
            f"the value {X[i, j]} is outside the training range {lower:g} to {upper:g}, and the range policy is error. "
            "Drop this row, or use another policy, such as clamp (--range clamp).",
            source=origin, row=row_number(i), column=feature_names[j] if feature_names else j + 1,
        )  # fmt: skip


def widened(ranges, is_widened):
    """Ranges with an eighth of their span added at both ends of some features, float64 (n_features, 2).

    Parameters
    ----------
    ranges : float64 array, shape (n_features, 2)
        Lowest and highest value.
    is_widened : bool array, shape (n_features,)
        Which ones to widen.
    """
    lower, upper = ranges.T
    margin = np.where(is_widened & np.isfinite(lower), WIDENING * (upper - lower), 0.0)
    largest = np.finfo(np.float64).max
    wide = np.stack([lower - margin, upper + margin], axis=1)
    return np.where(np.isfinite(ranges), np.clip(wide, -largest, largest), ranges)
