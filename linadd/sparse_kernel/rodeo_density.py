"""Class-wise kernel densities with local bandwidths, and the variables that matter to each class [chen2019].

The posterior of class c at x is prior_c p_c(x; h^c(x)), normalised over the classes, with the bandwidths that the
search of `rodeo_bandwidths` finds for this x and this class. A variable whose bandwidths stay wide is irrelevant to
the class.
"""

import logging
import warnings
from numbers import Real

import numpy as np
from scipy.special import softmax
from sklearn.model_selection import StratifiedKFold, train_test_split

from linadd.errors import ConfigError, ConvergenceWarning
from linadd.model_file import take_tensor
from linadd.sparse_kernel.base import KernelClassifier, check_choice
from linadd.sparse_kernel.rodeo_bandwidths import local_bandwidths

__all__ = ["RodeoDensityClassifier", "relevance_scores"]

logger = logging.getLogger(__name__)

C0_GRID = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5)
CV_ROWS, CV_FOLDS = 300, 3
# Queries a compiled call: Ctrl-C gets through between two calls.
QUERIES_PER_CALL = 1000


def relevance_scores(mean_bandwidths):
    """Standardise the mean bandwidths of a class over its variables (Algorithm 2 of [chen2019], step 2).

    Parameters
    ----------
    mean_bandwidths : array, shape (..., n_features)

    Returns
    -------
    array of the same shape
        z_j = (hbar_j - mean) / standard deviation (divisor n_features - 1): low for variables that matter; 0 for all
        where the mean bandwidths are equal.
    """
    centred = mean_bandwidths - mean_bandwidths.mean(axis=-1, keepdims=True)
    n_features = mean_bandwidths.shape[-1]
    spread = np.sqrt((centred**2).sum(axis=-1, keepdims=True) / max(n_features - 1, 1))
    differs = spread > 1e-12 * mean_bandwidths.mean(axis=-1, keepdims=True)
    return np.where(differs, centred / np.where(differs, spread, 1.0), 0.0)


class RodeoDensityClassifier(KernelClassifier):
    """Kernel density classifier whose bandwidths are searched anew for every row, class and variable.

    Parameters
    ----------
    beta : float, default=0.9
        Factor of one shrinking step, in (0, 1).
    c0 : float or "cv", default=1.0
        Numerator of the first bandwidth c0 / log log m; "cv" takes the most accurate of eight values between 0.05 and
        1.5 in 3-fold cross-validation on at most 300 rows (the larger one on ties). It matters much: try "cv".
    threshold_constant : "log" or float, default="log"
        c_m in the factor sqrt(2 log(m c_m)) of the significance test; "log" is log m.
    min_bandwidth : float, default=1e-3
        Bandwidths stop above it, in scaled units.
    scale : {"minmax", "standard", None}, default="minmax"
        The search assumes variables of about unit range. Rows to predict are not clipped.
    class_prior : {"uniform", "empirical"}, default="uniform"
        Prior of a class: the same for all, or its share of the training rows.
    z_cutpoint : float, default=0.0
        A variable is selected for a class where its relevance score is below.
    restrict_to_selected : bool, default=False
        Search and compare densities on the selected variables of each class only (of all where none is selected). Right
        where the others are uniform on their range for that class; worse elsewhere: choose by cross-validation.
    leave_one_out : bool, default=True
        A training row has no vote for its own bandwidths when variables are selected.
    chunk_size : int or "auto", default="auto"
        Rows searched at a time; bounds the memory of a prediction, changes no result.
    n_jobs : int, default=1
        Threads over rows; changes no result.
    random_state : int, numpy Generator or None, default=None
        Draws the rows and folds of `c0="cv"`.

    Attributes
    ----------
    classes_ : array (n_classes,)
    X_by_class_ : list of n_classes float64 arrays (n_rows of the class, n_features), scaled
    c0_ : float
    mean_bandwidths_ : float64 array (n_classes, n_features), computed at first use from the class's training rows
    z_scores_ : float64 array (n_classes, n_features), `relevance_scores` of these
    selected_ : list of n_classes int arrays, the variables (from 0) with z_scores_ < z_cutpoint
    """

    key = "rodeo"
    has_score_per_class = True

    def __init__(self, beta=0.9, c0=1.0, threshold_constant="log", min_bandwidth=1e-3, scale="minmax",
                 class_prior="uniform", z_cutpoint=0.0, restrict_to_selected=False, leave_one_out=True,
                 chunk_size="auto", n_jobs=1, random_state=None):
        self.beta = beta
        self.c0 = c0
        self.threshold_constant = threshold_constant
        self.min_bandwidth = min_bandwidth
        self.scale = scale
        self.class_prior = class_prior
        self.z_cutpoint = z_cutpoint
        self.restrict_to_selected = restrict_to_selected
        self.leave_one_out = leave_one_out
        self.chunk_size = chunk_size
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X, y):
        """Keep the training rows by class; with `c0="cv"` also choose c0.

        Parameters
        ----------
        X : array-like (n_rows, n_features)
        y : array-like (n_rows,), at least two classes

        Returns
        -------
        self

        Raises
        ------
        ConfigError
            On an option out of range.
        DataError
            On NaN, infinity or a single class.

        Warns
        -----
        ConvergenceWarning
            Ctrl-C during the choice of c0: the best value so far is kept.
        """
        self._check_options()
        X, y_index = self._start_fit(X, y, self.scale)
        self._keep(X, y_index)
        self.c0_ = self._choose_c0(X, y_index) if self.c0 == "cv" else float(self.c0)
        return self

    def _check_options(self):
        check_choice("class_prior", self.class_prior, ("uniform", "empirical"))
        if not 0.0 < self.beta < 1.0:
            raise ConfigError(f"beta: {self.beta!r} is not between 0 and 1. Give a shrinking factor such as 0.9.")
        if self.c0 != "cv" and not (isinstance(self.c0, Real) and self.c0 > 0):
            raise ConfigError(f"c0: {self.c0!r} is neither a number above 0 nor 'cv'. Give one of them.")
        if self.threshold_constant != "log" and not (
                isinstance(self.threshold_constant, Real) and self.threshold_constant > 0):
            raise ConfigError(f"threshold_constant: {self.threshold_constant!r} is neither a number above 0 nor 'log'. "
                              "Give one of them.")
        if not self.min_bandwidth > 0:
            raise ConfigError(f"min_bandwidth: {self.min_bandwidth!r} is not above 0. Give a number such as 0.001.")
        if self.restrict_to_selected and self.scale != "minmax":
            raise ConfigError(f"restrict_to_selected: it needs scale='minmax', not {self.scale!r}: the variables left "
                              "out count as uniform on [0, 1]. Change one of the two.")

    def _keep(self, X, y_index):
        """Set the fitted state that does not depend on c0, from scaled rows and class indices."""
        n_classes = len(self.classes_)
        self.X_by_class_ = [X[y_index == c] for c in range(n_classes)]
        counts = np.array([len(points) for points in self.X_by_class_])
        self.class_prior_ = (np.full(n_classes, 1.0 / n_classes) if self.class_prior == "uniform"
                             else counts / counts.sum())
        self._mean_bandwidths = None

    def _choose_c0(self, X, y_index):
        """The value of C0_GRID of largest accuracy in cross-validation on a subsample."""
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        counts = np.bincount(y_index)
        if len(X) > CV_ROWS:
            stratify = y_index if counts.min() > 1 and len(counts) <= CV_ROWS else None
            X, _, y_index, _ = train_test_split(X, y_index, train_size=CV_ROWS, stratify=stratify,
                                                random_state=seed)
        n_folds = min(CV_FOLDS, np.bincount(y_index).max())
        if n_folds < 2:
            raise ConfigError("c0: 'cv' needs two rows of some class, and every class has one. Give a number.")
        best, best_right = C0_GRID[-1], -1
        try:
            for c0 in reversed(C0_GRID):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than folds
                    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, y_index))
                right = sum(self._count_right(X, y_index, fold, c0) for fold in folds)
                logger.info("c0 %g, %d of %d held-out rows right", c0, right, len(X))
                if right > best_right:
                    best, best_right = c0, right
        except KeyboardInterrupt:
            warnings.warn(f"c0: interrupted; {best} is the best of the values tried so far. Fit again for all "
                          f"{len(C0_GRID)}.", ConvergenceWarning, stacklevel=3)
        return best

    def _count_right(self, X, y_index, fold, c0):
        """Rows of the fold's second part that densities from its first part classify right."""
        train, test = fold
        log_joint = np.full((len(test), len(self.classes_)), -np.inf)
        counts = np.bincount(y_index[train], minlength=len(self.classes_))
        for c in np.flatnonzero(counts):
            _, log_density = self._search(X[test], X[train][y_index[train] == c], c0=c0)
            log_joint[:, c] = log_density + np.log(self.class_prior_[c])
        return np.count_nonzero(log_joint.argmax(axis=1) == y_index[test])

    def _search(self, queries, points, left_out=None, c0=None):
        """`local_bandwidths` with this estimator's options."""
        return local_bandwidths(
            queries, points, left_out, beta=self.beta, c0=self.c0_ if c0 is None else c0,
            threshold_constant=self.threshold_constant, min_bandwidth=self.min_bandwidth, n_threads=self.n_jobs)

    def _search_classes(self, X, columns):
        """For every class its index, and for blocks of scaled rows of X: slice, bandwidths and log density."""
        size = QUERIES_PER_CALL if self.chunk_size == "auto" else self.chunk_size
        for c, points in enumerate(self.X_by_class_):
            points = points[:, columns[c]]
            for start in range(0, len(X), size):
                block = slice(start, start + size)
                yield c, block, *self._search(X[block][:, columns[c]], points)

    def bandwidths(self, X):
        """Bandwidths of every variable at every row for every class, by the search on all variables.

        Parameters
        ----------
        X : array-like (n_rows, n_features)

        Returns
        -------
        float64 array (n_rows, n_classes, n_features)
            In scaled units; each is the first bandwidth times a whole power of `beta`.
        """
        X = self._scaled(X)
        out = np.empty((len(X), len(self.classes_), X.shape[1]))
        for c, block, bandwidth, _ in self._search_classes(X, [slice(None)] * len(self.classes_)):
            out[block, c] = bandwidth
        return out

    def predict_log_density(self, X):
        """Log density of every class at every row.

        Parameters
        ----------
        X : array-like (n_rows, n_features)

        Returns
        -------
        float64 array (n_rows, n_classes)
            Natural logarithm, per unit of the scaled variables; under `restrict_to_selected` the variables left out
            count as uniform on [0, 1].
        """
        X = self._scaled(X)
        out = np.empty((len(X), len(self.classes_)))
        for c, block, _, log_density in self._search_classes(X, self.columns_in_use()):
            out[block, c] = log_density
        return out

    def columns_in_use(self):
        """For every class the indices, from 0, of the features that its density is over."""
        all_columns = np.arange(self.n_features_in_)
        if not self.restrict_to_selected:
            return [all_columns] * len(self.classes_)
        return [chosen if len(chosen) else all_columns for chosen in self.selected_]

    def predict_proba(self, X):
        """Posterior probabilities of the classes.

        Parameters
        ----------
        X : array-like (n_rows, n_features)

        Returns
        -------
        float64 array (n_rows, n_classes)
            Rows sum to 1; the priors where a row is too far from every class for float64.
        """
        return softmax(self.scores(X), axis=1)

    def scores(self, X):
        """Log density plus log prior of every class, up to a constant of the row: `predict_proba` is their softmax.

        Parameters
        ----------
        X : array-like (n_rows, n_features)

        Returns
        -------
        float64 array (n_rows, n_classes)
            The log priors where a row is too far from every class for float64.
        """
        log_density = self.predict_log_density(X)
        log_density[np.isneginf(log_density).all(axis=1)] = 0.0
        return log_density + np.log(self.class_prior_)

    def training_bandwidths(self, class_index):
        """Bandwidths at the training rows of a class, for that class; a row has no vote if `leave_one_out`.

        Parameters
        ----------
        class_index : int
            Position in `classes_`.

        Returns
        -------
        float64 array (n_rows of the class, n_features)
            In scaled units.
        """
        points = self.X_by_class_[class_index]
        return self._search(points, points, np.arange(len(points)) if self.leave_one_out else None)[0]

    @property
    def mean_bandwidths_(self):
        """Mean bandwidths over the training rows of each class, float64 (n_classes, n_features), in scaled units."""
        if self._mean_bandwidths is None:
            each = [self.training_bandwidths(c).mean(axis=0) for c in range(len(self.classes_))]
            self._mean_bandwidths = np.array(each)
        return self._mean_bandwidths

    @property
    def z_scores_(self):
        """Relevance scores, float64 (n_classes, n_features): below 0 for the variables that matter to the class."""
        return relevance_scores(self.mean_bandwidths_)

    @property
    def selected_(self):
        """For each class the indices, from 0, of the variables whose score is below `z_cutpoint`."""
        return [np.flatnonzero(scores < self.z_cutpoint) for scores in self.z_scores_]

    def _figures(self):
        return None, sum(map(len, self.X_by_class_))

    def _tensors(self):
        tensors = {"points": np.concatenate(self.X_by_class_), "class_prior": self.class_prior_}
        if self._mean_bandwidths is not None:
            tensors["mean_bandwidths"] = self._mean_bandwidths
        return tensors

    def _header(self):
        return {"c0": self.c0_, "class_sizes": [len(points) for points in self.X_by_class_]}

    def _restore(self, tensors, header):
        sizes = header["class_sizes"]
        points = take_tensor(tensors, "points", np.float64, (sum(sizes), self.n_features_in_))
        self.X_by_class_ = np.split(points, np.cumsum(sizes)[:-1])
        self.class_prior_ = take_tensor(tensors, "class_prior", np.float64, (len(sizes),))
        self._mean_bandwidths = None
        if "mean_bandwidths" in tensors:
            shape = len(sizes), self.n_features_in_
            self._mean_bandwidths = take_tensor(tensors, "mean_bandwidths", np.float64, shape)
        self.c0_ = header["c0"]
