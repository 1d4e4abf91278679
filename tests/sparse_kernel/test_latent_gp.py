"""What the Gaussian process classifiers share: values for two classes, lists and columns over classes for more."""

import numpy as np
import pytest

from linadd.errors import ConfigError
from linadd.sparse_kernel.kernels import RBF
from linadd.sparse_kernel.sparse_gp import SparseGPClassifier
from linadd.sparse_kernel.sparse_online_gp import SparseOnlineGPClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = {2: np.where(X[:, 0] > 0, "b", "a"), 3: np.arange(40) % 3}
CLASSIFIERS = {
    "sparse": SparseGPClassifier(RBF(1.0, 1.0), n_basis=5, optimize_hyperparameters=False, random_state=0),
    "online": SparseOnlineGPClassifier(RBF(1.0, 1.0), max_basis=5, max_sweeps=1, random_state=0),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_two_classes_have_one_latent_function(name):
    classifier = CLASSIFIERS[name].fit(X, Y[2])
    mean, variance = classifier.predict_latent(X)
    assert mean.shape == variance.shape == (40,)
    np.testing.assert_array_equal(classifier.predict(X), np.where(mean > 0, "b", "a"))  # the bias is 0
    assert classifier.kernel_ == RBF(1.0, 1.0) and classifier.basis_vectors_.shape == (5, 2)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_more_classes_have_one_each_against_the_rest(name):
    classifier = CLASSIFIERS[name].fit(X, Y[3])
    latent = classifier.predict_latent(X)
    for c, model in enumerate(classifier.models_):
        for part, expected in zip(latent, model.latent(classifier.scaling_(X)), strict=True):
            assert part.shape == (40, 3)
            np.testing.assert_array_equal(part[:, c], expected)
    assert classifier.kernel_ == [RBF(1.0, 1.0)] * 3 and len(classifier.basis_vectors_) == 3


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_slope_that_is_not_positive_is_refused(name):
    with pytest.raises(ConfigError) as error:
        type(CLASSIFIERS[name])(probit_slope=0.0).fit(X, Y[2])
    assert str(error.value) == "probit_slope: 0.0 is not above 0. Give a positive number."
