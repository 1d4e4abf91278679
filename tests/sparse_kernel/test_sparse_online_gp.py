"""The estimator of the sparse online GP: the specification's vectors, streams, several classes, files, messages."""

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.utils.estimator_checks import parametrize_with_checks

from linadd.errors import ConfigError, ConvergenceWarning, DataError, DataWarning
from linadd.model_file import load_model_file
from linadd.sparse_kernel.kernels import RBF
from linadd.sparse_kernel.online_gp import OnlineGP
from linadd.sparse_kernel.sparse_online_gp import SparseOnlineGPClassifier
from tests.sparse_kernel.toy import BIAS, T1, XS, Y3, Y

OPTIONS = {"kernel": RBF(variance=1.5, length_scale=0.9), "bias": BIAS, "scale": None}


def wavy(seed, n_rows=150, n_classes=2):
    """Two features; classes in wavy bands."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n_rows, 2))
    bands = np.linspace(-1, 1, n_classes + 1)[1:-1]
    return X, np.searchsorted(bands, np.sin(2 * X[:, 0]) + X[:, 1] - 0.5 * rng.normal(size=n_rows))


@pytest.mark.filterwarnings("ignore:scale='standard'")  # the first call of partial_fit says so
@parametrize_with_checks([SparseOnlineGPClassifier()], expected_failed_checks=lambda estimator: {
    "check_decision_proba_consistency": "decision_function is mean + bias; the probability also knows the variance"})
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_vectors_of_the_specification():
    classifier = SparseOnlineGPClassifier(**OPTIONS, max_basis=8, tol=1e-11, random_state=0).fit(T1, Y)
    np.testing.assert_allclose(classifier.predict_proba(XS)[:, 1], [0.753480294, 0.234737873], atol=1e-7)
    np.testing.assert_allclose(classifier.predict_latent(XS)[0], [0.811723856, -1.082451213], atol=1e-7)
    np.testing.assert_allclose(classifier.decision_function(XS), [0.911723856, -0.982451213], atol=1e-7)
    np.testing.assert_allclose(classifier.log_evidence_, -5.027850188, atol=1e-7)
    assert sorted(classifier.basis_indices_) == list(range(8))
    assert classifier.P_.shape == (8, 8)
    one = SparseOnlineGPClassifier(**OPTIONS, max_basis=3, max_sweeps=1, shuffle=False).fit(T1, Y)
    np.testing.assert_allclose(one.predict_latent(XS)[1], [0.855660950, 0.897526458], atol=1e-7)
    assert one.n_sweeps_ == 1


def test_several_classes_are_one_against_the_rest():
    classifier = SparseOnlineGPClassifier(**OPTIONS, random_state=0).fit(T1, Y3)
    positive = np.column_stack([
        SparseOnlineGPClassifier(**OPTIONS, random_state=0).fit(T1, c == Y3).predict_proba(XS)[:, 1] for c in range(3)])
    expected = positive / positive.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(classifier.predict_proba(XS), expected, atol=1e-6)
    assert classifier.decision_function(XS).shape == (2, 3)
    assert len(classifier.models_) == len(classifier.basis_indices_) == 3


@pytest.mark.parametrize("likelihood", ["probit", "logit", "gaussian"])
def test_the_largest_decision_is_the_predicted_class(likelihood):
    X, y = wavy(9, n_classes=3)
    classifier = SparseOnlineGPClassifier(likelihood=likelihood, bias=BIAS, random_state=0).fit(X, y)
    far = np.random.default_rng(0).uniform(-6, 6, (500, 2))  # where the variances of the classes differ
    np.testing.assert_array_equal(classifier.decision_function(far).argmax(axis=1), classifier.predict(far))


@pytest.mark.parametrize("likelihood", ["probit", "logit", "gaussian"])
def test_likelihoods_learn_the_same_boundary(likelihood):
    X, y = wavy(0, n_rows=400)
    classifier = SparseOnlineGPClassifier(likelihood=likelihood, kernel=RBF(4.0, 0.7), random_state=0)
    classifier.fit(X[:300], y[:300])
    assert classifier.score(X[300:], y[300:]) > 0.75
    np.testing.assert_array_equal(classifier.predict(X), classifier.decision_function(X) > 0)
    assert len(classifier.basis_indices_) <= 50


def test_likelihood_is_scaled_by_its_slope():
    classifier = SparseOnlineGPClassifier(**OPTIONS, probit_slope=2.0, random_state=0).fit(T1, Y)
    mean, variance = classifier.predict_latent(XS)
    np.testing.assert_allclose(classifier.predict_proba(XS)[:, 1], ndtr((mean + BIAS) / np.sqrt(0.25 + variance)))


def test_a_stream_equals_one_pass():
    X, y = wavy(1)
    one = SparseOnlineGPClassifier(**OPTIONS, max_basis=12, max_sweeps=1, shuffle=False).fit(X, y)
    stream = SparseOnlineGPClassifier(**OPTIONS, max_basis=12)
    for rows in (slice(0, 1), slice(1, 70), slice(70, 150)):
        stream.partial_fit(X[rows], y[rows], classes=[0, 1])
    np.testing.assert_allclose(stream.predict_proba(X), one.predict_proba(X), atol=1e-9)
    assert sorted(stream.basis_indices_) == sorted(one.basis_indices_)
    np.testing.assert_allclose(stream.site_mean_, one.site_mean_, rtol=1e-7)
    assert stream.log_evidence_ is None


def test_a_stream_goes_on_after_fit_and_after_loading(tmp_path):
    X, y = wavy(2)
    classifier = SparseOnlineGPClassifier(**OPTIONS, max_basis=12, removal_score="kl", random_state=0)
    classifier.fit(X[:14], y[:14])
    classifier.save(tmp_path / "model.safetensors")
    loaded = SparseOnlineGPClassifier.from_state(*load_model_file(tmp_path / "model.safetensors"))
    for model in (classifier, loaded):
        model.partial_fit(X[14:], y[14:])
    np.testing.assert_allclose(loaded.predict_proba(X), classifier.predict_proba(X), atol=1e-7)
    np.testing.assert_array_equal(np.sort(loaded.basis_indices_), np.sort(classifier.basis_indices_))
    assert np.any(loaded.basis_indices_ < 14)
    assert np.any(loaded.basis_indices_ >= 14)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_saved_model_predicts_the_same_bits(n_classes, tmp_path):
    X, y = wavy(3, n_classes=n_classes)
    names = np.array(["low", "middle", "upper"])[y]
    classifier = SparseOnlineGPClassifier(likelihood="logit", random_state=0).fit(X, names)
    classifier.save(tmp_path / "model.safetensors")
    loaded = SparseOnlineGPClassifier.from_state(*load_model_file(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), classifier.predict(X))
    assert loaded.log_evidence_ == classifier.log_evidence_


def test_search_raises_the_evidence_and_starts_from_the_given_kernel():
    X, y = wavy(4)
    plain, searched = (SparseOnlineGPClassifier(kernel=RBF(0.3, 3.0), optimize_hyperparameters=search, random_state=0)
                       .fit(X, y) for search in (False, True))
    assert searched.log_evidence_ > plain.log_evidence_ + 5
    assert plain.kernel_ == RBF(0.3, 3.0)
    assert searched.kernel_ != plain.kernel_
    assert searched.kernel == RBF(0.3, 3.0)


def test_given_rows_become_the_basis():
    X, y = wavy(5)
    classifier = SparseOnlineGPClassifier(**OPTIONS).fit(X, y, basis_indices=[7, 3, 99])
    assert classifier.basis_indices_.tolist() == [7, 3, 99]
    np.testing.assert_array_equal(classifier.basis_vectors_, X[[7, 3, 99]])


def test_not_converged_is_said():
    X, y = wavy(6)
    with pytest.warns(ConvergenceWarning) as warned:
        SparseOnlineGPClassifier(max_sweeps=2, random_state=0).fit(X, y)
    text = str(warned[0].message)
    assert text.startswith("SparseOnlineGPClassifier: sites still change by ")
    assert text.endswith(" after 2 sweeps, above tol=1e-06. Raise max_sweeps or tol.")


def test_ctrl_c_keeps_the_model_so_far(monkeypatch):
    X, y = wavy(7)

    def interrupted_train(self, X, y, **options):
        self.add_sites(len(X))
        self.sweep(X, y, np.arange(min(40, len(X))))
        return 1, np.inf, True

    monkeypatch.setattr(OnlineGP, "train", interrupted_train)
    with pytest.warns(ConvergenceWarning) as warned:
        classifier = SparseOnlineGPClassifier(**OPTIONS).fit(X, y)
    assert str(warned[0].message) == ("SparseOnlineGPClassifier was interrupted by Ctrl-C, the model so far is kept. "
                                      "Fit again for a converged one.")
    assert classifier.score(X, y) > 0.6
    with pytest.raises(KeyboardInterrupt):
        SparseOnlineGPClassifier(**OPTIONS).fit(T1, Y3)


def test_ctrl_c_in_the_search_keeps_the_best_model(monkeypatch):
    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(OnlineGP, "best_kernel", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted by Ctrl-C"):
        classifier = SparseOnlineGPClassifier(**OPTIONS, optimize_hyperparameters=True, random_state=0).fit(T1, Y)
    assert classifier.log_evidence_ > -5.1


def test_the_first_call_of_a_stream_says_how_it_scales():
    X, y = wavy(8)
    with pytest.warns(DataWarning) as warned:
        SparseOnlineGPClassifier().partial_fit(X[:20], y[:20], classes=[0, 1])
    assert str(warned[0].message) == ("scale='standard': the features are scaled by the 20 rows of the first call. "
                                      "Scale beforehand and use scale=None, or give a first call of typical rows.")


def test_messages_of_streams():
    stream = SparseOnlineGPClassifier(**OPTIONS)
    with pytest.raises(ConfigError) as error:
        stream.partial_fit(T1, Y)
    assert str(error.value) == "classes: the first call of partial_fit needs all labels, at least two. Give them."
    stream.partial_fit(T1, Y, classes=[-1, 1])
    with pytest.raises(DataError) as error:
        stream.partial_fit(T1, np.arange(8) % 3 - 1)
    assert str(error.value) == ("y, row 2: the label 0 is not among the classes [-1, 1]. Name all classes in the first "
                                "call.")


@pytest.mark.parametrize(("options", "message"), [
    ({"likelihood": "poisson"},
     "likelihood: 'poisson' is not a choice. Choose from 'probit', 'logit', 'gaussian'."),
    ({"removal_score": "eps"}, "removal_score: 'eps' is not a choice. Choose from 'mean', 'kl'."),
    ({"multi_class": "softmax"}, "multi_class: 'softmax' is not a choice. Choose from 'ovr'."),
    ({"max_basis": 0}, "max_basis: 0 is below 1. Give a larger number."),
    ({"max_sweeps": 0}, "max_sweeps: 0 is below 1. Give a larger number."),
    ({"freeze_after": 0}, "freeze_after: 0 is below 1. Give a larger number."),
    ({"probit_slope": 0.0}, "probit_slope: 0.0 is not above 0. Give a positive number."),
    ({"novelty_tol": -1}, "novelty_tol: -1 is not in [0, 1). Give a small share such as 1e-4."),
    ({"memory_limit": 1000}, "memory_limit: the table of projections of the rows on the basis takes 220 x 51 x 8 = "
     "8.98e+04 bytes, above the limit of 1e+03. Raise memory_limit, ask for fewer basis vectors or train on fewer "
     "rows."),
])
def test_options_are_checked(options, message):
    with pytest.raises(ConfigError) as error:
        SparseOnlineGPClassifier(**options).fit(T1, Y)
    assert str(error.value) == message
