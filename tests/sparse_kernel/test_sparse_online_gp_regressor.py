"""Sparse online GP regression: the full process as its limit, scikit-learn's conventions, messages."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF as SklearnRBF
from sklearn.utils.estimator_checks import parametrize_with_checks

from linadd.errors import ConfigError, ConvergenceWarning, DataError
from linadd.sparse_kernel.kernels import RBF
from linadd.sparse_kernel.online_gp import OnlineGP
from linadd.sparse_kernel.sparse_online_gp_regressor import SparseOnlineGPRegressor

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 6, (40, 1)), axis=0)
Y = 3.0 + 2.0 * np.sin(X[:, 0]) + 0.1 * RNG.normal(size=40)
NEW = np.linspace(-1, 7, 9)[:, None]


@parametrize_with_checks([SparseOnlineGPRegressor()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_every_row_in_the_basis_is_the_full_process():
    X, Y = np.arange(0.0, 7.0, 0.7)[:, None], RNG.normal(size=10)
    model = SparseOnlineGPRegressor(RBF(1.0, 0.8), novelty_tol=0.0, scale=None, random_state=0).fit(X, Y)
    full = GaussianProcessRegressor(SklearnRBF(0.8, "fixed"), alpha=0.01).fit(X, (Y - Y.mean()) / Y.std())
    mean, deviation = full.predict(NEW, return_std=True)
    found, spread = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(found, Y.mean() + Y.std() * mean, atol=1e-8)
    np.testing.assert_allclose(spread, Y.std() * np.sqrt(deviation**2 + 0.01), atol=1e-8)
    np.testing.assert_allclose(model.log_evidence_, full.log_marginal_likelihood_value_, atol=1e-8)


def test_a_small_basis_is_enough_for_a_smooth_curve():
    model = SparseOnlineGPRegressor(max_basis=8, optimize_hyperparameters=True, random_state=0).fit(X, Y)
    assert model.model_.size <= 8
    assert model.score(X, Y) > 0.98


def test_ctrl_c_keeps_the_model_so_far(monkeypatch):
    def interrupted_train(self, X, y, **options):
        self.add_sites(len(X))
        self.sweep(X, y, np.arange(30))
        return 1, np.inf, True

    monkeypatch.setattr(OnlineGP, "train", interrupted_train)
    with pytest.warns(ConvergenceWarning) as warned:
        SparseOnlineGPRegressor().fit(X, Y)
    assert str(warned[0].message) == ("SparseOnlineGPRegressor was interrupted by Ctrl-C, the model so far is kept. "
                                      "Fit again for a converged one.")


def test_messages():
    with pytest.raises(ConfigError) as error:
        SparseOnlineGPRegressor(noise=0).fit(X, Y)
    assert str(error.value) == "noise: 0 is not above 0. Give a small share such as 0.01."
    with pytest.raises(ConfigError, match="removal_score: 'eps' is not a choice"):
        SparseOnlineGPRegressor(removal_score="eps").fit(X, Y)
    with pytest.raises(DataError) as error:
        SparseOnlineGPRegressor().fit(np.where(np.arange(40)[:, None] == 2, np.inf, X), Y)
    assert str(error.value) == "X, row 3, column 1: the value is inf (0 more NaN or inf). Fill or drop it."
    with pytest.raises(ValueError, match="Input y contains NaN"):
        SparseOnlineGPRegressor().fit(X, np.where(np.arange(40) == 2, np.nan, Y))
