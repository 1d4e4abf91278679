"""Findings about columns: each has its own input, its words, and a neighbour that is none."""

import numpy as np
import pytest

from linadd.doctor import diagnose
from linadd.doctor.columns import find_outlier, tells_label

N_ROWS = 400
RNG = np.random.default_rng(0)
NORMAL = RNG.standard_normal(N_ROWS)
Y = np.arange(N_ROWS) % 2
NAMES = ["age", "height", "dose, mg"]


def findings(columns, y=Y, names=None, dtype=np.float64, **options):
    """The findings by kind, of columns beside a normal one."""
    import pandas as pd

    X = np.stack([NORMAL, *columns], axis=1).astype(dtype)
    data = X if names is None else pd.DataFrame(X, columns=["base", *names])
    return {finding.kind: finding for finding in diagnose(data, y=y, **options).findings}


def with_values(places, value):
    """Normal values but for some."""
    column = RNG.standard_normal(N_ROWS)
    column[places] = value
    return column


def test_clean_columns_have_no_finding():
    assert findings([RNG.standard_normal(N_ROWS), RNG.integers(0, 2, N_ROWS)]) == {}


def test_missing_values():
    found = findings([with_values([3, 9], np.nan), with_values(slice(5, 300), np.nan), NORMAL + 1], names=NAMES)
    assert found.keys() == {"missing-values"}
    found = found["missing-values"]
    assert found.severity == "error"
    assert found.what == "NaN in 2 columns, 297 values: height (295) and age (2)."
    assert (found.columns, found.rows) == (["height", "age"], [4])
    assert found.remedy == (
        "linadd takes no NaN or infinity: fill these values or drop the rows. Leave out what is mostly missing: "
        "linadd train 'pandas frame' MODEL --drop height"
    )


def test_infinite_values():
    found = findings([with_values(11, -np.inf)])["infinite-values"]
    assert (found.what, found.columns, found.rows) == ("infinity in 1 column, 1 value: 2 (1).", [2], [12])
    assert found.remedy == "linadd takes no NaN or infinity: fill these values or drop the rows."


def test_constant_columns():
    found = findings([np.full(N_ROWS, 7.0)] * 5)["constant-columns"]
    assert (found.severity, found.what) == ("warning", "a single value in 5 columns: 2, 3, 4 and 2 more.")
    assert found.columns == [2, 3, 4, 5, 6]
    assert found.remedy == "A constant contributes nothing. Leave it out: linadd train array MODEL --drop 2-6"
    found = {finding.kind: finding for finding in diagnose(np.ones((N_ROWS, 2)), y=Y).findings}["constant-columns"]
    assert found.remedy == "A constant contributes nothing. Give data whose columns vary."


def test_a_sample_says_so(monkeypatch):
    monkeypatch.setattr("linadd.doctor.profile.SAMPLE_ROWS", 256)
    found = findings([np.zeros(N_ROWS)])["constant-columns"]
    assert found.what == "a single value in all 256 rows looked at in 1 column: 2."


def test_equal_columns():
    column = RNG.standard_normal(N_ROWS)
    found = findings([column, NORMAL, column, np.append(column[:-1], 9)], names=["a", "b", "c", "d"])
    found = found["duplicate-columns"]
    assert found.what == "copies of other columns, equal in every row looked at: base = b and a = c."
    assert (found.severity, found.columns) == ("warning", ["b", "c"])
    assert found.remedy == (
        "Equal columns share one curve between them. Keep one of each: linadd train 'pandas frame' MODEL --drop b,c"
    )


def test_names_with_commas_are_given_one_by_one():
    found = findings([np.zeros(N_ROWS), NORMAL**2, np.ones(N_ROWS)], names=NAMES)["constant-columns"]
    assert found.remedy.endswith("linadd train 'pandas frame' MODEL --drop age --drop 'dose, mg'")


def test_two_columns_of_one_name():
    found = findings([NORMAL**2, NORMAL**3], names=["a", "a"])["duplicate-names"]
    assert (found.severity, found.what, found.columns) == ("warning", "several columns of one name: a.", ["a", "a"])
    assert found.remedy == "Give each column its own name."


def test_the_label_among_the_features():
    found = findings([Y * 3 + RNG.uniform(0, 1, N_ROWS), np.where(Y, 5, 2), RNG.standard_normal(N_ROWS)])
    found = found["leak"]
    assert found.what == "the label follows from 2 columns alone in all 400 rows looked at: 2 and 3."
    assert (found.severity, found.columns) == ("warning", [2, 3])
    assert found.remedy == (
        "If this is not known when the model is used, leave it out: linadd train array MODEL --drop 2,3"
    )


def test_a_column_that_nearly_tells_the_label_is_no_leak():
    column = np.where(Y, 5, 2)
    column[7] = 7 - column[7]
    assert "leak" not in findings([column])


@pytest.mark.parametrize(
    ("values", "labels", "is_told"),
    [
        ([1, 2, 3] * 20, [0, 0, 1] * 20, True),  # a threshold
        (range(60), [0] * 20 + [1] * 20 + [0] * 20, True),  # an interval
        ([1, 2, 3, 4, 5] * 12, [0, 1, 0, 1, 0] * 12, True),  # codes of few values
        (range(60), [0, 1, 0, 1, 0] * 12, False),  # every row its own value
        ([1, 1, 2] * 20, [0, 1, 1] * 20, False),
        (range(60), [0] * 55 + [1] * 5, False),  # chance may do that
        ([1] * 60, [0] * 60, False),
    ],
)
def test_when_a_column_tells_the_label(values, labels, is_told):
    order = np.argsort(values, kind="stable")
    ordered = np.array(values)[order]
    starts = np.flatnonzero(np.append(True, np.diff(ordered) != 0))
    assert tells_label(np.array(labels)[order], starts, np.bincount(labels)) == is_told


def test_rows_that_are_numbered():
    found = findings([np.arange(N_ROWS) * 2 + 100.5])["identifier-columns"]
    assert found.what == "values that rise from row to row in 1 column: 2."
    assert (found.severity, found.columns) == ("warning", [2])
    assert found.remedy == (
        "If these are row numbers, identifiers or times, leave them out: linadd train array MODEL --drop 2"
    )
    found = findings([RNG.permutation(10_000)[:N_ROWS]])["identifier-columns"]
    assert found.what == "another integer in every row in 1 column: 2."


def test_numbered_rows_of_a_sorted_file_are_no_leak():
    assert "leak" not in findings([np.arange(N_ROWS)], np.sort(Y))


def test_a_value_that_stands_for_a_missing_one():
    found = findings([with_values([1, 5, 9], -999)])["placeholder-values"]
    assert found.what == "a value far from all others in 1 column: 2 (-999, 3 times)."
    assert (found.severity, found.columns) == ("warning", [2])
    assert found.remedy == (
        "If it stands for a missing value, fill it with one that occurs; the curve takes it as a number."
    )


def test_a_single_value_far_away():
    found = findings([with_values(1, 1e6)])
    assert found["outliers"].what == "a value far from all others in 1 column: 2 (1e+06)."
    assert found["outliers"].severity == "info" and "placeholder-values" not in found
    assert found["outliers"].remedy == "Check the value; --knots quantile keeps it from taking the bins of the others."


def test_few_values_have_no_outlier():
    assert find_outlier(np.array([0.0, 1, 100]), np.array([5, 5, 5]))[1] == 0
    assert find_outlier(np.append(np.arange(20.0), 100), np.ones(21, int)) == (100.0, 1)
    assert find_outlier(np.append(np.arange(20.0), 38), np.ones(21, int))[1] == 0


def test_few_distinct_values():
    found = findings([RNG.integers(0, 4, N_ROWS), RNG.integers(0, 2, N_ROWS), RNG.integers(0, 3, N_ROWS) + 0.5])
    found = found["few-values"]
    assert (found.severity, found.what) == ("info", "3 to 10 distinct values in 1 column: 2 (4).")
    assert found.remedy == "If these are categories without an order, make one column of 0 and 1 of each category."


def test_unlike_scales():
    found = findings([1e6 * RNG.permutation(np.linspace(0, 1, N_ROWS))])["unlike-scales"]
    span = NORMAL.max() - NORMAL.min()
    assert found.what == f"columns are on unlike scales: 1 spans {span:.3g}, 2 {1e6:.3g}."
    assert (found.severity, found.columns) == ("info", [1, 2])
    assert found.remedy == (
        "Nothing to do with --scale unit, the default; do not use --scale none with --encoder identity."
    )


def test_time_stamps_in_float32():
    stamps = 1.6e9 + np.arange(N_ROWS)
    found = findings([stamps], dtype=np.float32)["coarse-float32"]
    assert found.what == "float32 is too coarse for 1 column: 2, at worst 3 steps between 1.6e+09 and 1.60000038e+09."
    assert found.severity == "warning"
    assert found.remedy == "Subtract the least value before the column is stored as float32, or store it as float64."
    assert "coarse-float32" not in findings([stamps])


def test_nearly_constant_columns():
    column = np.zeros(3000)
    column[5] = 1
    X = np.stack([RNG.standard_normal(3000), column], axis=1)
    (found,) = diagnose(X, y=np.arange(3000) % 2).findings
    assert (found.kind, found.severity) == ("nearly-constant", "info")
    assert found.what == "one value in over 99.9% of the rows in 1 column: 2."
    assert found.remedy == "Rare values have few rows to learn from. Nothing to do; they can be left out by --drop."


def test_long_tails():
    found = findings([np.exp(3 * np.linspace(-2, 2, N_ROWS)[RNG.permutation(N_ROWS)])])["long-tails"]
    assert found.what == "long tails in 1 column, one of 10 equal bins holding over half of the rows: 2."
    assert found.severity == "info"
    assert found.remedy == (
        "Nothing to do with --knots auto, the default, which takes quantiles here; do not use --knots uniform."
    )


def test_a_handful_of_rows_shows_nothing():
    X = np.arange(20.0)[:, None]
    assert diagnose(X, y=np.arange(20) % 2).findings == []
