"""Rows selected by a named array: against a mask in memory, with the file's own row numbers."""

import h5py
import numpy as np
import pytest

from linadd.errors import ConfigError
from linadd.sources import open_source, where
from tests.checks.check_source import position_table, refusal

X, Y, WEIGHT = position_table(50, 2)
PART = np.random.default_rng(0).integers(1, 4, 50)
NAME = np.array(["left", "right"])[np.random.default_rng(1).integers(0, 2, 50)]


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = file.create_group("g")
        group.create_dataset("X", data=X, chunks=(7, 2))
        group["y"], group["part"], group["name"], group["weight"] = Y, PART, NAME.astype(object), WEIGHT
        group["share"], group["wide"] = PART / 2, X
    return f"{tmp_path}/a.h5::g"


@pytest.mark.parametrize(
    ("condition", "mask"),
    [
        ({"part": ["1", "3"]}, PART != 2),
        ({"part": 2}, PART == 2),
        ({"part": ["2.0"]}, PART == 2),
        ({"share": ["0.5", 1]}, PART != 3),
        ({"name": "left"}, NAME == "left"),
        ({"name": ["left", "none"], "part": [1]}, (NAME == "left") & (PART == 1)),
        ({"y": [0]}, Y == 0),
    ],
)
@pytest.mark.parametrize("chunk_rows", [1, 4, 100])
def test_rows_are_those_of_the_mask(path, condition, mask, chunk_rows, monkeypatch):
    monkeypatch.setattr(where, "STEP", 8)
    monkeypatch.setattr(where, "READ_ROWS", 16)
    source = open_source(path, where=condition, chunk_rows=chunk_rows)
    rows = np.flatnonzero(mask)
    assert source.n_rows == len(rows)
    chunks = list(source.chunks())
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in chunks]), X[rows])
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), Y[rows])
    np.testing.assert_array_equal(np.concatenate([chunk.weight for chunk in chunks]), WEIGHT[rows])
    numbers = [chunk.row_number(i) for chunk in chunks for i in range(chunk.n_rows)]
    assert numbers == (rows + 1).tolist()
    for start, stop in ((0, 1), (len(rows) // 2, len(rows)), (3, 6)):
        np.testing.assert_array_equal(source.read(start, stop).X, X[rows[start:stop]])


def test_messages_name_the_files_row(path):
    with h5py.File(path.removesuffix("::g"), "a") as file:
        file["g/weight"][int(np.flatnonzero(PART == 2)[1])] = -1
    source = open_source(path, where={"part": [2]})
    number = int(np.flatnonzero(PART == 2)[1]) + 1
    message = f"{path}, row {number}: sample weight -1; weights must be finite and not negative."
    assert refusal(source.read, 0, 3) == message


def test_names_and_fingerprint_are_the_sources(path):
    source = open_source(path, where={"part": ["1", 3]})
    assert source.fingerprint() == open_source(path).fingerprint() | {"where": {"part": ["1", "3"]}}
    assert source.label_remedy() == open_source(path).label_remedy()
    assert source.origin == path and source.has_weights


def test_messages(path):
    message = f"{path}: no array 'fold' selects rows (where). There are 'name', 'part', 'share', 'weight', 'y'."
    assert refusal(open_source, path, where={"fold": [1]}) == message
    message = "array: no array 'fold' selects rows (where). There are none."
    assert refusal(open_source, X, where={"fold": [1]}) == message
    message = f"{path}: no row has part in 7, 8 and name in left. Choose values that occur."
    assert refusal(open_source, path, where={"part": [7, 8], "name": ["left"]}) == message
    message = f"{path}: where part=left: 'part' holds numbers. Give numbers."
    assert refusal(open_source, path, where={"part": ["left"]}, error=ConfigError) == message
