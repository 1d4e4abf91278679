"""The compiled parser of libsvm text: whole lines in, labels and CSR arrays out, or the line and token at fault.

LIBLINEAR refuses a line whose indices do not rise, scikit-learn takes it as it stands: here it is sorted. What has no
one meaning, an index that stands twice on a line, is refused.
"""

import numpy as np

from linadd._jit import compiled
from linadd.chunks import csr_rows
from linadd.sources.decimals import ends_token, is_blank, is_digit, parse_decimals

__all__ = ["LibsvmParser"]

# Entries of the parser's state: what it has filled, the last line, token and index, and of all text so far the largest
# index, whether lines have labels (1, 0, or -1 before the first) and how many indices do not exceed the one before.
ROWS, ENTRIES, LINE, TOKEN, INDEX, LARGEST, LABELLED, FALLS = range(8)
# What stopped the parser.
DONE, MALFORMED, BAD_LABEL, BELOW_BASE, REPEATED, BEYOND_WIDTH, LABEL_DIFFERS, NO_ROOM, LARGE_LABEL = range(9)

NEWLINE, HASH, COLON = 10, 35, 58
EXACT = 2.0**53  # whole numbers from here on may share a float64 with their neighbours


class LibsvmParser:
    """Parser of consecutive blocks of lines: the arrays that it fills, and what it remembers between blocks.

    Parameters
    ----------
    index_base : int
        First index, 0 or 1.
    n_features : int or None
        Width that no index may exceed; None accepts any up to 2^48.
    n_lines : int
        Lines of the file before the first block.

    Attributes
    ----------
    y : array, float64
        Labels of the rows parsed since `make_room`; 0 where lines have none.
    starts, lines : array, int64
        Position of each row's line in its block, and the line's number from 1.
    indptr, indices, values : arrays
        The rows as CSR, indices from 0.
    """

    def __init__(self, index_base, n_features=None, n_lines=0):
        self.index_base = index_base
        self.limits = np.array([index_base, (n_features or 1 << 48) + index_base - 1])
        self.state = np.zeros(8, np.int64)
        self.state[[LINE, LARGEST, LABELLED]] = n_lines, index_base - 1, -1
        self.y = self.values = np.empty(0)

    def make_room(self, n_rows, n_entries):
        """Start anew with arrays that are large enough; those of the last time, if they suffice.

        Parameters
        ----------
        n_rows, n_entries : int
            Most rows and entries to come before the next call.
        """
        self.state[[ROWS, ENTRIES]] = 0
        if n_rows > len(self.y) or n_entries > len(self.values):
            self.y, self.starts, self.lines, self.labels = np.empty(n_rows), *np.empty((3, n_rows), np.int64)
            self.indptr = np.zeros(n_rows + 1, np.int64)
            self.values, self.indices, self.numbers = np.empty(n_entries), *np.empty((2, n_entries), np.int64)

    @property
    def n_rows(self):
        """Rows parsed since `make_room`."""
        return int(self.state[ROWS])

    @property
    def n_entries(self):
        """Entries parsed since `make_room`."""
        return int(self.state[ENTRIES])

    @property
    def n_lines(self):
        """Lines up to here, counted from the beginning of the file."""
        return int(self.state[LINE])

    @property
    def width(self):
        """Features up to the largest index so far."""
        return int(self.state[LARGEST]) - self.index_base + 1

    @property
    def is_sorted(self):
        """Whether the indices of every line rose so far."""
        return bool(self.state[FALLS] == 0)

    @property
    def has_labels(self):
        """Whether lines lead with a label."""
        return bool(self.state[LABELLED] == 1)

    def parse(self, text):
        """Append the rows of a block of whole lines.

        Parameters
        ----------
        text : array, uint8
            Lines, each ending in a newline.

        Returns
        -------
        str or None
            What is wrong on line `n_lines`, and what to do; None if all is well.
        """
        row, entry, n_falls = self.n_rows, self.n_entries, self.state[FALLS]
        labels, numbers = self.labels, self.numbers  # positions in this block
        arrays = (self.starts, self.lines, labels, self.indptr, self.indices, numbers)
        status = split_lines(text, self.state, self.limits, *arrays)
        if self.has_labels:
            y, fault = self.y[row : self.n_rows], BAD_LABEL
            bad = parse_numbers(text, labels[row : self.n_rows], y)
            size = np.abs(y[:bad])
            large = np.flatnonzero((size >= EXACT) & (size < np.inf))
            if len(large):
                bad, fault = int(large[0]), LARGE_LABEL
            if bad is not None:
                status, self.state[LINE], self.state[TOKEN] = fault, self.lines[row + bad], labels[row + bad]
        else:
            self.y[row : self.n_rows] = 0.0
        bad = parse_numbers(text, numbers[entry : self.n_entries], self.values[entry : self.n_entries])
        if bad is not None:
            line = self.lines[np.searchsorted(self.indptr[: self.n_rows + 1], entry + bad, "right") - 1]
            if status not in (BAD_LABEL, LARGE_LABEL) or line < self.state[LINE]:
                status, self.state[LINE], self.state[TOKEN] = MALFORMED, line, numbers[entry + bad]
        if self.state[FALLS] > n_falls:
            line, position, index = self._sort_rows(row, entry)
            if line is not None and (status == DONE or line < self.state[LINE]):
                status, self.state[[LINE, TOKEN, INDEX]] = REPEATED, (line, position, index)
        return None if status == DONE else self._explain(status, text)

    def _sort_rows(self, first_row, first_entry):
        """Sort the entries of the last whole rows by index; (line, position, index) of a repeated one, or Nones."""
        last = self.indptr[self.n_rows]
        rows = np.repeat(np.arange(first_row, self.n_rows), np.diff(self.indptr[first_row : self.n_rows + 1]))
        columns = [part[first_entry:last] for part in (self.indices, self.values, self.numbers)]
        order = np.lexsort((columns[0], rows))
        for part in columns:
            part[:] = part[order]
        repeated = np.flatnonzero((np.diff(columns[0]) == 0) & (np.diff(rows) == 0))
        if not len(repeated):
            return None, None, None
        second = repeated[0] + 1
        return self.lines[rows[second]], columns[2][second], columns[0][second] + self.index_base

    def _explain(self, status, text):
        """The line's fault, with the token, and the remedy."""
        token = repr(token_at(text, self.state[TOKEN]).decode(errors="replace")[:40])
        index, base = self.state[INDEX], self.index_base
        remedy = "Use --index-base 0 if the file counts from 0." if base == 1 else "Correct the line."
        other = "a label, unlike" if self.state[LABELLED] == 0 else "no label, unlike"
        return {
            MALFORMED: f"{token} is not INDEX:VALUE. Correct the line.",
            BAD_LABEL: f"label {token} is not a number. Number the classes, as in 1, 2, 3.",
            LARGE_LABEL: f"label {token} is too large to be exact in float64. Number the classes, as in 1, 2, 3.",
            BELOW_BASE: f"index {index} in {token} is below the first index, {base}. {remedy}",
            REPEATED: f"index {index} in {token} stands there already. Give each index once a line.",
            BEYOND_WIDTH: f"index {index} in {token} is beyond the last one, {self.limits[1]}. Is it the right file?",
            NO_ROOM: "is more than there was at the first look. Open the file again.",
            LABEL_DIFFERS: f"{token} is {other} the lines before. Label every line, or none.",
        }[status]

    def table(self, rows, n_features):
        """Features of some of the parsed rows.

        Parameters
        ----------
        rows : slice
            From start to stop.
        n_features : int
            Width of the table.

        Returns
        -------
        scipy.sparse.csr_array, shape (n_rows, n_features), float64
            Views of the parser's arrays, with int32 copies of the indices where those suffice.
        """
        indptr = self.indptr[rows.start : rows.stop + 1]
        own = slice(indptr[0], indptr[-1])
        shape = (len(indptr) - 1, n_features)
        return csr_rows(self.values[own], self.indices[own], indptr - indptr[0], shape)


def parse_numbers(text, starts, values):
    """Fill `values` from the numbers at `starts`; returns the place of the first that is none, or None."""
    left = np.empty(len(starts), np.int64)
    for k in left[: parse_decimals(text, starts, values, left)].tolist():
        token = text[starts[k] : token_end(text, starts[k])].tobytes()
        try:
            values[k] = float(token)
        except ValueError:
            return k
        if b"_" in token:  # Python's own way to group digits
            return k
    return None


def token_at(text, position):
    """Bytes of the token that holds a position."""
    start = int(position)
    while start > 0 and not ends_token(text[start - 1]):
        start -= 1
    return text[start : token_end(text, position)].tobytes()


def token_end(text, position):
    """Where the token that holds a position ends."""
    stop = int(position)
    while not ends_token(text[stop]):
        stop += 1
    return stop


@compiled
def split_lines(text, state, limits, starts, lines, labels, indptr, indices, numbers):
    """Split lines into rows and entries up to the end or a fault: indices, and where labels and values begin."""
    row, entry, line, widest, labelled = state[ROWS], state[ENTRIES], state[LINE], state[LARGEST], state[LABELLED]
    n_falls = state[FALLS]
    i = token = index = 0
    status = DONE
    while i < len(text) and status == DONE:
        start = i
        line += 1
        while is_blank(text[i]):
            i += 1
        if text[i] != NEWLINE and text[i] != HASH:
            if row == len(starts):
                status = NO_ROOM
                break
            starts[row], lines[row], labels[row] = start, line, i
            token = i
            while not ends_token(text[i]) and text[i] != COLON:
                i += 1
            has_label = text[i] != COLON
            if labelled >= 0 and labelled != has_label:
                status = LABEL_DIFFERS
                break
            labelled = np.int64(has_label)
            i = i if has_label else token
            previous = limits[0] - 1
            while status == DONE:
                while is_blank(text[i]):
                    i += 1
                if text[i] == NEWLINE or text[i] == HASH:
                    break
                token, index = i, 0
                while is_digit(text[i]) and i - token < 18:
                    index = index * 10 + np.int64(text[i]) - 48
                    i += 1
                is_entry = i > token and text[i] == COLON and not ends_token(text[i + 1])
                if is_entry and limits[0] <= index <= limits[1] and entry < len(numbers):
                    indices[entry], numbers[entry] = index - limits[0], i + 1
                    entry += 1
                    n_falls += index <= previous
                    previous = index
                    widest = max(widest, index)
                elif is_entry:
                    status = BEYOND_WIDTH if index > limits[1] else BELOW_BASE if index < limits[0] else NO_ROOM
                else:
                    is_query = text[i] == 113 and text[i + 1] == 105 and text[i + 2] == 100 and text[i + 3] == COLON
                    status = DONE if is_query and entry == indptr[row] else MALFORMED
                while not ends_token(text[i]):
                    i += 1
            if status == DONE:
                row += 1
                indptr[row] = entry
        while text[i] != NEWLINE:
            i += 1
        i += 1
    state[:] = (row, entry, line, token, index, widest, labelled, n_falls)
    return status
