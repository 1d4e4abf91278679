"""What Newton's method sums over the rows, and the linear algebra of its step; float64, the same bits on any machine.

    Gram       sum_i h_i phi(x_i) phi(x_i)'        of plain codes: (n_features n_local)^2 / 2 products a row
    scatter    sum_i a_i phi(x_i)

Every entry is a running sum over the rows in index order: pieces of rows, and the features that a thread takes, only
decide when and by whom it is added to. So the chunks of the reader and the number of threads cannot change a bit, and
the Cholesky factor is compiled here too, since the bits of LAPACK's depend on its threads. Measured for 54 features of
11 basis functions: 2.3 us a row, the dense product (dsyrk) 5.7 us; the factor of order 2,000 takes 0.10 s, as LAPACK's;
of order 4,000 0.81 s, LAPACK 0.59.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from linadd._jit import compiled, compiled_sums, run_threads, shares
from linadd.encoders.exact import decide_row
from linadd.encoders.rows import encode_row, make_scratch

PIECE_BYTES = 2_000_000  # of codes: they stay in the second level of cache while every feature is summed
WEIGHT_BYTES = 48  # of a row and output: score, weights of the sums, signed dual variable
RESIDUAL, CURVATURE, NEGATIVE, POSITIVE = range(4)  # the sums over rows
TOGETHER, DEPTH = 32, 512  # columns of the factor that are computed at once; terms of their sums, to stay in a cache


class Codes(NamedTuple):
    """A piece of rows, encoded."""

    columns: np.ndarray  # int32 (n_rows, n_features): first column of each feature's values
    values: np.ndarray  # float64 (n_rows, n_features, n_local)

    def rows(self, n_rows):
        """The first rows."""
        return Codes(self.columns[:n_rows], self.values[:n_rows])


def row_bytes(encoder, n_outputs):
    """Bytes that a row of a piece takes: position, code, and for each output a score and weights."""
    return encoder.n_features * (8 + 8 * encoder.n_local) + WEIGHT_BYTES * n_outputs


def piece_rows(encoder, n_outputs, n_rows):
    """Rows of a piece, of n_rows in all."""
    return max(min(int(np.clip(PIECE_BYTES // row_bytes(encoder, n_outputs), 16, 8192)), n_rows), 1)


def empty_codes(encoder, n_rows):
    """Space for the codes of a piece of rows."""
    shape = n_rows, encoder.n_features
    return Codes(np.empty(shape, np.int32), np.empty((*shape, encoder.n_local)))


@compiled
def encode_rows(basis, positions, coef, scratch, columns, values, scores):
    """Codes of rows of positions; adds their decisions under float64 coef to scores (n_rows, n_outputs)."""
    parts = np.empty(scores.shape[1])
    for i in range(positions.shape[0]):
        encode_row(basis, positions[i], scratch)
        decide_row(scratch, coef, scores[i], parts)
        for j in range(positions.shape[1]):
            columns[i, j] = j * basis.n_basis + scratch.index[j]
            for m in range(basis.n_local):
                values[i, j, m] = scratch.values[m, j]


def encode(encoder, positions, coef, codes, scores, n_threads):
    """encode_rows, each thread an equal share of the rows; coef and scores of no outputs give the codes alone."""
    tasks = [
        (encoder.basis, positions[s], coef, make_scratch(encoder), codes.columns[s], codes.values[s], scores[s])
        for s in shares(len(positions), n_threads)
    ]
    run_threads(encode_rows, tasks, n_threads)


@compiled
def add_products_pair(columns, values, weights, j, gram):
    """add_products for two values a feature, the default."""
    order, flat, one = np.uint64(gram.shape[1]), gram.reshape(-1), np.uint64(1)
    for i in range(columns.shape[0]):
        if weights[i] == 0.0:
            continue
        a, b = weights[i] * values[i, j, 0], weights[i] * values[i, j, 1]
        upper = np.uint64(columns[i, j]) * order
        for k in range(j + 1):
            left, right = values[i, k, 0], values[i, k, 1]
            at = upper + np.uint64(columns[i, k])
            flat[at] += a * left
            flat[at + one] += a * right
            flat[at + order] += b * left
            flat[at + order + one] += b * right


@compiled
def add_products_dense(columns, values, weights, j, gram):
    """add_products for dense codes, as operations on runs of a row; four rows share a load, and are added in order."""
    n_rows, n_local, n_columns = columns.shape[0], values.shape[2], (j + 1) * values.shape[2]
    codes = values.reshape(n_rows, -1)
    n_quads = n_rows // 4 * 4
    for m in range(j * n_local, n_columns):
        row = gram[m]
        for i in range(0, n_quads, 4):
            p, q, r, s = codes[i], codes[i + 1], codes[i + 2], codes[i + 3]
            a, b = weights[i] * p[m], weights[i + 1] * q[m]
            c, d = weights[i + 2] * r[m], weights[i + 3] * s[m]
            for k in range(n_columns):
                row[k] = row[k] + a * p[k] + b * q[k] + c * r[k] + d * s[k]
        for i in range(n_quads, n_rows):
            a, p = weights[i] * codes[i, m], codes[i]
            for k in range(n_columns):
                row[k] += a * p[k]


@compiled
def add_products(columns, values, weights, j, gram):
    """Add weight * phi_j phi_k' of every row, k <= j, to the rows of feature j of gram."""
    n_local = values.shape[2]
    for i in range(columns.shape[0]):
        if weights[i] == 0.0:
            continue
        for m in range(n_local):
            row, weight = gram[columns[i, j] + m], weights[i] * values[i, j, m]
            for q in range(n_local):
                for k in range(j + 1):
                    row[np.uint64(columns[i, k] + q)] += weight * values[i, k, q]


@compiled
def add_rows(columns, values, weights, outputs, features, is_local, sums, gram):
    """Add a piece of rows to the sums of some outputs, and of the features in range(*features).

    weights (n_outputs, n_sums, n_rows); sums (n_outputs, n_sums or 0, n_columns) += weight phi. gram (n_outputs,
    n_columns, n_columns) += h phi phi', h = weights[:, CURVATURE]: the lower triangle, by whole blocks of features; may
    be empty.
    """
    for o in outputs:
        for j in range(features[0], features[1]):
            for s in range(sums.shape[1]):
                for i in range(columns.shape[0]):
                    weight, at = weights[o, s, i], columns[i, j]
                    if weight != 0.0:
                        for m in range(values.shape[2]):
                            sums[o, s, at + m] += weight * values[i, j, m]
            if gram.shape[0] == 0:
                continue
            if not is_local:
                add_products_dense(columns, values, weights[o, CURVATURE], j, gram[o])
            elif values.shape[2] == 2:
                add_products_pair(columns, values, weights[o, CURVATURE], j, gram[o])
            else:
                add_products(columns, values, weights[o, CURVATURE], j, gram[o])


def shares_of_triangle(n_features, n_shares):
    """Bounds (start, stop) of consecutive features whose rows of a lower triangle are about equal work."""
    bounds = np.rint(n_features * np.sqrt(np.linspace(0, 1, n_shares + 1))).astype(int)
    return [*pairwise(bounds.tolist())]


@compiled
def penalise_rows_and_columns(gram, n_basis, order, scale):
    """A = S T gram T' S in place: T the d suffix sums of phi^d = D_d'^-1 phi within each feature, S its scale.

    The lower triangle by whole blocks of features.
    """
    for j in range(scale.shape[0]):
        first, n_columns = j * n_basis, (j + 1) * n_basis
        for _ in range(order):
            for i in range(first + n_basis - 2, first - 1, -1):
                for k in range(n_columns):
                    gram[i, k] += gram[i + 1, k]
        for i in range(first, first + n_basis):
            for feature in range(j + 1):
                start, factor = feature * n_basis, scale[j] * scale[feature]
                for _ in range(order):
                    for k in range(start + n_basis - 2, start - 1, -1):
                        gram[i, k] += gram[i, k + 1]
                for k in range(start, start + n_basis):
                    gram[i, k] *= factor


@compiled
def complete_hessian(gram, code_sum, mean, curvature, inverse, hessian_intercept):
    """H = I + sum_i h_i z_i z_i' - inverse c c', z_i = phi_i - mean, c = sum_i h_i z_i, in place, lower triangle.

    gram = sum h phi phi', code_sum = sum h phi, curvature = sum h; c is written to hessian_intercept.
    """
    for i in range(gram.shape[0]):
        hessian_intercept[i] = code_sum[i] - curvature * mean[i]
        for k in range(i + 1):
            centring = mean[i] * hessian_intercept[k] + code_sum[i] * mean[k]
            gram[i, k] -= centring + inverse * hessian_intercept[i] * hessian_intercept[k]
        gram[i, i] += 1.0


@compiled_sums
def subtract_products(matrix, columns, depth, rows):
    """matrix[i, j] -= sum_k matrix[i, k] matrix[j, k], k in range(*depth), of the columns and rows in these ranges.

    Tiles of 4 rows and 4 columns share their loads. Which entries are in a tile depends on the ends of the ranges, and
    so do the bits: rows are shared among threads in multiples of 4.
    """
    (start, stop), (begin, end), (first, last) = columns, depth, rows
    n_terms, last_tile, stop_tile = end - begin, last - (last - first) % 4, stop - (stop - start) % 4
    for i in range(first, last_tile, 4):
        a, b = matrix[i, begin:end], matrix[i + 1, begin:end]
        c, d = matrix[i + 2, begin:end], matrix[i + 3, begin:end]
        for j in range(start, stop_tile, 4):
            p, q = matrix[j, begin:end], matrix[j + 1, begin:end]
            r, s = matrix[j + 2, begin:end], matrix[j + 3, begin:end]
            ap = aq = ar = as_ = bp = bq = br = bs = 0.0
            cp = cq = cr = cs = dp = dq = dr = ds = 0.0
            for k in range(n_terms):
                ap, aq, ar, as_ = ap + a[k] * p[k], aq + a[k] * q[k], ar + a[k] * r[k], as_ + a[k] * s[k]
                bp, bq, br, bs = bp + b[k] * p[k], bq + b[k] * q[k], br + b[k] * r[k], bs + b[k] * s[k]
                cp, cq, cr, cs = cp + c[k] * p[k], cq + c[k] * q[k], cr + c[k] * r[k], cs + c[k] * s[k]
                dp, dq, dr, ds = dp + d[k] * p[k], dq + d[k] * q[k], dr + d[k] * r[k], ds + d[k] * s[k]
            tile = (ap, aq, ar, as_), (bp, bq, br, bs), (cp, cq, cr, cs), (dp, dq, dr, ds)
            for m in range(4):
                for n in range(4):
                    matrix[i + m, j + n] -= tile[m][n]
    for i in range(first, last):
        for j in range(stop_tile if i < last_tile else start, stop):
            row, pivots, total = matrix[i, begin:end], matrix[j, begin:end], 0.0
            for k in range(n_terms):
                total += row[k] * pivots[k]
            matrix[i, j] -= total


@compiled_sums
def factorise_rows(matrix, start, stop, first, last):
    """Columns in range(start, stop) of the factor, in rows from `first` to before `last`; those before are done."""
    for begin in range(0, start, DEPTH):
        subtract_products(matrix, (start, stop), (begin, min(begin + DEPTH, start)), (first, last))
    for i in range(first, last):
        row = matrix[i]
        for j in range(start, min(i + 1, stop)):
            pivots, total = matrix[j], row[j]
            for k in range(start, j):
                total -= row[k] * pivots[k]
            row[j] = np.sqrt(max(total, 1.0)) if i == j else total / pivots[j]


def factorise(matrix, n_threads=1):
    """Cholesky factor L in the lower triangle of a matrix H, in place; what is above it is of no use.

    All eigenvalues of H are at least 1, so are those of its Schur complements, and so are the squared pivots: where
    rounding says less, 1 is nearer to the truth. Panel by panel of columns: first its square on the diagonal, then the
    rows below, which the threads share.
    """
    n = len(matrix)
    for start in range(0, n, TOGETHER):
        stop = min(start + TOGETHER, n)
        factorise_rows(matrix, start, stop, start, stop)
        bounds = stop + np.linspace(0, (n - stop) // 4, n_threads + 1).astype(int) * 4
        bounds[-1] = n
        run_threads(factorise_rows, [(matrix, start, stop, *share) for share in pairwise(bounds.tolist())], n_threads)


@compiled
def substitute(factor, vector):
    """Solve L L' x = vector in place."""
    n = factor.shape[0]
    for i in range(n):
        total = vector[i]
        for k in range(i):
            total -= factor[i, k] * vector[k]
        vector[i] = total / factor[i, i]
    for i in range(n - 1, -1, -1):
        vector[i] /= factor[i, i]
        for k in range(i):
            vector[k] -= factor[i, k] * vector[i]
