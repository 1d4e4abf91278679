"""Model files of LIBLINEAR as models of linadd: identity encoder, values as they are, no range.

    solver_type L2R_LR         one of CLASSIFIERS
    nr_class 2
    label 1 -1                 two classes have one column of weights, whose positive side is the first label
    nr_feature 13
    bias 1                     value of one more feature, whose weights stand in the last row; below 0: none
    w
    0.25                       a row a feature, a column an output
"""

import math

import numpy as np

from linadd.encoders import from_state
from linadd.errors import DataError, FormatError
from linadd.model import AdditiveModel

__all__ = ["CLASSIFIERS", "is_liblinear_model", "load_liblinear_model"]

# solver_type -> loss of the model; what was penalised, and whether in the dual, does not matter to the scores.
CLASSIFIERS = {
    "L2R_LR": "logistic",
    "L2R_LR_DUAL": "logistic",
    "L1R_LR": "logistic",
    "L2R_L2LOSS_SVC": "squared_hinge",
    "L2R_L2LOSS_SVC_DUAL": "squared_hinge",
    "L1R_L2LOSS_SVC": "squared_hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    "MCSVM_CS": "hinge",
}
FIRST_WORD = b"solver_type"
OPTIONAL = {"bias": "-1", "rho": "0"}


def is_liblinear_model(path):
    """Whether a file begins as LIBLINEAR's model files do; DataError where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(len(FIRST_WORD)) == FIRST_WORD
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"cannot be read ({reason}). Give a model file that exists.", source=path) from error


def load_liblinear_model(path):
    """Read a model that LIBLINEAR's `train` wrote.

    Parameters
    ----------
    path : path-like
        The file; of any solver for classification, with two or more classes.

    Returns
    -------
    AdditiveModel
        Of the identity encoder without range. Its classes are the labels in ascending order, its coefficients the
        weights rounded to float32, so that scores agree with LIBLINEAR's to 1e-7 of the sum of their terms.

    Raises
    ------
    FormatError
        The file is no such model, cut short, or of a solver that does not classify.
    DataError
        The file cannot be read.
    """
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            head = read_head(file, path)
            n_features, labels = read_counts(head, path)
            weights = read_weights(file, head, n_features, len(labels), path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"cannot be read ({reason}). Give a model file that exists.", source=path) from error
    bias = float(head["bias"])
    if len(labels) == 2:
        # Crammer and Singer's two columns are opposites; LIBLINEAR looks at the first only.
        order, weights = np.argsort(labels), weights[:, :1] * (1.0 if labels[0] > labels[1] else -1.0)
    else:
        order = np.argsort(labels)
        weights = weights[:, order]
    intercept = weights[n_features] * bias if bias >= 0 else np.zeros(weights.shape[1])
    with np.errstate(over="ignore"):  # refused below
        coef = weights[:n_features, None].astype(np.float32)
    if not np.isfinite(coef).all():
        raise FormatError(
            f"has a weight of {np.abs(weights).max():g}, beyond float32. Scale the features.", source=path
        )  # fmt: skip
    return AdditiveModel(
        unbounded_identity(n_features), coef, intercept, np.array(labels)[order], CLASSIFIERS[head["solver_type"]],
        np.ones(n_features), options=training_options(head, bias), fingerprint={"path": str(path), "digest": None},
        summary={"solver": f"LIBLINEAR {head['solver_type']}", "gap": None, "converged": True, "n_rows": None},
    )  # fmt: skip


def read_head(file, path):
    """The lines before `w`, by their first word."""
    head = dict(OPTIONAL)
    for number, line in enumerate(file, 1):
        name, _, value = line.strip().partition(" ")
        if name == "w":
            break
        if number > 20 or not value:
            raise FormatError(
                f"line {number} is {line.strip()!r:.60}, not of a LIBLINEAR model. Give one.", source=path
            )  # fmt: skip
        head[name] = value
    else:
        raise FormatError("ends before its weights: it is cut short. Copy it again.", source=path)
    solver = head.get("solver_type")
    if solver not in CLASSIFIERS:
        raise FormatError(
            f"solver_type {solver} does not classify. linadd reads models of {', '.join(CLASSIFIERS)}.",
            source=path,
        )
    return head


def read_counts(head, path):
    """(number of features, labels) of the head, once they agree."""
    try:
        n_classes, n_features = int(head["nr_class"]), int(head["nr_feature"])
        labels = [int(text) for text in head["label"].split()]
        bias = float(head["bias"])
    except (KeyError, ValueError) as error:
        raise FormatError(f"its head lacks a number ({error}): it is damaged. Train it again.", source=path) from None
    if len(labels) != n_classes or len(set(labels)) < n_classes or n_classes < 2 or n_features < 1:
        raise FormatError(
            f"has {n_features} features and the labels {labels}. Give a model of two or more.", source=path
        )  # fmt: skip
    if not math.isfinite(bias):
        raise FormatError(f"its bias is {bias}: it is damaged. Train it again.", source=path)
    return n_features, labels


def read_weights(file, head, n_features, n_classes, path):
    """The weights, float64 (n_features, or one more with a bias; n_columns)."""
    n_rows = n_features + (float(head["bias"]) >= 0)
    n_columns = 1 if n_classes == 2 and head["solver_type"] != "MCSVM_CS" else n_classes
    try:
        values = np.array(file.read().split(), np.float64)
    except ValueError as error:
        raise FormatError(f"a weight is no number ({error}): it is damaged. Train it again.", source=path) from None
    if len(values) != n_rows * n_columns or not np.isfinite(values).all():
        raise FormatError(
            f"has {np.isfinite(values).sum()} finite weights in the place of {n_rows * n_columns}: it is "
            "damaged or cut short. Copy it again.",
            source=path,
        )
    return values.reshape(n_rows, n_columns)


def unbounded_identity(n_features):
    """The identity encoder of values as they are."""
    endless = np.full(n_features, np.inf)
    state = {
        "lower": -endless,
        "upper": endless,
        "origin": np.zeros(n_features),
        "inverse": np.ones(n_features),
        "n_bins": np.zeros(n_features, np.int64),
        "edges": np.full((n_features, 1), np.nan),
    }
    return from_state("identity", {"clamp": False}, state)


def training_options(head, bias):
    """What is known of the training, by the names of `Options`."""
    return {
        "encoder": "identity", "clamp": False, "scale": "none", "center": False, "C": None, "seed": 0,
        "loss": CLASSIFIERS[head["solver_type"]], "solver": "liblinear", "intercept_scale": bias if bias > 0 else None,
        "intercept": "penalised" if bias > 0 else "none",
    }  # fmt: skip
