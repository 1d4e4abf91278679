"""B-splines: against SciPy, binning, and the intersection kernel."""

import numpy as np
import pytest
from scipy.interpolate import BSpline as ScipyBSpline

from linadd.encoders import make_encoder
from linadd.encoders.bspline import basis_values, encode_row
from linadd.encoders.exact import encode
from tests.encoders import explicit
from tests.encoders.explicit import census_of

rng = np.random.default_rng(0)


def fitted(X, **options):
    """A uniform encoder of rows."""
    return make_encoder("bspline", **{"knots": "uniform", **options}).fit(census_of(X))


@pytest.mark.parametrize("degree", range(4))
@pytest.mark.parametrize("n_bins", [2, 3, 7])
def test_values_are_scipys(degree, n_bins):
    X = rng.uniform(-3, 5, size=(300, 1))
    encoder = fitted(X, degree=degree, n_bins=n_bins)
    low, high = encoder.ranges[0]
    h = (high - low) / n_bins
    knots = low + h * np.arange(-degree, n_bins + degree + 1)
    # Inside the range: at its end SciPy's half-open bins stop.
    inner = X[(X[:, 0] < high)]
    expected = ScipyBSpline.design_matrix(inner[:, 0], knots, degree).toarray()
    np.testing.assert_allclose(encode(encoder, inner).toarray(), expected, atol=1e-12)


def test_degree_zero_is_binning():
    X = rng.normal(size=(500, 3))
    code = encode(fitted(X, degree=0, n_bins=8), X).toarray().reshape(500, 3, 8)
    for j in range(3):
        counts, _ = np.histogram(X[:, j], 8)
        np.testing.assert_array_equal(code[:, j].sum(axis=0), counts)
    assert set(np.unique(code)) == {0.0, 1.0}


def test_degree_one_of_order_one_has_the_closed_form_of_the_design():
    encoder = fitted(np.array([[0.0], [10.0]]), n_bins=10)
    x = np.array([[0.0], [0.3], [4.5], [9.99], [10.0]])
    i, u = np.arange(1, 12), x
    np.testing.assert_allclose(
        encode(encoder, x).toarray() @ explicit.update_matrix(encoder), np.minimum(i, u + 1), rtol=1e-12
    )
    norms = (encode(encoder, x, penalised=True).toarray() ** 2).sum(axis=1)
    k = np.minimum(np.floor(u), 9)
    np.testing.assert_allclose(norms, (k + 1 + (u - k) ** 2)[:, 0], rtol=1e-12)


@pytest.mark.parametrize("n_bins", [10, 100, 1000])
def test_the_kernel_of_degree_one_and_order_one_approaches_the_intersection_kernel(n_bins):
    X = rng.uniform(size=(60, 1))
    X[:2] = [[0.0], [1.0]]
    code = encode(fitted(X, n_bins=n_bins), X, penalised=True)
    # n_bins min(x, z), up to the rounding to bins and the first coefficient, which is penalised as well: 1.
    kernel = (code @ code.T).toarray() - 1.0
    assert np.abs(kernel / n_bins - np.minimum(X, X.T)).max() <= 0.25 / n_bins + 1e-12


@pytest.mark.parametrize("degree", range(4))
def test_splines_reach_every_polynomial_of_their_degree(degree):
    X = np.linspace(-1, 1, 200)[:, None]
    code = encode(fitted(X, degree=degree, n_bins=4), X).toarray()
    for power in range(degree + 1):
        target = X[:, 0] ** power
        coef, *_ = np.linalg.lstsq(code, target, rcond=None)
        np.testing.assert_allclose(code @ coef, target, atol=1e-12)


@pytest.mark.parametrize("degree", range(1, 4))
def test_values_are_continuous_across_knots(degree):
    encoder = fitted(np.array([[0.0], [5.0]]), degree=degree, n_bins=5)
    for knot in range(1, 5):
        sides = encode(encoder, np.array([[np.nextafter(knot, 0)], [knot]])).toarray()
        np.testing.assert_allclose(sides[0], sides[1], atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("degree", range(4))
def test_basis_values_equal_the_formulas_in_either_precision(degree, dtype):
    values = np.empty((degree + 1, 3), dtype)
    for t in (0.0, 0.125, 0.7, 1.0):
        basis_values(dtype(t), degree, 1, values)
        # Few operations on numbers up to 1.
        np.testing.assert_allclose(
            values[:, 1], explicit.spline(float(dtype(t)), 1, degree, degree + 1), atol=4 * np.finfo(dtype).eps
        )


@pytest.mark.parametrize("degree", range(4))
def test_rows_of_positions_equal_their_twin(degree):
    positions = rng.integers(0, 12 << 20, 50).astype(np.int32)
    index, values = np.empty(50, np.int32), np.empty((degree + 1, 50), np.float32)
    encode_row(positions, degree, 20, index, values)
    np.testing.assert_array_equal(index, positions // 2**20)
    expected = [explicit.spline(p / 2**20, 12, degree, 12 + degree)[k : k + degree + 1] for p, k in zip(
        positions, index, strict=True)]  # fmt: skip
    np.testing.assert_allclose(values.T, expected, atol=4 * np.finfo(np.float32).eps)
