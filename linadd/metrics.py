"""Accuracy, recall, AUC, log loss and reliability of scored rows that arrive chunk by chunk.

Each metric is a small accumulator with `update` (one chunk), `merge` (another accumulator of the same kind, from other
rows) and figures that do not depend on how the rows were cut, up to the rounding of sums of weights. Rows are given as
class indices and scores: what the labels are called, and how scores come about, stays with the model. A figure that is
not defined (no rows, an absent class, a label outside the model's classes) is None, never a guess.
"""

import numpy as np

from linadd.errors import DataError

__all__ = [
    "AreaUnderCurve",
    "Confusion",
    "LogLoss",
    "Metrics",
    "Reliability",
    "class_indices",
    "log_probabilities",
    "predicted_indices",
]

N_BINS = 10  # of the reliability table


def class_indices(labels, classes):
    """Place of each label among the sorted classes.

    Parameters
    ----------
    labels : array, shape (n_rows,)
        Numbers or strings, as a source delivers them.
    classes : array, shape (n_classes,)
        Distinct and sorted.

    Returns
    -------
    array, shape (n_rows,), int64
        -1 for a label that is no class, NaN included.

    Raises
    ------
    DataError
        The labels are text and the classes numbers, or the other way round.
    """
    labels, classes = np.asarray(labels), np.asarray(classes)
    if (labels.dtype.kind in "US") != (classes.dtype.kind in "US"):
        kinds = ["text" if array.dtype.kind in "US" else "numbers" for array in (labels, classes)]
        raise DataError(f"the labels are {kinds[0]}, the model's classes {kinds[1]}. Give labels of the same kind.")
    index = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.where(classes[index] == labels, index, -1)


def predicted_indices(decision):
    """Class index that scores stand for.

    Parameters
    ----------
    decision : array, shape (n_rows, n_outputs)
        One output: class 1 where it is positive, else class 0. Several: the class of the largest, the first of equals.

    Returns
    -------
    array, shape (n_rows,), int64
    """
    return (decision[:, 0] > 0).astype(np.int64) if decision.shape[1] == 1 else np.argmax(decision, axis=1)


def log_probabilities(decision):
    """Logarithms of the class probabilities of logistic scores; finite for every finite score.

    One output f: log 1/(1 + exp(f)) and log 1/(1 + exp(-f)). Several, one against the rest each: the logistic function
    of each score, divided by their sum.

    Parameters
    ----------
    decision : array, shape (n_rows, n_outputs), float64
        Scores of logistic loss.

    Returns
    -------
    array, shape (n_rows, n_classes), float64
    """
    if decision.shape[1] == 1:
        return -np.logaddexp(0.0, np.concatenate([decision, -decision], axis=1))
    log_sigmoid = -np.logaddexp(0.0, -decision)
    return log_sigmoid - np.logaddexp.reduce(log_sigmoid, axis=1, keepdims=True)


class Confusion:
    """Weight of the rows of each class that were given each class; accuracy, error and recall follow from it.

    Parameters
    ----------
    n_classes : int
        Number of classes; memory is 8 bytes times its square.

    Attributes
    ----------
    counts : array, shape (n_classes, n_classes), float64
        Row: true class; column: predicted class; total weight, exact for unweighted rows.
    unseen : float
        Weight of the rows whose label is no class of the model; they count as errors.
    """

    def __init__(self, n_classes):
        self.counts = np.zeros((n_classes, n_classes))
        self.unseen = 0.0

    def update(self, y_index, predicted_index, weight=None):
        """Add rows.

        Parameters
        ----------
        y_index : int array, shape (n_rows,)
            True class, -1 for a label that is no class.
        predicted_index : int array, shape (n_rows,)
            Predicted class.
        weight : float64 array, shape (n_rows,), optional
            1 each if not given.
        """
        weight = np.ones(len(y_index)) if weight is None else weight
        seen = y_index >= 0
        n_classes = len(self.counts)
        cells = y_index[seen] * n_classes + predicted_index[seen]
        self.counts += np.bincount(cells, weight[seen], n_classes**2).reshape(n_classes, n_classes)
        self.unseen += float(weight[~seen].sum())

    def merge(self, other):
        """Add the rows of another accumulator."""
        self.counts += other.counts
        self.unseen += other.unseen

    @property
    def accuracy(self):
        """Share of the weight that was given its own class; None without rows."""
        total = self.counts.sum() + self.unseen
        return float(np.trace(self.counts) / total) if total > 0 else None

    @property
    def recall(self):
        """For each class, the share of its weight that was given it; None for a class without rows."""
        totals = self.counts.sum(axis=1)
        hits = np.diagonal(self.counts)
        return [float(hit / total) if total > 0 else None for hit, total in zip(hits, totals, strict=True)]


class LogLoss:
    """Weighted mean of -log p(true class), from logarithms, so that no probability is rounded to 0 on the way.

    A logarithm of minus infinity, from a model whose probability is exactly 0, counts as log of the smallest normal
    number (-708.4): one such row must not hide all others.
    """

    def __init__(self):
        self.total, self.weight, self.n_unseen = 0.0, 0.0, 0

    def update(self, y_index, log_probability, weight=None):
        """Add rows.

        Parameters
        ----------
        y_index : int array, shape (n_rows,)
            True class, -1 for a label that is no class.
        log_probability : float64 array, shape (n_rows, n_classes)
            Natural logarithms of the predicted probabilities.
        weight : float64 array, shape (n_rows,), optional
            1 each if not given.
        """
        weight = np.ones(len(y_index)) if weight is None else weight
        own = log_probability[np.arange(len(y_index)), y_index]
        own = np.maximum(own, np.log(np.finfo(np.float64).tiny))
        self.total -= float(weight @ own)
        self.weight += float(weight.sum())
        self.n_unseen += int(np.count_nonzero(y_index < 0))

    def merge(self, other):
        """Add the rows of another accumulator."""
        self.total += other.total
        self.weight += other.weight
        self.n_unseen += other.n_unseen

    @property
    def value(self):
        """The mean, in nats; None without rows or with a label that is no class, whose probability nobody gave."""
        return self.total / self.weight if self.weight > 0 and not self.n_unseen else None


class Reliability:
    """Predicted probabilities against observed rates, in ten bins of equal width.

    Two classes: the probability of the second. More: that of the most likely class, against whether it is the row's. Of
    a row whose label is no class nothing came true.
    """

    def __init__(self):
        self.sums = np.zeros((3, N_BINS))  # weight, weight times probability, weight of the rows where it came true

    def update(self, y_index, log_probability, weight=None):
        """Add rows; parameters as for LogLoss."""
        weight = np.ones(len(y_index)) if weight is None else weight
        index = np.argmax(log_probability, axis=1) if log_probability.shape[1] > 2 else np.ones(len(y_index), np.int64)
        probability = np.exp(log_probability[np.arange(len(y_index)), index])
        place = np.minimum((probability * N_BINS).astype(np.int64), N_BINS - 1)
        for total, part in zip(self.sums, (weight, weight * probability, weight * (y_index == index)), strict=True):
            total += np.bincount(place, part, N_BINS)

    def merge(self, other):
        """Add the rows of another accumulator."""
        self.sums += other.sums

    @property
    def table(self):
        """A list of dicts, one a bin that has rows: `low`, `high`, `count` (weight), mean `predicted`, `observed`."""
        rows = enumerate(self.sums.T.tolist())
        return [
            {"low": k / N_BINS, "high": (k + 1) / N_BINS, "count": w, "predicted": p / w, "observed": hits / w}
            for k, (w, p, hits) in rows
            if w > 0
        ]

    @property
    def error(self):
        """Expected calibration error [Guo2017]: the mean of |predicted - observed| over the rows; None without any."""
        total = self.sums[0].sum()
        return float(np.abs(self.sums[1] - self.sums[2]).sum() / total) if total > 0 else None


class AreaUnderCurve:
    """Area under the ROC curve, exact: the share of (positive, negative) pairs in the right order, ties counted half.

    Every score is kept; the caller leaves the area out where `memory_bytes` is too much.
    """

    def __init__(self):
        self.parts = []

    @staticmethod
    def memory_bytes(n_rows, n_outputs):
        """Most memory that rows take: labels, weights and scores, and sorted copies while one area is computed.

        Parameters
        ----------
        n_rows, n_outputs : int
            Number of rows and of scores of each.

        Returns
        -------
        int
        """
        return n_rows * 8 * (2 + n_outputs + 10)

    def update(self, y_index, decision, weight=None):
        """Add rows.

        Parameters
        ----------
        y_index : int array, shape (n_rows,)
            True class, -1 for a label that is no class.
        decision : array, shape (n_rows, n_outputs), float64
            Scores: one output for two classes (higher: class 1), else one for each class. Copied.
        weight : float64 array, shape (n_rows,), optional
            1 each if not given.
        """
        self.parts.append((np.array(y_index), np.array(decision), None if weight is None else np.array(weight)))

    def merge(self, other):
        """Add the rows of another accumulator."""
        self.parts += other.parts

    @property
    def per_class(self):
        """The area of each output, class 1 or class k against the rest; None where one side has no weight."""
        if not self.parts:
            return []
        y_index = np.concatenate([y for y, _, _ in self.parts])
        weight = np.concatenate([np.ones(len(y)) if w is None else w for y, _, w in self.parts])
        n_outputs = self.parts[0][1].shape[1]
        positives = [1] if n_outputs == 1 else range(n_outputs)
        return [
            area_under_curve(y_index == positive, np.concatenate([d[:, k] for _, d, _ in self.parts]), weight)
            for k, positive in enumerate(positives)
        ]

    @property
    def value(self):
        """Two classes: the area; more: the mean over the classes. None if undefined for a class or for a label."""
        areas = self.per_class
        if not areas or None in areas or any((y < 0).any() for y, _, _ in self.parts):
            return None
        return float(np.mean(areas))


def area_under_curve(is_positive, score, weight):
    """Weighted share of (positive, negative) pairs in the right order, ties counted half; None without pairs.

    Parameters
    ----------
    is_positive : bool array, shape (n_rows,)
        Side of each row.
    score, weight : float64 arrays, shape (n_rows,)
        Finite.

    Returns
    -------
    float or None

    References
    ----------
    The Mann-Whitney statistic: Hanley and McNeil, "The meaning and use of the area under a receiver operating
    characteristic (ROC) curve", Radiology 143 (1982).
    """
    order = np.argsort(score)
    score = score[order]
    starts = np.flatnonzero(np.concatenate([[True], score[1:] != score[:-1]])[: len(score)])  # of each distinct score
    positive = np.add.reduceat((weight * is_positive)[order], starts)
    negative = np.add.reduceat((weight * ~is_positive)[order], starts)
    pairs = positive.sum() * negative.sum()
    below = np.cumsum(negative) - negative
    return float(positive @ (below + negative / 2) / pairs) if pairs > 0 else None


class Metrics:
    """All figures of `linadd evaluate`, gathered in one stream of chunks.

    Parameters
    ----------
    n_classes : int
        Number of the model's classes.
    with_auc : bool
        Keep every score for the area under the curve (`AreaUnderCurve.memory_bytes`).
    """

    def __init__(self, n_classes, with_auc=True):
        self.n_rows = 0
        self.with_auc = with_auc
        self.confusion, self.area = Confusion(n_classes), AreaUnderCurve()
        self.log_loss, self.reliability = LogLoss(), Reliability()

    def update(self, y_index, decision, log_probability=None, weight=None):
        """Add rows.

        Parameters
        ----------
        y_index : int array, shape (n_rows,)
            True class (`class_indices`), -1 for a label that is no class.
        decision : float64 array, shape (n_rows, n_outputs)
            Scores; the predicted class is that of `predicted_indices`.
        log_probability : float64 array, shape (n_rows, n_classes), optional
            For the log loss and the reliability of models that have probabilities.
        weight : float64 array, shape (n_rows,), optional
            1 each if not given.
        """
        self.n_rows += len(y_index)
        self.confusion.update(y_index, predicted_indices(decision), weight)
        if self.with_auc:
            self.area.update(y_index, decision, weight)
        if log_probability is not None:
            self.log_loss.update(y_index, log_probability, weight)
            self.reliability.update(y_index, log_probability, weight)

    def merge(self, other):
        """Add the rows of another stream."""
        self.n_rows += other.n_rows
        self.confusion.merge(other.confusion)
        self.area.merge(other.area)
        self.log_loss.merge(other.log_loss)
        self.reliability.merge(other.reliability)

    def figures(self):
        """The figures as JSON values.

        Returns
        -------
        dict
            `n_rows`, `accuracy`, `error`, `recall` and `confusion` (lists in the order of the classes), `auc`,
            `log_loss`, `reliability` (a list, see there; empty without probabilities), `calibration_error`, `unseen`
            (weight of the rows whose label is no class); None for what is not defined.
        """
        accuracy = self.confusion.accuracy
        return {
            "n_rows": self.n_rows,
            "accuracy": accuracy,
            "error": None if accuracy is None else 1 - accuracy,
            "recall": self.confusion.recall,
            "confusion": self.confusion.counts.tolist(),
            "auc": self.area.value,
            "log_loss": self.log_loss.value,
            "reliability": self.reliability.table,
            "calibration_error": self.reliability.error,
            "unseen": self.confusion.unseen,
        }
