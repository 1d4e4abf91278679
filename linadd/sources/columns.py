"""Columns of a source put into the order of a model by their names."""

import logging
from dataclasses import replace

import numpy as np
import scipy.sparse

from linadd.chunks import csr_rows
from linadd.errors import DataError
from linadd.sources.base import Source

__all__ = ["match_columns"]

logger = logging.getLogger(__name__)


def match_columns(source, names):
    """The source with its columns in the order of `names`.

    Parameters
    ----------
    source : Source
        With as many columns as there are names.
    names : list of str, or None
        The model's feature names; None where it has none.

    Returns
    -------
    Source
        The source itself where the order is right, or one of the two has no names: then columns count by position.

    Raises
    ------
    DataError
        Names that are not the model's in some order, each once.
    """
    there = source.feature_names
    if there is None or names is None or list(there) == list(names):
        return source
    place = {name: j for j, name in enumerate(there)}
    if len(place) < len(there):
        double = next(name for j, name in enumerate(there) if place[name] != j)
        message = f"has two columns named {double!r}, and its order is not the model's. Give each column its own name."
        raise DataError(message, source=source.origin)
    missing = next((name for name in names if name not in place), None)
    if missing is not None:
        extra = sorted(place.keys() - set(names))[0]
        message = f"has no column {missing!r}, which the model needs, but one named {extra!r}, which it does not know."
        raise DataError(f"{message} Give data of the same columns.", source=source.origin)
    logger.info("%s: the columns are in another order than the model's; they are matched by name", source.origin)
    return ColumnSource(source, np.array([place[name] for name in names], np.int64))


class ColumnSource(Source):
    """All columns of a source in another order.

    Parameters
    ----------
    source : Source
        The rows.
    order : int64 array, shape (n_features,)
        Column of the source that becomes column j.
    """

    def __init__(self, source, order):
        self.source, self.order = source, order
        self.origin, self.kind, self.dtype = source.origin, source.kind, source.dtype
        self.n_rows, self.n_features, self.chunk_rows = source.n_rows, source.n_features, source.chunk_rows
        self.has_labels, self.has_weights, self.is_sparse = source.has_labels, source.has_weights, source.is_sparse
        self.class_names, self.feature_names = source.class_names, [source.feature_names[j] for j in order]

    def _read_many(self, ranges):
        return [replace(chunk, X=self._ordered(chunk.X)) for chunk in self.source.read_many(ranges)]

    def _ordered(self, X):
        """Columns of X in the order, C-contiguous or with sorted indices."""
        if not scipy.sparse.issparse(X):
            return np.take(X, self.order, axis=1)
        X = scipy.sparse.csr_array(X[:, self.order])
        X.sort_indices()
        return csr_rows(X.data, X.indices, X.indptr, X.shape)

    def fingerprint(self):
        """Of the source, with the order."""
        return self.source.fingerprint() | {"columns": self.order.tolist()}

    def label_remedy(self):
        """As the source says."""
        return self.source.label_remedy()

    def close(self):
        """Close the source."""
        self.source.close()
