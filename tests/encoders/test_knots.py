"""Quantile knots: bins of equal mass, bins of their own for spikes, and when `auto` takes them."""

import numpy as np
import pytest
import scipy.sparse

from linadd.encoders import make_encoder
from linadd.encoders.knots import distinct_shares, fullest_bin, quantile_edges
from linadd.errors import ConfigError
from tests.encoders import explicit
from tests.encoders.explicit import census_of

rng = np.random.default_rng(0)
FEATURES = {
    "even": rng.uniform(size=5000),
    "heavy tails": rng.standard_cauchy(5000),
    "lognormal": rng.lognormal(sigma=3, size=5000),
    "spike at an end": np.maximum(rng.normal(size=5000), 0),
    "spike inside": np.where(rng.random(5000) < 0.4, 0.25, rng.normal(size=5000)),
    "binary": (rng.random(5000) < 0.3).astype(float),
    "rare": (rng.random(5000) < 0.002).astype(float),
    "few integers": rng.integers(0, 5, 5000).astype(float),
    "more integers": rng.poisson(8, 5000).astype(float),
    "many integers": rng.integers(0, 1000, 5000).astype(float),
    "two": np.array([3.0, 4.0]),
    "two spikes": rng.choice([0.0, 1.0, 2.0], 5000, p=[0.45, 0.1, 0.45]) + np.where(rng.random(5000) < 0.1, 0.5, 0),
}


def edges_of(values, n_bins, weights=None):
    """Edges on the range of the values."""
    return quantile_edges(*distinct_shares(values, weights), values.min(), values.max(), n_bins)


@pytest.mark.parametrize("n_bins", [1, 2, 3, 10, 64])
@pytest.mark.parametrize("name", FEATURES)
def test_edges_are_sorted_within_the_range_and_no_more_than_asked(name, n_bins):
    values = FEATURES[name]
    edges = edges_of(values, n_bins)
    assert edges[0] == values.min() and edges[-1] == values.max()
    assert 2 <= len(edges) <= n_bins + 1
    distinct, counts = np.unique(edges, return_counts=True)
    assert (np.diff(edges) >= 0).all() and counts.max() <= 2
    # Twice stands what holds more than a bin's share, and nothing else.
    spikes = distinct[counts == 2]
    assert all((values == spike).mean() > 1 / n_bins for spike in spikes)


@pytest.mark.parametrize("name", FEATURES)
def test_the_map_is_monotone_and_a_spike_stands_in_the_middle_of_its_bin(name):
    values = FEATURES[name]
    encoder = make_encoder("bspline", n_bins=10, knots="quantile").fit(census_of(values[:, None]))
    axes, edges = encoder.axes, encoder.axes.edges[0, : encoder.axes.n_bins[0] + 1]
    x = np.unique(np.concatenate([values, edges, np.linspace(values.min(), values.max(), 500)]))
    u = np.array([explicit.coordinate(axes, value, 0) for value in x])
    assert (np.diff(u) >= 0).all() and u[0] >= 0 and u[-1] <= axes.n_bins[0]
    distinct, counts = np.unique(edges, return_counts=True)
    for spike in distinct[counts == 2]:
        k = int(np.searchsorted(edges, spike))
        assert u[x == spike] == k + 0.5
        assert (u[x < spike] <= k).all() and (u[x > spike] >= k + 1).all()


def test_bins_without_spikes_hold_equal_mass():
    values = FEATURES["lognormal"]
    counts, _ = np.histogram(values, edges_of(values, 10))
    assert np.abs(counts - 500).max() <= 1


def test_the_values_beside_a_spike_share_all_other_bins_equally():
    # As adult's capital-gain: nine rows in ten are zero, and the rest must not get a tenth of the bins.
    values = np.concatenate([np.zeros(4500), np.arange(1.0, 501.0)])
    edges = edges_of(values, 10)
    np.testing.assert_array_equal(edges[:2], 0)
    counts, _ = np.histogram(values[values > 0], np.append(edges[1:-1], 501))
    assert len(edges) == 11 and np.abs(counts - 500 / 9).max() <= 1


def test_ties_between_levels_and_masses_are_broken_alike():
    # Twenty equal masses, ten levels: each falls on a sum of masses, up to rounding.
    np.testing.assert_array_equal(edges_of(np.arange(20.0), 10), [0, *range(1, 19, 2), 19])


def test_weights_count_as_repeated_rows():
    values, repeats = np.round(rng.normal(size=300), 2), rng.integers(0, 4, 300)
    repeated = np.repeat(values, repeats)
    for n_bins in (3, 10, 40):
        expected = quantile_edges(*distinct_shares(repeated, None), -9, 9, n_bins)
        weighted = distinct_shares(values, repeats.astype(float))
        np.testing.assert_array_equal(quantile_edges(*weighted, -9, 9, n_bins), expected)


def test_every_value_of_a_feature_with_few_of_them_has_its_own_bin():
    np.testing.assert_array_equal(edges_of(FEATURES["binary"], 10), [0, 0, 1, 1])
    np.testing.assert_array_equal(edges_of(FEATURES["few integers"], 10), np.repeat(np.arange(5.0), 2))


def test_spikes_that_do_not_fit_are_left_out_lightest_first():
    values = np.repeat([0.0, 1.0, 2.0, 3.0], [40, 30, 20, 10])
    # Four bins: each spike takes one and parts the rest.
    np.testing.assert_array_equal(edges_of(values, 4), [0, 0, 1, 1, 3])
    np.testing.assert_array_equal(edges_of(values, 2), [0, 1, 3])
    values = np.repeat([0.0, 1.0, 2.0, 3.0], [17, 26, 30, 27])
    np.testing.assert_array_equal(edges_of(values, 4), [0, 2, 2, 3, 3])


def test_the_range_is_the_census_not_the_sample():
    edges = quantile_edges(*distinct_shares(np.linspace(0, 1, 100), None), -5.0, 7.0, 4)
    assert edges[0] == -5 and edges[-1] == 7 and len(edges) == 5


def test_the_fullest_bin():
    values, weights = np.array([0.0, 1.0, 1.5, 9.0, 10.0]), np.array([1.0, 1.0, 1.0, 1.0, 4.0])
    assert fullest_bin(*distinct_shares(values, weights), 0.0, 1.0, 10) == 5 / 8  # 9 and the closed end
    assert fullest_bin(*distinct_shares(values, None), 0.0, 1.0, 10) == 2 / 5


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32, np.float64])
def test_the_shares_of_distinct_values(dtype):
    values = np.array([3, 0, 7, 3, 3, 0], dtype)
    distinct, shares = distinct_shares(values, None)
    assert distinct.dtype == np.float64
    np.testing.assert_array_equal(distinct, [0, 3, 7])
    np.testing.assert_array_equal(shares, np.array([2, 3, 1]) / 6)
    weighted = distinct_shares(values, np.array([1.0, 2.0, 0.0, 1.0, 1.0, 3.0]))
    np.testing.assert_array_equal(weighted[0], distinct)
    np.testing.assert_array_equal(weighted[1], np.array([5, 3, 0]) / 8)


def test_auto_takes_quantiles_where_a_bin_is_crowded():
    names = ["even", "heavy tails", "few integers", "rare", "spike at an end", "lognormal"]
    X = np.stack([FEATURES[name] for name in names], axis=1)
    encoder = make_encoder("bspline", knots="auto").fit(census_of(X))
    taken = np.isfinite(encoder.axes.edges[:, 0])
    assert dict(zip(names, taken.tolist(), strict=True)) == {
        "even": False, "heavy tails": True, "few integers": False, "rare": True, "spike at an end": True,
        "lognormal": True,
    }  # fmt: skip
    assert encoder.axes.has_knots
    uniform = make_encoder("bspline", knots="auto").fit(census_of(X[:, [0, 2]]))
    assert not uniform.axes.has_knots and uniform.axes.edges.shape == (2, 1)


def test_each_feature_has_its_own_number_of_bins_and_scale():
    X = np.stack([FEATURES["even"], FEATURES["binary"]], axis=1)
    encoder = make_encoder("bspline", n_bins=10, knots="quantile").fit(census_of(X))
    assert encoder.axes.n_bins.tolist() == [10, 3] and encoder.n_basis == 11
    np.testing.assert_allclose(encoder.scale, np.sqrt([1 / 10, 1 / 3]))


def test_a_constant_feature_gets_no_knots():
    encoder = make_encoder("bspline", knots="quantile").fit(census_of(np.array([[1.0, 0.0], [1.0, 1.0]])))
    assert np.isnan(encoder.axes.edges[0]).all() and np.isfinite(encoder.axes.edges[1, 0])


def test_a_sparse_sample_gives_the_knots_of_a_dense_one():
    X = np.stack([FEATURES["spike at an end"], FEATURES["even"], np.where(FEATURES["even"] > 0.9, 1.0, 0.0)], axis=1)
    weight = np.random.default_rng(3).exponential(size=len(X))
    for knots in ("auto", "quantile"):
        dense = make_encoder("bspline", knots=knots).fit(census_of(X, weight))
        sparse = make_encoder("bspline", knots=knots).fit(census_of(scipy.sparse.csr_array(X), weight))
        np.testing.assert_array_equal(sparse.axes.edges, dense.axes.edges)
        assert np.isfinite(sparse.axes.edges[2, :4]).all()


def test_quantiles_need_a_sample():
    census = census_of(np.array([[0.0], [1.0]]))
    census.sample = census.sample[:0]
    for knots in ("auto", "quantile"):
        with pytest.raises(ConfigError) as caught:
            make_encoder("bspline", knots=knots).fit(census)
        assert str(caught.value) == (
            f"knots: {knots!r} needs quantiles, and the census has no sample. Take it with sample_rows."
        )
    make_encoder("bspline", knots="uniform").fit(census)
