"""Parquet files: types and missing values of columns, row groups of any size decoded once, and what is refused."""

import datetime
import decimal
import os
import pickle
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from linadd.sources import open_source, parquet, row_copy
from tests.checks.check_source import refusal


@pytest.fixture
def opened(tmp_path):
    """A function that opens a table as a Parquet file."""

    def open_table(columns, layout=(), **options):
        pq.write_table(pa.table(columns), tmp_path / "t.parquet", **dict(layout))
        return open_source(tmp_path / "t.parquet", **options)

    return open_table


TYPES = [
    (pa.array([True, False, True]), "uint8", [1, 0, 1]),
    (pa.array([1, 2, 255], pa.uint8()), "uint8", [1, 2, 255]),
    (pa.array([1, -2, 3], pa.int16()), "int16", [1, -2, 3]),
    (pa.array([2**63, 1, 2**64 - 1], pa.uint64()), "uint64", [2**63, 1, 2**64 - 1]),
    (pa.array(np.array([0.5, np.nan, 2], np.float16)), "float32", [0.5, np.nan, 2]),
    (pa.array([np.float16(0.5), None], pa.float16()).take([0, 1, 0]), "float32", [0.5, np.nan, 0.5]),
    (pa.array([0.1, None, 2], pa.float32()), "float32", [np.float32(0.1), np.nan, 2]),
    (pa.array([0.1, None, np.inf]), "float64", [0.1, np.nan, np.inf]),
    (pa.array([decimal.Decimal("0.10"), None, decimal.Decimal("-1234567.89")]), "float64", [0.1, np.nan, -1234567.89]),
    (pa.array([7, 7, 9]).dictionary_encode(), "int64", [7, 7, 9]),
]


@pytest.mark.parametrize(("column", "dtype", "values"), TYPES, ids=lambda each: str(getattr(each, "type", "")))
def test_types_of_features(opened, column, dtype, values):
    source = opened({"x": column})
    assert source.dtype == dtype
    np.testing.assert_array_equal(source.read(0, 3).X[:, 0], values)


def test_features_of_several_types_have_the_least_common_one(opened):
    source = opened({"a": pa.array([1, 2], pa.uint8()), "b": pa.array([0.5, 1.5], pa.float32()), "c": [True, False]})
    assert source.dtype == np.float32
    np.testing.assert_array_equal(source.read(0, 2).X, [[1, 0.5, 1], [2, 1.5, 0]])


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (pa.array(["a", "é", "a"]), ["a", "é", "a"]),
        (pa.array(["a", "é", "a"]).dictionary_encode(), ["a", "é", "a"]),
        (pa.array([b"a", b"\xc3\xa9", b"a"]), ["a", "é", "a"]),
        (pa.array([1, 2**53 + 1, 1]), [1, 2**53 + 1, 1]),
        (pa.array([True, False, True]), [True, False, True]),
        (pa.array([datetime.date(2020, 1, 2)] * 3), ["2020-01-02"] * 3),
    ],
    ids=lambda each: str(getattr(each, "type", "")),
)
def test_labels(opened, labels, found):
    source = opened({"x": [1.0, 2.0, 3.0], "y": labels})
    assert source.read(0, 3).y.tolist() == found
    assert open_source(source, where={"y": [found[1]]}).n_rows == found.count(found[1])


def test_an_index_of_pandas_and_columns_left_out_are_no_features(tmp_path):
    import pandas

    frame = pandas.DataFrame({"a": [1.0, 2.0], "b.c": [3.0, 4.0], "text": ["p", "q"]}, index=[7, 9])
    frame.to_parquet(tmp_path / "t.pq")
    source = open_source(tmp_path / "t.pq", drop="text")
    assert source.feature_names == ["a", "b.c"] and source.read(0, 2).X.tolist() == [[1, 3], [2, 4]]


def test_two_columns_of_one_name(opened, tmp_path):
    table = pa.table([[1, 2], [3, 4], [5, 6]], names=["a", "b", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet", features=["a"])
    assert source.read(0, 2).X.tolist() == [[1, 5], [2, 6]]
    assert open_source(tmp_path / "t.parquet", y_name="b").read(0, 2).X.tolist() == [[1, 5], [2, 6]]


class Count:
    """Counts the rows that pyarrow decodes."""

    def __init__(self, monkeypatch):
        self.rows, read = 0, parquet.Cursor._next

        def counted(cursor):
            batch = read(cursor)
            self.rows += batch.num_rows
            return batch

        monkeypatch.setattr(parquet.Cursor, "_next", counted)


@pytest.mark.parametrize("group_rows", [1000, 64, 7])
def test_reading_in_order_decodes_each_row_once(opened, monkeypatch, group_rows):
    monkeypatch.setattr(parquet, "rows_of_bytes", lambda n_bytes: 50)
    X = np.arange(2000.0).reshape(1000, 2)
    source = opened({"a": X[:, 0], "b": X[:, 1]}, {"row_group_size": group_rows})
    count = Count(monkeypatch)
    for chunk_rows in (13, 50, 170):
        source.chunk_rows, count.rows = chunk_rows, 0
        np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in source.chunks()]), X)
        assert count.rows == 1000 and source._kept is None
    count.rows = 0
    ranges = [(900, 910), (10, 20), (15, 60), (400, 410)]
    for chunk, (start, stop) in zip(source.read_many(ranges), ranges, strict=True):
        np.testing.assert_array_equal(chunk.X, X[start:stop])
    assert count.rows <= 1050  # a batch where two ranges overlap is decoded again
    assert source._kept is not None
    source.close()
    assert source._kept is None


def test_a_place_that_is_kept_serves_one_thread_and_its_columns(opened):
    source = opened({"a": np.arange(100.0), "y": np.arange(100)}, {"row_group_size": 30})
    assert source.read(0, 10).n_rows == 10 and source._kept.places == [0, 1]
    assert source.read_selector("y", 10, 20).tolist() == list(range(10, 20)) and source._kept.places == [1]
    np.testing.assert_array_equal(source.read(20, 50).X[:, 0], np.arange(20, 50))


@pytest.fixture
def large(opened, monkeypatch):
    """A file of 500 rows in groups of 250, in batches of 50, which no copy is too small for."""
    monkeypatch.setattr(row_copy, "LEAST_BYTES", 0)
    monkeypatch.setattr(parquet, "rows_of_bytes", lambda n_bytes: 50)
    labels = pa.array(["p", "q"] * 250).dictionary_encode()
    table = {"a": np.arange(500), "b": np.arange(500.0), "flag": [True, False] * 250, "y": labels, "w": np.arange(500)}
    return opened(table, {"row_group_size": 250}, weights="w")


def test_rows_of_large_groups_are_copied_once_reading_them_has_cost_as_much(large, tmp_path, monkeypatch):
    source, folder = large, tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    X = np.column_stack([np.arange(500), np.arange(500), np.arange(500) % 2 == 0])

    def check(chunk):
        rows = np.arange(chunk.first_row, chunk.first_row + chunk.n_rows)
        np.testing.assert_array_equal(chunk.X, X[rows])
        assert chunk.y.tolist() == np.array(["p", "q"])[rows % 2].tolist() and chunk.weight.tolist() == rows.tolist()
        assert chunk.numbers().tolist() == (rows + 1).tolist()

    for _ in range(5):  # in order nothing is decoded in vain
        list(map(check, source.chunks()))
    for start in (200, 490, 100):  # 200, 240 and 100 rows in vain
        assert not os.listdir(folder)
        check(source.read(start, start + 10))
    assert len(os.listdir(folder)) == 1
    count = Count(monkeypatch)
    list(map(check, [*source.read_many([(300, 410), (0, 500), (399, 400)]), *source.chunks(7)]))
    assert count.rows == 0
    check(pickle.loads(pickle.dumps(source)).read(490, 500))
    source.close()
    assert not os.listdir(folder)


def test_a_copy_that_does_not_fit(large, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pa.ipc, "new_file", full)
    message = (
        f"{large.origin}: a copy of its rows does not fit {tempfile.gettempdir()} (No space left on device). Set "
        "TMPDIR to a larger folder, or rewrite the file: linadd convert"
    )
    large.read_many([(200, 201), (499, 500)])
    assert refusal(large.read_many, [(200, 201), (499, 500)]) == message


def test_layout(opened):
    found = opened({"a": np.arange(50.0), "v": [[1]] * 50}, {"row_group_size": 20}, drop="v").layout()
    assert found.pop("bytes") > 100 and found == {"chunks": [20, 1], "codec": "snappy"}
    assert "codec" not in opened({"a": np.arange(5.0)}, {"compression": "none"}).layout()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"a": [1.0], "b": ["x"]},
            ", column 'b': has type string; features must be real numbers. Encode it as numbers, or leave it out "
            "(drop=): --drop b",
        ),
        (
            {"a": [{"u": 1, "v": [1.0]}]},
            ", column 'a': has type struct<u: int64, v: list<element: double>>; features must be real numbers. Encode "
            "it as numbers, or leave it out (drop=): --drop a",
        ),
        (
            {"a": [datetime.datetime(2020, 1, 1)]},
            ", column 'a': has type timestamp[us]; features must be real numbers. Encode it as numbers, or leave it "
            "out (drop=): --drop a",
        ),
        ({"a": pa.array([], pa.float64())}, ": the table has shape (0, 1): no rows. Give data that have some."),
        ({}, ": has no columns for features; its columns: none. Give data that have some."),
    ],
)
def test_files_that_do_not_open(opened, tmp_path, columns, message):
    assert refusal(opened, columns) == f"{tmp_path / 't.parquet'}{message}"


@pytest.mark.parametrize(
    ("columns", "column"),
    [
        ({"a": [1, 2, None]}, "a"),
        ({"a": [True, False, None]}, "a"),
        ({"a": [1.0, 2.0, 3.0], "y": [1, 2, None]}, "y"),
        ({"a": [1.0, 2.0, 3.0], "y": ["p", "q", None]}, "y"),
        ({"a": [1.0, 2.0, 3.0], "y": pa.array(["p", "q", None]).dictionary_encode()}, "y"),
        ({"a": [1.0, 2.0, 3.0], "w": [1, 2, None]}, "w"),
    ],
)
def test_values_that_are_missing(opened, columns, column):
    source = opened(columns, weights="w" if "w" in columns else None)
    message = f"{source.origin}, row 3, column '{column}': the value is missing. Fill it, or drop the row."
    assert refusal(source.read, 1, 3) == message


def test_files_that_are_damaged_or_change(opened, tmp_path):
    path = tmp_path / "t.parquet"
    source = opened({"a": np.arange(100.0)})
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    assert refusal(source.read, 0, 2) == f"{path}: changed after it was opened. Open it again."
    unknown = "The file is damaged, or of a kind unknown to pyarrow."
    message = "Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet file."
    assert refusal(open_source, path) == f"{path}: its header cannot be read ({message}). {unknown}"
    path.write_bytes(whole[:100] + bytes(300) + whole[400:])
    assert f"{path}: rows 1 to 2 cannot be read (" in refusal(open_source(path).read, 0, 2)
