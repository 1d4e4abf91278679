"""The plan: which rows form a training chunk and a block, in which order, and in how many partial solutions.

It depends on the number of rows, features and outputs, on the options and on the seed; never on the machine, the file's
chunks or the number of threads. So the same data and options give the same bits anywhere, and the model records it.
"""

import math
from dataclasses import asdict, dataclass

import numpy as np

from linadd.choices import PRECISIONS
from linadd.errors import ConfigError

BYTES_PER_VALUE = PRECISIONS["exact"]  # of a position
MIN_CHUNKS, MIN_BLOCKS = 400, 10
SWEEPS_PER_BLOCK = 3
SERIAL_ROWS = 20_000  # below, one partial solution
SEGMENTS_PER_EPOCH = 40  # of n_rows visits: partial solutions are merged, and the average taken, after each


@dataclass(frozen=True)
class Plan:
    """Order and grouping of the rows of every pass.

    Attributes
    ----------
    n_rows : int
        Rows of the data.
    chunk_rows : int
        Rows of a training chunk.
    block_chunks : int
        Training chunks in memory together.
    n_sweeps : int
        Visits to each row of a block before it is left.
    n_partial : int
        Partial solutions that share a segment of rows.
    segment_rows : int
        Rows between two merges.
    fits : bool
        All rows are one block, kept from pass to pass.
    seed : int
        Seed of every permutation.
    precision : {"exact", "uint16", "uint8"}
        What rows are kept as; codes only where all rows fit as codes.
    row_entries : float
        Values of a row that are not 0, on the average, where the rows are sparse; 0 where they are dense.
    """

    n_rows: int
    chunk_rows: int
    block_chunks: int
    n_sweeps: int
    n_partial: int
    segment_rows: int
    fits: bool
    seed: int
    precision: str = "exact"
    row_entries: float = 0.0

    @property
    def n_chunks(self):
        """Training chunks of the data."""
        return -(-self.n_rows // self.chunk_rows)

    @property
    def is_sparse(self):
        """Whether solvers know of a row its stored entries only."""
        return self.row_entries > 0

    def block_bytes(self, n_features):
        """Bytes of the positions, or codes, of a block."""
        n_rows = min(self.block_chunks * self.chunk_rows, self.n_rows)
        return math.ceil(n_rows * row_bytes(n_features, self.precision, self.row_entries))

    def chunk_bounds(self, chunk):
        """(start, stop) rows of a training chunk."""
        return chunk * self.chunk_rows, min((chunk + 1) * self.chunk_rows, self.n_rows)

    def blocks(self, epoch, is_shuffled=True):
        """Training chunks of each block of an epoch: a fresh permutation, cut into groups (fixed blocks stall)."""
        order = np.arange(self.n_chunks)
        if is_shuffled and not self.fits:
            order = self.generator(epoch, self.n_chunks).permutation(order)
        return [order[start : start + self.block_chunks] for start in range(0, self.n_chunks, self.block_chunks)]

    def generator(self, epoch, block):
        """Random generator of the rows of a block of an epoch; the place after all blocks is that of the chunks."""
        return np.random.default_rng([self.seed, epoch, block])

    def record(self):
        """The plan as a JSON-able dict."""
        return asdict(self)


def row_bytes(n_features, precision="exact", row_entries=0.0):
    """Bytes of the positions or codes of a row; on the average, with columns and start, where it is sparse."""
    return (BYTES_PER_VALUE + 4) * row_entries + 8 if row_entries else PRECISIONS[precision] * n_features


def make_plan(
    n_rows, n_features, memory_limit, training_chunk=1000, n_partial="auto", seed=0, precision="exact", row_entries=0.0,
    n_copies=1,
):  # fmt: skip
    """The plan of `architecture.md` 9.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the data.
    memory_limit : int
        Bytes; half of them may hold rows, at 4 bytes a value, at those of a code, or at 8 an entry of a sparse row.
    training_chunk : int
        Rows of a training chunk, at most.
    n_partial : int or "auto"
        Partial solutions; auto: 1 below 20,000 rows, else 2.
    seed : int
        Seed of the order.
    precision : {"exact", "uint16", "uint8"}
        What to keep the rows as. Blocks that are read anew in every pass hold positions whatever it is: codes would
        only cost exactness.
    row_entries : float
        Entries of a row that solvers keep, on the average, if rows are sparse; else 0.
    n_copies : int
        Embeddings whose positions of the same rows are in memory together.

    Raises
    ------
    ConfigError
        On a training chunk or number of partial solutions below 1, and where not even one training chunk fits.
    """
    if training_chunk < 1:
        raise ConfigError(f"training_chunk: {training_chunk} is below 1.")
    if n_partial == "auto":
        n_partial = 1 if n_rows < SERIAL_ROWS else 2
    if n_partial < 1:
        raise ConfigError(f"partial_solutions: {n_partial} is below 1.")
    segment_rows = -(-n_rows // SEGMENTS_PER_EPOCH)
    bytes_of_row = n_copies * row_bytes(n_features, "exact", row_entries)
    rows_that_fit = int(memory_limit // 2 // bytes_of_row)
    if n_rows <= memory_limit // 2 // (n_copies * row_bytes(n_features, precision, row_entries)):
        chunk_rows = min(training_chunk, n_rows)
        n_chunks = -(-n_rows // chunk_rows)
        return Plan(
            n_rows, chunk_rows, n_chunks, 1, n_partial, segment_rows, True, seed, precision, row_entries
        )  # fmt: skip
    chunk_rows = min(training_chunk, -(-n_rows // MIN_CHUNKS))
    n_chunks = -(-n_rows // chunk_rows)
    if rows_that_fit < chunk_rows:
        needed = math.ceil(2 * bytes_of_row * chunk_rows)
        raise ConfigError(
            f"memory_limit: {memory_limit:,} bytes do not hold one training chunk of {chunk_rows} rows of {n_features} "
            f"features. Give at least {needed:,}, or a smaller training_chunk."
        )
    block_chunks = min(rows_that_fit // chunk_rows, -(-n_chunks // MIN_BLOCKS))
    return Plan(
        n_rows, chunk_rows, block_chunks, SWEEPS_PER_BLOCK, n_partial, segment_rows, False, seed,
        row_entries=row_entries,
    )  # fmt: skip
