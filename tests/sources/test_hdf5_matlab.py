"""MATLAB's v7.3 files as MATLAB writes them: axes reversed, texts as codes, cells as references."""

import h5py
import numpy as np
import pytest

from linadd.sources import HDF5Source, open_source
from tests.checks.check_source import position_table, refusal

X, Y, WEIGHT = position_table(30, 4, "float32")
TEXTS = np.array(["cat", "", "ox 🐂"])[Y]


def put(file, name, values, kind, **attributes):
    """Write an array as MATLAB does."""
    dataset = file.create_dataset(name, data=values)
    dataset.attrs["MATLAB_class"] = np.bytes_(kind)
    for key, value in attributes.items():
        dataset.attrs[key] = value
    return dataset


def codes(text):
    """The codes of a text, one below the other."""
    return np.frombuffer(text.encode("utf-16-le"), "<u2")[:, None]


def put_characters(file, name, texts):
    """Write texts as a matrix of characters, filled up with blanks."""
    columns = [codes(text)[:, 0] for text in texts]
    table = np.full((max(map(len, columns)), len(texts)), ord(" "), "u2")
    for i, column in enumerate(columns):
        table[: len(column), i] = column
    put(file, name, table, "char", MATLAB_int_decode=np.int32(2))


def put_cells(file, name, texts):
    """Write texts as a cell array, a column."""
    group, references = file.require_group("#refs#"), []
    for text in texts:
        key = f"r{len(group)}"
        empty = put(group, key, np.zeros(2, "u8"), "char", MATLAB_empty=np.uint8(1)) if not text else None
        references.append((empty or put(group, key, codes(text), "char", MATLAB_int_decode=np.int32(2))).ref)
    dataset = file.create_dataset(name, (1, len(texts)), h5py.ref_dtype)
    dataset[0] = references
    dataset.attrs["MATLAB_class"] = np.bytes_("cell")


@pytest.fixture
def path(tmp_path):
    """A file with a variable of every class."""
    path = tmp_path / "a.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        put(file, "X", X.T, "single")
        put(file, "y", Y[None].astype("f8"), "double")
        put(file, "w", WEIGHT[:, None], "double")
        put_characters(file, "letters", TEXTS)
        put_characters(file, "one", ["a", "b"] * 15)
        put_cells(file, "cells", TEXTS)
        put_cells(file, "feature_names", ["a", "b", "é", "d"])
        put(file, "L", (X > 40).T.astype("u1"), "logical", MATLAB_int_decode=np.int32(1))
        put(file, "none", np.array([0, 4], "u8"), "double", MATLAB_empty=np.uint8(1))
        put(file, "strings", np.arange(30, dtype="u4")[None], "string", MATLAB_object_decode=np.int32(3))
        put(file, "z", np.zeros((4, 30), [("real", "f8"), ("imag", "f8")]), "double")
        sparse = file.create_group("S")
        sparse.attrs["MATLAB_class"], sparse.attrs["MATLAB_sparse"] = np.bytes_("double"), np.uint64(30)
        file.create_group("st").attrs["MATLAB_class"] = np.bytes_("struct")
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return path


def test_matrices_are_read_in_place(path):
    source = open_source(path, weights="w")
    assert type(source) is HDF5Source and source.feature_names == ["a", "b", "é", "d"]
    chunk = source.read(3, 9)
    np.testing.assert_array_equal(chunk.X, X[3:9])
    assert chunk.y.tolist() == Y[3:9].tolist() and chunk.weight.tolist() == WEIGHT[3:9].tolist()
    np.testing.assert_array_equal(open_source(path, x="L").read(0, 30).X, X > 40)
    assert source.selectors() == ["cells", "letters", "one", "strings", "w", "y"]


@pytest.mark.parametrize("name", ["letters", "cells"])
def test_texts(path, name):
    source = open_source(path, y_name=name)
    assert source.read(4, 30).y.tolist() == TEXTS[4:].tolist()
    assert source.read(0, 1).y.tolist() == ["cat"]
    assert open_source(path, y_name=name, where={name: ["cat"]}).n_rows == 10
    assert open_source(path, y_name="one").read(0, 3).y.tolist() == ["a", "b", "a"]


def test_what_is_no_matrix_is_named_with_the_remedy(path):
    for name, what in (
        ("S", "sparse; a matrix is needed. Save it with -v7, or as full(X)."),
        ("st", "struct; a matrix is needed. Save its fields as variables: save -struct."),
        ("none", "empty; a matrix is needed. Give data that have some."),
        ("cells", "cell; a matrix is needed. Encode it as numbers first."),
        ("letters", "char; a matrix is needed. Encode it as numbers first."),
    ):
        assert refusal(open_source, path, x=name) == f"{path}: variable {name!r} is {what}"
    assert refusal(open_source, path, y_name="strings") == (
        f"{path}: variable 'strings' is string; a matrix or a column of texts is needed. "
        "Save its content as one: table2array(T) of a table, cellstr(s) of strings."
    )
    message = f"{path}: dataset 'z' has dtype [('real', '<f8'), ('imag', '<f8')]; features must be real numbers."
    assert refusal(open_source, path, x="z").startswith(message)


def test_cells_of_anything_else(path):
    with h5py.File(path, "a") as file:
        number = put(file["#refs#"], "number", np.ones((1, 1)), "double")
        file["cells"][0, 4] = number.ref
    assert refusal(open_source, path, y_name="cells") == (
        f"{path}: its header cannot be read (cell 5 holds no text). The file is damaged or of a kind unknown to h5py."
    )
    with h5py.File(path, "a") as file:
        file["cells"][0, 4] = file["#refs#"].ref
    assert "(cell 5 holds no text)" in refusal(open_source, path, y_name="cells")
