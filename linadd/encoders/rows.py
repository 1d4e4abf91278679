"""All that a solver knows of a row: `encode_row` once into scratch, then `decide`, `update`, `row_norm`.

Coefficients are float32, passed as flat views. One output: v[feature][basis padded to 16], so an update is vector
operations over the basis. Up to 16 outputs: v[feature][basis][16], so a score is vector operations over the outputs.

    decide       sum_j v_j . phi(x_j)
    update       v_j += s scale_j^2 L phi(x_j)            (row i of L: basis.table)
    row_norm     sum_j scale_j^2 phi(x_j)' L phi(x_j)

Centring costs nothing a value here: it enters through a row's kappa alone (`Space`). Offsets into flat arrays are
unsigned, which spares numba's test for negative indices.
"""

from typing import NamedTuple

import numpy as np

from linadd._jit import compiled, compiled_sums
from linadd._simd import N_LANES, aligned_zeros, load, multiply_add, padded, splat, store
from linadd.encoders import bspline, fourier, hermite
from linadd.encoders.coordinates import coordinate, fixed_positions, float_positions, grid_codes


class Space(NamedTuple):
    """The inner product of two centred codes: sum_j scale_j^2 (phi(x_j) - phibar_j)' L (phi(z_j) - phibar_j)."""

    scale_squared: np.ndarray  # float32 (n_features,); 0 for a constant feature
    mean_update: np.ndarray  # float32 (n_features, n_basis): scale_j^2 L phibar_j; 0 without centring
    kappa_0: float  # phibar' L phibar with scales; 0 without centring


class Scratch(NamedTuple):
    """One encoded row; each thread owns one."""

    index: np.ndarray  # int32 (n_features,): first basis function
    values: np.ndarray  # float32 (n_local, n_features)
    update: np.ndarray  # float32 (n_basis padded to 16,): update code of one feature


def make_scratch(encoder):
    """An empty scratch."""
    return Scratch(
        index=np.zeros(encoder.n_features, np.int32),
        values=np.zeros((encoder.n_local, encoder.n_features), np.float32),
        update=aligned_zeros(padded(encoder.n_basis)),
    )


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


@compiled
def encode_row(basis, positions, scratch):
    """Encode one row of positions or codes into scratch; the branch on the encoder is taken here, once a row."""
    if basis.code == bspline.CODE:
        if positions.itemsize < 4:
            bspline.encode_codes(positions, basis.n_local - 1, basis.grid, scratch.index, scratch.values)
        else:
            bspline.encode_row(positions, basis.n_local - 1, basis.bits, scratch.index, scratch.values)
    elif basis.code == fourier.CODE:
        for j in range(positions.shape[0]):
            u = np.float64(coordinate(positions, basis.grid, j))
            fourier.encode_coordinate(u, basis.weights, j, scratch.values)
    elif basis.code == hermite.CODE:
        for j in range(positions.shape[0]):
            u = np.float64(coordinate(positions, basis.grid, j))
            hermite.encode_coordinate(u, basis.weights, j, scratch.values)
    else:
        for j in range(positions.shape[0]):
            scratch.values[0, j] = coordinate(positions, basis.grid, j)


@compiled_sums
def decide_one(basis, scratch, coef):
    """Score of the only output, without intercept."""
    index, values, width = scratch.index, scratch.values, basis.table.shape[1]
    total = np.float32(0)
    if basis.n_local == 2:  # the default, as one gathering loop
        for j in range(index.shape[0]):
            at = np.uint64(j * width + index[j])
            total += values[0, j] * coef[at] + values[1, j] * coef[at + np.uint64(1)]
    else:
        for m in range(basis.n_local):
            for j in range(index.shape[0]):
                total += values[m, j] * coef[np.uint64(j * width + index[j] + m)]
    return total


@compiled
def decide_lanes(basis, scratch, coef, out):
    """Scores of 16 outputs, without intercept, into float32 `out`; four sums hide the latency of the additions."""
    index, values, n_basis = scratch.index, scratch.values, basis.n_basis
    n_features = index.shape[0]
    zero = splat(np.float32(0))
    one = splat(np.float32(1))
    a, b, c, d = zero, zero, zero, zero
    n_quads = n_features // 4 * 4
    for j in range(0, n_quads, 4):
        at_a = (j * n_basis + index[j]) * N_LANES
        at_b = ((j + 1) * n_basis + index[j + 1]) * N_LANES
        at_c = ((j + 2) * n_basis + index[j + 2]) * N_LANES
        at_d = ((j + 3) * n_basis + index[j + 3]) * N_LANES
        for m in range(basis.n_local):
            shift = m * N_LANES
            a = multiply_add(splat(values[m, j]), load(coef, at_a + shift), a)
            b = multiply_add(splat(values[m, j + 1]), load(coef, at_b + shift), b)
            c = multiply_add(splat(values[m, j + 2]), load(coef, at_c + shift), c)
            d = multiply_add(splat(values[m, j + 3]), load(coef, at_d + shift), d)
    for j in range(n_quads, n_features):
        for m in range(basis.n_local):
            a = multiply_add(splat(values[m, j]), load(coef, (j * n_basis + index[j] + m) * N_LANES), a)
    store(out, 0, multiply_add(one, multiply_add(one, a, b), multiply_add(one, c, d)))


@compiled
def update_register(index, values, table, scale_squared, step, coef):
    """update_one for the default, two values a feature and one register of basis functions: half its time."""
    for j in range(index.shape[0]):
        factor = step * scale_squared[j]
        row, at = index[j] * N_LANES, j * N_LANES
        total = multiply_add(splat(factor * values[0, j]), load(table, row), load(coef, at))
        store(coef, at, multiply_add(splat(factor * values[1, j]), load(table, row + N_LANES), total))


@compiled
def update_one(basis, scratch, scale_squared, step, coef):
    """Add step * scale_j^2 L phi(x_j) to every feature of the only output: n_local vector operations a register."""
    index, values, width = scratch.index, scratch.values, basis.table.shape[1]
    table = basis.table
    if not basis.is_local:
        for j in range(index.shape[0]):
            for m in range(basis.n_local):
                coef[j * width + m] += step * scale_squared[j] * values[m, j]
    elif basis.n_local == 2 and width == N_LANES:
        update_register(index, values, table, scale_squared, step, coef)
    else:
        for j in range(index.shape[0]):
            factor = step * scale_squared[j]
            for part in range(0, width, N_LANES):
                at = j * width + part
                total = load(coef, at)
                for m in range(basis.n_local):
                    row = load(table, (index[j] + m) * width + part)
                    total = multiply_add(splat(factor * values[m, j]), row, total)
                store(coef, at, total)


@compiled
def update_lanes(basis, scratch, scale_squared, steps, coef):
    """Add steps[o] * scale_j^2 L phi(x_j) to every feature of 16 outputs: n_basis vector operations a feature."""
    index, values, width, n_basis = scratch.index, scratch.values, basis.table.shape[1], basis.n_basis
    code, table = scratch.update, basis.table
    lanes = load(steps, 0)
    for j in range(index.shape[0]):
        if basis.is_local:
            for part in range(0, width, N_LANES):
                total = splat(np.float32(0))
                for m in range(basis.n_local):
                    row = load(table, (index[j] + m) * width + part)
                    total = multiply_add(splat(scale_squared[j] * values[m, j]), row, total)
                store(code, part, total)
        else:
            for m in range(basis.n_local):
                code[m] = scale_squared[j] * values[m, j]
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
def scatter_row(basis, scratch, weight, sums):
    """sums[j, :] += weight * phi(x_j), in float64 (n_features, n_basis)."""
    index, values, flat = scratch.index, scratch.values, sums.reshape(-1)
    if basis.n_local == 2:  # the default
        for j in range(index.shape[0]):
            at = np.uint64(j * basis.n_basis + index[j])
            flat[at] += weight * values[0, j]
            flat[at + np.uint64(1)] += weight * values[1, j]
        return
    for j in range(index.shape[0]):
        for m in range(basis.n_local):
            flat[np.uint64(j * basis.n_basis + index[j] + m)] += weight * values[m, j]


@compiled
def measure_rows(basis, positions, space, scratch, norms, kappas):
    """Squared norm of the centred code, and kappa, of each row of positions, into float32 (n_rows,)."""
    for i in range(positions.shape[0]):
        encode_row(basis, positions[i], scratch)
        kappas[i] = row_kappa(basis, scratch, space.mean_update)
        norm = row_norm(basis, scratch, space.scale_squared) - np.float32(2) * kappas[i] + space.kappa_0
        norms[i] = max(norm, np.float32(0))  # a difference of float32 sums


@compiled
def moment_rows(basis, positions, weight, scale_squared, scratch, code_sums, sums):
    """Add weight * phi to code_sums, weight * |phi|^2 and weight to sums (2,), row after row of positions."""
    for i in range(positions.shape[0]):
        encode_row(basis, positions[i], scratch)
        scatter_row(basis, scratch, weight[i], code_sums)
        sums[0] += weight[i] * row_norm(basis, scratch, scale_squared)
        sums[1] += weight[i]
