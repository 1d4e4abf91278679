"""The record of one streaming pass over the data: ranges, moments, a sample for quantiles, label counts, and faults.

Moments are sums over fixed groups of 1000 rows, joined along the binary tree of the group indices, and the sample is
the rows with the smallest hash of their index: so the record is the same for any chunking of the reader, and parts that
start at a multiple of 1000 rows merge into it. Zeros are counted apart, from what the other values leave: so a sparse
chunk costs its stored entries, and gives the bits of the dense one. Rows of weight 0 count as rows, and for nothing
else. Values that are not finite, unusable labels (`labels.py`) and zero rows are found here, before any training.
"""

from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import numpy as np
import scipy.sparse

from linadd._jit import compiled
from linadd.chunks import GROUP_ROWS, group_slices
from linadd.errors import DataError
from linadd.labels import Labels
from linadd.row_sample import SAMPLE_ROWS, RowSample

MAX_DISTINCT = 64  # distinct values of a feature are counted exactly up to here
N_SLOTS = 128  # of the hash table that counts them: a power of two, half of it stays free
MAX_TABLES = 1 << 16  # features up to which there are such tables, of 1 KB each


class Tally(NamedTuple):
    """What `survey_rows` counts of each feature, zeros apart; the last three belong to the open group of rows."""

    n_bad: np.ndarray  # int64 (n_features,): values that are not finite
    n_filled: np.ndarray  # int64 (1,): values that are not 0, of all features and rows
    has_zero: np.ndarray  # bool (n_features,): in the groups that are closed
    ranges: np.ndarray  # float64 (2, n_features): least and greatest, without zeros
    distinct: np.ndarray  # float64 (n_features, N_SLOTS): hash table of values but 0, NaN where free; else (0, N_SLOTS)
    n_distinct: np.ndarray  # int64 (n_features,), without 0; MAX_DISTINCT + 1 says that there are more
    reference: np.ndarray  # float64 (n_features,): the first value but 0, about which sums do not cancel
    sums: np.ndarray  # float64 (3, n_features): weighted, of 1, x - reference and its square, where x is not 0
    weight: np.ndarray  # float64 (1,)


def empty_tally(n_features):
    """A tally of no rows."""
    return Tally(
        n_bad=np.zeros(n_features, np.int64),
        n_filled=np.zeros(1, np.int64),
        has_zero=np.zeros(n_features, bool),
        ranges=np.stack([np.full(n_features, np.inf), np.full(n_features, -np.inf)]),
        distinct=np.full((n_features if n_features <= MAX_TABLES else 0, N_SLOTS), np.nan),
        n_distinct=np.zeros(n_features, np.int64),
        reference=np.zeros(n_features),
        sums=np.zeros((3, n_features)),
        weight=np.zeros(1),
    )


@compiled
def add_to_range(x, j, ranges):
    """Widen the range of feature j to a value, unless that is 0; without a branch, for loops that become vectors."""
    ranges[0, j] = min(ranges[0, j], np.inf if x == 0.0 else x)
    ranges[1, j] = max(ranges[1, j], -np.inf if x == 0.0 else x)


@compiled
def add_to_sums(x, w, j, reference, sums):
    """Add a value of feature j in a row of weight w to its sums, unless it is 0."""
    weight, shifted = 0.0 if x == 0.0 else w, x - reference[j]
    sums[0, j] += weight
    sums[1, j] += weight * shifted
    sums[2, j] += weight * shifted * shifted


@compiled
def survey_rows(X, weight, tally):
    """Add one piece of a group, row after row: the sums do not depend on where the pieces were cut."""
    n_bad, n_distinct, has_tables = tally.n_bad, tally.n_distinct, tally.distinct.shape[0] > 0
    ranges, reference, sums = tally.ranges, tally.reference, tally.sums
    for i in range(X.shape[0]):
        w, n_filled = weight[i], 0
        for j in range(X.shape[1]):
            n_bad[j] += not np.isfinite(np.float64(X[i, j]))
            n_filled += X[i, j] != 0
        tally.n_filled[0] += n_filled
        if w == 0.0:
            continue
        tally.weight[0] += w
        for j in range(X.shape[1]):
            if sums[0, j] == 0.0:
                reference[j] = X[i, j]
        for j in range(X.shape[1]):  # apart, as LLVM gives up on too many arrays
            add_to_range(np.float64(X[i, j]), j, ranges)
        for j in range(X.shape[1]):
            add_to_sums(np.float64(X[i, j]), w, j, reference, sums)
        if has_tables:
            for j in range(X.shape[1]):
                if n_distinct[j] <= MAX_DISTINCT and X[i, j] != 0:
                    add_distinct(np.float64(X[i, j]), j, tally.distinct, n_distinct)


@compiled
def survey_entries(values, columns, starts, weight, tally):
    """survey_rows of sparse rows: row i has the entries from starts[i] to starts[i + 1]."""
    n_bad, n_distinct, has_tables = tally.n_bad, tally.n_distinct, tally.distinct.shape[0] > 0
    for i in range(weight.shape[0]):
        tally.weight[0] += weight[i]
        for e in range(starts[i], starts[i + 1]):
            x, j = np.float64(values[e]), columns[e]
            n_bad[j] += not np.isfinite(x)
            tally.n_filled[0] += x != 0.0
            if x != 0.0 and weight[i] > 0.0:
                if tally.sums[0, j] == 0.0:
                    tally.reference[j] = x
                add_to_range(x, j, tally.ranges)
                add_to_sums(x, weight[i], j, tally.reference, tally.sums)
                if has_tables and n_distinct[j] <= MAX_DISTINCT:
                    add_distinct(x, j, tally.distinct, n_distinct)


@compiled
def add_distinct(x, j, slots, n_distinct):
    """Count x among the distinct values of feature j, unless its hash table holds it."""
    bits = np.float64(x).view(np.int64)
    bits ^= bits >> 32
    bits ^= bits >> 16
    bits ^= bits >> 7
    at = bits & (N_SLOTS - 1)
    while slots[j, at] != x:
        if slots[j, at] != slots[j, at]:
            slots[j, at] = x
            n_distinct[j] += 1
            return
        at = (at + 1) & (N_SLOTS - 1)


@compiled
def unite_distinct(tally, other):
    """Add the distinct values of another tally."""
    n_distinct = tally.n_distinct
    for j in range(n_distinct.shape[0]):
        if other.n_distinct[j] > MAX_DISTINCT:
            n_distinct[j] = MAX_DISTINCT + 1
        for at in range(N_SLOTS if tally.distinct.shape[0] else 0):
            x = other.distinct[j, at]
            if x == x and n_distinct[j] <= MAX_DISTINCT:
                add_distinct(x, j, tally.distinct, n_distinct)


class Moments(NamedTuple):
    """Weighted moments of 2 ** level groups of rows, or of some at the end."""

    first: int  # index of the first group
    level: int
    weight: float
    mean: np.ndarray
    scatter: np.ndarray  # sum of w (x - mean)^2

    def join(self, right):
        """Moments of these groups and the ones right of them [Chan1983]."""
        if self.weight == 0.0 or right.weight == 0.0:
            weighted = self if self.weight else right
            return weighted._replace(first=self.first, level=self.level + 1)
        weight, delta = self.weight + right.weight, right.mean - self.mean
        share = right.weight / weight
        with np.errstate(over="ignore", invalid="ignore"):  # values beyond 1e154: the variance is infinite
            scatter = self.scatter + right.scatter + delta * delta * (self.weight * share)
            return Moments(self.first, self.level + 1, weight, self.mean + share * delta, scatter)


def push(nodes, node):
    """Append moments to a list of consecutive ones, and join what makes a full node of the binary tree.

    A node holds 2 ** level groups from a multiple of that number on. Which ones are joined depends on the indices
    alone: parts of the data give the same bits wherever they were cut, and a list holds at most 2 log2(n) nodes.
    """
    nodes.append(node)
    while len(nodes) > 1 and nodes[-2].level == nodes[-1].level and nodes[-2].first % (2 << nodes[-1].level) == 0:
        right = nodes.pop()
        nodes.append(nodes.pop().join(right))


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
        Of each feature, in its own units, over the rows of positive weight; mean and variance weighted. The variance
        is infinite where squares pass the range of float64.
    n_distinct : int64 array, shape (n_features,), or None
        Distinct values; MAX_DISTINCT + 1 stands for more than MAX_DISTINCT. None for more than MAX_TABLES features.
    n_filled : int
        Values that are not 0, of all features and rows.
    classes, class_counts : arrays, shape (n_classes,), or None
        Sorted labels and their rows, those of weight 0 included; None for data without labels.
    is_label_sorted : bool
        Every class is one run of rows.
    sample, sample_weight : arrays, shapes (n, n_features) and (n,)
        Rows of positive weight with the smallest hashes, in the dtype of the data; empty where none was asked for. The
        rows of a sparse source are a csr_array.
    feature_names : list of str, or None
        Names for messages.
    n_reads : int
        Reads of the source that it took; 0 if it was kept from an earlier run.
    """

    origin: str
    n_rows: int
    n_features: int
    weight_sum: float
    minimum: np.ndarray
    maximum: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    n_distinct: np.ndarray | None
    n_filled: int
    classes: np.ndarray | None = None
    class_counts: np.ndarray | None = None
    is_label_sorted: bool = False
    sample: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    sample_weight: np.ndarray = field(default_factory=lambda: np.zeros(0))
    feature_names: list | None = None
    n_reads: int = 1

    @property
    def density(self):
        """Share of the values that are not 0."""
        return self.n_filled / (self.n_rows * self.n_features)

    def column_name(self, j):
        """Feature j as a message names it: its name, or its number from 1."""
        return column_name(self.feature_names, int(j))


class CensusTaker:
    """A census in the making: `update` with consecutive chunks, `merge` with what follows, then `finish`.

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
        self.first_row, self.n_rows, self.fault = None, 0, None
        self.tally, self.nodes = empty_tally(n_features), []
        self.sample, self.labels = RowSample(sample_rows, seed), Labels()

    @property
    def next_row(self):
        """Index of the row that must come next; None before the first."""
        return None if self.first_row is None else self.first_row + self.n_rows

    def update(self, chunk):
        """Add a chunk, the next rows in order.

        Values that are not finite are counted, and raise when the census is finished.

        Parameters
        ----------
        chunk : Chunk
            As sources deliver it: weights finite and not negative.

        Raises
        ------
        DataError
            On a missing label, or labels that are none; see Labels.
        """
        is_sparse, weight = scipy.sparse.issparse(chunk.X), chunk.weights()
        X = chunk.sparse() if is_sparse else chunk.dense()
        self.first_row = chunk.first_row if self.first_row is None else self.first_row
        for start, stop, closes in group_slices(chunk.first_row, chunk.n_rows):
            if is_sparse:
                survey_entries(X.data, X.indices, X.indptr[start : stop + 1], weight[start:stop], self.tally)
            else:
                survey_rows(X[start:stop], weight[start:stop], self.tally)
            if self.fault is None and self.tally.n_bad.any():
                self.fault = first_fault(X[start:stop], chunk, start, self.feature_names)
            if closes:
                self.close_group((chunk.first_row + start) // GROUP_ROWS)
        self.sample.update(X, weight, chunk.first_row)
        if chunk.y is not None:
            self.labels.update(chunk, weight)
        self.n_rows += chunk.n_rows

    def close_group(self, index):
        """Push the moments of the open group, the one of that index, to the others."""
        (filled, first, second), weight = self.tally.sums, float(self.tally.weight[0])
        zeros, total = np.maximum(weight - filled, 0.0), max(weight, np.finfo(np.float64).tiny)
        self.tally.has_zero[...] |= zeros > 0
        with np.errstate(over="ignore", invalid="ignore"):  # as in Moments.join
            shift = first / np.where(filled > 0, filled, 1.0)
            mean, share = self.tally.reference + shift, filled / total
            scatter = np.maximum(second - filled * shift**2, 0.0) + mean * mean * (zeros * share)
            push(self.nodes, Moments(index, 0, weight, share * mean, scatter))
        self.tally.sums[...] = 0
        self.tally.weight[0] = 0

    def merge(self, other):
        """Add the census of the rows that follow this one's.

        Parameters
        ----------
        other : CensusTaker
            Of the same source and options, not finished; its first row is the next one here, and a multiple of
            GROUP_ROWS. It is of no use afterwards.

        Raises
        ------
        ValueError
            Where the rows do not follow, or start within a group.
        """
        if other.first_row != self.next_row or other.first_row % GROUP_ROWS:
            raise ValueError(f"rows from {other.first_row} on do not follow {self.next_row} in groups of {GROUP_ROWS}")
        mine, theirs = self.tally, other.tally
        unite_distinct(mine, theirs)
        ranges = [np.minimum(mine.ranges[0], theirs.ranges[0]), np.maximum(mine.ranges[1], theirs.ranges[1])]
        # What is left is the other's open group; there is none here.
        self.tally = theirs._replace(
            n_bad=mine.n_bad + theirs.n_bad, n_filled=mine.n_filled + theirs.n_filled,
            has_zero=mine.has_zero | theirs.has_zero, ranges=np.stack(ranges), distinct=mine.distinct,
            n_distinct=mine.n_distinct,
        )  # fmt: skip
        for node in other.nodes:
            push(self.nodes, node)
        self.fault = self.fault or other.fault
        self.sample.add(other.sample.parts)
        self.labels.merge(other.labels, self.origin)
        self.n_rows += other.n_rows

    def finish(self):
        """The finished record.

        Raises
        ------
        DataError
            On zero rows; NaN or infinity, with the first row and column and how many there are; all-zero weights; a
            single class, or one without weight.
        """
        if self.n_rows == 0:
            raise DataError("there are no rows.", source=self.origin)
        if self.fault is not None:
            value, source, row, column = self.fault
            n_bad = self.tally.n_bad.sum()
            more = f", the first of {n_bad} that are not finite" if n_bad > 1 else ""
            raise DataError(
                f"the value is {value}{more}. linadd takes no NaN or infinity: fill or drop these rows.",
                source=source, row=row, column=column,
            )  # fmt: skip
        if self.next_row % GROUP_ROWS:
            self.close_group(self.next_row // GROUP_ROWS)
        moments = reduce(Moments.join, self.nodes)
        if moments.weight == 0:
            raise DataError("all sample weights are zero.", source=self.origin)
        variance = np.nan_to_num(moments.scatter / moments.weight, nan=np.inf, posinf=np.inf)
        tally, (low, high) = self.tally, self.tally.ranges
        low = np.where(tally.has_zero, np.minimum(low, 0.0), low)
        high = np.where(tally.has_zero, np.maximum(high, 0.0), high)
        n_distinct = np.minimum(tally.n_distinct + tally.has_zero, MAX_DISTINCT + 1) if len(tally.distinct) else None
        sample, sample_weight = self.sample.finish()
        census = Census(
            self.origin, self.n_rows, self.n_features, moments.weight, low, high, moments.mean, variance, n_distinct,
            int(tally.n_filled[0]), sample=sample, sample_weight=sample_weight, feature_names=self.feature_names,
        )  # fmt: skip
        if self.labels.counts:
            census.classes, census.class_counts, census.is_label_sorted = self.labels.finish(self.origin)
        return census


def first_fault(X, chunk, start, feature_names):
    """(value, source, row, column) of the first value that is not finite in X, the rows of a chunk from `start` on."""
    i, j = first_not_finite(X)
    return X[i, j], chunk.origin, chunk.row_number(int(start + i)), column_name(feature_names, int(j))


def first_not_finite(X):
    """(row, column) of the first value of X (n_rows, n_features), dense or CSR, that is NaN or infinite; else None."""
    is_sparse = scipy.sparse.issparse(X)
    is_finite = np.isfinite(X.data if is_sparse else X)
    if is_finite.all():
        return None
    if not is_sparse:
        return np.argwhere(~is_finite)[0]
    e = np.flatnonzero(~is_finite)[0]
    return np.searchsorted(X.indptr, e, side="right") - 1, X.indices[e]


def column_name(feature_names, j):
    """Feature j (from 0) as a message names it: its name, or its number from 1."""
    return feature_names[j] if feature_names else j + 1


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
