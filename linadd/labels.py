"""Counts of the labels of a data set as its rows stream by, and the labels that no classifier can be trained on.

Classes are the sorted distinct labels: numbers or text, integral floats as integers.
"""

import numpy as np

from linadd.chunks import refuse_label_types
from linadd.errors import DataError

MAX_REAL_LABELS = 10_000
MAX_LABELS = 100_000


class Labels:
    """Counts of each label, and whether the rows come sorted by it."""

    def __init__(self):
        self.counts, self.weighted, self.n_real = {}, set(), 0
        self.first, self.last, self.n_changes, self.is_text = None, None, 0, None

    def update(self, chunk, weight):
        """Count the labels of a chunk; `weight` (n_rows,) tells which rows count for something.

        Raises
        ------
        DataError
            On a missing label, on numbers among text, on what looks like a regression target or an identifier.
        """
        y = chunk.y
        if np.issubdtype(y.dtype, np.floating) and not np.isfinite(y).all():
            i = int(np.argmax(~np.isfinite(y)))
            raise DataError(
                f"the label is {y[i]}. Drop the row or give it a label.", source=chunk.origin, row=chunk.row_number(i)
            )
        if self.is_text not in (None, y.dtype.kind == "U"):
            refuse_label_types(chunk)
        values, counts = np.unique(y, return_counts=True)
        weighted = values if weight.all() else np.unique(y[weight > 0])
        n_changes = int(np.count_nonzero(y[1:] != y[:-1]))
        self.add(dict(zip(values.tolist(), counts.tolist(), strict=True)), weighted.tolist(), chunk.origin)
        self.follow(y[0].item(), y[-1].item(), n_changes, y.dtype.kind == "U")

    def add(self, counts, weighted, origin):
        """Add counts by label, and the labels that have weight; DataError where there are too many."""
        for value, count in counts.items():
            self.n_real += value not in self.counts and isinstance(value, float) and not value.is_integer()
            self.counts[value] = self.counts.get(value, 0) + count
        self.weighted.update(weighted)
        if self.n_real > MAX_REAL_LABELS:
            value = next(v for v in self.counts if isinstance(v, float) and not v.is_integer())
            raise DataError(
                f"the labels have more than {MAX_REAL_LABELS} distinct non-integral values, such as {value}: this "
                "looks like a regression target. linadd trains classifiers; name the label column by --y.",
                source=origin,
            )
        if len(self.counts) > MAX_LABELS:
            raise DataError(
                f"the labels have more than {MAX_LABELS} distinct values, such as {next(iter(self.counts))!r}: this "
                "looks like an identifier. Name the label column by --y.",
                source=origin,
            )

    def follow(self, first, last, n_changes, is_text):
        """Note rows that come next: their first and last label, and how often it changes between them."""
        self.n_changes += n_changes + (self.last is not None and first != self.last)
        self.first = first if self.first is None else self.first
        self.last, self.is_text = last, is_text

    def merge(self, other, origin):
        """Add the labels of the rows that come next; DataError as for `update`."""
        if other.first is None:
            return
        if self.is_text not in (None, other.is_text):
            raise DataError(
                f"labels {self.last!r} and {other.first!r} are of two types. Use numbers only or text only.",
                source=origin,
            )
        self.add(other.counts, other.weighted, origin)
        self.follow(other.first, other.last, other.n_changes, other.is_text)

    def finish(self, origin):
        """(classes sorted, counts, is_sorted); integral floats become integers.

        Raises
        ------
        DataError
            On a single class, or on a class whose rows all have weight 0.
        """
        classes = sorted(self.counts)
        if len(classes) < 2:
            raise DataError(
                f"all rows have the one label {classes[0]!r}. A classifier needs two classes; name the label column "
                "by --y.",
                source=origin,
            )
        for value in classes:
            if value not in self.weighted:
                raise DataError(
                    f"all rows of the class {value!r} have weight 0. Drop these rows or give one of them a weight.",
                    source=origin,
                )
        counts = np.array([self.counts[value] for value in classes])
        classes = np.array(classes)
        # Beyond 2^53 not every integer is a float64: such labels stay as they are.
        if classes.dtype.kind == "f" and (classes == np.rint(classes)).all() and np.abs(classes).max() <= 2**53:
            classes = classes.astype(np.int64)
        return classes, counts, self.n_changes == len(classes) - 1
