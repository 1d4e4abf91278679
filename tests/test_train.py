"""`train`: what is wired to what, and every message of it, read whole."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer

from linadd.bounds import bound
from linadd.calibration import Sigmoid
from linadd.embedding import class_factors
from linadd.encoders.exact import decide
from linadd.errors import ConfigError, ConvergenceWarning, DataError, DataWarning
from linadd.models import load_model
from linadd.options import Options
from linadd.row_sample import fill_folds
from linadd.solvers import SOLVERS
from linadd.sources import open_source
from linadd.train import Progress, survey, train
from tests.solvers.problems import LOSSES, fit, make_run, thin, toy

KEYS = {
    "solver", "objective", "dual_objective", "gap", "gaps", "converged", "interrupted", "passes", "reads", "n_rows",
    "n_features", "class_counts", "plan", "seconds", "gap_on_codes",
}  # fmt: skip


def warned(kind, *args, **choices):
    """(model, message) of a fit that warns once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit(*args, **choices)
    (warning,) = caught
    assert warning.category is kind
    return model, str(warning.message)


def refusal(kind, *args, **choices):
    """The message of a refused fit."""
    with pytest.raises(kind) as caught:
        fit(*args, **choices)
    return str(caught.value)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_model_carries_what_it_was_made_of(solver, n_classes):
    X, y = toy(n_classes=n_classes)
    model = fit(X, y, solver=solver, seed=5)
    assert model.summary.keys() == KEYS and model.summary["solver"] == solver
    assert (model.summary["n_rows"], model.summary["n_features"]) == X.shape
    assert model.options == Options(solver=solver, seed=5).record()
    assert model.coef.shape == (4, 11, 1 if n_classes == 2 else n_classes) and model.coef.dtype == np.float32
    assert model.classes.tolist() == list(range(n_classes)) and model.loss == "logistic"
    assert model.summary["class_counts"] == np.bincount(y).tolist()
    assert model.density.mean_code.shape == (4, 11) and model.deviation is None
    assert model.fingerprint == open_source(X, y).fingerprint()
    assert model.summary["plan"] == make_run(X, y, seed=5)[1].plan.record()
    assert np.mean(model.predict(X) == y) > 0.7


SPARSE = [
    {}, {"degree": 3, "penalty_order": 2, "n_bins": 6}, {"knots": "quantile", "n_bins": 5}, {"encoder": "fourier"},
    {"encoder": "hermite"}, {"encoder": "identity"}, {"scale": "none", "encoder": "identity"},
]  # fmt: skip


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("options", SPARSE, ids=str)
def test_sparse_rows_lead_to_the_optimum_of_dense_ones(options, loss, n_classes):
    """The constant of every curve goes to the free intercept: one problem, whose least lies between all bounds."""
    X, y = toy(n_rows=150, n_classes=n_classes)
    X = thin(X, 0.2) + thin(np.ones_like(X), 0.05, seed=1)  # a spike too, and ranges that hold zero or end there
    X[:, 1] = np.abs(X[:, 1])
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.5], len(y))
    choices = {"loss": loss, "tol": 1e-4, "max_epochs": 1000, "solver": "dual-cd", "C": 0.3, **options}
    dense, sparse = (fit(X, y, weights, rows=rows, **choices) for rows in ("dense", "sparse"))
    assert dense.summary["gap"] <= 1e-4 and sparse.summary["gap"] <= 1e-4
    # The scales agree to the rounding of float32 norms, and objectives with them.
    np.testing.assert_allclose(sparse.feature_scale, dense.feature_scale, rtol=1e-5)
    for one, other in ((dense, sparse), (sparse, dense)):
        assert one.summary["dual_objective"] <= other.summary["objective"] * (1 + 1e-5)
    # Strong convexity: |w - w*|^2 / 2 <= P - P*, and a decision moves by |w - w*| |z|, the mean |z|^2 being near 1.
    distance = np.sqrt(8e-4 * dense.summary["objective"])
    difference = dense.decision_function(X) - sparse.decision_function(X)
    size = np.sqrt(max(1, (dense.feature_scale**2).max()))
    assert np.abs(difference - difference.mean(axis=0)).mean() <= distance * size
    stored = scipy.sparse.csr_array(X)
    np.testing.assert_allclose(sparse.decision_function(stored), sparse.decision_function(X), rtol=1e-9, atol=1e-9)
    assert sparse.options["rows"] == "sparse" and sparse.summary["plan"]["row_entries"] == np.count_nonzero(X) / 150


def test_auto_keeps_the_entries_of_thin_sparse_input():
    X, y = toy(n_rows=300)
    thin_rows, full = scipy.sparse.csr_array(thin(X, 0.2)), scipy.sparse.csr_array(thin(X, 0.3))

    def is_sparse(X, **choices):
        model = fit(X, y, max_epochs=1, tol=0.9, **choices)
        return model.summary["plan"]["row_entries"] > 0

    assert is_sparse(thin_rows) and is_sparse(full, rows="sparse") and is_sparse(thin_rows.toarray(), rows="sparse")
    assert not is_sparse(full) and not is_sparse(thin_rows.toarray()) and not is_sparse(thin_rows, rows="dense")
    for needs_dense in ({"intercept": "none"}, {"center": False}, {"solver": "newton"}):
        assert not is_sparse(thin_rows, **needs_dense)
    assert fit(thin_rows, y).summary["solver"] == "dual-cd"  # and not newton, which needs dense rows


def test_a_million_features_cost_their_entries():
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(200), 5), rng.integers(0, 10**6, 1000)
    columns[::5] = 7  # one that tells the classes
    values = np.where(columns == 7, rows % 2 + 1.0, rng.random(1000))
    X = scipy.sparse.csr_array((values, (rows, columns)), (200, 10**6))
    with pytest.warns(DataWarning, match="constant features contribute nothing"):
        model = fit(X, np.arange(200) % 2, n_bins=2, knots="uniform", max_epochs=5, tol=0.1, loss="squared_hinge")
    assert model.summary["plan"]["row_entries"] == X.nnz / 200
    assert (model.predict(X) == np.arange(200) % 2).all()


def test_auto_is_dual_cd_and_options_have_defaults():
    X, y = toy()
    assert train(open_source(X, y)).digest == fit(X, y).digest
    auto, dual = (fit(X, y, loss="hinge", solver=solver) for solver in ("auto", "dual-cd"))
    assert auto.summary["solver"] == "dual-cd" and auto.options["solver"] == "auto"
    np.testing.assert_array_equal(auto.coef, dual.coef)


def test_every_read_is_counted():
    X, y = toy(n_rows=300)
    whole = fit(X, y, solver="dual-cd").summary
    # Census, centre, certificates; the passes are over rows in memory.
    assert whole["reads"] == 3 and whole["passes"] > 1
    blocks = fit(X, y, solver="dual-cd", memory_limit=9000).summary
    assert not blocks["plan"]["fits"] and blocks["reads"] >= blocks["passes"] + 3


def test_progress_hears_of_both_reads_and_every_epoch():
    heard, records = [], []

    class Listener(Progress):
        def read(self, phase, n_rows, n_total):
            heard.append((phase, n_rows, n_total))

        def epoch(self, record):
            records.append(record)

    X, y = toy(n_rows=100)
    model = train(open_source(X, y, chunk_rows=60), Options(), Listener())
    assert heard == [("census", 60, 100), ("census", 100, 100), ("centre", 60, 100), ("centre", 100, 100)]
    assert records == model.history and len(records) == model.summary["passes"]


@pytest.mark.parametrize("memory_limit", [10**9, 9000])
@pytest.mark.parametrize("solver", ["dual-cd", "sgd"])
def test_ctrl_c_after_a_block_leaves_a_model_that_knows_its_gap(solver, memory_limit):
    class Stop(Progress):
        n_blocks = 0

        def should_stop(self):
            self.n_blocks += 1
            return self.n_blocks == 2

    X, y = toy(n_rows=300)
    progress = Stop()
    options = Options(solver=solver, memory_limit=memory_limit, certify=True, tol=1e-9)
    model = train(open_source(X, y), options, progress)
    assert progress.n_blocks == 2
    assert model.summary["interrupted"] and not model.summary["converged"]
    assert model.summary["passes"] == (2 if memory_limit == 10**9 else 1)
    assert 0 < model.summary["gap"] < 1 and np.mean(model.predict(X) == y) > 0.6


def test_not_converged_says_the_gap_and_what_to_change():
    X, y = toy()
    model, message = warned(ConvergenceWarning, X, y, solver="dual-cd", max_epochs=1, C=3.0)
    assert message == (
        f"stopped after 1 pass at a relative duality gap of {bound(model.summary['gap'])}, above tol=0.001. Raise "
        "max_epochs, lower C=3, or accept it by a larger tol."
    )
    assert not model.summary["converged"] and model.summary["gap"] > 1e-3


def test_not_converged_names_the_worst_output():
    X, y = toy(n_classes=3)
    choices = {"solver": "dual-cd", "max_epochs": 2, "tol": 1e-6}
    model, message = warned(ConvergenceWarning, X, np.array(["a", "b", "c"])[y], **choices)
    worst = "abc"[int(np.argmax(model.summary["gaps"]))]
    assert f"gap of {bound(model.summary['gap'])} (output {worst!r}), above tol=1e-06." in message
    assert message.startswith("stopped after 2 passes at")


def test_a_violation_rule_that_was_not_met_is_named():
    X, y = toy()
    model, message = warned(ConvergenceWarning, X, y, loss="hinge", stop_on="violation", tol=1e-5, max_epochs=3)
    assert message == (
        f"stopped after 3 passes at a violation above tol=1e-05, and a relative duality gap of "
        f"{bound(model.summary['gap'])}. Raise max_epochs, lower C=1, or accept it by a larger tol."
    )


def test_features_on_unlike_scales_are_named_where_that_hurts():  # users.md C15
    X, y = load_breast_cancer(return_X_y=True)
    assert fit(X, y).summary["converged"]
    raw = {"encoder": "identity", "scale": "none", "center": False, "intercept": "none", "loss": "squared_hinge"}
    model, message = warned(ConvergenceWarning, X, y, solver="dual-cd", **raw)
    assert message == (
        f"stopped after 50 passes at a relative duality gap of {bound(model.summary['gap'])}, above tol=0.001. Raise "
        "max_epochs, lower C=1, or accept it by a larger tol. The features are on unlike scales, column 20 spans 0.029 "
        "and column 24 4.1e+03: scale='unit' makes them alike."
    )


@pytest.mark.parametrize("solver", ["dual-cd", "newton"])
def test_codes_that_keep_the_gap_up_are_named(solver):
    X, y = toy(n_rows=600, n_classes=3)
    choices = {"solver": solver, "tol": 1e-5, "max_epochs": 200, "n_bins": 20, "memory_limit": 10**8}
    exact = fit(X, y, **choices).summary
    model, message = warned(ConvergenceWarning, X, y, precision="uint8", **choices)
    found, worst = model.summary, int(np.argmax(model.summary["gaps"]))
    assert message == (
        f"stopped after {found['passes']} passes at a relative duality gap of {bound(found['gap'])} (output {worst}), "
        f"above tol=1e-05. precision='uint8' is the likely cause: on the codes in memory the gap is "
        f"{found['gap_on_codes']:.2g}. Use a finer precision, or accept it by a larger tol."
    )
    assert not found["converged"] and found["plan"]["precision"] == "uint8" and found["passes"] < 200
    assert found["gap_on_codes"] <= 1e-5 < found["gap"] < 0.01 and exact["gap_on_codes"] is None
    # The gap is that of the rows themselves: the optimum lies between its bounds.
    assert found["dual_objective"] <= exact["objective"] and exact["dual_objective"] <= found["objective"]
    fine = fit(X, y, precision="uint16", **choices).summary
    assert fine["converged"] and fine["gap_on_codes"] is None


def test_codes_are_not_blamed_for_an_early_end():
    X, y = toy()
    model, message = warned(ConvergenceWarning, X, y, solver="dual-cd", max_epochs=1, precision="uint8")
    assert message.endswith("Raise max_epochs, lower C=1, or accept it by a larger tol.")
    assert model.summary["gap_on_codes"] > 1e-3


def test_whole_numbers_and_bins_lose_nothing_as_codes():
    X = np.random.default_rng(0).integers(-90, 160, (800, 4), dtype=np.int16)
    y = (X[:, 0] > X[:, 1]).astype(int)
    for choices in ({"knots": "uniform"}, {"degree": 0, "n_bins": 30}, {"encoder": "fourier"}, {"encoder": "identity"}):
        exact, coded = (fit(X, y, tol=1e-6, precision=precision, **choices) for precision in ("exact", "uint8"))
        assert coded.summary["converged"] and coded.summary["plan"]["precision"] == "uint8"
        np.testing.assert_allclose(coded.summary["objective"], exact.summary["objective"], rtol=1e-6)


def test_rows_that_do_not_fit_as_codes_are_read_exactly(caplog):
    X, y = toy(n_rows=300)
    small = {"solver": "dual-cd", "memory_limit": 2 * 300 * 4, "max_epochs": 2, "tol": 0.9}
    with caplog.at_level("INFO"):
        model = fit(X, y, precision="uint16", **small)
    assert model.digest != fit(X, y, precision="uint8", **small).digest  # they fit, just
    np.testing.assert_array_equal(model.coef, fit(X, y, **small).coef)
    assert model.summary["plan"]["precision"] == "exact" and model.options["precision"] == "uint16"
    (message,) = (record.getMessage() for record in caplog.records if "precision" in record.getMessage())
    assert message == "precision: the rows do not fit the memory limit as uint16 codes; every pass reads them."


def test_the_stored_type_of_equal_values_does_not_change_the_sample():
    X = np.random.default_rng(0).standard_cauchy((2500, 20)).astype(np.float32)
    y = np.arange(2500) % 2
    options = Options(knots="quantile", memory_limit=4_000_000)
    samples = [survey(open_source(rows, y), options, Progress()).sample for rows in (X, X.astype(np.float64))]
    assert 1000 < len(samples[0]) < 2500
    np.testing.assert_array_equal(*samples)


def test_constant_features_are_named():
    X, y = toy(n_features=3)
    model, message = warned(DataWarning, np.insert(X, 1, 7.0, axis=1), y)
    assert message == "array: constant features contribute nothing: 2."
    assert (model.coef[1] == 0).all() and model.feature_scale[1] == 0
    # Newton's sums run over other columns, so they round differently.
    np.testing.assert_allclose(np.delete(model.coef, 1, axis=0), fit(X, y).coef, rtol=1e-5, atol=1e-12)
    _, message = warned(DataWarning, np.hstack([X, np.ones((len(X), 8))]), y)
    assert message == "array: constant features contribute nothing: 4, 5, 6, 7, 8 and 3 more."


def test_warnings_point_at_the_caller():
    X, y = toy(n_features=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(open_source(np.insert(X, 1, 7.0, axis=1), y), Options(solver="dual-cd", max_epochs=1))
    assert [warning.filename for warning in caught] == [__file__, __file__]


def test_data_without_labels_are_refused():
    assert refusal(DataError, toy()[0]) == "array: has no labels. Give y."


def test_costs_that_no_solver_bears_are_refused():
    X, y = toy()
    weights = np.ones(len(y))
    weights[1] = 1e300
    message = refusal(DataError, X, y, weights, C=2.0)
    assert message == (
        "array, row 2: C times the weights of class and row is inf, above 1e+15. Lower C, or divide all weights by a "
        "common factor."
    )
    weights[1] = 4e14
    assert "is 1.2e+15, above" in refusal(DataError, X, y, weights, C=3.0)


def test_norms_beyond_float32_are_refused():
    X, y = toy(n_features=3)
    X[7, 1] = -1e25
    message = refusal(DataError, X, y, encoder="identity", scale="none")
    assert message == (
        "array, column 2: values up to 1e+25 under scale='none' make squared norms that pass the range of float32. "
        "Rescale it, or use scale='unit'."
    )
    assert np.isfinite(fit(X, y, encoder="identity").coef).all()


def test_a_limit_that_holds_no_training_chunk_is_refused_before_reading():
    class Unread(Progress):
        def read(self, phase, n_rows, n_total):
            raise AssertionError("read")

    with pytest.raises(ConfigError, match="do not hold one training chunk"):
        train(open_source(*toy()), Options(memory_limit=10), Unread())


class TestClassWeight:
    def census(self, y):
        return survey(open_source(np.arange(len(y))[:, None], y), Options(knots="uniform"), Progress())

    def test_factors(self):
        census = self.census([1, 1, 1, 2])
        assert class_factors(census, None).tolist() == [1, 1]
        assert class_factors(census, {2: 3.0}).tolist() == [1, 3]
        np.testing.assert_allclose(class_factors(census, "balanced"), [4 / 6, 4 / 2])

    @pytest.mark.parametrize("label", [2, np.int64(2), "2"])
    def test_labels_are_found_by_their_text(self, label):
        assert class_factors(self.census([1, 2, 1]), {label: 3.0}).tolist() == [1, 3]

    def test_an_unknown_label_is_refused(self):
        X, y = toy(n_classes=3)
        message = "class_weight: '7' is not among the classes 0, 1, 2."
        assert refusal(ConfigError, X, y, class_weight={1: 2.0, 7: 3.0}) == message

    def test_balanced_over_chunks_is_that_of_the_whole(self):  # users.md C08
        X, _ = toy(n_rows=1000)
        y = (np.argsort(np.argsort(X[:, 1])) >= 990).astype(int)
        weighted = fit(X, y, np.where(y == 1, 1000 / (2 * 10), 1000 / (2 * 990)), scale="none", knots="uniform")
        balanced = fit(X, y, chunk_rows=100, class_weight="balanced", scale="none", knots="uniform")
        assert balanced.digest == fit(X, y, class_weight="balanced", scale="none", knots="uniform").digest
        # Sample weights count in the mean code, class weights do not: the problems differ by the centre alone.
        np.testing.assert_allclose(balanced.summary["objective"], weighted.summary["objective"], rtol=3e-3)
        assert balanced.predict(X)[y == 1].mean() > fit(X, y).predict(X)[y == 1].mean()

    def test_a_class_weight_is_a_sample_weight_in_the_loss(self):
        X, y = toy()
        choices = {"center": False, "scale": "none", "knots": "uniform", "intercept": "penalised", "max_epochs": 400}
        by_class = fit(X, y, class_weight={1: 3.0}, **choices).summary
        by_row = fit(X, y, np.where(y == 1, 3.0, 1.0), **choices).summary
        np.testing.assert_allclose(by_class["objective"], by_row["objective"], rtol=1e-3)


class TestCalibrate:
    """The second training without held-out rows, and what becomes of its decisions."""

    @pytest.mark.parametrize("solver", ["newton", "dual-cd", "sgd"])
    def test_only_probabilities_change_and_come_from_held_out_rows(self, solver):
        X, y = toy(n_rows=300, n_classes=3)
        choices = {"loss": "squared_hinge", "solver": solver, "seed": 3}
        plain = fit(X, y, **choices)
        model = fit(X, y, calibrate="sigmoid", **choices)
        np.testing.assert_array_equal(model.coef, plain.coef)
        folds = np.empty(300, np.int16)
        fill_folds(folds, 5, seed=3)
        held = folds == 0
        # Ranges, scale and centre are those of all rows; a row of weight 0 has a part in none of them.
        problem, run = make_run(X, y, **choices)
        costs = np.where(held, 0, problem.costs).astype(np.float32)
        other = SOLVERS[solver].solve(replace(problem, costs=costs), run)
        decisions = decide(model.encoder, X[held], other.coef, other.intercept)
        expected = Sigmoid.fit(decisions, y[held, None] == np.arange(3), np.ones(held.sum()))
        np.testing.assert_array_equal(model.calibration.slope, expected.slope)
        np.testing.assert_array_equal(model.calibration.offset, expected.offset)
        assert model.summary["calibration"]["n_rows"] == held.sum()
        assert model.summary["reads"] > plain.summary["reads"]

    @pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
    def test_the_reader_does_not_matter_and_the_file_holds_it(self, kind, tmp_path):
        X, y = toy(n_rows=300)
        choices = {"loss": "hinge", "calibrate": kind, "memory_limit": 20_000}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models = [fit(X, y, chunk_rows=chunk_rows, **choices) for chunk_rows in (7, 300)]
        assert models[0].digest == models[1].digest
        models[0].save(tmp_path / "m.safetensors")
        loaded = load_model(tmp_path / "m.safetensors")
        np.testing.assert_array_equal(loaded.predict_proba(X), models[0].predict_proba(X))
        assert loaded.calibration_arrays().keys() == models[0].calibration_arrays().keys() != set()
        assert np.mean((models[0].predict_proba(X)[:, 1] > 0.5) == y) > 0.7

    def test_class_weights_do_not_bend_the_probabilities(self):
        X, y = toy(n_rows=2000, noise=2.0)
        y = (y & (np.arange(2000) % 4 == 0)).astype(int)
        for class_weight in (None, "balanced"):
            model = fit(X, y, loss="squared_hinge", calibrate="sigmoid", class_weight=class_weight)
            assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.02)

    def test_messages(self):
        X, y = toy()
        y[:] = 0
        y[:2] = 1
        with pytest.raises(ConfigError) as caught:
            fit(X, y, loss="hinge", calibrate="sigmoid")
        assert str(caught.value) == (
            "calibrate: the 95 other rows hold none of the class 1. Give more rows of it, another seed, or no "
            "calibration."
        )
        with pytest.raises(ConfigError) as caught:
            Options(calibrate="sigmoid", solver="liblinear")
        assert str(caught.value) == (
            "calibrate: held-out rows are left out by a weight of 0, which the solver liblinear does not know. Use "
            "dual-cd."
        )

    def test_an_interrupted_run_has_none(self, caplog):
        class Stop(Progress):
            def should_stop(self):
                return True

        X, y = toy()
        model = train(open_source(X, y), Options(loss="hinge", calibrate="sigmoid"), Stop())
        assert model.calibration is None and model.summary["interrupted"]
        assert caplog.messages == ["interrupted before the calibration was fitted: the model has none."]
