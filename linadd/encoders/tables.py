"""Rows of bytes: whatever the basis, a feature's curve is a table of 256 numbers, and a score is a sum of entries.

    decision      f(x) = sum_j T_j[x_j],            T_j[c] = v_j . phi(c)
    scatter       S_j[c] = sum of the weights of the rows with x_j = c,   sum_i a_i phi(x_ij) = sum_c S_j[c] phi(c)

A byte is a value itself (uint8 input, images: the tables are exact) or a code of `coordinates.py`. Measured on 656
features, one thread: a score 0.40 ns a value, a scatter 0.6 ns; from positions 2.5 and 2 ns (degree 1).
"""

import numpy as np

from linadd._jit import compiled
from linadd.encoders.rows import encode_row

N_CODES = 256
TOGETHER = 32  # features whose tables share the first level of cache while all rows are scored
SCATTERED = 16  # the same for sums, which are written too


@compiled
def tabulate_row(index, values, coef, code, tables):
    """tables[o, j, code] = coef[j, :, o] . phi of one encoded row, float64 (n_outputs, n_features, 256)."""
    for o in range(tables.shape[0]):
        for j in range(tables.shape[1]):
            part = values[0, j] * coef[j, index[j], o]
            for m in range(1, values.shape[0]):
                part += values[m, j] * coef[j, index[j] + m, o]
            tables[o, j, code] = part


def every_code(n_features):
    """256 rows, of all features the same byte: uint8 (256, n_features)."""
    return np.repeat(np.arange(N_CODES, dtype=np.uint8)[:, None], n_features, axis=1)


@compiled
def tabulate_codes(basis, codes, coef, tables, scratch):
    """Tables (n_outputs, n_features, 256) of rows that are kept as codes; `codes` is `every_code`."""
    for code in range(N_CODES):
        encode_row(basis, codes[code], scratch)
        tabulate_row(scratch.index, scratch.values, coef, code, tables)


@compiled
def add_tables(codes, first, tables, decisions):
    """Add the scores of rows of bytes to decisions (n_rows, n_outputs); tables are of the features from `first` on.

    Each row is summed feature by feature, four rows at a time, which hides the latency of the additions.
    """
    n_rows, n_quads, n_features = codes.shape[0], codes.shape[0] // 4 * 4, tables.shape[1]
    for o in range(tables.shape[0]):
        table = tables[o].reshape(-1)
        for start in range(0, n_features, TOGETHER):
            stop = min(start + TOGETHER, n_features)
            for i in range(0, n_quads, 4):
                p, q, r, s = codes[i], codes[i + 1], codes[i + 2], codes[i + 3]
                a, b, c, d = decisions[i, o], decisions[i + 1, o], decisions[i + 2, o], decisions[i + 3, o]
                for j in range(start, stop):
                    at, k = np.uint64(j * N_CODES), np.uint64(first + j)
                    a += table[at + p[k]]
                    b += table[at + q[k]]
                    c += table[at + r[k]]
                    d += table[at + s[k]]
                decisions[i, o], decisions[i + 1, o], decisions[i + 2, o], decisions[i + 3, o] = a, b, c, d
            for i in range(n_quads, n_rows):
                for j in range(start, stop):
                    decisions[i, o] += table[np.uint64(j * N_CODES) + codes[i, first + j]]


@compiled
def scatter_codes(codes, weights, first, stop, sums):
    """sums[s, j, code] += weights[s, i] of every row, for the features j from `first` to before `stop`.

    weights float64 (n_sums, n_rows), sums float64 (n_sums, n_features, 256): running sums over the rows in order.
    """
    for s in range(weights.shape[0]):
        flat = sums[s].reshape(-1)
        for start in range(first, stop, SCATTERED):
            end = min(start + SCATTERED, stop)
            for i in range(codes.shape[0]):
                weight, row = weights[s, i], codes[i]
                if weight != 0.0:
                    for j in range(start, end):
                        flat[np.uint64(j * N_CODES) + row[np.uint64(j)]] += weight


@compiled
def collect_codes(basis, codes, code_sums, scratch, sums):
    """sums[s] += sum_c code_sums[s, j, c] phi_j(c), float64 (n_sums, n_features * n_basis); `codes` is `every_code`."""
    for code in range(N_CODES):
        encode_row(basis, codes[code], scratch)
        for s in range(sums.shape[0]):
            for j in range(codes.shape[1]):
                at = j * basis.n_basis + scratch.index[j]
                for m in range(basis.n_local):
                    sums[s, at + m] += code_sums[s, j, code] * scratch.values[m, j]
