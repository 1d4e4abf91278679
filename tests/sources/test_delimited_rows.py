"""Rows of text tables: the same as Python's csv module finds, for blocks of any size, and rows without an end."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linadd.sources import delimited_rows
from linadd.sources.delimited_rows import row_blocks
from tests.checks.check_source import refusal

FIELDS = st.lists(st.text("ab,\"\r\n ", max_size=5), min_size=1, max_size=3)


def blocks_of(path, text, delimiter=",", block_bytes=1 << 20):
    path.write_bytes(text)
    return list(row_blocks(path, delimiter, 0, len(text), 1, "t.csv", block_bytes))


@settings(deadline=None, max_examples=50)
@given(table=st.lists(FIELDS, min_size=1, max_size=6), ends=st.lists(st.sampled_from(["\n", "\r", "\r\n"]), min_size=6))
def test_rows_are_those_of_the_csv_module_for_any_block(tmp_path_factory, table, ends):
    rows = [",".join('"' + field.replace('"', '""') + '"' for field in fields) for fields in table]
    text = "".join(row + end for row, end in zip(rows, ends, strict=False)).encode()
    path = tmp_path_factory.getbasetemp() / "t.csv"
    for block_bytes in (1, 2, 7, 1000):
        blocks = blocks_of(path, text, block_bytes=block_bytes)
        found = [(block, k) for block in blocks for k in range(len(block.starts))]
        assert len(found) == len(table)
        for (block, k), fields in zip(found, table, strict=True):
            start = block.offset + block.starts[k]
            assert next(csv.reader(io.StringIO(text[start:].decode(), newline=""))) == fields
            assert block.widths[k] == len(fields)
            before = text[:start].decode().replace("\r\n", "\n").replace("\r", "\n")
            assert block.lines[k] == before.count("\n") + 1


@settings(deadline=None)
@given(text=st.text('ab,"\n\r', max_size=30))
def test_quotes_within_fields_are_characters(tmp_path_factory, text):
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=False) if row]
    path = tmp_path_factory.getbasetemp() / "t.csv"
    try:
        found = blocks_of(path, text.encode(), block_bytes=3)
    except delimited_rows.DataError as error:
        assert "a quoted field does not end before the end" in str(error)
        return
    assert [len(row) for row in rows] == np.concatenate([[], *(block.widths for block in found)]).tolist()


def test_a_last_row_needs_no_line_end_and_blank_lines_are_none(tmp_path):
    (block,) = blocks_of(tmp_path / "t", b"\n\r\na;b\r\n\n\n1;2", ";")
    assert block.text == b"\n\r\na;b\r\n\n\n1;2"
    assert block.starts.tolist() == [3, 10] and block.lines.tolist() == [3, 6] and block.widths.tolist() == [2, 2]
    assert blocks_of(tmp_path / "t", b"") == [] and blocks_of(tmp_path / "t", b"\n\n") == []


def test_rows_that_do_not_end(tmp_path, monkeypatch):
    message = "t.csv, row 2: a quoted field does not end before the end. Close the quote, or double it."
    assert refusal(blocks_of, tmp_path / "t", b'a,b\n1,"2\n3,4\n') == message
    monkeypatch.setattr(delimited_rows, "MAX_ROW_BYTES", 1 << 20)
    for text, what in ((b'a\n"' + b"x\n" * (2 << 20), "a quoted field"), (b"a\n" + b"1," * (2 << 20), "the row")):
        message = f"t.csv, row 2: {what} does not end within 1 MB. Close the quote, or double it."
        assert refusal(blocks_of, tmp_path / "t", text) == message


@pytest.mark.parametrize("stop", [4, 8, 12])
def test_a_part_of_a_file(tmp_path, stop):
    (tmp_path / "t").write_bytes(b"1,2\n3,4\n5,6\n")
    blocks = list(row_blocks(tmp_path / "t", ",", 4, stop, 2, "t.csv", 4))
    assert [block.text for block in blocks] == [b"3,4\n", b"5,6\n"][: stop // 4 - 1]
    assert [block.lines.tolist() for block in blocks] == [[2], [3]][: stop // 4 - 1]
