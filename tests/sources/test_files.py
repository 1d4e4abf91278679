"""Several files as one data set: columns, types, labels and rows of each, against the whole in one file."""

import json
import pickle

import h5py
import numpy as np
import pytest

from linadd.errors import DataError
from linadd.options import Options
from linadd.sources import open_source
from linadd.sources.files import FilesSource
from linadd.sources.hdf5 import HDF5Source
from linadd.train import train
from tests.checks.check_source import position_table, refusal
from tests.solvers.problems import toy


def write(path, X, y=None, **extra):
    """An HDF5 file; `extra` are datasets, or attributes where lists of text."""
    with h5py.File(path, "w") as file:
        file["X"] = X
        if y is not None:
            file["y"] = y
        for name, value in extra.items():
            if isinstance(value, list):
                file.attrs[name] = value
            else:
                file[name] = value
    return path


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """Ten rows in three files, and the whole table; the folder is the working one."""
    monkeypatch.chdir(tmp_path)
    X, y, weight = position_table(10, 3)
    for k, rows in enumerate(np.split(np.arange(10), [2, 3])):
        write(f"part-{k + 9}.h5", X[rows], y[rows], weight=weight[rows], fold=rows // 4)
    return X, y, weight


def test_rows_come_in_the_order_of_the_names(parts):
    X, y, weight = parts
    source = open_source("part-*.h5", chunk_rows=4)
    assert type(source) is FilesSource and source.origin == "part-*.h5"
    assert (source.n_rows, source.n_features, source.dtype) == (10, 3, np.float64)
    chunks = list(source.chunks())
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in chunks]), X)
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), y)
    np.testing.assert_array_equal(np.concatenate([chunk.weight for chunk in chunks]), weight)
    listed = open_source(["part-11.h5", "part-9.h5"])
    assert listed.origin == "part-11.h5 and 1 more"
    np.testing.assert_array_equal(listed.read(0, 9).X, X[[*range(3, 10), 0, 1]])
    assert type(open_source(["part-10.h5"])) is type(open_source("part-10.h5")) is type(open_source("part-10*"))


def test_ranges_are_read_from_each_file_once(parts, monkeypatch):
    X = parts[0]
    source, calls, read_many = open_source("part-*.h5"), [], HDF5Source.read_many
    monkeypatch.setattr(HDF5Source, "read_many", lambda part, ranges: calls.append(ranges) or read_many(part, ranges))
    ranges = [(8, 10), (0, 3), (2, 9), (1, 2)]
    for chunk, (start, stop) in zip(source.read_many(ranges), ranges, strict=True):
        np.testing.assert_array_equal(chunk.X, X[start:stop])
        assert chunk.first_row == start
    assert calls == [[(0, 2), (1, 2)], [(0, 1), (0, 1)], [(5, 7), (0, 6)]]


def test_messages_name_the_file_and_its_own_row(parts):
    X, y, _ = parts
    source = open_source("part-*.h5")
    chunk = source.read(0, 10)
    assert chunk.origin == "part-*.h5"
    rows = [chunk.row_number(i) for i in range(10)]
    assert rows == [1, 2, 1, 1, 2, 3, 4, 5, 6, 7] and json.dumps(rows) == "[1, 2, 1, 1, 2, 3, 4, 5, 6, 7]"
    assert [row.origin for row in rows] == ["part-9.h5"] * 2 + ["part-10.h5"] + ["part-11.h5"] * 7
    assert pickle.loads(pickle.dumps(rows[-1])).origin == "part-11.h5"
    alone = source.read(4, 6)
    assert alone.origin == "part-11.h5" and alone.row_number(0) == 2
    error = DataError("is bad.", source=chunk.origin, row=chunk.row_number(4), column=1)
    assert str(error) == "part-11.h5, row 2, column 1: is bad." and error.source == "part-11.h5"
    some = open_source("part-*.h5", where={"fold": [1, 2]}).read(0, 6)
    assert [some.row_number(i) for i in range(6)] == [2, 3, 4, 5, 6, 7]
    assert some.row_number(5).origin == "part-11.h5" if some.origins is not None else some.origin == "part-11.h5"
    X[7, 1] = np.nan
    write("part-11.h5", X[3:], y[3:], weight=np.ones(7))
    message = "part-11.h5, row 5, column 2: the value is nan"
    for chunk_rows in (2, 100):
        assert refusal(train, open_source("part-*.h5", chunk_rows=chunk_rows)).startswith(message)


@pytest.mark.parametrize("memory_limit", [10**9, 30_000])
def test_pieces_give_the_model_of_the_whole(tmp_path, memory_limit):
    X, y = toy(n_rows=2300, n_features=5, n_classes=3)
    X = X.astype(np.float32)
    options = Options(max_epochs=2, tol=1.0, memory_limit=memory_limit, n_bins=7)
    whole = train(open_source(write(tmp_path / "whole.h5", X, y)), options)
    for cuts in ([1000], [999, 2299], [1, 1200, 1201]):
        for k, rows in enumerate(np.split(np.arange(2300), cuts)):
            write(tmp_path / f"piece-{k}.h5", X[rows].astype(np.float64 if k == 1 else np.float32), y[rows])
        model = train(open_source(tmp_path / "piece-*.h5", chunk_rows=700), options)
        assert model.digest == whole.digest and model.summary["plan"] == whole.summary["plan"]


def test_columns_are_matched_by_name(tmp_path):
    first = write(tmp_path / "a.h5", [[1, 2, 3]], [0], feature_names=["r", "g", "b"])
    write(tmp_path / "b.h5", [[6, 4, 5]], [1], feature_names=["b", "r", "g"])
    write(tmp_path / "c.h5", [[7, 8, 9]], [1])
    source = open_source(tmp_path / "?.h5")
    assert source.feature_names == ["r", "g", "b"]
    assert source.read(0, 3).X.tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert open_source(tmp_path / "[ab].h5", features=["b", "g"]).read(0, 2).X.tolist() == [[2, 3], [5, 6]]
    other = write(tmp_path / "d.h5", [[1, 2, 3]], [0], feature_names=["r", "g", "x"])
    remedy = "Give files of the same columns."
    assert refusal(open_source, [first, other]) == f"{other}: has no column 'b', which {first} has. {remedy}"
    other = write(tmp_path / "d.h5", [[1, 2, 3, 4]], [0], feature_names=["r", "g", "b", "x"])
    assert refusal(open_source, [first, other]) == f"{other}: has a column 'x', which {first} lacks. {remedy}"
    other = write(tmp_path / "d.h5", [[1, 2]], [0])
    assert refusal(open_source, [first, other]) == f"{other}: has 2 columns, {first} has 3. {remedy}"


def test_types_are_widened_and_libsvm_text_is_padded(tmp_path):
    first = write(tmp_path / "a.h5", np.array([[250, 1]], np.uint8), [0])
    second = write(tmp_path / "b.h5", np.array([[-3, 0.5]], np.float32), [1])
    text = tmp_path / "c.svm"
    text.write_text("2 1:7\n")
    assert open_source([first, second]).dtype == np.float32
    source = open_source([text, first, second])
    assert source.dtype == np.float64 and not source.is_sparse
    assert source.read(0, 3).X.tolist() == [[7, 0], [250, 1], [-3, 0.5]]
    wide = tmp_path / "d.svm"
    wide.write_text("1 2:1 5:2\n")
    source = open_source([text, wide])
    assert source.is_sparse and source.can_pad and source.read(0, 2).X.toarray()[:, 4].tolist() == [0, 2]
    source.pad(6)
    assert source.read(0, 2).X.shape == (2, 6)
    message = f"{wide}, row 1: index 5 in '5:2' is beyond the last one, 3. Is it the right file?"
    assert refusal(open_source, [text, wide], n_features=3) == message


def test_labels_are_united_and_must_be_of_one_type(tmp_path):
    X = np.ones((2, 1))
    first = write(tmp_path / "a.h5", X, [0, 1])
    second = write(tmp_path / "b.h5", X, [2.5, 7])
    assert open_source([first, second]).read(0, 4).y.tolist() == [0, 1, 2.5, 7]
    text = write(tmp_path / "c.h5", X, np.array(["cat", "dog"], object))
    source = open_source([first, text])
    message = f"{text}, row 1: label 'cat' stands among others of another type. Use numbers only or text only."
    assert refusal(source.read, 0, 3) == message
    assert refusal(train, source) == message
    source.chunk_rows = 2
    assert refusal(train, source) == message


def test_labels_and_weights_are_in_all_files_or_in_none(tmp_path):
    X = np.ones((2, 1))
    first = write(tmp_path / "a.h5", X, [0, 1], class_names=["no", "yes"])
    remedy = "Give files that all have them, or none."
    for extra, what in (({}, "labels"), ({"y": [1, 2], "weight": np.ones(2)}, "sample weights")):
        second = write(tmp_path / "b.h5", X, **extra)
        has, other = ("has no", "some") if what == "labels" else ("has", "none")
        assert refusal(open_source, [first, second]) == f"{second}: {has} {what}, {first} has {other}. {remedy}"
    assert not open_source([first, second], y_name=None, weights=False).has_labels
    second = write(tmp_path / "b.h5", X, [0, 1], class_names=["yes", "no"])
    message = f"{second}: has other class_names than {first}. Give files whose labels mean the same."
    assert refusal(open_source, [first, second]) == message


def test_arrays_of_labels_belong_to_all_rows(tmp_path):
    for name, n_rows in (("a.npy", 2), ("b.npy", 3)):
        np.save(tmp_path / name, np.ones((n_rows, 1)))
    source = open_source(tmp_path / "?.npy", [3, 1, 4, 1, 5], weights=np.arange(5.0))
    chunk = source.read(1, 4)
    assert chunk.y.tolist() == [1, 4, 1] and chunk.weight.tolist() == [1, 2, 3]
    message = f"{tmp_path}/?.npy: X has 5 rows and y has 4 entries. Both must describe the same rows."
    assert refusal(open_source, tmp_path / "?.npy", [1, 2, 3, 4]) == message
    remedy = "Give them as another .npy file with --y (in Python: y=array)."
    assert refusal(open_source(tmp_path / "?.npy").require_labels) == f"{tmp_path}/?.npy: has no labels. {remedy}"


def test_one_index_base_holds_for_all(tmp_path):
    for name, text in (("a.svm", "1 0:5 2:1\n"), ("b.svm", "2 1:7\n")):
        (tmp_path / name).write_text(text)
    source = open_source(tmp_path / "?.svm", index_base=0)
    assert source.read(0, 2).X.toarray().tolist() == [[5, 0, 1], [0, 7, 0]]
    assert source.fingerprint()["index_base"] == 0


def test_the_fingerprint_is_of_all_files(parts):
    first = open_source("part-*.h5").fingerprint()
    assert [name.rpartition("/")[2] for name in first["files"]] == ["part-9.h5", "part-10.h5", "part-11.h5"]
    assert first["path"] == "part-*.h5" and first["x"] == "X"
    with h5py.File("part-10.h5", "a") as file:
        file["X"][0, 0] = -1
    assert open_source("part-*.h5").fingerprint()["digest"] != first["digest"]


def test_a_faulty_file_is_named(parts):
    write("part-12.h5", np.ones((0, 3)), np.ones(0))
    message = "part-12.h5: dataset 'X' has shape (0, 3): no rows. Give data that have some."
    assert refusal(open_source, "part-*.h5") == message
    with open("part-10.h5", "r+b") as file:
        file.truncate(100)
    assert refusal(open_source, "part-*.h5").startswith("part-10.h5: is no whole HDF5 file")


def test_files_and_layout_are_those_of_all(parts):
    source = open_source("part-*.h5")
    assert source.files() == ["part-9.h5", "part-10.h5", "part-11.h5"]
    sizes = [open_source(name).layout()["bytes"] for name in source.files()]
    assert source.layout() == {"bytes": sum(sizes)}
    assert open_source("part-*.h5", np.zeros(source.n_rows)).files() is None
