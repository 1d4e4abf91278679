"""Frames: names, types that fit all columns, and columns that are refused by their name."""

import numpy as np
import pandas
import polars
import pytest

from linadd.sources import open_source
from tests.checks.check_source import refusal


@pytest.mark.parametrize("library", [pandas, polars], ids=lambda library: library.__name__)
def test_columns_of_several_types_have_the_least_common_one(library):
    data = {
        "small": np.arange(3, dtype=np.uint8),
        "half": np.array([0.5, 1.5, 2.5], np.float32),
        "flag": np.array([True, False, True]),
    }
    source = open_source(library.DataFrame(data))
    assert source.dtype == np.float32 and source.feature_names == ["small", "half", "flag"]
    np.testing.assert_array_equal(source.read(1, 3).X, [[1, 1.5, 0], [2, 2.5, 1]])
    assert source.origin == f"{library.__name__} frame"
    large = open_source(library.DataFrame(data | {"large": np.array([0, 2**40 + 1, 7])}))
    assert large.dtype == np.float64 and large.read(1, 2).X[0, 3] == 2**40 + 1
    assert open_source(library.DataFrame({"flag": data["flag"]})).dtype == np.uint8


def test_names_that_are_no_text_are_none():
    assert open_source(pandas.DataFrame(np.eye(2))).feature_names is None


def test_a_pandas_frame_of_one_type_is_viewed():
    X = np.arange(12.0).reshape(6, 2)
    frame = pandas.DataFrame(X, columns=["a", "b"], copy=False)
    assert np.shares_memory(open_source(frame).read(2, 4).X, frame.to_numpy())


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            lambda: pandas.DataFrame({"age": [1.0, 2.0], "city": pandas.Categorical(["a", "b"])}),
            "pandas frame, column 'city': has type category; features must be real numbers. Encode it as numbers, or "
            "leave it out (drop=): --drop city",
        ),
        (
            lambda: pandas.DataFrame({"age": [1.0, 2.0], "what": np.array([1, "b"], object)}),
            "pandas frame, column 'what': has type object; features must be real numbers. Convert it, for instance "
            "with astype('float32').",
        ),
        (
            lambda: pandas.DataFrame({"when": pandas.to_datetime(["2020-01-01"])}).astype("datetime64[s]"),
            "pandas frame, column 'when': has type datetime64[s]; features must be real numbers. Encode it as numbers "
            "first.",
        ),
        (
            lambda: pandas.DataFrame({"n": pandas.array([1, None, 3], "Int64")}),
            "pandas frame, row 2, column 'n': the value is missing. Fill it, or drop the row.",
        ),
        (
            lambda: polars.DataFrame({"age": [1.0, 2.0], "city": ["a", "b"]}),
            "polars frame, column 'city': has type String; features must be real numbers. Encode it as numbers, or "
            "leave it out (drop=): --drop city",
        ),
        (
            lambda: polars.DataFrame({"age": [1.0, 2.0], "n": [1, None]}),
            "polars frame, row 2, column 'n': the value is missing. Fill it, or drop the row.",
        ),
        (
            lambda: pandas.DataFrame({"a": []}, dtype=float),
            "pandas frame: the table has shape (0, 1): no rows. Give data that have some.",
        ),
    ],
)
def test_messages(frame, message):
    assert refusal(open_source, frame()) == message


def test_the_fingerprint_follows_names_and_values():
    prints = [
        open_source(pandas.DataFrame(X, columns=names)).fingerprint()
        for X, names in ((np.eye(2), ["a", "b"]), (np.eye(2), ["a", "c"]), (2 * np.eye(2), ["a", "b"]))
    ]
    assert prints[0] != prints[1] and prints[0] != prints[2]


@pytest.mark.parametrize("library", [pandas, polars], ids=lambda library: library.__name__)
def test_labels_and_weights_by_name(library):
    frame = library.DataFrame({"a": [1, 2, 3], "y": ["p", "q", "p"], "w": [0.5, 1, 2], "b": [4.0, 5.0, 6.0]})
    chunk = open_source(frame, "y", weights="w", features=["b", "a"]).read(1, 3)
    assert chunk.X.tolist() == [[2, 5], [3, 6]] and chunk.y.tolist() == ["q", "p"] and chunk.weight.tolist() == [1, 2]
    # Without being named a column y is a feature like others, and labels may come from elsewhere.
    source = open_source(frame, [0, 1, 0], drop=["y"], where={"y": ["p"]})
    assert source.feature_names == ["a", "w", "b"] and source.read(0, 2).X.tolist() == [[1, 0.5, 4], [3, 2, 6]]
    assert open_source(frame, drop=["y"]).has_labels is False
    assert open_source(frame, "y", where={"w": [1, 2]}).feature_names == ["a", "b"]
    reordered = open_source(frame, match=["b", "a"])
    assert reordered.read(0, 1).X.tolist() == [[4, 1]]


def test_a_lazy_frame_is_refused():
    message = "polars frame: is lazy: its rows are not there yet. Give frame.collect()."
    assert refusal(open_source, polars.LazyFrame({"a": [1.0]})) == message
