"""The record of one streaming pass over the data: ranges, moments, a sample for quantiles, label counts, and faults.

Moments are sums over fixed groups of 1000 rows, combined in index order, and the sample is the rows with the smallest
hash of their index: so the record is the same for any chunking of the reader. Non-finite values, missing labels, labels
that look like a regression target, a single class and zero rows are found here, before any training.
"""

from dataclasses import dataclass, field

import numpy as np

from linadd._jit import compiled
from linadd.errors import DataError

GROUP_ROWS = 1000
SAMPLE_ROWS = 65_536
MAX_DISTINCT = 64  # distinct values of a feature are counted exactly up to here
MAX_REAL_LABELS = 10_000


def group_slices(first_row, n_rows):
    """(start, stop, closes) of the pieces of a chunk between multiples of GROUP_ROWS; `closes` marks a full group.

    Parameters
    ----------
    first_row : int
        Index of the chunk's first row in the source.
    n_rows : int
        Rows of the chunk.
    """
    start = 0
    while start < n_rows:
        stop = min(n_rows, start + GROUP_ROWS - (first_row + start) % GROUP_ROWS)
        yield start, stop, (first_row + stop) % GROUP_ROWS == 0
        start = stop


@compiled
def survey_rows(X, weight, ranges, sums, reference, n_bad, first_bad, distinct, n_distinct):
    """One piece of a group: extremes, weighted sums about `reference`, faults, distinct values, of each feature."""
    for i in range(X.shape[0]):
        w = weight[i]
        for j in range(X.shape[1]):
            x = np.float64(X[i, j])
            if not np.isfinite(x):
                if n_bad[j] == 0:
                    first_bad[j] = i
                n_bad[j] += 1
                continue
            ranges[0, j] = min(ranges[0, j], x)
            ranges[1, j] = max(ranges[1, j], x)
            shifted = x - reference[j]
            sums[0, j] += w * shifted
            sums[1, j] += w * shifted * shifted
            if n_distinct[j] <= MAX_DISTINCT:
                count_distinct(x, j, distinct, n_distinct)


@compiled
def count_distinct(x, j, distinct, n_distinct):
    """Add x to the list of feature j unless it is there; n_distinct = MAX_DISTINCT + 1 says that there are more."""
    for k in range(n_distinct[j]):
        if distinct[j, k] == x:
            return
    if n_distinct[j] < MAX_DISTINCT:
        distinct[j, n_distinct[j]] = x
    n_distinct[j] += 1


def hash_rows(rows, seed):
    """64-bit hash of row indices (SplitMix64's finaliser): who is in the sample, whatever the chunking."""
    with np.errstate(over="ignore"):
        z = rows.astype(np.uint64) + np.uint64(seed + 1) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


class RowSample:
    """The `size` rows with the smallest hash of their index, kept as they stream by.

    Parameters
    ----------
    size : int
        Rows to keep; 0 keeps none.
    seed : int
        Seed of the hash.
    """

    def __init__(self, size, seed):
        self.size, self.seed = size, seed
        self.parts, self.bound = [], np.uint64(2**64 - 1)

    def update(self, X, weight, first_row):
        """Offer rows (n_rows, n_features) with weights, whose first has index `first_row`."""
        if not self.size:
            return
        hashes = hash_rows(np.arange(first_row, first_row + len(X), dtype=np.uint64), self.seed)
        keep = np.flatnonzero(hashes <= self.bound)
        self.parts.append((hashes[keep], X[keep], weight[keep]))
        if sum(len(part[0]) for part in self.parts) > 2 * self.size:
            self.shrink()

    def shrink(self):
        """Keep the smallest hashes only, sorted."""
        if not self.parts:
            return
        hashes, X, weight = (np.concatenate(columns) for columns in zip(*self.parts, strict=True))
        order = np.argsort(hashes)[: self.size]
        self.parts = [(hashes[order], X[order], weight[order])]
        if len(order) == self.size:
            self.bound = hashes[order[-1]]

    def finish(self):
        """(X, weight) of the sample."""
        self.shrink()
        return self.parts[0][1:] if self.parts else (np.zeros((0, 0)), np.zeros(0))


class Labels:
    """Counts of each label, and whether the rows come sorted by it."""

    def __init__(self):
        self.counts, self.last, self.n_changes = {}, None, 0

    def update(self, y, origin, first_row):
        """Count labels (n_rows,); raise DataError on a missing label or on what looks like a regression target."""
        if np.issubdtype(y.dtype, np.floating) and not np.isfinite(y).all():
            i = int(np.argmax(~np.isfinite(y)))
            raise DataError(
                f"the label is {y[i]}. Drop the row or give it a label.", source=origin, row=first_row + i + 1
            )
        values, counts = np.unique(y, return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            self.counts[value] = self.counts.get(value, 0) + count
        self.n_changes += int(np.count_nonzero(y[1:] != y[:-1]))
        self.n_changes += self.last is not None and y[0] != self.last
        self.last = y[-1]
        if len(self.counts) > MAX_REAL_LABELS and any(v != int(v) for v in self.counts if isinstance(v, float)):
            raise DataError(
                f"the labels have more than {MAX_REAL_LABELS} distinct non-integral values, such as {values[0]}: this "
                "looks like a regression target. linadd trains classifiers; name the label column by --y.",
                source=origin,
            )

    def finish(self, origin):
        """(classes sorted, counts, is_sorted); integral floats become integers; DataError on a single class."""
        classes = sorted(self.counts)
        if len(classes) < 2:
            raise DataError(
                f"all rows have the one label {classes[0]!r}. A classifier needs two classes; name the label column "
                "by --y.",
                source=origin,
            )
        counts = np.array([self.counts[value] for value in classes])
        classes = np.array(classes)
        if np.issubdtype(classes.dtype, np.floating) and (classes == np.rint(classes)).all():
            classes = classes.astype(np.int64)
        return classes, counts, self.n_changes == len(classes) - 1


@dataclass
class Census:
    """What one pass over the data found.

    Attributes
    ----------
    origin : str
        Name of the source.
    n_rows, n_features : int
        Size of the data.
    weight_sum : float
        Sum of the sample weights.
    minimum, maximum, mean, variance : float64 arrays, shape (n_features,)
        Of each feature, in its own units; mean and variance weighted.
    n_distinct : int64 array, shape (n_features,)
        Distinct values; MAX_DISTINCT + 1 stands for more than MAX_DISTINCT.
    classes, class_counts : arrays, shape (n_classes,), or None
        Sorted labels and their rows; None for data without labels.
    is_label_sorted : bool
        Every class is one run of rows.
    sample, sample_weight : arrays, shapes (n, n_features) and (n,)
        Rows with the smallest hashes, in the dtype of the data; empty where none was asked for.
    feature_names : list of str, or None
        Names for messages.
    """

    origin: str
    n_rows: int
    n_features: int
    weight_sum: float
    minimum: np.ndarray
    maximum: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    n_distinct: np.ndarray
    classes: np.ndarray | None = None
    class_counts: np.ndarray | None = None
    is_label_sorted: bool = False
    sample: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    sample_weight: np.ndarray = field(default_factory=lambda: np.zeros(0))
    feature_names: list | None = None

    def column_name(self, j):
        """Feature j as a message names it: its name, or its number from 1."""
        return self.feature_names[j] if self.feature_names else j + 1


class CensusTaker:
    """A census in the making: `update` with consecutive chunks, then `finish`.

    Parameters
    ----------
    origin : str
        Name of the source, for messages.
    n_features : int
        Features of every chunk.
    sample_rows : int
        Rows to sample for quantiles; 0 for none.
    seed : int
        Seed of the sample.
    feature_names : list of str, optional
        Names for messages.
    """

    def __init__(self, origin, n_features, sample_rows=0, seed=0, feature_names=None):
        self.origin, self.feature_names, self.n_features = origin, feature_names, n_features
        self.n_rows = 0
        self.ranges = np.stack([np.full(n_features, np.inf), np.full(n_features, -np.inf)])
        self.weight, self.mean, self.scatter = 0.0, np.zeros(n_features), np.zeros(n_features)
        self.group_weight, self.group_sums, self.reference = 0.0, np.zeros((2, n_features)), None
        self.distinct = np.zeros((n_features, MAX_DISTINCT))
        self.n_distinct = np.zeros(n_features, np.int64)
        self.sample, self.labels, self.has_labels = RowSample(sample_rows, seed), Labels(), False

    def update(self, chunk):
        """Add a chunk, the next rows in order.

        Raises
        ------
        DataError
            On NaN or infinity (first row and column, and how many there are in the chunk), on a missing label, on a
            weight that is negative or not finite.
        """
        X, weight = chunk.dense(), check_weights(chunk)
        for start, stop, closes in group_slices(chunk.first_row, len(X)):
            self.survey(X[start:stop], weight[start:stop], chunk, start)
            if closes:
                self.close_group()
        self.sample.update(X, weight, chunk.first_row)
        if chunk.y is not None:
            self.has_labels = True
            self.labels.update(chunk.y, chunk.origin, chunk.first_row)
        self.n_rows += len(X)

    def survey(self, X, weight, chunk, offset):
        """Add one piece of a group."""
        if self.reference is None:  # sums about a row of the group itself do not cancel
            self.reference = np.nan_to_num(X[0].astype(np.float64), posinf=0.0, neginf=0.0)
        n_bad, first_bad = np.zeros(self.n_features, np.int64), np.zeros(self.n_features, np.int64)
        survey_rows(
            X, weight, self.ranges, self.group_sums, self.reference, n_bad, first_bad, self.distinct, self.n_distinct
        )
        self.group_weight += weight.sum()
        if n_bad.any():
            bad = np.flatnonzero(n_bad)
            j = bad[np.argmin(first_bad[bad])]
            row = chunk.first_row + offset + first_bad[j]
            more = f", one of {n_bad.sum()} such values nearby" if n_bad.sum() > 1 else ""
            name = self.feature_names[j] if self.feature_names else int(j) + 1
            raise DataError(
                f"the value is {X[first_bad[j], j]}{more}. linadd needs finite numbers: fill or drop these rows.",
                source=chunk.origin, row=int(row) + 1, column=name,
            )  # fmt: skip

    def close_group(self):
        """Combine the open group with the rest, by the pairwise update of means and scatters [Chan1983]."""
        if self.reference is not None and self.group_weight > 0:
            w, total = self.group_weight, self.weight + self.group_weight
            group_mean = self.group_sums[0] / w
            scatter = np.maximum(self.group_sums[1] - w * group_mean**2, 0.0)
            delta = group_mean + self.reference - self.mean
            self.mean += delta * (w / total)
            self.scatter += scatter + delta**2 * (self.weight * w / total)
            self.weight = total
        self.group_weight, self.reference = 0.0, None
        self.group_sums[...] = 0

    def finish(self):
        """The finished record; raise DataError on zero rows, all-zero weights or a single class."""
        self.close_group()
        if self.n_rows == 0:
            raise DataError("there are no rows.", source=self.origin)
        if self.weight == 0:
            raise DataError("all sample weights are zero.", source=self.origin)
        sample, sample_weight = self.sample.finish()
        census = Census(
            self.origin, self.n_rows, self.n_features, self.weight, *self.ranges, self.mean,
            self.scatter / self.weight, self.n_distinct, sample=sample, sample_weight=sample_weight,
            feature_names=self.feature_names,
        )  # fmt: skip
        if self.has_labels:
            census.classes, census.class_counts, census.is_label_sorted = self.labels.finish(self.origin)
        return census


def check_weights(chunk):
    """Weights of a chunk as float64 (n_rows,), ones where it has none; DataError on a negative or non-finite one."""
    if chunk.weight is None:
        return np.ones(chunk.n_rows)
    weight = np.asarray(chunk.weight, np.float64)
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        i = int(np.argmax(bad))
        raise DataError(
            f"the sample weight is {weight[i]}. Weights must be finite and not negative.",
            source=chunk.origin, row=chunk.first_row + i + 1,
        )  # fmt: skip
    return weight


def take_census(source, sample_rows=SAMPLE_ROWS, seed=0, on_chunk=None):
    """One streaming pass over a source.

    Parameters
    ----------
    source : Source
        Anything with `origin`, `n_features`, `feature_names` and `chunks()`.
    sample_rows : int
        Rows to sample for quantiles; 0 for none.
    seed : int
        Seed of the sample.
    on_chunk : callable, optional
        Called with each chunk after it was counted, for progress.

    Returns
    -------
    Census

    Raises
    ------
    DataError
        As CensusTaker says.
    """
    taker = CensusTaker(source.origin, source.n_features, sample_rows, seed, source.feature_names)
    for chunk in source.chunks():
        taker.update(chunk)
        if on_chunk is not None:
            on_chunk(chunk)
    return taker.finish()
