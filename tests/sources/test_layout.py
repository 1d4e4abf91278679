"""The rule for layouts that are slow by rows, whatever the format; `test_hdf5.py` and `test_zarr_arrays.py` meet it."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from linadd.errors import DataWarning
from linadd.sources import layout
from linadd.sources.layout import panels, slow_rows, whole_chunks


def slow(together, n_features=100, chunks=(5000, 10), names=None):
    """The account of float32 rows, and what is said of them."""
    source = SimpleNamespace(origin="a b.h5::g", n_rows=10**6, n_features=n_features, dtype=np.dtype(np.float32))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        account = slow_rows(source, "a b.h5", "array 'X'", names or {"x": "X"}, chunks, together)
    assert all(each.category is DataWarning and each.filename == __file__ for each in caught)
    return account, [str(each.message) for each in caught]


def test_many_rows_that_cost_as_much_as_one_are_slow():
    command = "linadd convert 'a b.h5::g' 'a b_rows.h5'"
    state = "which is slow to read by rows. Rewrite it once:"
    account, said = slow(10_486)
    assert said == [f"a b.h5::g: array 'X' is stored in chunks of 5000 x 10, {state} {command}"]
    assert (account.n_rows, account.row_bytes, account.together) == (10**6, 400, 10_486)
    assert slow(10_486, chunks=None)[1] == [f"a b.h5::g: array 'X' is stored in columns, {state} {command}"]
    account, said = slow(10_485)  # 4 MB of 400 bytes a row
    assert account is not None and not said
    names = {"x": "a x", "y": None, "weights": "w"}
    assert slow(10_486, chunks=None, names=names)[1][0].endswith(f"{command} --x 'a x' --weights w")
    assert slow(4001, n_features=1000)[1] and slow(4000, n_features=1000) == (None, [])


@pytest.mark.parametrize(
    ("panel_bytes", "chunk", "in_rows"), [(1, (3, 2), False), (300, (2, 5), True), (10**6, (1, 1), True)]
)
def test_panels_are_whole_chunks_and_cover_the_table(monkeypatch, panel_bytes, chunk, in_rows):
    monkeypatch.setattr(layout, "PANEL_BYTES", panel_bytes)
    spans, whole_rows = panels((10, 5), chunk, 8)
    assert whole_rows == in_rows
    covered = np.zeros((10, 5), int)
    for rows, columns in spans:
        assert rows[0] % chunk[0] == columns[0] % chunk[1] == 0
        part = covered[slice(*rows), slice(*columns)]
        assert part.size * 8 <= max(panel_bytes, 8 * chunk[0] * chunk[1])
        part += 1
    assert (covered == 1).all()


@pytest.mark.parametrize(("file_rows", "expected"), [(1, 1000), (7, 994), (1000, 1000), (1001, 1001), (8001, 1000)])
def test_reader_chunks_are_whole_chunks_of_the_file(file_rows, expected):
    assert whole_chunks(layout.CHUNK_BYTES // 1000, file_rows) == expected
