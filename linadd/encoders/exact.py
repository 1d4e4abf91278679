"""Rows in float64, straight from values: decisions, the certificate's scatter, and the explicit embedding.

Every score that a user sees comes from here, so float32, float64 and integer input with equal values give equal bits,
and the certificate judges the coefficients exactly as they will be used.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from linadd._jit import compiled, run_threads, shares
from linadd.census import first_not_finite
from linadd.encoders import bspline, fourier, hermite
from linadd.encoders.coordinates import Axes, feature_of, locate_values
from linadd.encoders.rows import Zero, append_zero, n_entries
from linadd.encoders.tables import N_CODES, add_tables, every_code, tabulate_row
from linadd.errors import DataError
from linadd.penalty import penalised_code

TABLE_ROWS = 1024  # of uint8, from which on tables of all values are less work
TABLE_BYTES, PIECE_BYTES = 4_000_000, 1_000_000  # of tables that are held at once; of rows that stay in a cache


class Values(NamedTuple):
    """Rows as values; of their stored entries only, in the layout of CSR, where `columns` is not None."""

    X: np.ndarray  # any real dtype, (n_rows, n_features), or (n_entries,)
    columns: np.ndarray | None = None  # int32 or int64 (n_entries,)
    starts: np.ndarray | None = None  # the same (n_rows + 1,): where the entries of a row start

    def part(self, start, stop):
        """The rows from `start` to `stop`."""
        if self.columns is None:
            return Values(self.X[start:stop])
        return self._replace(starts=self.starts[start : stop + 1])


class Scratch(NamedTuple):
    """One encoded row; as `rows.Scratch`, in float64."""

    index: np.ndarray  # int64, of each entry
    values: np.ndarray  # float64 (n_local, ...)
    u: np.ndarray  # float64 (n_features,): coordinates
    columns: np.ndarray | None = None
    size: np.ndarray | None = None
    zero: Zero | None = None


@compiled
def encode_coordinates(u, columns, axes, basis, index, values):
    """Encode the coordinates u of a row; the branch on the encoder is taken here, once a row."""
    if basis.code == bspline.CODE:
        bspline.encode_coordinates(u, columns, axes.n_bins, basis.n_local - 1, index, values)
    elif basis.code == fourier.CODE:
        for e in range(u.shape[0]):
            fourier.encode_coordinate(u[e], basis.weights, e, values)
    elif basis.code == hermite.CODE:
        for e in range(u.shape[0]):
            hermite.encode_coordinate(u[e], basis.weights, e, values)
    else:
        for e in range(u.shape[0]):
            values[0, e] = u[e]


@compiled
def encode_values(x, columns, axes, basis, scratch):
    """Encode the entries x of a row."""
    u = scratch.u[: x.shape[0]]
    locate_values(x, columns, axes, u)
    encode_coordinates(u, columns, axes, basis, scratch.index, scratch.values)


@compiled
def load_values(X, columns, starts, i, axes, basis, scratch):
    """load_row for the arrays of Values; the number of dimensions is known to the compiler."""
    if X.ndim == 2:
        encode_values(X[i], None, axes, basis, scratch)
    else:
        start, stop = starts[i], starts[i + 1]
        encode_values(X[start:stop], columns[start:stop], axes, basis, scratch)
        append_zero(stop - start, columns[start:stop], scratch)


@compiled
def load_row(rows, i, axes, basis, scratch):
    """Encode row i of Values; of sparse rows what the stored entries add to the code of zero, as `rows.py` has it."""
    load_values(rows.X, rows.columns, rows.starts, i, axes, basis, scratch)


@compiled
def decide_row(scratch, coef, decisions, parts):
    """decisions[o] += sum_j coef[j, :, o] . phi(x_j) of the row in scratch, of any float type; parts (n_outputs,).

    Each feature is summed by itself before it is added, so that tables of a feature's part (`tables.py`) give the same
    bits.
    """
    index, values, columns = scratch.index, scratch.values, scratch.columns
    size, n_local, n_outputs = n_entries(scratch.size, index), values.shape[0], decisions.shape[0]
    if n_outputs == 1:
        total = decisions[0]
        for e in range(size):
            j = feature_of(columns, e)
            part = values[0, e] * coef[j, index[e], 0]
            for m in range(1, n_local):
                part += values[m, e] * coef[j, index[e] + m, 0]
            total += part
        decisions[0] = total
    elif n_local == 2:
        for e in range(size):
            j = feature_of(columns, e)
            left, right = coef[j, index[e]], coef[j, index[e] + 1]
            for o in range(n_outputs):
                decisions[o] += values[0, e] * left[o] + values[1, e] * right[o]
    else:
        for e in range(size):
            j = feature_of(columns, e)
            parts[:] = 0.0
            for m in range(n_local):
                place, value = coef[j, index[e] + m], values[m, e]
                for o in range(n_outputs):
                    parts[o] += value * place[o]
            for o in range(n_outputs):
                decisions[o] += parts[o]


@compiled
def decide_rows(rows, axes, basis, coef, decisions, scratch):
    """Add the scores of every row to decisions (n_rows, n_outputs)."""
    parts = np.empty(decisions.shape[1])
    for i in range(decisions.shape[0]):
        load_row(rows, i, axes, basis, scratch)
        decide_row(scratch, coef, decisions[i], parts)


@compiled
def tabulate_values(X, axes, basis, coef, tables, scratch):
    """Scores of each feature apart, of row after row of X, into tables (n_outputs, n_features, n_rows)."""
    for i in range(X.shape[0]):
        encode_values(X[i], None, axes, basis, scratch)
        tabulate_row(scratch.index, scratch.values, coef, i, tables)


def decide_bytes(X, axes, basis, coef, decisions):
    """decide_rows for uint8 rows, the same bits: a feature has 256 values at most, so its curve is a table."""
    n_rows, n_features = X.shape
    width = max(TABLE_BYTES // (8 * N_CODES * coef.shape[2]), 1)
    piece_rows = PIECE_BYTES // min(width, n_features)
    for start in range(0, n_features, width):
        own = slice(start, min(start + width, n_features))
        shape = own.stop - start
        own_axes = Axes(*(array[own] for array in axes[:-1]), has_knots=axes.has_knots)
        tables = np.empty((coef.shape[2], shape, N_CODES))
        scratch = Scratch(np.zeros(shape, np.int64), np.zeros((basis.n_local, shape)), np.zeros(shape))
        tabulate_values(every_code(shape), own_axes, basis, coef[own], tables, scratch)
        for first in range(0, n_rows, piece_rows):
            add_tables(X[first : first + piece_rows], start, tables, decisions[first : first + piece_rows])


@compiled
def certify_rows(rows, axes, basis, coef, signed_duals, decisions, sums, scratch):
    """Scores of every row as in decide_rows, and sums[j, :, o] += signed_duals[i, o] phi(x_ij)."""
    index, values, columns = scratch.index, scratch.values, scratch.columns
    parts = np.empty(decisions.shape[1])
    for i in range(decisions.shape[0]):
        load_row(rows, i, axes, basis, scratch)
        decide_row(scratch, coef, decisions[i], parts)
        duals = signed_duals[i]
        if duals.any():
            for e in range(n_entries(scratch.size, index)):
                j = feature_of(columns, e)
                for m in range(values.shape[0]):
                    place, value = sums[j, index[e] + m], values[m, e]
                    for o in range(duals.shape[0]):
                        place[o] += duals[o] * value


@compiled
def fill_rows(X, axes, basis, columns, data, scratch):
    """Columns and values of the CSR embedding of dense rows, (n_rows, n_features * n_local) each."""
    index, values = scratch.index, scratch.values
    n_local, n_features = values.shape
    for i in range(X.shape[0]):
        encode_values(X[i], None, axes, basis, scratch)
        for j in range(n_features):
            for m in range(n_local):
                columns[i, j * n_local + m] = j * basis.n_basis + index[j] + m
                data[i, j * n_local + m] = values[m, j]


def check_finite(X, origin, feature_names=None, row_number=lambda i: i + 1):
    """Raise DataError on the first value of X (n_rows, n_features) that is NaN or infinite.

    Parameters
    ----------
    X : array or csr_array, shape (n_rows, n_features)
        Feature values.
    origin : str
        Name of the data.
    feature_names : list of str, optional
        Names of the columns.
    row_number : callable
        Row index to the number that the message gives.
    """
    bad = first_not_finite(X) if X.dtype.kind == "f" else None
    if bad is not None:
        i, j = map(int, bad)
        name = feature_names[j] if feature_names else j + 1
        raise DataError(
            f"the value is {X[i, j]}. linadd takes no NaN or infinity: fill or drop this row.",
            source=origin, row=row_number(i), column=name,
        )  # fmt: skip


def values_of(X):
    """Values of rows: an array, or a csr_array; compiled loops want arrays that are C-contiguous and writable."""
    parts = (X.data, X.indices, X.indptr) if scipy.sparse.issparse(X) else (X,)
    return Values(*(np.require(part, requirements="CW") for part in parts))


def make_scratch(encoder, is_sparse=False):
    """An empty scratch for the loops above."""
    n_features, n_local = encoder.n_features, encoder.n_local
    shape = (n_local, n_features * (1 + is_sparse))
    scratch = Scratch(np.zeros(shape[1], np.int64), np.zeros(shape), np.zeros(n_features))
    if not is_sparse:
        return scratch
    dense = make_scratch(encoder)
    load_row(values_of(np.zeros((1, n_features))), 0, encoder.axes, encoder.basis, dense)
    zero = Zero(dense.index, dense.values)
    return scratch._replace(columns=np.zeros(shape[1], np.int32), size=np.zeros(1, np.int64), zero=zero)


def scores_of_zero(encoder, coef):
    """sum_j coef_j . phi_j(0), float64 (1, n_outputs): what a sparse row's entries are added to."""
    decisions, zeros = np.zeros((1, coef.shape[2])), values_of(np.zeros((1, encoder.n_features)))
    decide_rows(zeros, encoder.axes, encoder.basis, coef, decisions, make_scratch(encoder))
    return decisions


def decide(encoder, X, coef, intercept, n_threads=1):
    """Scores of rows, in float64 whatever the dtype of X; values are clamped to the training range.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    X : array or csr_array, shape (n_rows, n_features), any real dtype
        Feature values, finite. Sparse rows cost their stored entries, and all of them one dense row more.
    coef : float32 array, shape (n_features, n_basis, n_outputs)
        Coefficients in phi units.
    intercept : float64 array, shape (n_outputs,)
        Added to each score.
    n_threads : int
        Threads that share the rows; never changes the result.

    Returns
    -------
    float64 array, shape (n_rows, n_outputs)
        sum_j coef_j . phi(x_j) + intercept.
    """
    coef, is_sparse = np.require(coef, requirements="CW"), scipy.sparse.issparse(X)
    decisions = np.zeros((X.shape[0], coef.shape[2]))
    if X.dtype == np.uint8 and not is_sparse and len(X) >= TABLE_ROWS:
        decide_bytes(np.require(X, requirements="CW"), encoder.axes, encoder.basis, coef, decisions)
    else:
        values = values_of(X)
        tasks = [
            (values.part(own.start, own.stop), encoder.axes, encoder.basis, coef, decisions[own],
             make_scratch(encoder, is_sparse))
            for own in shares(X.shape[0], n_threads)
        ]  # fmt: skip
        run_threads(decide_rows, tasks, n_threads)
    return decisions + (scores_of_zero(encoder, coef) + intercept if is_sparse else intercept)


def encode(encoder, X, penalised=False):
    """Explicit embedding of rows: phi, or phi^d = D_d'^-1 phi, without scale or centre.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    X : array, shape (n_rows, n_features), any real dtype
        Feature values, finite; clamped to the training range.
    penalised : bool
        Give phi^d, whose inner product is the kernel K_d; dense within each feature.

    Returns
    -------
    scipy.sparse.csr_array, shape (n_rows, n_features * n_basis)
        float32 for float32 input, else float64; sorted indices. Row i of phi has n_features * n_local stored entries.
    """
    X = np.require(X, requirements="CW")
    n_rows, n_features = X.shape
    shape = (n_rows, n_features * encoder.n_local)
    columns, data = np.zeros(shape, np.int64), np.zeros(shape)
    fill_rows(X, encoder.axes, encoder.basis, columns, data, make_scratch(encoder))
    if penalised and encoder.is_local and encoder.penalty_order:
        columns, data = penalise(encoder, columns, data)
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    starts = np.arange(n_rows + 1) * columns.shape[1]
    embedding = (data.astype(dtype, copy=False).ravel(), columns.ravel(), starts)
    embedded = scipy.sparse.csr_array(embedding, shape=(n_rows, n_features * encoder.n_basis))
    if penalised:
        embedded.eliminate_zeros()
    return embedded


def penalise(encoder, columns, data):
    """Columns and values of phi^d from those of phi: each feature becomes dense."""
    n_rows, n_all = len(data), encoder.n_features * encoder.n_basis
    dense = np.zeros((n_rows, n_all))
    np.put_along_axis(dense, columns, data, axis=1)
    dense = penalised_code(dense.reshape(n_rows, encoder.n_features, encoder.n_basis), encoder.penalty_order)
    return np.tile(np.arange(n_all), (n_rows, 1)), dense.reshape(n_rows, n_all)
