"""Decisions from a model file with NumPy alone; with numba, where it is installed, ten times as fast.

    from linadd.score import load_scorer
    load_scorer("m.safetensors").predict(X)

Also the arrays that every export is made from (`arrays_of`, documented in `export/tables.py`), and their scores:

    score_o = intercept_o + sum_j sum_i coef[j, i, o] phi_i(u_j)

A value becomes a coordinate u (`coordinates`), the coordinate the n_basis values of phi (one function an encoder).
"""

import numpy as np

from linadd.calibration import restore_calibration
from linadd.choices import PROBABILITY_LOSSES
from linadd.errors import ConfigError, DataError, FormatError
from linadd.metrics import log_probabilities, predicted_indices
from linadd.model_file import load_model_file, restore, verify_check_scores
from linadd.named_columns import rows_by_name
from linadd.penalty import fourier_weights, hermite_weights
from linadd.ranges import feature_policies, refuse_outside

__all__ = ["PHI", "Scorer", "arrays_of", "coordinates", "decision_function", "load_scorer"]

FORMAT_VERSION = 1
PIECE_BYTES = 8 << 20  # of the values of phi that are made at a time


def load_scorer(path):
    """Read an additive model for scoring; nothing in the file is executed.

    Parameters
    ----------
    path : path-like
        A model file.

    Returns
    -------
    AdditiveModel or Scorer
        Either has `classes`, `decision_function`, `predict` and `predict_proba`. An AdditiveModel, which is compiled,
        where numba and scipy are installed.

    Raises
    ------
    FormatError
        The file is no additive model, damaged, or newer than this version.
    DataError
        The file cannot be read.
    """
    tensors, header = load_model_file(path)
    if header.get("class") != "additive":
        raise FormatError(
            f"is of class {header.get('class')!r}; linadd.score knows additive. Use load_model.", source=path
        )  # fmt: skip
    try:
        from linadd.model import AdditiveModel as model_class  # numba, scipy
    except ModuleNotFoundError:
        model_class = Scorer
    try:
        return restore(model_class, tensors, header)
    except FormatError as error:
        raise FormatError(str(error), source=path) from error


class Scorer:
    """Scores from arrays, in NumPy.

    Parameters
    ----------
    arrays : mapping of str to array
        From `arrays_of`, or of an export.

    Attributes
    ----------
    classes : array, shape (n_classes,)
        Sorted labels.
    """

    def __init__(self, arrays):
        self.arrays, self.classes = arrays, arrays["classes"]

    @classmethod
    def from_state(cls, tensors, header):
        """The scorer of a model file; FormatError unless it gives the scores that were saved with its check rows."""
        scorer = cls(arrays_of(tensors, header))
        verify_check_scores(tensors, scorer.decision_function)
        return scorer

    def decision_function(self, X):
        """Scores of rows, float64 (n_rows, n_outputs); as the function of this name, in bounded memory."""
        X = rows_by_name(X, self.arrays.get("feature_names"))
        if X.ndim != 2 or X.shape[1] != len(self.arrays["coef"]):
            raise DataError(
                f"the data have shape {X.shape}; the model needs {len(self.arrays['coef'])} features a row.",
                source="array",
            )  # fmt: skip
        piece = max(1, PIECE_BYTES // (8 * self.arrays["coef"][:, :, 0].size))
        starts = range(0, max(len(X), 1), piece)
        return np.concatenate([decision_function(self.arrays, X[start : start + piece]) for start in starts])

    def predict(self, X):
        """Labels of rows, (n_rows,)."""
        return self.classes[predicted_indices(self.decision_function(X))]

    def predict_proba(self, X):
        """Probabilities of the classes, (n_rows, n_classes); ConfigError for a model without them."""
        if "calibration" in self.arrays:
            kind, n_outputs = str(self.arrays["calibration"]), len(self.arrays["intercept"])
            calibration = restore_calibration(kind, self.arrays, n_outputs)
            return np.exp(calibration.log_probabilities(self.decision_function(X)))
        if "link" not in self.arrays:
            raise ConfigError("a model of this loss has no probabilities. Train with the logistic loss.")
        return np.exp(log_probabilities(self.decision_function(X)))


def arrays_of(tensors, header):
    """The arrays of `export/tables.py` from the content of a model file, without check rows.

    Parameters
    ----------
    tensors, header : dict
        From `load_model_file` or `AdditiveModel.to_state`.

    Returns
    -------
    dict of str to array
    """
    name, options = header["encoder"]["name"], header["encoder"]["options"]
    arrays = {
        "format": np.array("linadd-arrays"),
        "format_version": np.array(FORMAT_VERSION),
        "encoder": np.array(name),
        "classes": np.asarray(header["classes"]),
        **{key: tensors[key] for key in ("coef", "intercept", "lower", "upper", "origin", "inverse")},
    }
    if header.get("calibration") is not None:  # then the link of the loss does not hold
        arrays["calibration"] = np.array(header["calibration"])
        arrays |= {key: values for key, values in tensors.items() if key.startswith("calibration_")}
    elif header["loss"] in PROBABILITY_LOSSES:
        arrays["link"] = np.array("logistic")
    if header["feature_names"] is not None:
        arrays["feature_names"] = np.array(header["feature_names"])
    if name == "bspline":
        arrays |= {name: np.array(options[name]) for name in ("degree", "penalty_order")}
        arrays["n_bins"] = tensors["n_bins"]
        in_use = ~np.isnan(tensors["edges"]).all(axis=0)
        if in_use.any():
            arrays["edges"] = tensors["edges"][:, in_use]
    else:
        arrays["weights"] = WEIGHTS[name](**options)  # with the penalty of its order
    policies = feature_policies(header.get("range_policy", "clamp"), len(tensors["coef"]), header["feature_names"])
    policies[np.isinf(tensors["lower"])] = "clamp"
    if (policies == "error").any():
        arrays["is_strict"] = policies == "error"
    if (policies == "linear").any():
        arrays["lower_slope"], arrays["upper_slope"] = tensors["end_slopes"]
    return arrays


WEIGHTS = {
    "fourier": fourier_weights,
    "hermite": hermite_weights,
    "identity": lambda clamp: np.ones(1),
}


def decision_function(arrays, X):
    """Scores of rows.

    Parameters
    ----------
    arrays : mapping of str to array
        `numpy.load("model.npz")`, what `export.json.read` returns, or `arrays_of`.
    X : array, shape (n_rows, n_features)
        Feature values; a hundred rows at a time keep the memory small (n_rows * n_features * n_basis doubles).

    Returns
    -------
    array, shape (n_rows, n_outputs), float64
        One column for two classes, positive for classes[1]; else one a class.

    Raises
    ------
    DataError
        On a value that is not finite, or outside the range of a feature that is strict.
    """
    X = np.asarray(X, np.float64)
    if not np.isfinite(X).all():
        i, j = np.argwhere(~np.isfinite(X))[0]
        message = f"the value is {X[i, j]}. linadd needs finite numbers: fill or drop this row."
        raise DataError(message, source="array", row=int(i) + 1, column=int(j) + 1)
    if "is_strict" in arrays:
        refuse_outside(X, np.stack([arrays["lower"], arrays["upper"]], axis=1), arrays["is_strict"])
    phi = PHI[str(arrays["encoder"])](arrays, coordinates(arrays, X))
    scores = np.tensordot(phi, arrays["coef"].astype(np.float64), 2) + arrays["intercept"]
    if "lower_slope" in arrays:
        scores += np.minimum(X - arrays["lower"], 0) @ arrays["lower_slope"]
        scores += np.maximum(X - arrays["upper"], 0) @ arrays["upper_slope"]
    return scores


def coordinates(arrays, X):
    """u of every value, clamped to the training range; shape (n_rows, n_features)."""
    X = np.clip(X, arrays["lower"], arrays["upper"])
    u = (X - arrays["origin"]) * arrays["inverse"]
    if "edges" in arrays:
        for j in np.flatnonzero(~np.isnan(arrays["edges"][:, 0])):
            u[:, j] = knot_coordinate(X[:, j], arrays["edges"][j, : arrays["n_bins"][j] + 1])
    return u


def knot_coordinate(x, edges):
    """u = k + share of the way from edge k to edge k + 1; the middle of the bin where two edges are one value."""
    last = len(edges) - 1
    k = np.searchsorted(edges, x, side="right") - 1
    width = edges[np.minimum(k + 1, last)] - edges[k]
    u = k + (x - edges[k]) / np.where(k < last, width, 1.0)
    return np.where(edges[k - 1] == x, k - 0.5, u)  # k = 0 looks at the last edge, which x is below


def bspline(arrays, u):
    """degree + 1 values that sum to 1, from the bin of u on; shape (n_rows, n_features, n_basis)."""
    k = np.minimum(u.astype(np.int64), arrays["n_bins"] - 1)
    t = u - k
    s = 1 - t
    values = [
        [np.ones_like(t)],
        [s, t],
        [s**2 / 2, 1 / 2 + t * s, t**2 / 2],
        [s**3 / 6, (4 - 6 * t**2 + 3 * t**3) / 6, (4 - 6 * s**2 + 3 * s**3) / 6, t**3 / 6],
    ][int(arrays["degree"])]
    phi = np.zeros((*u.shape, arrays["coef"].shape[1]))
    for m, value in enumerate(values):
        np.put_along_axis(phi, (k + m)[:, :, None], value[:, :, None], axis=2)
    return phi


def fourier(arrays, u):
    """sin(pi u), cos(pi u), sin(2 pi u), cos(2 pi u), ... times their weights; shape (n_rows, n_features, n_basis)."""
    angle = np.pi * u[:, :, None] * np.arange(1, len(arrays["weights"]) // 2 + 1)
    return np.stack([np.sin(angle), np.cos(angle)], axis=3).reshape(*u.shape, -1) * arrays["weights"]


def hermite(arrays, u):
    """He_1(u) = u, He_2(u) = u^2 - 1, He_(k+1) = u He_k - k He_(k-1), times their weights; shape as above."""
    values = [np.ones_like(u), u]
    for k in range(1, len(arrays["weights"])):
        values.append(u * values[k] - k * values[k - 1])
    return np.stack(values[1:], axis=2) * arrays["weights"]


def identity(arrays, u):
    """u itself; shape (n_rows, n_features, 1)."""
    return u[:, :, None] * arrays["weights"]


PHI = {"bspline": bspline, "fourier": fourier, "hermite": hermite, "identity": identity}
