"""The plan: every row once a pass, in every regime, by the seed and the shape alone."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from linadd.errors import ConfigError
from linadd.solvers.plan import Plan, make_plan

N_FEATURES = 5
ROW_BYTES = 2 * 4 * N_FEATURES  # half of the limit is for rows, of 4 bytes a value


def visited(plan, epoch, is_shuffled=True):
    """Rows of each block of an epoch, in the order in which they are read."""
    return [
        np.concatenate([np.arange(*plan.chunk_bounds(int(chunk))) for chunk in group])
        for group in plan.blocks(epoch, is_shuffled)
    ]


@pytest.mark.parametrize("training_chunk", [1, 7, 1000])
@pytest.mark.parametrize("rows_that_fit", [1_000_000, 50_000, 5000, 2000])
@pytest.mark.parametrize("n_rows", [1, 2, 39, 40, 41, 99, 100, 101, 999, 1001, 19_999, 20_000, 20_001])
def test_every_row_comes_once_a_pass(n_rows, rows_that_fit, training_chunk):
    plan = make_plan(n_rows, N_FEATURES, rows_that_fit * ROW_BYTES, training_chunk)
    for is_shuffled in (True, False):
        blocks = visited(plan, 3, is_shuffled)
        np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(n_rows))
    assert plan.fits == (n_rows <= rows_that_fit)
    assert max(map(len, blocks)) <= min(rows_that_fit, n_rows)
    assert max(map(len, blocks)) * N_FEATURES * 4 <= plan.block_bytes(N_FEATURES) <= rows_that_fit * ROW_BYTES / 2
    assert plan.n_partial == (1 if n_rows < 20_000 else 2)
    assert plan.segment_rows * 40 >= n_rows > (plan.segment_rows - 1) * 40


def test_rows_that_fit_are_one_block_and_one_sweep():
    plan = make_plan(2500, N_FEATURES, 2500 * ROW_BYTES)
    assert (plan.fits, plan.n_sweeps, len(plan.blocks(0)), plan.chunk_rows) == (True, 1, 1, 1000)
    np.testing.assert_array_equal(visited(plan, 0)[0], np.arange(2500))


def test_one_row_too_many_makes_blocks_of_a_tenth():
    plan = make_plan(2500, N_FEATURES, 2499 * ROW_BYTES)
    # ceil(2500 / 400) rows a chunk, ceil(358 / 10) chunks a block, 3 sweeps each.
    assert (plan.fits, plan.chunk_rows, plan.block_chunks, plan.n_sweeps) == (False, 7, 36, 3)
    assert sum(map(len, visited(plan, 0))) == 2500 and len(visited(plan, 0)) == 10


@pytest.mark.parametrize(("precision", "size"), [("uint16", 2), ("uint8", 1)])
def test_codes_let_more_rows_fit(precision, size):
    limit = 2 * size * N_FEATURES * 2500
    plan = make_plan(2500, N_FEATURES, limit, precision=precision)
    assert (plan.fits, plan.n_sweeps, plan.precision) == (True, 1, precision)
    assert plan.block_bytes(N_FEATURES) == limit / 2
    # One row too many: as without codes.
    assert make_plan(2501, N_FEATURES, limit, precision=precision) == make_plan(2501, N_FEATURES, limit)
    assert make_plan(10, N_FEATURES, 10**6, precision=precision).precision == precision


def test_a_block_holds_no_more_than_fits():
    plan = make_plan(100_000, N_FEATURES, 2500 * ROW_BYTES)
    assert (plan.chunk_rows, plan.block_chunks) == (250, 10)


def test_blocks_are_formed_anew_in_every_pass():
    plan = make_plan(2500, N_FEATURES, 1000 * ROW_BYTES)
    groups = [{frozenset(group.tolist()) for group in plan.blocks(epoch)} for epoch in range(4)]
    assert all(first.isdisjoint(second) for first, second in pairwise(groups))
    in_order = np.concatenate(visited(plan, 1, is_shuffled=False))
    np.testing.assert_array_equal(in_order, np.arange(2500))


def test_order_is_that_of_the_seed():
    plan = make_plan(2500, N_FEATURES, 1000 * ROW_BYTES, seed=3)
    same, other = make_plan(2500, N_FEATURES, 1000 * ROW_BYTES, seed=3), replace(plan, seed=4)
    order = [np.concatenate(each.blocks(2)) for each in (plan, same, other)]
    np.testing.assert_array_equal(order[0], order[1])
    assert not np.array_equal(order[0], order[2])
    # NumPy pads seeds by zeros: [seed, epoch] and [seed, epoch, 0] would be one stream.
    places = [(epoch, block) for epoch in range(3) for block in (0, 1, 2, plan.n_chunks)]
    assert len({plan.generator(*place).integers(2**62) for place in places}) == len(places)
    of_chunks = plan.generator(1, plan.n_chunks).permutation(plan.n_chunks)
    np.testing.assert_array_equal(np.concatenate(plan.blocks(1)), of_chunks)


def test_partial_solutions_can_be_given():
    assert make_plan(100, 1, 10**6, n_partial=3).n_partial == 3
    assert make_plan(10**6, 1, 10**9, n_partial=1).n_partial == 1


def test_the_record_is_json_and_restores_the_plan():
    plan = make_plan(2500, N_FEATURES, 1000 * ROW_BYTES)
    assert Plan(**json.loads(json.dumps(plan.record()))) == plan


def test_counts_do_not_wrap_at_billions_of_rows():
    plan = make_plan(3_000_000_000, 1000, 10**9)
    assert plan.n_chunks == 3_000_000
    assert plan.chunk_bounds(plan.n_chunks - 1) == (2_999_999_000, 3_000_000_000)


def test_a_limit_below_one_training_chunk_is_refused():
    needed = 10 * ROW_BYTES
    assert make_plan(4000, N_FEATURES, needed).chunk_rows == 10
    with pytest.raises(ConfigError) as caught:
        make_plan(4000, N_FEATURES, needed - 1)
    assert str(caught.value) == (
        "memory_limit: 399 bytes do not hold one training chunk of 10 rows of 5 features. Give at least 400, or a "
        "smaller training_chunk."
    )
    assert make_plan(4000, N_FEATURES, needed - 1, training_chunk=9).chunk_rows == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"training_chunk": 0}, "training_chunk: 0 is below 1."),
        ({"n_partial": 0}, "partial_solutions: 0 is below 1."),
    ],
)
def test_counts_below_one_are_refused(options, message):
    with pytest.raises(ConfigError) as caught:
        make_plan(100, 5, 10**6, **options)
    assert str(caught.value) == message


@pytest.mark.parametrize("precision", ["exact", "uint8"])
@pytest.mark.parametrize("limit", [40_000, 100_000, 10**6])
def test_copies_of_the_rows_share_the_limit(limit, precision):
    plan = make_plan(5000, N_FEATURES, 3 * limit, precision=precision, n_copies=3)
    assert plan == make_plan(5000, N_FEATURES, limit, precision=precision)
