"""A sample of the rows that stream by: those with the smallest hash of their index, the same for any chunking."""

import numpy as np

from linadd.chunks import join_rows

SAMPLE_ROWS = 65_536
PIECE_ROWS = 1 << 16


def hash_rows(rows, seed):
    """64-bit hash of row indices (SplitMix64's finaliser): who is in the sample, whatever the chunking."""
    with np.errstate(over="ignore"):
        z = rows.astype(np.uint64) + np.uint64(seed + 1) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def fill_folds(folds, n_parts, seed):
    """Write the fold of each row, from a hash of its index: the same for any storage and chunking."""
    for start in range(0, len(folds), PIECE_ROWS):
        piece = folds[start : start + PIECE_ROWS]
        piece[:] = hash_rows(np.arange(start, start + len(piece)), seed) % np.uint64(n_parts)


class RowSample:
    """The `size` rows of positive weight with the smallest hash of their index, kept as they stream by.

    Parameters
    ----------
    size : int
        Rows to keep; 0 keeps none.
    seed : int
        Seed of the hash.
    """

    def __init__(self, size, seed):
        self.size, self.seed = size, seed
        self.parts, self.n_held, self.bound = [], 0, np.uint64(2**64 - 1)

    def update(self, X, weight, first_row):
        """Offer rows (n_rows, n_features), dense or CSR, with weights, whose first has index `first_row`."""
        if self.size:
            hashes = hash_rows(np.arange(first_row, first_row + len(weight), dtype=np.uint64), self.seed)
            keep = np.flatnonzero((hashes <= self.bound) & (weight > 0))
            self.add([(hashes[keep], X[keep], weight[keep])])

    def add(self, parts):
        """Keep (hashes, X, weight) of some rows, and drop the greatest hashes when there are twice too many."""
        for part in parts:
            if len(part[0]):
                self.parts.append(part)
                self.n_held += len(part[0])
        if self.n_held > 2 * self.size:
            self.shrink()

    def shrink(self):
        """Keep the smallest hashes only, in the order of the rows."""
        if self.n_held > self.size:
            hashes = np.concatenate([part[0] for part in self.parts])
            self.bound = np.partition(hashes, self.size - 1)[self.size - 1]
            kept = [(part, part[0] <= self.bound) for part in self.parts]
            self.parts = [tuple(array[keep] for array in part) for part, keep in kept if keep.any()]
            self.n_held = self.size

    def finish(self):
        """(X, weight) of the sample, in the order of the rows."""
        if not self.parts:
            return np.zeros((0, 0)), np.zeros(0)
        self.shrink()
        _, X, weight = map(join_rows, zip(*self.parts, strict=True))
        return X, weight
