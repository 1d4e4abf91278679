"""libsvm (svmlight) text: `LABEL INDEX:VALUE INDEX:VALUE ...`, one row a line, read by position in bounded memory.

One scan at opening finds the rows and checks every line. It keeps the byte position of each 256th row, so that any rows
can be read without the ones before them. Blank lines, `#` comments and `qid:` entries are skipped, CRLF is accepted.
Lines whose indices do not rise are sorted, and a log line says so.
"""

import logging
import re

import numpy as np

from linadd.chunks import Chunk
from linadd.errors import ConfigError, DataError
from linadd.sources.base import Source, file_fingerprint, reading, rows_of_bytes
from linadd.sources.libsvm_parser import LibsvmParser
from linadd.sources.text import PlainText, line_blocks

__all__ = ["LibsvmSource"]

logger = logging.getLogger(__name__)

MARK_ROWS = 256
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
ROW_LINE = re.compile(rb"\s*([-+.\deE]+\s+)?(qid:\d+\s+)?\d+:[-+.\deE]+(\s|$)")
LABEL_LINE = re.compile(rb"\s*[-+.\deE]*\s*(#.*)?")


class LibsvmSource(Source):
    """Rows of a libsvm text file, as csr_array of float64.

    Values and labels are what Python's `float` makes of their text. Lines without a label are accepted if all are so.

    Parameters
    ----------
    path : str
        The file; `.bz2`, `.gz` and `.xz` are first unpacked to a temporary file, removed with the source or at exit.
    options : ReadOptions
        `index_base`: 0, 1 or "auto", which is that of `like`, else 1; `n_features`: width to pad to; `y` None leaves
        labels out.

    Raises
    ------
    DataError
        With the line: an index below the base, beyond `n_features` or twice on the line, a malformed entry.
        Also an archive that is damaged, and a file that changed after it was opened.

    Attributes
    ----------
    n_entries : int
        Stored entries, zeros included.
    density : float
        Their share of the table.
    """

    kind = "libsvm text"
    suffixes = (".libsvm", ".svmlight", ".svm")
    is_sparse = True
    can_pad = True
    dtype = np.dtype(np.float64)

    def __init__(self, path, options):
        options.refuse(path, self.kind, "group", "x", "weights", *([] if options.y is None else ["y"]))
        if options.index_base not in ("auto", 0, 1):
            raise ConfigError(f"index_base is {options.index_base!r}. It is one of 'auto', 0, 1.")
        self.path = self.origin = path
        self.index_base = (options.like or {}).get("index_base", 1)
        if options.index_base != "auto":
            self.index_base = options.index_base
        with reading(path):
            self._text = PlainText(path)
            self._scan(options.n_features)
        if options.y is None:
            self.has_labels = False
        self.chunk_rows = rows_of_bytes(12 * self.n_entries / self.n_rows + 16)

    @staticmethod
    def matches(head):
        """Whether a line among the first bytes has the form of a row, and all before it could be labels or comments."""
        for line in head.removeprefix(BYTE_ORDER_MARK).splitlines():
            if ROW_LINE.match(line):
                return True
            if not LABEL_LINE.fullmatch(line):
                return False
        return False

    @property
    def density(self):
        """Share of the table's cells that are stored."""
        return self.n_entries / (self.n_rows * self.n_features)

    def _scan(self, n_features):
        """Parse the file once, block by block, for its shape, its faults and the marks of rows."""
        with open(self._text.path, "rb") as file:
            begin = len(BYTE_ORDER_MARK) if file.read(3) == BYTE_ORDER_MARK else 0
        parser = LibsvmParser(self.index_base, n_features)
        # Of each 256th row: position of its line, number of its line, entries before it; then the end of the file.
        marks, n_rows, n_entries = [], 0, 0
        for text, offset in line_blocks(self._text.path, begin):
            if offset == begin and not text.all():
                raise DataError("holds binary data, not libsvm text. Give the text file.", source=self.origin)
            parser.make_room(len(text) // 2 + 1, len(text) // 4 + 1)
            fault = parser.parse(text)
            if fault:
                raise DataError(fault, source=self.origin, row=parser.n_lines)
            own = slice(-n_rows % MARK_ROWS, parser.n_rows, MARK_ROWS)
            marks.append((parser.starts[own] + offset, parser.lines[own].copy(), parser.indptr[:-1][own] + n_entries))
            n_rows, n_entries = n_rows + parser.n_rows, n_entries + parser.n_entries
        if n_rows == 0:
            raise DataError("has no rows. Give data that have some.", source=self.origin)
        if n_entries == 0 and n_features is None:
            raise DataError("has no INDEX:VALUE on any line. Give data that have some.", source=self.origin)
        if not parser.is_sorted:
            logger.info("%s: holds lines whose indices do not rise; they are sorted as they are read", self.origin)
        self.n_rows, self.n_entries, self.n_features = n_rows, n_entries, n_features or parser.width
        self.has_labels, self._has_gaps = parser.has_labels, parser.n_lines > n_rows
        marks.append(([self._text.stamp[0]], [parser.n_lines], [n_entries]))
        self._marks = [np.concatenate(column) for column in zip(*marks, strict=True)]

    def _read(self, start, stop):
        first, last = start // MARK_ROWS, -(-stop // MARK_ROWS)
        offsets, lines, entries = self._marks
        parser = LibsvmParser(self.index_base, self.n_features, lines[first] - 1)
        parser.make_room(min(last * MARK_ROWS, self.n_rows) - first * MARK_ROWS, entries[last] - entries[first])
        with reading(self.origin):
            faults = [self._text.has_changed()]
            for text, _ in line_blocks(self._text.path, offsets[first], offsets[last]):
                faults.append(any(faults) or parser.parse(text))
        own = slice(start - first * MARK_ROWS, stop - first * MARK_ROWS)
        if any(faults) or parser.n_rows < own.stop:
            raise DataError("changed after it was opened. Open it again.", source=self.origin)
        numbers = parser.lines[own] if self._has_gaps else None
        y = parser.y[own] if self.has_labels else None
        return Chunk(parser.table(own, self.n_features), y, None, start, self.origin, numbers)

    def pad(self, n_features):
        """Widen the rows to more features than occur."""
        self.n_features = n_features

    def fingerprint(self):
        """Of the file as it was given, with the index base."""
        return file_fingerprint(self.path) | {"index_base": self.index_base}

    def files(self):
        """The file as it was given."""
        return [self.path]

    def layout(self):
        """Bytes of the text, unpacked if it was packed, and the density of its entries."""
        return {"bytes": self._text.stamp[0], "is_text": True, "density": self.density}

    def label_remedy(self):
        """Where labels stand."""
        return "Lead every line with its label, as in `1 3:0.5 7:2`."

    def close(self):
        """Remove the temporary file of a compressed one."""
        self._text.remove()
