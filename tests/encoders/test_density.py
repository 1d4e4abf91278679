"""Counts of the training rows in cells: against explicit sums, for any chunking, and what they are good for."""

import numpy as np
import pytest

from linadd.chunks import Chunk
from linadd.encoders import make_encoder
from linadd.encoders.density import DensityCounter, cell_coordinates, n_cells
from linadd.encoders.rows import located as located_rows
from tests.checks.check_encoder import CASES, located
from tests.encoders import explicit
from tests.solvers.problems import thin

N_ROWS = 400


def weights():
    """Weights without a pattern, some of them 0."""
    rng = np.random.default_rng(1)
    return rng.exponential(size=N_ROWS) * (rng.random(N_ROWS) > 0.2)


def counted(name, options, cuts=(), is_sparse=False):
    """(encoder, Density, coordinates of the rows, mean code) of rows that come in parts."""
    X, weight = thin(explicit.rows(N_ROWS)) if is_sparse else explicit.rows(N_ROWS), weights()
    census = explicit.census_of(X, weight)
    encoder = make_encoder(name, **options).fit(census)
    positions, counter = located(encoder, X), DensityCounter(encoder, census)
    for part in np.split(np.arange(N_ROWS), cuts):
        chunk = Chunk(X[part], None, None, int(part[0]), "array")
        piece = (int(part[0]), located_rows(encoder, chunk, is_sparse), weight[part])
        counter.run([piece], counter.weights, counter.places)
    u = positions * 2.0**-encoder.bits if encoder.is_local else positions.astype(np.float64)
    mean_code = np.average(explicit.codes_of_positions(encoder, positions), axis=0, weights=weight)
    return encoder, counter.finish(mean_code), u, mean_code


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_every_row_is_in_the_cell_of_its_coordinate(is_sparse, name, options):
    encoder, density, u, mean_code = counted(name, options, is_sparse=is_sparse)
    weight = weights() / weights().sum()
    assert density.weight.shape == density.place.shape == (encoder.n_features, n_cells(encoder))
    np.testing.assert_allclose(density.mean_code, mean_code, rtol=1e-6, atol=1e-7)
    for j in np.flatnonzero(encoder.axes.inverse):
        cells = cell_coordinates(encoder, j)
        if cells is None:  # not clamped: equal parts of what was seen
            assert options == {"clamp": False}
            seen = u[weight > 0, j]
            cells = np.linspace(seen.min(), seen.max(), n_cells(encoder) + 1)
        # Float32 coordinates cannot tell the ends of cells sharply.
        expected = np.histogram(np.clip(u[:, j], *cells[[0, -1]]), cells, weights=weight)[0]
        found = density.weight[j, : len(cells) - 1]
        tolerance = 1e-6 if encoder.is_local else 0.02
        np.testing.assert_allclose(np.cumsum(found), np.cumsum(expected), atol=tolerance)
        assert density.weight[j, len(cells) - 1 :].sum() == 0
        np.testing.assert_allclose(density.weight[j] @ density.place[j], weight @ u[:, j], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("degree", [0, 1])
def test_a_mean_over_cells_is_that_over_the_rows_where_curves_are_linear(degree):
    encoder, density, u, _ = counted("bspline", {"degree": degree, "n_bins": 7, "knots": "quantile"})
    coef = np.random.default_rng(0).normal(size=(encoder.n_features, encoder.n_basis))
    for j in range(encoder.n_features):
        n_bins = encoder.axes.n_bins[j]
        values = [explicit.spline(x, n_bins, degree, encoder.n_basis) @ coef[j] for x in u[:, j]]
        cells = [explicit.spline(float(x), n_bins, degree, encoder.n_basis) @ coef[j] for x in density.place[j]]
        assert density.weight[j] @ cells == pytest.approx(np.average(values, weights=weights()), abs=1e-5)


@pytest.mark.parametrize("name", ["bspline", "fourier", "identity"])
def test_the_counts_do_not_depend_on_where_chunks_are_cut(name):
    _, whole, _, _ = counted(name, {})
    _, parts, _, _ = counted(name, {}, cuts=[1, 130, 131])
    assert whole.weight.tobytes() == parts.weight.tobytes() and whole.place.tobytes() == parts.place.tobytes()


@pytest.mark.parametrize(("n_bins", "expected"), [(1, 32), (10, 20), (20, 20), (21, 21), (4096, 4096)])
def test_cells_divide_bins(n_bins, expected):
    assert n_cells(make_encoder("bspline", n_bins=n_bins)) == expected


def test_a_mean_stays_within_its_cell():
    """Just below the end of a bin, where a curve of degree 0 jumps and float32 would round up."""
    X = np.array([[0.0], [1.0], [np.nextafter(0.5, 0)]])
    census = explicit.census_of(X)
    encoder = make_encoder("bspline", degree=0, n_bins=32, knots="uniform").fit(census)
    counter = DensityCounter(encoder, census)
    counter.add(*counter.group([(0, located(encoder, X), np.ones(3))]))
    density = counter.finish(np.zeros((1, 32)))
    assert int(density.place[0, 15]) == 15 and density.weight[0, 15] == pytest.approx(1 / 3)
