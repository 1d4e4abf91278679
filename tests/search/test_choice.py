"""What is chosen from a table."""

import pytest

from linadd.options import Options
from linadd.search.choice import Choice, choose


def made_table(*rows):
    """A table of (C, n_bins, penalty_order, mean, deviation)."""
    names = ("C", "n_bins", "penalty_order", "error", "error_deviation")
    table = [dict(zip(names, row, strict=True)) for row in rows]
    return [row | {"auc": 1 - row["error"], "auc_deviation": row["error_deviation"]} for row in table]


@pytest.mark.parametrize("metric", ["error", "auc"])
def test_the_choice_is_the_best_or_the_most_regularised_within_one_standard_error(metric):
    table = made_table((0.1, 9, 1, 0.30, 0.01), (1, 9, 1, 0.22, 0.1), (1, 5, 1, 0.21, 0.1), (9, 5, 1, 0.20, 0.04))
    best = choose(table, Options(), Choice((), 4, metric, False))
    assert (best.C, best.n_bins) == (9, 5)
    best = choose(table, Options(), Choice((), 4, metric, True))  # up to 0.20 + 0.04 / sqrt(4)
    assert (best.C, best.n_bins) == (1, 5)
    best = choose(table, Options(), Choice((), 16, metric, True))
    assert (best.C, best.n_bins) == (1, 5)
    best = choose(table, Options(), Choice((), 17, metric, True))
    assert (best.C, best.n_bins) == (9, 5)


def test_of_equal_settings_the_most_regularised_is_chosen():
    table = made_table((2, 9, 1, 0.2, 0.1), (1, 9, 1, 0.2, 0.1), (1, 5, 1, 0.2, 0.1), (1, 5, 2, 0.2, 0.1))
    best = choose(table, Options(), Choice((), 4, "error", False))
    assert (best.C, best.n_bins, best.penalty_order) == (1, 5, 2)
