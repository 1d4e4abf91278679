"""Kept censuses: the same bits as new ones, never of other data, and never in the way."""

import bz2
import logging
import os
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.sparse

from linadd import census_cache as module
from linadd.census_cache import kept_census, user_folder
from linadd.cli import main
from linadd.options import Options
from linadd.search import search
from linadd.sources import open_source
from linadd.train import train
from tests.test_census import assert_same_bits

N_ROWS = 1300


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of kept censuses; small files that were just written are kept too."""
    monkeypatch.setattr(module, "LEAST_BYTES", 0)
    monkeypatch.setattr(module, "SETTLED_NS", -(10**15))
    monkeypatch.setenv("LINADD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def all_log(caplog):
    caplog.set_level(logging.INFO, "linadd")


def said_by(caplog):
    """Lines of log of this module."""
    return [record.message for record in caplog.records if record.name == module.__name__]


def rows():
    """Features with gaps, labels, weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, 4)).astype(np.float32)
    return X * (rng.random(X.shape) < 0.4), (X[:, 0] + rng.standard_normal(N_ROWS) > 0).astype(int), rng.random(N_ROWS)


def write_h5(folder, name="a.h5", **changes):
    X, y, weight = rows()
    with h5py.File(folder / name, "w") as file:
        for key, values in ({"X": X, "y": y, "weight": weight} | changes).items():
            file[key] = values
    return folder / name


def write_npy(folder):
    X, y, _ = rows()
    np.save(folder / "a.npy", X)
    np.save(folder / "y.npy", y)
    return folder / "a.npy"


def write_npz(folder):
    X, y, _ = rows()
    np.savez(folder / "a.npz", X=X, y=np.array(["no", "yes, é"])[y])
    return folder / "a.npz"


def libsvm_text():
    X, y, _ = rows()
    entries = [" ".join(f"{j + 1}:{x}" for j, x in enumerate(row) if x) for row in X]
    return "".join(f"{label} {row}\n" for label, row in zip(y, entries, strict=True))


def write_libsvm(folder):
    (folder / "a.libsvm").write_text(libsvm_text())
    return folder / "a.libsvm"


def write_bz2(folder):
    (folder / "a.bz2").write_bytes(bz2.compress(libsvm_text().encode()))
    return folder / "a.bz2"


def frame():
    import pandas as pd

    X, y, _ = rows()
    return pd.DataFrame(X, columns=["1", "2", "3", "4"]).assign(y=y)


def write_csv(folder):
    frame().to_csv(folder / "a.csv", index=False)
    return folder / "a.csv"


def write_parquet(folder):
    frame().to_parquet(folder / "a.parquet")
    return folder / "a.parquet"


WRITERS = {
    "h5": write_h5, "npy": write_npy, "npz": write_npz, "libsvm": write_libsvm, "bz2": write_bz2, "csv": write_csv,
    "parquet": write_parquet,
}  # fmt: skip


def opened(path, **options):
    """A source with labels."""
    labels = {"y_name": "y.npy"} if str(path).endswith(".npy") else {}
    return open_source(path, **labels, **options)


def census_of(path, sample_rows=300, seed=0, **options):
    return kept_census(opened(path, **options), sample_rows, seed)


@pytest.mark.parametrize("options", [{}, {"drop": "2"}], ids=["all", "some"])
@pytest.mark.parametrize("name", WRITERS)
def test_a_kept_census_has_the_same_bits(name, options, folder, tmp_path):
    path = WRITERS[name](tmp_path)
    first, second = census_of(path, **options), census_of(path, **options)
    assert (first.n_reads, second.n_reads) == (1, 0)
    assert scipy.sparse.issparse(first.sample) == scipy.sparse.issparse(second.sample)
    if scipy.sparse.issparse(first.sample):
        for part in ("data", "indices", "indptr"):
            one, other = getattr(first.sample, part), getattr(second.sample, part)
            assert one.dtype == other.dtype and (one == other).all()
        first.sample, second.sample = first.sample.toarray(), second.sample.toarray()
    assert first.sample.dtype == second.sample.dtype and first.classes.dtype == second.classes.dtype
    first.n_reads = 0
    assert_same_bits(first, second)


def test_a_model_has_the_same_bits_and_one_read_less(folder, tmp_path, caplog):
    path, options = write_h5(tmp_path), Options(n_bins=5)
    plain = train(open_source(path, cache=False), options)
    assert not folder.exists()
    first, second = (train(open_source(path), options) for _ in range(2))
    assert plain.digest == first.digest == second.digest
    assert plain.summary["reads"] == first.summary["reads"] == second.summary["reads"] + 1
    line = "census: kept from an earlier run, as the data are the same; --no-cache reads them anew"
    assert said_by(caplog) == [line]


def test_a_search_uses_it_for_its_census_and_its_training(folder, tmp_path):
    path, options = write_h5(tmp_path), Options(n_bins=5)
    first, second = (search(open_source(path), options, [0.1, 1.0], 2) for _ in range(2))
    assert first.reads == second.reads + 1 and first.table == second.table


@pytest.mark.parametrize(
    "change",
    [
        {"sample_rows": 299},
        {"seed": 1},
        {"where": {"part": [0]}},
        {"drop": "1"},
        {"features": "1-3"},
        {"y_name": "part"},
        {"weights": False},
        {"weights": "part"},
        {"cache": False},
    ],
    ids=str,
)
def test_other_options_are_another_census(change, folder, tmp_path):
    path = write_h5(tmp_path, part=np.arange(N_ROWS) % 2)
    census_of(path)
    assert census_of(path, **change).n_reads == 1
    assert census_of(path).n_reads == 0


def test_rows_that_are_held_out_are_no_part_of_it(folder, tmp_path):
    path = write_h5(tmp_path)
    kinds = [{}, {"validation": 0.2}, {"validation": 0.3}, {"validation": 0.3, "seed": 1}]
    reads = [train(open_source(path), Options(**kind)).summary["reads"] for kind in kinds]
    again = [train(open_source(path), Options(**kind)).summary["reads"] for kind in kinds]
    assert again == [each - 1 for each in reads]


def test_one_changed_label_is_seen(folder, tmp_path):  # users.md C23
    """The file keeps its size, and its time of modification is put back; the label lies in no sample of the content."""
    path = write_h5(tmp_path)
    before, state = census_of(path), os.stat(path)
    with h5py.File(path, "r+") as file:
        file["y"][700] = 1 - file["y"][700]
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert os.stat(path).st_size == state.st_size and os.stat(path).st_mtime_ns == state.st_mtime_ns
    after = census_of(path)
    assert after.n_reads == 1 and (after.class_counts != before.class_counts).any()


def test_labels_in_a_file_of_their_own_are_seen(folder, tmp_path):
    path = write_npy(tmp_path)
    before = census_of(path)
    y = np.load(tmp_path / "y.npy")
    y[701] = 1 - y[701]
    np.save(tmp_path / "y.npy", y)
    after = census_of(path)
    assert after.n_reads == 1 and (after.class_counts != before.class_counts).any()


def test_any_of_several_files_is_seen(folder, tmp_path):
    paths = [write_h5(tmp_path, f"{i}.h5") for i in range(3)]
    assert [census_of(paths).n_reads for _ in range(2)] == [1, 0]
    os.utime(paths[1])
    assert census_of(paths).n_reads == 1


def test_another_file_of_the_name_is_seen(folder, tmp_path):
    path = write_h5(tmp_path)
    census_of(path)
    os.replace(write_h5(tmp_path, "b.h5"), path)
    assert census_of(path).n_reads == 1


def test_a_file_that_changes_while_it_is_read_is_not_kept(folder, tmp_path):
    path = write_h5(tmp_path)

    def touch(chunk):
        os.utime(path)

    assert kept_census(open_source(path), 10, 0, touch).n_reads == 1
    assert not folder.exists()


def test_rows_in_memory_and_parts_of_other_files_are_not_kept(folder, tmp_path):
    X, y, _ = rows()
    path = write_h5(tmp_path)
    layout = h5py.VirtualLayout((N_ROWS, 4), np.float32)
    layout[:] = h5py.VirtualSource(path, "X", (N_ROWS, 4))
    with h5py.File(tmp_path / "parts.h5", "w") as file:
        file["linked"] = h5py.ExternalLink(path, "X")
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("outside", data=X, external=[(str(tmp_path / "raw"), 0, X.nbytes)])
        file["y"] = y
    sources = [open_source(X, y), open_source(write_npy(tmp_path), y)]
    sources += [open_source(tmp_path / "parts.h5", x=x) for x in ("linked", "virtual", "outside")]
    for source in sources:
        kept_census(source, 0, 0)
        assert source.files() is None
    assert not folder.exists()
    kept_census(open_source(open_source(path)), 0, 0)
    assert len(list(folder.iterdir())) == 1


def test_small_and_fresh_files_are_not_kept(tmp_path, monkeypatch):
    path = write_h5(tmp_path)
    monkeypatch.setenv("LINADD_CACHE", str(tmp_path / "cache"))
    for least, settled, is_kept in ((10**6, -(10**15), False), (0, 10**15, False), (0, -(10**15), True)):
        monkeypatch.setattr(module, "LEAST_BYTES", least)
        monkeypatch.setattr(module, "SETTLED_NS", settled)
        census_of(path)
        assert (tmp_path / "cache").exists() == is_kept
    assert census_of(path).n_reads == 0


@pytest.mark.parametrize("damage", ["cut", "byte", "empty", "text", "key"])
def test_a_damaged_file_is_taken_anew(damage, folder, tmp_path, caplog):
    path = write_h5(tmp_path)
    census_of(path)
    (kept,) = folder.iterdir()
    content = bytearray(kept.read_bytes())
    if damage == "byte":
        content[len(content) // 2] ^= 255
    if damage == "key":
        with np.load(kept) as archive:
            np.savez(kept, **{**archive, "key": np.array("another")})
    else:
        kept.write_bytes({"cut": content[:-200], "byte": content, "empty": b"", "text": b"nothing"}[damage])
    assert census_of(path).n_reads == 1
    assert census_of(path).n_reads == 0
    line = f"{kept}: the kept census is damaged; the data are read anew"
    assert said_by(caplog)[:-1] == ([] if damage == "key" else [line])


def test_a_folder_that_cannot_be_written_is_a_line_of_log(tmp_path, monkeypatch, folder, caplog):
    path = write_h5(tmp_path)
    folder.write_text("a file in its place")
    assert census_of(path).n_reads == census_of(path).n_reads == 1
    line = f"census: cannot be kept for the next run ([Errno 17] File exists: '{folder}')"
    assert said_by(caplog) == [line] * 2


def test_a_full_disk_is_a_line_of_log(tmp_path, monkeypatch, folder, caplog):
    path = write_h5(tmp_path)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.np, "savez", full)
    assert census_of(path).n_reads == 1
    assert "(No space left on device)" in caplog.records[-1].message and list(folder.iterdir()) == []


def test_what_was_used_longest_ago_makes_room(tmp_path, monkeypatch, folder):
    paths = [write_h5(tmp_path, f"{i}.h5") for i in range(4)]
    kept = []
    for i, path in enumerate(paths[:3]):
        census_of(path)
        kept += [each for each in folder.iterdir() if each not in kept]
        os.utime(kept[-1], ns=(0, 10**9 * (i + 1)))
    monkeypatch.setattr(module, "MOST_BYTES", 4 * kept[0].stat().st_size - 1)
    assert census_of(paths[0]).n_reads == 0  # used now
    census_of(paths[3])
    assert [each.exists() for each in kept] == [True, False, True] and len(list(folder.iterdir())) == 3
    monkeypatch.setattr(module, "MOST_BYTES", kept[0].stat().st_size)
    census_of(paths[1])
    assert len(list(folder.iterdir())) == 3  # one of that size is not kept at all


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "HOME/.cache/linadd"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/linadd"),
        ("darwin", {}, "HOME/Library/Caches/linadd"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/linadd"),
        ("win32", {}, "HOME/AppData/Local/linadd"),
        ("linux", {"LINADD_CACHE": "/own"}, "/own"),
        ("linux", {"LINADD_CACHE": ""}, None),
    ],
)
def test_the_folder(platform, environment, expected, monkeypatch):
    for name in ("LINADD_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert user_folder() == (expected and Path(expected.replace("HOME", str(Path.home()))))


def test_the_command_line(folder, tmp_path, capsys):
    path = write_h5(tmp_path)
    command = ["train", str(path), str(tmp_path / "m"), "--n-bins", "4"]
    kept = "census: kept from an earlier run, as the data are the same; --no-cache reads them anew\n"
    for options, is_kept in (["--no-cache"], False), ([], False), ([], True), (["--no-cache"], False):
        assert main([*command, *options]) == 0
        assert (kept in capsys.readouterr().err) == is_kept
    assert main(["search", str(path), str(tmp_path / "m"), "-C", "1", "--folds", "1", "--n-bins", "4"]) == 0
    assert capsys.readouterr().err.count(kept) == 2
