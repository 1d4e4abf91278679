"""libsvm text becomes HDF5 of the same values; the files of the table are known by their content."""

import bz2
import gzip
import os
from pathlib import Path

import h5py
import libsvm
import numpy as np
import pytest

from linadd.sources import open_source

DATA = Path(__file__).parents[2] / "../shared/data/libsvm_text"
TEXT = "1 1:0.1 3:-2\n-1 2:5\n1\n"
X = [[0.1, 0, -2], [0, 5, 0], [0, 0, 0]]


def prepare(tmp_path, name, content, *options):
    """Exit code and the table written, if any."""
    (tmp_path / name).write_bytes(content)
    target = tmp_path / "out.h5"
    code = libsvm.main([str(tmp_path / name), str(target), *options])
    if not target.exists():
        return code, None
    with h5py.File(target) as file:
        return code, (file["X"][:], file["y"][:])


@pytest.mark.parametrize(
    "name, pack", [("a.svm", bytes), ("a", bytes), ("a.bz2", bz2.compress), ("a.gz", gzip.compress)]
)
def test_values_are_those_of_the_text(tmp_path, capsys, name, pack):
    code, (table, y) = prepare(tmp_path, name, pack(TEXT.encode()))
    assert code == 0 and table.dtype == np.float64
    np.testing.assert_array_equal(table, X)
    np.testing.assert_array_equal(y, [1, -1, 1])
    target = tmp_path / "out.h5"
    size = target.stat().st_size / 1e6
    assert capsys.readouterr().out == f"{target}: 3 rows, 3 features, float64, {size:.1f} MB\n"


def test_width_base_and_type_can_be_given(tmp_path):
    options = "--n-features", "5", "--index-base", "0", "--dtype", "float32"
    code, (table, _) = prepare(tmp_path, "a", TEXT.encode(), *options)
    assert code == 0 and table.dtype == np.float32
    np.testing.assert_array_equal(table, np.float32(np.pad(X, ((0, 0), (1, 1)))))


def test_a_file_of_the_table_must_be_the_published_one(tmp_path, capsys):
    code, table = prepare(tmp_path, "a9a.t.bz2", bz2.compress(TEXT.encode()))
    assert (code, table) == (1, None)
    assert capsys.readouterr().err == (
        f"{tmp_path}/a9a.t.bz2: a9a.t, rows: 3 where the official set has 16281. Fetch the data again, or use "
        "--unchecked to take other data of this form.\n"
    )
    code, (table, _) = prepare(tmp_path, "a9a.t.bz2", bz2.compress(TEXT.encode()), "--unchecked")
    assert code == 0 and table.shape == (3, 3)


def test_a_test_file_gets_the_width_of_its_training_file(tmp_path, monkeypatch):
    digest = libsvm.digest(open_source(write(tmp_path, "b", TEXT)))
    monkeypatch.setitem(libsvm.PUBLISHED, "known.t", (7, (3, digest)))
    assert prepare(tmp_path, "known.t.gz", gzip.compress(TEXT.encode()))[1][0].shape == (3, 7)
    assert prepare(tmp_path, "known.t", TEXT.encode(), "--n-features", "9")[1][0].shape == (3, 9)


def write(tmp_path, name, text):
    """Path of a file of this text."""
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_the_digest_is_of_the_content(tmp_path):
    digest = libsvm.digest(open_source(write(tmp_path, "a", TEXT)))
    same = "+1 1:1e-1 3:-2.0 \r\n-1\t2:5\r\n\r\n1\r\n"
    assert libsvm.digest(open_source(write(tmp_path, "a", same), n_features=4, chunk_rows=2)) == digest
    for old, new in [("-1", "1"), ("3:-2", "2:-2"), ("2:5", "2:6"), ("3:-2\n-1 2:5", "\n-1 2:5 3:-2")]:
        assert libsvm.digest(open_source(write(tmp_path, "a", TEXT.replace(old, new, 1)))) != digest


def test_bad_text_is_one_line_and_leaves_no_file(tmp_path, capsys):
    code, table = prepare(tmp_path, "a", b"1 0:2\n")
    assert (code, table) == (1, None) and sorted(os.listdir(tmp_path)) == ["a"]
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(not DATA.exists(), reason="../shared/data/libsvm_text is absent")
@pytest.mark.parametrize("name", ["a9a.bz2", "a9a.t.bz2", "ijcnn1.trn.bz2"])
def test_the_real_files_are_the_published_ones(name):
    n_features, (n_rows, digest) = libsvm.PUBLISHED[name.removesuffix(".bz2")]
    with open_source(DATA / name, n_features=n_features) as source:
        assert (source.n_rows, libsvm.digest(source)) == (n_rows, digest)
