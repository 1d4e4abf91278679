"""Least-squares probabilistic classifier: the specification's vectors, its laws, cross-validation and streaming."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from linadd.errors import ConfigError, ConvergenceWarning, DataError
from linadd.model_file import load_model_file
from linadd.sources import open_source
from linadd.sparse_kernel import least_squares
from linadd.sparse_kernel.lspc import LeastSquaresProbabilisticClassifier
from tests.sparse_kernel.toy import T1, XS, Y3


def fixed(**options):
    """A classifier without scaling and cross-validation."""
    return LeastSquaresProbabilisticClassifier(**{"sigma": 0.9, "reg_lambda": 0.1, "scale": None} | options)


def three_blobs(seed, n_rows=90):
    """Overlapping classes in two dimensions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n_rows)
    return rng.normal(size=(n_rows, 2)) + 1.5 * np.array([[0, 0], [1, 0], [0, 1]])[y], y


def phi(X, Z, sigma):
    """The design matrix, straight from its formula."""
    return np.exp(-np.sum((X[:, None] - Z[None]) ** 2, axis=2) / (2 * sigma**2))


def cross_validate_twin(X, y, fold, sigmas, lambdas, shared, log_loss):
    """Scores of every pair, a linear solve a class, fold and pair."""
    score = np.zeros((len(sigmas), len(lambdas)))
    classes = np.unique(y)
    for (s, sigma), (r, ridge) in ((a, b) for a in enumerate(sigmas) for b in enumerate(lambdas)):
        for k in np.unique(fold):
            train, raw = fold != k, np.zeros((np.sum(fold == k), len(classes)))
            for c in classes:
                centers = X[train] if shared else X[train & (y == c)]
                P = phi(X[train], centers, sigma)
                H = P.T @ P / len(P) + ridge * np.eye(len(centers))
                theta = np.linalg.solve(H, P.T @ (y[train] == c) / len(P))
                raw[:, c] = np.maximum(phi(X[~train], centers, sigma) @ theta, 0)
            total = raw.sum(axis=1, keepdims=True)
            p = np.where(total > 0, raw / np.where(total > 0, total, 1), 1 / len(classes))
            of_class = np.maximum(p[np.arange(len(p)), y[~train]], 1e-10)
            score[s, r] += -np.log(of_class).sum() if log_loss else np.sum(p.argmax(axis=1) != y[~train])
    return score / len(X)


@parametrize_with_checks([LeastSquaresProbabilisticClassifier(sigmas=[0.5, 2.0], lambdas=[0.01, 0.1], cv=2)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_vectors_of_the_specification():
    classifier = fixed().fit(T1, Y3)
    np.testing.assert_allclose(classifier.coef_[0], [0.300635545, 0.381583263], atol=1e-8)
    raw = [[0.450611270, 0.302216732, 0.425464838], [0.127624128, 0.433575737, 0.314782769]]
    np.testing.assert_allclose(classifier.predict_raw(XS), raw, atol=1e-8)
    probability = [[0.382427233, 0.256486946, 0.361085821], [0.145692532, 0.494959284, 0.359348184]]
    np.testing.assert_allclose(classifier.predict_proba(XS), probability, atol=1e-8)
    probability = [[0.458240463, 0.171346133, 0.370413405], [0.048303532, 0.541444491, 0.410251977]]
    np.testing.assert_allclose(fixed(centers="all").fit(T1, Y3).predict_proba(XS), probability, atol=1e-8)


def test_it_is_ridge_regression_of_the_indicator():
    X, y = three_blobs(0)
    classifier = fixed().fit(X, y)
    P = phi(X, X[y == 1], 0.9)
    stacked = np.vstack([P, np.sqrt(len(X) * 0.1) * np.eye(P.shape[1])])
    theta = np.linalg.lstsq(stacked, np.append(y == 1, np.zeros(P.shape[1])), rcond=None)[0]
    np.testing.assert_allclose(classifier.coef_[1], theta, atol=1e-10)


def test_rows_sum_to_one_and_far_rows_are_undecided():
    X, y = three_blobs(1)
    classifier = fixed().fit(X, y)
    np.testing.assert_allclose(classifier.predict_proba(X).sum(axis=1), 1, atol=1e-14)
    np.testing.assert_array_equal(classifier.predict_proba([[1e4, 0.0]]), np.full((1, 3), 1 / 3))


def test_limits_of_the_ridge():
    X, y = three_blobs(2, n_rows=30)
    coef = fixed(reg_lambda=1e9).fit(X, y).coef_[0]
    np.testing.assert_allclose(coef * 1e9, phi(X, X[y == 0], 0.9)[y == 0].sum(axis=0) / 30, rtol=1e-6)
    exact = fixed(reg_lambda=1e-14, sigma=0.2, centers="all").fit(X, y)
    np.testing.assert_allclose(exact.predict_raw(X), np.eye(3)[y], atol=1e-6)


def test_order_and_repetition_of_rows():
    X, y = three_blobs(3)
    expected = fixed().fit(X, y).predict_proba(XS)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(fixed().fit(X[order], y[order]).predict_proba(XS), expected, atol=1e-12)
    doubled = fixed(reg_lambda=0.2).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)).predict_proba(XS)
    np.testing.assert_allclose(doubled, expected, atol=1e-12)


@pytest.mark.parametrize("scoring", ["error", "deviance"])
@pytest.mark.parametrize("centers", ["class", "all"])
@pytest.mark.parametrize("memory_limit", [1e9, 8.0 * 6 * 88**2])
def test_cross_validation_equals_the_twin(centers, scoring, memory_limit, monkeypatch):
    monkeypatch.setattr(least_squares, "BLOCK_VALUES", 700)  # several blocks
    X, y = three_blobs(4, n_rows=88)
    sigmas, lambdas = [0.3, 1.0, 3.0], [1e-3, 0.1, 1.0]
    classifier = LeastSquaresProbabilisticClassifier(sigmas=sigmas, lambdas=lambdas, scale=None, centers=centers,
                                                     scoring=scoring, memory_limit=memory_limit, random_state=0)
    folds = []
    start_rows = LeastSquaresProbabilisticClassifier._start_rows

    def remember(self, *arguments):
        blocks = start_rows(self, *arguments)
        folds.append(next(blocks()).fold)
        return blocks

    monkeypatch.setattr(LeastSquaresProbabilisticClassifier, "_start_rows", remember)
    classifier.fit(X, y)
    assert np.ptp(np.bincount(folds[0])) <= 1
    for c in range(3):
        assert np.ptp(np.bincount(folds[0][y == c], minlength=5)) <= 1
    expected = cross_validate_twin(X, y, folds[0], sigmas, lambdas, centers == "all", scoring == "deviance")
    np.testing.assert_allclose(classifier.cv_results_["score"], expected, rtol=1e-8)
    best = np.argwhere(expected == expected.min())
    ridge = max(best[:, 1])
    assert classifier.reg_lambda_ == lambdas[ridge]
    assert classifier.sigma_ == sigmas[max(best[best[:, 1] == ridge, 0])]


def test_ties_go_to_the_larger_ridge_then_width():
    X, y = np.array([[0.0], [0.1], [0.2], [10.0], [10.1], [10.2]]), np.repeat([0, 1], 3)
    classifier = LeastSquaresProbabilisticClassifier(sigmas=[1.0, 0.5], lambdas=[1.0, 0.1], cv=3).fit(X, y)
    np.testing.assert_array_equal(classifier.cv_results_["score"], 0)
    assert (classifier.reg_lambda_, classifier.sigma_) == (1.0, 1.0)


def test_default_widths_are_multiples_of_the_median_distance():
    X, y = three_blobs(5)
    results = LeastSquaresProbabilisticClassifier(scale=None, lambdas=[0.1]).fit(X, y).cv_results_
    distances = np.sqrt(np.sum((X[:, None] - X[None]) ** 2, axis=2))[np.triu_indices(len(X), 1)]
    np.testing.assert_allclose(results["sigma"] / np.median(distances), [0.02, 0.05, 0.1, 0.2, 0.3, 0.6, 1, 1.5, 2, 3])


def test_median_width_uses_a_sample_of_many_rows():
    X = np.random.default_rng(0).normal(size=(2500, 1))
    classifier = LeastSquaresProbabilisticClassifier(scale=None, max_centers=1100, lambdas=[1.0], random_state=0)
    bases = [least_squares.Basis(X, None, np.array([0, 1]))]
    sigmas, _ = classifier._grids(bases, 0)
    np.testing.assert_allclose(sigmas[6], 0.9539, atol=0.03)  # |N(0, 2)| has the median 0.6745 sqrt(2)


@pytest.mark.parametrize(("centers", "n_centers"), [("class", [5, 5, 5]), ("all", [5, 5, 5])])
def test_centres_are_a_random_subset_of_the_rows(centers, n_centers):
    X, y = three_blobs(6)
    classifier = fixed(centers=centers, max_centers=5, random_state=0).fit(X, y)
    assert [len(coef) for coef in classifier.coef_] == n_centers
    for c, chosen in enumerate(classifier.centers_):
        allowed = X if centers == "all" else X[y == c]
        assert all(any(np.array_equal(z, x) for x in allowed) for z in chosen)
    other = fixed(centers=centers, max_centers=5, random_state=1).fit(X, y)
    assert not np.array_equal(other.centers_[0], classifier.centers_[0])


@pytest.mark.parametrize("chunk_rows", [7, 90])
@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_a_source_gives_the_model_of_the_rows_in_memory(chunk_rows, scale):
    X, y = three_blobs(7)
    names = np.array(["a", "b", "c"])[y]
    expected = fixed(scale=scale, max_centers=8, random_state=0).fit(X, names)
    source = open_source(X, names, chunk_rows=chunk_rows)
    streamed = fixed(scale=scale, max_centers=8, random_state=0).fit(source)
    np.testing.assert_array_equal(streamed.classes_, ["a", "b", "c"])
    np.testing.assert_allclose(streamed.predict_proba(X), expected.predict_proba(X), atol=1e-10)
    np.testing.assert_array_equal(streamed.predict(X), expected.predict(X))


def test_cross_validation_of_a_source_does_not_depend_on_its_chunks():
    X, y = three_blobs(8, n_rows=300)
    options = {"max_centers": 10, "lambdas": [0.001, 0.1], "sigmas": [0.5, 1.0], "random_state": 0, "cv": 3}
    first, second = (LeastSquaresProbabilisticClassifier(**options, memory_limit=limit).fit(
        open_source(X, y, chunk_rows=rows)) for rows, limit in ((11, 1e9), (300, 8.0 * 4 * 300)))
    np.testing.assert_allclose(first.cv_results_["score"], second.cv_results_["score"], atol=1e-12)
    assert np.all(first.cv_results_["score"] < 0.6)
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), atol=1e-10)


def test_ctrl_c_keeps_the_best_of_the_finished_widths(monkeypatch):
    X, y = three_blobs(9)
    scores = iter([[[0.3, 0.2]], [[0.4, 0.1]]])

    def held_out_scores(self, *arguments):
        for score in scores:
            return score
        raise KeyboardInterrupt

    monkeypatch.setattr(LeastSquaresProbabilisticClassifier, "_held_out_scores", held_out_scores)
    options = {"sigmas": [1.0, 2.0, 3.0], "lambdas": [0.1, 1.0], "memory_limit": 8.0 * 6 * 90**2 / 2}
    classifier = LeastSquaresProbabilisticClassifier(**options)
    with pytest.warns(ConvergenceWarning) as warned:
        classifier.fit(X, y)
    assert (classifier.sigma_, classifier.reg_lambda_) == (2.0, 1.0)
    assert str(warned[0].message) == ("cross-validation: interrupted after 2 of 3 widths; the best so far is used. "
                                      "Fit again for all.")
    with pytest.raises(KeyboardInterrupt):
        classifier.fit(X, y)


@pytest.mark.parametrize(("options", "message"), [
    ({"sigma": 0}, "sigma: 0 is neither a number above 0 nor 'cv'. Give one of them."),
    ({"reg_lambda": "auto"}, "reg_lambda: 'auto' is neither a number above 0 nor 'cv'. Give one of them."),
    ({"sigmas": []}, "sigmas: [] is not a list of numbers above 0. Give at least one."),
    ({"lambdas": [0.1, 0]}, "lambdas: [0.1, 0] is not a list of numbers above 0. Give at least one."),
    ({"max_centers": 0}, "max_centers: 0 is below 1. Give a number of rows or None."),
    ({"cv": 1}, "cv: 1 folds are too few. Give at least 2."),
    ({"centers": "every"}, "centers: 'every' is not a choice. Choose from 'class', 'all'."),
    ({"scoring": "auc"}, "scoring: 'auc' is not a choice. Choose from 'error', 'deviance'."),
    ({"memory_limit": 200}, "memory_limit: the system of normal equations of 8 centres takes 22 x 6 x 8 = 1.06e+03 "
     "bytes, above the limit of 200. Raise memory_limit, ask for fewer basis vectors or train on fewer rows."),
])
def test_options_are_checked(options, message):
    with pytest.raises(ConfigError) as error:
        LeastSquaresProbabilisticClassifier(**options).fit(T1, Y3)
    assert str(error.value) == message


def test_weights_and_a_single_class_are_refused():
    with pytest.raises(ConfigError) as error:
        fixed().fit(open_source(T1, Y3, weights=np.ones(8)))
    assert str(error.value) == ("array: it has sample weights, and this classifier takes none. Leave out `weights`.")
    for data in ((T1, np.ones(8)), (open_source(T1, np.ones(8)),)):
        with pytest.raises(DataError):
            fixed().fit(*data)


@pytest.mark.parametrize("centers", ["class", "all"])
def test_a_saved_model_predicts_the_same_bits(centers, tmp_path):
    X, y = three_blobs(10)
    classifier = fixed(centers=centers, scale="standard").fit(X, np.array(["a", "b", "c"])[y])
    classifier.save(tmp_path / "model.safetensors")
    loaded = LeastSquaresProbabilisticClassifier.from_state(*load_model_file(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    assert loaded.predict(X).tolist() == classifier.predict(X).tolist()
    assert (loaded.sigma_, loaded.reg_lambda_) == (0.9, 0.1)


def test_a_path_is_read_in_chunks(tmp_path):
    X, y = three_blobs(11, n_rows=200)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    options = {"sigmas": [0.5, 1.0], "lambdas": [0.01, 0.1], "max_centers": 10, "random_state": 0}
    from_path = LeastSquaresProbabilisticClassifier(**options).fit(str(tmp_path / "rows.npz"))
    from_source = LeastSquaresProbabilisticClassifier(**options).fit(open_source(X, y))
    assert from_path.sigma_ == from_source.sigma_
    np.testing.assert_allclose(from_path.predict_proba(X), from_source.predict_proba(X), atol=1e-12)
