"""Where the rows of a text table begin: line ends within quotes belong to a field, blank lines to none."""

from typing import NamedTuple

import numpy as np

from linadd._jit import compiled
from linadd.errors import DataError

__all__ = ["RowBlock", "row_blocks"]

MAX_ROW_BYTES = 64 << 20
NEWLINE, RETURN, QUOTE = 10, 13, 34


class RowBlock(NamedTuple):
    """Whole rows of a text table.

    Attributes
    ----------
    text : bytes
        The rows, and the blank lines among them.
    offset : int
        Position of the text in the file.
    starts, lines, widths : int64 arrays, shape (n_rows,)
        Position of each row in the text, the number of its first line, from 1, and how many fields it has.
    """

    text: bytes
    offset: int
    starts: np.ndarray
    lines: np.ndarray
    widths: np.ndarray


def row_blocks(path, delimiter, start, stop, line, origin, block_bytes):
    """Yield the rows of a part of a text table in blocks of bounded size.

    Parameters
    ----------
    path : str
        The file.
    delimiter : str
        What stands between two fields: a quote opens one only behind it.
    start, stop : int
        Bytes to read, from the beginning of a row.
    line : int
        Number of the line at `start`.
    origin : str
        The source, for messages.
    block_bytes : int
        Bytes read at a time; a longer row makes a longer block, up to MAX_ROW_BYTES.

    Yields
    ------
    RowBlock

    Raises
    ------
    DataError
        A quote that is not closed, a longer row; names the line.
    """
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        rest, size = b"", block_bytes
        while start < stop:
            data = file.read(min(size, stop - start - len(rest)))
            text = rest + data
            is_end = not data or start + len(text) >= stop
            codes = np.frombuffer(text, np.uint8)
            # Every row but the last has a line end.
            n_rows = np.count_nonzero(codes == NEWLINE) + np.count_nonzero(codes == RETURN) + 1
            starts, lines, widths = np.empty((3, n_rows), np.int64)
            n_rows, end, passed, is_open = find_rows(codes, ord(delimiter), is_end, starts, lines, widths)
            if (is_end and is_open) or (not n_rows and len(text) - end > MAX_ROW_BYTES):
                limit = "before the end" if is_end else f"within {MAX_ROW_BYTES >> 20} MB"
                what = "a quoted field" if is_open else "the row"
                message = f"{what} does not end {limit}. Close the quote, or double it."
                raise DataError(message, source=origin, row=line + passed)
            if n_rows:
                yield RowBlock(text[:end], start, starts[:n_rows], lines[:n_rows] + line, widths[:n_rows])
            start, line, rest = start + end, line + passed, text[end:]
            size = block_bytes if end else 2 * size
            if not data:
                return


@compiled
def find_rows(text, delimiter, is_end, starts, lines, widths):
    """Find the rows of a text that begins with one, or with a blank line.

    A quote opens a quoted part at the beginning of a field only; in it, two quotes stand for one. Lines end in CR, LF
    or both.

    Parameters
    ----------
    text : array, uint8
        The text.
    delimiter : int
        Code of what stands between fields.
    is_end : bool
        Whether the file ends with the text; else a last row without a line end is not whole.
    starts, lines, widths : arrays, int64
        Receive the position of each whole row, the lines before it, and the number of its fields.

    Returns
    -------
    n_rows, end, line : int
        The whole rows, where they end, and the lines up to there.
    is_open : bool
        Whether the text ends in a quoted part.
    """
    n_rows = end = line = i = 0
    is_open = False
    while i < len(text):
        start, passed, width = i, line, 1
        at_field, is_open = True, False
        while i < len(text):
            byte = text[i]
            if byte == QUOTE and is_open:
                is_open = i + 1 < len(text) and text[i + 1] == QUOTE
                i += is_open
                at_field = False
            elif byte == QUOTE and at_field:
                is_open, at_field = True, False
            elif byte in (NEWLINE, RETURN):
                if byte == RETURN and i + 1 < len(text) and text[i + 1] == NEWLINE:
                    i += 1
                passed += 1
                if not is_open:
                    break
            else:
                at_field = byte == delimiter and not is_open
                width += at_field
            i += 1
        is_cut = i >= len(text) - (text[len(text) - 1] == RETURN)  # behind CR an LF may follow
        if is_cut and (is_open or not is_end):
            break
        if text[start] != NEWLINE and text[start] != RETURN:
            starts[n_rows], lines[n_rows], widths[n_rows] = start, line, width
            n_rows += 1
        i += 1
        end, line = min(i, len(text)), passed
    return n_rows, end, line, is_open
