"""Rows for the solvers: training chunks read, located and measured ahead of the solver, grouped into blocks.

A block holds positions, 4 bytes a value, and what a visit needs of each row. If all rows fit, as positions or as codes,
the one block stays in memory from pass to pass; else blocks are re-formed in every pass and the chunks of the next one
are read meanwhile.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from linadd._jit import run_threads, shares
from linadd.chunks import prefetch
from linadd.encoders.rows import locate, make_scratch, measure_rows, positions_dtype

NO_DUALS = np.zeros((0, 0), np.float32)


class Block(NamedTuple):
    """Rows in memory, for compiled loops."""

    positions: np.ndarray  # int32 or float32, or codes (n_rows, n_features)
    norms: np.ndarray  # float32 (n_rows,): |z_i|^2
    kappas: np.ndarray  # float32 (n_rows,)
    targets: np.ndarray  # int32 (n_rows,): place in classes
    costs: np.ndarray  # float32 (n_rows,): factor of C
    folds: np.ndarray  # int16 (n_rows,)
    duals: np.ndarray  # float32 (n_rows, n_outputs)


def measured(problem, positions, targets, costs, folds=None, n_threads=1):
    """A block of rows as positions, with the norms of their codes, without dual variables; one fold if not given."""
    encoder = problem.encoder
    folds = np.zeros(len(positions), np.int16) if folds is None else folds
    norms, kappas = np.empty(len(positions), np.float32), np.empty(len(positions), np.float32)
    tasks = [
        (encoder.basis, positions[rows], problem.centre.space, make_scratch(encoder), norms[rows], kappas[rows])
        for rows in shares(len(positions), n_threads)
    ]
    run_threads(measure_rows, tasks, n_threads)
    return Block(positions, norms, kappas, targets, costs, folds, NO_DUALS)


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
            n_features = problem.encoder.n_features
            rows = plan.block_chunks * plan.chunk_rows
            self.buffer = self.empty(rows)
            chunk_bytes = plan.chunk_rows * n_features * (4 + problem.source.dtype.itemsize)
            self.depth = int(np.clip(memory.left // 2 // chunk_bytes - 1, 1, plan.block_chunks))

    def empty(self, n_rows):
        """A block without content."""
        encoder, n_outputs = self.problem.encoder, self.problem.n_outputs
        return Block(
            np.empty((n_rows, encoder.n_features), positions_dtype(encoder)),
            *(np.empty(n_rows, dtype) for dtype in (np.float32, np.float32, np.int32, np.float32, np.int16)),
            np.empty((n_rows, n_outputs), np.float32),
        )

    def load(self, chunk):
        """Read, locate and measure one training chunk; runs on the reading thread."""
        problem, bounds = self.problem, self.plan.chunk_bounds(chunk)
        rows = problem.source.read(*bounds)
        positions = np.empty(rows.X.shape, positions_dtype(problem.encoder))
        locate(problem.encoder, rows.dense(), positions)
        rows_of = (array[slice(*bounds)] for array in (problem.targets, problem.costs, problem.folds))
        return measured(problem, positions, *rows_of)

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
            for target, values in zip(self.buffer[:-1], part[:-1], strict=True):
                target[place] = values
            self.buffer.duals[place] = self.duals[start:stop]
            end = place.stop
        return Block(*(array[:end] for array in self.buffer))

    def write_back(self, group, block):
        """Copy the block's duals to their rows."""
        end = 0
        for chunk in group:
            start, stop = self.plan.chunk_bounds(int(chunk))
            self.duals[start:stop] = block.duals[end : end + stop - start]
            end += stop - start
