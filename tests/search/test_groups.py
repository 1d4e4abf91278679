"""Settings that are trained together: each as alone, their reads shared, all within the memory limit."""

import tracemalloc

import numpy as np
import pytest

from linadd.row_sample import hash_rows
from linadd.search.groups import score_group, train_group
from tests.search.toy import Told, X, Y, find, group_of, make_path, make_paths
from tests.solvers.problems import toy

GRID = {"n_bins": [2, 3], "penalty_order": [1, 2]}
EACH = [{"n_bins": b, "penalty_order": d} for b in (2, 3) for d in (1, 2)]
# Rows of 128 kB: in memory, and in blocks of a tenth whatever the settings.
LIMITS = {"in memory": 10**9, "in blocks": 250_000}
FEW = {"costs": [0.1, 2.0], "n_folds": 2, "max_epochs": 20, "degree": 0}


@pytest.mark.parametrize(
    ("limit", "loss", "sequential"),
    [
        ("in memory", "squared_hinge", False), ("in memory", "logistic", True), ("in blocks", "logistic", False),
        ("in blocks", "squared_hinge", True),
    ],
)  # fmt: skip
def test_settings_have_the_bits_that_they_have_alone(limit, loss, sequential):
    X, y = toy(4000, n_features=8)
    choices = FEW | {"loss": loss, "memory_limit": LIMITS[limit], "sequential": sequential}
    if limit == "in blocks":
        choices["max_epochs"] = 2
    group = group_of(X, y, EACH, **choices)[-1]
    assert len(group.settings) == 4 and group.plan.fits == (limit == "in memory")
    together = find(X, y, grid=GRID, **choices)
    alone = [find(X, y, **choices | each) for each in EACH]
    assert together.table == [record for each in alone for record in each.table]
    chosen = next(each for each in alone if each.best == together.best)
    np.testing.assert_array_equal(together.deviation, chosen.deviation)


def test_in_memory_the_reads_are_those_of_the_setting_that_takes_most():
    alone = [find(X, Y, **each).reads for each in EACH]
    assert find(X, Y, grid=GRID).reads == max(alone) < sum(alone)


def test_out_of_core_passes_are_shared_and_certificates_where_they_fall_together():
    X, y = toy(4000, n_features=8)
    choices = FEW | {"memory_limit": LIMITS["in blocks"], "loss": "squared_hinge", "tol": 1e-2}
    alone = [find(X, y, **choices | each) for each in EACH]
    n_passes = [each.table[0]["passes"] for each in alone]
    n_certificates = [each.reads - passes - 3 for each, passes in zip(alone, n_passes, strict=True)]
    reads = find(X, y, grid=GRID, **choices).reads
    # Beside the passes: census, centre, held-out scores, and a read for every epoch that any of them certifies after.
    assert max(n_certificates) <= reads - max(n_passes) - 3 <= sum(n_certificates)
    assert reads <= 1.5 * max(each.reads for each in alone)


@pytest.mark.parametrize(("memory_limit", "fits"), [(10_000_000, True), (3_500_000, False)])
def test_the_memory_limit_holds_for_a_group(memory_limit, fits):
    X, y = toy(5000, n_features=100)  # 2 MB of positions
    parts = group_of(X, y, EACH, costs=(0.1, 2.0), n_folds=2, max_epochs=1, degree=0, memory_limit=memory_limit)
    source, choice, census, group = parts
    assert len(group.settings) == 4 and group.plan.fits == fits

    def run():
        paths, _ = train_group(source, group, choice, census, Told())
        score_group(source, paths, group.plan, census)

    run()  # compiled
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.2 * memory_limit < peak <= memory_limit


@pytest.mark.parametrize(("memory_limit", "sizes"), [(10**9, [4]), (350_000, [2, 2]), (160_000, [1, 1, 1, 1])])
def test_a_group_is_what_the_limit_holds(memory_limit, sizes):
    X, y = toy(1000)
    told = Told()
    result = find(X, y, grid=GRID, memory_limit=memory_limit, costs=(0.1, 1.0), max_epochs=5, progress=told)
    assert told.settings == [(k, 4, each | {"degree": 1}) for k, each in enumerate(EACH, 1)]
    whole = find(X, y, grid=GRID, costs=(0.1, 1.0), max_epochs=5)
    names = ("C", "n_bins", "penalty_order", "error", "gap", "passes")
    assert [[record[name] for name in names] for record in result.table] == [
        [record[name] for name in names] for record in whole.table
    ]
    found, left = [], EACH
    while left:
        settings = {"costs": (0.1, 1.0), "memory_limit": memory_limit}
        found.append(len(group_of(X, y, left, **settings)[-1].settings))
        left = left[found[-1] :]
    assert found == sizes


def test_out_of_core_blocks_shrink_to_some_chunks_before_settings_part(monkeypatch):
    X, y = toy(20_000, n_features=20)  # 4 kB a training chunk of 50 rows; 40 chunks are a tenth
    choices = {"costs": (1.0,), "n_folds": 2, "degree": 0, "memory_limit": 900_000, "max_epochs": 3}
    grid = [{"n_bins": b} for b in (2, 3, 4)]
    found = [group_of(X, y, grid[:k], **choices)[-1] for k in (1, 2, 3)]
    # Half of the limit holds rows: 112 chunks.
    assert [(len(group.settings), group.plan.block_chunks) for group in found] == [(1, 40), (2, 40), (3, 37)]
    equal = group_of(X, y, [{"n_bins": 2}, {"n_bins": 2, "penalty_order": 2}, {"n_bins": 3}], **choices)[-1]
    assert (len(equal.settings), equal.plan.block_chunks) == (3, 40)
    # Smaller blocks are other steps to the same optimum: the gap is certified all the same.
    table = find(X, y, grid={"n_bins": [2, 3, 4]}, **choices | {"tol": 1e-2, "max_epochs": 50}).table
    assert len(table) == 3 and all(record["gap"] <= 1e-2 for record in table)
    monkeypatch.setattr("linadd.search.groups.LEAST_CHUNKS", 38)
    assert len(group_of(X, y, grid, **choices)[-1].settings) == 2


def test_a_stop_keeps_every_setting_at_its_state():
    whole = find(X, Y, grid={"n_bins": [3, 4]}, costs=[0.01, 500.0], progress=(told := Told()))
    assert not whole.is_interrupted and all(record["gap"] <= 1e-3 for record in whole.table)
    cut = find(X, Y, grid={"n_bins": [3, 4]}, costs=[0.01, 500.0], progress=Told(told.n_asked // 2))
    assert cut.is_interrupted and len(cut.table) == 4
    finished = [record for record in cut.table if record["gap"] <= 1e-3]
    assert 0 < len(finished) < 4 and {record["C"] for record in finished} == {0.01}
    chosen = min(finished, key=lambda record: record["error"])  # what is not finished is not, if anything is
    assert (cut.best.C, cut.best.n_bins) == (0.01, chosen["n_bins"])
    none = find(X, Y, grid={"n_bins": [3, 4]}, costs=[0.01, 500.0], progress=Told(0))
    assert [record["passes"] for record in none.table] == [1] * 4
    assert all(1e-3 < record["gap"] < 1 for record in none.table[::2])


@pytest.mark.parametrize("n_more", [0, 1])
def test_a_stop_between_groups_keeps_those_that_are_done(n_more):
    choices = {"grid": GRID, "memory_limit": 160_000, "costs": (0.1, 1.0), "max_epochs": 5}
    X, y = toy(1000)
    first = find(X, y, progress=(told := Told()), **choices | {"grid": {}, "n_bins": 2})
    # One question a block, and one between two groups: there, and after the first block of the second group.
    cut = find(X, y, progress=Told(told.n_asked + n_more), **choices)
    assert cut.is_interrupted and cut.table[:2] == first.table and len(cut.table) == 2 + 2 * n_more
    assert cut.best.penalty_order == 1


def test_in_turn_each_value_of_C_reaches_the_gap_of_the_stream():
    told = Told()
    alone = find(X, Y, loss="squared_hinge", sequential=True, progress=told)
    stream = find(X, Y, loss="squared_hinge")
    assert told.costs == [0.05, 1.0, 5.0] and alone.reads > stream.reads
    for one, other in zip(alone.table, stream.table, strict=True):
        assert one["C"] == other["C"] and one["gap"] <= 1e-3
        np.testing.assert_allclose(one["error"], other["error"], atol=0.02)


@pytest.mark.parametrize(
    ("loss", "memory_limit"), [("hinge", 10**9), ("squared_hinge", 10**9), ("logistic", 10**9), ("logistic", 60_000)]
)
def test_in_turn_the_optimum_is_that_of_the_stream(loss, memory_limit):
    X, y = toy(2000, n_features=8)
    choices = {"loss": loss, "costs": (0.05, 1.0), "n_bins": 2, "n_folds": 1, "memory_limit": memory_limit}
    (alone,), (stream,) = (make_paths(X, y, sequential=each, **choices) for each in (True, False))
    assert len(alone.results) == 2 and alone.problem.n_outputs == 1
    for c, result in enumerate(alone.results):
        one, other = result.certificate, stream.results[0].certificate
        assert one.gap <= 1e-3 and other.gaps[c] <= 1e-3
        assert one.dual[0] <= other.primal[c] * (1 + 1e-9) and other.dual[c] <= one.primal[0] * (1 + 1e-9)


def test_a_stop_in_turn_leaves_out_what_was_not_begun():
    find(X, Y, sequential=True, costs=[0.05, 1.0, 500.0], progress=(told := Told()))
    cut = find(X, Y, sequential=True, costs=[0.05, 1.0, 500.0], progress=Told(told.n_asked - 5))
    assert cut.is_interrupted and [record["C"] for record in cut.table] == [0.05, 1.0, 500.0]
    assert cut.best.C < 500
    one = find(X, Y, sequential=True, costs=[0.05, 1.0, 500.0], progress=Told(0))
    assert [record["C"] for record in one.table] == [0.05] and one.best.C == 0.05


def test_folds_come_from_the_index_of_the_row():
    path = make_path(X, Y, n_folds=4, seed=7)
    folds = path.problem.folds
    np.testing.assert_array_equal(folds, hash_rows(np.arange(200), 7) % np.uint64(4))
    assert (np.bincount(folds) > 30).all() and path.n_held.tolist() == np.bincount(folds).tolist()
    assert (folds != make_path(X, Y, n_folds=4, seed=8).problem.folds).any()
