"""Columns that are matched by name, and names that cannot be."""

import logging

import numpy as np
import pandas
import scipy.sparse

from linadd.sources import open_source
from linadd.sources.columns import match_columns
from tests.checks.check_source import refusal


def source_of(names):
    """Two rows whose values are the columns' places."""
    return open_source(pandas.DataFrame(np.tile(np.arange(len(names)), (2, 1)), columns=names))


def test_other_orders_are_matched_and_the_log_says_so(caplog):
    caplog.set_level(logging.INFO, "linadd.sources.columns")
    matched = match_columns(source_of(["b", "c", "a"]), ["a", "b", "c"])
    np.testing.assert_array_equal(matched.read(0, 2).X, [[2, 0, 1], [2, 0, 1]])
    assert matched.feature_names == ["a", "b", "c"] and matched.read(0, 2).X.flags.c_contiguous
    message = "pandas frame: the columns are in another order than the model's; they are matched by name"
    assert [record.getMessage() for record in caplog.records] == [message]


def test_columns_count_by_position_where_there_is_nothing_to_match():
    source, bare = source_of(["a", "b"]), open_source(np.eye(2))
    assert match_columns(source, ["a", "b"]) is source
    assert match_columns(source, None) is source
    assert match_columns(bare, ["a", "b"]) is bare
    double = source_of(["a", "a"])
    assert match_columns(double, ["a", "a"]) is double


def test_sparse_rows_stay_sparse():
    source = open_source(scipy.sparse.csr_array(np.array([[0, 5, 7], [0, 0, 9]])))
    source.feature_names = ["a", "b", "c"]
    rows = match_columns(source, ["c", "a", "b"]).read(0, 2).X
    np.testing.assert_array_equal(rows.toarray(), [[7, 0, 5], [9, 0, 0]])
    assert rows.has_sorted_indices and rows.indices.dtype == np.int32


def test_messages():
    assert refusal(match_columns, source_of(["a", "x"]), ["a", "b"]) == (
        "pandas frame: has no column 'b', which the model needs, but one named 'x', which it does not know. Give data "
        "of the same columns."
    )
    assert refusal(match_columns, source_of(["a", "a", "b"]), ["a", "b", "c"]) == (
        "pandas frame: has two columns named 'a', and its order is not the model's. Give each column its own name."
    )
