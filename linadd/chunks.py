"""A chunk of rows, the one thing that travels from sources to encoders and solvers; its groups, its reading ahead."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from linadd.errors import DataError, FileRow

LEAVING_SECONDS = 1.0
GROUP_ROWS = 1000  # whose sums are added in index order, so that no chunking changes them


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
    origins : array of str, shape (n_rows,), dtype object, or None
        Names of the files of the rows, where these come from several. For messages only.
    """

    X: np.ndarray | scipy.sparse.csr_array
    y: np.ndarray | None
    weight: np.ndarray | None
    first_row: int
    origin: str
    row_numbers: np.ndarray | None = None
    origins: np.ndarray | None = None

    @property
    def n_rows(self):
        """Number of rows."""
        return self.X.shape[0]

    def row_number(self, row):
        """Number that a message gives to the chunk's row `row` (from 0): the row as the user's file counts, from 1."""
        number = self.first_row + row + 1 if self.row_numbers is None else int(self.row_numbers[row])
        return number if self.origins is None else FileRow(number, self.origins[row])

    def take(self, rows):
        """Some of the rows, which keep their numbers; `rows` is a slice, or indices from 0."""
        parts = (part if part is None else part[rows] for part in (self.y, self.weight, self.origins))
        y, weight, origins = parts
        return Chunk(self.X[rows], y, weight, self.first_row, self.origin, self.numbers()[rows], origins)

    def numbers(self):
        """Numbers of all rows as the user's file counts, from 1; int64 (n_rows,)."""
        counted = np.arange(self.first_row + 1, self.first_row + self.n_rows + 1)
        return counted if self.row_numbers is None else self.row_numbers

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


def csr_rows(values, indices, indptr, shape):
    """The csr_array of its parts, with int32 indices if they suffice: compiled loops then meet one type."""
    index_dtype = np.int32 if max(shape[1], len(indices)) < 2**31 else np.int64
    indices, indptr = (index.astype(index_dtype, copy=False) for index in (indices, indptr))
    return scipy.sparse.csr_array((values, indices, indptr), shape=shape)


def join_rows(pieces):
    """Tables of the same columns, dense or csr_array, below each other; a single one is not copied."""
    if len(pieces) == 1:
        return pieces[0]
    if scipy.sparse.issparse(pieces[0]):
        X = scipy.sparse.vstack(pieces, format="csr")
        return csr_rows(X.data, X.indices, X.indptr, X.shape)
    return np.concatenate(pieces)


def join_chunks(pieces, first_row, origin):
    """Chunks of the same columns below each other, as the rows from `first_row` on; they keep their numbers and files.

    Parameters
    ----------
    pieces : list of Chunk
        As sources deliver them; all have labels, weights, sparse rows or none has.
    first_row : int
        Index of the first row in the source of the joined chunk.
    origin : str
        Its name, where the pieces have several.

    Returns
    -------
    Chunk

    Raises
    ------
    DataError
        Labels of numbers and of text: names the first row that differs.
    """
    first, numbers, origins = pieces[0], np.concatenate([piece.numbers() for piece in pieces]), None
    if len(pieces) == 1:
        return replace(first, first_row=first_row, row_numbers=numbers)
    for piece in pieces if first.y is not None else ():
        if (piece.y.dtype.kind == "U") != (first.y.dtype.kind == "U"):
            refuse_label_types(piece)
    if any(piece.origins is not None or piece.origin != first.origin for piece in pieces):
        own = ([piece.origin] * piece.n_rows if piece.origins is None else piece.origins for piece in pieces)
        origins = np.concatenate([np.array(names, dtype=object) for names in own])
    else:
        origin = first.origin
    y, weight = (
        None if getattr(first, name) is None else np.concatenate([getattr(piece, name) for piece in pieces])
        for name in ("y", "weight")
    )
    return Chunk(join_rows([piece.X for piece in pieces]), y, weight, first_row, origin, numbers, origins)


def refuse_label_types(chunk):
    """Raise DataError for the first label of a chunk: text after numbers, or numbers after text."""
    message = f"label {chunk.y[0].item()!r} stands among others of another type. Use numbers only or text only."
    raise DataError(message, source=chunk.origin, row=chunk.row_number(0))


def group_slices(first_row, n_rows):
    """(start, stop, closes) of the pieces of a chunk between multiples of GROUP_ROWS; `closes` marks a full group.

    Parameters
    ----------
    first_row : int
        Index of the chunk's first row in the source.
    n_rows : int
        Rows of the chunk.
    """
    start = 0
    while start < n_rows:
        stop = min(n_rows, start + GROUP_ROWS - (first_row + start) % GROUP_ROWS)
        yield start, stop, (first_row + stop) % GROUP_ROWS == 0
        start = stop


def row_groups(chunks, is_sparse=False):
    """Yield the rows of each group of GROUP_ROWS, in index order, as a list of (first row's index, X, weights).

    Sums over a group, added in this order, are the same for any chunking and any number of threads.

    Parameters
    ----------
    chunks : iterable of Chunk
        All rows of a source, in order.
    is_sparse : bool
        Give X as csr_arrays of the values that are not 0; else as dense arrays.
    """
    pieces = []
    for chunk in chunks:
        X, weight = chunk.sparse() if is_sparse else chunk.dense(), chunk.weights()
        for start, stop, closes in group_slices(chunk.first_row, chunk.n_rows):
            pieces.append((chunk.first_row + start, X[start:stop], weight[start:stop]))
            if closes:
                yield pieces
                pieces = []
    if pieces:
        yield pieces


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
