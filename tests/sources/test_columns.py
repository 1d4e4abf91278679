"""Columns that are chosen by `features` and `drop`, or matched with a model's, and names that mean none."""

import logging

import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from linadd.errors import ConfigError
from linadd.sources import open_source
from linadd.sources.base import ReadOptions
from linadd.sources.columns import choose_columns, last_number, match_columns
from tests.checks.check_source import refusal

NAMES = ["age", "pixel1", "pixel2", "a,b", "p[1]", "line\nbreak", "x=1"]


def source_of(names):
    """Two rows whose values are the columns' places."""
    return open_source(pandas.DataFrame(np.tile(np.arange(len(names)), (2, 1)), columns=names))


def chosen(names=NAMES, n_features=10, **options):
    """Places that are chosen, and the names that they get."""
    options = {name: (values,) if isinstance(values, str) else tuple(values) for name, values in options.items()}
    order, kept = choose_columns(ReadOptions(**options), names, n_features if names is None else len(names), "FILE")
    return order.tolist(), kept


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"features": "pixel2,age"}, [0, 2]),
        ({"features": ["pixel2", "age"]}, [0, 2]),
        ({"features": "pixel*"}, [1, 2]),
        ({"features": ["a,b", "x=1"]}, [3, 6]),
        ({"features": "a,b"}, [3]),
        ({"features": "p[1]"}, [4]),
        ({"features": "line\nbreak"}, [5]),
        ({"drop": "pixel?,age"}, [3, 4, 5, 6]),
        ({"features": ["pixel*", "age"], "drop": ["pixel1", "a,b"]}, [0, 2]),
        ({"match": ["x=1", "age"]}, [6, 0]),
        ({"match": ["pixel2", "pixel1"], "drop": "age"}, [2, 1]),
    ],
)
def test_names(options, expected):
    assert chosen(**options) == (expected, [NAMES[j] for j in expected])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"features": "1,3-5,10"}, [0, 2, 3, 4, 9]),
        ({"drop": "2-10"}, [0]),
        ({"drop": ["1", "9", "10"], "features": "8-10"}, [7]),
        ({"features": "1?"}, [9]),
        ({"match": ["2", "10"]}, [1, 9]),
        ({"match": ["3", "9"], "drop": "1"}, [2, 8]),
    ],
)
def test_numbers_where_there_are_no_names(options, expected):
    assert chosen(None, **options) == (expected, [str(j + 1) for j in expected])


def test_a_name_of_two_columns_means_both():
    assert chosen(["a", "b", "a"], features="a") == ([0, 2], ["a", "a"])
    assert chosen(["a", "b", "a"], drop="a") == ([1], ["b"])


@given(
    n_features=st.integers(1, 9),
    kept=st.sets(st.integers(0, 8), min_size=1),
    dropped=st.sets(st.integers(0, 8)),
    is_named=st.booleans(),
    is_sparse=st.booleans(),
    chunk_rows=st.integers(1, 6),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_choice_is_that_of_the_array(n_features, kept, dropped, is_named, is_sparse, chunk_rows):
    kept, dropped = ({j for j in places if j < n_features} for places in (kept, dropped))
    expected = sorted(kept - dropped)
    X = np.arange(5.0 * n_features).reshape(5, n_features) % 7
    source = open_source(scipy.sparse.csr_array(X) if is_sparse else X)
    names = [f"c{j}" for j in range(n_features)] if is_named else [str(j + 1) for j in range(n_features)]
    source.feature_names = names if is_named else None
    options = {"features": [names[j] for j in kept], "drop": [names[j] for j in dropped], "chunk_rows": chunk_rows}
    if not expected:
        assert "no column is left" in refusal(open_source, source, **options)
        return
    found = open_source(source, **options)
    np.testing.assert_array_equal(np.concatenate([chunk.dense() for chunk in found.chunks()]), X[:, expected])
    assert found.feature_names == [names[j] for j in expected]


def test_other_orders_are_matched_and_the_log_says_so(caplog):
    caplog.set_level(logging.INFO, "linadd.sources.columns")
    matched = match_columns(source_of(["b", "c", "a"]), ["a", "b", "c"])
    np.testing.assert_array_equal(matched.read(0, 2).X, [[2, 0, 1], [2, 0, 1]])
    assert matched.feature_names == ["a", "b", "c"] and matched.read(0, 2).X.flags.c_contiguous
    message = "pandas frame: the columns are in another order than needed; they are matched by name"
    assert [record.getMessage() for record in caplog.records] == [message]


def test_columns_that_the_model_does_not_know_are_left_out_and_the_log_says_so(caplog):
    caplog.set_level(logging.INFO, "linadd.sources.columns")
    matched = match_columns(source_of(["id", "b", *"tuvwx", "a"]), ["a", "b"])
    np.testing.assert_array_equal(matched.read(0, 2).X, [[7, 1], [7, 1]])
    names = "'id', 't', 'u', 'v', 'w' and 1 more"
    message = f"pandas frame: columns are matched by the model's names; it does not know {names}"
    assert [record.getMessage() for record in caplog.records] == [message]


def test_a_text_column_is_no_fault_where_it_is_left_out():
    frame = pandas.DataFrame({"id": ["u", "v"], "b": [1, 2], "a": [3, 4]})
    for options in ({"drop": "id"}, {"features": "?"}, {"match": ["b", "a"]}):
        np.testing.assert_array_equal(open_source(frame, **options).read(0, 2).X, [[1, 3], [2, 4]])


def test_columns_count_by_position_where_there_is_nothing_to_match():
    source, bare = source_of(["a", "b"]), open_source(np.eye(2))
    assert match_columns(source, ["a", "b"]) is source
    assert match_columns(source, None) is source
    assert match_columns(bare, ["a", "b"]) is bare
    double = source_of(["a", "a"])
    assert match_columns(double, ["a", "a"]) is double


def test_numbers_of_columns_without_names_are_matched_where_the_data_are_wider(tmp_path):
    """A model of `--drop 2` has the names 1 and 3: of data of both columns it takes both, of wider ones those two."""
    names = open_source(np.eye(3), drop="2").feature_names
    assert names == ["1", "3"]
    np.testing.assert_array_equal(open_source(np.eye(3), match=names).read(0, 3).X, np.eye(3)[:, [0, 2]])
    narrow = open_source(np.eye(2))
    assert match_columns(narrow, names) is narrow
    path = tmp_path / "short.svm"
    path.write_text("1 1:5 2:6\n")  # lacks column 3, which is 0
    source = open_source(path, n_features=2, match=names)
    np.testing.assert_array_equal(source.read(0, 1).dense(), [[5, 0]])
    assert source.feature_names == names


def test_last_number():
    lists = (None, [], ["1", "4"], ["4", "1"], ["0", "1"], ["01", "2"], ["a", "2"], ["1", "1"], ["7"])
    assert [last_number(names) for names in lists] == [0, 0, 4, 0, 0, 0, 0, 0, 7]


def test_sparse_rows_stay_sparse():
    source = open_source(scipy.sparse.csr_array(np.array([[0, 5, 7], [0, 0, 9]])))
    source.feature_names = ["a", "b", "c"]
    rows = match_columns(source, ["c", "a", "b"]).read(0, 2).X
    np.testing.assert_array_equal(rows.toarray(), [[7, 0, 5], [9, 0, 0]])
    assert rows.has_sorted_indices and rows.indices.dtype == np.int32


def test_rows_are_selected_by_arrays_that_lie_beside_the_chosen_columns(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(3), part=[1, 2, 1])
    source = open_source(tmp_path / "a.npz", where={"part": [1]}, drop="2")
    np.testing.assert_array_equal(source.read(0, 2).X, [[1, 0], [0, 1]])
    again = open_source(open_source(tmp_path / "a.npz", drop="2"), where={"part": [2]})
    np.testing.assert_array_equal(again.read(0, 1).X, [[0, 0]])


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["age", "wage"], {"features": "agee"}, "no column 'agee', which --features (features=) names. The nearest: "
         "'age', 'wage'."),
        (list("abcdefg"), {"drop": "a,zzz"}, "no column 'zzz', which --drop (drop=) names. Its columns: 'a', 'b', 'c', "
         "'d', 'e' and 2 more."),
        (["a", "b"], {"drop": "z*"}, "no column 'z*', which --drop (drop=) names. Its columns: 'a', 'b'."),
        (["a", "b"], {"drop": ""}, "no column '', which --drop (drop=) names. Its columns: 'a', 'b'."),
        (["a", "b"], {"features": "1"}, "no column '1', which --features (features=) names. Its columns: 'a', 'b'."),
        (None, {"drop": "3-1"}, "no column '3-1', which --drop (drop=) names. Its columns have no names: give their "
         "numbers, 1 to 10."),
        (["a", "x"], {"match": ["a", "b"]}, "no column 'b', which the model needs. Its columns: 'a', 'x'."),
        (["a", "height"], {"match": ["weight", "b", "a"]}, "no columns 'weight', 'b', which the model needs. The "
         "nearest: 'height'."),
        (["a", "a", "b"], {"match": ["b", "a"]}, "two columns named 'a', and its columns are not the model's in their "
         "order. Give each column its own name."),
    ],
)  # fmt: skip
def test_names_that_there_are_not(names, options, message):
    assert refusal(chosen, names, **options) == f"FILE: has {message}"


def test_other_messages():
    message = "FILE: no column is left of 'a', 'b' by --features (features=) and --drop (drop=). Keep some."
    assert refusal(chosen, ["a", "b"], features="a", drop="a") == message
    message = "FILE: the model needs 'a', which --features (features=) or --drop (drop=) leaves out. Keep what it needs"
    assert refusal(chosen, ["a", "b"], match=["a"], drop="a") == f"{message}."
    message = (
        "FILE: is for a model of two columns named 'a', and its columns are not the model's in their order. Give each "
        "column its own name."
    )
    assert refusal(chosen, ["a", "b"], match=["a", "a"]) == message
    options, taken = ReadOptions(features=("y",)), {"y": "the labels"}
    message = "FILE: column 'y' holds the labels and is no feature. Take it off --features (features=)."
    assert refusal(choose_columns, options, ["a"], 1, "FILE", taken) == message
    message = "drop is 3. Give a list of names."
    assert refusal(open_source, np.eye(2), drop=3, error=ConfigError) == message
