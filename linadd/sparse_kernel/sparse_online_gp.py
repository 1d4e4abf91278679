"""Sparse online Gaussian process classifier with expectation propagation (Csato 2002, algorithm "sparse EP").

Here is the estimator; the sweeps of one latent function are in `online_gp.py`, the update of one example in
`online_gp_steps.py`, EP with a fixed basis in `online_gp_refine.py`. Design page "sparse kernel classifiers",
section 7.
"""

import warnings

import numpy as np

from linadd.errors import ConfigError, ConvergenceWarning, DataError, DataWarning
from linadd.model_file import take_tensor
from linadd.sparse_kernel.base import (
    check_choice,
    check_counts,
    checked_rows,
    fit_scaling,
    one_versus_rest_proba,
    signs_of,
)
from linadd.sparse_kernel.kernels import kernel_from_description, make_kernel
from linadd.sparse_kernel.latent_gp import LatentGPClassifier
from linadd.sparse_kernel.online_gp import OnlineGP, check_basis_memory, train_model
from linadd.sparse_kernel.online_gp_likelihoods import LIKELIHOODS, log_positive_probability
from linadd.sparse_kernel.online_gp_steps import SCORES, Settings

__all__ = ["SparseOnlineGPClassifier"]


class SparseOnlineGPClassifier(LatentGPClassifier):
    """Gaussian process classifier that sees rows one at a time and keeps a bounded set of basis vectors.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        A name of `kernels.KERNELS` or a kernel (copied); lengths left None become sqrt(n_features) on scaled rows.
    max_basis : int, default=50
        Most basis vectors of a latent function; cost of a row and memory a row grow with its square and with it.
    novelty_tol : float, default=1e-4
        A row joins the basis only if its prior variance given the basis exceeds this share of k(x, x).
    max_sweeps : int, default=30
        Passes over the rows; 1 is the purely online algorithm.
    freeze_after : int, default=2
        Passes after which the basis is fixed, without which EP need not converge.
    tol : float, default=1e-6
        Stop when no site's precision, nor precision times mean, changes by more in a pass.
    removal_score : {"mean", "kl"}, default="mean"
        Which basis vector goes from a full basis: least change of the mean, or least KL divergence.
    likelihood : {"probit", "logit", "gaussian"}, default="probit"
        Of the label given f + bias; "gaussian" regresses the labels -1 and +1.
    bias : float, default=0.0
        Added to f.
    probit_slope : float, default=1.0
        Factor of f + bias in the probit and logit; 1 / noise deviation of the gaussian.
    optimize_hyperparameters : bool, default=False
        Maximise the evidence over kernel parameters by L-BFGS with finite differences: for kernels of few parameters.
    shuffle : bool, default=True
        Draw the order of each pass; False keeps that of the rows.
    scale : {"standard", "minmax", None}, default="standard"
        Scaling of the features.
    multi_class : {"ovr"}, default="ovr"
        More than two classes: one latent function each against the rest.
    memory_limit : float, default=1e9
        Bytes that the rows' projections on the basis and its matrices may take.
    random_state : int, numpy Generator or None, default=None
        Draws the orders.

    Attributes
    ----------
    basis_indices_ : int64 array (n_basis,)
        Rows, counted from 0 over all calls since `fit` or the first `partial_fit`.
    basis_vectors_ : float64 array (n_basis, n_features), scaled
    alpha_, C_, Q_ : float64 arrays (n_basis,), (n_basis, n_basis), (n_basis, n_basis)
        Mean alpha' k, variance k(x, x) + k' C k, k = K(basis, x); Q is the inverse of K(basis, basis).
    P_ : float64 array (n_rows, n_basis)
    site_precision_, site_mean_ : float64 arrays (n_rows,)
        Not kept in model files.
    kernel_ : Kernel
    log_evidence_ : float or None
        EP estimate of log P(y); None after `partial_fit`.
    n_sweeps_ : int
        The most of any class.
    models_ : list of OnlineGP
        One for two classes, else one a class, and then each attribute above but `n_sweeps_` is a list over classes.

    References
    ----------
    Csato, "Gaussian processes: iterative sparse approximations", PhD thesis, Aston University 2002.
    """

    key = "sparse-online-gp"

    def __init__(self, kernel="rbf", max_basis=50, novelty_tol=1e-4, max_sweeps=30, freeze_after=2, tol=1e-6,
                 removal_score="mean", likelihood="probit", bias=0.0, probit_slope=1.0, optimize_hyperparameters=False,
                 shuffle=True, scale="standard", multi_class="ovr", memory_limit=1e9, random_state=None):
        self.kernel = kernel
        self.max_basis = max_basis
        self.novelty_tol = novelty_tol
        self.max_sweeps = max_sweeps
        self.freeze_after = freeze_after
        self.tol = tol
        self.removal_score = removal_score
        self.likelihood = likelihood
        self.bias = bias
        self.probit_slope = probit_slope
        self.optimize_hyperparameters = optimize_hyperparameters
        self.shuffle = shuffle
        self.scale = scale
        self.multi_class = multi_class
        self.memory_limit = memory_limit
        self.random_state = random_state

    def fit(self, X, y, basis_indices=None):
        """Choose basis vectors and run expectation propagation.

        Parameters
        ----------
        X : array-like (n_rows, n_features)
        y : array-like (n_rows,)
            Class labels, two or more.
        basis_indices : sequence of int, optional
            These rows, in this order, become the basis, and no others.

        Returns
        -------
        self

        Raises
        ------
        DataError
            NaN or infinity, or one class only.
        ConfigError
            An option out of range, or projections that pass `memory_limit`.

        Warns
        -----
        ConvergenceWarning
            Sites still change by more than `tol` after `max_sweeps` (more than one) passes; Ctrl-C.
        """
        self._check_options()
        rows, y_index, kernel = self._start_kernel_fit(X, y)
        n_basis = self.max_basis if basis_indices is None else len(basis_indices)
        n_models = len(self._positive_classes())
        check_basis_memory(len(rows), n_models, n_basis, self.memory_limit)
        rng = np.random.default_rng(self.random_state)
        options = {"max_sweeps": self.max_sweeps, "freeze_after": self.freeze_after, "tol": self.tol,
                   "rng": rng if self.shuffle else None, "basis_indices": basis_indices}
        self.models_, self.log_evidence_, self.n_sweeps_, worst = [], [], 0, 0.0
        for c in self._positive_classes():
            empty = OnlineGP(kernel, self._settings(), n_basis, rows.shape[1])
            model, evidence, (n_sweeps, change, interrupted) = train_model(
                empty, rows, signs_of(y_index == c), self.optimize_hyperparameters, options)
            self.models_.append(model)
            self.log_evidence_.append(evidence)
            self.n_sweeps_, worst = max(self.n_sweeps_, n_sweeps), max(worst, change)
            if interrupted and (len(self.models_) < n_models or not model.size):
                raise KeyboardInterrupt
        if interrupted:
            warnings.warn("SparseOnlineGPClassifier was interrupted by Ctrl-C, the model so far is kept. Fit again for "
                          "a converged one.", ConvergenceWarning, stacklevel=2)
        elif self.max_sweeps > 1 and worst >= self.tol:
            warnings.warn(f"SparseOnlineGPClassifier: sites still change by {worst:.3g} after {self.max_sweeps} "
                          f"sweeps, above tol={self.tol:g}. Raise max_sweeps or tol.", ConvergenceWarning,
                          stacklevel=2)
        self._publish()
        return self

    def partial_fit(self, X, y, classes=None):
        """Process new rows once each, in their order; what was learned from earlier rows stays.

        Parameters
        ----------
        X : array-like (n_rows, n_features)
        y : array-like (n_rows,)
        classes : array-like (n_classes,), optional
            All labels that will come; needed in the first call, unless the model was fitted or loaded.

        Returns
        -------
        self

        Raises
        ------
        DataError
            NaN or infinity; a label that is not among the classes.
        ConfigError
            A first call without two classes; projections that pass `memory_limit`.

        Warns
        -----
        DataWarning
            The first call sets the scaling from its rows alone.
        """
        is_first, self.training_ = not hasattr(self, "models_"), {}
        X, y = checked_rows(self, X, y, reset=is_first)
        if is_first:
            self._start_stream(X, classes)
        y_index = np.searchsorted(self.classes_, y).clip(0, len(self.classes_) - 1)
        unknown = np.flatnonzero(self.classes_[y_index] != y)
        if len(unknown):
            raise DataError(f"the label {y[unknown[0]]} is not among the classes {self.classes_.tolist()}. Name all "
                            "classes in the first call.", source="y", row=int(unknown[0]) + 1)
        rows = self.scaling_(X)
        n_sites = len(self.models_[0].sites.precision)
        check_basis_memory(n_sites + len(rows), len(self.models_), self.models_[0].max_basis, self.memory_limit)
        for model, c in zip(self.models_, self._positive_classes(), strict=True):
            model.add_sites(len(rows))
            model.sweep(rows, signs_of(y_index == c), np.arange(len(rows)), first_site=n_sites)
        self.log_evidence_, self.n_sweeps_ = [None] * len(self.models_), 1
        self._publish()
        return self

    def _start_stream(self, X, classes):
        """What `fit` sets before it trains, from the rows of the first `partial_fit`."""
        self._check_options()
        kernel = make_kernel(self.kernel)
        if classes is None or len(np.unique(classes)) < 2:
            raise ConfigError("classes: the first call of partial_fit needs all labels, at least two. Give them.")
        if self.scale is not None:
            warnings.warn(f"scale={self.scale!r}: the features are scaled by the {len(X)} rows of the first call. "
                          "Scale beforehand and use scale=None, or give a first call of typical rows.", DataWarning,
                          stacklevel=3)
        self.classes_ = np.unique(classes)
        self.scaling_ = fit_scaling(X, self.scale, clip=kernel.needs_unit_range)
        self.ranges_ = np.stack([X.min(axis=0), X.max(axis=0)], axis=1)
        kernel = kernel.with_default_lengths(self.scaling_(X))
        self.models_ = [OnlineGP(kernel, self._settings(), self.max_basis, X.shape[1])
                        for _ in self._positive_classes()]

    def _check_options(self):
        check_choice("likelihood", self.likelihood, tuple(LIKELIHOODS))
        check_choice("removal_score", self.removal_score, tuple(SCORES))
        check_choice("multi_class", self.multi_class, ("ovr",))
        check_counts(self, "max_basis", "max_sweeps", "freeze_after")
        self._check_slope()
        if not 0.0 <= self.novelty_tol < 1.0:
            raise ConfigError(f"novelty_tol: {self.novelty_tol} is not in [0, 1). Give a small share such as 1e-4.")

    def _settings(self):
        return Settings(LIKELIHOODS[self.likelihood], SCORES[self.removal_score], float(self.bias),
                        float(self.probit_slope), float(self.novelty_tol), False)

    def _publish(self):
        """Set the fitted attributes from `models_`: values for two classes, lists over classes for more."""
        parts = {"basis_vectors_": lambda m: m.basis, "alpha_": lambda m: m.posterior.alpha,
                 "C_": lambda m: m.posterior.C[:, : m.size], "Q_": lambda m: m.posterior.Q[:, : m.size]}
        values = {name: [part(model)[: model.size] for model in self.models_] for name, part in parts.items()}
        values |= {"basis_indices_": [model.basis_indices for model in self.models_],
                   "P_": [model.sites.projection[:, : model.size] for model in self.models_],
                   "site_precision_": [model.sites.precision for model in self.models_],
                   "site_mean_": [model.sites.mean for model in self.models_],
                   "kernel_": [model.kernel for model in self.models_], "log_evidence_": self.log_evidence_}
        self._publish_each(**values)

    def decision_function(self, X):
        """Mean + bias for two classes (positive: `classes_[1]`), else a score a class, largest where `predict` is.

        With several classes the variances differ, and the score is z = (mean + bias) / sqrt(1/probit_slope^2 +
        variance), for the logit the logarithm of the class's probability against the rest.

        Parameters
        ----------
        X : array-like (n_rows, n_features)

        Returns
        -------
        float64 array (n_rows,) or (n_rows, n_classes)
        """
        mean, variance = self.predict_latent(X)
        if len(self.models_) == 1:
            return mean + self.bias
        if self.likelihood == "logit":
            return log_positive_probability(LIKELIHOODS["logit"], mean, variance, self.bias, self.probit_slope)
        return (mean + self.bias) / np.sqrt(1.0 / self.probit_slope**2 + variance)

    def predict_proba(self, X):
        """P(class | x), float64 (n_rows, n_classes), columns as `classes_`.

        Parameters
        ----------
        X : array-like (n_rows, n_features)
        """
        mean, variance = self.predict_latent(X)
        arguments = LIKELIHOODS[self.likelihood], mean, variance, self.bias, self.probit_slope
        if len(self.models_) > 1:
            return one_versus_rest_proba(log_positive_probability(*arguments))
        positive = np.exp(log_positive_probability(*arguments))
        return np.column_stack([1.0 - positive, positive])

    def _figures(self):
        evidence = self.log_evidence_ if len(self.models_) > 1 else [self.log_evidence_]
        return None if None in evidence else -sum(evidence), sum(model.size for model in self.models_)

    def _tensors(self):
        tensors = {}
        for k, model in enumerate(self.models_):
            d, posterior = model.size, model.posterior
            tensors |= {f"basis_vectors.{k}": model.basis[:d], f"basis_indices.{k}": model.basis_indices,
                        f"alpha.{k}": posterior.alpha[:d], f"C.{k}": posterior.C[:d, :d]}
        return tensors

    def _header(self):
        evidence = self.log_evidence_ if len(self.models_) > 1 else [self.log_evidence_]
        return {"n_sweeps": self.n_sweeps_, "log_evidence": evidence,
                "models": [{"kernel": model.kernel.description(), "max_basis": model.max_basis, "n_rows": model.n_seen}
                           for model in self.models_]}

    def _restore(self, tensors, header):
        self.models_ = []
        for k, facts in enumerate(header["models"]):
            kernel = kernel_from_description(facts["kernel"])
            model = OnlineGP(kernel, self._settings(), facts["max_basis"], self.n_features_in_)
            alpha = take_tensor(tensors, f"alpha.{k}", np.float64, (None,))
            d = len(alpha)
            model.set_posterior(take_tensor(tensors, f"basis_vectors.{k}", np.float64, (d, self.n_features_in_)),
                                take_tensor(tensors, f"basis_indices.{k}", np.int64, (d,)), alpha,
                                take_tensor(tensors, f"C.{k}", np.float64, (d, d)), facts["n_rows"])
            self.models_.append(model)
        self.log_evidence_, self.n_sweeps_ = header["log_evidence"], header["n_sweeps"]
        self._publish()
