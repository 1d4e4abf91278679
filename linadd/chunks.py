"""A chunk of rows, the one thing that travels from sources to encoders and solvers, and its reading ahead."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
import scipy.sparse

LEAVING_SECONDS = 1.0


@dataclass
class Chunk:
    """Consecutive rows of a source.

    Attributes
    ----------
    X : array, shape (n_rows, n_features), or scipy.sparse.csr_array
        Feature values in the dtype they are stored in (any bool, integer or float type; native byte order).
    y : array, shape (n_rows,), or None
        Labels as stored: numbers or strings, not yet mapped to classes.
    weight : array, shape (n_rows,), float64, or None
        Sample weights; None means 1 for each row.
    first_row : int
        Index of the first row in its source, from 0.
    origin : str
        The source's name, for messages.
    row_numbers : array, shape (n_rows,), int64, or None
        Rows as the user's file counts, from 1, where they are not `first_row + 1, first_row + 2, ...`: a filter left
        some out, or a text file holds comments. For messages only.
    """

    X: np.ndarray | scipy.sparse.csr_array
    y: np.ndarray | None
    weight: np.ndarray | None
    first_row: int
    origin: str
    row_numbers: np.ndarray | None = None

    @property
    def n_rows(self):
        """Number of rows."""
        return self.X.shape[0]

    def row_number(self, row):
        """Number that a message gives to the chunk's row `row` (from 0): the row as the user's file counts, from 1."""
        return self.first_row + row + 1 if self.row_numbers is None else int(self.row_numbers[row])

    def dense(self):
        """X as a C-contiguous, writable array of its stored dtype, shape (n_rows, n_features); copied only if not so.

        Compiled loops only read it, but numba compiles each of them once more for a read-only array.
        """
        X = self.X.toarray() if scipy.sparse.issparse(self.X) else self.X
        return np.require(X, requirements="CW")

    def sparse(self):
        """The values of X that are not 0, as `entries_of` has them."""
        return entries_of(self.X)

    def weights(self):
        """Sample weights, float64 (n_rows,): ones where the chunk has none."""
        return np.ones(self.n_rows) if self.weight is None else self.weight


def entries_of(X):
    """A table, dense or sparse, as a csr_array of its dtype: indices sorted, each once, and no zeros.

    Its arrays are C-contiguous and writable, as in `Chunk.dense`; those of X are never changed.
    """
    X = scipy.sparse.csr_array(X)
    if not (X.has_canonical_format and X.data.all()):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    parts = (np.require(part, requirements="CW") for part in (X.data, X.indices, X.indptr))
    return scipy.sparse.csr_array(tuple(parts), shape=X.shape)


def prefetch(reads, depth=1):
    """Yield the results of `reads` in order, while a background thread makes the next `depth` of them.

    Each read is a dask task, computed on one thread, so that reads of one file never compete with each other; a read
    that releases the GIL (files, compiled parsers) runs beside the caller's own work. At most `depth + 1` results are
    held here, besides the one that the caller works on.

    Parameters
    ----------
    reads : iterable of callable
        Functions of no argument; the iterable is consumed as far ahead as the reading goes.
    depth : int
        Number of results to read ahead; 0 reads each one when it is asked for.

    Yields
    ------
    The results. An exception of a read is raised at the point of its result. Closing the generator drops what is queued
    and waits for the read under way, up to a second: no thread is left, or one that ends with its read. Leaving a loop
    closes it too, though after an exception only with the traceback: use contextlib.closing where that matters.
    """
    import dask  # 0.1 s that `import linadd` must not take

    def task(read):
        # The synchronous scheduler called directly: the detour through compute() takes three times as long.
        delayed = dask.delayed(read, pure=False, traverse=False)()
        return dask.get(delayed.dask, delayed.key)

    reads = iter(reads)
    pool = ThreadPoolExecutor(1, thread_name_prefix="linadd-read")
    pending = deque()
    try:
        while True:
            for read in reads:
                pending.append(pool.submit(task, read))
                if len(pending) > depth:
                    break
            if not pending:
                return
            pending[0].exception()  # waits; until then it stays among those that leaving must wait for
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        under_way = [future for future in pending if not future.cancelled()]
        # Bounded: the garbage collector may close the generator while this thread holds a lock (h5py has one) that the
        # read needs to end.
        if not wait(under_way, LEAVING_SECONDS).not_done:
            pool.shutdown(wait=True)
