"""Columns of tables: labels, weights and selecting columns are no features, with and without names."""

import numpy as np
import pytest

from linadd.errors import ConfigError
from linadd.sources import open_source
from tests.checks.check_source import refusal

ROWS = "1,2,3,4,5.0\n6,7,8,9,10\n"


@pytest.fixture
def table(tmp_path):
    """A function that opens five columns of numbers, named a to e or with other names or none."""
    path = tmp_path / "t.csv"

    def open_table(names="a,b,c,d,e\n", **options):
        path.write_text(names + ROWS)
        return open_source(path, **options)

    return open_table


CASES = [
    ({}, [0, 1, 2, 3, 4]),
    ({"y_name": "c"}, [0, 1, 3, 4]),
    ({"y_name": "a", "weights": "e"}, [1, 2, 3]),
    ({"y_name": "a", "where": {"b": [2, 7], "a": [1, 6]}}, [2, 3, 4]),
    ({"y_name": "a", "features": "b,c"}, [1, 2]),
    ({"y_name": "a", "drop": "[bd]"}, [2, 4]),
    ({"y_name": "a", "drop": "a,e"}, [1, 2, 3]),
    ({"y_name": None, "weights": False}, [0, 1, 2, 3, 4]),
]


def check_columns(source, places, options):
    """The features are at the places, the labels and weights where the options say."""
    own = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])
    chunk = source.read(0, 2)
    np.testing.assert_array_equal(chunk.X, own[:, places])
    for entries, name in ((chunk.y, options.get("y_name")), (chunk.weight, options.get("weights"))):
        assert entries is None if not name else entries.tolist() == own[:, "abcde12345".index(name) % 5].tolist()


@pytest.mark.parametrize(("options", "places"), CASES)
def test_columns_by_name(table, options, places):
    source = table(**options)
    check_columns(source, places, options)
    assert source.feature_names == ["abcde"[j] for j in places]


@pytest.mark.parametrize(("options", "places"), CASES)
def test_columns_by_number(table, options, places):
    numbers = str.maketrans("abcde", "12345")
    options = {key: value.translate(numbers) if isinstance(value, str) else value for key, value in options.items()}
    if "where" in options:
        options["where"] = {name.translate(numbers): values for name, values in options["where"].items()}
    source = table("", **options)
    check_columns(source, places, options)
    assert source.feature_names == ([str(j + 1) for j in places] if options.get("y_name") else None)


def test_the_columns_of_a_model_come_in_its_order(table):
    check_columns(table(match=["e", "b"]), [4, 1], {})
    # A model's feature named y is no label.
    source = table("a,y,c,d,e\n", match=["y", "a"])
    assert source.feature_names == ["y", "a"] and not source.has_labels
    assert table("a,y,c,d,e\n").has_labels
    # A model of numbered columns finds them in a table without names, and counts in one that has no others.
    check_columns(table("", match=["2", "4"]), [1, 3], {})
    check_columns(table("", match=["2", "3", "4", "5", "6"]), [0, 1, 2, 3, 4], {})


def test_every_column_selects_rows(table):
    source = table(y_name="a")
    assert source.selectors() == ["a", "b", "c", "d", "e"]
    assert open_source(source, where={"b": ["7"]}).read(0, 1).y.tolist() == [6]
    message = f"{source.origin}: no array 'z' selects rows (where). There are 'a', 'b', 'c', 'd', 'e'."
    assert refusal(table, where={"z": [1]}) == message


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (
            None,
            {"y_name": "lab"},
            "has no column 'lab', which --y (y_name=) names. Its columns: 'a', 'b', 'c', 'd', 'e'.",
        ),
        (
            "",
            {"weights": "9"},
            "has no column '9', which --weights (weights=) names. Its columns have no names: give their numbers, "
            "1 to 5.",
        ),
        (
            "a,b,a,d,e\n",
            {"y_name": "a"},
            "has 2 columns named 'a', which --y (y_name=) names. Give each its own name.",
        ),
        (
            None,
            {"where": dict.fromkeys("abcde", (1,))},
            "has no columns for features; its columns: 'a', 'b', 'c', 'd', 'e'. Give data that have some.",
        ),
        (
            None,
            {"y_name": "a", "features": "a"},
            "column 'a' holds the labels and is no feature. Take it off --features (features=).",
        ),
        (
            None,
            {"where": {"a": [1]}, "features": "a"},
            "column 'a' holds what selects rows (where) and is no feature. Take it off --features (features=).",
        ),
        (
            "",
            {"y_name": "1", "features": "1"},
            "has no columns for features; its columns: '1', '2', '3', '4', '5'. Give data that have some.",
        ),
    ],
)
def test_messages(table, tmp_path, names, options, message):
    given = {} if names is None else {"names": names}
    assert refusal(table, **given, **options) == f"{tmp_path / 't.csv'}: {message}"


def test_messages_of_options(table, tmp_path):
    path = tmp_path / "t.csv"
    message = f"{path}: y is an array; for CSV text it must be the name of a column."
    assert refusal(table, y=[1, 2], error=ConfigError) == message
    assert refusal(table, y=np.array([1, 2]), error=ConfigError) == message
    message = f"{path}: weights is an array; for CSV text it must be the name of a column."
    assert refusal(table, weights=np.ones(2), error=ConfigError) == message
    message = f"{path}: column 'a' is named for labels and for weights. Name two columns."
    assert refusal(table, y_name="a", weights="a", error=ConfigError) == message
    message = f"{path}: has no labels. Name their column with --y (y_name=): there is 'a', 'b', 'c', 'd', 'e'."
    assert refusal(table().require_labels) == message


def test_a_fingerprint_follows_the_columns(table):
    same, *others = [{}, {"y_name": "a"}, {"weights": "a"}, {"drop": "a"}, {"match": ["b", "a", "c", "d", "e"]}]
    prints = [table(**options).fingerprint() for options in (same, *others)]
    assert len({(each["columns"], each["y"], each["weights"]) for each in prints}) == 5
