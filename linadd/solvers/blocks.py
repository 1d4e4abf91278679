"""Rows for the solvers: training chunks read, located and measured ahead of the solver, grouped into blocks.

A block holds positions, 4 bytes a value (sparse rows: 8 an entry), and what a visit needs of each row. If all rows fit,
the one block stays in memory from pass to pass; else blocks are re-formed in every pass and the chunks of the next one
are read meanwhile.
"""

import math
from contextlib import closing
from functools import partial
from typing import NamedTuple

import numpy as np

from linadd._jit import run_threads, shares
from linadd.chunks import prefetch
from linadd.encoders.rows import Rows, as_rows, empty_rows, located, make_scratch, measure_rows
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


class RowBuffer:
    """Positions of the rows of a block, which the readers of all problems whose encoders place rows alike can share.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    plan : Plan
        Size of a block.
    """

    def __init__(self, encoder, plan):
        n_rows = plan.block_chunks * plan.chunk_rows
        self.encoder, self.is_sparse = encoder, plan.is_sparse
        self.rows = empty_rows(encoder, n_rows, math.ceil(n_rows * plan.row_entries) if plan.is_sparse else None)

    def put(self, part, first):
        """Copy the Rows of a part of the block to their place from row `first` on."""
        if not self.is_sparse:
            self.rows.positions[first : first + len(part.positions)] = part.positions
            return
        start = self.rows.starts[first]
        stop = start + len(part.positions)
        if stop > len(self.rows.positions):  # the plan counts on the average row
            larger = (np.resize(array, int(1.1 * stop)) for array in self.rows[:2])
            self.rows = Rows(*larger, self.rows.starts)
        self.rows.positions[start:stop], self.rows.columns[start:stop] = part.positions, part.columns
        self.rows.starts[first + 1 : first + len(part.starts)] = start + part.starts[1:]

    def filled(self, n_rows):
        """The first Rows."""
        if not self.is_sparse:
            return Rows(self.rows.positions[:n_rows])
        starts = self.rows.starts[: n_rows + 1]
        own = slice(starts[-1])
        return Rows(self.rows.positions[own], self.rows.columns[own], starts)


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
    others : list of BlockReader
        Readers of the same rows, any of whose buffers may do for this one.
    """

    def __init__(self, problem, plan, memory, n_threads=1, others=()):
        self.problem, self.plan = problem, plan
        self.duals = memory.zeros("dual variables", (plan.n_rows, problem.n_outputs), np.float32)
        self.reads = 0
        self.whole = self.buffer = self.rows = None
        if problem.positions is not None:
            whole = measured(problem, problem.positions, problem.targets, problem.costs, problem.folds, n_threads)
            self.whole = whole._replace(duals=self.duals)
        else:
            alike = (each.rows for each in others if each.rows.encoder.places_like(problem.encoder))
            self.rows = next(alike, None) or RowBuffer(problem.encoder, plan)
            self.buffer = self.empty(plan.block_chunks * plan.chunk_rows)
            self.left = memory.left

    def empty(self, n_rows):
        """A block without content; its rows are those of the RowBuffer."""
        return Block(
            None,
            *(np.empty(n_rows, dtype) for dtype in (np.float32, np.float32, np.int32, np.float32, np.int16)),
            np.empty((n_rows, self.problem.n_outputs), np.float32),
        )

    def measure(self, rows, bounds):
        """A part of a block from the Rows of a training chunk."""
        problem = self.problem
        rows_of = (array[slice(*bounds)] for array in (problem.targets, problem.costs, problem.folds))
        return measured(problem, rows, *rows_of)

    def blocks(self, epoch, is_shuffled=True):
        """Yield (index, block) of an epoch; the block's duals are written back when the next one is asked for."""
        with closing(blocks_together([self], epoch, is_shuffled)) as found:
            for index, (block,) in found:
                yield index, block

    def put(self, part, first, bounds):
        """Copy a part, all but its positions, and its duals to their place from row `first` of the buffer on."""
        place = slice(first, first + len(part.norms))
        for name in ("norms", "kappas", "targets", "costs", "folds"):
            getattr(self.buffer, name)[place] = getattr(part, name)
        self.buffer.duals[place] = self.duals[slice(*bounds)]

    def filled(self, n_rows):
        """The first rows of the buffer."""
        rows = self.rows.filled(n_rows)
        block = Block(rows.positions, *(array[:n_rows] for array in self.buffer[1:7]))
        return block._replace(columns=rows.columns, starts=rows.starts)

    def write_back(self, group, block):
        """Copy the block's duals to their rows."""
        end = 0
        for chunk in group:
            start, stop = self.plan.chunk_bounds(int(chunk))
            self.duals[start:stop] = block.duals[end : end + stop - start]
            end += stop - start


def blocks_together(readers, epoch, is_shuffled=True):
    """Yield (index, [block of each reader]) of an epoch that is read once for all of them.

    Parameters
    ----------
    readers : list of BlockReader
        Of one source and plan; all or none have their rows in memory.
    epoch : int
        Names the order of the training chunks.
    is_shuffled : bool
        Else chunks come in the order of the source.

    Yields
    ------
    (int, list of Block)
        Duals are written back when the next blocks are asked for.
    """
    if readers[0].whole is not None:
        yield 0, [reader.whole for reader in readers]
        return
    plan, source = readers[0].plan, readers[0].problem.source
    buffers = list(dict.fromkeys(reader.rows for reader in readers))

    def load(chunk):
        """Read, locate and measure one training chunk; runs on the reading thread."""
        bounds = plan.chunk_bounds(chunk)
        values = source.read(*bounds)
        rows = {buffer: located(buffer.encoder, values, plan.is_sparse) for buffer in buffers}
        return bounds, rows, [reader.measure(rows[reader.rows], bounds) for reader in readers]

    groups = plan.blocks(epoch, is_shuffled)
    chunks = prefetch((partial(load, int(c)) for group in groups for c in group), depth_of(readers, buffers))
    try:
        for index, group in enumerate(groups):
            blocks = fill(readers, group, chunks)
            try:
                yield index, blocks
            finally:  # also when the epoch ends here: the coefficients have the block's steps already
                for reader, block in zip(readers, blocks, strict=True):
                    reader.write_back(group, block)
    finally:
        chunks.close()
    for reader in readers:
        reader.reads += 1


def depth_of(readers, buffers):
    """Training chunks to read ahead: as far as the memory that was left goes, at best the whole of the next block.

    Else the solver would wait for the rest of it. A chunk waits as positions; one at a time is there as it was read,
    too.
    """
    plan, source = readers[0].plan, readers[0].problem.source
    read_bytes = plan.chunk_rows * (plan.row_entries or source.n_features) * source.dtype.itemsize
    waiting_bytes = len(buffers) * plan.chunk_rows * row_bytes(source.n_features, row_entries=plan.row_entries)
    ahead = READ_AHEAD_SHARE * min(reader.left for reader in readers) - read_bytes
    return int(np.clip(ahead // waiting_bytes - 1, 1, plan.block_chunks))


def fill(readers, group, chunks):
    """Copy the next chunks of a group, and their duals, to the buffers; the block of each reader."""
    end = 0
    for _, (bounds, rows, parts) in zip(group, chunks, strict=False):
        for buffer, part in rows.items():
            buffer.put(part, end)
        for reader, part in zip(readers, parts, strict=True):
            reader.put(part, end, bounds)
        end += bounds[1] - bounds[0]
    return [reader.filled(end) for reader in readers]
