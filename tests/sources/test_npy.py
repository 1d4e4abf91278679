""".npy without a memory map, .npz by names, and damage to either."""

import numpy as np
import pytest

from linadd.errors import ConfigError
from linadd.sources import npy, open_source
from tests.checks.check_source import position_table, refusal

X, Y, WEIGHT = position_table(40, 3, "float32")


def test_only_the_rows_asked_for_are_read(tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", X)
    source = open_source(tmp_path / "X.npy")
    sizes, read_into = [], npy.read_into

    def note(file, position, target, path):
        sizes.append(target.nbytes)
        read_into(file, position, target, path)

    monkeypatch.setattr(npy, "read_into", note)
    assert source.read(10, 15).X.tolist() == X[10:15].tolist()
    assert sizes == [5 * 3 * 4]


def test_short_reads_are_continued(tmp_path):
    class Trickle:
        """A file that gives at most seven bytes a call, as a network file system may."""

        def __init__(self, data):
            self.data, self.at = data, 0

        def seek(self, position):
            self.at = position

        def readinto(self, view):
            piece = self.data[self.at : self.at + min(7, len(view))]
            view[: len(piece)] = piece
            self.at += len(piece)
            return len(piece)

    target = np.empty((4, 3), np.float32)
    npy.read_into(Trickle(b"...." + X[:4].tobytes()), 4, target, "f")
    np.testing.assert_array_equal(target, X[:4])
    message = "f: ends before its last row. It changed while it was read: write it again."
    assert refusal(npy.read_into, Trickle(X[:2].tobytes()), 4, target, "f") == message


@pytest.mark.parametrize("dtype", [">f4", "float16", "bool", ">i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_stored_types(tmp_path, dtype, order):
    table = (X % 7).astype(dtype, order=order)
    np.save(tmp_path / "X.npy", table)
    np.testing.assert_array_equal(open_source(tmp_path / "X.npy").read(3, 30).X, table[3:30])


def test_labels_and_weights_of_npy_come_from_arrays_or_files(tmp_path):
    for name, array in (("X", X), ("labels", np.array(["a", "b", "c"])[Y]), ("w", WEIGHT)):
        np.save(tmp_path / f"{name}.npy", array)
    path = tmp_path / "X.npy"
    assert not open_source(path).has_labels
    beside = open_source(path, y_name="labels.npy", weights="w.npy").read(4, 6)
    assert beside.y.tolist() == ["b", "c"] and beside.weight.tolist() == [1.0, 1.25]
    given = open_source(path, Y, weights=WEIGHT).read(4, 6)
    assert given.y.tolist() == [1, 2] and given.weight.tolist() == [1.0, 1.25]
    message = f"{path}: the array has 40 rows and y has 2 entries. Both must describe the same rows."
    assert refusal(open_source, path, [1, 2]) == message
    message = f"{tmp_path}/none.npy: cannot be read (No such file or directory)."
    assert refusal(open_source, path, y_name="none.npy") == message


def test_npz_is_loaded_once(tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    source = open_source(tmp_path / "a.npz", chunk_rows=7)
    monkeypatch.setattr(np, "load", lambda *args, **kwargs: pytest.fail("the archive is read again"))
    assert sum(chunk.n_rows for chunk in source.chunks()) == 40


def test_names_in_npz(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=X, y=Y, feature_names=["a", "b", "c"], class_names=["u", "v", "w"], part=Y, other=X)
    source = open_source(path)
    assert source.feature_names == ["a", "b", "c"] and source.class_names == ["u", "v", "w"]
    assert source.selectors() == ["y", "part"]
    there = (
        "'X' (40, 3) float32, 'y' (40,) int64, 'feature_names' (3,) <U1, 'class_names' (3,) <U1, 'part' (40,) int64, "
        "'other' (40, 3) float32"
    )
    message = f"{path}: array 'Q' does not exist. There are {there}. Name one with --x."
    assert refusal(open_source, path, x="Q") == message
    message = f"{path}: array 'Q' does not exist. There are {there}. Name one with --y."
    assert refusal(open_source, path, y_name="Q") == message
    message = f"{path}: weights is an array; for .npz it must be the name of one in the file."
    assert refusal(open_source, path, weights=WEIGHT, error=ConfigError) == message
    message = f"{path}: array 'X' has 40 rows and array 'part' has 3 entries. Both must describe the same rows."
    np.savez(path, X=X, part=Y[:3])
    assert refusal(open_source, path, y_name="part") == message
    np.savez(path, X=X, feature_names=["a"])
    assert refusal(open_source, path) == f"{path}: feature_names has 1 names for 3 columns. Correct it."


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_damaged_files_are_one_line(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    np.save(path, X) if suffix == ".npy" else np.savez_compressed(path, X=X)
    whole = path.read_bytes()
    for content in (b"", b"no numbers" * 99):
        path.write_bytes(content)
        remedy = "Name it by its format, or write it again."
        assert refusal(open_source, path) == f"{path}: is named as a NumPy file, but holds none. {remedy}"
    for content in (whole[:20], whole[: len(whole) // 2]):
        path.write_bytes(content)
        message = refusal(open_source, path)
        assert message.startswith(f"{path}: is no whole NumPy file (")
        assert message.endswith("): damaged, cut short or of another format. Write it again.") and "\n" not in message


def test_damage_inside_an_archive_is_one_line(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=X)
    content = bytearray(path.read_bytes())
    content[200:210] = b"\xff" * 10
    path.write_bytes(content)
    assert refusal(open_source, path) == (
        f"{path}: is no whole NumPy file (Bad CRC-32 for file 'X.npy'): damaged, cut short or of another format. "
        "Write it again."
    )


def test_objects_are_refused(tmp_path):
    table = np.array([[1, {}]], object)
    np.save(tmp_path / "a.npy", table)
    np.savez(tmp_path / "a.npz", X=table)
    for path in (tmp_path / "a.npy", tmp_path / "a.npz"):
        assert refusal(open_source, path) == (
            f"{path}: holds Python objects (dtype object); features and labels must be numbers or text. Store them so."
        )


def test_tables_that_are_refused(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, X[:0])
    message = f"{path}: the array has shape (0, 3): no rows. Give data that have some."
    assert refusal(open_source, path) == message
    np.save(path, Y)
    assert refusal(open_source, path).startswith(f"{path}: the array has shape (40,); a table of rows and features")
    np.save(path, X)
    source = open_source(path)
    path.write_bytes(path.read_bytes()[:-4])
    message = f"{path}: ends before its last row. It changed while it was read: write it again."
    assert refusal(source.read, 30, 40) == message
    path.unlink()
    assert refusal(source.read, 30, 40) == f"{path}: cannot be read (No such file or directory)."


@pytest.mark.parametrize(("order", "layout"), [("C", {}), ("F", {"chunks": [5, 1]})])
def test_the_layout_is_told(tmp_path, order, layout):
    np.save(tmp_path / "a.npy", np.ones((5, 3), order=order))
    assert open_source(tmp_path / "a.npy").layout() == layout | {"bytes": 120}
