"""HDF5 files that are whole or absent, and that go on after a kill at any moment, with a torn write too."""

import errno
import logging
import os
import resource
import shutil
import signal

import h5py
import numpy as np
import pytest

from linadd.atomic import writing
from linadd.errors import DataError
from linadd.sources import part_file
from linadd.sources.part_file import PartFile
from tests.checks.check_source import refusal

ROWS, WIDTH, STEP = 300, 100, 50


def fill(path, opened=PartFile, n_rows=ROWS, width=WIDTH):
    """Write a table and its texts in batches, with a checkpoint whenever one is due; returns the rows kept before."""
    with writing(path), opened(path, "k") as part:
        first = part.state.get("rows", 0)
        with part.hdf5(cache_bytes=1 << 16) as file:
            if not first:
                file.create_dataset("X", (n_rows, width), "f8", chunks=(20, width), compression="gzip")
                file.create_dataset("y", (n_rows,), h5py.string_dtype())
            for start in range(first, n_rows, STEP):
                rows = np.arange(start, min(start + STEP, n_rows))
                file["X"][rows[0] : rows[-1] + 1] = rows[:, None] + np.sin(np.arange(width) * rows[:, None])
                file["y"][rows[0] : rows[-1] + 1] = [f"row {row}" for row in rows]
                part.check()
                if part.is_due:
                    file.flush()
                    part.checkpoint({"rows": int(rows[-1]) + 1})
        part.checkpoint({"rows": n_rows})
        part.finish()
    return first


def is_whole(path, n_rows=ROWS, width=WIDTH):
    """Whether a file holds the table."""
    rows = np.arange(n_rows)[:, None]
    with h5py.File(path) as file:
        assert file.id.get_filesize() == os.path.getsize(path)
        texts = file["y"].asstr()[:].tolist()
        assert texts == [f"row {row}" for row in range(n_rows)]
        return (file["X"][:] == rows + np.sin(np.arange(width) * rows)).all()


@pytest.fixture
def often(monkeypatch):
    """Checkpoints after every few batches."""
    monkeypatch.setattr(part_file, "CHECKPOINT_BYTES", 60_000)


def test_a_file_in_one_go(tmp_path):
    assert fill(tmp_path / "a.h5") == 0 and is_whole(tmp_path / "a.h5")
    assert os.listdir(tmp_path) == ["a.h5"]


def test_attributes_of_any_length(tmp_path):
    names = [f"feature number {j}" for j in range(10_000)]
    with PartFile(tmp_path / "a.h5", "k") as part:
        with part.hdf5() as file:
            file.attrs["feature_names"] = names
        part.checkpoint({"rows": 0})
        part.finish()
    with h5py.File(tmp_path / "a.h5") as file:
        assert file.attrs["feature_names"].tolist() == names
    assert os.listdir(tmp_path) == ["a.h5"]


def test_a_kill_at_any_write(tmp_path, often, monkeypatch):
    """What the disk holds in the middle of each write is gone on with, or begun anew, to the same values."""
    kept, states, write_at = set(), [], part_file.write_at

    def torn(file, data, position):
        view = memoryview(data)
        write_at(file, view[: len(view) // 2], position)
        states.append(tmp_path / f"state{len(states)}")
        shutil.copytree(tmp_path / "run", states[-1])
        write_at(file, view[len(view) // 2 :], position + len(view) // 2)

    (tmp_path / "run").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(part_file, "write_at", torn)
        fill(tmp_path / "run" / "a.h5")
    for state in states:
        kept.add(fill(state / "a.h5"))
        assert is_whole(state / "a.h5")
    assert len(states) > 40 and len(kept) > 3 and 0 in kept


def test_changes_below_a_checkpoint_lie_in_pages_until_the_next(tmp_path):
    with PartFile(tmp_path / "a", "k") as part:
        part.write(bytes(range(200)) * 100)
        part.checkpoint({"rows": 1})
        part.seek(4090)
        part.write(b"x" * 10)
        part.seek(19_998)
        part.write(b"y" * 5)
        assert sorted(part.pages) == [0, 1, 4] and part.size == 20_003
        assert (tmp_path / "a.part").read_bytes()[:20_000] == bytes(range(200)) * 100
        part.seek(4080)
        assert part.read(30)[10:20] == b"x" * 10
        part.seek(19_990)
        assert part.read(20)[8:] == b"yyyyy" + bytes(7) and part.tell() == 20_010
        part.checkpoint({"rows": 2})
        after = (tmp_path / "a.part").read_bytes()
        assert after[4090:4100] == b"x" * 10 and after[19_998:] == b"yyyyy" and not part.pages
        part.truncate(19_000)
        part.checkpoint({"rows": 3})
        assert (tmp_path / "a.part").stat().st_size == 19_000
        part.error = OSError(errno.EIO, "broken")
        with pytest.raises(OSError, match="broken"):
            part.checkpoint({"rows": 3})


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError, OSError])
def test_a_failure_keeps_the_last_checkpoint(tmp_path, often, failure, caplog):
    class Stopping(PartFile):
        def check(self):
            super().check()
            if self.state.get("rows", 0) >= 100:
                raise failure

    with pytest.raises(failure if failure is not OSError else DataError):
        fill(tmp_path / "a.h5", Stopping)
    assert sorted(os.listdir(tmp_path)) == ["a.h5.part", "a.h5.part.log"]
    message = f"{tmp_path}/a.h5.part: keeps what was written; the same command goes on from there"
    assert [each.getMessage() for each in caplog.records] == [message]
    assert fill(tmp_path / "a.h5") >= 100 and is_whole(tmp_path / "a.h5")
    assert os.listdir(tmp_path) == ["a.h5"]


@pytest.mark.parametrize("state", [{}, {"rows": 5}])
def test_faulty_data_leave_nothing(tmp_path, state):
    with pytest.raises(DataError), PartFile(tmp_path / "a.h5", "k") as part:
        if state:
            part.checkpoint(state)
        raise DataError("is bad")
    with pytest.raises(KeyboardInterrupt), PartFile(tmp_path / "a.h5", None if state else "k") as part:
        if state:
            part.checkpoint(state)
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_another_key_begins_anew_and_the_log_says_so(tmp_path, caplog):
    caplog.set_level(logging.INFO, "linadd.sources.part_file")
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), PartFile(tmp_path / "a.h5", "k") as part:
            part.checkpoint({"rows": 5})
            raise KeyboardInterrupt
    with PartFile(tmp_path / "a.h5", "other") as part:
        assert part.state == {} and part.size == 0
    message = f"{tmp_path}/a.h5.part: is of another source or of other options; begins anew"
    assert message in [each.getMessage() for each in caplog.records] and os.listdir(tmp_path) == []


@pytest.mark.parametrize("limit", [1000, 130_000, 200_000])
def test_a_full_disk_is_one_line_and_no_crash(tmp_path, often, limit):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    path = tmp_path / "a.h5"
    try:
        message = refusal(fill, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert message == f"{path}: cannot be written (File too large). Free space there or give another path."
    assert os.listdir(tmp_path) == [] if limit == 1000 else not path.exists()
    assert (fill(path) > 0) == (limit > 1000) and is_whole(path)


def test_one_process_at_a_time(tmp_path):
    with PartFile(tmp_path / "a.h5", "k"):
        message = f"{tmp_path}/a.h5.part: is being written by another process. Wait for it, or stop it."
        assert refusal(PartFile, tmp_path / "a.h5", "k") == message


def test_files_of_its_names_that_are_not_its_own(tmp_path):
    (tmp_path / "a.h5.part").write_bytes(b"mine")
    message = f"{tmp_path}/a.h5.part: stands in the place of the part of a file that is written. Remove or rename it."
    assert refusal(PartFile, tmp_path / "a.h5", "k") == message
    message = "stands in the place of the log of a file that is written. Remove or rename it."
    for content in (b"mine", b"[1]", b'{"format": 2}'):
        (tmp_path / "a.h5.part.log").write_bytes(content)
        assert refusal(PartFile, tmp_path / "a.h5", "k") == f"{tmp_path}/a.h5.part.log: {message}"
        assert (tmp_path / "a.h5.part").read_bytes() == b"mine"


def test_a_target_that_cannot_be(tmp_path):
    message = f"{tmp_path}: is a folder. Give the name of a file in it."
    assert refusal(PartFile, tmp_path, "k") == message
