"""Curves by coordinate: contributions, points to draw, and the way from coordinates back to values."""

import numpy as np
import pytest

from linadd.encoders import make_encoder
from linadd.encoders.curves import contributions, coordinates, curve_coordinates, error_bounds, values_of
from tests.checks.check_encoder import CASES, coefficients
from tests.encoders import explicit


def fitted(name, options):
    """(encoder, rows)."""
    X = explicit.rows()
    return make_encoder(name, **options).fit(explicit.census_of(X)), X


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_contributions_are_the_products_by_feature(name, options):
    encoder, X = fitted(name, options)
    coef, _ = coefficients(encoder, 3)
    expected = np.einsum("ijk,jko->ijo", explicit.codes(encoder, X), coef.astype(np.float64))
    # atol: a recurrence of up to nine steps loses a few digits
    np.testing.assert_allclose(contributions(encoder, coordinates(encoder, X), coef), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_values_are_the_way_back(name, options):
    encoder, X = fitted(name, options)
    u = coordinates(encoder, X)
    for j in range(encoder.n_features):
        # A time stamp of 1.6e9 keeps 1e-7 of its unit.
        np.testing.assert_allclose(values_of(encoder, j, u[:, j]), X[:, j], rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_points_to_draw_span_the_range_and_keep_the_curve(name, options):
    encoder, X = fitted(name, options)
    seen = coordinates(encoder, X)
    u = curve_coordinates(encoder, 40, [seen.min(axis=0), seen.max(axis=0)])
    assert len(u) > 40 and (np.diff(u, axis=0) >= 0).all()
    coef, _ = coefficients(encoder, 1)
    drawn, exact = contributions(encoder, u, coef)[..., 0], contributions(encoder, seen, coef)[..., 0]
    for j in np.flatnonzero(encoder.axes.inverse):
        ends = values_of(encoder, j, u[[0, -1], j])
        np.testing.assert_allclose(ends, [X[:, j].min(), X[:, j].max()], rtol=1e-12, atol=1e-12)
        if encoder.is_local and encoder.n_local <= 2:
            np.testing.assert_allclose(np.interp(seen[:, j], u[:, j], drawn[:, j]), exact[:, j], atol=1e-6)


def test_a_spike_has_a_point_of_its_own():
    encoder, X = fitted("bspline", {"degree": 1, "n_bins": 5, "knots": "quantile"})
    spike = float(coordinates(encoder, X)[X[:, 2] == 0, 2][0])
    assert spike % 1 == 0.5
    assert (curve_coordinates(encoder, 3)[:, 2] == spike).any()
    assert values_of(encoder, 2, [spike - 0.5, spike, spike + 0.4]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_the_bound_is_exact_at_knots_up_to_degree_1_and_never_below(degree):
    encoder, _ = fitted("bspline", {"degree": degree, "n_bins": 5, "knots": "uniform"})
    rng = np.random.default_rng(0)
    folds = rng.normal(size=(7, encoder.n_features, encoder.n_basis, 2)).astype(np.float32)
    deviation = folds.std(axis=0)
    u = curve_coordinates(encoder, 10)
    bound = error_bounds(encoder, u, np.zeros((encoder.n_features, encoder.n_basis)), deviation)
    exact = np.std([contributions(encoder, u, coef) for coef in folds], axis=0)
    assert (bound >= exact * (1 - 1e-6)).all()
    is_exact = np.ones(len(u), bool) if degree == 0 else np.isclose(u[:, 0] % 1, 0) & (degree == 1)
    np.testing.assert_allclose(bound[is_exact], exact[is_exact], rtol=1e-6)


def test_the_bound_of_a_dense_basis_is_of_the_centred_curve():
    encoder, X = fitted("hermite", {})
    mean_code = explicit.codes(encoder, X).mean(axis=0)
    folds = np.random.default_rng(0).normal(size=(7, encoder.n_features, encoder.n_basis, 1)).astype(np.float32)
    u = curve_coordinates(encoder, 10)
    means = np.einsum("jk,fjko->fjo", mean_code, folds.astype(np.float64))
    exact = np.std([contributions(encoder, u, coef) - mean for coef, mean in zip(folds, means, strict=True)], axis=0)
    assert (error_bounds(encoder, u, mean_code, folds.std(axis=0)) >= exact * (1 - 1e-6)).all()
