"""What a profile counts: the same for any chunking and storage, and of a sample only what a bounded read shows."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse

from linadd.doctor import profile as module
from linadd.doctor.profile import spans, take_profile
from linadd.sources import open_source
from linadd.sources.arrays import ArraySource

N_ROWS = 1500


def table():
    """Rising, with zeros, NaN and infinity, a copy of the second, of float32 values."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, 6)).astype(np.float32)
    X[:, 0] = np.arange(N_ROWS)
    X[rng.random(N_ROWS) < 0.5, 1] = 0
    X[[5, 800, 801], 2] = np.nan
    X[7, 3], X[800, 3] = np.inf, np.nan
    X[:, 5] = X[:, 1]
    X[900, 1:] = X[901, 1:] = 1
    return X


def labels():
    """Two classes, one label missing."""
    y = (np.arange(N_ROWS) % 7 == 0).astype(float)
    y[1200] = np.nan
    return y


def assert_same(one, other):
    """All counts and samples are equal."""
    assert (one.n_rows, one.is_whole) == (other.n_rows, other.is_whole)
    assert one.labels.labels.counts == other.labels.labels.counts
    for name in ("missing", "infinite"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a.counts == b.counts).all() and (a.first_rows == b.first_rows).all()
    for name in ("minimum", "maximum", "mean", "variance", "n_distinct", "n_filled"):
        np.testing.assert_array_equal(getattr(one.census, name), getattr(other.census, name))
    assert (one.column_hashes == other.column_hashes).all() and (one.row_hashes == other.row_hashes).all()
    X, Z = (each.X.toarray() if scipy.sparse.issparse(each.X) else each.X for each in (one, other))
    assert (X == Z).all() and (np.nan_to_num(one.y, nan=-1) == np.nan_to_num(other.y, nan=-1)).all()


@pytest.mark.parametrize("chunk_rows", [1, 7, 1000, N_ROWS])
def test_the_profile_is_that_of_the_rows_whatever_the_chunks(chunk_rows):
    whole = take_profile(open_source(table(), labels()))
    other = take_profile(open_source(table(), labels(), chunk_rows=chunk_rows))
    assert_same(whole, other)
    assert (whole.is_rising == other.is_rising).all()


@pytest.mark.parametrize("form", [scipy.sparse.csr_array, lambda X: X.astype(np.float64)], ids=["sparse", "float64"])
def test_the_profile_is_that_of_the_values_whatever_the_storage(form):
    assert_same(take_profile(open_source(table(), labels())), take_profile(open_source(form(table()), labels())))


def test_what_is_counted():
    found = take_profile(open_source(table(), labels(), chunk_rows=400))
    assert found.missing.counts.tolist() == [0, 0, 3, 1, 0, 0]
    assert found.missing.first_rows.tolist() == [0, 0, 6, 801, 0, 0]
    assert found.infinite.counts.tolist() == [0, 0, 0, 1, 0, 0] and found.infinite.first_rows[3] == 8
    assert found.is_clean.tolist() == [True, True, False, False, True, True]
    assert (found.labels.n_missing, found.labels.first_missing, found.labels.error) == (1, 1201, None)
    assert found.labels.labels.counts == {0.0: 1284, 1.0: 215}
    assert found.is_rising.tolist() == [True, False, False, False, False, False]
    hashes = found.column_hashes
    assert hashes[1] == hashes[5] and len(set(hashes.tolist())) == 5
    clean = found.is_clean
    np.testing.assert_array_equal(found.census.minimum[clean], table()[:, clean].min(axis=0))


def test_equal_rows_have_equal_hashes():
    X = table()
    X[900] = X[901]
    assert len(np.unique(take_profile(open_source(X)).row_hashes)) == N_ROWS - 1


def test_features_and_labels_of_the_sample_are_of_the_same_rows():
    X = np.arange(3000.0)[:, None]
    found = take_profile(open_source(X, X[:, 0] % 11), full=True, memory_limit=16 * 8 * 300)
    assert len(found.X) == 300 and found.is_whole and found.n_rows == 3000
    assert (found.X[:, 0] % 11 == found.y).all()


def test_every_bit_of_a_value_counts():
    """Small integers differ in the high bits of a float64 only."""
    X = np.random.default_rng(0).integers(0, 4, (300, 400)).astype(np.float64)
    assert len(np.unique(take_profile(open_source(X)).column_hashes)) == 400
    X[17, 3] = -0.0
    Z = X.copy()
    Z[17, 3] = 0.0
    assert (take_profile(open_source(X)).column_hashes == take_profile(open_source(Z)).column_hashes).all()


class CountedSource(ArraySource):
    """Rows that are counted as they are read."""

    n_read = 0

    def _read(self, start, stop):
        self.n_read += stop - start
        return super()._read(start, stop)


def test_a_sample_is_spread_and_reads_no_more_than_itself(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE_ROWS", 320)
    source = CountedSource(np.arange(10_000.0)[:, None], np.arange(10_000) % 2)
    found = take_profile(source)
    assert source.n_read == found.n_rows == 320 and not found.is_whole
    rows = np.sort(found.X[:, 0])
    assert rows[0] == 0 and rows[-1] == 9999
    assert np.diff(rows).max() < 10_000 / 14 and found.is_rising[0]


def test_rows_of_a_sample_are_named_as_in_the_file(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE_ROWS", 320)
    monkeypatch.setattr(module, "LEAST_ROWS", 320)
    X, y, weight = np.ones((10_000, 1)), np.arange(10_000) % 2.0, np.ones(10_000)
    X[9990], y[9991], weight[9992] = np.inf, np.nan, 1e30
    found = take_profile(open_source(X, y, weights=weight))
    assert (found.infinite.first_rows.tolist(), found.labels.first_missing) == ([9991], 9992)
    assert found.weight_error.row == 9993


@pytest.mark.parametrize("n_rows", [1001, 1234, 5000, 10**9])
@pytest.mark.parametrize("layout", [{}, {"chunks": [100, 5]}, {"chunks": [10**8, 1]}])
def test_spans_lie_apart_in_the_file(n_rows, layout):
    found = spans(n_rows, 1000, layout, 20)
    assert found[0][0] == 0 and all(stop > start for start, stop in found)
    assert all(before[1] <= after[0] for before, after in pairwise(found))
    assert found[-1][1] == n_rows or len(found) == 1
    assert len(found) == (1 if layout.get("chunks", [0])[0] == 10**8 else 16)


def test_the_memory_limit_bounds_the_sample():
    X = np.zeros((5000, 100))
    assert len(take_profile(open_source(X), memory_limit=16 * 8 * 100 * 400).X) == 400


def test_progress_is_told():
    told = []
    take_profile(open_source(table(), chunk_rows=500), on_rows=lambda *rows: told.append(rows))
    assert told == [(500, 1500), (1000, 1500), (1500, 1500)]
