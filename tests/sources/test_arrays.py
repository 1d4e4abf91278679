"""Arrays in memory: views where possible, copies where the caller's data would change, and what is refused."""

import numpy as np
import scipy.sparse

from linadd.sources import open_source
from tests.checks.check_source import refusal


def test_chunks_are_views_of_the_callers_array():
    X = np.arange(12, dtype=np.float32).reshape(6, 2)
    assert np.shares_memory(open_source(X).read(2, 4).X, X)


def test_float16_and_bool_are_widened():
    for X, dtype in ((np.eye(3, dtype=np.float16), np.float32), (np.eye(3, dtype=bool), np.uint8)):
        for data in (X, scipy.sparse.csr_array(X) if X.dtype == bool else X):
            source = open_source(data)
            assert source.dtype == source.read(0, 3).X.dtype == dtype
            np.testing.assert_array_equal(source.read(0, 3).dense(), np.eye(3))


def test_unsorted_and_repeated_entries_are_put_right_on_a_copy():
    data, indices = np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 1])
    X = scipy.sparse.csr_matrix((data, indices, [0, 3, 4]), shape=(2, 3))
    rows = open_source(X).read(0, 2).X
    assert rows.has_canonical_format and isinstance(rows, scipy.sparse.csr_array)
    np.testing.assert_array_equal(rows.toarray(), [[2, 0, 5], [0, 8, 0]])
    np.testing.assert_array_equal(X.indices, [2, 0, 2, 1])
    np.testing.assert_array_equal(X.data, [1, 2, 4, 8])


def test_int64_indices_become_int32_where_they_fit():
    X = scipy.sparse.csr_array(np.eye(4))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert open_source(X).read(1, 3).X.indices.dtype == np.int32
    wide = scipy.sparse.csr_array((np.ones(1), np.array([2**40]), np.array([0, 1])), shape=(1, 2**41))
    chunk = open_source(wide).read(0, 1)
    assert chunk.X.indices.dtype == np.int64 and chunk.X.indices[0] == 2**40


def test_sparse_chunks_count_entries_not_cells():
    wide = scipy.sparse.random_array((1000, 10**6), density=1e-5, format="csr", rng=0)
    assert open_source(wide).chunk_rows > 1000


def test_messages():
    assert refusal(open_source, [[1, 2], [3]]) == "array: X is no rectangular array. Give rows of equal length."
    masked = np.ma.masked_array([[1.0, 2.0]], [[True, False]])
    message = "array: X has masked values. Fill them, for instance with .filled(0)."
    assert refusal(open_source, masked) == message
    message = "array: X has 1 rows and y has 2 entries. Both must describe the same rows."
    assert refusal(open_source, [[1.0]], [1, 2]) == message
    message = "array: X has 1 rows and weights has 2 entries. Both must describe the same rows."
    assert refusal(open_source, [[1.0]], [1], weights=[1, 2]) == message
    message = "array: y has shape (1, 2, 1); one entry a row is needed."
    assert refusal(open_source, [[1.0]], [[[1], [2]]]) == message
    assert refusal(open_source, {"a": 1}) == (
        "array: X has dtype object; features must be real numbers. Convert it, for instance with astype('float32')."
    )
    message = "array: X has shape (0, 3): no rows. Give data that have some."
    assert refusal(open_source, scipy.sparse.csr_array((0, 3))) == message


def test_labels_of_all_rows_have_one_type():
    source = open_source(np.ones((4, 1)), np.array([1, 2, 2.5, 3], object), chunk_rows=1)
    assert {chunk.y.dtype for chunk in source.chunks()} == {np.dtype(float)}
    message = "array, row 3: label 'a' stands among others of another type. Use numbers only or text only."
    assert refusal(open_source, np.ones((3, 1)), np.array([1, 2, "a"], object)) == message
