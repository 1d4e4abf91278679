"""Sparse online Gaussian process regression: the machine of `SparseOnlineGPClassifier` with a Gaussian likelihood.

Sites of a Gaussian likelihood are exact, so with the basis fixed one sweep is the answer: that of the sparse model
without its off-diagonal residuals (FITC), and of the full process when every row is a basis vector.
"""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from linadd.errors import ConfigError, ConvergenceWarning
from linadd.sparse_kernel.base import check_choice, checked_rows, fit_scaling
from linadd.sparse_kernel.kernels import make_kernel
from linadd.sparse_kernel.online_gp import OnlineGP, check_basis_memory, train_model
from linadd.sparse_kernel.online_gp_likelihoods import GAUSSIAN
from linadd.sparse_kernel.online_gp_steps import SCORES, Settings

__all__ = ["SparseOnlineGPRegressor"]


class SparseOnlineGPRegressor(RegressorMixin, BaseEstimator):
    """Gaussian process regression that keeps a bounded set of basis vectors.

    An extra beside the classifiers, for Python alone: model files, command line and exports hold and judge classes and
    their probabilities, of which a regression has none. Keep a fitted one by `pickle`.

    Parameters
    ----------
    kernel, max_basis, novelty_tol, max_sweeps, freeze_after, tol, removal_score, shuffle, scale, memory_limit, \
random_state : see `SparseOnlineGPClassifier`
    noise : float, default=0.1
        Standard deviation of the noise, in units of the standard deviation of the targets.
    optimize_hyperparameters : bool, default=False
        Maximise the evidence over kernel parameters (not the noise).

    Attributes
    ----------
    model_ : OnlineGP
        Of targets less `y_mean_`, divided by `y_scale_`.
    y_mean_, y_scale_ : float
    log_evidence_ : float
        Of the scaled targets.
    n_sweeps_ : int
    """

    def __init__(self, kernel="rbf", max_basis=50, novelty_tol=1e-4, max_sweeps=30, freeze_after=2, tol=1e-6,
                 removal_score="mean", noise=0.1, optimize_hyperparameters=False, shuffle=True, scale="standard",
                 memory_limit=1e9, random_state=None):
        self.kernel = kernel
        self.max_basis = max_basis
        self.novelty_tol = novelty_tol
        self.max_sweeps = max_sweeps
        self.freeze_after = freeze_after
        self.tol = tol
        self.removal_score = removal_score
        self.noise = noise
        self.optimize_hyperparameters = optimize_hyperparameters
        self.shuffle = shuffle
        self.scale = scale
        self.memory_limit = memory_limit
        self.random_state = random_state

    def fit(self, X, y):
        """Choose basis vectors and fit their coefficients.

        Parameters
        ----------
        X : array-like (n_rows, n_features)
        y : array-like (n_rows,), real

        Returns
        -------
        self

        Raises
        ------
        DataError
            NaN or infinity in X.
        ValueError
            NaN or infinity in y; scikit-learn's own.
        ConfigError
            An option out of range, or projections that pass `memory_limit`.

        Warns
        -----
        ConvergenceWarning
            Ctrl-C: the model so far is kept.
        """
        check_choice("removal_score", self.removal_score, tuple(SCORES))
        if not self.noise > 0:
            raise ConfigError(f"noise: {self.noise!r} is not above 0. Give a small share such as 0.01.")
        X, y = checked_rows(self, X, y, y_numeric=True)
        check_basis_memory(len(X), 1, self.max_basis, self.memory_limit)
        kernel = make_kernel(self.kernel)
        self.scaling_ = fit_scaling(X, self.scale, clip=kernel.needs_unit_range)
        rows = self.scaling_(X)
        self.y_mean_, self.y_scale_ = float(y.mean()), float(y.std()) or 1.0
        settings = Settings(GAUSSIAN, SCORES[self.removal_score], 0.0, 1.0 / self.noise, self.novelty_tol, False)
        model = OnlineGP(kernel.with_default_lengths(rows), settings, self.max_basis, rows.shape[1])
        options = {"max_sweeps": self.max_sweeps, "freeze_after": self.freeze_after, "tol": self.tol,
                   "rng": np.random.default_rng(self.random_state) if self.shuffle else None}
        self.model_, self.log_evidence_, (self.n_sweeps_, _, is_interrupted) = train_model(
            model, rows, (y - self.y_mean_) / self.y_scale_, self.optimize_hyperparameters, options)
        if is_interrupted:
            if not self.model_.size:
                raise KeyboardInterrupt
            warnings.warn("SparseOnlineGPRegressor was interrupted by Ctrl-C, the model so far is kept. Fit again for "
                          "a converged one.", ConvergenceWarning, stacklevel=2)
        return self

    def predict(self, X, return_std=False):
        """Mean of the target at every row, and on request the standard deviation of a new target there.

        Parameters
        ----------
        X : array-like (n_rows, n_features)
        return_std : bool

        Returns
        -------
        mean : float64 array (n_rows,)
        deviation : float64 array (n_rows,)
            Noise included; only with `return_std`.
        """
        check_is_fitted(self, "model_")
        mean, variance = self.model_.latent(self.scaling_(checked_rows(self, X, reset=False)))
        mean = self.y_mean_ + self.y_scale_ * mean
        return (mean, self.y_scale_ * np.sqrt(variance + self.noise**2)) if return_std else mean
