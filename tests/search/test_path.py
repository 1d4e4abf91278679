"""A path: folds and values of C, as outputs of one stream, equal the trainings that they stand for."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from linadd.model import AdditiveModel
from linadd.search import refit
from linadd.search.groups import score_group
from linadd.solvers import dual_cd
from linadd.solvers.stopping import read_together
from linadd.sources import open_source
from tests.search.toy import COSTS, SETTINGS, X, Y, find, group_of, make_path, make_paths, positions_of
from tests.solvers.problems import LOSSES, make_run, toy


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
            problem = replace(problem, encoder=encoder, centre=centre, positions=positions_of(path.problem, X[kept]))
            assert_same_optimum(path.results[0].certificate, outputs[c, fold], dual_cd.solve(problem, run).certificate)


@pytest.mark.parametrize("intercept", ["penalised", "none"])
def test_a_fold_is_left_out_with_any_intercept(intercept):
    path = make_path(X, Y, costs=(1.0,), intercept=intercept, tol=1e-4, loss="squared_hinge")
    kept = np.flatnonzero(path.problem.folds != 1)
    problem, run = make_run(X[kept], Y[kept], loss="squared_hinge", intercept=intercept, tol=1e-4, **SETTINGS)
    encoder, centre = path.problem.encoder, path.problem.centre
    problem = replace(problem, encoder=encoder, centre=centre, positions=positions_of(path.problem, X[kept]))
    assert_same_optimum(path.results[0].certificate, [1], dual_cd.solve(problem, run).certificate)


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
    machine.end_epoch()
    if machine.is_waiting:
        reading = machine.reading()
        read_together([reading], 1)
        machine.take(reading)


@pytest.mark.parametrize(("n_classes", "loss"), [(2, "logistic"), (3, "logistic"), (2, "hinge")])
def test_figures_are_those_of_models_on_the_rows_they_have_not_seen(n_classes, loss):
    X, y = toy(200, n_classes=n_classes)
    weights = np.random.default_rng(1).uniform(0.5, 2, 200)
    (path,) = paths = make_paths(X, y, weights=weights, loss=loss)
    source, _, census, group = group_of(X, y, weights=weights, loss=loss)
    problem, outputs = path.problem, path.by_cost(np.arange(path.problem.n_outputs))
    for c, record in enumerate(score_group(source, paths, group.plan, census)[0]):
        rows = []
        for fold, own in enumerate(record["folds"]):
            coef, intercept = path.results[0].coef[:, :, outputs[c, fold]], path.results[0].intercept[outputs[c, fold]]
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
            assert own["gap"] == path.results[0].certificate.gaps[outputs[c, fold]].max()
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
        assert record["passes"] == path.results[0].passes


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_errors_of_the_curves_are_those_of_the_chosen_setting(n_classes):
    y = toy(200, n_classes=n_classes)[1]
    result = find(X, y, grid={"n_bins": [4, 6]}, costs=(0.05, 5.0))
    path = make_path(X, y, costs=(0.05, 5.0), n_bins=result.best.n_bins)
    coef = path.by_cost(np.moveaxis(path.results[0].coef, 2, 0))[[0.05, 5.0].index(result.best.C)].astype(np.float64)
    centred = coef - np.einsum("jk,fojk->foj", path.mean_code, coef)[..., None]  # (fold, machine, feature, basis)
    variance = sum((each - centred.mean(axis=0)) ** 2 for each in centred) * 2 / 3
    np.testing.assert_allclose(result.deviation, np.moveaxis(np.sqrt(variance), 0, 2), rtol=1e-4, atol=1e-6)
    model = refit(open_source(X, y), result)
    assert model.deviation is result.deviation and model.deviation.shape == model.coef.shape
    error = model.shape_function(0).error
    assert error.shape == (101 if result.best.n_bins == 4 else 103, model.n_outputs) and (error > 0).all()


