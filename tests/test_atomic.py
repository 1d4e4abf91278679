"""A target is whole or absent, whatever happens while it is written."""

import errno
import os
import stat

import pytest

from linadd.atomic import atomic_folder, atomic_path, check_writable
from linadd.errors import DataError


def test_target_appears_only_when_the_block_is_left(tmp_path):
    target = tmp_path / "model.safetensors"
    with atomic_path(target) as temporary:
        assert temporary.parent == tmp_path and temporary.suffix == ".safetensors" and temporary.exists()
        temporary.write_bytes(b"whole")
        assert not target.exists()
    assert target.read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["model.safetensors"]


@pytest.mark.parametrize("failure", [ValueError("broken"), KeyboardInterrupt(), SystemExit(1)])
def test_a_failure_keeps_the_old_target_and_removes_the_temporary_file(tmp_path, failure):
    target = tmp_path / "out.h5"
    target.write_bytes(b"old")
    with pytest.raises(type(failure)), atomic_path(target) as temporary:
        temporary.write_bytes(b"half")
        raise failure
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.h5"]


def test_a_full_disk_is_one_line(tmp_path):
    target = tmp_path / "out.h5"
    with pytest.raises(DataError) as error, atomic_path(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert str(error.value) == (
        f"{target}: cannot be written (No space left on device). Free space there or give another path."
    )
    assert os.listdir(tmp_path) == []


def test_permission_bits_follow_the_old_target_or_the_umask(tmp_path):
    target = tmp_path / "out"
    with atomic_path(target):
        pass
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~umask
    target.chmod(0o600)
    with atomic_path(target):
        pass
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic_path(tmp_path / "link") as temporary:
        temporary.write_bytes(b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"new"


def test_check_writable_leaves_nothing_behind(tmp_path):
    check_writable(tmp_path / "out.h5")
    assert os.listdir(tmp_path) == []


def refused(path):
    """The message of both functions for a target that neither accepts."""
    with pytest.raises(DataError) as early:
        check_writable(path)
    with pytest.raises(DataError) as late, atomic_path(path):
        raise AssertionError("the block must not run")
    assert str(early.value) == str(late.value)
    return str(early.value)


def test_messages(tmp_path, monkeypatch):
    assert refused(tmp_path) == f"{tmp_path}: is a folder. Give the name of a file in it."
    assert refused("") == "the name '' of the file to write is empty. Give it a name."
    lost = tmp_path / "no" / "out.h5"
    assert refused(lost) == f"{lost}: the folder '{tmp_path}/no' does not exist. Create it first."
    assert refused("/dev/null") == "/dev/null: is not a regular file. Give another name."
    long = tmp_path / ("x" * 10 + "." + "y" * 250)
    assert refused(long) == f"{long}: cannot be written (File name too long). Free space there or give another path."
    kept = tmp_path / "kept"
    kept.write_bytes(b"")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anything, so the bits are played
    assert refused(kept) == f"{kept}: exists and is write-protected. Give another name or `chmod u+w` it."


def test_files_that_belong_together_appear_together(tmp_path):
    target = tmp_path / "m.c"
    (tmp_path / "m.h").write_bytes(b"old")
    (tmp_path / "m.h").chmod(0o600)
    with atomic_folder(target) as temporary:
        assert temporary.name == "m.c" and temporary.parent.parent == tmp_path and not os.listdir(temporary.parent)
        temporary.write_bytes(b"code")
        temporary.with_suffix(".h").write_bytes(b"header")
        assert not target.exists() and (tmp_path / "m.h").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["m.c", "m.h"]
    assert target.read_bytes() == b"code" and (tmp_path / "m.h").read_bytes() == b"header"
    assert stat.S_IMODE((tmp_path / "m.h").stat().st_mode) == 0o600


def test_of_files_that_belong_together_nothing_is_left_after_a_failure(tmp_path):
    (tmp_path / "m.h").write_bytes(b"old")
    with pytest.raises(ValueError, match="broken"), atomic_folder(tmp_path / "m.c") as temporary:
        temporary.with_suffix(".h").write_bytes(b"half")
        raise ValueError("broken")
    assert os.listdir(tmp_path) == ["m.h"] and (tmp_path / "m.h").read_bytes() == b"old"
