"""MATLAB's files of version 4 to 7: every class of variable, damage, and files that MATLAB wrote for scipy's tests."""

from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from linadd.errors import ConfigError, DataError
from linadd.sources import MatSource, open_source
from tests.checks.check_source import dense, position_table, refusal

X, Y, WEIGHT = position_table(30, 4, "float32")
TEXTS = np.array(["cat", "ox", "épagneul"])[Y]
REAL_FILES = Path(scipy.io.__file__).parent / "matlab/tests/data"


def cells(values):
    """A column of cells."""
    column = np.empty((len(values), 1), object)
    column[:, 0] = values
    return column


def save(path, **variables):
    """A file of version 5 of the variables; returns its path."""
    scipy.io.savemat(path, variables)
    return path


@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize("is_packed", [False, True])
def test_versions_are_told_by_content(tmp_path, version, is_packed):
    for name in ("a.mat", "a.unknown"):
        path = tmp_path / name
        variables = {"X": X, "y": Y[:, None]}
        scipy.io.savemat(path, variables, appendmat=False, format=version, do_compression=is_packed and version == "5")
        source = open_source(path)
        assert type(source) is MatSource and source.origin == str(path)
        np.testing.assert_array_equal(source.read(3, 9).X, X[3:9])
        assert source.read(3, 9).y.tolist() == Y[3:9].tolist()


def test_matches_needs_more_than_a_small_number():
    assert not MatSource.matches(b"") and not MatSource.matches(b"1 1:2\n2 1:3\n" * 9)
    assert not MatSource.matches(bytes(64)) and not MatSource.matches(b"\x93NUMPY" + bytes(122))


@pytest.mark.parametrize("labels", [TEXTS, cells(TEXTS), cells(TEXTS).T], ids=["char", "cells", "row of cells"])
def test_labels_that_are_texts(tmp_path, labels):
    path = save(tmp_path / "a.mat", X=X, y=labels)
    assert open_source(path).read(0, 30).y.tolist() == TEXTS.tolist()


def test_logical_and_sparse_matrices(tmp_path):
    path = save(tmp_path / "a.mat", L=X > 40, S=scipy.sparse.csc_matrix(X > 40), y=cells(["", "b"] * 15))
    logical, sparse = open_source(path, x="L").read(0, 30), open_source(path, x="S")
    np.testing.assert_array_equal(logical.X, X > 40)
    assert logical.y.tolist() == ["", "b"] * 15
    assert sparse.is_sparse and scipy.sparse.issparse(sparse.read(0, 3).X)
    np.testing.assert_array_equal(dense(sparse.read(5, 20)), (X > 40)[5:20])


def test_names_and_selectors(tmp_path):
    names = cells(["a", "b", "é", "d"])
    path = save(
        tmp_path / "a.mat", X=X, y=Y, feature_names=names, class_names=cells(["u", "v", "w"]), w=WEIGHT[:, None]
    )
    source = open_source(path, weights="w", where={"y": ["1"]})
    assert source.feature_names == ["a", "b", "é", "d"] and source.class_names == ["u", "v", "w"]
    assert source.read(0, 2).weight.tolist() == [0.25, 1.0]
    assert open_source(path).selectors() == ["y", "w"]
    message = f"{path}: y is an array; for MATLAB it must be the name of one in the file."
    assert refusal(open_source, path, Y, error=ConfigError) == message


def test_what_is_no_matrix_is_named_with_the_remedy(tmp_path):
    path = save(
        tmp_path / "a.mat", st={"a": 1}, z=X + 1j, t=TEXTS, c=cells(["a", 1]), cube=np.zeros((2, 3, 4)), e=X[:0], y=Y
    )
    needed = "a matrix or a column of texts is needed."
    assert refusal(open_source, path, x="st") == (
        f"{path}: variable 'st' is struct; {needed} Save its fields as variables: save -struct."
    )
    assert refusal(open_source, path, x="c") == (
        f"{path}: variable 'c' holds no text in cell 2. Give a matrix, or texts only."
    )
    numbers = "features must be real numbers."
    for name, what in (
        ("z", f"dtype complex64; {numbers} Store the real and imaginary parts as separate features."),
        ("t", f"dtype <U8; {numbers} Encode it as numbers first."),
        ("cube", "shape (2, 3, 4); a table of rows and features is needed. Reshape it: reshape(n_rows, n_features)."),
        ("e", "shape (0, 4): no rows. Give data that have some."),
    ):
        assert refusal(open_source, path, x=name) == f"{path}: variable {name!r} has {what}"
    assert refusal(open_source, path) == (
        f"{path}: variable 'X' does not exist. There are 'st' (1, 1) struct, 'z' (30, 4) single, 't' (30,) char, "
        "'c' (2, 1) cell, 'cube' (2, 3, 4) double, 'e' (0, 4) single, 'y' (1, 30) int64. Name one with --x."
    )
    path = save(tmp_path / "b.mat", X=X, y=Y[:4], label=Y)
    message = f"{path}: variable 'X' has 30 rows and variable 'y' has 4 entries. Both must describe the same rows."
    assert refusal(open_source, path) == message
    assert refusal(open_source(path, y_name=None).require_labels) == (
        f"{path}: has no labels. Name their variable with --y (y_name=): the file has 'label'."
    )


def test_damaged_files_are_one_line(tmp_path):
    path = save(tmp_path / "a.mat", X=X)
    whole = path.read_bytes()
    for content in (b"", whole[:300], whole[:150], b"no numbers" * 99):
        path.write_bytes(content)
        message = refusal(open_source, path)
        assert message.startswith(f"{path}: is no whole MATLAB file (") and "\n" not in message
        assert message.endswith("): damaged, cut short or of another format. Save it again.")
    path.write_bytes(whole)
    source = open_source(path, y_name=None)
    path.unlink()
    assert refusal(source.read_selector, "X", 0, 1) == f"{path}: cannot be read (No such file or directory)."


@pytest.mark.skipif(not REAL_FILES.is_dir(), reason="this scipy comes without its test files")
def test_files_of_matlab_itself():
    """Of 100 files of MATLAB 4 to 8, each variable is read as scipy reads it, or refused."""
    outcomes = []
    for path in sorted(REAL_FILES.glob("*.mat")):
        try:
            names = [name for name, _, _ in scipy.io.whosmat(path)]
        except Exception:
            names = ["X"]
        for name in names:
            try:
                source = open_source(path, x=name)
            except DataError as error:
                assert str(path) in str(error) and "\n" not in str(error)
                outcomes.append("refused")
                continue
            own = scipy.io.loadmat(path)[name]
            own = own.toarray() if scipy.sparse.issparse(own) else own
            np.testing.assert_array_equal(dense(source.read(0, source.n_rows)), own)
            outcomes.append("read")
    assert outcomes.count("read") >= 40 and outcomes.count("refused") >= 40
    source = open_source(REAL_FILES / "testhdf5_7.4_GLNX86.mat", x="testdouble")
    np.testing.assert_allclose(source.read(0, 1).X[0], np.linspace(0, 2 * np.pi, 9))
