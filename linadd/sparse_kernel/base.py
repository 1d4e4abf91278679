"""What the sparse kernel classifiers share: input checks, scaling, labels, memory refusal, model files.

An estimator derives from `KernelClassifier`, calls `_start_fit` first in `fit` and `_scaled` first in everything that
takes rows, and lists its fitted state in `_tensors` and `_header` and takes it back in `_restore`. The command line
reads what it shares with the additive model: `classes`, `n_features`, `feature_names`, `ranges`, `clamps`, `n_outputs`,
`scores`, `ranking`, `digest`.
"""

import warnings
from dataclasses import dataclass
from importlib.metadata import version
from typing import ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from linadd._jit import cpu_features
from linadd.errors import ConfigError, DataError
from linadd.model_file import check_tensors, model_digest, save_model, take_tensor, verify_check_scores
from linadd.sparse_kernel.kernel_base import Kernel
from linadd.sparse_kernel.kernels import kernel_from_description, make_kernel

__all__ = ["KernelClassifier", "Scaling", "check_choice", "check_counts", "check_memory", "checked_rows", "fit_scaling",
           "one_versus_rest_proba", "signs_of"]

SCALES = ("standard", "minmax", None)


@dataclass(frozen=True)
class Scaling:
    """The map x -> (x - offset) * factor of every feature, clipped to [0, 1] if `clip`.

    Parameters
    ----------
    offset, factor : float64 arrays (n_features,)
        A constant feature has factor 0.
    clip : bool
        For kernels that take features in [0, 1] only.
    """

    offset: np.ndarray
    factor: np.ndarray
    clip: bool

    def __call__(self, X):
        """Return the scaled rows, a C-contiguous float64 copy of X (n_rows, n_features)."""
        scaled = (X - self.offset) * self.factor
        return np.clip(scaled, 0.0, 1.0, out=scaled) if self.clip else scaled


def fit_scaling(X, scale, clip=False):
    """Return the `Scaling` of option `scale` for training rows X.

    Parameters
    ----------
    X : float64 array (n_rows, n_features)
    scale : {"standard", "minmax", None}
        Mean 0 and variance 1 (divisor n); range [0, 1]; as they are. Constant features become 0 under the first two.
    clip : bool
        Clip scaled rows to [0, 1]; rows as they are, are not.

    Raises
    ------
    ConfigError
        On another `scale`.
    """
    check_choice("scale", scale, SCALES)
    if scale is None:
        return Scaling(np.zeros(X.shape[1]), np.ones(X.shape[1]), clip=False)
    low, high = X.min(axis=0), X.max(axis=0)
    offset, spread = (X.mean(axis=0), X.std(axis=0)) if scale == "standard" else (low, high - low)
    varies = high > low
    return Scaling(offset, np.where(varies, 1.0 / np.where(varies, spread, 1.0), 0.0), clip)


def check_choice(option, value, choices):
    """Raise ConfigError, listing the choices, unless value is one of them."""
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ConfigError(f"{option}: {value!r} is not a choice. Choose from {listed}.")


def check_counts(estimator, *options):
    """Raise ConfigError if one of these options of an estimator is below 1; None passes."""
    for option in options:
        value = getattr(estimator, option)
        if value is not None and value < 1:
            raise ConfigError(f"{option}: {value} is below 1. Give a larger number.")


def check_memory(what, n_rows, n_columns, memory_limit):
    """Raise ConfigError if a float64 matrix of n_rows x n_columns passes `memory_limit` bytes.

    Parameters
    ----------
    what : str
        What the matrix holds, for the message.
    n_rows, n_columns : int
    memory_limit : int or float
        Bytes.
    """
    needed = 8 * n_rows * n_columns
    if needed > memory_limit:
        raise ConfigError(
            f"memory_limit: {what} takes {n_rows} x {n_columns} x 8 = {needed:.3g} bytes, above the limit of "
            f"{memory_limit:.3g}. Raise memory_limit, ask for fewer basis vectors or train on fewer rows.")


def signs_of(y_index):
    """Return class indices 0 and 1 as float64 -1.0 and +1.0."""
    return np.where(y_index == 1, 1.0, -1.0)


def one_versus_rest_proba(log_p):
    """Return p_c / sum_c p_c from log p_c (n_rows, n_classes) as softmax of log p_c: it cannot underflow."""
    return softmax(log_p, axis=1)


def refuse_non_finite(X, source):
    """Raise DataError that names row and column (from 1) of the first NaN or infinity of X."""
    finite = np.isfinite(X)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        value = "NaN" if np.isnan(X[row, column]) else "inf"
        more = np.count_nonzero(~finite) - 1
        raise DataError(f"the value is {value} ({more} more NaN or inf). Fill or drop it.",
                        source=source, row=int(row) + 1, column=int(column) + 1)


def checked_rows(estimator, X, y="no_validation", **options):
    """Rows for an estimator as C-contiguous float64, alone or with their targets.

    Parameters
    ----------
    estimator : BaseEstimator
        Its `n_features_in_` is set, or with `reset=False` compared.
    X : array-like (n_rows, n_features)
    y : array-like (n_rows,), optional
    **options
        Of `sklearn.utils.validation.validate_data`.

    Raises
    ------
    DataError
        NaN or infinity in X; names row and column.
    ValueError
        Wrong shapes or types; scikit-learn's own.
    """
    checked = validate_data(estimator, X, y, dtype=np.float64, order="C", ensure_all_finite=False, **options)
    refuse_non_finite(checked if isinstance(y, str) else checked[0], "X")
    return checked


class KernelClassifier(ClassifierMixin, BaseEstimator):
    """Base of the kernel classifiers (scikit-learn conventions; two classes: +1 is `classes_[1]`).

    A subclass defines `key` (in model files and on the command line), `fit`, `predict_proba`, `_figures()` (objective
    or None, number of basis vectors), and for its file `_tensors()` (name -> array), `_header()` (JSON-able facts) and
    `_restore(tensors, header)`; without a `decision_function` also `scores`.

    Attributes
    ----------
    classes_ : array (n_classes,), sorted
    n_features_in_ : int
    scaling_ : Scaling
    ranges_ : float64 array (n_features, 2)
        Least and greatest training value of every feature, before scaling.
    training_ : dict
        JSON values that whoever called `fit` adds to `summary` (rows, seconds); kept in model files.
    """

    reads_sources = False  # whether `fit` takes a Source, and rows need not fit in memory
    has_score_per_class = False  # whether two classes have two columns of `scores`, as more have
    training_: ClassVar[dict] = {}

    @property
    def classes(self):
        """`classes_`."""
        return self.classes_

    @property
    def n_features(self):
        """`n_features_in_`."""
        return self.n_features_in_

    @property
    def feature_names(self):
        """Names of the features, a list, or None."""
        return list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None

    @property
    def ranges(self):
        """`ranges_`."""
        return self.ranges_

    @property
    def clamps(self):
        """Whether a value outside the training range counts as its nearer end."""
        return self.scaling_.clip

    @property
    def n_outputs(self):
        """Columns of `scores`."""
        n_classes = len(self.classes_)
        return n_classes if n_classes > 2 or self.has_score_per_class else 1

    def scores(self, X):
        """What the probabilities are made of, float64 (n_rows, n_outputs): `decision_function` with its columns.

        Parameters
        ----------
        X : array-like (n_rows, n_features)
        """
        return self.decision_function(X).reshape(-1, self.n_outputs)

    def ranking(self, X):
        """Scores that rank as the probabilities do, and their logarithms.

        Parameters
        ----------
        X : array-like (n_rows, n_features)

        Returns
        -------
        scores : float64 array (n_rows, 1) or (n_rows, n_classes)
            Log odds of `classes_[1]`, infinite where a probability is 0; the probabilities of more than two classes.
        log_proba : float64 array (n_rows, n_classes)
        """
        proba = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            log_proba = np.log(proba)
        return (log_proba[:, 1:] - log_proba[:, :1] if len(self.classes_) == 2 else proba), log_proba

    @property
    def summary(self):
        """`objective` (what was minimised, or None), `n_basis` (vectors of all outputs), and `training_`."""
        objective, n_basis = self._figures()
        is_known = objective is not None and np.isfinite(objective)
        return {"objective": float(objective) if is_known else None, "n_basis": int(n_basis), **self.training_}

    def _start_fit(self, X, y, scale, clip=False):
        """Check rows and labels, set the shared attributes; return scaled rows (n, D) and class indices (n,), int64.

        Raises DataError on NaN or inf, one class only; ValueError of scikit-learn on wrong shapes or types.
        """
        self.training_ = {}
        X, y = checked_rows(self, X, y)
        check_classification_targets(y)
        self.classes_, y_index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(f"all {len(y)} labels are {self.classes_[0]!s}: one class only. Give rows of two classes.",
                            source="y")
        self.scaling_ = fit_scaling(X, scale, clip)
        self.ranges_ = np.stack([X.min(axis=0), X.max(axis=0)], axis=1)
        return self.scaling_(X), y_index.astype(np.int64)

    def _start_kernel_fit(self, X, y):
        """`_start_fit` for estimators with the options `kernel` and `scale`; also returns the kernel, with lengths."""
        kernel = make_kernel(self.kernel)
        rows, y_index = self._start_fit(X, y, self.scale, clip=kernel.needs_unit_range)
        return rows, y_index, kernel.with_default_lengths(rows)

    def _scaled(self, X):
        """Check rows against the fitted model and scale them: float64 (n_rows, n_features)."""
        check_is_fitted(self, "scaling_")
        return self.scaling_(checked_rows(self, X, reset=False))

    def predict(self, X):
        """Return the class of largest probability of every row of X (n_rows, n_features)."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]

    def _proba_unnamed(self, rows):
        """`predict_proba` of an array, without the warning that it lacks the names of the fitted features."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            return self.predict_proba(rows)

    def save(self, path):
        """Write the fitted model to a file that `linadd.load_model` reads, with check rows and their probabilities.

        Parameters
        ----------
        path : path-like

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        DataError
            The file cannot be written.
        """
        save_model(path, *self.to_state())

    @property
    def digest(self):
        """32 hexadecimal digits: equal for two models with the same bits."""
        return model_digest(*self.to_state())

    def to_state(self):
        """Content of the model file: tensors (name -> array) and header (JSON values)."""
        check_is_fitted(self, "scaling_")
        checks = check_tensors(self.ranges_, self._proba_unnamed)  # first: they may compute what `_tensors` keeps
        tensors = {"scaling_offset": self.scaling_.offset, "scaling_factor": self.scaling_.factor,
                   "ranges": self.ranges_, **self._tensors(), **checks}
        options = {name: stored_option(value) for name, value in self.get_params(deep=False).items()}
        return tensors, {"class": self.key, "classes": self.classes_.tolist(), "clip": self.scaling_.clip,
                         "feature_names": self.feature_names, "options": options, "linadd_version": version("linadd"),
                         "cpu_features": cpu_features(), "summary": self.summary, **self._header()}

    @classmethod
    def from_state(cls, tensors, header):
        """Return the fitted estimator of a model file's content; `linadd.models.load_model` calls it.

        Parameters
        ----------
        tensors, header : dict
            From `load_model_file`.

        Raises
        ------
        FormatError
            A tensor is missing or of the wrong shape, or the model does not reproduce its check scores.
        """
        options = {name: kernel_from_description(value) if isinstance(value, dict) else value
                   for name, value in header["options"].items()}
        model = cls(**options)
        model.classes_ = np.array(header["classes"])
        model.ranges_ = take_tensor(tensors, "ranges", np.float64, (None, 2))
        model.n_features_in_ = len(model.ranges_)
        if header["feature_names"] is not None:
            model.feature_names_in_ = np.array(header["feature_names"], dtype=object)
        offset, factor = (take_tensor(tensors, f"scaling_{part}", np.float64, (model.n_features_in_,))
                          for part in ("offset", "factor"))
        model.scaling_ = Scaling(offset, factor, bool(header["clip"]))
        model._restore(tensors, header)
        model.training_ = header.get("summary", {})  # older files have none
        verify_check_scores(tensors, model._proba_unnamed)
        return model


def stored_option(value):
    """A constructor parameter as JSON: kernels by description, generators (which have no seed to name) as null."""
    if isinstance(value, Kernel):
        return value.description()
    return value if isinstance(value, str | bool | int | float | list | tuple | np.ndarray | np.generic) else None
