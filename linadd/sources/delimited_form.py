"""The form of a text table, found in its first rows: delimiter, decimal mark, and whether the first row is names."""

import csv
import io
import logging
import re
from dataclasses import dataclass

from linadd.errors import DataError

__all__ = ["MISSING", "TableForm", "find_form", "is_number"]

logger = logging.getLogger(__name__)

DELIMITERS = "\t;|, "  # in doubt the first: a comma may be a decimal mark, a space part of a name
DELIMITER_NAMES = {"\t": "tab", ";": "semicolon", "|": "bar", ",": "comma", " ": "space"}
# What stands for a missing number.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "?")
COMMA_NUMBER = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
GROUPED_NUMBER = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
SEEN_ROWS, SEEN_FIELDS = 200, 100_000


@dataclass(frozen=True)
class TableForm:
    """How the text of a table is to be read.

    Attributes
    ----------
    delimiter : str
        What stands between two fields of a row.
    decimal : str
        "." or ",".
    names : list of str, or None
        Names of the columns, if the first row has them; a column without one is called `Unnamed: J`, J from 0.
    n_columns : int
        Fields of a row.
    """

    delimiter: str
    decimal: str
    names: list | None
    n_columns: int

    def describe(self):
        """In words."""
        header = "no row of names" if self.names is None else "names in the first row"
        mark = "a comma" if self.decimal == "," else "a point"
        return f"{self.n_columns} columns, delimiter {DELIMITER_NAMES[self.delimiter]}, {mark} in decimals, {header}"


def is_number(text, decimal="."):
    """Whether text is a number as Python's `float` reads it, but for the decimal mark, and `_` between digits."""
    if decimal == ",":
        text = text.replace(".", "_").replace(",", ".")
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def find_form(text, origin):
    """The form of a table whose first rows are given.

    Parameters
    ----------
    text : str
        Whole rows, the first of the file.
    origin : str
        The source, for messages.

    Raises
    ------
    DataError
        No delimiter that splits the rows evenly, or commas that may be decimal marks or group digits.
    """
    tables = {mark: rows for mark in DELIMITERS if (rows := fields_of(text, mark))}
    fits = {mark: fit for mark, rows in tables.items() if (fit := fitness(rows, mark)) is not None}
    fault = None if fits else unsplit(tables)
    if fault:
        raise DataError(fault, source=origin)
    delimiter = max(fits, key=fits.get, default=",")
    rows = tables[delimiter]
    decimal = decimal_mark(rows[1:] or rows, delimiter, origin)
    names = [name.strip() or f"Unnamed: {j}" for j, name in enumerate(rows[0])] if has_names(rows, decimal) else None
    return TableForm(delimiter, decimal, names, len(rows[0]))


def fields_of(text, delimiter):
    """The first rows, split at the delimiter, up to a field that is longer than the csv module takes."""
    rows = []
    try:
        for row in filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)):
            rows.append(row)
            if len(rows) >= max(5, min(SEEN_ROWS, SEEN_FIELDS // len(rows[0]))):
                break
    except csv.Error:
        logger.debug("a field of the first rows has more than %d characters", csv.field_size_limit())
    return rows


def fitness(rows, delimiter):
    """Shares of the rows as long as the first, and of the numbers among fields; None where the rows are not split."""
    n_columns, below = len(rows[0]), rows[1:]
    even = sum(len(row) == n_columns for row in rows) / len(rows)
    fields = [field for row in below for field in row]
    if n_columns < 2 or even < 0.5 or (delimiter == " " and "" in fields):
        return None
    marks = "." if delimiter == "," else ".,"
    n_numbers = sum(field in MISSING or any(is_number(field, mark) for mark in marks) for field in fields)
    return even, n_numbers / max(1, len(fields)), -DELIMITERS.index(delimiter)


def unsplit(tables):
    """What is wrong with rows that no delimiter splits evenly; None for rows of one field."""
    if "," not in tables:
        return f"its first row has a field of more than {csv.field_size_limit()} characters. Close its quote."
    if all(len(row) == 1 for mark, rows in tables.items() if mark != " " for row in rows):
        below = [row[0].split() for row in tables[","][1:]]
        is_aligned = any(len(words) > 1 and all(map(is_number, words)) for words in below)
        return "its columns are aligned by spaces. Write one delimiter between two fields." if is_aligned else None
    delimiter = max(tables.keys() - {" "}, key=lambda mark: sum(len(row) > 1 for row in tables[mark]))
    rows = tables[delimiter]
    counts = sorted({len(row) for row in rows})
    split = f"a {DELIMITER_NAMES[delimiter]} splits its first {len(rows)} rows into {counts[0]} to {counts[-1]} fields"
    return f"no delimiter splits its rows evenly: {split}. Write every row with as many fields as the first."


def decimal_mark(rows, delimiter, origin):
    """The decimal mark of fields: a comma if only commas are seen in numbers; DataError if they may group digits."""
    if delimiter == ",":
        return "."
    fields = [field.strip() for row in rows for field in row]
    with_comma = [field for field in fields if COMMA_NUMBER.fullmatch(field)]
    if not with_comma or any("." in field and is_number(field) for field in fields):
        return "."
    if all(GROUPED_NUMBER.fullmatch(field) for field in with_comma):
        number = with_comma[0]
        meanings = f"{number.replace(',', '.')} or {number.replace(',', '')}"
        raise DataError(f"{number!r} may be {meanings}. Write numbers with a decimal point.", source=origin)
    return ","


def has_names(rows, decimal):
    """Whether the first row is names: no number above numbers, or the positions 0, 1, 2, ... or 1, 2, 3, ...

    Without a column of numbers, whether no field of it is a number.
    """
    first, below = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]

    def is_filled(field):
        return field.strip() in MISSING or is_number(field, decimal)

    numeric = [j for j in range(len(first)) if below and all(is_filled(row[j]) for row in below)]
    numeric = [j for j in numeric if any(row[j].strip() not in MISSING for row in below)]
    if not numeric:
        return not any(map(is_number, first))
    if any(not is_filled(first[j]) for j in numeric):
        return True
    positions = [first[j].strip() for j in numeric]
    return len(numeric) > 2 and any(positions == [str(j + base) for j in numeric] for base in (0, 1))
