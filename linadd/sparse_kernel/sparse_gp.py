"""Sparse Gaussian process classifier by forward addition of basis vectors (Sundararajan and Shevade, arXiv 1206.6030).

Here is the estimator; the posterior is in `sparse_gp_state.py`, the choice of rows in `sparse_gp_selection.py`, the
outer loop over hyper-parameters in `sparse_gp_training.py`. Design page "sparse kernel classifiers", section 3.
"""

import warnings

import numpy as np

from linadd.errors import ConvergenceWarning
from linadd.model_file import take_tensor
from linadd.sparse_kernel.base import check_choice, check_counts, check_memory, one_versus_rest_proba, signs_of
from linadd.sparse_kernel.kernels import kernel_from_description
from linadd.sparse_kernel.latent_gp import LatentGPClassifier
from linadd.sparse_kernel.probit import log_phi, phi, standardised_margin
from linadd.sparse_kernel.sparse_gp_selection import SAMPLING_WEIGHTS, SELECTIONS, SelectionOptions
from linadd.sparse_kernel.sparse_gp_training import LOG_VARIANCE_UPPERS, SparseGPModel, TrainingOptions, train

__all__ = ["SparseGPClassifier"]


class SparseGPClassifier(LatentGPClassifier):
    """Gaussian process classifier with a probit likelihood and few basis vectors, added one at a time.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        A name of `kernels.KERNELS` or a kernel (copied); lengths left None become sqrt(n_features) on scaled rows.
    n_basis : int, default=80
        Basis vectors, d_max of the paper.
    selection : {"random", "entropy", "information_gain", "validation", "adaptive", "worst"}, default="adaptive"
        How the next basis vector is chosen.
    n_candidates : int, optional
        Rows drawn for each addition: default 1 for "adaptive" (the paper's kappa), 59 for "validation".
    sampling_weights : {"one_minus_phi", "loss"}, default="one_minus_phi"
        Weights of the adaptive draw.
    site_update : {"moment", "predictive_loss"}, default="moment"
        Site of a new basis vector by moment matching, or by minimising the predictive loss.
    optimize_hyperparameters : bool, default=True
        Move kernel parameters and bias; False keeps the given ones.
    objective : {"nlp", "marginal_likelihood"}, default="nlp"
        What they minimise: the negative log predictive probability of the rows outside the basis, or the negative log
        marginal likelihood of the sites.
    max_outer_iter : int, default=20
        Rebuilds of the basis.
    max_cg_iter : int, default=10
        L-BFGS iterations between two rebuilds.
    n_restarts : {1, 2}, default=2
        Starts: with variances up to e^3, and up to e^7; the lower training NLP is kept.
    tol : float, default=1e-3
        Stop when no log-parameter moves further.
    bias : float, default=0.0
        Start of the bias b in Phi(probit_slope * y * (f + b)).
    probit_slope : float, default=1.0
    ep_sweeps : int, default=0
        Sweeps of expectation propagation over the basis after it is built.
    scale : {"standard", "minmax", None}, default="standard"
        Scaling of the features.
    multi_class : {"ovr"}, default="ovr"
        More than two classes: one classifier each against the rest.
    memory_limit : float, default=1e9
        Bytes that the n_rows x n_basis state may take.
    random_state : int, numpy Generator or None

    Attributes
    ----------
    basis_indices_, basis_vectors_ : int64 (n_basis,), float64 (n_basis, n_features), rows as given to `fit`
    site_precision_, site_mean_, L_ : float64 (n_basis,), (n_basis,), (n_basis, n_basis)
    kernel_ : Kernel
    bias_, nlp_ : float
    nlp_history_ : list of float
        NLP of every outer iteration of the start that won.
    n_iter_ : int
        Their number.
    models_ : list of SparseGPModel
        One for two classes, else one a class, and then each attribute above is a list over classes.

    References
    ----------
    Sundararajan and Shevade, "An additive model view to sparse Gaussian process classifier design", arXiv 1206.6030.
    """

    key = "sparse-gp"

    def __init__(self, kernel="rbf", n_basis=80, selection="adaptive", n_candidates=None,
                 sampling_weights="one_minus_phi", site_update="moment", optimize_hyperparameters=True, objective="nlp",
                 max_outer_iter=20, max_cg_iter=10, n_restarts=2, tol=1e-3, bias=0.0, probit_slope=1.0, ep_sweeps=0,
                 scale="standard", multi_class="ovr", memory_limit=1e9, random_state=None):
        self.kernel = kernel
        self.n_basis = n_basis
        self.selection = selection
        self.n_candidates = n_candidates
        self.sampling_weights = sampling_weights
        self.site_update = site_update
        self.optimize_hyperparameters = optimize_hyperparameters
        self.objective = objective
        self.max_outer_iter = max_outer_iter
        self.max_cg_iter = max_cg_iter
        self.n_restarts = n_restarts
        self.tol = tol
        self.bias = bias
        self.probit_slope = probit_slope
        self.ep_sweeps = ep_sweeps
        self.scale = scale
        self.multi_class = multi_class
        self.memory_limit = memory_limit
        self.random_state = random_state

    def fit(self, X, y, basis_indices=None):
        """Choose basis vectors, sites and hyper-parameters.

        Parameters
        ----------
        X : array (n_rows, n_features)
        y : array (n_rows,)
            Class labels, two or more.
        basis_indices : sequence of int, optional
            Include these rows in this order instead of selecting; rows that change nothing are skipped.

        Returns
        -------
        self

        Raises
        ------
        DataError
            NaN or infinity, or one class only.
        ConfigError
            An option out of range, or a state that passes `memory_limit`.
        """
        self._check_options()
        rows, y_index, kernel = self._start_kernel_fit(X, y)
        n_basis = min(self.n_basis, len(rows)) if basis_indices is None else len(basis_indices)
        check_memory("the state of the basis vectors", len(rows), n_basis, self.memory_limit)
        options, selection = (kind(**{name: getattr(self, name) for name in kind._fields})
                              for kind in (TrainingOptions, SelectionOptions))
        rng = np.random.default_rng(self.random_state)
        targets, self.models_ = self._positive_classes(), []
        for c in targets:
            model, interrupted = train(rows, signs_of(y_index == c), kernel, options, selection, rng, basis_indices)
            self.models_.append(model)
            if interrupted and len(self.models_) < len(targets):
                raise KeyboardInterrupt
        if interrupted:
            warnings.warn("SparseGPClassifier was interrupted by Ctrl-C, the best model so far is kept. "
                          "Fit again for a converged one.", ConvergenceWarning, stacklevel=2)
        self._publish([np.asarray(X, dtype=np.float64)[model.indices] for model in self.models_])
        return self

    def _check_options(self):
        check_choice("selection", self.selection, tuple(SELECTIONS))
        check_choice("sampling_weights", self.sampling_weights, tuple(SAMPLING_WEIGHTS))
        check_choice("site_update", self.site_update, ("moment", "predictive_loss"))
        check_choice("objective", self.objective, ("nlp", "marginal_likelihood"))
        check_choice("multi_class", self.multi_class, ("ovr",))
        check_choice("n_restarts", self.n_restarts, tuple(range(1, len(LOG_VARIANCE_UPPERS) + 1)))
        check_counts(self, "n_basis", "n_candidates", "max_outer_iter")
        self._check_slope()

    def _publish(self, basis_vectors):
        """Set the fitted attributes from `models_`: values for two classes, lists over classes for more."""
        sources = {"basis_indices_": "indices", "site_precision_": "precision"}
        sources |= {f"{name}_": name for name in ("L", "site_mean", "kernel", "bias", "nlp", "nlp_history")}
        self._publish_each(basis_vectors_=basis_vectors, **{
            attribute: [getattr(model, name) for model in self.models_] for attribute, name in sources.items()})
        self.n_iter_ = max(len(model.nlp_history) for model in self.models_)

    def decision_function(self, X):
        """Return mean + bias (n_rows,) for two classes (positive: `classes_[1]`), else z (n_rows, n_classes).

        z = (mean + bias) / sqrt(1 / probit_slope^2 + variance) is what the probabilities depend on, so its largest
        entry is the predicted class; the mean alone does not have the order of the probabilities.

        Parameters
        ----------
        X : array (n_rows, n_features)
        """
        mean, variance = self.predict_latent(X)
        return mean + self.bias_ if len(self.models_) == 1 else self._margins(mean, variance)

    def predict_proba(self, X):
        """Return P(class | x), float64 (n_rows, n_classes), columns as `classes_`.

        Parameters
        ----------
        X : array (n_rows, n_features)
        """
        z = self._margins(*self.predict_latent(X))
        return np.column_stack([phi(-z), phi(z)]) if len(self.models_) == 1 else one_versus_rest_proba(log_phi(z))

    def _margins(self, mean, variance):
        """z of every row (and class) under label +1."""
        return standardised_margin(1.0, mean, variance, np.array(self.bias_), self.probit_slope)

    def _figures(self):
        return sum(model.nlp for model in self.models_), sum(len(model.basis) for model in self.models_)

    def _tensors(self):
        vectors = self.basis_vectors_ if len(self.models_) > 1 else [self.basis_vectors_]
        tensors = {}
        for k, (model, rows) in enumerate(zip(self.models_, vectors, strict=True)):
            tensors |= {f"basis_vectors.{k}": rows, f"basis_indices.{k}": model.indices, f"L.{k}": model.L,
                        f"site_precision.{k}": model.precision, f"site_mean.{k}": model.site_mean}
        return tensors

    def _header(self):
        return {"models": [{"kernel": model.kernel.description(), "bias": model.bias, "nlp": model.nlp,
                            "nlp_history": model.nlp_history} for model in self.models_]}

    def _restore(self, tensors, header):
        self.models_, vectors = [], []
        for k, facts in enumerate(header["models"]):
            rows = take_tensor(tensors, f"basis_vectors.{k}", np.float64, (None, self.n_features_in_))
            d = len(rows)
            L = take_tensor(tensors, f"L.{k}", np.float64, (d, d))
            precision, site_mean = (take_tensor(tensors, f"{name}.{k}", np.float64, (d,))
                                    for name in ("site_precision", "site_mean"))
            indices = take_tensor(tensors, f"basis_indices.{k}", np.int64, (d,))
            kernel = kernel_from_description(facts["kernel"])
            self.models_.append(SparseGPModel(kernel, facts["bias"], self.probit_slope, indices, self.scaling_(rows),
                                              precision, site_mean, L, facts["nlp"], facts["nlp_history"]))
            vectors.append(rows)
        self._publish(vectors)
