"""Copies in rows: the same table, made when reading without one has cost as much, gone afterwards."""

import errno
import os
import pickle
import tempfile

import numpy as np
import pytest

from linadd.sources import row_copy
from linadd.sources.row_copy import RowCopy, SlowRows
from tests.checks.check_source import position_table, refusal

X, _, _ = position_table(40, 6, "float32")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The temporary folder of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def panels(table, n_rows, n_columns):
    """Parts of a table, in file order."""
    for start in range(0, len(table), n_rows):
        for first in range(0, table.shape[1], n_columns):
            yield start, first, table[start : start + n_rows, first : first + n_columns]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("n_rows", "n_columns"), [(7, 6), (40, 6), (11, 4), (40, 1)])
def test_the_copy_is_the_table(folder, monkeypatch, caplog, order, n_rows, n_columns):
    monkeypatch.setattr(row_copy, "CHUNK_BYTES", 3 * X[0].nbytes)
    parts = panels(np.array(X, order=order), n_rows, n_columns)
    with caplog.at_level("INFO", logger="linadd.sources.row_copy"):
        copy = RowCopy(parts, X.shape, X.dtype, n_columns == 6, "a.h5")
    path = str(next(folder.iterdir()))
    assert caplog.messages == [f"a.h5: copying its rows to the temporary file {path} of 0.0 MB"]
    for start, stop in ((0, 40), (3, 9), (39, 40)):
        np.testing.assert_array_equal(copy.read(start, stop).X, X[start:stop])
    copy.close()
    assert not list(folder.iterdir())


def test_the_file_goes_with_the_copy(folder):
    copy = RowCopy(panels(X, 7, 6), X.shape, X.dtype, True, "a.h5")
    assert os.path.getsize(next(folder.iterdir())) > X.nbytes
    del copy
    assert not list(folder.iterdir())


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot claim disk space")
def test_a_disk_without_space_is_one_line_before_any_work(folder, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    parts = iter([pytest.fail])
    message = refusal(RowCopy, parts, (10**6, 100), np.dtype("f4"), True, "a.h5")
    assert message == (
        f"a.h5: a copy of its rows takes 400.0 MB in {folder} (No space left on device). "
        "Set TMPDIR to a larger folder, or rewrite the file: linadd convert"
    )
    assert next(parts) is pytest.fail


def test_a_copy_is_made_once_reading_in_vain_has_cost_as_much(monkeypatch):
    monkeypatch.setattr(row_copy, "LEAST_BYTES", 0)
    copies = []

    def make():
        copies.append(object())
        return copies[-1]

    slow = SlowRows(100, 8, 30)
    for ranges in ([(0, 100)], [(30, 60), (60, 90)], [(90, 100)]):  # whole groups cost nothing beside
        assert slow.copy_for(ranges, make) is None
    assert slow.copy_for([(5, 10), (55, 65)], make) is None  # 25 + 50 rows in vain
    assert slow.copy_for([(0, 5)], make) is None  # 100
    again = pickle.loads(pickle.dumps(slow))
    assert slow.copy_for([(99, 100)], make) is slow.copy_for([(0, 30)], make) is copies[0]
    assert len(copies) == 1
    assert again.copy_for([(0, 1)], make) is None  # a pickled one counts anew
    monkeypatch.setattr(row_copy, "LEAST_BYTES", 8 * 200)
    assert again.copy_for([(0, 1), (0, 1), (0, 1), (0, 1)], make) is None
    assert again.copy_for([(0, 1), (0, 1), (0, 1)], make) is copies[1]


def test_closing_removes_the_copy(folder, monkeypatch):
    monkeypatch.setattr(row_copy, "LEAST_BYTES", 0)
    slow = SlowRows(40, 24, 40)
    slow.close()

    def make():
        return RowCopy(panels(X, 40, 6), X.shape, X.dtype, True, "a.h5")

    for _ in range(2):
        assert slow.copy_for([(0, 1), (0, 1)], make).n_rows == 40
        slow.close()
        assert not list(folder.iterdir())
        slow = SlowRows(40, 24, 40)
