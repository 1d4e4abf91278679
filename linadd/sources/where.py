"""The rows of a source whose entry in a named array has one of some values (`where=`, `--where NAME=V1,V2`)."""

import numpy as np

from linadd.chunks import Chunk, join_chunks
from linadd.errors import ConfigError, DataError
from linadd.sources.base import WrappedSource, plain_labels

__all__ = ["WhereSource"]

# Rows between two counts of the index, and rows of a selecting array read at a time; whole bytes of the mask.
STEP = 1 << 12
READ_ROWS = 256 * STEP


class WhereSource(WrappedSource):
    """The selected rows of a source, in its order; chunks name rows as the file counts them.

    The selection takes one bit a row. Rows are read by spans of the source's own chunks.

    Parameters
    ----------
    source : Source
        A source with `selectors()`.
    where : dict of str to list
        Array name -> values to keep, compared as numbers with an array of numbers, else as text. Several names must all
        hold.

    Raises
    ------
    ConfigError
        Values that are no numbers for an array of numbers.
    DataError
        A name that the source lacks (those it has are listed); no row selected.
    """

    def __init__(self, source, where):
        super().__init__(source)
        self.where = {name: list(np.atleast_1d(values)) for name, values in where.items()}
        there = source.selectors()
        for name in self.where:
            if name not in there:
                names = ", ".join(map(repr, there)) or "none"
                message = f"no array {name!r} selects rows (where). There are {names}."
                raise DataError(message, source=self.origin)
        starts = range(0, source.n_rows, READ_ROWS)
        masks = [np.packbits(self._select(start, min(start + READ_ROWS, source.n_rows))) for start in starts]
        self._mask = np.concatenate(masks)
        counts = np.bitwise_count(np.pad(self._mask, (0, -len(self._mask) % (STEP // 8)))).reshape(-1, STEP // 8)
        self._counts = np.concatenate([[0], np.cumsum(counts.sum(axis=1, dtype=np.int64))])
        self.n_rows = int(self._counts[-1])
        if self.n_rows == 0:
            raise DataError(f"no row has {self._describe()}. Choose values that occur.", source=self.origin)

    def _select(self, start, stop):
        """Which of the source's rows start..stop-1 are kept."""
        kept = np.ones(stop - start, bool)
        for name, values in self.where.items():
            chunk = Chunk(None, None, None, start, self.origin)
            entries = plain_labels(self.source.read_selector(name, start, stop), chunk)
            if entries.dtype.kind == "U":
                values = [str(value) for value in values]
            else:
                values = [self._number(name, value) for value in values]
            kept &= np.isin(entries, values)
        return kept

    def _number(self, name, value):
        try:
            return float(value)
        except ValueError:
            message = f"{self.origin}: where {name}={value}: {name!r} holds numbers. Give numbers."
            raise ConfigError(message) from None

    def _describe(self):
        return " and ".join(f"{name} in {', '.join(map(str, values))}" for name, values in self.where.items())

    def _rows(self, start, stop):
        """The source's row numbers, from 0, of the selected rows start..stop-1."""
        first = np.searchsorted(self._counts, start, "right") - 1
        last = np.searchsorted(self._counts, stop, "left")
        bits = np.unpackbits(self._mask[first * (STEP // 8) : last * (STEP // 8)])
        before = self._counts[first]
        return np.flatnonzero(bits)[start - before : stop - before] + first * STEP

    def _read(self, start, stop):
        rows = self._rows(start, stop)
        spans = np.split(rows, np.flatnonzero(np.diff(rows // self.source.chunk_rows)) + 1)
        pieces = []
        for span in spans:
            chunk = self.source.read(int(span[0]), int(span[-1]) + 1)
            pieces.append(chunk.take(span - span[0] if len(span) < chunk.n_rows else slice(None)))
        return join_chunks(pieces, start, self.origin)

    def fingerprint(self):
        """Of the source, with the condition."""
        return self.source.fingerprint() | {"where": {name: list(map(str, each)) for name, each in self.where.items()}}
