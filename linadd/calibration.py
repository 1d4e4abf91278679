"""Probabilities from decisions: a monotone map for each output, fitted on rows that the model was not trained on.

    sigmoid     P(positive | f) = 1 / (1 + exp(slope f + offset)): the maximum likelihood for targets
                (n_+ + 1) / (n_+ + 2) and 1 / (n_- + 2) in place of 1 and 0, which keeps it finite [Platt1999; Lin2007]
    isotonic    P piecewise linear between points (score, probability), constant beyond the ends: the nondecreasing fit
                of least squares, which is constant on blocks of scores [Zadrozny2002]

Two classes have one output, and P is that of the second class. More classes have one each, against the rest: their P
are divided by their sum, as by scikit-learn's CalibratedClassifierCV; where isotonic gives 0 for all, each becomes
1 / n_classes. Labels stay those of the decisions.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from linadd.errors import FormatError
from linadd.metrics import log_probabilities
from linadd.model_file import take_tensor

__all__ = ["CALIBRATIONS", "Isotonic", "Sigmoid", "restore_calibration"]


@dataclass(frozen=True)
class Sigmoid:
    """A logistic curve for each output.

    Attributes
    ----------
    slope, offset : float64 arrays, shape (n_outputs,)
        P(positive | f) = 1 / (1 + exp(slope f + offset)); the slope is negative where higher scores are likelier.
    """

    kind: ClassVar[str] = "sigmoid"
    slope: np.ndarray
    offset: np.ndarray

    @classmethod
    def fit(cls, decisions, is_positive, weight):
        """Fit each output.

        Parameters
        ----------
        decisions : float64 array, shape (n_rows, n_outputs)
            Scores.
        is_positive : bool array, shape (n_rows, n_outputs)
            Side of each row; both sides have weight.
        weight : float64 array, shape (n_rows,)
            Of the rows.
        """
        fits = [fit_sigmoid(f, side, weight) for f, side in zip(decisions.T, is_positive.T, strict=True)]
        return cls(*(np.array(column) for column in zip(*fits, strict=True)))

    def log_probabilities(self, decisions):
        """Natural logarithms, float64 (n_rows, n_classes), for decisions (n_rows, n_outputs)."""
        return log_probabilities(-(self.slope * decisions + self.offset))

    def tensors(self):
        """`calibration_slope` and `calibration_offset`, as in the model file."""
        return {"calibration_slope": self.slope, "calibration_offset": self.offset}

    @classmethod
    def restore(cls, tensors, n_outputs):
        """From the tensors of a model file; FormatError where they do not fit."""
        names = ("calibration_slope", "calibration_offset")
        slope, offset = (take_tensor(tensors, name, np.float64, (n_outputs,)) for name in names)
        if not (np.isfinite(slope).all() and np.isfinite(offset).all()):
            raise FormatError(f"its calibration has the slopes {slope} and offsets {offset}. Train the model anew.")
        return cls(slope, offset)


@dataclass(frozen=True)
class Isotonic:
    """A nondecreasing polygon for each output.

    Attributes
    ----------
    starts : int64 array, shape (n_outputs + 1,)
        Points starts[o] to starts[o + 1] - 1 are those of output o.
    scores, probabilities : float64 arrays, shape (n_points,)
        The points, by increasing score.
    """

    kind: ClassVar[str] = "isotonic"
    starts: np.ndarray
    scores: np.ndarray
    probabilities: np.ndarray

    @classmethod
    def fit(cls, decisions, is_positive, weight):
        """Fit each output; parameters as for Sigmoid."""
        fits = [fit_isotonic(f, side, weight) for f, side in zip(decisions.T, is_positive.T, strict=True)]
        scores, probabilities = (np.concatenate(column) for column in zip(*fits, strict=True))
        return cls(np.cumsum([0, *(len(points) for points, _ in fits)], dtype=np.int64), scores, probabilities)

    def log_probabilities(self, decisions):
        """Natural logarithms, minus infinity for 0, float64 (n_rows, n_classes), for decisions (n_rows, n_outputs)."""
        own = [slice(*self.starts[o : o + 2]) for o in range(decisions.shape[1])]
        columns = [np.interp(f, self.scores[o], self.probabilities[o]) for f, o in zip(decisions.T, own, strict=True)]
        if len(columns) == 1:
            shares = np.column_stack([1.0 - columns[0], columns[0]])
        else:
            shares = np.column_stack(columns)
            total = shares.sum(axis=1, keepdims=True)
            shares = np.divide(shares, total, out=np.full_like(shares, 1.0 / len(columns)), where=total > 0)
        with np.errstate(divide="ignore"):
            return np.log(shares)

    def tensors(self):
        """`calibration_starts`, `calibration_scores` and `calibration_probabilities`, as in the model file."""
        names = ("starts", "scores", "probabilities")
        return {f"calibration_{name}": getattr(self, name) for name in names}

    @classmethod
    def restore(cls, tensors, n_outputs):
        """From the tensors of a model file; FormatError where they do not fit."""
        starts = take_tensor(tensors, "calibration_starts", np.int64, (n_outputs + 1,))
        scores = take_tensor(tensors, "calibration_scores", np.float64, (None,))
        probabilities = take_tensor(tensors, "calibration_probabilities", np.float64, scores.shape)
        is_sound = starts[0] == 0 and starts[-1] == len(scores) and (np.diff(starts) > 0).all()
        is_sound = is_sound and np.isfinite(scores).all() and ((probabilities >= 0) & (probabilities <= 1)).all()
        inner = np.delete(np.arange(1, len(scores)), starts[1:-1] - 1) if is_sound else np.zeros(0, np.int64)
        if not (is_sound and (np.diff(scores)[inner - 1] > 0).all() and (np.diff(probabilities)[inner - 1] >= 0).all()):
            raise FormatError(f"its calibration of {len(scores)} points is no rising polygon. Train the model anew.")
        return cls(starts, scores, probabilities)


CALIBRATIONS = {calibration.kind: calibration for calibration in (Sigmoid, Isotonic)}


def restore_calibration(kind, tensors, n_outputs):
    """The calibration of a model file, or of the arrays of an export.

    Parameters
    ----------
    kind : str or None
        Key of CALIBRATIONS; None for a model without one.
    tensors : mapping of str to array
        Holds its arrays.
    n_outputs : int
        Columns of the decision.

    Returns
    -------
    Sigmoid, Isotonic or None

    Raises
    ------
    FormatError
        An unknown kind, or arrays that do not fit it.
    """
    if kind is None:
        return None
    if kind not in CALIBRATIONS:
        known = ", ".join(CALIBRATIONS)
        raise FormatError(f"it has the calibration {kind!r:.40}, this linadd knows {known}. Upgrade linadd.")
    return CALIBRATIONS[kind].restore(tensors, n_outputs)


def fit_sigmoid(scores, is_positive, weight):
    """(slope, offset) of one output, by Newton's method with halved steps [Lin2007].

    With z = slope f + offset and target t, a row's -log likelihood is t z + log(1 + exp(-z)).
    """
    unit = max(float(np.abs(scores).max()), np.finfo(np.float64).tiny)
    design = np.column_stack([scores / unit, np.ones(len(scores))])
    positive, negative = float(weight[is_positive].sum()), float(weight[~is_positive].sum())
    target = np.where(is_positive, (positive + 1) / (positive + 2), 1 / (negative + 2))

    def value(point):
        z = design @ point
        return float(weight @ (target * z + np.logaddexp(0.0, -z)))

    point = np.array([0.0, np.log((negative + 1) / (positive + 1))])
    for _ in range(100):
        p = np.exp(-np.logaddexp(0.0, design @ point))
        slope = design.T @ (weight * (target - p))
        curvature = design.T @ (design * (weight * p * (1 - p))[:, None])
        # The ridge is for scores that are all equal.
        step = np.linalg.solve(curvature + 1e-12 * np.trace(curvature) * np.eye(2), -slope)
        present, share = value(point), 1.0
        while share > 1e-10 and value(point + share * step) > present + 1e-4 * share * float(slope @ step):
            share /= 2
        if share <= 1e-10 or -float(slope @ step) <= 1e-14 * abs(present):
            break
        point = point + share * step
    return point[0] / unit, point[1]


def fit_isotonic(scores, is_positive, weight):
    """(scores, probabilities) of the points of one output: the two ends of each block."""
    from scipy.optimize import isotonic_regression  # 0.2 s that other runs need not wait for

    points, place = np.unique(scores[weight > 0], return_inverse=True)
    total = np.bincount(place, weight[weight > 0])
    rate = np.bincount(place, (weight * is_positive)[weight > 0]) / total
    level = np.clip(isotonic_regression(rate, weights=total).x, 0.0, 1.0)
    is_end = np.ones(len(points), bool)
    is_end[1:-1] = (level[1:-1] != level[:-2]) | (level[1:-1] != level[2:])
    return points[is_end], level[is_end]
