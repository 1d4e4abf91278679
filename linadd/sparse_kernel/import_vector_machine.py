"""Import Vector Machine: kernel logistic regression on greedily chosen training rows (Zhu and Hastie 2001).

Here is the estimator; the objective and the steps of one addition are in `kernel_logistic.py`, the loop over additions
and the path of penalties in `import_vector_growth.py`. Design page "sparse kernel classifiers", section 4.
"""

import warnings

import numpy as np
from scipy.special import expit, softmax
from sklearn.model_selection import train_test_split

from linadd.errors import ConfigError, ConvergenceWarning
from linadd.model_file import take_tensor
from linadd.sparse_kernel.base import KernelClassifier, check_choice, check_counts, check_memory
from linadd.sparse_kernel.import_vector_growth import GrowthOptions, follow_path, grow
from linadd.sparse_kernel.kernel_base import row_slices
from linadd.sparse_kernel.kernel_logistic import ImportState, Multinomial
from linadd.sparse_kernel.kernels import kernel_from_description

__all__ = ["ImportVectorMachine"]

# Penalties of reg_lambda="path": exp(10), exp(9), ..., exp(-10).
DEFAULT_PATH = tuple(np.exp(np.arange(10.0, -11.0, -1.0)).tolist())


class ImportVectorMachine(KernelClassifier):
    """Sparse kernel logistic regression: training rows are added one by one where they lower the objective most.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        A name of `kernels.KERNELS` or a kernel (copied); lengths left None become sqrt(n_features) on scaled rows.
    reg_lambda : float or "path", default=0.1
        Penalty, of the sum (not the mean) of the losses; "path": chosen on held-out rows along `reg_path`.
    reg_path : sequence of float, optional
        Penalties for "path", default exp(10), exp(9), ..., exp(-10); tried from large to small.
    algorithm : {"revised", "basic"}, default="revised"
        Judge a candidate by one Newton step, or by a fit to convergence (small data only).
    refit : {"newton", "one-step"}, default="newton"
        After an addition: converge, or keep the Newton step.
    tol : float, default=1e-3
        Stop when |H_k - H_(k - delta_k)| / |H_k| falls below.
    delta_k : int, default=1
        Additions over which that change is taken.
    max_import_vectors : int, optional
        Stop at this number.
    n_candidates : int, optional
        Candidates drawn for each addition; default all rows up to 2,000 and 150 beyond.
    n_additions : int, default=1
        Import vectors included after each scoring of candidates, chosen together by the quadratic model of H (not in
        the paper; for large data: 10 is several times faster). One addition of the stopping rule is then such a group.
    scale : {"standard", "minmax", None}, default="standard"
        Scaling of the features; kernels on [0, 1] need "minmax" unless the features lie there already.
    prune_tol : float, default=0.0
        Delete import vectors while H rises by at most this share; 0 never deletes.
    multi_class : {"softmax", "baseline"}, default="softmax"
        Outputs for more than two classes: one a class, or none for the last class.
    fit_intercept : bool, default=False
        Add an unpenalised constant to every output.
    validation_fraction : float, default=0.3
        Share of the rows held out by "path", stratified.
    scoring : {"deviance", "error"}, default="deviance"
        What "path" minimises on the held-out rows (ties of "error" by deviance).
    refit_full : bool, default=True
        Fit all rows with the penalty that "path" chose; else keep the model of the path.
    max_newton_iter : int, default=50
        Newton steps of one refit.
    memory_limit : float, default=1e9
        Bytes that the columns K(X, S) may take.
    random_state : int, numpy Generator or None
        Draws candidates and held-out rows.

    Attributes
    ----------
    import_indices_ : int64 array (n_import,), in order of inclusion
    import_vectors_ : float64 array (n_import, n_features), rows as given to `fit`
    coef_ : float64 array (n_import, n_outputs)
    intercept_ : float64 array (n_outputs,)
    objective_history_ : list of float
        H after every addition.
    reg_lambda_ : float
    path_ : list of dict
        One entry a penalty: reg_lambda, n_import, objective, log_loss and error of the held-out rows.
    kernel_ : Kernel

    References
    ----------
    Zhu and Hastie, "Kernel logistic regression and the import vector machine", NIPS 2001. Roscher, Förstner and Waske,
    "I2VM: incremental import vector machines", Image and Vision Computing 2012 (deletion).
    """

    key = "import-vector-machine"

    def __init__(self, kernel="rbf", reg_lambda=0.1, reg_path=None, algorithm="revised", refit="newton", tol=1e-3,
                 delta_k=1, max_import_vectors=None, n_candidates=None, n_additions=1, scale="standard",
                 prune_tol=0.0, multi_class="softmax", fit_intercept=False, validation_fraction=0.3,
                 scoring="deviance", refit_full=True, max_newton_iter=50, memory_limit=1e9, random_state=None):
        self.kernel = kernel
        self.reg_lambda = reg_lambda
        self.reg_path = reg_path
        self.algorithm = algorithm
        self.refit = refit
        self.tol = tol
        self.delta_k = delta_k
        self.max_import_vectors = max_import_vectors
        self.n_candidates = n_candidates
        self.n_additions = n_additions
        self.scale = scale
        self.prune_tol = prune_tol
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.refit_full = refit_full
        self.max_newton_iter = max_newton_iter
        self.memory_limit = memory_limit
        self.random_state = random_state

    def fit(self, X, y, basis_indices=None):
        """Choose import vectors and fit their coefficients.

        Parameters
        ----------
        X : array (n_rows, n_features)
        y : array (n_rows,)
            Class labels, two or more.
        basis_indices : sequence of int, optional
            Include these rows in this order instead of searching; only dependent rows are skipped.

        Returns
        -------
        self

        Raises
        ------
        DataError
            NaN or infinity, or one class only.
        ConfigError
            An option out of range, or columns that pass `memory_limit`.
        """
        self._check_options()
        rows, y_index, self.kernel_ = self._start_kernel_fit(X, y)
        check_memory("the kernel columns of the import vectors", len(rows), self.max_import_vectors or 1,
                     self.memory_limit)
        options = GrowthOptions(**{name: getattr(self, name) for name in GrowthOptions._fields})
        rng = np.random.default_rng(self.random_state)
        self.reg_lambda_, self.path_ = self.reg_lambda, []
        chosen = None
        if self.reg_lambda == "path":
            chosen = self._choose_on_path(rows, y_index, options, rng)
            self.reg_lambda_ = chosen.state.reg_lambda
        if chosen is None or (self.refit_full and not chosen.stopped):
            part = np.arange(len(rows))
            grown = grow(self._empty_state(rows, y_index, self.reg_lambda_), options, rng, basis_indices)
        else:
            part, grown = chosen.part, chosen
        if grown.stopped:
            warnings.warn(f"ImportVectorMachine stopped at {len(grown.state.indices)} import vectors: {grown.stopped}",
                          ConvergenceWarning, stacklevel=2)
        return self._take(grown, part, X)

    def _check_options(self):
        check_choice("algorithm", self.algorithm, ("revised", "basic"))
        check_choice("refit", self.refit, ("newton", "one-step"))
        check_choice("multi_class", self.multi_class, ("softmax", "baseline"))
        check_choice("scoring", self.scoring, ("deviance", "error"))
        if self.reg_lambda != "path" and not (np.isreal(self.reg_lambda) and self.reg_lambda > 0):
            raise ConfigError(f"reg_lambda: {self.reg_lambda!r} is not a number above 0 nor 'path'. Give one of them.")
        if self.algorithm == "basic" and self.n_additions > 1:
            raise ConfigError(f"n_additions: {self.n_additions} needs algorithm='revised'; 'basic' adds one at a time.")
        check_counts(self, "max_import_vectors", "n_candidates", "n_additions", "delta_k")

    def _likelihood(self, y_index):
        n_classes = len(self.classes_)
        reference = 0 if n_classes == 2 else (n_classes - 1 if self.multi_class == "baseline" else None)
        return Multinomial(y_index, n_classes, reference)

    def _empty_state(self, rows, y_index, reg_lambda):
        columns = self.kernel_.bind(rows)
        return ImportState(self._likelihood(y_index), reg_lambda, lambda indices: columns(rows[indices]),
                           self.kernel_.diag(rows), self.fit_intercept)

    def _choose_on_path(self, rows, y_index, options, rng):
        """Fit the path on a part of the rows, fill `path_`, return the model of least loss on the others."""
        split = train_test_split(np.arange(len(rows)), test_size=self.validation_fraction, stratify=y_index,
                                 random_state=int(rng.integers(2**31)))
        part, held_out = (np.sort(indices) for indices in split)
        likelihood = self._likelihood(y_index[held_out])

        def judge(state):
            """Mean -log P and share of errors of the held-out rows."""
            coef, intercept = split_coef(state)
            F = decide(self.kernel_, rows[held_out], rows[part[state.indices]], coef, intercept).T
            wrong = self._class_of(F.T) != y_index[held_out]
            return likelihood.loss(F) / len(held_out), float(np.mean(wrong))

        reg_path = sorted(DEFAULT_PATH if self.reg_path is None else self.reg_path, reverse=True)
        state = self._empty_state(rows[part], y_index[part], reg_path[0])
        chosen, self.path_ = follow_path(state, reg_path, judge, self.scoring, options, rng)
        return chosen._replace(part=part)

    def _take(self, grown, part, X):
        """Set the fitted attributes from a grown state over the rows `part` of X."""
        self.import_indices_ = part[np.array(grown.state.indices, dtype=np.int64)]
        self.import_vectors_ = np.asarray(X, dtype=np.float64)[self.import_indices_]
        self.coef_, self.intercept_ = split_coef(grown.state)
        self.objective_history_ = grown.history
        return self

    def _class_of(self, F):
        """Class index of the largest output; F (n_rows, n_outputs)."""
        return np.argmax(self._all_outputs(F), axis=1)

    def _all_outputs(self, F):
        """F with the output 0 of the reference class filled in: (n_rows, n_classes)."""
        if F.shape[1] == len(self.classes_):
            return F
        zero = np.zeros((len(F), 1))
        return np.hstack([zero, F] if len(self.classes_) == 2 else [F, zero])

    def _outputs(self, X):
        rows = self._scaled(X)
        return decide(self.kernel_, rows, self.scaling_(self.import_vectors_), self.coef_, self.intercept_)

    def decision_function(self, X):
        """Return f(x): (n_rows,) for two classes (positive: `classes_[1]`), else (n_rows, n_classes).

        Parameters
        ----------
        X : array (n_rows, n_features)
        """
        F = self._outputs(X)
        return F[:, 0] if len(self.classes_) == 2 else self._all_outputs(F)

    def predict_proba(self, X):
        """Return P(class | x), float64 (n_rows, n_classes), columns as `classes_`.

        Parameters
        ----------
        X : array (n_rows, n_features)
        """
        F = self._outputs(X)
        if len(self.classes_) == 2:
            return np.hstack([expit(-F), expit(F)])
        return softmax(self._all_outputs(F), axis=1)

    def _figures(self):
        return (self.objective_history_ or [None])[-1], len(self.import_vectors_)

    def _tensors(self):
        return {"import_vectors": self.import_vectors_, "import_indices": self.import_indices_, "coef": self.coef_,
                "intercept": self.intercept_}

    def _header(self):
        return {"kernel": self.kernel_.description(), "reg_lambda": self.reg_lambda_, "path": self.path_,
                "objective_history": self.objective_history_}

    def _restore(self, tensors, header):
        self.kernel_ = kernel_from_description(header["kernel"])
        self.reg_lambda_, self.path_ = header["reg_lambda"], header["path"]
        self.objective_history_ = header["objective_history"]
        self.import_vectors_ = take_tensor(tensors, "import_vectors", np.float64, (None, self.n_features_in_))
        self.import_indices_ = take_tensor(tensors, "import_indices", np.int64, (len(self.import_vectors_),))
        self.coef_ = take_tensor(tensors, "coef", np.float64, (len(self.import_vectors_), None))
        self.intercept_ = take_tensor(tensors, "intercept", np.float64, (self.coef_.shape[1],))


def split_coef(state):
    """Coefficients (n_import, n_outputs) and intercepts (n_outputs,) of a state."""
    return state.coef[:, state.n_fixed :].T.copy(), state.coef[:, : state.n_fixed].sum(axis=1)


def decide(kernel, rows, basis, coef, intercept):
    """K(rows, basis) coef + intercept, float64 (n_rows, n_outputs), in blocks of rows."""
    out = np.empty((len(rows), coef.shape[1]))
    for block in row_slices(len(rows), len(basis)):
        out[block] = kernel(rows[block], basis) @ coef + intercept
    return out
