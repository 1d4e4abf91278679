"""How findings are worded: lists that stay short, ranges of numbers, commands that can be pasted."""

import shlex

import numpy as np
import pytest

from linadd.doctor.report import Report, listed, plural, ranges
from linadd.errors import DataError
from linadd.sources import open_source

X = np.zeros((2, 12))


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a"], "a"),
        (["a", 2], "a and 2"),
        (["a", "b", "c", "d"], "a, b, c and d"),
        (["a", "b", "c", "d", "e"], "a, b, c and 2 more"),
        (range(2000), "0, 1, 2 and 1,997 more"),
    ],
)
def test_lists_are_short(names, text):
    assert listed(names) == text


@pytest.mark.parametrize(
    ("columns", "parts"),
    [([0], ["1"]), ([0, 1], ["1", "2"]), ([0, 1, 2, 5, 7, 8, 9], ["1-3", "6", "8-10"]), ([3, 5, 7], ["4", "6", "8"])],
)
def test_ranges(columns, parts):
    assert ranges(np.array(columns)) == parts


def test_plural():
    assert (plural(1, "row"), plural(1200, "row"), plural(0, "row")) == ("1 row", "1,200 rows", "0 rows")


def test_commands_can_be_pasted(tmp_path):
    path = tmp_path / "it's.npy"
    np.save(path, X)
    report = Report(open_source(f"{path}"), "--where 'a=1 2'")
    assert shlex.split(report.convert_command("--shuffle")) == [
        "linadd", "convert", str(path), f"{tmp_path}/it's_rows.h5", "--where", "a=1 2", "--shuffle"
    ]  # fmt: skip
    expected = ["linadd", "train", str(path), "MODEL", "--where", "a=1 2", "--drop", "2-4,12"]
    assert shlex.split(report.drop_command([11, 3, 1, 2])) == expected


def test_an_error_keeps_its_place():
    report = Report(open_source(X))
    report.add_error("labels", DataError("the label is bad. Mend it. Or not.", source="f", row=3, column="a"))
    (found,) = report.findings
    record = {
        "severity": "error", "kind": "labels", "what": "the label is bad.", "where": {"columns": ["a"], "rows": [3]},
        "remedy": "Mend it. Or not.",
    }  # fmt: skip
    assert found.record() == record and report.has_errors


def test_few_rows_are_named():
    report = Report(open_source(X))
    report.add("info", "k", "w", "r", rows=range(1, 50))
    assert report.findings[0].rows == list(range(1, 11)) and not report.has_errors
