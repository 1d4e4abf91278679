"""The float32 loops of the solvers against explicit codes and matrices, for every encoder and variant.

Rows are of both kinds: the code of a sparse one is phi(x_j) - phi_j(0) of each feature.

Both sides start from the same positions. A sum of n products in float32, in any order, is off by at most n eps times
the sum of the sizes of its terms; the values themselves by a few eps.
"""

import numpy as np
import pytest
import scipy.sparse

from linadd._simd import N_LANES, aligned_zeros, padded
from linadd.chunks import Chunk
from linadd.encoders import make_encoder, rows
from tests.checks.check_encoder import CASES, located
from tests.encoders import explicit

EPS = float(np.finfo(np.float32).eps)


class Example:
    """A fitted encoder, positions of rows, their codes and all that the loops take."""

    def __init__(self, name, options, is_sparse=False, n_rows=40):
        X = sparse_table(n_rows) if is_sparse else explicit.rows(n_rows)
        self.encoder = make_encoder(name, **options).fit(explicit.census_of(X))
        self.positions = located(self.encoder, X)
        self.codes = explicit.codes_of_positions(self.encoder, self.positions)
        self.sizes, zero, self.rows = np.abs(self.codes), None, rows.Rows(self.positions)
        if is_sparse:
            at_zero = explicit.codes_of_positions(self.encoder, located(self.encoder, np.zeros((1, X.shape[1]))))
            self.codes, self.sizes = self.codes - at_zero, (self.sizes + np.abs(at_zero)) * (X != 0)[:, :, None]
            zero = rows.code_of_zero(self.encoder)
            self.rows = rows.located(self.encoder, Chunk(stored(X), None, None, 0, "array"), True)
        self.matrix = explicit.update_matrix(self.encoder)
        rng = np.random.default_rng(0)
        self.scale_squared = rng.uniform(0.5, 2, self.encoder.n_features).astype(np.float32)
        self.basis, self.scratch = self.encoder.basis, rows.make_scratch(self.encoder, zero)
        self.shape = (self.encoder.n_features, self.encoder.n_basis)

    def encoded(self):
        """Yield (code, sizes of the terms of its values) of each row, with the row in scratch."""
        for i, pair in enumerate(zip(self.codes, self.sizes, strict=True)):
            rows.load_row(self.basis, self.rows, i, self.scratch)
            yield pair

    def entries(self):
        """Features, indices and values (n_local, n_entries) in scratch."""
        index, values, columns, size = self.scratch[0], self.scratch[1], self.scratch.columns, self.scratch.size
        n = len(index) if size is None else size[0]
        return np.arange(n) if columns is None else columns[:n], index[:n], values[:, :n]

    def tolerance(self, sizes):
        """Bound of the error of a sum over features and values whose terms have these sizes."""
        return 4 * EPS * self.encoder.n_features * self.encoder.n_local * sizes

    def coefficients(self, lanes):
        """Random coefficients in the solver's layout, and as (n_features, n_basis, lanes)."""
        coef = aligned_zeros(rows.coef_shape(self.encoder, lanes))
        coef[:, : self.encoder.n_basis] = np.random.default_rng(1).normal(size=(*self.shape, lanes))
        return coef, coef[:, : self.encoder.n_basis].astype(np.float64)

    def updates(self, code, sizes=None):
        """scale^2 L phi of a row, and the sizes of its terms."""
        scales, sizes = self.scale_squared.astype(np.float64)[:, None], np.abs(code) if sizes is None else sizes
        return scales * (code @ self.matrix), scales * (sizes @ np.abs(self.matrix))


def sparse_table(n_rows):
    """The rows of `explicit`, two of three values 0; one row and one column all 0, and ranges without 0 in them."""
    keep = np.random.default_rng(5).random((n_rows, 6)) < [0.3, 0.3, 0.3, 0.3, 0.0, 1.0]
    X = np.where(keep, explicit.rows(n_rows), 0.0)
    X[3] = 0
    return X


def stored(X):
    """X as CSR, in which some zeros are stored."""
    sparse = scipy.sparse.csr_array(np.where(X == 0, np.where(np.arange(X.size).reshape(X.shape) % 5, 0, 7e7), X))
    sparse.data[sparse.data == 7e7] = 0
    return sparse


@pytest.fixture(params=[(case, kind) for kind in (False, True) for case in CASES], ids=str)
def example(request):
    (name, options), is_sparse = request.param
    return Example(name, options, is_sparse)


def test_encode_row(example):
    for code, _ in example.encoded():
        found = np.zeros(example.shape)
        for j, first, values in zip(*example.entries()[:2], example.entries()[2].T, strict=True):
            found[j, first : first + example.encoder.n_local] += values
        np.testing.assert_allclose(found, code, rtol=2 * EPS, atol=4 * EPS * max(1, np.abs(example.codes).max()))


def test_decide_one(example):
    coef, explicit_coef = example.coefficients(1)
    for code, sizes in example.encoded():
        found = rows.decide_one(example.basis, example.scratch, coef.reshape(-1))
        error = abs(found - np.sum(code * explicit_coef[:, :, 0]))
        assert error <= example.tolerance(np.sum((sizes + EPS) * np.abs(explicit_coef[:, :, 0])))


def test_decide_lanes(example):
    coef, explicit_coef = example.coefficients(N_LANES)
    out = aligned_zeros(N_LANES)
    for code, sizes in example.encoded():
        rows.decide_lanes(example.basis, example.scratch, coef.reshape(-1), out)
        expected = np.einsum("jk,jko->o", code, explicit_coef)
        bound = example.tolerance(np.einsum("jk,jko->o", sizes + EPS, np.abs(explicit_coef)))
        assert (np.abs(out - expected) <= bound).all()


def test_update_one(example):
    for step in (-0.75, 0.01):
        for code, sizes in example.encoded():
            coef, before = example.coefficients(1)
            rows.update_one(
                example.basis, example.scratch, example.scale_squared, np.float32(step), coef.reshape(-1)
            )  # fmt: skip
            change, sizes = example.updates(code, sizes)
            found = coef[:, : example.encoder.n_basis, 0]
            bound = 8 * EPS * example.encoder.n_local * (np.abs(before[:, :, 0]) + abs(step) * (sizes + EPS))
            assert (np.abs(found - before[:, :, 0] - step * change) <= bound).all()
            assert not coef[:, example.encoder.n_basis :].any()


def test_update_lanes(example):
    steps = aligned_zeros(N_LANES)
    steps[:] = np.random.default_rng(2).normal(size=N_LANES)
    steps[3] = 0
    for code, sizes in example.encoded():
        coef, before = example.coefficients(N_LANES)
        rows.update_lanes(example.basis, example.scratch, example.scale_squared, steps, coef.reshape(-1))
        change, sizes = example.updates(code, sizes)
        bound = 8 * EPS * example.encoder.n_local * (np.abs(before) + (sizes[:, :, None] + EPS) * np.abs(steps))
        assert (np.abs(coef - before - change[:, :, None] * steps) <= bound).all()
        np.testing.assert_array_equal(coef[:, :, 3], before[:, :, 3])


def test_update_register_is_update_one():
    # The default's own loop, and the general one on the same row.
    example = Example("bspline", {"knots": "uniform"})
    steps = aligned_zeros(N_LANES)
    steps[0] = 0.3
    for _ in example.encoded():
        one, lanes = aligned_zeros((6, 16, 1)), aligned_zeros((6, 11, N_LANES))
        rows.update_register(
            6, None, example.scratch.index, example.scratch.values, example.basis.table, example.scale_squared,
            np.float32(0.3), one.reshape(-1),
        )  # fmt: skip
        rows.update_lanes(example.basis, example.scratch, example.scale_squared, steps, lanes.reshape(-1))
        np.testing.assert_allclose(one[:, :11, 0], lanes[:, :, 0], rtol=4 * EPS)


def test_row_norm(example):
    for code, sizes in example.encoded():
        change, terms = example.updates(code, sizes)
        found = rows.code_norm(example.basis, example.scratch.columns, example.scratch, example.scale_squared)
        bound = example.tolerance(4 * np.sum((sizes + EPS) * (terms + EPS)))
        assert abs(found - np.sum(code * change)) <= bound


def test_row_kappa(example):
    mean_update = np.random.default_rng(3).normal(size=example.shape).astype(np.float32)
    for code, sizes in example.encoded():
        if example.scratch.columns is not None:
            assert rows.code_kappa(example.basis, example.scratch.columns, example.scratch, mean_update) == 0
            continue
        found = rows.row_kappa(example.basis, example.scratch, mean_update)
        assert abs(found - np.sum(code * mean_update)) <= example.tolerance(np.sum((sizes + EPS) * np.abs(mean_update)))


def test_scatter_row(example):
    for code, _ in example.encoded():
        sums = np.ones(example.shape)
        rows.scatter_row(example.basis, example.scratch, 2.5, sums)
        np.testing.assert_allclose(sums, 1 + 2.5 * code, rtol=0, atol=2.5 * 4 * EPS * max(1, np.abs(code).max()))


def test_moment_rows(example):
    weight = np.random.default_rng(4).exponential(size=len(example.codes))
    weight[3] = 0
    codes, sums = np.zeros(example.shape), np.zeros(2)
    arguments = example.scale_squared, example.scratch, codes, sums
    for part in (slice(0, 10), slice(10, None)):
        own = example.rows.part(part.start, len(weight) if part.stop is None else part.stop)
        rows.moment_rows(example.basis, own, weight[part], *arguments)
    np.testing.assert_allclose(codes, np.einsum("i,ijk->jk", weight, example.codes), rtol=1e-6, atol=1e-5)
    norms = [np.sum(code * example.updates(code)[0]) for code in example.codes]
    np.testing.assert_allclose(sums, [weight @ norms, weight.sum()], rtol=1e-5)
    whole, whole_sums = np.zeros(example.shape), np.zeros(2)
    rows.moment_rows(example.basis, example.rows, weight, *arguments[:2], whole, whole_sums)
    np.testing.assert_array_equal(codes, whole)
    np.testing.assert_array_equal(sums, whole_sums)


def test_measure_rows(example):
    mean = example.codes.mean(axis=0)
    update = example.scale_squared[:, None] * (mean @ example.matrix)
    space = rows.Space(example.scale_squared, update.astype(np.float32), np.float32(np.sum(mean * update)))
    norms, kappas = np.empty(len(example.codes), np.float32), np.empty(len(example.codes), np.float32)
    if example.scratch.columns is not None:
        mean, update = 0.0 * mean, 0.0 * update
        space = rows.Space(example.scale_squared, update.astype(np.float32), np.float32(0))
    rows.measure_rows(example.basis, example.rows, space, example.scratch, norms, kappas)
    full = np.array([np.sum(code * example.updates(code)[0]) for code in example.codes])
    kappa = np.einsum("ijk,jk->i", example.codes, update)
    np.testing.assert_allclose(kappas, kappa, rtol=0, atol=1e-5 * np.abs(kappa).max())
    expected = [np.sum((code - mean) * example.updates(code - mean)[0]) for code in example.codes]
    # The centred norm is a difference: its error is that of the parts.
    np.testing.assert_allclose(norms, expected, rtol=0, atol=2e-5 * full.max())


def test_a_norm_is_never_negative():
    # All rows equal: the centred norm is 0, and rounding leaves either sign.
    example = Example("bspline", {"degree": 3, "penalty_order": 2, "knots": "uniform"})
    signs = set()
    for code in example.codes:
        update = example.scale_squared[:, None] * (code @ example.matrix)
        space = rows.Space(example.scale_squared, update.astype(np.float32), np.float32(np.sum(code * update)))
        norms, kappas = np.empty(40, np.float32), np.empty(40, np.float32)
        rows.measure_rows(example.basis, example.rows, space, example.scratch, norms, kappas)
        assert (norms >= 0).all()
        signs.add(float(norms.min()) == 0.0)
    assert True in signs


def test_sparse_norms_are_exact_where_codes_hardly_differ():
    # D_3 of 20 cubic splines: products of a million, of codes that differ by a thousandth of a bin.
    X = np.array([[1e-4], [2e-4], [1.0], [-1.0], [0.0]])
    encoder = make_encoder("bspline", degree=3, n_bins=17, penalty_order=3, knots="uniform").fit(explicit.census_of(X))
    own = rows.located(encoder, Chunk(scipy.sparse.csr_array(X), None, None, 0, "array"), True)
    scratch, norms, kappas = rows.make_scratch(encoder, rows.code_of_zero(encoder)), *np.empty((2, 5), np.float32)
    space = rows.Space(np.ones(1, np.float32), np.zeros((1, 20), np.float32), np.float32(0))
    rows.measure_rows(encoder.basis, own, space, scratch, norms, kappas)
    positions = located(encoder, X)
    codes = explicit.codes_of_positions(encoder, positions)[:, 0]
    codes = codes - codes[-1]
    expected = np.einsum("ij,jk,ik->i", codes, explicit.update_matrix(encoder), codes)
    np.testing.assert_allclose(norms, expected, rtol=2e-3)
    assert norms[-1] == 0


def test_zeros_that_are_stored_are_not_kept():
    X = sparse_table(40)
    encoder = make_encoder("bspline").fit(explicit.census_of(X))
    tables = scipy.sparse.csr_array(X), stored(X)
    plain, padded_rows = (rows.located(encoder, Chunk(each, None, None, 0, "array"), True) for each in tables)
    assert stored(X).nnz > len(plain.positions) == np.count_nonzero(X)
    for one, other in zip(plain, padded_rows, strict=True):
        np.testing.assert_array_equal(one, other)
    dense = rows.located(encoder, Chunk(X, None, None, 0, "array"), True)
    np.testing.assert_array_equal(dense.positions, plain.positions)
    assert rows.located(encoder, Chunk(stored(X), None, None, 0, "array"), False).positions.shape == X.shape


def test_layouts():
    encoder = make_encoder("bspline", n_bins=20).fit(explicit.census_of(explicit.rows()))
    assert rows.coef_shape(encoder, 1) == (6, 32, 1) == (6, padded(21), 1)
    assert rows.coef_shape(encoder, N_LANES) == (6, 21, 16)
    assert rows.positions_dtype(encoder) is np.int32
    assert rows.positions_dtype(make_encoder("fourier")) is np.float32
    scratch = rows.make_scratch(encoder)
    assert scratch.values.shape == (2, 6) and scratch.update.shape == (32,) and scratch.index.dtype == np.int32
