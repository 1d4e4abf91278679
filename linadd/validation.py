"""Rows that training does not see: scored after every pass, so that it can end where they get no better.

They come from a file of their own, or are a fraction of the rows, chosen by a hash of their number: the same ones for
any storage and chunking. Their loss is the mean over them of the loss that is trained on, weighted as there, the sum
over outputs; their error is the share of wrong labels by sample weight.
"""

import logging
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from linadd._jit import compiled
from linadd.encoders.exact import check_finite, decide
from linadd.errors import DataError
from linadd.losses import loss_value
from linadd.metrics import predicted_indices
from linadd.row_sample import hash_rows
from linadd.solvers.stopping import Certificate, certify_primal

log = logging.getLogger(__name__)


@compiled
def total_loss(code, decisions, targets, positive, costs):
    """sum_i costs_i sum_o loss(y_io f_io)."""
    total = 0.0
    for i in range(decisions.shape[0]):
        for o in range(decisions.shape[1]):
            sign = 1.0 if targets[i] == positive[o] else -1.0
            total += costs[i] * loss_value(code, sign * decisions[i, o])
    return total


def is_held_out(first_row, n_rows, fraction, seed):
    """Mask of the rows first_row .. first_row + n_rows - 1 that a fraction holds out: those of the greatest hashes."""
    hashes = hash_rows(np.arange(first_row, first_row + n_rows), seed)
    return hashes >= np.uint64(round((1.0 - fraction) * 2.0**53)) << np.uint64(11)


def places_of(chunk, classes):
    """Place of each label of a chunk in the sorted classes, int32 (n_rows,); DataError for one that is not there."""
    targets = np.minimum(np.searchsorted(classes, chunk.y), len(classes) - 1).astype(np.int32)
    if (classes[targets] != chunk.y).any():
        i = int(np.argmax(classes[targets] != chunk.y))
        raise DataError(
            f"the label {chunk.y[i].item()!r} is not among the classes {', '.join(map(str, classes))}.",
            source=chunk.origin, row=chunk.row_number(i),
        )  # fmt: skip
    return targets


class TrainingRows:
    """A source in which the rows that a fraction holds out have no weight, so that they have no part in anything.

    Parameters
    ----------
    source : Source
        All rows.
    fraction : float
        Of the rows.
    seed : int
        Of the hash.
    """

    def __init__(self, source, fraction, seed):
        self.source, self.fraction, self.seed = source, fraction, seed

    def __getattr__(self, name):
        return getattr(self.source, name)

    def fingerprint(self):
        """Of the source, with the fraction."""
        return self.source.fingerprint() | {"held_out": [self.fraction, self.seed]}

    def chunks(self):
        """Yield the chunks of the source, with other weights."""
        for chunk in self.source.chunks():
            is_kept = ~is_held_out(chunk.first_row, chunk.n_rows, self.fraction, self.seed)
            yield replace(chunk, weight=chunk.weights() * is_kept)


class Piece(NamedTuple):
    """Some validation rows."""

    X: np.ndarray  # (n_rows, n_features), as stored
    targets: np.ndarray  # int32 (n_rows,): place in the classes
    weight: np.ndarray  # float64 (n_rows,): sample weights


class ValidationRows:
    """The rows to watch: kept in memory after the first read where a quarter of what is left holds them, else re-read.

    Parameters
    ----------
    source : Source
        Labelled rows.
    classes : array
        Sorted labels of the training rows.
    memory : Memory
        The account of the limit.
    fraction : float, optional
        Only the rows that this fraction holds out; all by default.
    seed : int
        Of the hash.

    Attributes
    ----------
    reads : int
        Reads of the source so far.
    """

    def __init__(self, source, classes, memory, fraction=None, seed=0):
        self.source, self.classes, self.fraction, self.seed = source, classes, fraction, seed
        self.reads, self.kept = 0, None
        n_rows = source.n_rows if fraction is None else fraction * source.n_rows
        n_bytes = int(n_rows * (source.n_features * source.dtype.itemsize + 12))
        self.keeps = n_bytes <= memory.left // 4
        memory.take(n_bytes * self.keeps)

    def pieces(self):
        """Yield the rows as Pieces, in order.

        Raises
        ------
        DataError
            On a label that the training rows do not have, or a value that is not finite.
        """
        if self.kept is not None:
            yield from self.kept
            return
        kept = []
        for chunk in self.source.chunks():
            X, targets, weight = chunk.dense(), places_of(chunk, self.classes), chunk.weights()
            check_finite(X, chunk.origin, self.source.feature_names, chunk.row_number)
            if self.fraction is not None:
                rows = is_held_out(chunk.first_row, chunk.n_rows, self.fraction, self.seed)
                X, targets, weight = X[rows], targets[rows], weight[rows]
            if self.keeps:
                kept.append(Piece(np.ascontiguousarray(X), targets, weight))
            yield Piece(X, targets, weight)
        self.reads += 1
        self.kept = kept if self.keeps else None


@dataclass
class Best:
    """The model of least validation loss so far."""

    epoch: int
    loss: float
    error: float
    coef: np.ndarray
    intercept: np.ndarray


class Watch:
    """Scores the validation rows after every pass, keeps the best model, and says when to stop.

    Parameters
    ----------
    rows : ValidationRows
        What is watched.
    encoder : Encoder
        Fitted.
    loss : Loss
        That is trained on.
    positive : int32 array, shape (n_outputs,)
        Place in the classes of each output's positive class.
    factors : float64 array, shape (n_classes,)
        Class weights.
    patience : int or None
        Passes without a lower loss after which to stop; None never stops.

    Attributes
    ----------
    best : Best or None
        The best model so far.
    is_over : bool
        The patience has run out.
    """

    def __init__(self, rows, encoder, loss, positive, factors, patience=None):
        self.rows, self.encoder, self.loss, self.positive = rows, encoder, loss, positive
        self.factors, self.patience = factors, patience
        self.epoch, self.best, self.is_over = 0, None, False

    def score(self, coef, intercept):
        """(loss, error) of coefficients (n_features, n_basis, n_outputs) and intercepts on the validation rows.

        Raises
        ------
        DataError
            Where no row has any weight.
        """
        loss, wrong, total_cost, total_weight = 0.0, 0.0, 0.0, 0.0
        for X, targets, weight in self.rows.pieces():
            decisions, costs = decide(self.encoder, X, coef, intercept), weight * self.factors[targets]
            loss += total_loss(self.loss.code, decisions, targets, self.positive, costs)
            wrong += float(weight @ (predicted_indices(decisions) != targets))
            total_cost, total_weight = total_cost + float(costs.sum()), total_weight + float(weight.sum())
        if total_weight == 0.0:
            raise DataError("no validation row has any weight. Give more of them.", source=self.rows.source.origin)
        return loss / total_cost, wrong / total_weight

    def __call__(self, coef, intercept):
        """Score the model of a pass: (entries of its record in the history, whether to stop here)."""
        self.epoch += 1
        loss, error = self.score(coef, intercept)
        if self.best is None or loss < self.best.loss:
            self.best = Best(self.epoch, loss, error, coef.copy(), intercept.copy())
        self.is_over = self.patience is not None and self.epoch - self.best.epoch >= self.patience
        if self.is_over:
            log.info("early stopping: no lower validation loss in %d passes.", self.patience)
        return {"validation_loss": loss, "validation_error": error}, self.is_over


def keep_best(result, watch, problem, run):
    """The SolverResult with the model that early stopping keeps, and a certificate of its own.

    Its lower bound is the best of the run's, as a dual point bounds every primal one; its objective takes a read, with
    the intercept that is best for its coefficients.
    """
    reads, best = result.reads + watch.rows.reads, watch.best
    if watch.patience is None or best is None:
        return replace(result, reads=reads)
    certificate, intercept = result.certificate, best.intercept
    if certificate is not None:
        own, intercept = certify_primal(problem, run.memory, best.coef, intercept)
        certificate, reads = Certificate(own.primal, np.maximum(own.dual, certificate.dual)), reads + 2
    return replace(
        result, coef=best.coef, intercept=intercept, converged=result.converged or watch.is_over, reads=reads,
        certificate=certificate, gap_on_codes=None,
    )  # fmt: skip


def report(watch, model):
    """What the summary says of the validation rows: loss and error of the model, and the pass it is of."""
    loss, error = watch.score(model.coef, model.intercept)
    kept = watch.best.epoch if watch.patience is not None and watch.best is not None else model.summary["passes"]
    return {"loss": loss, "error": error, "pass": kept}
