"""Searches: folds and values of C, as outputs of one stream, equal the trainings that they stand for."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from linadd.errors import ConfigError
from linadd.model import AdditiveModel
from linadd.models import load_model
from linadd.options import Options
from linadd.row_sample import hash_rows
from linadd.search import Choice, Path, SearchProgress, choose, refit, search
from linadd.solvers import dual_cd
from linadd.sources import open_source
from linadd.sources.arrays import ArraySource
from linadd.train import survey, train
from tests.solvers.problems import LOSSES, make_run, toy

X, Y = toy(200)
COSTS = (0.05, 1.0, 5.0)
SETTINGS = {"n_bins": 4, "knots": "uniform", "max_epochs": 2000}


def make_path(X, y, costs=COSTS, n_folds=3, weights=None, progress=None, **choices):
    """The trained path of rows in memory."""
    source, options = open_source(X, y, weights=weights), Options(**SETTINGS | choices)
    progress = progress or SearchProgress()
    census = survey(source, options, progress)
    return Path(source, options, Choice(costs, n_folds, "error", False), census, progress)


def find(X, y, chunk_rows=None, progress=None, **choices):
    """The SearchResult of rows in memory; keywords that are no option go to `search`."""
    own = {name: choices.pop(name) for name in ("costs", "n_folds", "grid", "metric", "one_se") if name in choices}
    own = {"costs": COSTS, "n_folds": 3} | own
    return search(open_source(X, y, chunk_rows=chunk_rows), Options(**SETTINGS | choices), progress=progress, **own)


class Told(SearchProgress):
    """Notes what it is told, and stops after a number of blocks."""

    def __init__(self, n_blocks=None):
        self.settings, self.records, self.n_blocks, self.n_asked = [], [], n_blocks, 0

    def setting(self, *values):
        self.settings.append(values)

    def epoch(self, record):
        self.records.append(record)

    def should_stop(self):
        self.n_asked += 1
        return self.n_blocks is not None and self.n_asked > self.n_blocks


def assert_same_optimum(certificate, outputs, other):
    """The optimum lies between both pairs of bounds, each closer than 1e-4: so the bounds must overlap."""
    primal, dual = certificate.primal[outputs], certificate.dual[outputs]
    assert certificate.gaps[outputs].max() <= 1e-4 and other.gap <= 1e-4
    assert (dual <= other.primal * (1 + 1e-9)).all() and (other.dual <= primal * (1 + 1e-9)).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fold_is_trained_as_if_its_rows_were_not_there(loss, n_classes):
    X, y = toy(200, n_classes=n_classes)
    weights = np.random.default_rng(1).uniform(0.5, 2, 200)
    path = make_path(X, y, weights=weights, loss=loss, tol=1e-4)
    outputs = path.by_cost(np.arange(path.problem.n_outputs))
    for fold in range(3):
        kept = np.flatnonzero(path.problem.folds != fold)
        for c, C in enumerate(COSTS):
            problem, run = make_run(X[kept], y[kept], weights[kept], loss=loss, C=C, tol=1e-4, **SETTINGS)
            # Ranges, scale and centre are those of all rows.
            encoder, centre = path.problem.encoder, path.problem.centre
            problem = replace(problem, encoder=encoder, centre=centre, positions=path.problem.positions[kept])
            assert_same_optimum(path.result.certificate, outputs[c, fold], dual_cd.solve(problem, run).certificate)


@pytest.mark.parametrize("intercept", ["penalised", "none"])
def test_a_fold_is_left_out_with_any_intercept(intercept):
    path = make_path(X, Y, costs=(1.0,), intercept=intercept, tol=1e-4, loss="squared_hinge")
    kept = np.flatnonzero(path.problem.folds != 1)
    problem, run = make_run(X[kept], Y[kept], loss="squared_hinge", intercept=intercept, tol=1e-4, **SETTINGS)
    encoder, centre = path.problem.encoder, path.problem.centre
    problem = replace(problem, encoder=encoder, centre=centre, positions=path.problem.positions[kept])
    assert_same_optimum(path.result.certificate, [1], dual_cd.solve(problem, run).certificate)


@pytest.mark.parametrize("memory_limit", [10**9, 4000])
def test_values_of_C_are_the_trainings_that_they_stand_for(memory_limit):
    problem, run = make_run(X, Y, tol=1e-4, memory_limit=memory_limit, partial_solutions=2, **SETTINGS)
    path = replace(
        problem,
        positive=np.tile(problem.positive, 20),
        cost=np.logspace(-2, 1, 20),
        held_out=np.full(20, -1, np.int16),
    )
    result = dual_cd.solve(path, replace(run, freezes=True))
    assert result.converged and run.plan.fits == (memory_limit > 4000)
    for o in range(0, 20, 5):
        alone = dual_cd.solve(replace(problem, cost=path.cost[o : o + 1]), run)
        assert_same_optimum(result.certificate, [o], alone.certificate)


def test_an_output_within_tol_is_left_alone():
    problem, run = make_run(X, Y, tol=1e-3, **SETTINGS)
    costs = np.array([0.01, 0.01, 50.0])
    problem = replace(problem, positive=np.ones(3, np.int32), cost=costs, held_out=np.full(3, -1, np.int16))
    machine, epoch = dual_cd.DualCD(problem, replace(run, freezes=True)), 0
    duals = machine.reader.duals
    while machine.is_open[:2].any():
        run_epoch(machine, epoch)
        epoch += 1
    assert machine.is_open.tolist() == [False, False, True]
    before, last = duals.copy(), machine.history[-1]
    run_epoch(machine, epoch)
    np.testing.assert_array_equal(duals[:, :2], before[:, :2])
    assert (duals[:, 2] != before[:, 2]).any()
    frozen = machine.certifier.primal[:2]
    primal, dual = machine.estimate()
    np.testing.assert_array_equal(primal[:2], frozen)
    np.testing.assert_array_equal(dual[:2], machine.certifier.dual[:2])
    assert machine.certifier.certificate.gaps[:2].max() <= 1e-3 < last["certified_gap"]


def run_epoch(machine, epoch):
    """One epoch of a DualCD over rows in memory."""
    machine.start_epoch()
    machine.visit(machine.reader.whole, epoch, 0)
    machine.finish_epoch(epoch, False, {})


def test_folds_come_from_the_index_of_the_row():
    path = make_path(X, Y, n_folds=4, seed=7)
    folds = path.problem.folds
    np.testing.assert_array_equal(folds, hash_rows(np.arange(200), 7) % np.uint64(4))
    assert (np.bincount(folds) > 30).all() and path.n_held.tolist() == np.bincount(folds).tolist()
    assert (folds != make_path(X, Y, n_folds=4, seed=8).problem.folds).any()


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_table_does_not_depend_on_the_reader(loss):
    tables = [find(X, Y, chunk_rows, loss=loss).table for chunk_rows in (7, 64, 200)]
    assert tables[0] == tables[1] == tables[2]


@pytest.mark.parametrize(("n_classes", "loss"), [(2, "logistic"), (3, "logistic"), (2, "hinge")])
def test_figures_are_those_of_models_on_the_rows_they_have_not_seen(n_classes, loss):
    X, y = toy(200, n_classes=n_classes)
    weights = np.random.default_rng(1).uniform(0.5, 2, 200)
    path = make_path(X, y, weights=weights, loss=loss)
    problem, outputs = path.problem, path.by_cost(np.arange(path.problem.n_outputs))
    for c, record in enumerate(path.records(range(3))):
        rows = []
        for fold, own in enumerate(record["folds"]):
            coef, intercept = path.result.coef[:, :, outputs[c, fold]], path.result.intercept[outputs[c, fold]]
            model = AdditiveModel(problem.encoder, coef, intercept, np.arange(n_classes), loss, problem.centre.scale)
            held = problem.folds == fold
            error = np.average(model.predict(X[held]) != y[held], weights=weights[held])
            decision = model.decision_function(X[held])
            positives = [1] if n_classes == 2 else range(n_classes)
            areas = [
                roc_auc_score(y[held] == k, decision[:, o], sample_weight=weights[held])
                for o, k in enumerate(positives)
            ]
            entropy = None
            if loss == "logistic":
                entropy = log_loss(y[held], model.predict_proba(X[held]), sample_weight=weights[held])
            rows.append([error, np.mean(areas), entropy])
            assert (own["fold"], own["n_rows"]) == (fold + 1, held.sum())
            assert own["gap"] == path.result.certificate.gaps[outputs[c, fold]].max()
            expected = [value for value in rows[-1] if value is not None]
            np.testing.assert_allclose([own[k] for k in ("error", "auc", "log_loss")][: len(expected)], expected)
        for k, name in enumerate(("error", "auc", "log_loss")):
            values = [row[k] for row in rows]
            if None in values:
                assert record[name] is None and record[f"{name}_deviation"] is None
            else:
                np.testing.assert_allclose(record[name], np.mean(values))
                np.testing.assert_allclose(record[f"{name}_deviation"], np.std(values, ddof=1))
        assert record["C"] == COSTS[c] and record["gap"] == max(fold["gap"] for fold in record["folds"])
        assert record["passes"] == path.result.passes


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


def test_a_stop_keeps_the_settings_that_are_finished():
    whole = find(X, Y, grid={"n_bins": [3, 4]}, max_epochs=30, progress=(told := Told()))
    n_first = len(whole.table) // 2
    n_blocks = next(k for k, record in enumerate(told.records[1:], 1) if record["epoch"] == 1)
    # One question a block, and one between the two settings: there, and after the next one's first block.
    for stop_after in (n_blocks, n_blocks + 1):
        result = find(X, Y, grid={"n_bins": [3, 4]}, max_epochs=30, progress=Told(stop_after))
        assert result.is_interrupted and result.table == whole.table[:n_first] and result.best.n_bins == 3
    assert not whole.is_interrupted


def test_a_stop_in_the_first_setting_keeps_the_values_of_C_within_tol_or_else_all():
    result = find(X, Y, costs=[0.01, 500.0], progress=(told := Told()))
    assert len(result.table) == 2 and result.table[1]["passes"] > 8
    cut = find(X, Y, costs=[0.01, 500.0], progress=Told(len(told.records) - 3))
    assert cut.is_interrupted and [record["C"] for record in cut.table] == [0.01] and cut.best.C == 0.01
    assert cut.table[0]["gap"] <= 1e-3
    none = find(X, Y, costs=[0.01, 500.0], progress=Told(0))
    assert [record["C"] for record in none.table] == [0.01, 500.0] and none.table[0]["gap"] > 1e-3


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
            "are left of the memory limit. Raise it, or give fewer values of C or folds.",
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


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_errors_of_the_curves_are_those_of_the_chosen_setting(n_classes):
    y = toy(200, n_classes=n_classes)[1]
    result = find(X, y, grid={"n_bins": [4, 6]}, costs=(0.05, 5.0))
    path = make_path(X, y, costs=(0.05, 5.0), n_bins=result.best.n_bins)
    coef = path.by_cost(np.moveaxis(path.result.coef, 2, 0))[[0.05, 5.0].index(result.best.C)].astype(np.float64)
    centred = coef - np.einsum("jk,fojk->foj", path.mean_code, coef)[..., None]  # (fold, machine, feature, basis)
    variance = sum((each - centred.mean(axis=0)) ** 2 for each in centred) * 2 / 3
    np.testing.assert_allclose(result.deviation, np.moveaxis(np.sqrt(variance), 0, 2), rtol=1e-4, atol=1e-6)
    model = refit(open_source(X, y), result)
    assert model.deviation is result.deviation and model.deviation.shape == model.coef.shape
    error = model.shape_function(0).error
    assert error.shape == (101 if result.best.n_bins == 4 else 103, model.n_outputs) and (error > 0).all()


def test_the_rule_of_one_standard_error_keeps_every_setting_until_it_has_chosen():
    options = {"grid": {"n_bins": [4, 6, 8]}, "costs": (0.05, 5.0), "metric": "error"}
    simple = find(X, Y, one_se=True, **options)
    assert simple.deviation.shape[1] == simple.best.n_bins + 1


def test_a_single_fold_has_no_errors_of_curves():
    result = find(X, Y, n_folds=1)
    assert result.deviation is None
    assert refit(open_source(X, Y), result).shape_function(0).error is None
