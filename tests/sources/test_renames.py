"""Other names for columns and labels: all at once, of one kind, and never two columns of one name."""

import h5py
import numpy as np
import pytest

from linadd.errors import ConfigError
from linadd.sources import open_source
from linadd.sources.renames import RenamedSource, split_column_pair, split_label_pairs
from tests.checks.check_source import refusal


def rows(y=None, names=("a", "b", "c=d")):
    """Three rows of three columns, with names."""
    source = open_source(np.arange(9.0).reshape(3, 3), y, chunk_rows=2)
    source.feature_names = None if names is None else list(names)
    return source


@pytest.mark.parametrize(
    ("names", "columns", "expected"),
    [
        (("a", "b", "c"), {"a": "age"}, ["age", "b", "c"]),
        (("a", "b", "c"), {"a": "b", "b": "a"}, ["b", "a", "c"]),
        (("a", "b", "c"), {"a": "a"}, ["a", "b", "c"]),
        (("a", "b", "c"), {"a": "x,y = 1\n"}, ["x,y = 1\n", "b", "c"]),
        (None, {"2": "age"}, ["1", "age", "3"]),
        (("a", "b", "b"), {"a": "c"}, ["c", "b", "b"]),
    ],
)
def test_columns(names, columns, expected):
    source = RenamedSource(rows(names=names), columns, {})
    assert source.feature_names == expected
    np.testing.assert_array_equal(source.read(0, 3).X, np.arange(9.0).reshape(3, 3))


@pytest.mark.parametrize(
    ("labels", "names", "expected", "dtype"),
    [
        ([0, 1, 2], {"0": -1}, [-1, 1, 2], "int64"),
        ([0, 1, 2], {0: 1, 1: 0}, [1, 0, 2], "int64"),
        ([0, 1, 2], {"2": 1}, [0, 1, 1], "int64"),
        ([0, 1, 2], {"2": 0.5}, [0, 1, 0.5], "float64"),
        ([0.0, 1.5, 2], {"1.5": 3}, [0, 3, 2], "float64"),
        ([True, False, True], {"1": 7}, [7, 0, 7], "int64"),
        (["cat", "dog", "cat"], {"cat": "kitten"}, ["kitten", "dog", "kitten"], "<U6"),
        (["cat", "dog", "cat"], {"cat": 0, "dog": 1}, [0, 1, 0], "int64"),
        ([0, 1, 0], {"0": "no", "1": "yes"}, ["no", "yes", "no"], "<U3"),
    ],
)
def test_labels(labels, names, expected, dtype):
    source = RenamedSource(rows(labels), {}, names)
    y = source.read(0, 3).y
    assert y.tolist() == expected and y.dtype == dtype and not source.unmet
    assert [label for chunk in source.chunks() for label in chunk.y.tolist()] == expected


def test_labels_that_do_not_occur_are_told():
    source = RenamedSource(rows([0, 1, 2]), {}, {"2": 0, "7": 1})
    source.read(0, 3)
    assert source.unmet == {"7"}


def test_the_rest_is_the_sources(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"], file["y"], file["weight"] = np.eye(3), [0, 1, 2], [1, 2, 3]
        file["y"].attrs["class_names"] = ["u", "v", "w"]
    plain = open_source(tmp_path / "a.h5")
    source = RenamedSource(plain, {"1": "a"}, {"0": 5})
    assert source.class_names is None and RenamedSource(plain, {"1": "a"}, {}).class_names == ["u", "v", "w"]
    assert source.selectors() == ["weight", "y"] and source.read_selector("y", 0, 2).tolist() == [0, 1]
    assert source.fingerprint() == plain.fingerprint() | {"rename": {"1": "a"}, "labels": [["0", "5"]]}
    np.testing.assert_array_equal(source.read(1, 3).weight, [2, 3])


@pytest.mark.parametrize(
    ("pair", "expected"),
    [("a=b", ("a", "b")), ("c=d=e", ("c=d", "e")), ("a=b=c", ("a", "b=c")), ("q=r=s", ("q", "r=s")), ("a=", ("a", ""))],
)
def test_the_longest_name_before_a_sign_counts(pair, expected):
    assert split_column_pair(pair, rows()) == expected


def test_pairs_of_labels():
    assert split_label_pairs(["0=-1", "2=1.5"]) == {"0": -1, "2": 1.5}
    assert split_label_pairs(["a=b=1", "c=x"]) == {"a=b": "1", "c": "x"}
    assert split_label_pairs(["0=nan"]) == {"0": "nan"} and split_label_pairs([]) == {}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"z": "a"}, "has no column 'z' to be renamed. Its columns: 'a', 'b', 'c=d'."),
        ({"a": "b"}, "column 'a' cannot become 'b': another column has that name. Rename or drop that too."),
        ({"a": "x", "b": "x"}, "column 'a' cannot become 'x': another column has that name. Rename or drop that too."),
        ({"a": ""}, "the new name of column 'a' is empty. Give one."),
    ],
)
def test_messages_of_columns(columns, message):
    assert refusal(RenamedSource, rows(), columns, {}) == f"array: {message}"


def test_other_messages():
    message = "array: has two columns 'a' to be renamed. Give each its own name."
    assert refusal(RenamedSource, rows(names=("a", "a", "b")), {"a": "c"}, {}) == message
    assert refusal(RenamedSource, rows(), {}, {"0": 1}) == "array: has no labels. Give y."
    message = "array: the new labels 1, 'x' are numbers and text. Give one kind."
    assert refusal(RenamedSource, rows([0, 1, 2]), {}, {"0": 1, "1": "x"}, error=ConfigError) == message
    message = "array: --label cat=1: the labels are numbers. Give numbers."
    assert refusal(RenamedSource(rows([0, 1, 2]), {}, {"cat": 1}).read, 0, 1, error=ConfigError) == message
    message = "array, row 2: label 1 has no new one, and those that are given are text. Give it one too."
    assert refusal(RenamedSource(rows([0, 1, 2]), {}, {"0": "no"}).read, 0, 3) == message
    message = "array, row 3: label 'dog' has no new one, and those that are given are numbers. Give it one too."
    assert refusal(RenamedSource(rows(["cat", "cat", "dog"]), {}, {"cat": 0}).read, 0, 3) == message
    assert refusal(split_column_pair, "ab", rows(), error=ConfigError) == "--rename ab: is not OLD=NEW."
    for pair in ("ab", "=b", "a="):
        assert refusal(split_label_pairs, [pair], error=ConfigError) == f"--label {pair}: is not OLD=NEW."
    message = "--label 0=2: gives '0' a second new label. Give it one."
    assert refusal(split_label_pairs, ["0=1", "0=2"], error=ConfigError) == message
