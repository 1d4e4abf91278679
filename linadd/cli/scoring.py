"""Scores of a file by a model, in bounded memory: what `evaluate` and `predict` share."""

from dataclasses import replace

import numpy as np
import scipy.sparse

from linadd.cli.arguments import open_rows
from linadd.errors import ConfigError, DataError
from linadd.ranges import count_outside, feature_policies, refuse_outside
from linadd.sources import names_of
from linadd.sources.base import ReadOptions
from linadd.sources.columns import choose_columns

__all__ = ["RangeGuard", "chosen_features", "open_for_model", "scored_pieces"]

PIECE_BYTES = 8 << 20  # of dense rows at a time, where a source counts its chunks in stored entries
SHOWN_FEATURES = 5


def open_for_model(path, model, model_path, **options):
    """The source of a file with the columns of a model, found by name where both have names.

    Parameters
    ----------
    path : str
        The file.
    model : model of any class
        As `load_model` returns it.
    model_path : str
        Its file, for messages.
    **options
        Of `open_rows`.

    Raises
    ------
    DataError
        Another number of features (libsvm text of fewer is padded), or names that lack one of the model's.
    """
    data = getattr(model, "fingerprint", None) or model.training_.get("fingerprint")
    source = open_rows(path, match=model.feature_names, like=data, **options)
    if source.can_pad and source.n_features < model.n_features:
        source.pad(model.n_features)
    if source.n_features != model.n_features:
        message = f"has {source.n_features} features, the model {model_path} has {model.n_features}."
        is_wider = source.n_features > model.n_features
        remedy = "Choose those of the model by --features." if is_wider else "Give data of the same columns."
        raise DataError(f"{message} {remedy}", source=source.origin)
    return source


def chosen_features(model, model_path, features, drop):
    """Indices of the features of a model that --features and --drop choose, in its order; all without either.

    Parameters
    ----------
    model : model of any class
        As `load_model` returns it.
    model_path : str
        Its file, for messages.
    features, drop : list of str, or None
        As for `open_source`.

    Raises
    ------
    DataError
        As `choose_columns`.
    """
    options = ReadOptions(features=names_of("features", features), drop=names_of("drop", drop))
    chosen, _ = choose_columns(options, model.feature_names, model.n_features, model_path)
    return np.arange(model.n_features) if chosen is None else chosen


def scored_pieces(source, model, guard, score):
    """Yield (chunk, rows, what `score` finds for them) over all rows of a source, in order.

    Parameters
    ----------
    source : Source
        Rows of the model's features.
    model : model of any class
        Its feature names stand in messages.
    guard : RangeGuard
        Shown every row.
    score : callable
        Of dense rows, shape (n, n_features); a method of the model.

    Yields
    ------
    chunk : Chunk
        The reader chunk.
    rows : slice
        The rows of it that are scored.
    result
        What `score` returned for them.
    """
    piece_rows = max(1, PIECE_BYTES // (source.n_features * source.dtype.itemsize))
    for chunk in source.chunks():
        step = piece_rows if scipy.sparse.issparse(chunk.X) else chunk.n_rows
        for start in range(0, chunk.n_rows, step):
            rows = slice(start, min(start + step, chunk.n_rows))
            X = chunk.X[rows].toarray() if scipy.sparse.issparse(chunk.X) else chunk.dense()
            try:
                result = score(X)
            except DataError as error:  # it counts from the first row that it was given
                row = None if error.row is None else chunk.row_number(start + error.row - 1)
                column = guard.name(error.column - 1) if isinstance(error.column, int) else error.column
                raise DataError(error.message, source=chunk.origin, row=row, column=column) from None
            guard.update(X, chunk, start)
            yield chunk, rows, result


class RangeGuard:
    """Counts of the values outside the training range of their feature, and what becomes of them.

    Parameters
    ----------
    model : model of any class
        Whose ranges hold.
    policy : str, optional
        Range policy; by default that of the model, `clamp` for a kernel classifier, which takes values as they are.

    Attributes
    ----------
    model : model of any class
        The model under that policy; of `report` the guard tells once, in the place of a warning a chunk.
    has_report : bool
        Some feature has the policy `report`.
    n_values : int
        Values seen.
    below, above : int64 arrays, shape (n_features,)
        Values under and over the range.

    Raises
    ------
    ConfigError
        On a policy or a feature that does not exist, and on `linear` for a kernel classifier.
    """

    def __init__(self, model, policy=None):
        policy = getattr(model, "range_policy", "clamp") if policy is None else policy
        policies = feature_policies(policy, model.n_features, model.feature_names)
        self.has_report = bool((policies == "report").any())
        if hasattr(model, "range_policy"):
            model = replace(model, range_policy=np.where(policies == "report", "clamp", policies).tolist())
        elif (policies == "linear").any():
            raise ConfigError("range: 'linear' is for additive models. A kernel classifier takes clamp, error, report.")
        self.model, self.policies, self.n_values = model, policies, 0
        self.below, self.above = np.zeros((2, model.n_features), np.int64)

    def update(self, X, chunk, start):
        """Count rows X, of which the first is row `start` of the chunk."""
        refuse_outside(
            X, self.model.ranges, self.policies == "error", chunk.origin, self.model.feature_names,
            lambda row: chunk.row_number(start + row),
        )  # fmt: skip
        below, above = count_outside(X, self.model.ranges)
        self.below += below
        self.above += above
        self.n_values += X.size

    def name(self, j):
        """Feature j as a message names it."""
        return self.model.feature_names[j] if self.model.feature_names else j + 1

    def record(self):
        """What was counted, as JSON values: totals, and each feature with values outside, the worst first."""
        outside = self.below + self.above
        order = [int(j) for j in np.argsort(-outside, kind="stable") if outside[j]]
        features = [
            {"feature": self.name(j), "below": int(self.below[j]), "above": int(self.above[j])} for j in order
        ]  # fmt: skip
        return {"n_values": self.n_values, "n_clamped": int(outside.sum()), "features": features}

    def text(self):
        """The same in one line, the worst few features named."""
        record = self.record()
        if not record["n_clamped"]:
            return "range: all values are within the training range"
        share = record["n_clamped"] / record["n_values"]
        shown = record["features"][:SHOWN_FEATURES]
        worst = ", ".join(f"{each['feature']} ({each['below'] + each['above']:,})" for each in shown)
        more = len(record["features"]) - len(shown)
        return (
            f"range: {record['n_clamped']:,} values ({share:.2%}) outside the training range"
            f"{self.fate()}; "
            f"by feature: {worst}{f' and {more} more' if more > 0 else ''}"
        )

    def fate(self):
        """What became of the values outside, where all features agree."""
        if not self.model.clamps or len({*self.policies} - {"report", "clamp", "error"}):
            return ""
        return " count as its nearer end"
