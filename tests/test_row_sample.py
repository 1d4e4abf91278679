"""The sample of rows: who is in it, in which order, whatever the chunks."""

import numpy as np
import pytest
import scipy.sparse

from linadd.row_sample import RowSample, hash_rows


@pytest.mark.parametrize("size", [1, 10, 500])
def test_the_sample_is_the_rows_of_smallest_hash(size):
    n_rows = 4000
    X, weight = np.arange(n_rows)[:, None], np.ones(n_rows)
    weight[::3] = 0
    hashes = hash_rows(np.arange(n_rows), 7)
    hashes[::3] = np.iinfo(np.uint64).max
    expected = np.sort(np.argsort(hashes)[:size])
    for step in (1, 333, n_rows):
        sample = RowSample(size, 7)
        for start in range(0, n_rows, step):
            rows = slice(start, start + step)
            sample.update(X[rows], weight[rows], start)
            assert sample.n_held == sum(len(part[0]) for part in sample.parts) <= 2 * size + step
        rows, kept_weight = sample.finish()
        np.testing.assert_array_equal(rows[:, 0], expected)
        np.testing.assert_array_equal(kept_weight, np.ones(size))


def test_the_sample_owns_its_rows_and_keeps_their_dtype():
    X = np.arange(20, dtype=np.uint8)[:, None]
    sample = RowSample(100, 0)
    sample.update(X, np.ones(20), 0)
    rows, _ = sample.finish()
    assert rows.dtype == np.uint8 and not np.shares_memory(rows, X)
    assert sorted(rows[:, 0]) == list(range(20))


def test_the_sample_depends_on_its_seed_and_may_be_empty():
    assert set(np.argsort(hash_rows(np.arange(1000), 0))[:100]) != set(np.argsort(hash_rows(np.arange(1000), 1))[:100])
    empty = RowSample(0, 0)
    empty.update(np.ones((5, 2)), np.ones(5), 0)
    assert [len(part) for part in empty.finish()] == [0, 0]


def test_hashes_are_distinct_and_even():
    hashes = hash_rows(np.arange(100_000), 0)
    assert len(np.unique(hashes)) == len(hashes)
    # 100 buckets of 1000: standard deviation 31.
    assert np.abs(np.bincount((hashes >> np.uint64(32)) * 100 // 2**32) - 1000).max() < 150


def test_sparse_rows_are_the_sample_of_dense_ones():
    X = np.where(np.random.default_rng(0).random((500, 4)) < 0.2, 1.5, 0.0)
    dense, sparse = RowSample(60, 1), RowSample(60, 1)
    for start in range(0, 500, 90):
        rows = slice(start, start + 90)
        dense.update(X[rows], np.ones(len(X[rows])), start)
        sparse.update(scipy.sparse.csr_array(X[rows]), np.ones(len(X[rows])), start)
    found = sparse.finish()[0]
    assert scipy.sparse.issparse(found)
    np.testing.assert_array_equal(found.toarray(), dense.finish()[0])
