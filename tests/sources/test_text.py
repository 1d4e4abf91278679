"""Blocks of whole lines, and compressed text unpacked once and removed."""

import bz2
import copy
import gc
import gzip
import io
import lzma
import pickle
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linadd.sources import text as module
from linadd.sources.text import PlainText, line_blocks
from tests.checks.check_source import refusal


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("text") / "file"


@given(st.lists(st.text("ab", max_size=9)), st.booleans(), st.integers(1, 12))
@settings(deadline=None, derandomize=True)
def test_blocks_are_whole_lines_that_make_up_the_file(scratch, lines, ends_in_newline, block_bytes):
    content = "\n".join(lines).encode() + b"\n" * ends_in_newline
    scratch.write_bytes(content)
    at = 0
    for text, offset in line_blocks(scratch, block_bytes=block_bytes):
        piece = text.tobytes()
        assert offset == at and piece.endswith(b"\n")
        assert piece in (content[at : at + len(piece)], content[at:] + b"\n")
        at += len(piece)
    assert at in (len(content), len(content) + 1) and at >= len(content)


def test_a_part_of_a_file(scratch):
    scratch.write_bytes(b"one\ntwo\nthree\nfour")
    assert [text.tobytes() for text, _ in line_blocks(scratch, 4, 14, block_bytes=3)] == [b"two\n", b"three\n"]
    assert [text.tobytes() for text, _ in line_blocks(scratch, 14)] == [b"four\n"]
    assert list(line_blocks(scratch, 18)) == []


def test_blocks_are_bounded(scratch):
    scratch.write_bytes(b"x" * 9 + b"\n" + b"y\n" * 1000)
    assert max(len(text) for text, _ in line_blocks(scratch, block_bytes=64)) <= 64


def test_a_long_line_takes_few_reads(scratch, monkeypatch):
    scratch.write_bytes(b"x" * 5000 + b"\n")
    sizes = []

    class Counted(io.FileIO):
        def read(self, size=-1):
            sizes.append(size)
            return super().read(size)

    monkeypatch.setattr(module, "open", lambda path, mode, buffering: Counted(path, mode), raising=False)
    assert [len(block) for block, _ in line_blocks(scratch, block_bytes=1)] == [5001]
    assert len(sizes) <= 14


@pytest.mark.parametrize(("suffix", "pack"), [(".bz2", bz2.compress), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_text_is_unpacked_and_removed(tmp_path, suffix, pack, caplog):
    path = str(tmp_path / f"a{suffix}")
    (tmp_path / f"a{suffix}").write_bytes(pack(b"some text\n"))
    with caplog.at_level("INFO", logger="linadd.sources.text"):
        text = PlainText(path)
    assert caplog.messages == [f"{path}: unpacking to the temporary file {text.path}"]
    unpacked = tmp_path.joinpath(text.path)
    assert unpacked.read_bytes() == b"some text\n" and not text.has_changed()
    text.remove()
    assert not unpacked.exists()
    text.remove()
    unpacked = tmp_path.joinpath(PlainText(path).path)
    gc.collect()
    assert not unpacked.exists()


def test_copies_unpack_anew_only_where_they_must(tmp_path):
    path = str(tmp_path / "a.gz")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"some text\n"))
    text = PlainText(path)
    pickled = pickle.dumps(text)
    beside = pickle.loads(pickled)
    assert beside.path == text.path
    del beside
    gc.collect()
    assert not text.has_changed()
    text.remove()
    anew = pickle.loads(pickled)
    assert anew.path != text.path and tmp_path.joinpath(anew.path).read_bytes() == b"some text\n"


def test_plain_text_stays_where_it_is(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"1\n")
    plain = PlainText(str(path))
    copy.copy(plain).remove()
    assert plain.path == str(path) and path.exists() and not plain.has_changed()
    path.write_bytes(b"12\n")
    assert plain.has_changed()


@pytest.mark.parametrize(("suffix", "pack"), [(".bz2", bz2.compress), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_damaged_archives_are_one_line(tmp_path, suffix, pack, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / f"a{suffix}"
    whole = pack(np.random.default_rng(0).bytes(1000))
    middle = bytearray(whole)
    middle[len(whole) // 2 : len(whole) // 2 + 9] = bytes(9)
    for content in (b"no archive", whole[: len(whole) // 2], bytes(middle)):
        path.write_bytes(content)
        message = refusal(PlainText, str(path))
        assert message.startswith(f"{path}: cannot be unpacked to {tmp_path} (") and "\n" not in message
        assert message.endswith("). Check the file and the space there.")
    gc.collect()
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_full_temporary_folder_is_one_line(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"some text\n"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "copyfileobj", fail)
    assert refusal(PlainText, str(path)) == (
        f"{path}: cannot be unpacked to {tmp_path} (No space left on device). Check the file and the space there."
    )
