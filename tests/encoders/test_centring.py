"""Scale and centre of the embedding: against explicit codes, and the same bits for any chunking."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse

from linadd.chunks import Chunk, row_groups
from linadd.encoders import make_encoder
from linadd.encoders.centring import CodeMoments
from linadd.encoders.centring import located as located_pieces
from linadd.errors import DataError
from tests.checks.check_encoder import CASES, located
from tests.encoders import explicit
from tests.solvers.problems import thin

N_ROWS = 2300


def moments_of(encoder, positions, weight, cuts=()):
    """Moments of rows that come in parts."""
    moments = CodeMoments(encoder)
    parts = pairwise([0, *cuts, len(positions)])
    chunks = (Chunk(positions[slice(*part)], None, weight[slice(*part)], part[0], "parts") for part in parts)
    for pieces in row_groups(chunks):
        moments.add(*moments.group(pieces))
    return moments


def sparse_moments(encoder, X, weight, cuts=()):
    """Moments of stored entries that come in parts."""
    moments = CodeMoments(encoder, is_sparse=True)
    parts = pairwise([0, *cuts, len(X)])
    tables = ((part, scipy.sparse.csr_array(X[slice(*part)])) for part in parts)
    chunks = (Chunk(table, None, weight[slice(*part)], part[0], "parts") for part, table in tables)
    for pieces in row_groups(chunks, is_sparse=True):
        moments.run(located_pieces(encoder, pieces), moments.codes, moments.sums)
    return moments


def weights():
    """Weights without a pattern, some of them 0."""
    rng = np.random.default_rng(1)
    return rng.exponential(size=N_ROWS) * (rng.random(N_ROWS) > 0.2)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_centre_is_what_explicit_codes_give(name, options, unit, centred):
    X = explicit.rows(150)
    weight = weights()[:150]
    scale = "unit" if unit else "libspline"
    encoder = make_encoder(name, **options).fit(explicit.census_of(X, weight), scale)
    positions = located(encoder, X)
    centre = moments_of(encoder, positions, weight).centre(centred, unit)
    codes = explicit.codes_of_positions(encoder, positions)
    mean = np.average(codes, axis=0, weights=weight)
    matrix = explicit.update_matrix(encoder)

    def mean_norm(scale, centre):
        """Weighted mean of |phi^d - centre|^2 with a scale a feature."""
        squares = np.einsum("ijk,kl,ijl->ij", codes - centre, matrix, codes - centre, optimize=True)
        return np.average(squares @ scale**2, weights=weight)

    # float32 values and sums of norms; a centred norm is a difference of larger ones.
    rtol = 1e-5 * mean_norm(encoder.scale, 0) / mean_norm(encoder.scale, mean)
    np.testing.assert_allclose(centre.mean_code, mean * centred, rtol=0, atol=1e-6 * np.abs(codes).max())
    np.testing.assert_allclose(centre.mean_norm, mean_norm(centre.scale, mean * centred), rtol=rtol)
    if unit:  # the mean of the centred norm is 1, whether or not codes are centred
        np.testing.assert_allclose(mean_norm(centre.scale, mean), 1.0, rtol=rtol)
        factors = centre.scale[encoder.scale > 0] / encoder.scale[encoder.scale > 0]
        np.testing.assert_allclose(factors, factors[0], rtol=1e-6)
    else:
        np.testing.assert_allclose(centre.scale, encoder.scale, rtol=1e-7)
    assert centre.scale[4] == 0
    np.testing.assert_array_equal(centre.space.scale_squared, np.float32(centre.scale**2))
    updates = centre.scale[:, None] ** 2 * (mean @ matrix) * centred
    np.testing.assert_allclose(centre.space.mean_update, updates, rtol=0, atol=1e-5 * max(np.abs(updates).max(), 1e-9))
    np.testing.assert_allclose(centre.space.kappa_0, np.sum(mean * updates), rtol=1e-5)


@pytest.mark.parametrize("cuts", [[1000, 2000], [1], [999, 1001, 1500], range(13, N_ROWS, 13)], ids=str)
@pytest.mark.parametrize(("name", "options"), [("bspline", {}), ("fourier", {"n_harmonics": 2})])
def test_any_chunking_gives_the_same_bits(name, options, cuts):
    X, weight = explicit.rows(N_ROWS), weights()
    encoder = make_encoder(name, **options).fit(explicit.census_of(X, weight))
    positions = located(encoder, X)
    whole = moments_of(encoder, positions, weight).centre(True, True)
    parts = moments_of(encoder, positions, weight, cuts).centre(True, True)
    for name in ("scale", "mean_code", "mean_norm"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    for found, expected in zip(parts.space, whole.space, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_sparse_rows_have_the_scale_of_dense_ones_and_the_code_of_zero_as_centre(name, options, unit):
    X, weight = thin(explicit.rows(150), 0.3), weights()[:150]
    encoder = make_encoder(name, **options).fit(explicit.census_of(X, weight))
    dense = moments_of(encoder, located(encoder, X), weight).centre(True, unit)
    sparse = sparse_moments(encoder, X, weight).centre(True, unit)
    at_zero = explicit.codes_of_positions(encoder, located(encoder, np.zeros((1, 6))))[0]
    np.testing.assert_allclose(sparse.mean_code, at_zero, rtol=0, atol=1e-6 * max(1, np.abs(at_zero).max()))
    assert not sparse.shifted_code.any() and not sparse.space.mean_update.any() and sparse.space.kappa_0 == 0
    assert sparse.is_sparse and not dense.is_sparse
    # Both are differences of sums of float32 norms.
    size = dense.mean_norm + np.sum((dense.scale[:, None] * np.abs(dense.mean_code)) ** 2)
    np.testing.assert_allclose(sparse.scale, dense.scale, rtol=1e-4 * size / dense.mean_norm)
    codes = explicit.codes_of_positions(encoder, located(encoder, X)) - at_zero
    squares = np.einsum("ijk,kl,ijl->ij", codes, explicit.update_matrix(encoder), codes, optimize=True)
    np.testing.assert_allclose(sparse.mean_norm, np.average(squares @ sparse.scale**2, weights=weight), rtol=1e-5)


@pytest.mark.parametrize("cuts", [[1000, 2000], [1], range(13, N_ROWS, 113)], ids=str)
def test_any_chunking_of_sparse_rows_gives_the_same_bits(cuts):
    X, weight = thin(explicit.rows(N_ROWS), 0.2), weights()
    encoder = make_encoder("bspline").fit(explicit.census_of(X, weight))
    whole, parts = (sparse_moments(encoder, X, weight, own).centre(True, True) for own in ((), cuts))
    np.testing.assert_array_equal(parts.scale, whole.scale)
    assert parts.mean_norm == whole.mean_norm


def test_rows_of_weight_zero_contribute_nothing():
    X, weight = explicit.rows(300), np.ones(300)
    weight[200:] = 0
    encoder = make_encoder("bspline", knots="uniform").fit(explicit.census_of(X[:200]))
    positions = located(encoder, X)
    all_rows = moments_of(encoder, positions, weight).centre(True, True)
    some = moments_of(encoder, positions[:200], weight[:200]).centre(True, True)
    np.testing.assert_array_equal(all_rows.mean_code, some.mean_code)
    assert all_rows.mean_norm == some.mean_norm


def test_a_rare_value_has_a_scale():
    """One row in 100,000 differs: the centred norm is 1e-5 of the norm itself, of which float32 sees seven digits."""
    X = np.zeros((100_000, 1))
    X[70_000] = 1.0
    encoder = make_encoder("bspline", knots="uniform").fit(explicit.census_of(X))
    centre = moments_of(encoder, located(encoder, X), np.ones(len(X))).centre(True, True)
    codes = explicit.codes(encoder, X[[0, 70_000]])
    mean = codes[0] + (codes[1] - codes[0]) * 1e-5
    squares = np.einsum("ijk,kl,ijl->i", codes - mean, explicit.update_matrix(encoder), codes - mean)
    expected = 1 / (squares @ [1 - 1e-5, 1e-5])
    np.testing.assert_allclose(centre.scale**2, expected, rtol=1e-2)


def test_rows_that_float32_cannot_tell_apart_are_refused():
    X = np.array([[0.337], [0.0], [1.0]])
    encoder = make_encoder("bspline", knots="uniform").fit(explicit.census_of(X))
    moments = moments_of(encoder, located(encoder, X), np.array([1e9, 1.0, 1.0]))
    with pytest.raises(DataError) as caught:
        moments.centre(True, True)
    text = str(caught.value)
    share = text.split(" by ")[1].split(" ")[0]
    assert float(share) < 1e-6
    assert text == (
        f"the rows vary by {share} of their squared norm, less than float32 can tell. "
        "Drop features that are constant in nearly all rows."
    )
    moments.centre(True, False)


def test_moments_are_sums_of_groups_in_order():
    X, weight = explicit.rows(N_ROWS), weights()
    encoder = make_encoder("bspline", degree=2, knots="uniform").fit(explicit.census_of(X, weight))
    positions = located(encoder, X)
    whole = moments_of(encoder, positions, weight)
    codes, sums = np.zeros_like(whole.codes), np.zeros(2)
    for start in range(0, N_ROWS, 1000):
        group = moments_of(encoder, positions[start : start + 1000], weight[start : start + 1000])
        codes += group.codes
        sums += group.sums
    np.testing.assert_array_equal(whole.codes, codes)
    np.testing.assert_array_equal(whole.sums, sums)
