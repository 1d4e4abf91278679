"""The least-squares probabilistic classifier: class posteriors by ridge regression, in closed form [sugiyama2010].

p(c|x) is proportional to max(0, theta_c' phi_c(x)); `least_squares` states the equations of theta_c. Only sums over
rows enter, so training rows may stream from a file of any length while the centres fit in memory.
"""

import logging
import os
import warnings
from numbers import Real

import numpy as np
from scipy.spatial.distance import pdist

from linadd.census import take_census
from linadd.errors import ConfigError, ConvergenceWarning
from linadd.model_file import take_tensor
from linadd.row_sample import hash_rows
from linadd.sources import Source, open_source
from linadd.sparse_kernel.base import KernelClassifier, check_choice, check_memory, fit_scaling
from linadd.sparse_kernel.kernel_base import row_slices
from linadd.sparse_kernel.least_squares import (
    Basis,
    Block,
    NormalEquations,
    block_distances,
    choose_bases,
    cut_blocks,
    design,
    ridge_path,
    ridge_solve,
)

__all__ = ["LeastSquaresProbabilisticClassifier"]

logger = logging.getLogger(__name__)

# Multiples of the median pairwise distance, and ridges; the lower ends are often chosen on real data.
SIGMA_FACTORS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0)
LAMBDAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
MEDIAN_ROWS = 2000
# Normal equations of several widths of rows in memory: beyond, cross-validation takes a second or more anyway.
CV_BYTES = 128 << 20
# Below it a probability counts as this in the deviance.
LEAST_PROBABILITY = 1e-10


class LeastSquaresProbabilisticClassifier(KernelClassifier):
    """Class posteriors as non-negative combinations of Gaussians, fitted by regularised least squares.

    Parameters
    ----------
    sigma : float or "cv", default="cv"
        Width of the Gaussians in scaled units; "cv" chooses among `sigmas`.
    reg_lambda : float or "cv", default="cv"
        Ridge of the mean squared error; "cv" chooses among `lambdas`.
    centers : {"class", "all"}, default="class"
        The posterior of a class is expanded in its own training rows, or in all.
    max_centers : int or None, default=None
        At most so many centres, drawn at random, a class ("class") or in all ("all"); None takes every row.
    sigmas : sequence of float, optional
        Widths to try; default: ten multiples, 0.02 to 3, of the median distance between centres.
    lambdas : sequence of float, optional
        Ridges to try; default: powers of ten from 1e-6 to 1.
    cv : int, default=5
        Folds, stratified for rows in memory and by a hash of the row for files. Held-out rows are no centres.
    scoring : {"error", "deviance"}, default="error"
        What cross-validation minimises: misclassified rows, or minus the log posterior of the class (clipped at 1e-10).
        Ties go to the larger ridge, then to the larger width.
    scale : {"standard", "minmax", None}, default="standard"
        Scaling of the features before distances.
    memory_limit : float, default=1e9
        Bytes that normal equations may take; what else is held is the centres and blocks of 50 MB.
    random_state : int, numpy Generator or None, default=None
        Draws folds and centres.

    Attributes
    ----------
    classes_ : array (n_classes,)
    centers_ : list of n_classes float64 arrays (n_basis, n_features), scaled; one shared array if `centers="all"`
    coef_ : list of n_classes float64 arrays (n_basis,)
    sigma_, reg_lambda_ : float
    cv_results_ : dict
        `sigma` (n_sigmas,) and `reg_lambda` (n_lambdas,), ascending, and `score` (n_sigmas, n_lambdas), mean over the
        rows, NaN where Ctrl-C came first; empty without cross-validation.
    """

    key = "lspc"
    reads_sources = True
    has_score_per_class = True

    def __init__(self, sigma="cv", reg_lambda="cv", centers="class", max_centers=None, sigmas=None, lambdas=None, cv=5,
                 scoring="error", scale="standard", memory_limit=1e9, random_state=None):
        self.sigma = sigma
        self.reg_lambda = reg_lambda
        self.centers = centers
        self.max_centers = max_centers
        self.sigmas = sigmas
        self.lambdas = lambdas
        self.cv = cv
        self.scoring = scoring
        self.scale = scale
        self.memory_limit = memory_limit
        self.random_state = random_state

    def fit(self, X, y=None):
        """Choose width and ridge where asked to, and solve for the coefficients.

        Parameters
        ----------
        X : array-like (n_rows, n_features), or a path, dask array or Source
            The latter are read in chunks, several times: census, centres, twice for cross-validation (more where
            `memory_limit` parts the widths), coefficients.
        y : array-like (n_rows,)
            May be left out where X brings its labels.

        Returns
        -------
        self

        Raises
        ------
        ConfigError
            On an option out of range; where the normal equations would take more than `memory_limit`.
        DataError
            On NaN, infinity or a single class.

        Warns
        -----
        ConvergenceWarning
            Ctrl-C during cross-validation: the best pair of the widths done so far is used.
        """
        self._check_options()
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        streams = isinstance(X, (str, os.PathLike, Source)) or hasattr(X, "dask")
        blocks = self._start_source(open_source(X, y), seed) if streams else self._start_rows(X, y, seed)
        bases = choose_bases(blocks(), len(self.classes_), self.centers == "all", self.max_centers, seed + 1)
        sigmas, lambdas = self._grids(bases, seed)
        self.cv_results_ = {}
        self.sigma_, self.reg_lambda_ = sigmas[0], lambdas[0]
        if len(sigmas) * len(lambdas) > 1:
            self._cross_validate(blocks, bases, sigmas, lambdas, streams)
        self._solve(blocks, bases)
        return self

    def _check_options(self):
        check_choice("centers", self.centers, ("class", "all"))
        check_choice("scoring", self.scoring, ("error", "deviance"))
        for name in ("sigma", "reg_lambda"):
            value = getattr(self, name)
            if value != "cv" and not (isinstance(value, Real) and value > 0):
                raise ConfigError(f"{name}: {value!r} is neither a number above 0 nor 'cv'. Give one of them.")
        for name in ("sigmas", "lambdas"):
            values = getattr(self, name)
            if values is not None and not (len(values) and np.min(values) > 0):
                raise ConfigError(f"{name}: {values!r} is not a list of numbers above 0. Give at least one.")
        if self.max_centers is not None and self.max_centers < 1:
            raise ConfigError(f"max_centers: {self.max_centers!r} is below 1. Give a number of rows or None.")
        if self.cv < 2:
            raise ConfigError(f"cv: {self.cv!r} folds are too few. Give at least 2.")

    def _start_rows(self, X, y, seed):
        """Check rows in memory; return a function that yields their one block."""
        X, y_index = self._start_fit(X, y, self.scale)
        self._check_memory(np.bincount(y_index))
        rng, fold, dealt = np.random.default_rng(seed), np.empty(len(X), dtype=np.int64), 0
        for c in range(len(self.classes_)):
            rows = rng.permutation(np.flatnonzero(y_index == c))
            fold[rows] = (dealt + np.arange(len(rows))) % self.cv
            dealt += len(rows)
        return lambda: iter([Block(X, y_index, fold, 0)])

    def _start_source(self, source, seed):
        """Take the census of a source; return a function that reads its blocks."""
        if source.has_weights:
            raise ConfigError(f"{source.origin}: it has sample weights, and this classifier takes none. "
                              "Leave out `weights`.")
        census = take_census(source, sample_rows=0)
        self.training_ = {}
        self.classes_, self.n_features_in_ = census.classes, census.n_features
        vars(self).pop("feature_names_in_", None)
        if source.feature_names is not None:
            self.feature_names_in_ = np.array(source.feature_names, dtype=object)
        self.scaling_ = fit_scaling(self._two_rows(census), self.scale)
        self.ranges_ = np.stack([census.minimum, census.maximum], axis=1)
        self._check_memory(census.class_counts)

        def blocks():
            for chunk in source.chunks():
                row = np.arange(chunk.first_row, chunk.first_row + chunk.n_rows)
                fold = (hash_rows(row, seed) % np.uint64(self.cv)).astype(np.int64)
                yield Block(self.scaling_(chunk.dense()), np.searchsorted(self.classes_, chunk.y), fold,
                            chunk.first_row)

        return blocks

    def _two_rows(self, census):
        """Two rows with the ranges of all rows (scale "minmax"), else with their means and standard deviations."""
        if self.scale == "minmax":
            return np.stack([census.minimum, census.maximum])
        deviation = np.sqrt(census.variance)
        return np.stack([census.mean - deviation, census.mean + deviation])

    def _check_memory(self, class_counts):
        """Refuse equations of one width beyond the limit; set the bytes they take."""
        counts = [class_counts.sum()] if self.centers == "all" else class_counts
        sizes = [count if self.max_centers is None else min(count, self.max_centers) for count in counts]
        n_folds = self.cv if "cv" in (self.sigma, self.reg_lambda) else 1
        squares = sum(int(size) ** 2 for size in sizes)
        columns = n_folds + 1
        check_memory(f"the system of normal equations of {sum(sizes)} centres", squares, columns, self.memory_limit)
        self._bytes_a_width = 8 * squares * columns

    def _grids(self, bases, seed):
        """Widths and ridges to choose from, float64, ascending; a single one where it is given."""
        lambdas = [self.reg_lambda] if self.reg_lambda != "cv" else LAMBDAS if self.lambdas is None else self.lambdas
        sigmas = [self.sigma] if self.sigma != "cv" else self.sigmas
        if sigmas is None:
            centers = np.concatenate([basis.centers for basis in bases])
            if len(centers) > MEDIAN_ROWS:
                centers = np.random.default_rng(seed).choice(centers, MEDIAN_ROWS, replace=False)
            sigmas = (np.median(pdist(centers)) or 1.0) * np.array(SIGMA_FACTORS)
        return np.sort(np.array(sigmas, dtype=float)), np.sort(np.array(lambdas, dtype=float))

    def _cross_validate(self, blocks, bases, sigmas, lambdas, streams):
        """Set sigma_, reg_lambda_ and cv_results_."""
        score = np.full((len(sigmas), len(lambdas)), np.nan)
        self.cv_results_ = {"sigma": sigmas, "reg_lambda": lambdas, "score": score}
        # A reading in memory is cheap: fewer widths at a time there, so that Ctrl-C finds some of them done.
        bytes_at_once = self.memory_limit if streams else min(self.memory_limit, CV_BYTES)
        at_once = max(1, int(bytes_at_once // self._bytes_a_width))
        try:
            for start in range(0, len(sigmas), at_once):
                these = slice(start, start + at_once)
                score[these] = self._held_out_scores(blocks, bases, sigmas[these], lambdas)
                logger.info("widths %d of %d, least held-out %s %.6g", min(start + at_once, len(sigmas)), len(sigmas),
                            self.scoring, np.nanmin(score))
        except KeyboardInterrupt:
            if np.isnan(score).all():
                raise
            done = np.count_nonzero(~np.isnan(score[:, 0]))
            warnings.warn(f"cross-validation: interrupted after {done} of {len(sigmas)} widths; the best so far is "
                          "used. Fit again for all.", ConvergenceWarning, stacklevel=3)
        # Ties: argmin over the reversed ridges, then over the reversed widths, takes the larger first.
        by_ridge = np.where(np.isnan(score), np.inf, score).T[::-1, ::-1]
        ridge, width = np.unravel_index(by_ridge.argmin(), by_ridge.shape)
        self.sigma_ = float(sigmas[::-1][width])
        self.reg_lambda_ = float(lambdas[::-1][ridge])

    def _held_out_scores(self, blocks, bases, sigmas, lambdas):
        """Mean loss of held-out rows, float64 (n_sigmas, n_lambdas)."""
        equations = NormalEquations(bases, sigmas, self.cv)
        for block in blocks():
            equations.add(block)
        coef = [[fold_coefficients(equations, s, k, lambdas) for k in range(len(bases))] for s in range(len(sigmas))]
        loss = error_loss if self.scoring == "error" else deviance_loss
        total = np.zeros((len(sigmas), len(lambdas)))
        n_columns = max(len(lambdas) * len(self.classes_), *(len(basis.centers) for basis in bases))
        for piece in (piece for block in blocks() for piece in cut_blocks(block, n_columns)):
            distances = [block_distances(piece.X, basis) for basis in bases]
            for s, sigma in enumerate(sigmas):
                raw = np.empty((len(piece.X), len(lambdas), len(self.classes_)))
                for k, basis in enumerate(bases):
                    phi = design(distances[k], sigma)
                    for fold in range(self.cv):
                        mine = np.flatnonzero(piece.fold == fold)
                        part = np.tensordot(phi[mine], coef[s][k][fold], axes=1)
                        raw[np.ix_(mine, range(len(lambdas)), basis.classes)] = part
                total[s] += loss(raw, piece.y_index)
        return total / equations.count.sum()

    def _solve(self, blocks, bases):
        """Set centers_ and coef_ for the chosen width and ridge."""
        equations = NormalEquations(bases, [self.sigma_], 1)
        for block in blocks():
            equations.add(block)
        self.centers_, self.coef_ = [None] * len(self.classes_), [None] * len(self.classes_)
        for k, basis in enumerate(bases):
            coef = ridge_solve(*equations.of_all_rows(0, k), self.reg_lambda_)
            for c, column in zip(basis.classes, coef.T, strict=True):
                self.centers_[c], self.coef_[c] = basis.centers, np.ascontiguousarray(column)

    def predict_raw(self, X):
        """The fitted functions theta_c' phi_c(x), before negative values are cut and rows normalised.

        Parameters
        ----------
        X : array-like (n_rows, n_features)

        Returns
        -------
        float64 array (n_rows, n_classes)
        """
        X = self._scaled(X)
        raw = np.empty((len(X), len(self.classes_)))
        served = [np.arange(len(self.classes_))] if self.centers == "all" else np.arange(len(self.classes_))[:, None]
        for classes in served:
            basis = Basis(self.centers_[classes[0]], None, classes)
            coef = np.stack([self.coef_[c] for c in classes], axis=1)
            for rows in row_slices(len(X), len(basis.centers)):
                raw[rows, classes] = design(block_distances(X[rows], basis), self.sigma_) @ coef
        return raw

    def predict_proba(self, X):
        """Posterior probabilities of the classes.

        Parameters
        ----------
        X : array-like (n_rows, n_features)

        Returns
        -------
        float64 array (n_rows, n_classes)
            Rows sum to 1; 1 / n_classes where no fitted function is above 0.
        """
        return posterior(self.predict_raw(X))

    def scores(self, X):
        """`predict_raw`."""
        return self.predict_raw(X)

    def _figures(self):
        score = self.cv_results_.get("score")
        centers = self.centers_[:1] if self.centers == "all" else self.centers_
        return None if score is None else np.nanmin(score), sum(map(len, centers))

    def _tensors(self):
        n_bases = 1 if self.centers == "all" else len(self.classes_)
        return {"centers": np.concatenate(self.centers_[:n_bases]), "coef": np.concatenate(self.coef_)}

    def _header(self):
        return {"sigma": self.sigma_, "reg_lambda": self.reg_lambda_, "n_centers": [len(coef) for coef in self.coef_]}

    def _restore(self, tensors, header):
        sizes = header["n_centers"]
        ends = np.cumsum(sizes)[:-1]
        shared = self.centers == "all"
        centers = take_tensor(tensors, "centers", np.float64, (sizes[0] if shared else sum(sizes), self.n_features_in_))
        self.coef_ = np.split(take_tensor(tensors, "coef", np.float64, (sum(sizes),)), ends)
        self.centers_ = [centers] * len(sizes) if shared else np.split(centers, ends)
        self.sigma_, self.reg_lambda_, self.cv_results_ = header["sigma"], header["reg_lambda"], {}


def fold_coefficients(equations, s, k, lambdas):
    """Coefficients of basis k at width s without each fold: float64 (n_folds, n_basis, n_lambdas, n_served).

    They are 0 at the centres of the fold left out.
    """
    basis = equations.bases[k]
    coef = np.zeros((equations.n_folds, len(basis.centers), len(lambdas), len(basis.classes)))
    for fold in range(equations.n_folds):
        inside, gram, target = equations.without_fold(s, k, fold)
        coef[fold, inside] = ridge_path(gram, target, lambdas)
    return coef


def posterior(raw):
    """max(0, raw) normalised over the last axis; uniform where nothing is above 0."""
    positive = np.maximum(raw, 0.0)
    total = positive.sum(axis=-1, keepdims=True)
    return np.where(total > 0.0, positive / np.where(total > 0.0, total, 1.0), 1.0 / raw.shape[-1])


def error_loss(raw, y_index):
    """Misclassified rows for every ridge, from raw outputs (n_rows, n_lambdas, n_classes)."""
    return np.count_nonzero(np.maximum(raw, 0.0).argmax(axis=2) != y_index[:, None], axis=0)


def deviance_loss(raw, y_index):
    """Sum of minus log posterior of the true class for every ridge, from raw outputs (n_rows, n_lambdas, n_classes)."""
    probability = np.take_along_axis(posterior(raw), y_index[:, None, None], axis=2)
    return -np.log(np.maximum(probability, LEAST_PROBABILITY)).sum(axis=(0, 2))
