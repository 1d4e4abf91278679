"""Rows in float64, straight from values: decisions, the certificate's scatter, and the explicit embedding.

Every score that a user sees comes from here, so float32, float64 and integer input with equal values give equal bits,
and the certificate judges the coefficients exactly as they will be used.
"""

import numpy as np
import scipy.sparse

from linadd._jit import compiled, run_threads, shares
from linadd.encoders import bspline, fourier, hermite
from linadd.encoders.coordinates import Axes, locate_row
from linadd.encoders.tables import N_CODES, add_tables, every_code, tabulate_row
from linadd.errors import DataError
from linadd.penalty import penalised_code

TABLE_ROWS = 1024  # of uint8, from which on tables of all values are less work
TABLE_BYTES, PIECE_BYTES = 4_000_000, 1_000_000  # of tables that are held at once; of rows that stay in a cache


@compiled
def encode_row(X, i, axes, basis, index, values, u):
    """Encode row i of X into index (n_features,), float64 values (n_local, n_features) and coordinates u."""
    locate_row(X, i, axes, u)
    encode_coordinates(u, axes, basis, index, values)


@compiled
def encode_coordinates(u, axes, basis, index, values):
    """Encode a row of coordinates u (n_features,); the branch on the encoder is taken here, once a row."""
    n_features = u.shape[0]
    if basis.code == bspline.CODE:
        bspline.encode_coordinates(u, axes.n_bins, basis.n_local - 1, index, values)
    elif basis.code == fourier.CODE:
        for j in range(n_features):
            fourier.encode_coordinate(u[j], basis.weights, j, values)
    elif basis.code == hermite.CODE:
        for j in range(n_features):
            hermite.encode_coordinate(u[j], basis.weights, j, values)
    else:
        for j in range(n_features):
            values[0, j] = u[j]


@compiled
def decide_row(index, values, coef, decisions, parts):
    """decisions[o] += sum_j coef[j, :, o] . phi(x_j) of one encoded row; parts (n_outputs,) is scratch.

    Each feature is summed by itself before it is added, so that tables of a feature's part (`tables.py`) give the same
    bits.
    """
    n_local, n_features = values.shape
    n_outputs = decisions.shape[0]
    if n_outputs == 1:
        total = decisions[0]
        for j in range(n_features):
            part = values[0, j] * coef[j, index[j], 0]
            for m in range(1, n_local):
                part += values[m, j] * coef[j, index[j] + m, 0]
            total += part
        decisions[0] = total
    elif n_local == 2:
        for j in range(n_features):
            left, right = coef[j, index[j]], coef[j, index[j] + 1]
            for o in range(n_outputs):
                decisions[o] += values[0, j] * left[o] + values[1, j] * right[o]
    else:
        for j in range(n_features):
            parts[:] = 0.0
            for m in range(n_local):
                place, value = coef[j, index[j] + m], values[m, j]
                for o in range(n_outputs):
                    parts[o] += value * place[o]
            for o in range(n_outputs):
                decisions[o] += parts[o]


@compiled
def decide_rows(X, axes, basis, coef, decisions, index, values, u):
    """Add the scores of every row of X to decisions (n_rows, n_outputs)."""
    parts = np.empty(decisions.shape[1])
    for i in range(X.shape[0]):
        encode_row(X, i, axes, basis, index, values, u)
        decide_row(index, values, coef, decisions[i], parts)


@compiled
def tabulate_values(X, axes, basis, coef, tables, index, values, u):
    """Scores of each feature apart, of row after row of X, into tables (n_outputs, n_features, n_rows)."""
    for i in range(X.shape[0]):
        encode_row(X, i, axes, basis, index, values, u)
        tabulate_row(index, values, coef, i, tables)


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
        scratch = np.zeros(shape, np.int64), np.zeros((basis.n_local, shape)), np.zeros(shape)
        tabulate_values(every_code(shape), own_axes, basis, coef[own], tables, *scratch)
        for first in range(0, n_rows, piece_rows):
            add_tables(X[first : first + piece_rows], start, tables, decisions[first : first + piece_rows])


@compiled
def certify_rows(X, axes, basis, coef, signed_duals, decisions, sums, index, values, u):
    """Scores of every row as in decide_rows, and sums[j, :, o] += signed_duals[i, o] phi(x_ij)."""
    n_local, n_features = values.shape
    parts = np.empty(decisions.shape[1])
    for i in range(X.shape[0]):
        encode_row(X, i, axes, basis, index, values, u)
        decide_row(index, values, coef, decisions[i], parts)
        duals = signed_duals[i]
        if duals.any():
            for j in range(n_features):
                for m in range(n_local):
                    place, value = sums[j, index[j] + m], values[m, j]
                    for o in range(duals.shape[0]):
                        place[o] += duals[o] * value


@compiled
def fill_rows(X, axes, basis, columns, data, index, values, u):
    """Columns and values of the CSR embedding, (n_rows, n_features * n_local) each."""
    n_local, n_features = values.shape
    for i in range(X.shape[0]):
        encode_row(X, i, axes, basis, index, values, u)
        for j in range(n_features):
            for m in range(n_local):
                columns[i, j * n_local + m] = j * basis.n_basis + index[j] + m
                data[i, j * n_local + m] = values[m, j]


def check_finite(X, origin, feature_names=None, row_number=lambda i: i + 1):
    """Raise DataError on the first value of X (n_rows, n_features) that is NaN or infinite.

    Parameters
    ----------
    X : array, shape (n_rows, n_features)
        Feature values.
    origin : str
        Name of the data.
    feature_names : list of str, optional
        Names of the columns.
    row_number : callable
        Row index to the number that the message gives.
    """
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        i, j = np.argwhere(~np.isfinite(X))[0]
        name = feature_names[j] if feature_names else int(j) + 1
        raise DataError(
            f"the value is {X[i, j]}. linadd takes no NaN or infinity: fill or drop this row.",
            source=origin, row=row_number(int(i)), column=name,
        )  # fmt: skip


def make_scratch(encoder):
    """Index, values and coordinates of one row, for the loops above."""
    n_features = encoder.n_features
    return np.zeros(n_features, np.int64), np.zeros((encoder.n_local, n_features)), np.zeros(n_features)


def decide(encoder, X, coef, intercept, n_threads=1):
    """Scores of rows, in float64 whatever the dtype of X; values are clamped to the training range.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    X : array, shape (n_rows, n_features), any real dtype, C-contiguous
        Feature values, finite.
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
    decisions, coef = np.zeros((X.shape[0], coef.shape[2])), np.require(coef, requirements="CW")
    if X.dtype == np.uint8 and len(X) >= TABLE_ROWS:
        decide_bytes(X, encoder.axes, encoder.basis, coef, decisions)
    else:
        tasks = [
            (X[rows], encoder.axes, encoder.basis, coef, decisions[rows], *make_scratch(encoder))
            for rows in shares(len(X), n_threads)
        ]
        run_threads(decide_rows, tasks, n_threads)
    return decisions + intercept


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
    fill_rows(X, encoder.axes, encoder.basis, columns, data, *make_scratch(encoder))
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
