"""The census: moments against NumPy, the same bits for any chunking and after merges, and every fault it finds."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse

from linadd import census as module
from linadd.census import MAX_DISTINCT, CensusTaker, empty_tally
from linadd.chunks import Chunk
from linadd.errors import DataError
from linadd.sources import open_source

N_ROWS = 5321


def table(n_rows=N_ROWS):
    """Columns: normal, time stamps, a spike at 0, a step every 100 rows, constant, of large and small size."""
    rng = np.random.default_rng(0)
    return np.stack(
        [
            rng.normal(size=n_rows),
            1e9 + rng.normal(size=n_rows),
            np.maximum(rng.normal(size=n_rows), 0),
            np.arange(n_rows) // 100 - 3.0,
            np.full(n_rows, -2.5),
            1e-12 * rng.standard_cauchy(n_rows),
        ],
        axis=1,
    )


def weights(n_rows=N_ROWS):
    """Weights without a pattern; a fifth of them 0, the first and one whole group of rows among them."""
    rng = np.random.default_rng(1)
    weight = rng.exponential(size=n_rows) * (rng.random(n_rows) > 0.2)
    weight[0] = weight[2000:3000] = 0
    return weight


def chunks(X, y=None, weight=None, cuts=(), start=0, stop=None):
    """Rows start..stop-1 as chunks that end at `cuts`."""
    stop = len(X) if stop is None else stop
    bounds = sorted({start, stop, *(cut for cut in cuts if start < cut < stop)})
    for a, b in pairwise(bounds):
        rows = slice(a, b)
        yield Chunk(
            X[rows], None if y is None else y[rows], None if weight is None else weight[rows], a, "train.h5"
        )  # fmt: skip


def taker_of(parts, n_features=6, sample_rows=700, names=None):
    """A taker that was given some chunks."""
    taker = CensusTaker("train.h5", n_features, sample_rows, 3, names)
    for chunk in parts:
        taker.update(chunk)
    return taker


def assert_same_bits(one, other):
    """Every field of two records is equal, NaN to NaN."""
    for name, value in vars(one).items():
        np.testing.assert_array_equal(value, vars(other)[name], err_msg=name)


CUTS = [(), range(1000, N_ROWS, 1000), range(1, N_ROWS, 377), [1, 2, 999, 1000, 1001, 3500], range(0, N_ROWS, 7)]


@pytest.mark.parametrize("cuts", CUTS[1:], ids=str)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_any_chunking_gives_the_same_bits(cuts, is_weighted):
    X, y = table(), np.random.default_rng(2).integers(0, 3, N_ROWS)
    weight = weights() if is_weighted else None
    whole = taker_of(chunks(X, y, weight)).finish()
    assert_same_bits(whole, taker_of(chunks(X, y, weight, cuts)).finish())


@pytest.mark.parametrize("parts", [(1000,), (3000,), (5000,), (1000, 2000, 4000), (2000, 3000)])
def test_merged_parts_give_the_same_bits(parts):
    X, y, weight = table(), np.arange(N_ROWS) // 2000, weights()
    bounds = [0, *parts, N_ROWS]
    takers = [taker_of(chunks(X, y, weight, range(a, b, 700), a, b)) for a, b in pairwise(bounds)]
    for taker in takers[1:]:
        takers[0].merge(taker)
    assert_same_bits(taker_of(chunks(X, y, weight)).finish(), takers[0].finish())


def test_merges_need_not_go_from_left_to_right():
    X = table()
    a, b, c = (taker_of(chunks(X, start=start, stop=stop)) for start, stop in ((0, 1000), (1000, 4000), (4000, N_ROWS)))
    b.merge(c)
    a.merge(b)
    assert_same_bits(taker_of(chunks(X)).finish(), a.finish())


def test_the_open_group_of_a_merged_part_stays_open():
    X = table()
    a = taker_of(chunks(X, stop=2000))
    a.merge(taker_of(chunks(X, start=2000, stop=2500)))
    for chunk in chunks(X, start=2500):
        a.update(chunk)
    assert_same_bits(taker_of(chunks(X)).finish(), a.finish())


@pytest.mark.parametrize(("end", "start"), [(2000, 3000), (2500, 2500), (2500, 3000)])
def test_merge_refuses_rows_that_do_not_follow(end, start):
    X = table()
    a, b = taker_of(chunks(X, stop=end)), taker_of(chunks(X, start=start))
    with pytest.raises(ValueError) as caught:
        a.merge(b)
    assert str(caught.value) == f"rows from {start} on do not follow {end} in groups of 1000"


def test_few_nodes_are_held():
    held = []
    for index in range(1000):
        node = module.Moments(index, 0, 1.0, np.zeros(1), np.zeros(1))
        module.push(held, node)
        assert len(held) == (index + 1).bit_count()
        assert sum(2**node.level for node in held) == index + 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.uint8])
def test_moments_are_numpys(dtype):
    X = table()[:, [0, 2, 3]] * 10 + 100
    X = X.astype(dtype)
    for weight in (None, weights()):
        found = taker_of(chunks(X, weight=weight, cuts=[1234]), 3).finish()
        wide, w = X.astype(np.float64), np.ones(N_ROWS) if weight is None else weight
        mean = np.average(wide, axis=0, weights=w)
        # A few rounded sums of 1000 terms on either side.
        np.testing.assert_allclose(found.mean, mean, rtol=1e-13)
        np.testing.assert_allclose(found.variance, np.average((wide - mean) ** 2, axis=0, weights=w), rtol=1e-12)
        np.testing.assert_allclose(found.weight_sum, w.sum(), rtol=1e-14)
        np.testing.assert_array_equal(found.minimum, wide[w > 0].min(axis=0))
        np.testing.assert_array_equal(found.maximum, wide[w > 0].max(axis=0))
        counts = [len(np.unique(column)) for column in wide[w > 0].T]
        np.testing.assert_array_equal(found.n_distinct, np.minimum(counts, MAX_DISTINCT + 1))


def test_large_offsets_do_not_cost_digits():
    X = table()
    found = taker_of(chunks(X)).finish()
    # The noise of column 1 is stored in steps of 1e-7 and its mean is 1e9: compare with the exact sums of the steps.
    steps = np.rint((X[:, 1] - 1e9) * 2**23)
    np.testing.assert_allclose(found.mean[1] - 1e9, steps.mean() / 2**23, atol=1.2e-7)  # an ulp of 1e9
    np.testing.assert_allclose(found.variance[1], steps.var() / 2**46, rtol=1e-7)
    assert found.mean[4] == -2.5 and found.variance[4] == 0.0


def test_an_outlier_without_weight_does_not_cost_digits():
    X, weight = np.random.default_rng(0).normal(size=(3000, 1)), np.ones(3000)
    expected = X[1:].var()
    X[0], weight[0] = 1e15, 0
    np.testing.assert_allclose(taker_of(chunks(X, weight=weight), 1).finish().variance, expected, rtol=1e-12)


def test_values_beyond_squares_have_infinite_variance():
    X = np.array([[1e200], [-1e200], [0.0]] * 1000)
    found = taker_of(chunks(X), 1).finish()
    assert abs(found.mean) < 1e186 and found.variance == np.inf


def test_rows_of_weight_zero_contribute_nothing():
    X, y, weight = table(2000), np.arange(2000) % 2, np.ones(2000)
    plain = taker_of(chunks(X, y)).finish()
    rng = np.random.default_rng(5)
    # After the others, so that groups hold the same rows.
    X, y = np.vstack([X, rng.normal(size=(1500, 6)) * 1e6]), np.append(y, rng.integers(0, 2, 1500))
    found = taker_of(chunks(X, y, np.append(weight, np.zeros(1500)))).finish()
    for name in ("minimum", "maximum", "mean", "variance", "n_distinct", "sample", "sample_weight", "weight_sum"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name), err_msg=name)
    assert found.n_rows == 3500 and found.class_counts.sum() == 3500


def sparse_table(n_rows=2600):
    """A CSR array with explicit zeros, empty rows, a column without entries and one without zeros."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n_rows, 6)) < [0.1, 0.3, 0.01, 0.9, 0.0, 1.0], 1e3 + table(n_rows), 0)
    X[7:12] = 0
    X[7:12, 5] = np.pi
    stored = scipy.sparse.csr_array(X + (X == 0) * 7.0 * (rng.random(X.shape) < 0.2))
    stored.data[stored.data == 7.0] = 0.0
    assert stored.nnz > np.count_nonzero(X) == np.count_nonzero(stored.data)
    return X, stored


@pytest.mark.parametrize("cuts", [(), (1500,), (1, 999, 1000, 2100)], ids=str)
def test_sparse_chunks_have_the_bits_of_dense_ones(cuts):
    X, stored = sparse_table()
    weight = weights(len(X))
    dense = taker_of(chunks(X, weight=weight)).finish()
    bounds = [0, *cuts, len(X)]
    parts = [Chunk(stored[a:b], None, weight[a:b], a, "train.h5") for a, b in pairwise(bounds)]
    sparse = taker_of(parts).finish()
    assert scipy.sparse.issparse(sparse.sample)
    sparse.sample = sparse.sample.toarray()
    assert_same_bits(dense, sparse)
    assert dense.n_filled == np.count_nonzero(X) and dense.density == np.count_nonzero(X) / X.size
    # The closed form, with the zeros in their places.
    mean = weight @ X / weight.sum()
    np.testing.assert_allclose(sparse.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(sparse.variance, weight @ (X - mean) ** 2 / weight.sum(), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(sparse.minimum, X[weight > 0].min(axis=0))
    np.testing.assert_array_equal(sparse.maximum, X[weight > 0].max(axis=0))


def test_sparse_parts_merge_to_the_bits_of_the_whole():
    _, stored = sparse_table()
    whole = taker_of([Chunk(stored, None, None, 0, "train.h5")]).finish()
    first, second = (taker_of([Chunk(stored[a:b], None, None, a, "train.h5")]) for a, b in ((0, 2000), (2000, 2600)))
    first.merge(second)
    merged = first.finish()
    whole.sample, merged.sample = whole.sample.toarray(), merged.sample.toarray()
    assert_same_bits(whole, merged)


def test_a_sparse_value_that_is_not_finite_is_named():
    _, stored = sparse_table()
    e = stored.indptr[40] + 1
    stored.data[e] = np.nan
    message = f"train.h5, row 41, column {stored.indices[e] + 1}: the value is nan"
    assert refusal([Chunk(stored, None, None, 0, "train.h5")]).startswith(message)


def test_very_many_features_have_no_tables_of_distinct_values():
    n_features = module.MAX_TABLES + 1
    X = scipy.sparse.csr_array(([1.0, 2.0], ([0, 1], [5, n_features - 1])), shape=(3, n_features))
    found = taker_of([Chunk(X, None, None, 0, "a.svm")], n_features).finish()
    assert found.n_distinct is None and found.n_filled == 2
    assert found.maximum.sum() == 3.0 and found.minimum.any() == 0


def survey(X, weight, tally):
    """survey_rows in NumPy, row after row."""
    for x, w in zip(X.astype(np.float64), weight, strict=True):
        tally.n_bad[:] += ~np.isfinite(x)
        tally.n_filled[0] += np.count_nonzero(x)
        if w > 0:
            filled = np.flatnonzero(x)
            tally.reference[filled] = np.where(tally.sums[0] == 0, x, tally.reference)[filled]
            tally.weight[0] += w
            tally.ranges[0, filled] = np.fmin(tally.ranges[0], x)[filled]
            tally.ranges[1, filled] = np.fmax(tally.ranges[1], x)[filled]
            shifted = (x - tally.reference)[filled]
            tally.sums[:, filled] += w * np.array([np.ones(len(filled)), shifted, shifted * shifted])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_survey_rows_equals_its_twin(dtype):
    X, weight = table(300).astype(dtype), weights(300)
    if dtype == np.float64:
        X[[4, 250, 299], [0, 3, 3]] = np.nan, np.inf, -np.inf
        weight[[4, 250, 299]] = 0, 1, 1
    compiled, twin = empty_tally(6), empty_tally(6)
    X[:, 1] *= np.arange(300) % 3 > 0
    sparse, entries = empty_tally(6), scipy.sparse.csr_array(X)
    with np.errstate(invalid="ignore"):
        survey(X, weight, twin)
    for rows in (slice(0, 100), slice(100, 101), slice(101, 300)):
        module.survey_rows(X[rows], weight[rows], compiled)
        starts = entries.indptr[rows.start : rows.stop + 1]
        module.survey_entries(entries.data, entries.indices, starts, weight[rows], sparse)
    for name in ("n_bad", "n_filled", "ranges", "weight"):
        np.testing.assert_array_equal(getattr(compiled, name), getattr(twin, name), err_msg=name)
    for name in ("n_bad", "n_filled", "ranges", "weight", "sums", "n_distinct"):
        np.testing.assert_array_equal(getattr(compiled, name), getattr(sparse, name), err_msg=name)
    # The machine may round w x and the sum at once: a difference of half an ulp of the sum a row.
    finite = twin.n_bad == 0
    assert np.isfinite(twin.sums[:, finite]).all()
    for power, found, expected in zip((0, 1, 2), compiled.sums, twin.sums, strict=True):
        size = weight @ np.abs(X[:, finite] - twin.reference[finite]) ** power
        assert (np.abs(found[finite] - expected[finite]) <= 300 * 2.0**-53 * size).all()
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))


def test_distinct_values_are_counted_exactly_up_to_the_bound():
    rng = np.random.default_rng(0)
    for n in (1, 2, 17, MAX_DISTINCT, MAX_DISTINCT + 1, 300):
        for values in (np.arange(n), rng.normal(size=n), -np.arange(n) / 10, 2.0 ** np.arange(-n / 2, n / 2)):
            X = rng.permutation(np.concatenate([values, rng.choice(values, 500), [0.0 * values[0], -0.0 * values[0]]]))
            expected = min(len(np.unique(X)), MAX_DISTINCT + 1)
            assert taker_of(chunks(X[:, None], cuts=[100, 400]), 1).finish().n_distinct == expected


def test_labels_reach_the_record():
    X, y = table(100), np.repeat(["b", "a"], [30, 70])
    found = taker_of(chunks(X, y, cuts=[20])).finish()
    assert found.classes.tolist() == ["a", "b"] and found.class_counts.tolist() == [70, 30] and found.is_label_sorted
    assert taker_of(chunks(X)).finish().classes is None


def refusal(parts, **options):
    """Text of the error that a census raises."""
    taker = taker_of(parts, **options)
    with pytest.raises(DataError) as caught:
        taker.finish()
    return str(caught.value)


@pytest.mark.parametrize("cuts", [(), (2100,), (1500, 3999), range(1, N_ROWS, 250)], ids=str)
def test_a_value_that_is_not_finite_is_named_with_their_number(cuts):
    X, names = table(), [f"f{j}" for j in range(6)]
    X[2100, 4] = np.inf
    expected = "train.h5, row 2101, column 5: the value is inf"
    remedy = ". linadd takes no NaN or infinity: fill or drop these rows."
    assert refusal(chunks(X, cuts=cuts)) == expected + remedy
    X[2100, 5], X[4000, 0], X[4000:, 1] = np.nan, -np.inf, np.nan
    count = N_ROWS - 4000 + 3
    assert refusal(chunks(X, cuts=cuts)) == f"{expected}, the first of {count} that are not finite{remedy}"
    assert refusal(chunks(X, cuts=cuts), names=names).startswith("train.h5, row 2101, column 'f4': the value is inf")


@pytest.mark.parametrize("rows", [(2500, 2700), (500, 2700)])
def test_faults_survive_a_merge(rows):
    X = table(3000)
    X[list(rows), 2] = np.nan
    taker = taker_of(chunks(X, stop=1000))
    taker.merge(taker_of(chunks(X, start=1000)))
    with pytest.raises(DataError) as caught:
        taker.finish()
    assert str(caught.value) == (
        f"train.h5, row {rows[0] + 1}, column 3: the value is nan, the first of 2 that are not finite. "
        "linadd takes no NaN or infinity: fill or drop these rows."
    )


def test_a_fault_in_a_row_of_weight_zero_counts():
    X = table(10)
    X[3, 0] = np.nan
    weight = np.ones(10)
    weight[3] = 0
    assert refusal(chunks(X, weight=weight)).startswith("train.h5, row 4, column 1: the value is nan. ")


def test_rows_are_numbered_as_the_file_counts():
    X = table(10)
    X[6, 0] = np.nan
    numbered = Chunk(X, None, None, 0, "a.svm", np.arange(10) * 2 + 5)
    assert refusal([numbered]).startswith("a.svm, row 17, column 1: ")


def test_zero_rows_and_zero_weights_are_refused():
    assert refusal([]) == "train.h5: there are no rows."
    assert refusal(chunks(table(10), weight=np.zeros(10))) == "train.h5: all sample weights are zero."


def test_take_census_reads_a_source_once():
    X, seen = table(), []
    y = np.arange(N_ROWS) % 2
    found = module.take_census(open_source(X, y, chunk_rows=700), 700, 3, lambda chunk: seen.append(chunk.first_row))
    assert seen == list(range(0, N_ROWS, 700))
    expected = taker_of(chunks(X, y)).finish()
    expected.origin = "array"
    assert_same_bits(expected, found)
    assert found.column_name(2) == 3
