"""CSV and TSV text: rows of a table by position in bounded memory, their fields parsed by pyarrow.

One scan at opening finds the rows, checks that they have as many fields as the first, and keeps the byte position of a
row every 64 KB, so that any rows can be read without the ones before them. It also settles whether labels are numbers
or text. Features are float64, each what Python's `float` makes of its text: the type of a column is known only at its
last row. White space around a field is not part of it. Rows in messages are lines of the file, from 1.
"""

import logging
import re

import numpy as np

from linadd.errors import DataError
from linadd.sources.arrow_tables import ArrowSource, as_array, require_arrow
from linadd.sources.base import file_fingerprint, reading, rows_of_bytes
from linadd.sources.delimited_form import MISSING, find_form, is_number
from linadd.sources.delimited_rows import MAX_ROW_BYTES, row_blocks
from linadd.sources.libsvm import LibsvmSource
from linadd.sources.tables import numbers_remedy
from linadd.sources.text import PlainText

__all__ = ["DelimitedSource"]

logger = logging.getLogger(__name__)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
HEAD_BYTES = 1 << 20
MARK_BYTES = 1 << 16
# Text that is parsed at a time: of each column, at least, and at most.
FIELD_BYTES, BLOCK_BYTES, MAX_BLOCK_BYTES = 1 << 11, 1 << 20, 1 << 25
INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
# Kinds of a column of labels; each holds the ones before.
INTEGERS, NUMBERS, TEXT = range(3)


class DelimitedSource(ArrowSource):
    """Rows of a CSV or TSV file, in UTF-8.

    Delimiter, decimal mark and names in the first row are found by `find_form`, and logged. Fields may be quoted, with
    delimiters, doubled quotes and line ends inside. Blank lines are skipped.

    Parameters
    ----------
    path : str
        The file; `.bz2`, `.gz` and `.xz` are first unpacked to a temporary file, removed with the source or at exit.
    options : ReadOptions
        Columns of labels (`y`; without the default name there are none) and `weights`, and which others are features.

    Raises
    ------
    DataError
        With the line: a row of more or fewer fields than the first, a quote that is not closed; on reading, a field of
        a feature that is neither a number nor stands for a missing one, text that is not UTF-8. A form that is in
        doubt; a file that changed after it was opened.

    Attributes
    ----------
    form : TableForm
        What was found.
    """

    kind = "CSV text"
    suffixes = (".csv", ".tsv")
    stored = dtype = np.dtype(np.float64)

    def __init__(self, path, options):
        options.refuse(path, self.kind, "group", "x", "index_base")
        self.path = self.origin = path
        require_arrow(path)
        with reading(path):
            self._text = PlainText(path)
            head = self._read_head()
            self.form = find_form(head, path)
            self._check_names()
            logger.info("%s: %s", path, self.form.describe())
            self._take_columns(self.form.names, self.form.n_columns, options)
            self._scan([self.column_names.index(name) for name in options.where if name in self.column_names])
        self.chunk_rows = rows_of_bytes(8 * self.n_features)

    @staticmethod
    def matches(head):
        """Whether the first bytes are lines of text that a delimiter splits evenly."""
        text = head.removeprefix(BYTE_ORDER_MARK).decode(errors="replace")
        lines = text.splitlines()[: -1 if len(head) >= 4096 else None]
        if "\0" in text or len(lines) < 2:
            return False
        try:
            form = find_form("\n".join(lines), "")
        except DataError:
            return False
        return form.n_columns > 1

    def _read_head(self):
        """The first rows as text; what is no table of text is refused."""
        size = self._text.stamp[0]
        with open(self._text.path, "rb") as file:
            head = more = file.read(HEAD_BYTES)
            while more and head.count(b"\n") < 3 and len(head) < MAX_ROW_BYTES:
                more = file.read(len(head))
                head += more
        if head.startswith(UTF16_MARKS):
            raise DataError("is UTF-16 text. Save it as UTF-8.", source=self.origin)
        if b"\0" in head[:HEAD_BYTES]:
            raise DataError("holds binary data, not CSV text. Give the text file.", source=self.origin)
        if LibsvmSource.matches(head[:HEAD_BYTES]):
            raise DataError("is libsvm text, not a table. Give it the suffix .libsvm.", source=self.origin)
        self._begin = len(BYTE_ORDER_MARK) if head.startswith(BYTE_ORDER_MARK) else 0
        if len(head) < size:
            head = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]
            if not head:
                limit = f"{MAX_ROW_BYTES >> 20} MB"
                raise DataError(f"its first row does not end within {limit}. Is it a table?", source=self.origin)
        text = head[self._begin :].decode(errors="surrogateescape")
        if not text.strip():
            raise DataError("has no rows. Give data that have some.", source=self.origin)
        return text

    def _check_names(self):
        """Refuse names that are not UTF-8 text."""
        for j, name in enumerate(self.form.names or ()):
            value = name.encode(errors="surrogateescape")
            if not is_utf8(value):
                message = f"{value[:40]!r} is not UTF-8 text. Save the file as UTF-8."
                raise DataError(message, source=self.origin, row=1, column=j + 1)

    def _scan(self, selecting):
        """Go through the file once for its rows, their faults, and the kinds of the labels and of what selects rows."""
        self._kinds = dict.fromkeys({self.label_place, *selecting} - {None}, INTEGERS)
        # Of a row every MARK_BYTES: its index, position and line; then the end of the file.
        marks, n_rows, last = [], 0, -1
        skip = int(self.form.names is not None)
        for block in self._blocks(self._begin, self._text.stamp[0], 1):
            ragged = block.widths != self.form.n_columns
            if ragged.any():
                row = int(ragged.argmax())
                raise self._ragged(int(block.widths[row]), int(block.lines[row]))
            starts, lines, skip = block.starts[skip:], block.lines[skip:], 0
            if not len(starts):
                continue
            if self._kinds:
                batch = self._parse(block.text[starts[0] :], dict.fromkeys(self._kinds, "text"), lines)
                for place, kind in self._kinds.items():
                    self._kinds[place] = max(kind, self._kind(batch.column(str(place))))
            starts = starts + block.offset
            own = np.flatnonzero(np.diff(starts // MARK_BYTES, prepend=last))
            marks.append((own + n_rows, starts[own], lines[own]))
            n_rows, last = n_rows + len(starts), starts[-1] // MARK_BYTES
        if n_rows == 0:
            raise DataError("has names of columns and no rows. Give data that have some.", source=self.origin)
        marks.append(([n_rows], [self._text.stamp[0]], [0]))
        self._marks = [np.concatenate(column) for column in zip(*marks, strict=True)]
        self.n_rows = n_rows

    def _blocks(self, start, stop, line):
        """Blocks of the rows from byte `start` to `stop`; a parse costs some time a column, so they have many rows."""
        block_bytes = min(max(BLOCK_BYTES, FIELD_BYTES * self.form.n_columns), MAX_BLOCK_BYTES)
        return row_blocks(self._text.path, self.form.delimiter, start, stop, line, self.origin, block_bytes)

    def _parse(self, text, types, lines):
        """Columns of some rows, as a pyarrow RecordBatch; DataError where a field is not what it should be.

        Parameters
        ----------
        text : bytes
            Whole rows.
        types : dict of int to str
            Places of the columns, and "number", "text" or "bytes" for what is wanted of each.
        lines : int64 array
            The number of each row's line.
        """
        import pyarrow.csv

        pa = pyarrow
        arrow_types = {"number": pa.float64(), "text": pa.dictionary(pa.int32(), pa.string()), "bytes": pa.binary()}
        names = list(map(str, range(self.form.n_columns)))
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(text),
                read_options=pa.csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
                parse_options=pa.csv.ParseOptions(delimiter=self.form.delimiter, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    column_types={names[place]: arrow_types[what] for place, what in types.items()},
                    include_columns=[names[place] for place in types],
                    null_values=[blank + token for blank in ("", " ") for token in MISSING],
                    decimal_point=self.form.decimal,
                ),
            )
        except pa.ArrowException as error:
            if "bytes" not in types.values():
                return self._parse_singly(text, types, lines)
            message = f"cannot be parsed ({error!r}). Correct it, or write the file anew."
            raise DataError(message, source=self.origin, row=int(lines[0])) from None
        if table.num_rows != len(lines):
            raise self._changed()
        return table.combine_chunks().to_batches()[0]

    def _ragged(self, n_fields, line):
        """DataError of a row of more or fewer fields than the first."""
        fields = f"{n_fields} field" + "s" * (n_fields != 1)
        message = f"has {fields}; the first row has {self.form.n_columns}. Correct the row, or quote its fields."
        return DataError(message, source=self.origin, row=line)

    def _parse_singly(self, text, types, lines):
        """As `_parse`, field by field: for numbers among blanks unknown to pyarrow, and to find what is wrong."""
        import pyarrow

        batch = self._parse(text, dict.fromkeys(types, "bytes"), lines)
        columns, faults = [], []
        for (place, what), column in zip(types.items(), batch.columns, strict=True):
            values, is_right = column.to_pylist(), is_utf8 if what == "text" else self._is_numeric
            row = next((row for row, value in enumerate(values) if not is_right(value)), None)
            if row is not None:
                faults.append((row, place, values[row]))
                continue
            texts = [value.decode() for value in values]
            if what == "text":
                columns.append(pyarrow.array(texts).dictionary_encode())
            else:
                texts = [text.strip() for text in texts]
                columns.append(pyarrow.array(plain_numbers(texts, NUMBERS, self.form.decimal)))
        if faults:
            textual = [place for _, place, value in faults if is_utf8(value) and not is_number(value.decode(), ",")]
            raise self._fault(*min(faults), textual, lines)
        return pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def _fault(self, row, place, value, textual, lines):
        """DataError of the bytes of a field that are not what they should be; `textual` are the places of all such."""
        name = self.column_names[place]
        if is_utf8(value):
            remedy = numbers_remedy([self.column_names[each] for each in sorted(textual)])
            if place not in textual:
                remedy = "Write decimals with a point."
            message = f"{value.decode()[:40]!r} is not a number. {remedy}"
        else:
            message = f"{value[:40]!r} is not UTF-8 text. Save the file as UTF-8."
        return DataError(message, source=self.origin, row=int(lines[row]), column=name)

    def _is_numeric(self, value):
        """Whether the bytes of a field are a number, or stand for a missing one."""
        return is_utf8(value) and (value.decode().strip() in MISSING or is_number(value.decode(), self.form.decimal))

    def _changed(self):
        return DataError("changed after it was opened. Open it again.", source=self.origin)

    def _pieces(self, places, start, stop):
        return self._typed_pieces(dict.fromkeys(places, "text"), start, stop)

    def _typed_pieces(self, types, start, stop):
        """`_pieces` of the columns and types that `_parse` takes."""
        rows, offsets, lines = self._marks
        first, last = np.searchsorted(rows, start, "right") - 1, np.searchsorted(rows, stop)
        bounds, row = offsets[[first, last]].tolist(), int(rows[first])
        with reading(self.origin):
            if self._text.has_changed():
                raise self._changed()
            for block in self._blocks(*bounds, int(lines[first])):
                own = slice(max(start - row, 0), min(stop - row, len(block.lines)))
                if own.start < own.stop:
                    batch = self._parse(block.text, types, block.lines)
                    yield row + own.start, batch.slice(own.start, own.stop - own.start), block.lines[own]
                row += len(block.lines)
        if row < stop:
            raise self._changed()

    def _read(self, start, stop):
        types = {place: "text" if place == self.label_place else "number" for place in self._places()}
        return self._chunk(start, stop, self._typed_pieces(types, start, stop))

    def read_selector(self, name, start, stop):
        """Entries of a column: numbers if all of them are, else text."""
        place = self.column_names.index(name)
        if place not in self._kinds:
            columns = (batch.column(str(place)) for _, batch, _ in self._pieces([place], 0, self.n_rows))
            self._kinds[place] = max(map(self._kind, columns))
        return super().read_selector(name, start, stop)

    def _kind(self, column):
        """The least kind that holds a column of texts."""
        return kind_of(texts_of(column)[0], self.form.decimal)

    def _entries(self, column, place, numbers):
        texts, which = texts_of(column)
        if self._kinds[place] != TEXT:
            return plain_numbers(texts, self._kinds[place], self.form.decimal)[which]
        values = np.array(texts, str)[which]
        if place == self.label_place and "" in texts:
            message = "the label is missing. Fill it, or drop the row."
            row = int(numbers[np.argmax(values == "")])
            raise DataError(message, source=self.origin, row=row, column=self.column_names[place])
        return values

    def fingerprint(self):
        """Of the file as it was given, with the columns that are read."""
        return file_fingerprint(self.path) | self.column_prints()

    def files(self):
        """The file as it was given."""
        return [self.path]

    def layout(self):
        """Bytes of the text, unpacked if it was packed."""
        return {"bytes": self._text.stamp[0], "is_text": True}

    def close(self):
        """Remove the temporary file of a compressed one."""
        self._text.remove()


def texts_of(column):
    """The distinct texts of a column without the blanks around them, and which of them each row has."""
    return [text.strip() for text in column.dictionary.to_pylist()], as_array(column.indices)


def kind_of(texts, decimal):
    """What holds all of some texts: INTEGERS of 64 bits, NUMBERS, missing ones too, or TEXT."""
    kind = INTEGERS
    for text in texts:
        if kind == INTEGERS and not INTEGER.fullmatch(text):
            kind = NUMBERS
        if kind == NUMBERS and not (text in MISSING or is_number(text, decimal)):
            return TEXT
    return kind


def plain_numbers(texts, kind, decimal):
    """Numbers of texts of a kind, int64 or float64; those that are missing are NaN."""
    if kind == INTEGERS:
        return np.array(list(map(int, texts)), np.int64)
    return np.array([np.nan if text in MISSING else float(text.replace(decimal, ".")) for text in texts])


def is_utf8(value):
    """Whether bytes are UTF-8 text."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
