"""Rows for the solvers: training chunks read, located and measured ahead of the solver, grouped into blocks.

A block holds positions, 4 bytes a value (sparse rows: 8 an entry), and what a visit needs of each row. If all rows fit,
the one block stays in memory from pass to pass; else blocks are re-formed in every pass and the chunks of the next one
are read meanwhile.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from linadd._jit import run_threads, shares
from linadd.chunks import prefetch
from linadd.encoders.rows import as_rows, empty_rows, located, make_scratch, measure_rows
from linadd.solvers.plan import row_bytes

NO_DUALS = np.zeros((0, 0), np.float32)
READ_AHEAD_SHARE = 0.8  # of the memory that is left


class Block(NamedTuple):
    """Rows in memory, for compiled loops."""

    positions: np.ndarray  # positions or codes (n_rows, n_features), or (n_entries,) of sparse rows; see Rows
    norms: np.ndarray  # float32 (n_rows,): |z_i|^2
    kappas: np.ndarray  # float32 (n_rows,)
    targets: np.ndarray  # int32 (n_rows,): place in classes
    costs: np.ndarray  # float32 (n_rows,): factor of C
    folds: np.ndarray  # int16 (n_rows,)
    duals: np.ndarray  # float32 (n_rows, n_outputs)
    columns: np.ndarray | None = None  # int32 (n_entries,)
    starts: np.ndarray | None = None  # int64 (n_rows + 1,)


def measured(problem, positions, targets, costs, folds=None, n_threads=1):
    """A block of positions or Rows, with the norms of their codes, without dual variables; one fold if not given."""
    encoder, centre, n_rows, rows = problem.encoder, problem.centre, len(targets), as_rows(positions)
    folds = np.zeros(n_rows, np.int16) if folds is None else folds
    norms, kappas = np.empty(n_rows, np.float32), np.empty(n_rows, np.float32)
    tasks = [
        (encoder.basis, rows.part(own.start, own.stop), centre.space, make_scratch(encoder, centre.zero), norms[own],
         kappas[own])
        for own in shares(n_rows, n_threads)
    ]  # fmt: skip
    run_threads(measure_rows, tasks, n_threads)
    return Block(rows.positions, norms, kappas, targets, costs, folds, NO_DUALS, rows.columns, rows.starts)


class BlockReader:
    """Iterates over the blocks of an epoch.

    Parameters
    ----------
    problem : Problem
        The rows and their embedding.
    plan : Plan
        Order and grouping.
    memory : Memory
        Holds the dual variables; what it has left bounds the reading ahead.
    n_threads : int
        Threads that measure rows which stay in memory.
    """

    def __init__(self, problem, plan, memory, n_threads=1):
        self.problem, self.plan = problem, plan
        self.duals = memory.zeros("dual variables", (plan.n_rows, problem.n_outputs), np.float32)
        self.reads = 0
        self.whole = self.buffer = None
        if problem.positions is not None:
            whole = measured(problem, problem.positions, problem.targets, problem.costs, problem.folds, n_threads)
            self.whole = whole._replace(duals=self.duals)
        else:
            self.buffer = self.empty(plan.block_chunks * plan.chunk_rows)
            # Ahead of the solver as far as the memory goes, at best the whole of the next block: else the solver would
            # wait for the rest of it. A chunk waits as positions; one at a time is there as it was read, too.
            row_values = plan.row_entries or problem.encoder.n_features
            read_bytes = plan.chunk_rows * row_values * problem.source.dtype.itemsize
            waiting_bytes = plan.chunk_rows * row_bytes(problem.encoder.n_features, row_entries=plan.row_entries)
            ahead = READ_AHEAD_SHARE * memory.left - read_bytes
            self.depth = int(np.clip(ahead // waiting_bytes - 1, 1, plan.block_chunks))

    def empty(self, n_rows):
        """A block without content."""
        plan = self.plan
        n_entries = math.ceil(n_rows * plan.row_entries) if plan.is_sparse else None
        rows = empty_rows(self.problem.encoder, n_rows, n_entries)
        return Block(
            rows.positions,
            *(np.empty(n_rows, dtype) for dtype in (np.float32, np.float32, np.int32, np.float32, np.int16)),
            np.empty((n_rows, self.problem.n_outputs), np.float32),
            rows.columns,
            rows.starts,
        )

    def load(self, chunk):
        """Read, locate and measure one training chunk; runs on the reading thread."""
        problem, bounds = self.problem, self.plan.chunk_bounds(chunk)
        rows = located(problem.encoder, problem.source.read(*bounds), self.plan.is_sparse)
        rows_of = (array[slice(*bounds)] for array in (problem.targets, problem.costs, problem.folds))
        return measured(problem, rows, *rows_of)

    def blocks(self, epoch, is_shuffled=True):
        """Yield (index, block) of an epoch; the block's duals are written back when the next one is asked for."""
        if self.whole is not None:
            yield 0, self.whole
            return
        groups = self.plan.blocks(epoch, is_shuffled)
        chunks = prefetch((partial(self.load, int(c)) for group in groups for c in group), self.depth)
        try:
            for index, group in enumerate(groups):
                block = self.fill(group, chunks)
                try:
                    yield index, block
                finally:  # also when the epoch ends here: the coefficients have the block's steps already
                    self.write_back(group, block)
        finally:
            chunks.close()
        self.reads += 1

    def fill(self, group, chunks):
        """Copy the next chunks and their duals into the buffer; returns its filled part."""
        end = 0
        for chunk, part in zip(group, chunks, strict=False):
            start, stop = self.plan.chunk_bounds(int(chunk))
            place = slice(end, end + stop - start)
            self.put_positions(part, end)
            for name in ("norms", "kappas", "targets", "costs", "folds"):
                getattr(self.buffer, name)[place] = getattr(part, name)
            self.buffer.duals[place] = self.duals[start:stop]
            end = place.stop
        return self.filled(end)

    def put_positions(self, part, first):
        """Copy the positions of a part of the block to its place from row `first` on."""
        if not self.plan.is_sparse:
            self.buffer.positions[first : first + len(part.positions)] = part.positions
            return
        start = self.buffer.starts[first]
        stop = start + len(part.positions)
        if stop > len(self.buffer.positions):  # the plan counts on the average row
            larger = (np.resize(array, int(1.1 * stop)) for array in (self.buffer.positions, self.buffer.columns))
            self.buffer = self.buffer._replace(**dict(zip(("positions", "columns"), larger, strict=True)))
        self.buffer.positions[start:stop], self.buffer.columns[start:stop] = part.positions, part.columns
        self.buffer.starts[first + 1 : first + len(part.starts)] = start + part.starts[1:]

    def filled(self, n_rows):
        """The first rows of the buffer."""
        block = Block(*(array[:n_rows] for array in self.buffer[:7]))
        if not self.plan.is_sparse:
            return block
        starts = self.buffer.starts[: n_rows + 1]
        own = slice(starts[-1])
        return block._replace(positions=self.buffer.positions[own], columns=self.buffer.columns[own], starts=starts)

    def write_back(self, group, block):
        """Copy the block's duals to their rows."""
        end = 0
        for chunk in group:
            start, stop = self.plan.chunk_bounds(int(chunk))
            self.duals[start:stop] = block.duals[end : end + stop - start]
            end += stop - start
