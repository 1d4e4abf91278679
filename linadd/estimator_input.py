"""Rows as scikit-learn's users hand them to an estimator: checked by its conventions, opened as a Source.

Arrays, lists and sparse arrays go through scikit-learn's own validation, frames and dask arrays through the part of it
that needs no copy, paths and Sources through none: their columns are matched by name (`sources/columns.py`). Whether
values are finite is left to linadd, which names the row and the column.
"""

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from linadd.sources import Source, open_source
from linadd.sources.dask_arrays import DaskSource
from linadd.sources.frames import FrameSource
from linadd.sources.paths import are_paths

__all__ = ["is_named_data", "open_rows"]

NO_LABELS = "no_validation"  # scikit-learn's word for a y that is not there


def is_named_data(X):
    """Whether X is a path, a list of paths or a Source, which may bring labels and weights of its own."""
    return isinstance(X, Source) or are_paths(X)


def open_rows(estimator, X, y=NO_LABELS, sample_weight=None, *, is_first=False, least_rows=1):
    """Rows of any kind as a Source with the columns that the estimator was fitted on.

    Parameters
    ----------
    estimator : scikit-learn estimator
        Gets `n_features_in_` and, where the columns have names, `feature_names_in_` if `is_first`; else must have them.
    X : array, sparse array, pandas or polars frame, dask array, path or Source, shape (n_samples, n_features)
        Feature values.
    y : array, shape (n_samples,), or str
        Labels, where there are any beside X; their name in a file. For a classifier None is refused unless X is a path
        or Source.
    sample_weight : array, shape (n_samples,), or str, optional
        Weights; a name in a file.
    is_first : bool
        Whether these rows decide the columns.
    least_rows : int
        Fewer rows in memory are refused.

    Returns
    -------
    Source

    Raises
    ------
    ValueError, TypeError
        scikit-learn's: other columns, no table of real numbers, labels that are none.
    DataError
        linadd's: what a Source finds.
    """
    if is_named_data(X):
        names = {"y_name": y} if isinstance(y, str) and y != NO_LABELS else {}
        y = None if isinstance(y, str) else y
        if is_first:
            return own_columns(estimator, open_source(X, y, weights=sample_weight, **names))
        width, like = estimator.n_features_in_, getattr(getattr(estimator, "model_", None), "fingerprint", None)
        columns = getattr(estimator, "feature_names_in_", None)
        return open_source(X, y, weights=sample_weight, n_features=width, match=columns, like=like, **names)
    labels = {} if isinstance(y, str) else {"y": y}
    if isinstance(X, np.ma.MaskedArray) or FrameSource.accepts(X) or DaskSource.accepts(X):
        validate_data(estimator, X, **labels, reset=is_first, skip_check_array=True)
    else:
        checked = validate_data(
            estimator, X, **labels, reset=is_first, accept_sparse="csr", dtype="numeric", ensure_all_finite=False,
            ensure_min_samples=least_rows,
        )  # fmt: skip
        X = checked[0] if labels else checked
    if labels and not DaskSource.accepts(y):
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
    return open_source(X, y if labels else None, weights=sample_weight)


def own_columns(estimator, source):
    """The source, after the estimator has taken the number and the names of its columns."""
    vars(estimator).pop("feature_names_in_", None)
    estimator.n_features_in_ = source.n_features
    if source.feature_names is not None:
        estimator.feature_names_in_ = np.array(source.feature_names, dtype=object)
    return source
