"""What the sources share that take rows from pyarrow: chunks put together from pieces of a batch."""

import numpy as np

from linadd.chunks import Chunk
from linadd.errors import DataError
from linadd.sources.tables import TableSource

__all__ = ["ArrowSource", "as_array", "require_arrow"]

FLOATS = ("halffloat", "float", "double")
WIDER = {"bool": "uint8", "halffloat": "float32"}  # of types that lack a view, or a way to fill gaps


class ArrowSource(TableSource):
    """Rows that come in pieces: the first row's index, a pyarrow RecordBatch, and the number of each row for messages.

    The columns of a piece are named by their places, "0", "1" and so on. A subclass writes `_pieces` and `_entries`.
    """

    def _pieces(self, places, start, stop):
        """Yield rows start..stop-1 of the columns at `places` as (row, batch, numbers)."""
        raise NotImplementedError

    def _entries(self, column, place, numbers):
        """Labels, or what selects rows, of a column of a piece: numbers, or str."""
        raise NotImplementedError

    def _places(self):
        """Places of all columns that a chunk is made of."""
        return sorted({*self.columns.tolist(), self.label_place, self.weight_place} - {None})

    def _chunk(self, start, stop, pieces):
        """Chunk of rows start..stop-1 from their pieces."""
        X, y, weight, rows = np.empty((stop - start, self.n_features), self.stored), [], [], []
        for row, batch, numbers in pieces:
            own = slice(row - start, row - start + batch.num_rows)
            for j, place in enumerate(self.columns.tolist()):
                X[own, j] = self._numbers(batch.column(str(place)), place, numbers)
            if self.has_labels:
                y.append(self._entries(batch.column(str(self.label_place)), self.label_place, numbers))
            if self.has_weights:
                weight.append(self._numbers(batch.column(str(self.weight_place)), self.weight_place, numbers))
            rows.append(numbers)
        y = np.concatenate(y) if self.has_labels else None
        weight = np.concatenate(weight) if self.has_weights else None
        return Chunk(X, y, weight, start, self.origin, np.concatenate(rows))

    def _numbers(self, column, place, numbers):
        """A column of numbers as a read-only array; a missing one is NaN among floats, and else refused."""
        kind = str(column.type)
        if column.null_count and kind not in FLOATS:
            raise self._missing(place, numbers, column)
        if kind == "bool" or (column.null_count and kind == "halffloat"):
            column = column.cast(WIDER[kind])
        return as_array(column.fill_null(np.nan) if column.null_count else column)

    def _missing(self, place, numbers, column):
        """DataError of the first value of a column that is missing."""
        message = "the value is missing. Fill it, or drop the row."
        row = int(numbers[column.is_null().to_pylist().index(True)])
        return DataError(message, source=self.origin, row=row, column=self.column_names[place])

    def read_selector(self, name, start, stop):
        """Entries of a column."""
        place = self.column_names.index(name)
        pieces = self._pieces([place], start, stop)
        return np.concatenate([self._entries(batch.column(str(place)), place, rows) for _, batch, rows in pieces])


def as_array(column):
    """A column of numbers, none missing, as an array that shares its memory.

    Arrow's own `to_numpy` imports pandas, where it is installed: half a second.
    """
    return np.from_dlpack(column)


def require_arrow(origin):
    """Raise DataError, with the command that installs it, where pyarrow is missing."""
    try:
        import pyarrow  # noqa: F401 - 0.1 s that other files need not wait for
    except ImportError:
        message = "needs pyarrow, which is not installed. Install it: pip install 'linadd[tables]'"
        raise DataError(message, source=origin) from None
