"""`open_source`: the shared checks over all sources, dispatch by object, suffix and content, and its messages."""

import os
import shutil

import h5py
import numpy as np
import pyarrow.parquet
import pytest

from linadd.errors import ConfigError
from linadd.sources import ARRAY_SOURCES, FILE_SOURCES, SOURCES, open_source
from linadd.sources.columns import ColumnSource
from linadd.sources.files import FilesSource
from linadd.sources.renames import RenamedSource
from linadd.sources.where import WhereSource
from tests.checks.check_mutated import CASES as MUTATED
from tests.checks.check_mutated import check_mutants
from tests.checks.check_source import BUILDERS, CHECKS, WITHOUT_TEXT, open_table, position_table, refusal


@pytest.fixture
def table(tmp_path):
    """A small table in one file a format: suffix -> path."""
    X, y, _ = position_table(6, 2)
    np.save(tmp_path / "table.npy", X)
    np.savez(tmp_path / "table.npz", X=X, y=y)
    with h5py.File(tmp_path / "table.h5", "w") as file:
        file["X"], file["y"] = X, y
        file["part/X"], file["part/y"] = X[:4], y[:4]
    (tmp_path / "table.svm").write_text("1 1:0.5 2:1\n2 2:3\n")
    (tmp_path / "table.csv").write_text("a,b,y\n1,2,0\n3,4,1\n")
    pyarrow.parquet.write_table(pyarrow.table({"a": X[:, 0], "y": y}), tmp_path / "table.parquet")
    return {path.suffix: path for path in tmp_path.iterdir()}


CASES = [(name, check) for name in BUILDERS for check in CHECKS if name not in WITHOUT_TEXT or check != "text_labels"]


@pytest.mark.parametrize(("name", "check"), CASES)
def test_source(name, check, tmp_path):
    CHECKS[check](name, tmp_path)


@pytest.mark.parametrize("name", MUTATED)
def test_damaged_files_read_right_or_are_refused(name, tmp_path):
    check_mutants(name, tmp_path)


def test_every_source_of_the_lists_is_checked(tmp_path):
    built = set()
    for name in BUILDERS:
        (tmp_path / name).mkdir()
        built.add(type(open_table(name, tmp_path / name, *position_table(5, 2))))
    assert built == {*ARRAY_SOURCES, *FILE_SOURCES, ColumnSource, FilesSource, RenamedSource, WhereSource}


def test_suffix_decides_and_else_the_content(table, tmp_path):
    for suffix, path in table.items():
        assert type(open_source(path)) is SOURCES[suffix]
        shutil.copy(path, tmp_path / "data.unknown")
        assert type(open_source(str(tmp_path / "data.unknown"))) is SOURCES[suffix]
    shutil.copy(table[".svm"], tmp_path / "a9a.t")
    assert open_source(tmp_path / "a9a.t").n_rows == 2


def test_the_longest_existing_file_name_wins(table, tmp_path):
    path = table[".h5"]
    assert open_source(f"{path}::part").n_rows == open_source(path, group="part").n_rows == 4
    assert open_source(f"{path}::").n_rows == 6
    shutil.copy(path, f"{path}::part")
    assert open_source(f"{path}::part").n_rows == 6
    assert open_source(f"{path}::part::part").n_rows == 4


def test_a_source_is_taken_with_other_chunks_and_rows(table):
    source = open_source(table[".npz"])
    other = open_source(source, chunk_rows=2, where={"y": [0, 2]})
    assert other.n_rows == 4 and other.chunk_rows == 2 and source.chunk_rows != 2
    assert "has no meaning for an open source" in refusal(open_source, source, y=[1], error=ConfigError)


def test_missing_files(table, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    assert refusal(open_source, folder / "a.h5") == f"{folder}/a.h5: does not exist. The folder is empty."
    wrong = f"{tmp_path}/tabel.h5"
    near = "The folder has 'table.h5', 'table.svm', 'table.npz' and 4 more."
    assert refusal(open_source, wrong) == f"{wrong}: does not exist. {near}"
    assert refusal(open_source, f"{wrong}::part") == f"{wrong}::part: does not exist. {near}"
    far = f"{tmp_path}/no/table.h5"
    assert refusal(open_source, far) == f"{far}: the folder '{tmp_path}/no' does not exist."
    assert refusal(open_source, tmp_path) == (
        f"{tmp_path}: is a folder, and no Zarr store. Give a file, or a pattern of files in quotes."
    )


def test_a_pipe_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "rows.csv"
    os.mkfifo(path)
    assert refusal(open_source, path) == (
        f"{path}: is a pipe or a device. Rows are read more than once: write them to a file first."
    )


def test_unknown_formats(tmp_path):
    path = tmp_path / "table.xls"
    path.write_text("a table")
    assert refusal(open_source, path) == (
        f"{path}: the format is unknown: neither its suffix '.xls' nor its content is one of .h5, .hdf5, .hdf, .he5, "
        ".mat, .npy, .npz, .zarr, .zip, .parquet, .pq, .libsvm, .svmlight, .svm, .csv, .tsv, .bz2, .gz, .xz. Convert "
        "it to one of them."
    )


@pytest.mark.parametrize(
    ("suffix", "options", "message"),
    [
        (".npy", {"group": "g"}, "group='g' has no meaning for .npy. Leave it out."),
        (".npy", {"x": "A"}, "x='A' has no meaning for .npy. Leave it out."),
        (".npz", {"index_base": 1}, "index_base=1 has no meaning for .npz. Leave it out."),
        (".npz", {"y": [1, 2]}, "y is an array; for .npz it must be the name of one in the file."),
        (".h5", {"index_base": 0}, "index_base=0 has no meaning for HDF5. Leave it out."),
        (".h5", {"y": [1, 2]}, "y is an array; for HDF5 it must be the name of a dataset."),
        (".svm", {"y_name": "label"}, "y='label' has no meaning for libsvm text. Leave it out."),
        (".svm", {"weights": [1, 2]}, "weights=an array has no meaning for libsvm text. Leave it out."),
    ],
)
def test_options_without_meaning_are_refused(table, suffix, options, message):
    assert refusal(open_source, table[suffix], error=ConfigError, **options) == f"{table[suffix]}: {message}"


def test_options_of_arrays(table):
    X = np.ones((2, 2))
    message = "array: group='g' has no meaning for data in memory. Leave it out."
    assert refusal(open_source, X, group="g", error=ConfigError) == message
    message = "array: y='label' has no meaning for data in memory. Leave it out."
    assert refusal(open_source, X, y_name="label", error=ConfigError) == message
    message = "chunk_rows is 0. Give a whole number of rows, at least 1."
    assert refusal(open_source, X, chunk_rows=0, error=ConfigError) == message
    message = "where is 'part=1'. Give a dict of lists of values, as {'part': ['1', '2']}."
    assert refusal(open_source, X, where="part=1", error=ConfigError) == message
    path = f"{table['.h5']}::part"
    message = f"{path}: the group is given twice, as 'part' and 'other'. Give it once."
    assert refusal(open_source, path, group="other", error=ConfigError) == message


def test_a_wanted_width(table):
    assert open_source(table[".h5"], n_features=2).n_features == 2
    message = f"{table['.h5']}: has 2 features; 3 are needed. Give data of the same columns."
    assert refusal(open_source, table[".h5"], n_features=3) == message
    assert open_source(table[".svm"], n_features=3).n_features == 3


def test_missing_labels_name_the_remedy(table, tmp_path):
    (tmp_path / "none.svm").write_text("1:2\n")
    np.savez(tmp_path / "none.npz", X=np.ones((2, 2)), label=[1, 2])
    with h5py.File(tmp_path / "none.h5", "w") as file:
        file["X"], file["label"], file["other"] = np.ones((2, 2)), [1, 2], [1, 2, 3]
    remedies = {
        tmp_path / "none.svm": "Lead every line with its label, as in `1 3:0.5 7:2`.",
        tmp_path / "none.npz": "Name their array with --y (y_name=): the file has 'label'.",
        tmp_path / "none.h5": "Name their dataset with --y (y_name=): the file has 'label'.",
        table[".npy"]: "Give them as another .npy file with --y (in Python: y=array).",
    }
    for path, remedy in remedies.items():
        assert refusal(open_source(path).require_labels) == f"{path}: has no labels. {remedy}"
    assert refusal(open_source(np.ones((2, 2))).require_labels) == "array: has no labels. Give y."
    open_source(table[".h5"]).require_labels()


def test_labels_can_be_left_out(table):
    for suffix in (".h5", ".npz", ".svm", ".npy"):
        source = open_source(table[suffix], y_name=None)
        assert not source.has_labels and source.read(0, 2).y is None
