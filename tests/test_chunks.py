"""Chunks and their reading ahead: order, bound on what is held, exceptions, and threads that end."""

import threading
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse

from linadd import chunks
from linadd.chunks import GROUP_ROWS, Chunk, group_slices, join_chunks, prefetch, row_groups
from linadd.errors import DataError


def reader_threads():
    """The background threads of prefetch that are alive."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("linadd-read")]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert reader_threads() == []


def test_dense_keeps_dtype_and_copies_only_where_it_must():
    X = np.arange(12, dtype=np.uint8).reshape(4, 3)
    assert np.shares_memory(Chunk(X, None, None, 0, "array").dense(), X)
    read_only = X.copy()
    read_only.flags.writeable = False
    for other in (np.asfortranarray(X), scipy.sparse.csr_array(X), read_only):
        dense = Chunk(other, None, None, 0, "array").dense()
        assert dense.flags.c_contiguous and dense.flags.writeable and dense.dtype == np.uint8
        np.testing.assert_array_equal(dense, X)


def test_sparse_keeps_entries_and_drops_zeros_of_dense_rows():
    X = np.array([[0, 3, 0], [0, 0, 0], [1, 0, 2]], np.uint8)
    stored = scipy.sparse.csr_array((np.array([0.0, 5.0]), np.array([0, 2]), np.array([0, 2])), shape=(1, 3))
    stored.data.flags.writeable = False
    twice = scipy.sparse.csr_array((np.array([1.0, 4.0, 5.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    for given, n_entries in ((X, 3), (np.asfortranarray(X), 3), (stored, 1), (twice, 2)):
        sparse = Chunk(given, None, None, 0, "array").sparse()
        assert sparse.nnz == n_entries and sparse.dtype == given.dtype
        assert all(part.flags.writeable for part in (sparse.data, sparse.indices, sparse.indptr))
        assert sparse.has_canonical_format
        np.testing.assert_array_equal(sparse.toarray(), given if isinstance(given, np.ndarray) else given.toarray())
    assert stored.nnz == 2 and twice.nnz == 3


def test_row_number_is_the_files_own():
    X = np.zeros((2, 1))
    assert Chunk(X, None, None, 10, "array").row_number(1) == 12
    assert Chunk(X, None, None, 10, "array", row_numbers=np.array([5, 40])).row_number(1) == 40


def test_rows_that_are_taken_and_joined_keep_numbers_and_files():
    first = Chunk(np.arange(6.0).reshape(3, 2), np.array([0, 1, 2]), np.arange(3.0), 10, "a.h5")
    second = Chunk(np.arange(4.0).reshape(2, 2), np.array([0.5, 3]), np.ones(2), 0, "b.csv", np.array([2, 9]))
    some = first.take(np.array([0, 2]))
    assert some.X.tolist() == [[0, 1], [4, 5]] and some.y.tolist() == [0, 2] and some.weight.tolist() == [0, 2]
    assert [some.row_number(i) for i in range(2)] == [11, 13] and some.origin == "a.h5"
    both = join_chunks([some, second], 7, "a and b")
    assert both.first_row == 7 and both.origin == "a and b" and both.weight.tolist() == [0, 2, 1, 1]
    assert both.X.tolist() == [[0, 1], [4, 5], [0, 1], [2, 3]] and both.y.tolist() == [0, 2, 0.5, 3]
    rows = [both.row_number(i) for i in range(4)]
    assert rows == [11, 13, 2, 9] and [row.origin for row in rows] == ["a.h5", "a.h5", "b.csv", "b.csv"]
    rest = join_chunks([both.take(slice(1, 4)), second], 0, "all")
    assert [rest.row_number(i).origin for i in range(5)] == ["a.h5", "b.csv", "b.csv", "b.csv", "b.csv"]
    same = join_chunks([some, first], 0, "unused")
    assert same.origin == "a.h5" and same.origins is None and same.row_number(4) == 13
    alone = join_chunks([replace(some, y=None, weight=None)], 3, "unused")
    assert alone.first_row == 3 and alone.y is alone.weight is None and alone.row_number(1) == 13


def test_labels_of_numbers_and_text_do_not_join():
    numbers, texts = (Chunk(np.ones((2, 1)), y, None, 4, "f") for y in (np.array([1, 2]), np.array(["1", "2"])))
    message = "f, row 5: label '1' stands among others of another type. Use numbers only or text only."
    with pytest.raises(DataError) as caught:
        join_chunks([numbers, texts], 0, "all")
    assert str(caught.value) == message


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("n_reads", [0, 1, 2, 7])
def test_results_come_once_each_in_order(n_reads, depth):
    assert list(prefetch((partial(int, i) for i in range(n_reads)), depth)) == list(range(n_reads))


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_what_is_held_is_bounded(depth):
    started = []
    for i, result in enumerate(prefetch((partial(started.append, i) for i in range(20)), depth)):
        assert result is None
        assert i < len(started) <= i + depth + 1


def test_the_next_read_runs_while_the_caller_works():
    first, second = threading.Event(), threading.Event()
    results = prefetch([first.set, second.set], depth=1)
    next(results)
    assert second.wait(30)  # deadlocks here if the second read waited for the caller to ask
    results.close()


def test_reads_run_on_one_thread_that_is_not_the_callers():
    names = set(prefetch([lambda: threading.current_thread().name] * 5, depth=2))
    assert len(names) == 1 and names != {threading.current_thread().name}


def test_an_exception_is_raised_at_the_point_of_its_result():
    results = prefetch([partial(int, 1), partial(int, "x"), partial(int, 3)])
    assert next(results) == 1
    with pytest.raises(ValueError, match="invalid literal"):
        next(results)
    assert list(results) == []


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_leaving_the_loop_ends_the_thread_and_drops_the_queue(failure):
    done = []
    with pytest.raises(failure):
        for _ in prefetch((partial(done.append, i) for i in range(100)), depth=4):
            raise failure
    assert reader_threads() == [] and len(done) <= 6


def test_what_is_queued_is_dropped(monkeypatch):
    monkeypatch.setattr(chunks, "LEAVING_SECONDS", 0.01)
    started, running, gate = [], threading.Event(), threading.Event()

    def read(i):
        started.append(i)
        if i == 1:
            running.set()
            gate.wait(30)

    results = prefetch((partial(read, i) for i in range(9)), depth=5)
    next(results)
    assert running.wait(30)
    results.close()
    gate.set()
    for thread in reader_threads():
        thread.join(30)
    assert started == [0, 1]


def test_closing_while_holding_a_lock_that_the_read_needs_does_not_hang(monkeypatch):
    monkeypatch.setattr(chunks, "LEAVING_SECONDS", 0.01)
    lock, waits = threading.Lock(), threading.Event()

    def read():
        waits.set()
        with lock:
            return 1

    results = prefetch([int, read])
    with lock:
        next(results)
        assert waits.wait(30)
        results.close()
        assert len(reader_threads()) == 1
    for thread in reader_threads():
        thread.join(30)


@pytest.mark.parametrize(("first_row", "n_rows"), [(0, 0), (0, 1), (0, 1000), (999, 2), (1000, 1000), (17, 5000)])
def test_pieces_of_groups_cover_a_chunk(first_row, n_rows):
    pieces = list(group_slices(first_row, n_rows))
    assert [row for start, stop, _ in pieces for row in range(start, stop)] == list(range(n_rows))
    for start, stop, closes in pieces:
        assert (first_row + start) // GROUP_ROWS == (first_row + stop - 1) // GROUP_ROWS
        assert closes == ((first_row + stop) % GROUP_ROWS == 0)


@pytest.mark.parametrize("cuts", [(), (999, 1000, 1001), (10, 2000), (2400,)])
def test_groups_hold_all_rows_whatever_the_chunks(cuts):
    X, weight = np.arange(2500.0).reshape(-1, 1), np.arange(2500.0) % 3
    parts = pairwise([0, *cuts, 2500])
    chunks = (Chunk(X[slice(*part)], None, weight[slice(*part)], part[0], "parts") for part in parts)
    groups = list(row_groups(chunks))
    assert [len(np.concatenate([piece for _, piece, _ in pieces])) for pieces in groups] == [1000, 1000, 500]
    for first_row, piece, weights in (part for pieces in groups for part in pieces):
        np.testing.assert_array_equal(piece[:, 0], np.arange(first_row, first_row + len(piece)))
        np.testing.assert_array_equal(weights, piece[:, 0] % 3)
