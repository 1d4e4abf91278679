"""Laws of every encoder in the list, in every variant that takes another path through the compiled loops.

Each check takes a fitted encoder and rows of `explicit.rows`, whose column 4 is constant. A new encoder is tested with
its defaults as soon as it is in the list; further variants go to VARIANTS, and its formula to `explicit.phi`.
"""

import json
from itertools import product

import numpy as np

from linadd.encoders import ENCODERS, from_state, make_encoder
from linadd.encoders.exact import decide, encode
from linadd.encoders.rows import encode_row, locate, make_scratch, positions_dtype
from linadd.sources import open_source
from tests.encoders import explicit

VARIANTS = {
    "bspline": [
        *({"degree": r, "n_bins": 5, "penalty_order": r, "knots": "uniform"} for r in range(4)),
        *({"degree": r, "n_bins": 7, "penalty_order": 2, "knots": "quantile"} for r in range(4)),
        {"degree": 0, "n_bins": 2, "penalty_order": 0},
        {"degree": 1, "n_bins": 1, "penalty_order": 0},
        {"degree": 1, "n_bins": 15, "penalty_order": 1},  # one register of 16, full
        {"degree": 1, "n_bins": 30, "penalty_order": 1, "knots": "uniform"},
        {"degree": 2, "n_bins": 90, "penalty_order": 1, "knots": "quantile"},
        {"degree": 3, "n_bins": 17, "penalty_order": 3, "knots": "uniform"},
    ],
    "fourier": [{"n_harmonics": 1, "penalty_order": 0}, {"n_harmonics": 9, "penalty_order": 2}],
    "hermite": [{"n_terms": 1, "penalty_order": 0}, {"n_terms": 2, "penalty_order": 3}, {"n_terms": 9}],
    "identity": [{"clamp": False}],
}
CASES = [(name, options) for name in ENCODERS for options in [{}, *VARIANTS.get(name, [])]]


def coefficients(encoder, n_outputs):
    """Random coefficients and intercepts."""
    rng = np.random.default_rng(n_outputs)
    coef = rng.normal(size=(encoder.n_features, encoder.n_basis, n_outputs)).astype(np.float32)
    return coef, rng.normal(size=n_outputs)


def dense(encoder, X, **options):
    """The embedding as (n_rows, n_features, n_basis)."""
    return encode(encoder, X, **options).toarray().reshape(len(X), encoder.n_features, encoder.n_basis)


def located(encoder, X, dtype=None):
    """Positions of rows, or codes of a dtype."""
    positions = np.empty(X.shape, dtype or positions_dtype(encoder))
    locate(encoder, X, positions)
    return positions


def check_values(encoder, X):
    """phi is the formula; a recurrence of up to nine steps loses a few digits."""
    np.testing.assert_allclose(dense(encoder, X), explicit.codes(encoder, X), rtol=0, atol=1e-12)


def check_layout(encoder, X):
    """CSR of n_features * n_local entries a row, sorted, float32 for float32 rows and else float64."""
    for dtype in (np.float32, np.float64, np.int64):
        code = encode(encoder, X.astype(dtype))
        assert code.shape == (len(X), encoder.n_features * encoder.n_basis)
        assert code.dtype == (np.float32 if dtype == np.float32 else np.float64)
        assert (np.diff(code.indptr) == encoder.n_features * encoder.n_local).all()
        assert (np.diff(code.indices.reshape(len(X), -1), axis=1) > 0).all()


def check_local_basis(encoder, X):
    """A local basis is a partition of one into parts that are not negative."""
    if encoder.is_local:
        code = dense(encoder, X)
        np.testing.assert_allclose(code.sum(axis=2), 1, rtol=1e-15)
        assert code.min() > -1e-12


def check_dtypes(encoder, X):
    """Equal values give equal bits from any dtype, byte order, memory order and from read-only rows."""
    whole = np.clip(np.rint(X), 0, 200)
    encoder = make_encoder(encoder.name, **encoder.options).fit(explicit.census_of(whole))
    coef, intercept = coefficients(encoder, 2)
    read_only = whole.copy()
    read_only.flags.writeable = False
    others = [whole.astype(dtype) for dtype in (np.float32, np.uint8, np.int16, np.uint64, ">f8", ">i4")]
    for other in (*others, read_only, np.asfortranarray(whole), whole.astype(np.float16)):
        read = open_source(other).read(0, len(whole)).dense()
        np.testing.assert_array_equal(decide(encoder, read, coef, intercept), decide(encoder, whole, coef, intercept))
        np.testing.assert_array_equal(located(encoder, read), located(encoder, whole))
        code = dense(encoder, read)
        np.testing.assert_array_equal(code, dense(encoder, whole).astype(code.dtype))


def check_rows(encoder, X):
    """A block is its rows: the same bits, whatever stands beside them."""
    coef, intercept = coefficients(encoder, 1)
    whole, scores, positions = dense(encoder, X), decide(encoder, X, coef, intercept), located(encoder, X)
    for rows in (slice(0, 1), slice(7, 30), slice(len(X) - 1, len(X))):
        np.testing.assert_array_equal(dense(encoder, X[rows]), whole[rows])
        np.testing.assert_array_equal(decide(encoder, X[rows], coef, intercept), scores[rows])
        np.testing.assert_array_equal(located(encoder, X[rows]), positions[rows])


def check_range(encoder, X):
    """Beyond its range a feature has the value at the end of it; infinite bounds clamp nothing."""
    low, high = encoder.ranges.T
    if np.isinf(low).any():
        assert np.isinf(encoder.ranges).all()
        np.testing.assert_allclose(dense(encoder, X * 3), explicit.codes(encoder, X * 3), rtol=1e-15)
        return
    np.testing.assert_array_equal(encoder.ranges, np.stack([X.min(axis=0), X.max(axis=0)], axis=1))
    inside, outside = np.stack([low, high]), np.stack([low - 7e3, high + 7e3])
    np.testing.assert_array_equal(dense(encoder, outside), dense(encoder, inside))
    np.testing.assert_array_equal(located(encoder, outside), located(encoder, inside))


def check_upper_end(encoder, X):
    """The greatest value is the right end of the last bin: phi is continuous there."""
    high = X.max(axis=0)[None]
    before = high - 1e-9 * np.ptp(X, axis=0)
    code = dense(encoder, high) - dense(encoder, before)
    spiked = (high[:, :, None] == encoder.axes.edges).sum(axis=2)[0] == 2
    # Slopes are below 2 n_bins, 2 k, or k^2 in units of the range.
    np.testing.assert_allclose(code[:, ~spiked], 0, atol=1e-6)
    if encoder.is_local:
        u = np.array([explicit.coordinate(encoder.axes, x, j) for j, x in enumerate(high[0])])
        expected = encoder.axes.n_bins - 0.5 * spiked
        np.testing.assert_allclose(np.delete(u, 4), np.delete(expected, 4), rtol=1e-15)


def check_penalised(encoder, X):
    """phi^d = D_d'^-1 phi by the matrix, and its inner products are the kernel K_d = phi' L phi."""
    order = encoder.penalty_order if encoder.is_local else 0
    phi = explicit.codes(encoder, X)
    inverse = np.linalg.inv(explicit.difference_matrix(encoder.n_basis, order))
    code = encode(encoder, X, penalised=True)
    expected = phi @ inverse
    found = code.toarray().reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    assert code.has_canonical_format and (code.data != 0).all()
    kernel = (phi @ explicit.update_matrix(encoder)).reshape(len(X), -1) @ phi.reshape(len(X), -1).T
    np.testing.assert_allclose((code @ code.T).toarray(), kernel, rtol=1e-9)


def check_decide(encoder, X):
    """A score is the inner product with phi, in float64, plus the intercept."""
    for n_outputs in (1, 3):
        coef, intercept = coefficients(encoder, n_outputs)
        read_only = coef.copy()
        read_only.flags.writeable = False
        found = decide(encoder, X, read_only, intercept)
        assert found.dtype == np.float64
        expected = np.einsum("ijk,jko->io", explicit.codes(encoder, X), coef.astype(np.float64)) + intercept
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def check_positions(encoder, X):
    """Positions hold the bin exactly and the fraction to 2^-bits, rounded down; or u rounded once to float32."""
    positions = located(encoder, X)
    u = np.array([[explicit.coordinate(encoder.axes, x, j) for j, x in enumerate(row)] for row in X])
    if not encoder.is_local:
        np.testing.assert_array_equal(positions, u.astype(np.float32))
        return
    one = 1 << encoder.bits
    np.testing.assert_array_equal(positions, np.minimum(np.floor(u * one), encoder.axes.n_bins * one - 1))
    index = encode(encoder, X).indices.reshape(len(X), encoder.n_features, -1)[:, :, 0]
    np.testing.assert_array_equal(positions >> encoder.bits, index - np.arange(encoder.n_features) * encoder.n_basis)


def check_grid(encoder, X):
    """A code stands for the nearest point of its grid; ends and edges have their own, and codes rise with x."""
    X = X[:60]
    whole, in_order = np.clip(np.rint(X), -60, 60), np.sort(X, axis=0)
    for precision, rows in product(("uint8", "uint16"), (X, whole, in_order)):
        coded = make_encoder(encoder.name, **encoder.options).fit(explicit.census_of(rows))
        coded.use_codes(explicit.census_of(rows), np.int8 if rows is whole else rows.dtype, precision)
        codes, grid = located(coded, rows, precision), coded.grid
        u = np.array([[explicit.coordinate(coded.axes, x, j) for j, x in enumerate(row)] for row in rows])
        back = np.minimum(grid.first + grid.step * codes.astype(np.float32), grid.last)
        is_bin = encoder.is_local and encoder.n_local == 1
        scale = np.abs(u).max(axis=0) + 1  # float32 holds 24 bits
        assert (np.abs(back - u) <= grid.step * 0.5 + 3e-7 * scale).all()
        is_special = (u == u.min(axis=0)) | (u == u.max(axis=0)) | ((2 * u == np.rint(2 * u)) & encoder.is_local)
        is_special |= np.isnan(coded.axes.edges[:, 0]) & (rows is whole)
        if is_bin:
            np.testing.assert_array_equal(back, np.minimum(np.floor(u), coded.axes.n_bins - 1) + 0.5)
        else:
            np.testing.assert_allclose(np.where(is_special, back - u, 0) / scale, 0, atol=3e-7)
        if rows is in_order:
            assert (np.diff(codes.astype(int), axis=0) >= 0).all()
        scratch, code = make_scratch(coded), explicit.codes_of_coordinates(coded, back.astype(np.float64))
        for row, expected in zip(codes, code, strict=True):
            encode_row(coded.basis, row, scratch)
            found = np.zeros_like(expected)
            columns = np.arange(coded.n_local)[:, None] + scratch.index
            np.put_along_axis(found, columns.T, scratch.values.T, axis=1)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def check_state(encoder, X):
    """Options pass through JSON and tensors through arrays: the same bits afterwards."""
    options = json.loads(json.dumps(encoder.options))
    assert make_encoder(encoder.name, **options).options == encoder.options
    tensors = {name: value.copy() for name, value in encoder.tensors().items()}
    assert {value.dtype for value in tensors.values()} <= {np.dtype(np.float64), np.dtype(np.int64)}
    for value in tensors.values():
        value.flags.writeable = False
    restored = from_state(encoder.name, options, tensors)
    assert restored.n_features == encoder.n_features
    np.testing.assert_array_equal(restored.ranges, encoder.ranges)
    coef, intercept = coefficients(encoder, 2)
    np.testing.assert_array_equal(decide(restored, X, coef, intercept), decide(encoder, X, coef, intercept))
    np.testing.assert_array_equal(located(restored, X), located(encoder, X))
    assert all(array.flags.writeable for array in restored.axes[:-1])  # one compiled signature for all encoders


def check_input_is_left_alone(encoder, X):
    """Rows that are encoded, located and scored stay as they are."""
    before = X.copy()
    coef, intercept = coefficients(encoder, 1)
    encode(encoder, X, penalised=True), located(encoder, X), decide(encoder, X, coef, intercept)
    np.testing.assert_array_equal(X, before)


def check_constant_feature(encoder, X):
    """A constant feature has no scale, so that nothing can be learned from it; the others have one."""
    for scale in ("unit", "libspline"):
        fitted = make_encoder(encoder.name, **encoder.options).fit(explicit.census_of(X), scale)
        assert fitted.constant.tolist() == [4] and fitted.scale[4] == 0 and (np.delete(fitted.scale, 4) > 0).all()
        assert len(np.unique(located(fitted, X)[:, 4])) == 1


CHECKS = [value for name, value in list(globals().items()) if name.startswith("check_")]
