"""Blocks: every training chunk read once a pass, its rows with their own duals, whatever was read ahead."""

from dataclasses import replace

import numpy as np
import pytest

from linadd.embedding import embed
from linadd.encoders.exact import encode
from linadd.encoders.rows import locate, positions_dtype
from linadd.options import Options
from linadd.solvers.blocks import READ_AHEAD_SHARE, BlockReader, blocks_together, depth_of, measured
from linadd.solvers.memory import Memory
from linadd.solvers.plan import Plan
from linadd.sources.arrays import ArraySource
from linadd.train import Progress, make_problem, plan_of, survey
from tests.solvers.problems import explicit_codes, make_run, mean_code, penalty_order, thin, toy


class CountingSource(ArraySource):
    """Rows in memory that note what is read of them."""

    def __init__(self, *args):
        super().__init__(*args)
        self.ranges = []

    def read_many(self, ranges):
        self.ranges += ranges
        return super().read_many(ranges)


def position_problem(n_rows=95, training_chunk=10, n_classes=3, memory_limit=2000):
    """A problem whose only feature is the row's index, in blocks of two chunks, and its source that counts."""
    options = Options(
        encoder="identity", scale="none", center=False, memory_limit=memory_limit, training_chunk=training_chunk
    )
    source = CountingSource(np.arange(n_rows, dtype=np.float64)[:, None], np.arange(n_rows) % n_classes)
    plan = Plan(n_rows, training_chunk, 2, 3, 1, 10, False, 0)
    census = survey(source, options, Progress())
    embedded = embed(source, options, plan_of(source, options, census), Memory(10**6), Progress(), census)
    problem = make_problem(source, embedded._replace(positions=None), options)
    source.ranges.clear()
    return problem, plan, Memory(memory_limit), source


@pytest.mark.parametrize("encoder", ["bspline", "identity"])
@pytest.mark.parametrize("memory_limit", [10**9, 4000])
def test_blocks_of_sparse_rows_hold_their_entries(encoder, memory_limit):
    X, y = toy(n_rows=130, n_features=6)
    X = thin(X, 0.15)
    X[:20] = toy(n_rows=20, n_features=6, seed=1)[0]  # fuller than the average row that the plan counts on
    problem, run = make_run(X, y, encoder=encoder, rows="sparse", memory_limit=memory_limit, training_chunk=4)
    reader, codes, encoded = BlockReader(problem, run.plan, run.memory), explicit_codes(problem), problem.encoder
    dense = np.empty(X.shape, positions_dtype(encoded))
    locate(encoded, X, dense)
    assert (problem.positions is None) == (memory_limit == 4000) and run.plan.is_sparse
    for epoch in range(2):
        seen = []
        for index, block in reader.blocks(epoch):
            order = np.arange(130) if run.plan.fits else np.concatenate(
                [np.arange(*run.plan.chunk_bounds(int(c))) for c in run.plan.blocks(epoch)[index]]
            )
            assert len(block.starts) == len(order) + 1 and block.starts[0] == 0
            assert block.starts[-1] == len(block.positions) == len(block.columns)
            for k, i in enumerate(order):
                own = slice(block.starts[k], block.starts[k + 1])
                np.testing.assert_array_equal(block.columns[own], np.flatnonzero(X[i]))
                np.testing.assert_array_equal(block.positions[own], dense[i, X[i] != 0])
            np.testing.assert_allclose(block.norms, (codes[order] ** 2).sum(axis=1), rtol=1e-5, atol=1e-6)
            assert not block.kappas.any()
            seen += order.tolist()
        assert sorted(seen) == list(range(130))


@pytest.mark.parametrize("encoder", ["bspline", "fourier", "hermite", "identity"])
@pytest.mark.parametrize("center", [True, False])
def test_norms_are_those_of_the_explicit_codes(encoder, center):
    X, y = toy(n_features=3)
    problem, _ = make_run(X, y, encoder=encoder, center=center, penalty_order=2)
    block = measured(problem, problem.positions, problem.targets, problem.costs)
    Z = explicit_codes(problem)
    # The norm before centring, up to 20 times as large, is rounded to float32.
    np.testing.assert_allclose(block.norms, (Z**2).sum(axis=1), rtol=1e-5, atol=2e-5)
    code = encode(problem.encoder, X, penalised=True).toarray() * np.repeat(
        problem.centre.scale, problem.encoder.n_basis
    )
    np.testing.assert_allclose(block.kappas, code @ mean_code(problem), rtol=1e-5, atol=1e-5)
    assert penalty_order(problem) == (2 if encoder == "bspline" else 0)
    assert block.duals.size == 0 and block.targets is problem.targets and block.costs is problem.costs


def test_rows_in_memory_are_one_block_that_stays():
    X, y = toy()
    problem, run = make_run(X, y)
    reader = BlockReader(problem, run.plan, run.memory)
    (first,), (second,) = list(reader.blocks(0)), list(reader.blocks(1))
    assert first[0] == 0 and first[1] is second[1] and first[1].positions is problem.positions
    assert first[1].duals is reader.duals and reader.reads == 0


@pytest.mark.parametrize("is_shuffled", [True, False])
def test_each_chunk_is_read_once_a_pass(is_shuffled):
    problem, plan, memory, source = position_problem()
    reader = BlockReader(problem, plan, memory)
    for epoch in range(3):
        rows = [block.positions[:, 0].astype(int) for _, block in reader.blocks(epoch, is_shuffled)]
        expected = [plan.chunk_bounds(int(chunk)) for group in plan.blocks(epoch, is_shuffled) for chunk in group]
        assert source.ranges == expected and len(set(expected)) == plan.n_chunks
        np.testing.assert_array_equal(np.sort(np.concatenate(rows)), np.arange(plan.n_rows))
        source.ranges.clear()
    assert reader.reads == 3


def test_rows_keep_their_labels_costs_and_duals_from_pass_to_pass():
    problem, plan, memory, _ = position_problem()
    reader = BlockReader(problem, plan, memory)
    for epoch in range(3):
        indices = []
        for index, block in reader.blocks(epoch):
            rows = block.positions[:, 0].astype(int)
            np.testing.assert_array_equal(block.targets, rows % 3)
            np.testing.assert_array_equal(block.costs, problem.costs[rows])
            np.testing.assert_array_equal(block.norms, np.square(rows))
            np.testing.assert_array_equal(block.duals, epoch * (rows[:, None] + np.array([0, 1000, 2000])))
            block.duals[...] += rows[:, None] + np.array([0, 1000, 2000])
            indices.append(index)
        assert indices == list(range(5))


def test_readers_of_several_encoders_share_a_pass_and_equal_positions():
    X, y = toy(95)
    choices = {"training_chunk": 10, "memory_limit": 1000, "knots": "uniform"}
    settings = [{"n_bins": 3}, {"n_bins": 5}, {"n_bins": 3, "degree": 2}, {"encoder": "fourier"}]
    source = CountingSource(X, y)
    problems = [replace(make_run(X, y, **choices | each)[0], source=source, positions=None) for each in settings]
    plan = Plan(95, 10, 2, 3, 1, 10, False, 0)
    readers = []
    for problem in problems:
        readers.append(BlockReader(problem, plan, Memory(10**6), others=readers))
    assert [readers.index(next(each for each in readers if each.rows is own.rows)) for own in readers] == [0, 1, 0, 3]
    alone = [BlockReader(replace(problem, source=ArraySource(X, y)), plan, Memory(10**6)) for problem in problems]
    for epoch in range(2):
        singles = zip(*(reader.blocks(epoch) for reader in alone), strict=True)
        for (index, blocks), expected in zip(blocks_together(readers, epoch), singles, strict=True):
            for block, (own_index, own) in zip(blocks, expected, strict=True):
                assert index == own_index
                for found, wanted in zip(block[:7], own[:7], strict=True):
                    np.testing.assert_array_equal(found, wanted)
                own.duals[...] += 1 + np.arange(len(own.duals))[:, None]
                block.duals[...] = own.duals
        assert len(source.ranges) == 10 * (epoch + 1)  # once for all four
    for reader, other in zip(readers, alone, strict=True):
        np.testing.assert_array_equal(reader.duals, other.duals)
        assert reader.reads == other.reads == 2


def test_duals_of_a_block_are_kept_when_the_epoch_ends_there():
    problem, plan, memory, _ = position_problem()
    reader = BlockReader(problem, plan, memory)
    for _, block in reader.blocks(0):
        block.duals[...] = 1.0
        rows = block.positions[:, 0].astype(int)
        break
    assert np.flatnonzero(reader.duals[:, 0]).tolist() == sorted(rows)
    assert reader.reads == 0


def test_reading_ahead_stays_within_the_memory_that_is_left():
    problem, plan, memory, source = position_problem()
    position_bytes, read_bytes = plan.chunk_rows * 4, plan.chunk_rows * 8
    for chunks, depth in [(0, 1), (2.1, 1), (3.1, 2), (2.9, 1), (100, 2)]:  # room for so many chunks of positions
        left = 1 + int((chunks * position_bytes + read_bytes) / READ_AHEAD_SHARE)
        memory.left = left + plan.n_rows * problem.n_outputs * 4
        reader = BlockReader(problem, plan, memory)
        # Chunks waiting, at most a block; one more is in the hands of each thread.
        assert depth_of([reader], [reader.rows]) == depth
    blocks = reader.blocks(0)
    next(blocks)
    blocks.close()
    assert len(source.ranges) <= plan.block_chunks + depth_of([reader], [reader.rows]) + 2


def test_an_error_of_a_read_is_raised_by_the_block_that_needs_it():
    problem, plan, memory, source = position_problem()
    source.n_rows = 94  # as if the file had become shorter
    with pytest.raises(ValueError, match="rows 90 to 95 were asked for; there are 94"):
        list(BlockReader(problem, plan, memory).blocks(0))
