"""A table of columns copied to a temporary Arrow file, whose rows are found at once: see `row_copy.py` for when."""

import logging
import os
import tempfile
import weakref

import numpy as np

from linadd.errors import DataError
from linadd.sources.text import remove_file

__all__ = ["TableCopy"]

logger = logging.getLogger(__name__)

COPY_ROWS = 1000  # of a batch: those of a training chunk


class TableCopy:
    """Columns of a table in a temporary file, which is removed with this object, or at exit.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        All rows in order.
    origin : str
        The source, for messages.

    Raises
    ------
    DataError
        The temporary folder lacks the space.
    """

    def __init__(self, batches, origin):
        import pyarrow

        handle, self.path = tempfile.mkstemp(prefix="linadd-", suffix=".arrow")
        os.close(handle)
        self._remove = weakref.finalize(self, remove_file, self.path)
        logger.info("%s: copying its rows to the temporary file %s", origin, self.path)
        bounds, writer = [0], None
        try:
            with pyarrow.OSFile(self.path, "wb") as file:
                for batch in map(without_dictionaries, batches):
                    writer = writer or pyarrow.ipc.new_file(file, batch.schema)
                    for start in range(0, batch.num_rows, COPY_ROWS):
                        part = batch.slice(start, COPY_ROWS)
                        writer.write_batch(part)
                        bounds.append(bounds[-1] + part.num_rows)
                writer.close()
        except OSError as error:
            message = f"a copy of its rows does not fit {tempfile.gettempdir()} ({error.strerror or error})."
            remedy = "Set TMPDIR to a larger folder, or rewrite the file: linadd convert"
            raise DataError(f"{message} {remedy}", source=origin) from error
        self._bounds = np.array(bounds)

    def pieces(self, start, stop):
        """Yield rows start..stop-1 in batches: the index of the first, the batch, and the rows' numbers from 1."""
        import pyarrow

        first, last = np.searchsorted(self._bounds, start, "right") - 1, np.searchsorted(self._bounds, stop)
        with pyarrow.memory_map(self.path) as file, pyarrow.ipc.open_file(file) as reader:
            for k in range(first, last):
                low, high = (int(np.clip(bound, start, stop)) for bound in self._bounds[k : k + 2])
                batch = reader.get_batch(k).slice(low - int(self._bounds[k]), high - low)
                yield low, batch, np.arange(low + 1, high + 1)

    def close(self):
        """Remove the file."""
        self._remove()


def without_dictionaries(batch):
    """A batch with plain values: an Arrow file holds one dictionary a column, batches of Parquet bring their own."""
    import pyarrow

    columns = batch.columns
    columns = [each.dictionary_decode() if hasattr(each, "dictionary_decode") else each for each in columns]
    return pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)
