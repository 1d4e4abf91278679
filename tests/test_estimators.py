"""AdditiveClassifier: the conventions of scikit-learn, on arrays, files and streams."""

import inspect
import pickle
import warnings

import dask.array
import h5py
import numpy as np
import pandas
import polars
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from linadd import AdditiveClassifier, load_model, open_source
from linadd.errors import ConfigError, ConvergenceWarning, DataError, DataWarning
from linadd.estimators import NOT_OPTIONS
from linadd.options import Options
from tests.solvers.problems import fit, toy

FIRST_ROWS = "ignore:partial_fit. ranges and scale are taken:linadd.errors.DataWarning"


def test_parameters_are_the_options_with_their_defaults():
    defaults = {name: p.default for name, p in inspect.signature(AdditiveClassifier).parameters.items()}
    assert AdditiveClassifier().options() == Options()
    # `seed` has scikit-learn's name.
    options = {"seed" if name == "random_state" else name for name in defaults} - NOT_OPTIONS
    assert options == set(Options().record())
    for name in ("encoder", "n_bins", "C", "solver", "center", "class_weight"):
        assert defaults[name] == getattr(Options(), name)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fit_is_train(n_classes):
    X, y = toy(n_classes=n_classes)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    clf = AdditiveClassifier(loss="squared_hinge", C=0.5, random_state=4).fit(X, y, sample_weight=weights)
    model = fit(X, y, weights, loss="squared_hinge", C=0.5, seed=4)
    assert clf.model_.digest == model.digest
    assert clf.gap_ == model.summary["gap"] <= clf.tol and clf.history_ == model.history
    assert clf.classes_.tolist() == list(range(n_classes)) and clf.n_features_in_ == 4
    assert clf.n_iter_ == len(model.history)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_coefficients_and_decisions_have_scikit_learns_shapes(n_classes):
    X, y = toy(n_classes=n_classes)
    clf = AdditiveClassifier().fit(X, y)
    n_outputs = 1 if n_classes == 2 else n_classes
    assert clf.coef_.shape == (n_outputs, 4 * 11) and clf.intercept_.shape == (n_outputs,)
    for o in range(n_outputs):
        np.testing.assert_array_equal(clf.coef_[o].reshape(4, 11), clf.model_.coef[:, :, o])
    assert clf.decision_function(X).shape == ((120,) if n_classes == 2 else (120, n_classes))
    assert clf.predict_proba(X).shape == (120, n_classes)
    np.testing.assert_array_equal(clf.predict(X), clf.model_.predict(X))
    assert clf.score(X, y) == np.mean(clf.predict(X) == y)


def test_any_kind_of_data_gives_the_same_model(tmp_path):
    X, y = toy(n_classes=3)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    expected = AdditiveClassifier().fit(X, y)
    data = {
        "path": (tmp_path / "rows.npz", None),
        "text": (str(tmp_path / "rows.npz"), None),
        "source": (open_source(X, y, chunk_rows=7), None),
        "csr": (scipy.sparse.csr_matrix(X), y),
        "pandas": (pandas.DataFrame(X, columns=list("abcd")), pandas.Series(y)),
        "polars": (polars.DataFrame(X, schema=list("abcd")), polars.Series(y)),
        "dask": (dask.array.from_array(X, chunks=(50, 4)), dask.array.from_array(y, chunks=50)),
        "lists": (X.tolist(), y.tolist()),
    }
    for name, (rows, labels) in data.items():
        clf = AdditiveClassifier().fit(rows, labels)
        np.testing.assert_array_equal(clf.coef_, expected.coef_, err_msg=name)
        # The scores of sparse rows are sums over their entries, in another order.
        limit = 1e-12 if name == "csr" else 0
        decisions = expected.decision_function(X)
        np.testing.assert_allclose(clf.decision_function(rows), decisions, rtol=limit, atol=limit, err_msg=name)
        np.testing.assert_array_equal(clf.predict(rows), expected.predict(X), err_msg=name)
        assert clf.score(rows, labels) == expected.score(X, y), name


def test_clone_and_set_params_keep_every_parameter():
    clf = AdditiveClassifier("fourier", n_harmonics=3, class_weight={0: 2.0}, random_state=7)
    copy = clone(clf)
    assert copy.get_params() == clf.get_params() and copy is not clf
    assert copy.set_params(C=3.0, encoder="hermite").options() == Options(
        encoder="hermite", n_harmonics=3, class_weight={0: 2.0}, seed=7, C=3.0
    )


def test_a_parameter_that_cannot_work_is_refused_at_fit():
    with pytest.raises(ConfigError) as caught:
        AdditiveClassifier(solver="lbfgs").fit(*toy())
    assert str(caught.value).startswith("solver: 'lbfgs' is not one of auto, dual-cd, ")


def test_a_grid_search_and_a_pipeline():
    X, y = toy()
    search = GridSearchCV(AdditiveClassifier(loss="hinge"), {"C": [1e-4, 1.0], "n_bins": np.array([2, 8])}, cv=3)
    assert search.fit(X, y).best_score_ > 0.7 and search.best_params_["C"] == 1.0
    pipeline = make_pipeline(StandardScaler(), AdditiveClassifier(n_bins=np.int64(5)))
    assert cross_val_score(pipeline, X, y, cv=3, scoring="roc_auc").mean() > 0.8


def test_weights_are_routed_to_fit_and_score():
    X, y = toy()
    weights = np.where(np.arange(len(y)) % 2, 1.0, 1e-6)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = AdditiveClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        routed = cross_validate(clf, X, y, cv=2, params={"sample_weight": weights}, return_estimator=True)
        request = AdditiveClassifier().set_partial_fit_request(census=True, classes=True).get_metadata_routing()
    half = routed["estimator"][0]
    rows = routed["estimator"][0].model_.summary["n_rows"]
    assert rows == len(y) // 2 and half.model_.fingerprint != AdditiveClassifier().fit(X, y).model_.fingerprint
    plain = cross_validate(AdditiveClassifier(), X, y, cv=2, return_estimator=True)
    assert not np.array_equal(half.coef_, plain["estimator"][0].coef_)
    assert request.partial_fit.requests["census"] is True


class TestNames:
    """Columns that have names are never scored in another order in silence."""

    X, y = toy()
    NAMES = ("age", "height", "dose", "rate")

    def frame(self, library=pandas, order=(0, 1, 2, 3)):
        """The rows as a frame, columns in the order given."""
        return library.DataFrame({self.NAMES[j]: self.X[:, j] for j in order})

    @pytest.mark.parametrize("library", [pandas, polars], ids=lambda library: library.__name__)
    def test_a_frame_in_another_order_is_refused(self, library):
        clf = AdditiveClassifier().fit(self.frame(library), self.y)
        assert clf.feature_names_in_.tolist() == clf.model_.feature_names == list(self.NAMES)
        with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
            clf.predict(self.frame(library, (1, 0, 2, 3)))
        with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing:\n- age"):
            clf.predict(self.frame(library, (1, 2, 3)))
        with pytest.raises(ValueError, match="Feature names must be in the same order"):
            clf.partial_fit(self.frame(library, (1, 0, 2, 3)), self.y)

    def test_names_on_one_side_only_warn(self):
        named, bare = AdditiveClassifier().fit(self.frame(), self.y), AdditiveClassifier().fit(self.X, self.y)
        with pytest.warns(UserWarning, match="X does not have valid feature names, but AdditiveClassifier was fitted"):
            named.predict(self.X)
        with pytest.warns(UserWarning, match="X has feature names, but AdditiveClassifier was fitted without"):
            bare.predict(self.frame())
        assert not hasattr(bare, "feature_names_in_")
        assert not hasattr(named.fit(self.X, self.y), "feature_names_in_")

    def test_a_file_in_another_order_is_matched(self, tmp_path):
        clf = AdditiveClassifier().fit(self.frame(), self.y)
        path, order = tmp_path / "rows.h5", [3, 1, 0, 2]
        with h5py.File(path, "w") as file:
            file["X"], file["y"] = self.X[:, order], self.y
            file["X"].attrs["feature_names"] = [self.NAMES[j] for j in order]
        np.testing.assert_array_equal(clf.decision_function(path), clf.decision_function(self.frame()))
        assert clf.score(path) == clf.score(self.frame(), self.y)
        other = AdditiveClassifier().fit(path)
        assert other.feature_names_in_.tolist() == [self.NAMES[j] for j in order]
        np.testing.assert_array_equal(
            other.decision_function(open_source(self.frame())), other.decision_function(self.frame(order=order))
        )


@pytest.mark.filterwarnings(FIRST_ROWS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_pickled_estimator_goes_on_alike(n_classes):
    X, y = toy(n_classes=n_classes)
    fitted = AdditiveClassifier().fit(X, y)
    streaming = AdditiveClassifier().partial_fit(X, y, classes=range(n_classes))
    for clf in (fitted, streaming):
        copy = pickle.loads(pickle.dumps(clf))
        np.testing.assert_array_equal(copy.decision_function(X), clf.decision_function(X))
        np.testing.assert_array_equal(copy.partial_fit(X, y).coef_, clf.partial_fit(X, y).coef_)
    assert len(pickle.dumps(streaming)) < 40_000 * n_classes  # no rows in it


class TestWarmStart:
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_newton_begins_where_it_ended(self, n_classes):
        X, y = toy(n_rows=400, n_classes=n_classes)
        clf = AdditiveClassifier(solver="newton", warm_start=True, tol=1e-6, penalty_order=2).fit(X, y)
        first, expected = clf.model_, clf.decision_function(X)
        clf.fit(X, y)
        assert clf.n_iter_ == 1 < len(first.history) and clf.gap_ <= 1e-6
        np.testing.assert_allclose(clf.decision_function(X), expected, rtol=0, atol=1e-2)
        assert clf.model_.summary["start"] == first.digest and "start" not in first.summary

    def test_sgd_begins_where_it_ended(self):
        X, y = toy(n_rows=400)
        clf = AdditiveClassifier(solver="sgd", warm_start=True, max_epochs=1).fit(X, y)
        first = clf.model_
        again = clf.fit(X, y).model_
        assert again.summary["start"] == first.digest
        assert not np.array_equal(again.coef, first.coef)
        objectives = [AdditiveClassifier(solver="sgd", max_epochs=n, certify=True).fit(X, y).gap_ for n in (1, 20)]
        warm = AdditiveClassifier(solver="sgd", warm_start=True, max_epochs=1, certify=True)
        for _ in range(20):
            warm.fit(X, y)
        assert warm.gap_ < objectives[0]

    def test_dual_cd_begins_at_zero_and_the_log_says_so(self, caplog):
        X, y = toy()
        caplog.set_level("INFO", "linadd.train")
        clf = AdditiveClassifier(solver="dual-cd", warm_start=True).fit(X, y)
        digest = clf.model_.digest
        assert clf.fit(X, y).model_.digest == digest
        assert [record.getMessage() for record in caplog.records] == [
            "start: the solver dual-cd begins at zero; newton and sgd can start from a model."
        ]

    def test_a_model_of_another_kind_is_refused(self):
        X, y = toy()
        clf = AdditiveClassifier(warm_start=True, n_bins=4).fit(X, y)
        with pytest.raises(ConfigError) as caught:
            clf.set_params(n_bins=5).fit(X, y)
        options = {"degree": 1, "n_bins": 4, "penalty_order": 1, "knots": "auto"}
        assert str(caught.value) == (
            f"start: the model to start from has the encoder bspline {options}, 4 features and the classes 0, 1; these "
            "are others now. Start anew: warm_start=False, or no --initial."
        )

    def test_columns_in_another_order_are_refused(self):
        pandas = pytest.importorskip("pandas", reason="the extra `frames` is not installed")
        X, y = toy()
        frame = pandas.DataFrame(X, columns=list("abcd"))
        clf = AdditiveClassifier(warm_start=True).fit(frame, y)
        with pytest.raises(ConfigError) as caught:
            clf.fit(frame[list("abdc")], y)
        assert str(caught.value) == (
            "start: column 3 is 'd'; in the model to start from it is 'c'. Give the columns in its order."
        )


def test_before_fit_there_is_nothing_to_ask_for():
    clf = AdditiveClassifier()
    for name in ("coef_", "intercept_", "classes_", "gap_", "history_", "n_iter_", "n_features_in_"):
        assert not hasattr(clf, name)
    for call in (clf.predict, clf.decision_function, clf.predict_proba, clf.save):
        with pytest.raises(NotFittedError):
            call(toy()[0])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_margin_loss_has_no_probabilities(loss):
    X, y = toy()
    clf = AdditiveClassifier(loss=loss)
    assert not hasattr(clf, "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
        clf.fit(X, y).predict_proba(X)
    assert hasattr(AdditiveClassifier(), "predict_proba")
    # What counts is the loss of the model.
    assert not hasattr(clf.set_params(loss="logistic"), "predict_proba")
    assert hasattr(clf.fit(X, y), "predict_proba")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibration_gives_any_loss_probabilities(n_classes):
    X, y = toy(n_rows=600, n_classes=n_classes)
    clf = AdditiveClassifier(loss="hinge", calibrate="isotonic")
    assert hasattr(clf, "predict_proba")
    proba = clf.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.mean(np.argmax(proba, axis=1) == y) > 0.7
    assert not hasattr(clf.set_params(calibrate=None).fit(X, y), "predict_proba")
    outer = CalibratedClassifierCV(AdditiveClassifier(loss="hinge"), cv=3).fit(X, y)
    assert np.mean(outer.predict(X) == y) > 0.7 and outer.predict_proba(X).shape == (600, n_classes)


def test_rows_of_another_width_are_refused():
    X, y = toy()
    clf = AdditiveClassifier().fit(X, y)
    with pytest.raises(ValueError) as caught:
        clf.predict(X[:, :3])
    assert str(caught.value) == "X has 3 features, but AdditiveClassifier is expecting 4 features as input."
    with pytest.raises(DataError) as caught:
        clf.predict(open_source(X[:, :3]))
    assert str(caught.value) == "array: has 3 features; 4 are needed. Give data of the same columns."


def test_a_value_that_is_not_finite_is_named_by_its_place():
    X, y = toy()
    clf = AdditiveClassifier().fit(X, y)
    row, column = np.argwhere(X.max() == X)[0] + 1
    remedy = "linadd takes no NaN or infinity: fill or drop this row."
    with pytest.raises(DataError) as caught:
        clf.predict(np.where(X.max() == X, np.nan, X))
    assert str(caught.value) == f"array, row {row}, column {column}: the value is nan. {remedy}"


def test_a_fault_far_down_a_file_is_named_by_its_row():
    X, y = toy()
    clf = AdditiveClassifier().fit(X, y)
    X[100, 1] = np.inf
    with pytest.raises(DataError, match="array, row 101, column 2: the value is inf"):
        clf.predict(open_source(X, chunk_rows=30))


def test_a_saved_classifier_scores_alike(tmp_path):
    X, y = toy(n_classes=3)
    clf = AdditiveClassifier().fit(X, y)
    clf.save(tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    assert loaded.options == clf.options().record()


def test_no_file_of_data_is_overwritten_by_a_model(tmp_path):
    path = tmp_path / "rows.h5"
    path.write_bytes(b"rows")
    with pytest.raises(ConfigError) as caught:
        AdditiveClassifier().fit(*toy()).save(path)
    assert str(caught.value) == f"{path}: a model is a *.safetensors file. Give the name that suffix."
    assert path.read_bytes() == b"rows"


class TestPartialFit:
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_with_a_census_it_is_sgd_in_file_order_in_any_batches(self, n_classes):
        X, y = toy(n_rows=300, n_classes=n_classes)
        whole = AdditiveClassifier(solver="sgd", max_epochs=1, shuffle=False).fit(X, y)
        for n_batches in (1, 7, 300):
            clf = AdditiveClassifier()
            for piece in np.array_split(np.arange(300), n_batches):
                clf.partial_fit(X[piece], y[piece], census=(X, y))
            np.testing.assert_array_equal(clf.coef_, whole.coef_)
            np.testing.assert_array_equal(clf.intercept_, whole.intercept_)
        assert clf.gap_ is None and clf.model_.summary["n_rows"] == 300 and clf.n_iter_ == 1

    def test_a_census_may_be_a_path_or_lack_labels(self, tmp_path):
        X, y = toy()
        np.savez(tmp_path / "rows.npz", X=X, y=y)
        expected = AdditiveClassifier().partial_fit(X, y, census=(X, y)).coef_
        for census, classes in ((tmp_path / "rows.npz", None), (open_source(X, y), None), (X, [0, 1])):
            clf = AdditiveClassifier().partial_fit(X, y, classes=classes, census=census)
            np.testing.assert_array_equal(clf.coef_, expected)
        with pytest.raises(DataError) as caught:
            AdditiveClassifier().partial_fit(X, y, census=X)
        assert str(caught.value) == "array: has no labels. Give y."

    def test_without_a_census_the_first_rows_give_the_ranges_and_a_warning_says_so(self):
        X, y = toy()
        clf = AdditiveClassifier()
        with pytest.warns(DataWarning) as caught:
            clf.partial_fit(X[:50], y[:50], classes=[0, 1])
        (warning,) = caught
        assert warning.filename == __file__
        assert str(warning.message) == (
            "partial_fit: ranges and scale are taken from the 50 rows of the first call. Give census= to take them "
            "from all data."
        )
        np.testing.assert_array_equal(clf.model_.encoder.ranges, np.stack([X[:50].min(0), X[:50].max(0)], axis=1))
        clf.partial_fit(X[50:], y[50:])
        assert clf.model_.summary["n_rows"] == 120 and clf.score(X, y) > 0.7

    @pytest.mark.filterwarnings(FIRST_ROWS)
    def test_classes_that_come_later_are_in_the_model_from_the_start(self):
        X, y = toy(n_classes=3)
        clf = AdditiveClassifier().partial_fit(X[y < 2], y[y < 2], classes=[2, 0, 1])
        assert clf.classes_.tolist() == [0, 1, 2] and clf.coef_.shape[0] == 3
        assert clf.partial_fit(X, y).score(X, y) > 0.5

    def test_the_first_call_needs_the_classes(self):
        with pytest.raises(ConfigError) as caught:
            AdditiveClassifier().partial_fit(*toy())
        assert str(caught.value) == (
            "partial_fit: the first call needs classes=, all labels that will come, or census=."
        )

    @pytest.mark.filterwarnings(FIRST_ROWS)
    def test_weights_are_factors_of_c_and_zero_is_no_row(self):
        X, y = toy()
        clf, weighted = AdditiveClassifier(), AdditiveClassifier()
        clf.partial_fit(X, y, census=(X, y))
        weighted.partial_fit(X, y, census=(X, y), sample_weight=np.ones(120))
        weighted.partial_fit(X[:9], y[:9], sample_weight=np.zeros(9))
        np.testing.assert_array_equal(clf.coef_, weighted.coef_)
        weighted.partial_fit(X, y, sample_weight=np.full(120, 2.0))
        assert not np.array_equal(clf.partial_fit(X, y).coef_, weighted.coef_)

    def test_balanced_classes_need_a_census_with_labels(self):
        X, y = toy()
        clf = AdditiveClassifier(class_weight="balanced").partial_fit(X, y, census=(X, np.where(y == 0, 0, 1)))
        assert clf.classes_.tolist() == [0, 1]
        with pytest.raises(ConfigError, match="'balanced' needs the counts of a census"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            AdditiveClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1])

    def test_after_fit_it_goes_on_from_the_model(self):
        X, y = toy()
        clf = AdditiveClassifier().fit(X, y)
        before = clf.decision_function(X)
        clf.partial_fit(X[:20], y[:20])
        assert clf.model_.summary["n_rows"] == 140 and clf.n_iter_ == 1 and clf.gap_ is None
        assert 0 < np.abs(clf.decision_function(X) - before).max() < 0.3 * np.abs(before).max()

    def test_other_classes_than_before_are_refused(self):
        X, y = toy()
        clf = AdditiveClassifier().fit(X, y)
        with pytest.raises(ConfigError) as caught:
            clf.partial_fit(X, y, classes=[0, 1, 2])
        assert str(caught.value) == (
            "partial_fit: classes=0, 1, 2 are not those of the first call or of fit, 0, 1."
        )
        clf.partial_fit(X, y, classes=[1, 0])

    def test_fit_starts_anew(self):
        X, y = toy()
        clf = AdditiveClassifier().partial_fit(X, y, census=(X, y))
        clf.fit(X, y)
        assert clf.model_.digest == AdditiveClassifier().fit(X, y).model_.digest
        np.testing.assert_array_equal(
            clf.partial_fit(X, y, census=(X, y)).coef_, AdditiveClassifier().partial_fit(X, y, census=(X, y)).coef_
        )

    def test_pegasos_averages_unless_told_otherwise(self):
        X, y = toy()
        choices = {"loss": "hinge", "schedule": "pegasos"}
        last = AdditiveClassifier(average=False, **choices).partial_fit(X, y, census=(X, y))
        assert not np.array_equal(last.coef_, AdditiveClassifier(**choices).partial_fit(X, y, census=(X, y)).coef_)


# They compare at 1e-7, below float32; `test_a_weight_is_a_count` does it at 1e-4.
WEIGHTS_TO_1E_7 = ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("choices", [{}, {"loss": "hinge"}, {"solver": "sgd"}], ids=str)
def test_scikit_learns_checks(choices):
    expected = dict.fromkeys(WEIGHTS_TO_1E_7, "compares at 1e-7, below float32")
    clf = AdditiveClassifier(**choices)
    results = check_estimator(clf, expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed


@pytest.mark.parametrize(
    ("loss", "form"),
    [("logistic", np.asarray), ("logistic", scipy.sparse.csr_array), ("hinge", np.asarray)],
    ids=["logistic-dense", "logistic-sparse", "hinge-dense"],
)
def test_a_weight_is_a_count(loss, form):
    X, y = toy(n_rows=40)
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    # Quantile knots, and the order of the solver's steps, are not those of repeated rows.
    clf = AdditiveClassifier(loss=loss, knots="uniform", tol=1e-9, max_epochs=500, C=0.1, penalty_order=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        weighted = clone(clf).fit(form(X), y, sample_weight=counts)
        repeated = clone(clf).fit(form(np.repeat(X, counts, axis=0)), np.repeat(y, counts))
    expected = repeated.decision_function(X)
    np.testing.assert_allclose(weighted.decision_function(X), expected, atol=1e-4 * np.abs(expected).max())


def test_a_run_that_did_not_converge_warns():
    with pytest.warns(ConvergenceWarning, match="stopped after 1 pass at a relative duality gap"):
        AdditiveClassifier(solver="dual-cd", max_epochs=1).fit(*toy())
