"""Searches: folds and values of C, as outputs of one stream, equal the trainings that they stand for."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from linadd.errors import ConfigError
from linadd.models import load_model
from linadd.options import Options
from linadd.row_sample import hash_rows
from linadd.search import refit, search
from linadd.sources import open_source
from linadd.sources.arrays import ArraySource
from linadd.train import train
from tests.search.toy import COSTS, SETTINGS, Told, X, Y, find, make_path
from tests.solvers.problems import toy


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_table_does_not_depend_on_the_reader(loss):
    tables = [find(X, Y, chunk_rows, loss=loss).table for chunk_rows in (7, 64, 200)]
    assert tables[0] == tables[1] == tables[2]


class CountingSource(ArraySource):
    """Rows in memory that count what is read of them."""

    n_read = 0

    def _read(self, start, stop):
        self.n_read += stop - start
        return super()._read(start, stop)


@pytest.mark.parametrize("memory_limit", [10**9, 30_000])
def test_reads_are_counted(memory_limit):
    source = CountingSource(*toy(1000))
    options = Options(**SETTINGS | {"memory_limit": memory_limit, "n_bins": 2})
    result = search(source, options, [0.1, 1.0], 2, {"penalty_order": [1, 2]}, "error")
    assert result.reads * 1000 == source.n_read


def test_more_values_of_C_take_no_more_reads():
    choices = {"tol": 1e-9, "max_epochs": 5, "memory_limit": 30_000, "n_bins": 2}
    few, many = (find(*toy(1000), costs=np.logspace(-1, 1, n), n_folds=1, **choices) for n in (1, 12))
    assert few.reads == many.reads == 2 + 5 + 1 + 1  # census and centre, passes, certificate, held-out scores


def test_one_fold_is_a_fifth_of_the_rows():
    result = find(X, Y, n_folds=1)
    n_held = int((hash_rows(np.arange(200), 0) % np.uint64(5) == 0).sum())
    for record in result.table:
        assert [(fold["fold"], fold["n_rows"]) for fold in record["folds"]] == [(1, n_held)]
        assert record["error"] == record["folds"][0]["error"] and record["error_deviation"] is None


def test_the_grid_is_searched_setting_by_setting():
    told = Told()
    result = find(X, Y, progress=told, grid={"n_bins": [5, 3], "degree": [0, 2]}, costs=[1.0, 0.1])
    values = [(record["n_bins"], record["degree"], record["penalty_order"], record["C"]) for record in result.table]
    assert values == [(b, d, 1, C) for b in (3, 5) for d in (0, 2) for C in (0.1, 1.0)]
    grid = [{"n_bins": b, "degree": d, "penalty_order": 1} for b in (3, 5) for d in (0, 2)]
    assert told.settings == [(k, 4, each) for k, each in enumerate(grid, 1)]
    alone = find(X, Y, n_bins=5, degree=2, costs=[0.1, 1.0])
    assert alone.table == result.table[-2:]
    best = min(record["error"] for record in result.table)
    assert result.choice["best"] == {name: getattr(result.best, name) for name in ("C", *grid[0])}
    (chosen,) = [record for record in result.table if record.items() >= result.choice["best"].items()]
    assert chosen["error"] == best


def test_the_model_is_that_of_train_with_the_table(tmp_path):
    source, options = open_source(X, Y), Options(**SETTINGS)
    result = search(source, options, COSTS, 3)
    model, plain = refit(source, result), train(source, replace(options, C=result.best.C))
    np.testing.assert_array_equal(model.coef, plain.coef)
    model.save(tmp_path / "m.safetensors")
    kept = load_model(tmp_path / "m.safetensors").summary["search"]
    assert kept == result.choice | {"table": result.table}
    assert kept["metric"] == "error" and kept["n_folds"] == 3 and kept["best"]["C"] == result.best.C
    assert model.digest == refit(source, result).digest


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"costs": []}, "C: no value is given."),
        ({"costs": [1.0, 2.0, 1.0]}, "C: 1.0 is given twice."),
        ({"costs": [1.0, -2.0]}, "C: -2.0 is not above 0."),
        (
            {"grid": {"knots": ["auto"]}},
            "grid: 'knots' is not one of n_bins, degree, n_harmonics, n_terms, penalty_order.",
        ),
        ({"grid": {"n_terms": [3]}}, "grid: the encoder 'bspline' has no option 'n_terms'."),
        ({"grid": {"degree": [1, 7]}}, "degree: 7 is not one of 0, 1, 2, 3."),
        ({"grid": {"degree": [1, 1]}}, "degree: 1 is given twice."),
        ({"n_folds": 0}, "n_folds: 0 is not an integer between 1 and 1000."),
        ({"n_folds": 2.5}, "n_folds: 2.5 is not an integer between 1 and 1000."),
        ({"metric": "recall"}, "metric: 'recall' is not one of error, auc, log_loss."),
        (
            {"n_folds": 1, "one_se": True},
            "one_se: a single fold (n_folds=1) has no standard error. Use at least 2 folds.",
        ),
        ({"solver": "sgd"}, "solver: 'sgd' cannot train folds on one stream. Search with 'dual-cd'."),
        ({"stop_on": "violation"}, "stop_on: 'violation' is not searched with. Use 'gap'."),
        (
            {"metric": "log_loss", "loss": "hinge"},
            "metric: 'log_loss' needs probabilities, which 'hinge' loss does not give. Use 'logistic'.",
        ),
        (
            {"n_folds": 900},
            "n_folds: fold 1 of 900 has no rows of positive cost. Use fewer folds, or another seed.",
        ),
        (
            {"costs": np.logspace(-2, 2, 400), "memory_limit": 100_000},
            "search: the coefficients of 1200 outputs (400 values of C x 3 folds) need 1.5 MB, above the 0.1 MB that "
            "are left of the memory limit. Raise it, or give fewer values of C or folds, or train them one after the "
            "other.",
        ),
        (
            {"metric": "auc", "memory_limit": 40_000, "n_bins": 2},
            "metric: the scores of an AUC take 0.0 MB, which the memory limit does not leave. Raise it, or choose by "
            "'error'.",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused(choices, message):
    with pytest.raises(ConfigError) as caught:
        find(X, Y, **choices)
    assert str(caught.value) == message


def test_a_class_in_one_fold_only_is_refused():
    folds = make_path(X, Y).problem.folds
    y = np.where(np.arange(200) == np.flatnonzero(folds == 2)[5], "rare", "often")
    with pytest.raises(ConfigError) as caught:
        find(X, y)
    message = "n_folds: every row of the class 'rare' is in fold 3. Use fewer folds, or another seed."
    assert str(caught.value) == message


def test_an_area_that_no_fold_has_is_no_choice():
    folds = make_path(X, Y).problem.folds
    y = np.isin(np.arange(200), [np.flatnonzero(folds == k)[3] for k in (0, 1)]).astype(int)
    assert find(X, y).table[0]["auc"] is None
    with pytest.raises(ConfigError) as caught:
        find(X, y, metric="auc")
    message = "metric: 'auc' is not defined on these folds: some lack a class. Choose by 'error'."
    assert str(caught.value) == message


def test_no_memory_for_an_area_is_said(caplog):
    caplog.set_level(logging.INFO, "linadd.search")
    result = find(*toy(1000), memory_limit=100_000, costs=[0.1, 1.0], max_epochs=3)
    assert all(record["auc"] is None and record["error"] is not None for record in result.table)
    text = "search: no AUC: the scores of an AUC take 0.1 MB, which the memory limit does not leave."
    assert text in caplog.messages


def test_the_rule_of_one_standard_error_keeps_every_setting_until_it_has_chosen():
    options = {"grid": {"n_bins": [4, 6, 8]}, "costs": (0.05, 5.0), "metric": "error"}
    simple = find(X, Y, one_se=True, **options)
    assert simple.deviation.shape[1] == simple.best.n_bins + 1


def test_a_single_fold_has_no_errors_of_curves():
    result = find(X, Y, n_folds=1)
    assert result.deviation is None
    assert refit(open_source(X, Y), result).shape_function(0).error is None
