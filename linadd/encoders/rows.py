"""All that a solver knows of a row: `encode_row` once into scratch, then `decide`, `update`, `row_norm`.

Coefficients are float32, passed as flat views. One output: v[feature][basis padded to 16], so an update is vector
operations over the basis. Up to 16 outputs: v[feature][basis][16], so a score is vector operations over the outputs.

    decide       sum_j v_j . phi(x_j)
    update       v_j += s scale_j^2 L phi(x_j)            (row i of L: basis.table)
    row_norm     sum_j scale_j^2 phi(x_j)' L phi(x_j)

Centring costs nothing a value here: it enters through a row's kappa alone (`Space`). Offsets into flat arrays are
unsigned, which spares numba's test for negative indices.

A sparse row is anchored at zero instead: its code is phi(x_j) - phi_j(0), nothing where x_j is 0. In scratch stand its
n stored entries, then n more that are minus the code of zero of the same features: the same loops serve both kinds.
"""

from typing import NamedTuple

import numpy as np

from linadd._jit import compiled, compiled_inline, compiled_sums
from linadd._simd import N_LANES, aligned_zeros, load, multiply_add, padded, splat, store
from linadd.encoders import bspline, fourier, hermite
from linadd.encoders.coordinates import (
    coordinate,
    entry_positions,
    feature_of,
    fixed_positions,
    float_positions,
    grid_codes,
)


class Space(NamedTuple):
    """The inner product of two centred codes: sum_j scale_j^2 (phi(x_j) - phibar_j)' L (phi(z_j) - phibar_j)."""

    scale_squared: np.ndarray  # float32 (n_features,); 0 for a constant feature
    mean_update: np.ndarray  # float32 (n_features, n_basis): scale_j^2 L phibar_j; 0 without centring
    kappa_0: float  # phibar' L phibar with scales; 0 without centring


class Rows(NamedTuple):
    """Positions of rows; of their stored entries only, in the layout of CSR, where `columns` is not None."""

    positions: np.ndarray  # (n_rows, n_features), or (n_entries,)
    columns: np.ndarray | None = None  # int32 (n_entries,)
    starts: np.ndarray | None = None  # int64 (n_rows + 1,): where the entries of a row start

    def part(self, start, stop):
        """The rows from `start` to `stop`."""
        if self.columns is None:
            return Rows(self.positions[start:stop])
        return self._replace(starts=self.starts[start : stop + 1])


def as_rows(positions):
    """Rows of an array of positions; Rows as they are."""
    return positions if isinstance(positions, Rows) else Rows(positions)


class Zero(NamedTuple):
    """The code of zero of each feature."""

    index: np.ndarray  # int32 (n_features,)
    values: np.ndarray  # float32 (n_local, n_features)


class Scratch(NamedTuple):
    """One encoded row; each thread owns one. The last three are those of sparse rows, else None."""

    index: np.ndarray  # int32 (n_features,), or twice as many: first basis function of each entry
    values: np.ndarray  # float32 (n_local, n_features), or twice as many
    update: np.ndarray  # float32 (n_basis padded to 16,): update code of one feature
    columns: np.ndarray | None = None  # int32 (2 n_features,): feature of each entry
    size: np.ndarray | None = None  # int64 (1,): entries
    zero: Zero | None = None


def make_scratch(encoder, zero=None):
    """An empty scratch, for sparse rows where the code of zero is given."""
    n_entries = encoder.n_features if zero is None else 2 * encoder.n_features
    scratch = Scratch(
        index=np.zeros(n_entries, np.int32),
        values=np.zeros((encoder.n_local, n_entries), np.float32),
        update=aligned_zeros(padded(encoder.n_basis)),
    )
    if zero is None:
        return scratch
    return scratch._replace(columns=np.zeros(n_entries, np.int32), size=np.zeros(1, np.int64), zero=zero)


def code_of_zero(encoder):
    """The code that anchors the sparse rows of a fitted encoder."""
    positions, scratch = np.empty((1, encoder.n_features), positions_dtype(encoder)), make_scratch(encoder)
    locate(encoder, np.zeros(positions.shape), positions)
    encode_row(encoder.basis, positions[0], scratch)
    return Zero(scratch.index, scratch.values)


def coef_shape(encoder, n_lanes):
    """Shape of the coefficients of one group of outputs: (n_features, basis, lanes), the basis padded for one lane."""
    width = padded(encoder.n_basis) if n_lanes == 1 else encoder.n_basis
    return encoder.n_features, width, n_lanes


def positions_dtype(encoder):
    """int32 (fixed point) for local bases, float32 for dense ones: 4 bytes a value either way."""
    return np.int32 if encoder.is_local else np.float32


def locate(encoder, X, positions):
    """Write the positions, or the codes, of rows X (n_rows, n_features), any real dtype, to an array of that shape.

    The dtype of `positions` says which: that of `positions_dtype`, or for codes uint8 or uint16, the encoder's grid's.
    """
    u = np.empty(encoder.n_features)
    if positions.dtype.itemsize < 4:
        grid_codes(X, encoder.axes, encoder.grid, u, positions)
    elif encoder.is_local:
        fixed_positions(X, encoder.axes, encoder.bits, u, positions)
    else:
        float_positions(X, encoder.axes, u, positions)


def empty_rows(encoder, n_rows, n_entries=None, dtype=None):
    """Rows without content, of positions or of codes of a dtype; sparse ones of up to n_entries entries if given."""
    dtype = positions_dtype(encoder) if dtype is None else dtype
    if n_entries is None:
        return Rows(np.empty((n_rows, encoder.n_features), dtype))
    return Rows(np.empty(n_entries, dtype), np.empty(n_entries, np.int32), np.zeros(n_rows + 1, np.int64))


def locate_entries(encoder, X, rows, first=0):
    """Write the positions of a csr_array X to sparse Rows from row `first` on."""
    u = np.empty(encoder.n_features)
    entry_positions(X.data, X.indices, X.indptr, encoder.axes, encoder.bits, u, rows, first)


def located(encoder, chunk, is_sparse):
    """Rows of a Chunk."""
    if is_sparse:
        X = chunk.sparse()
        rows = empty_rows(encoder, chunk.n_rows, X.nnz)
        locate_entries(encoder, X, rows)
    else:
        rows = empty_rows(encoder, chunk.n_rows)
        locate(encoder, chunk.dense(), rows.positions)
    return rows


@compiled
def n_entries(scratch_size, index):
    """Entries of the row in scratch."""
    if scratch_size is None:
        return index.shape[0]
    return scratch_size[0]


@compiled_inline
def encode_row(basis, positions, scratch):
    """Encode one row of positions or codes into scratch; the branch on the encoder is taken here, once a row."""
    if basis.code == bspline.CODE:
        if positions.itemsize < 4:
            bspline.encode_codes(positions, basis.n_local - 1, basis.steps, scratch.index, scratch.values)
        else:
            bspline.encode_row(positions, basis.n_local - 1, basis.bits, scratch.index, scratch.values)
    elif basis.code == fourier.CODE:
        for j in range(positions.shape[0]):
            u = np.float64(coordinate(positions, basis.steps, j))
            fourier.encode_coordinate(u, basis.weights, j, scratch.values)
    elif basis.code == hermite.CODE:
        for j in range(positions.shape[0]):
            u = np.float64(coordinate(positions, basis.steps, j))
            hermite.encode_coordinate(u, basis.weights, j, scratch.values)
    else:
        for j in range(positions.shape[0]):
            scratch.values[0, j] = coordinate(positions, basis.steps, j)


@compiled_inline
def append_zero(n, columns, scratch):
    """Let minus the code of zero follow the n entries in scratch, of these columns."""
    features, index, values = scratch.columns, scratch.index, scratch.values
    zero_index, zero_values = scratch.zero.index, scratch.zero.values
    for e in range(n):
        features[e] = columns[e]
        features[n + e] = columns[e]
        index[n + e] = zero_index[columns[e]]
    for m in range(values.shape[0]):
        for e in range(n):
            values[m, n + e] = -zero_values[m, columns[e]]
    scratch.size[0] = 2 * n


@compiled_inline
def load_entries(basis, positions, columns, starts, i, scratch):
    """load_row for the arrays of Rows; the number of dimensions is known to the compiler."""
    if positions.ndim == 2:
        encode_row(basis, positions[i], scratch)
    else:
        start, stop = starts[i], starts[i + 1]
        encode_row(basis, positions[start:stop], scratch)
        append_zero(stop - start, columns[start:stop], scratch)


@compiled_inline
def load_row(basis, rows, i, scratch):
    """Encode row i into scratch; `rows` are Rows, or a block that has their arrays."""
    load_entries(basis, rows.positions, rows.columns, rows.starts, i, scratch)


@compiled_sums
def decide_one(basis, scratch, coef):
    """Score of the only output, without intercept."""
    index, values, columns, width = scratch.index, scratch.values, scratch.columns, basis.table.shape[1]
    size, total = n_entries(scratch.size, index), np.float32(0)
    if basis.n_local == 2:  # the default, as one gathering loop
        for e in range(size):
            at = np.uint64(feature_of(columns, e) * width + index[e])
            total += values[0, e] * coef[at] + values[1, e] * coef[at + np.uint64(1)]
    else:
        for m in range(basis.n_local):
            for e in range(size):
                total += values[m, e] * coef[np.uint64(feature_of(columns, e) * width + index[e] + m)]
    return total


@compiled_inline
def decide_lanes(basis, scratch, coef, out):
    """Scores of 16 outputs, without intercept, into float32 `out`; four sums hide the latency of the additions."""
    index, values, columns, n_basis = scratch.index, scratch.values, scratch.columns, basis.n_basis
    size = n_entries(scratch.size, index)
    zero = splat(np.float32(0))
    one = splat(np.float32(1))
    a, b, c, d = zero, zero, zero, zero
    n_quads = size // 4 * 4
    for e in range(0, n_quads, 4):
        at_a = (feature_of(columns, e) * n_basis + index[e]) * N_LANES
        at_b = (feature_of(columns, e + 1) * n_basis + index[e + 1]) * N_LANES
        at_c = (feature_of(columns, e + 2) * n_basis + index[e + 2]) * N_LANES
        at_d = (feature_of(columns, e + 3) * n_basis + index[e + 3]) * N_LANES
        for m in range(basis.n_local):
            shift = m * N_LANES
            a = multiply_add(splat(values[m, e]), load(coef, at_a + shift), a)
            b = multiply_add(splat(values[m, e + 1]), load(coef, at_b + shift), b)
            c = multiply_add(splat(values[m, e + 2]), load(coef, at_c + shift), c)
            d = multiply_add(splat(values[m, e + 3]), load(coef, at_d + shift), d)
    for e in range(n_quads, size):
        at = (feature_of(columns, e) * n_basis + index[e]) * N_LANES
        for m in range(basis.n_local):
            a = multiply_add(splat(values[m, e]), load(coef, at + m * N_LANES), a)
    store(out, 0, multiply_add(one, multiply_add(one, a, b), multiply_add(one, c, d)))


@compiled_inline
def update_register(size, columns, index, values, table, scale_squared, step, coef):
    """update_one for the default, two values a feature and one register of basis functions: half its time."""
    for e in range(size):
        j = feature_of(columns, e)
        factor = step * scale_squared[j]
        row, at = index[e] * N_LANES, j * N_LANES
        total = multiply_add(splat(factor * values[0, e]), load(table, row), load(coef, at))
        store(coef, at, multiply_add(splat(factor * values[1, e]), load(table, row + N_LANES), total))


@compiled_inline
def update_one(basis, scratch, scale_squared, step, coef):
    """Add step * scale_j^2 L phi(x_j) to every feature of the only output: n_local vector operations a register."""
    index, values, columns, width = scratch.index, scratch.values, scratch.columns, basis.table.shape[1]
    size, table = n_entries(scratch.size, index), basis.table
    if not basis.is_local:
        for e in range(size):
            j = feature_of(columns, e)
            for m in range(basis.n_local):
                coef[j * width + m] += step * scale_squared[j] * values[m, e]
    elif basis.n_local == 2 and width == N_LANES:
        update_register(size, columns, index, values, table, scale_squared, step, coef)
    else:
        for e in range(size):
            j = feature_of(columns, e)
            factor = step * scale_squared[j]
            for part in range(0, width, N_LANES):
                at = j * width + part
                total = load(coef, at)
                for m in range(basis.n_local):
                    row = load(table, (index[e] + m) * width + part)
                    total = multiply_add(splat(factor * values[m, e]), row, total)
                store(coef, at, total)


@compiled_inline
def update_lanes(basis, scratch, scale_squared, steps, coef):
    """Add steps[o] * scale_j^2 L phi(x_j) to every feature of 16 outputs: n_basis vector operations a feature."""
    index, values, columns, n_basis = scratch.index, scratch.values, scratch.columns, basis.n_basis
    code, table, width = scratch.update, basis.table, basis.table.shape[1]
    lanes = load(steps, 0)
    for e in range(n_entries(scratch.size, index)):
        j = feature_of(columns, e)
        if basis.is_local:
            for part in range(0, width, N_LANES):
                total = splat(np.float32(0))
                for m in range(basis.n_local):
                    row = load(table, (index[e] + m) * width + part)
                    total = multiply_add(splat(scale_squared[j] * values[m, e]), row, total)
                store(code, part, total)
        else:
            for m in range(basis.n_local):
                code[m] = scale_squared[j] * values[m, e]
        for i in range(n_basis):
            at = (j * n_basis + i) * N_LANES
            store(coef, at, multiply_add(splat(code[i]), lanes, load(coef, at)))


@compiled_sums
def row_norm(basis, scratch, scale_squared):
    """sum_j scale_j^2 phi' L phi of the encoded row: the squared norm of its code before centring."""
    index, values, table = scratch.index, scratch.values, basis.table.reshape(-1)
    width = basis.table.shape[1]
    total = np.float32(0)
    if basis.is_local and basis.n_local == 2:  # the default
        for j in range(index.shape[0]):
            at = np.uint64(index[j] * (width + 1))
            a, b, next_row = values[0, j], values[1, j], at + np.uint64(width)
            cross = np.float32(2) * a * table[next_row] + b * table[next_row + np.uint64(1)]
            total += scale_squared[j] * (a * a * table[at] + b * cross)
        return total
    for m in range(basis.n_local):
        if basis.is_local:
            for other in range(m + 1):
                twice = np.float32(1 + (other < m))
                for j in range(index.shape[0]):
                    entry = table[np.uint64((index[j] + m) * width + index[j] + other)]
                    total += twice * scale_squared[j] * values[m, j] * values[other, j] * entry
        else:
            for j in range(index.shape[0]):
                total += scale_squared[j] * values[m, j] * values[m, j]
    return total


@compiled_sums
def row_kappa(basis, scratch, mean_update):
    """sum_j mean_update_j . phi(x_j) of the encoded row: what centring needs to know of it."""
    index, values, flat = scratch.index, scratch.values, mean_update.reshape(-1)
    total = np.float32(0)
    if basis.n_local == 2:  # the default
        for j in range(index.shape[0]):
            at = np.uint64(j * basis.n_basis + index[j])
            total += values[0, j] * flat[at] + values[1, j] * flat[at + np.uint64(1)]
        return total
    for m in range(basis.n_local):
        for j in range(index.shape[0]):
            total += values[m, j] * flat[np.uint64(j * basis.n_basis + index[j] + m)]
    return total


@compiled
def entry_product(basis, index, values, e, f):
    """phi' L phi of two entries of one feature in scratch, in float64."""
    total, table = 0.0, basis.table_exact
    for m in range(basis.n_local):
        for k in range(basis.n_local):
            total += np.float64(values[m, e]) * values[k, f] * table[index[e] + m, index[f] + k]
    return total


@compiled
def anchored_norm(basis, scratch, scale_squared):
    """row_norm of a sparse row: of small differences of codes, which float32 sums would lose."""
    index, values, n, total = scratch.index, scratch.values, scratch.size[0] // 2, 0.0
    for e in range(n):
        square = entry_product(basis, index, values, e, e) + entry_product(basis, index, values, n + e, n + e)
        square += 2.0 * entry_product(basis, index, values, e, n + e)
        total += scale_squared[scratch.columns[e]] * max(square, 0.0)
    return total


@compiled_sums
def code_norm(basis, columns, scratch, scale_squared):
    """Squared norm of the code in scratch, dense (`columns` None) or sparse."""
    if columns is None:
        return row_norm(basis, scratch, scale_squared)
    return np.float32(anchored_norm(basis, scratch, scale_squared))


@compiled_sums
def code_kappa(basis, columns, scratch, mean_update):
    """row_kappa of a dense row; 0 of a sparse one, which nothing is subtracted from but the code of zero."""
    if columns is None:
        return row_kappa(basis, scratch, mean_update)
    return np.float32(0)


@compiled
def scatter_row(basis, scratch, weight, sums):
    """sums[j, :] += weight * phi(x_j), in float64 (n_features, n_basis)."""
    index, values, columns, flat = scratch.index, scratch.values, scratch.columns, sums.reshape(-1)
    if basis.n_local == 2:  # the default
        for e in range(n_entries(scratch.size, index)):
            at = np.uint64(feature_of(columns, e) * basis.n_basis + index[e])
            flat[at] += weight * values[0, e]
            flat[at + np.uint64(1)] += weight * values[1, e]
        return
    for e in range(n_entries(scratch.size, index)):
        j = feature_of(columns, e)
        for m in range(basis.n_local):
            flat[np.uint64(j * basis.n_basis + index[e] + m)] += weight * values[m, e]


@compiled
def measure_rows(basis, rows, space, scratch, norms, kappas):
    """Squared norm of the code that solvers use, and kappa, of each of Rows, into float32 (n_rows,)."""
    for i in range(norms.shape[0]):
        load_row(basis, rows, i, scratch)
        kappas[i] = code_kappa(basis, scratch.columns, scratch, space.mean_update)
        norm = code_norm(basis, scratch.columns, scratch, space.scale_squared)
        norm = norm - np.float32(2) * kappas[i] + space.kappa_0
        norms[i] = max(norm, np.float32(0))  # a difference of float32 sums


@compiled
def moment_rows(basis, rows, weight, scale_squared, scratch, code_sums, sums):
    """Add weight * code to code_sums, weight * |code|^2 and weight to sums (2,), row after row of Rows."""
    for i in range(weight.shape[0]):
        load_row(basis, rows, i, scratch)
        scatter_row(basis, scratch, weight[i], code_sums)
        sums[0] += weight[i] * code_norm(basis, scratch.columns, scratch, scale_squared)
        sums[1] += weight[i]
