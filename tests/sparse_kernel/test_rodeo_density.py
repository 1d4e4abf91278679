"""Rodeo density classifier: the specification's vectors, its laws, options and messages."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

from linadd.errors import ConfigError, ConvergenceWarning, DataError
from linadd.model_file import load_model_file
from linadd.sparse_kernel import rodeo_density
from linadd.sparse_kernel.rodeo_density import RodeoDensityClassifier, relevance_scores


def example_1(rng, n_rows, n_classes=10, n_features=30):
    """The specification's example 1: class g has the relevant variables g..g+5, N(0.5, (0.02 k)^2), others uniform."""
    X = rng.random((n_classes, n_rows, n_features))
    for g in range(n_classes):
        for k in range(6):
            X[g, :, g + k] = rng.normal(0.5, 0.02 * (k + 1), n_rows)
    return X.reshape(-1, n_features), np.repeat(np.arange(n_classes), n_rows)


@pytest.fixture(scope="module")
def fitted():
    """A model of example 1 and 200 test rows."""
    rng = np.random.default_rng(1)
    classifier = RodeoDensityClassifier().fit(*example_1(rng, 150))
    return classifier, *example_1(rng, 20)


@parametrize_with_checks([RodeoDensityClassifier()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_mean_bandwidths_and_scores_are_those_of_the_specification():
    i = np.arange(40)
    X = np.stack([0.5 + 0.05 * np.sin(i), (i + 1) * 0.6180339887 % 1, (i + 1) * 0.7548776662 % 1], axis=1)
    X, y = np.vstack([X, X + 5]), np.repeat([0, 1], 40)
    classifier = RodeoDensityClassifier(scale=None).fit(X, y)
    np.testing.assert_allclose(classifier.mean_bandwidths_[0], [0.05292855, 0.39921876, 0.38719808], atol=1e-8)
    np.testing.assert_allclose(classifier.z_scores_[0], [-1.15416055, 0.60765906, 0.54650149], atol=1e-8)
    np.testing.assert_array_equal(classifier.selected_[0], [0])
    classifier = RodeoDensityClassifier(scale=None, leave_one_out=False).fit(X, y)
    np.testing.assert_allclose(classifier.mean_bandwidths_[0], [0.05192482, 0.38585432, 0.37195501], atol=1e-8)


def test_example_1_accuracy_and_selection(fitted):
    classifier, X, y = fitted
    assert 0.60 < classifier.score(X, y) < 0.77  # 0.66-0.71 over many trials; 200 rows have a standard error of 0.033
    exact = sum(np.array_equal(chosen, np.arange(g, g + 6)) for g, chosen in enumerate(classifier.selected_))
    assert exact >= 9


def test_two_stages_on_example_1(fitted):
    _, X, y = fitted
    classifier = RodeoDensityClassifier(restrict_to_selected=True).fit(*example_1(np.random.default_rng(1), 150))
    assert classifier.score(X, y) >= 0.86


def test_restricted_density_is_that_of_the_selected_columns():
    X, y = example_1(np.random.default_rng(2), 40, n_classes=2, n_features=8)
    classifier = RodeoDensityClassifier(restrict_to_selected=True).fit(X, y)
    log_density = classifier.predict_log_density(X[:5])
    for c, chosen in enumerate(classifier.selected_):
        assert 0 < len(chosen) < 8
        _, expected = classifier._search(classifier.scaling_(X[:5])[:, chosen], classifier.X_by_class_[c][:, chosen])
        np.testing.assert_array_equal(log_density[:, c], expected)
    nothing = RodeoDensityClassifier(restrict_to_selected=True, z_cutpoint=-100.0).fit(X, y)
    np.testing.assert_array_equal(nothing.predict_proba(X), RodeoDensityClassifier().fit(X, y).predict_proba(X))


def test_noise_variables_have_positive_scores(fitted):
    classifier, _, _ = fitted
    scores = classifier.z_scores_
    relevant = np.array([[g <= j < g + 6 for j in range(30)] for g in range(10)])
    assert scores[relevant].max() < 0 < scores[~relevant].min()


def test_probabilities_sum_to_one_and_follow_the_classes(fitted):
    classifier, X, _ = fitted
    probability = classifier.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(classifier.predict(X), classifier.classes_[probability.argmax(axis=1)])


def test_rows_beyond_float64_get_the_priors():
    X, y = np.random.default_rng(0).random((30, 2)), np.repeat(["a", "b", "b"], 10)
    classifier = RodeoDensityClassifier(class_prior="empirical").fit(X, y)
    np.testing.assert_allclose(classifier.predict_proba([[1e200, 0.0]]), [[1 / 3, 2 / 3]], atol=1e-12)


def test_empirical_prior_multiplies_the_odds():
    X, y = np.random.default_rng(0).random((30, 2)), np.repeat([0, 1, 1], 10)
    uniform, empirical = (RodeoDensityClassifier(class_prior=prior).fit(X, y).predict_proba(X)
                          for prior in ("uniform", "empirical"))
    np.testing.assert_allclose(empirical[:, 1] / empirical[:, 0], 2 * uniform[:, 1] / uniform[:, 0], rtol=1e-10)


def test_minmax_scale_takes_out_the_unit_of_a_feature():
    X, y = example_1(np.random.default_rng(4), 30, n_classes=3, n_features=10)
    expected = RodeoDensityClassifier().fit(X, y).bandwidths(X)
    X[:, 2] *= 1024.0
    np.testing.assert_allclose(RodeoDensityClassifier().fit(X, y).bandwidths(X), expected, rtol=1e-10)


def test_bandwidths_are_whole_powers_of_beta(fitted):
    classifier, X, _ = fitted
    bandwidth = classifier.bandwidths(X)
    assert bandwidth.shape == (200, 10, 30)
    power = np.log(bandwidth / bandwidth.max()) / np.log(0.9)
    np.testing.assert_allclose(power, np.round(power), atol=1e-9)


def test_chunks_and_threads_change_no_bit(fitted):
    classifier, X, _ = fitted
    expected = classifier.predict_proba(X)
    classifier.set_params(chunk_size=7, n_jobs=2)
    np.testing.assert_array_equal(classifier.predict_proba(X), expected)
    classifier.set_params(chunk_size="auto", n_jobs=1)


def test_cross_validated_c0_is_small_for_digits_and_large_for_example_1():
    X, y = load_digits(return_X_y=True)
    assert RodeoDensityClassifier(c0="cv", random_state=0).fit(X[:1000], y[:1000]).c0_ <= 0.5
    assert RodeoDensityClassifier(c0="cv", random_state=0).fit(*example_1(np.random.default_rng(1), 150)).c0_ >= 0.7


def test_ties_in_cross_validation_go_to_the_larger_c0():
    X, y = np.repeat([[0.0], [1.0]], 20, axis=0), np.repeat([0, 1], 20)
    assert RodeoDensityClassifier(c0="cv", random_state=0).fit(X, y).c0_ == max(rodeo_density.C0_GRID)


def test_cross_validation_takes_rare_classes():
    X, y = np.random.default_rng(0).random((12, 2)), np.array([0] * 11 + [1])
    assert RodeoDensityClassifier(c0="cv", random_state=0).fit(X, y).c0_ in rodeo_density.C0_GRID
    with pytest.raises(ConfigError) as error:
        RodeoDensityClassifier(c0="cv").fit([[0.0], [1.0]], [0, 1])
    assert str(error.value) == "c0: 'cv' needs two rows of some class, and every class has one. Give a number."


def test_ctrl_c_keeps_the_best_c0_so_far(monkeypatch):
    calls = []

    def count_right(self, X, y_index, fold, c0):
        calls.append(c0)
        if len(calls) > 7:
            raise KeyboardInterrupt
        return {1.5: 1, 1.0: 5}.get(c0, 0)

    monkeypatch.setattr(RodeoDensityClassifier, "_count_right", count_right)
    X, y = np.random.default_rng(0).random((20, 2)), np.repeat([0, 1], 10)
    with pytest.warns(ConvergenceWarning) as warned:
        classifier = RodeoDensityClassifier(c0="cv", random_state=0).fit(X, y)
    assert classifier.c0_ == 1.0
    assert str(warned[0].message) == ("c0: interrupted; 1.0 is the best of the values tried so far. "
                                      "Fit again for all 8.")


def test_constant_mean_bandwidths_have_score_zero():
    scores = relevance_scores(np.array([[0.3, 0.3, 0.3], [0.1, 0.2, 0.3]]))
    np.testing.assert_allclose(scores, [[0, 0, 0], [-1, 0, 1]], atol=1e-14)
    np.testing.assert_array_equal(scores[0], 0)


@pytest.mark.parametrize(("options", "message"), [
    ({"beta": 1.0}, "beta: 1.0 is not between 0 and 1. Give a shrinking factor such as 0.9."),
    ({"c0": -1}, "c0: -1 is neither a number above 0 nor 'cv'. Give one of them."),
    ({"threshold_constant": "n"}, "threshold_constant: 'n' is neither a number above 0 nor 'log'. Give one of them."),
    ({"min_bandwidth": 0}, "min_bandwidth: 0 is not above 0. Give a number such as 0.001."),
    ({"restrict_to_selected": True, "scale": None},
     "restrict_to_selected: it needs scale='minmax', not None: the variables left out count as uniform on [0, 1]. "
     "Change one of the two."),
    ({"class_prior": "flat"}, "class_prior: 'flat' is not a choice. Choose from 'uniform', 'empirical'."),
])
def test_options_are_checked(options, message):
    with pytest.raises(ConfigError) as error:
        RodeoDensityClassifier(**options).fit([[0.0], [1.0]], [0, 1])
    assert str(error.value) == message


def test_one_class_is_refused():
    with pytest.raises(DataError, match="one class only"):
        RodeoDensityClassifier().fit([[0.0], [1.0]], [1, 1])


@pytest.mark.parametrize("restrict_to_selected", [False, True])
def test_a_saved_model_predicts_the_same_bits(restrict_to_selected, tmp_path):
    X, y = example_1(np.random.default_rng(5), 30, n_classes=3, n_features=10)
    classifier = RodeoDensityClassifier(c0="cv", random_state=0, restrict_to_selected=restrict_to_selected).fit(X, y)
    classifier.save(tmp_path / "model.safetensors")
    loaded = RodeoDensityClassifier.from_state(*load_model_file(tmp_path / "model.safetensors"))
    assert (loaded._mean_bandwidths is not None) == restrict_to_selected
    assert loaded.c0_ == classifier.c0_
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(loaded.z_scores_, classifier.z_scores_)
