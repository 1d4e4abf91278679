"""libsvm files: positions of rows, widths, bases, labels, change under the reader, and the real files."""

import bz2
from pathlib import Path

import numpy as np
import pytest

from linadd._jit import JIT_DISABLED
from linadd.errors import ConfigError
from linadd.sources import libsvm, open_source, text
from linadd.sources.decimals import parse_decimals
from linadd.sources.libsvm import LibsvmSource
from linadd.sources.libsvm_parser import split_lines
from tests.checks.check_source import refusal

DATA = Path(__file__).parents[2] / "../shared/data/libsvm_text"


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("mark_rows", [1, 3, 256])
def test_rows_by_position_for_any_blocks_and_marks(tmp_path, monkeypatch, block_bytes, mark_rows):
    monkeypatch.setattr(text.line_blocks, "__defaults__", (0, None, block_bytes))
    monkeypatch.setattr(libsvm, "MARK_ROWS", mark_rows)
    lines = [f"{i % 3} 1:{i} {i % 5 + 2}:0.5" + "\n# between\n" * (i % 4 == 0) for i in range(20)]
    source = open_source(write(tmp_path / "a.svm", "\r\n".join(lines)))
    assert (source.n_rows, source.n_features, source.n_entries) == (20, 6, 40)
    numbers = np.concatenate([[1], 1 + np.cumsum([1 + 2 * (i % 4 == 0) for i in range(19)])])
    for start, stop in ((0, 20), (0, 1), (2, 7), (6, 9), (19, 20)):
        chunk = source.read(start, stop)
        assert chunk.X.toarray()[:, 0].tolist() == list(range(start, stop))
        assert chunk.y.tolist() == [i % 3 for i in range(start, stop)]
        assert [chunk.row_number(i) for i in range(chunk.n_rows)] == numbers[start:stop].tolist()


def test_a_file_without_gaps_needs_no_row_numbers(tmp_path):
    source = open_source(write(tmp_path / "a.svm", "1 1:1\n2 1:2\n"))
    assert source.read(0, 2).row_numbers is None
    assert source.density == 1.0 and source.read(1, 2).row_number(0) == 2


def test_index_base(tmp_path):
    path = write(tmp_path / "a.svm", "1 0:1 2:1\n-1 1:1\n")
    message = (
        f"{path}, row 1: index 0 in '0:1' is below the first index, 1. Use --index-base 0 if the file counts from 0."
    )
    assert refusal(open_source, path) == refusal(open_source, path, index_base=1) == message
    source = open_source(path, index_base=0)
    assert source.read(0, 2).X.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]
    assert source.fingerprint()["index_base"] == 0
    message = "index_base is 2. It is one of 'auto', 0, 1."
    assert refusal(open_source, path, index_base=2, error=ConfigError) == message


def test_lines_that_do_not_rise_are_sorted_and_said(tmp_path, caplog):
    caplog.set_level("INFO")
    path = write(tmp_path / "a.svm", "1 3:3 1:1\n-1 2:2\n")
    assert open_source(path).read(0, 2).X.toarray().tolist() == [[1, 0, 3], [0, 2, 0]]
    assert caplog.messages == [f"{path}: holds lines whose indices do not rise; they are sorted as they are read"]
    message = f"{path}, row 3: index 1 in '1:5' stands there already. Give each index once a line."
    assert refusal(open_source, write(path, "1 3:3 1:1\n\n-1 1:2 4:1 1:5\n")) == message


def test_width(tmp_path):
    path = write(tmp_path / "a.svm", "1 1:1\n-1 2:1\n")
    assert open_source(path, n_features=3).read(0, 2).X.toarray().tolist() == [[1, 0, 0], [0, 1, 0]]
    message = f"{path}, row 2: index 2 in '2:1' is beyond the last one, 1. Is it the right file?"
    assert refusal(open_source, path, n_features=1) == message
    assert open_source(write(path, "1\n2\n"), n_features=2).read(0, 2).X.nnz == 0


def test_files_without_rows_or_entries(tmp_path):
    nothing = "Give data that have some."
    for content, what in (("", "no rows"), ("\n# only\n", "no rows"), ("1\n2\n", "no INDEX:VALUE on any line")):
        path = write(tmp_path / "a.svm", content)
        assert refusal(open_source, path) == f"{path}: has {what}. {nothing}"
    path = write(tmp_path / "a.svm", b"1 1:1\n\0\0")
    assert refusal(open_source, path) == f"{path}: holds binary data, not libsvm text. Give the text file."


def test_a_byte_order_mark_is_skipped(tmp_path):
    source = open_source(write(tmp_path / "a.svm", b"\xef\xbb\xbf3 1:2\n"))
    chunk = source.read(0, 1)
    assert chunk.y.tolist() == [3] and chunk.X.toarray().tolist() == [[2]]


def test_a_change_under_the_reader_is_one_line(tmp_path):
    path = write(tmp_path / "a.svm", "1 1:1\n2 2:2\n")
    source = open_source(path)
    message = f"{path}: changed after it was opened. Open it again."
    for content in ("1 1:1\n", "1 1:1 2:2 3:3\n", "1 1:1\n2 2:x\n"):
        write(path, content)
        assert refusal(source.read, 0, 2) == message
        source._text.stamp = (len(content), path.stat().st_mtime_ns)  # as if neither size nor time told
        assert refusal(source.read, 0, 2) == message
    path.unlink()
    assert refusal(source.read, 0, 2) == f"{path}: cannot be read (No such file or directory)."


def test_closing_removes_the_unpacked_text(tmp_path):
    with open_source(write(tmp_path / "a.bz2", bz2.compress(b"1 1:1\n"))) as source:
        unpacked = Path(source._text.path)
        assert unpacked.exists() and source.origin == str(tmp_path / "a.bz2")
    assert not unpacked.exists()


@pytest.mark.parametrize(
    ("head", "is_libsvm"),
    [
        (b"1 1:0.5 3:2\n", True),
        (b"\xef\xbb\xbf# a comment\n\n+1 qid:3 1:-.5e3", True),
        (b"1\n2\n-1 7:1\n", True),
        (b"1:3 2:4\n", True),
        (b"1,2 1:3\n", False),
        (b"a,b\n1,2\n", False),
        (b"1 2 3\n", False),
        (b"\x89HDF\r\n\x1a\n", False),
        (b"", False),
    ],
)
def test_recognised_by_content(head, is_libsvm):
    assert LibsvmSource.matches(head) is is_libsvm


@pytest.mark.skipif(not DATA.exists(), reason="../shared/data/libsvm_text is absent")
@pytest.mark.parametrize(
    ("name", "arrays", "rows"), [("a9a.t", "a9a", "test"), ("ijcnn1.trn", "ijcnn1", "train"), ("w8a", "w8a", "")]
)
def test_real_files_equal_the_prepared_arrays(name, arrays, rows):
    suffix = f"_{rows}" if rows else ""
    with np.load(DATA.parent / f"{arrays}.npz") as archive:
        X, y = archive[f"X{suffix}"], archive[f"y{suffix}"]
    with open_source(DATA / f"{name}.bz2", n_features=X.shape[1]) as source:
        chunk = source.read(0, source.n_rows)
    np.testing.assert_array_equal(chunk.X.toarray().astype(X.dtype), X)
    np.testing.assert_array_equal(chunk.y, y)


def test_compiled_loops_have_one_signature(tmp_path):
    source = open_source(write(tmp_path / "a.svm", "1 1:1 2:0.1234567890123456789\n2 2:2\n"))
    list(source.chunks())
    for loop in (split_lines, parse_decimals):
        assert JIT_DISABLED or len(loop.signatures) == 1


def test_the_layout_is_told(tmp_path):
    path = tmp_path / "a.libsvm"
    path.write_text("1 1:2 4:1\n0 2:3\n")
    assert open_source(path).layout() == {"bytes": 16, "is_text": True, "density": 3 / 8}
