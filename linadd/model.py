"""The trained additive classifier: encoder state, coefficients, intercepts and classes; its decisions and its file."""

import math
import warnings
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import ClassVar

import numpy as np
import scipy.sparse

from linadd._jit import cpu_features
from linadd.calibration import restore_calibration
from linadd.chunks import entries_of
from linadd.encoders import from_state, make_encoder
from linadd.encoders.base import Encoder
from linadd.encoders.curves import contributions, coordinates
from linadd.encoders.density import Density
from linadd.encoders.exact import check_finite, decide, encode
from linadd.encoders.extrapolation import add_extrapolation, curve_slopes
from linadd.errors import ConfigError, DataError, DataWarning, FormatError
from linadd.losses import LOSSES
from linadd.metrics import log_probabilities, predicted_indices
from linadd.model_file import check_tensors, model_digest, save_model, take_tensor, verify_check_scores
from linadd.named_columns import rows_by_name
from linadd.ranges import count_outside, feature_policies, refuse_outside, widened
from linadd.shapes import density_tensors, importances, restore_density, shape_function


@dataclass
class AdditiveModel:
    """f_o(x) = sum_j coef[j, :, o] . phi(x_j) + intercept[o], and what is known of how it was found.

    Attributes
    ----------
    encoder : Encoder
        Fitted; phi, the ranges that values are clamped to.
    coef : float32 array, shape (n_features, n_basis, n_outputs)
        In phi units, with every scale folded in.
    intercept : float64 array, shape (n_outputs,)
        Added to the sums.
    classes : array, shape (n_classes,)
        Sorted labels. Two classes have one output, whose positive side is classes[1]; more have one output each.
    loss : str
        Name in the table of losses.
    feature_scale : float64 array, shape (n_features,)
        s_j of the objective 1/2 sum_j |D_d v_j|^2 / s_j^2; 0 for a constant feature.
    feature_names : list of str or None
        Names of the features.
    options : dict
        Training options, the seed among them.
    history : list of dict
        One record an epoch.
    summary : dict
        objective, dual_objective, gap, gaps, converged, passes, reads, n_rows, plan.
    fingerprint : dict
        Of the training data.
    density : Density or None
        How the training rows lie along each feature; None for a model of a version that did not count it.
    deviation : float32 array, shape (n_features, n_basis, n_outputs), or None
        Standard errors of the coefficients from the folds of a search (`linadd.search.fold_deviation`).
    range_policy : str, or list of str
        What becomes of values outside the training range (`ranges.py`): "clamp", "report", "linear", "error", such as
        "linear,age=clamp,3=error", or a list of one a feature. Kept in the file, and by exports.
    calibration : Sigmoid or Isotonic, optional
        What makes probabilities of the decisions; without it only the logistic loss has any.
    """

    key: ClassVar[str] = "additive"
    clamps: ClassVar[bool] = True  # values outside the training range count as its nearer end

    encoder: Encoder
    coef: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray
    loss: str
    feature_scale: np.ndarray
    feature_names: list | None = None
    options: dict = field(default_factory=dict)
    history: list = field(default_factory=list)
    summary: dict = field(default_factory=dict)
    fingerprint: dict = field(default_factory=dict)
    density: Density | None = None
    deviation: np.ndarray | None = None
    range_policy: str = "clamp"
    calibration: object = None

    @property
    def n_features(self):
        """Number of features."""
        return self.encoder.n_features

    @property
    def n_outputs(self):
        """Columns of the decision."""
        return self.coef.shape[2]

    @property
    def ranges(self):
        """Lowest and highest training value of each feature, float64 (n_features, 2); infinite where not clamped."""
        return self.encoder.ranges

    @property
    def range_policies(self):
        """The policy of each feature, an array of str (n_features,), `clamp` where there is no end to the range.

        Raises
        ------
        ConfigError
            Where `range_policy` names a policy or a feature that does not exist.
        """
        policies = feature_policies(self.range_policy, self.n_features, self.feature_names)
        policies[np.isinf(self.encoder.axes.lower)] = "clamp"
        return policies

    def range_counts(self, X):
        """Values of rows X (n_rows, n_features) below and above the range of each feature, int64 (2, n_features)."""
        return count_outside(self.checked(X), self.ranges)

    def end_slopes(self):
        """Slopes that curves are continued with beyond their range, float64 (2, n_features, n_outputs), mostly 0."""
        return curve_slopes(self.encoder, self.coef, self.range_policies == "linear")

    def scores(self, X):
        """`decision_function`, by the name that all model classes have."""
        return self.decision_function(X)

    def ranking(self, X):
        """Scores whose order is that of the predictions, and log probabilities or None; X as in decision_function.

        Returns
        -------
        decisions : float64 array, shape (n_rows, n_outputs)
        log_proba : float64 array, shape (n_rows, n_classes), or None
            None for a model without probabilities.
        """
        decisions = self.decision_function(X)
        return decisions, self.log_probabilities(decisions) if self.has_probabilities else None

    def decision_function(self, X, origin="array", row_number=lambda i: i + 1, n_jobs=1):
        """Scores of rows, in float64 whatever the dtype of X; `range_policy` rules values outside the training range.

        Parameters
        ----------
        X : array, sparse array or frame, shape (n_rows, n_features), any real dtype
            Feature values; the columns of a frame by the model's names, see `named_columns`.
        origin : str
            Name of the data, for messages.
        row_number : callable
            Row index to the number that a message gives.
        n_jobs : int
            Threads that share the rows; never changes the result.

        Returns
        -------
        float64 array, shape (n_rows, n_outputs)

        Raises
        ------
        DataError
            On another number of features, values that are no real numbers, one that is not finite, or one outside the
            range of a feature whose policy is `error`.

        Warns
        -----
        DataWarning
            On values outside the range of features whose policy is `report`.
        """
        if scipy.sparse.issparse(X) and self.range_policy != "clamp":
            X = X.toarray()
        X = self.checked(X, origin, row_number)
        decisions = decide(self.encoder, X, self.coef, self.intercept, n_jobs)
        if self.range_policy != "clamp":
            self.apply_policies(X, decisions, origin, row_number)
        return decisions

    def checked(self, X, origin="array", row_number=lambda i: i + 1):
        """Rows as compiled code takes them, after the checks that `decision_function` promises."""
        X = entries_of(X) if scipy.sparse.issparse(X) else rows_by_name(X, self.feature_names, origin)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise DataError(
                f"the data have shape {X.shape}; the model needs {self.n_features} features a row.", source=origin
            )
        if X.dtype.kind not in "fiub":
            raise DataError(f"the data have dtype {X.dtype}; the model needs real numbers.", source=origin)
        if not X.dtype.isnative or (X.dtype.kind == "f" and X.dtype.itemsize not in (4, 8)):
            X = X.astype(np.float64)
        X = X if scipy.sparse.issparse(X) else np.require(X, requirements="CW")
        check_finite(X, origin, self.feature_names, row_number)
        return X

    def apply_policies(self, X, scores, origin, row_number):
        """Treat values outside the training range by the policy of their feature; `scores` as in add_extrapolation."""
        policies = self.range_policies
        refuse_outside(X, self.ranges, policies == "error", origin, self.feature_names, row_number)
        if (policies == "linear").any():
            add_extrapolation(scores, X, self.ranges, self.end_slopes())
        outside = count_outside(X, self.ranges).sum(axis=0) * (policies == "report")
        if outside.any():
            j = int(np.argmax(outside))
            name = self.feature_names[j] if self.feature_names else j + 1
            warnings.warn(
                f"{origin}: {outside.sum():,} values outside the training range count as its nearer end, most of them "
                f"({outside[j]:,}) of feature {name!r}.",
                DataWarning, stacklevel=3,
            )  # fmt: skip

    def predict(self, X):
        """Labels of rows, an array of the type of `classes`, shape (n_rows,); X as in decision_function."""
        return self.labels_of(self.decision_function(X))

    def labels_of(self, decisions):
        """Labels of decisions (n_rows, n_outputs): the positive side of 0, or the greatest of several outputs."""
        return self.classes[predicted_indices(decisions)]

    def predict_proba(self, X):
        """Probabilities of the classes, shape (n_rows, n_classes); X as in decision_function."""
        return self.probabilities_of(self.decision_function(X))

    @property
    def has_probabilities(self):
        """Whether the loss gives probabilities, or the decisions are calibrated."""
        return self.calibration is not None or LOSSES[self.loss].has_probabilities

    def probabilities_of(self, decisions):
        """Probabilities from decisions (n_rows, n_outputs); see `log_probabilities`."""
        return np.exp(self.log_probabilities(decisions))

    def log_probabilities(self, decisions):
        """Natural logarithms of the probabilities of the classes, float64 (n_rows, n_classes).

        Calibrated: see `calibration.py`. Else, for the logistic loss: one output, 1 / (1 + exp(-f)); several, that of
        each class against the rest, divided by their sum, as LIBLINEAR and scikit-learn do for one-versus-rest.

        Raises
        ------
        ConfigError
            For another loss without calibration.
        """
        if not self.has_probabilities:
            raise ConfigError(
                f"a model of {self.loss} loss has no probabilities. Train with the logistic loss, or with calibrate "
                "(--calibrate sigmoid)."
            )
        return (log_probabilities if self.calibration is None else self.calibration.log_probabilities)(decisions)

    def calibration_arrays(self):
        """The calibration as plain arrays, a dict by their names in `calibration.py`; empty without one."""
        return {} if self.calibration is None else self.calibration.tensors()

    def explain(self, X, origin="array", row_number=lambda i: i + 1):
        """What each feature adds to each score of each row.

        Parameters
        ----------
        X, origin, row_number
            As in `decision_function`.

        Returns
        -------
        float64 array, shape (n_rows, n_features, n_outputs)
            f_j(x_j), up to the constants that are in the intercept. The sum over the features plus `intercept` is the
            decision, but for the order of the additions: they differ by at most n_features * n_basis * 2^-53 times the
            sum of the contributions' sizes.

        Raises
        ------
        DataError
            As in `decision_function`.
        """
        X = self.checked(X.toarray() if scipy.sparse.issparse(X) else X, origin, row_number)
        parts = contributions(self.encoder, coordinates(self.encoder, X), self.coef)
        if self.range_policy != "clamp":
            self.apply_policies(X, parts, origin, row_number)
        return parts

    def shape_function(self, feature, grid=None):
        """The centred curve of one feature, with the density of the training data; see `linadd.shapes.shape_function`.

        Parameters
        ----------
        feature : int or str
            Index or name of the feature.
        grid : array, shape (n,), optional
            Values of it; by default 100 steps or more over the training range, knots among them.

        Returns
        -------
        linadd.shapes.Shape
        """
        return shape_function(self, feature, grid)

    def importances(self):
        """Mean of |f_j| over the training rows, float64 (n_features, n_outputs); see `linadd.shapes.importances`."""
        return importances(self)

    def component(self, feature, grid):
        """The curve of one feature.

        Parameters
        ----------
        feature : int
            Index of the feature.
        grid : array, shape (n,)
            Values of it; beyond the training range the policy `linear` continues the curve, the others clamp.

        Returns
        -------
        float64 array, shape (n, n_outputs)
            coef[feature] . phi(grid): the curve up to a constant, which is in the intercept.

        Raises
        ------
        ConfigError
            On a feature that the model does not have.
        DataError
            On a value of the grid that is not finite.
        """
        if feature not in range(self.n_features):
            raise ConfigError(f"feature: {feature!r} is not one of 0 to {self.n_features - 1}.")
        grid = np.asarray(grid, np.float64).reshape(-1, 1)
        check_finite(grid, "grid")
        tensors = {name: values[feature : feature + 1] for name, values in self.encoder.tensors().items()}
        one = from_state(self.encoder.name, self.encoder.options, tensors)
        values = encode(one, grid) @ self.coef[feature].astype(np.float64)
        if self.range_policies[feature] == "linear":
            slopes = curve_slopes(one, self.coef[feature : feature + 1], np.array([True]))
            add_extrapolation(values, grid, one.ranges, slopes)
        return values

    def save(self, path):
        """Write the model to a file that `linadd.load_model` reads, whole or not at all.

        Parameters
        ----------
        path : path-like
            By convention `*.safetensors`; an existing file is replaced in one step.

        Raises
        ------
        DataError
            The file cannot be written.
        """
        save_model(path, *self.to_state())

    @property
    def digest(self):
        """32 hexadecimal digits: equal for two runs with the same bits, whenever and from whichever file they ran."""
        return model_digest(*self.to_state())

    def to_state(self):
        """Content of the model file.

        Returns
        -------
        tensors : dict of arrays
            `coef`, `intercept`, `feature_scale`, those of the encoder, the density and standard errors of the curves
            where they are known, 32 check rows and their scores.
        header : dict
            JSON values: all else, with the version of linadd and the vector instructions of this machine.
        """
        tensors = {
            "coef": self.coef,
            "intercept": self.intercept,
            "feature_scale": self.feature_scale,
            **self.encoder.tensors(),
            **({} if self.density is None else density_tensors(self.density)),
            **({} if self.deviation is None else {"deviation": self.deviation}),
            **self.calibration_arrays(),
            **self.check_tensors(self.range_policies == "linear"),
        }
        header = {
            "class": self.key,
            "encoder": {"name": self.encoder.name, "options": self.encoder.options},
            "loss": self.loss,
            "classes": self.classes.tolist(),
            "feature_names": self.feature_names,
            "options": self.options,
            "linadd_version": version("linadd"),
            "cpu_features": cpu_features(),
            "fingerprint": self.fingerprint,
            "history": [finite_or_none(record) for record in self.history],
            "summary": finite_or_none(self.summary),
        }
        if self.range_policy != "clamp":
            header["range_policy"] = self.range_policy
        if (self.range_policies == "linear").any():
            tensors["end_slopes"] = self.end_slopes()  # for score.py, which cannot take derivatives
        if self.calibration is not None:
            header["calibration"] = self.calibration.kind
        return tensors, header

    def check_tensors(self, is_beyond, dtype=np.float64):
        """Check rows, drawn also from beyond the range of some features (bool array), and their scores."""
        policies, silent = self.range_policies, self
        if (policies == "report").any():
            silent = replace(self, range_policy=np.where(policies == "report", "clamp", policies).tolist())
        return check_tensors(
            widened(self.ranges, is_beyond), silent.decision_function, self.options.get("seed", 0), dtype
        )  # fmt: skip

    @classmethod
    def from_state(cls, tensors, header):
        """The model that a file holds (`linadd.load_model` calls this).

        Parameters
        ----------
        tensors, header : dict
            From `load_model_file`; the arrays become the model's own.

        Raises
        ------
        FormatError
            An array is missing, or of another type, shape or range than compiled code relies on; or the model does not
            give the scores that were saved with its check rows.
        """
        encoder = make_encoder(header["encoder"]["name"], **header["encoder"]["options"])
        classes = np.array(header["classes"])
        if header["loss"] not in LOSSES or classes.ndim != 1 or len(classes) < 2:
            raise FormatError(f"it has the loss {header['loss']!r} and the classes {header['classes']!r:.80}.")
        n_outputs = 1 if len(classes) == 2 else len(classes)
        coef = take_tensor(tensors, "coef", np.float32, (None, encoder.n_basis, n_outputs))
        encoder.restore(encoder_tensors(tensors, encoder, len(coef)))
        model = cls(
            encoder,
            coef,
            take_tensor(tensors, "intercept", np.float64, (n_outputs,)),
            classes,
            header["loss"],
            take_tensor(tensors, "feature_scale", np.float64, (len(coef),)),
            *(header[name] for name in ("feature_names", "options", "history", "summary", "fingerprint")),
            restore_density(tensors, encoder),
            take_tensor(tensors, "deviation", np.float32, coef.shape) if "deviation" in tensors else None,
            header.get("range_policy", "clamp"),
        )
        verify_check_scores(tensors, model.decision_function)
        model.calibration = restore_calibration(header.get("calibration"), tensors, n_outputs)
        return model


def encoder_tensors(tensors, encoder, n_features):
    """The arrays that `encoder.restore` takes, after checking that no value can lead outside its coefficients."""
    axes = {
        name: take_tensor(tensors, name, np.float64, (n_features,)) for name in ("lower", "upper", "origin", "inverse")
    }
    axes["n_bins"] = take_tensor(tensors, "n_bins", np.int64, (n_features,))
    axes["edges"] = take_tensor(tensors, "edges", np.float64, (n_features, None))
    is_sound = np.isfinite(axes["origin"]) & np.isfinite(axes["inverse"]) & (axes["lower"] <= axes["upper"])
    if encoder.is_local:
        is_sound &= (axes["n_bins"] >= 1) & (axes["n_bins"] <= encoder.n_bins)
        is_sound &= (axes["lower"] >= axes["origin"]) & (axes["inverse"] >= 0) & np.isfinite(axes["upper"])
        for j in np.flatnonzero(is_sound & ~np.isnan(axes["edges"][:, :1]).all(axis=1)):
            edges = axes["edges"][j, : axes["n_bins"][j] + 1]
            is_sound[j] = len(edges) == axes["n_bins"][j] + 1 and (np.diff(edges) >= 0).all()
            is_sound[j] &= edges[0] <= axes["lower"][j] and axes["upper"][j] <= edges[-1]
    if not is_sound.all():
        j = int(np.argmin(is_sound))
        raise FormatError(f"its bins of feature {j + 1} do not fit their range. Train the model anew.")
    return axes


def finite_or_none(record):
    """A record with null for numbers that are not finite, which JSON cannot hold."""
    is_bad = {name for name, value in record.items() if isinstance(value, float) and not math.isfinite(value)}
    return {name: None if name in is_bad else value for name, value in record.items()}
