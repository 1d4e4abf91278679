"""The compiled bandwidth search against its NumPy twin, the specification's vectors, and the laws of the density."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from linadd.sparse_kernel.rodeo_bandwidths import bandwidth_steps, local_bandwidths, search_threshold


def log_weights(query, points, bandwidth):
    """log w_i of the module's formula."""
    return np.sum(-((query - points) ** 2) / (2 * bandwidth**2) - np.log(np.sqrt(2 * np.pi) * bandwidth), axis=1)


def derivative(query, points, bandwidth, log_scale=0.0):
    """Z_j and its standard error s_j, straight from the formulas, both divided by exp(log_scale)."""
    weight = np.exp(log_weights(query, points, bandwidth) - log_scale)[:, None]
    z = ((query - points) ** 2 / bandwidth**2 - 1) / bandwidth * weight
    return z.mean(axis=0), np.sqrt(z.var(axis=0, ddof=1) / len(points))


def search_twin(query, points, beta=0.9, c0=1.0, min_bandwidth=1e-3):
    """Algorithm 1 for one query, one statement a step."""
    m = len(points)
    bandwidth = np.full(points.shape[1], c0 / math.log(math.log(max(m, 16))))
    active = np.ones(points.shape[1], dtype=bool)
    threshold = math.sqrt(2 * math.log(m * max(math.log(m), 1)))
    while active.any() and m > 1:
        z, error = derivative(query, points, bandwidth, log_weights(query, points, bandwidth).max())
        active &= (np.abs(z) > error * threshold) & (beta * bandwidth >= min_bandwidth)
        bandwidth[active] *= beta
    return bandwidth, logsumexp(log_weights(query, points, bandwidth)) - math.log(m)


@pytest.fixture(scope="module")
def sample():
    """The specification's 40 points."""
    i = np.arange(40)
    columns = [0.5 + 0.05 * np.sin(i), (i + 1) * 0.6180339887 % 1, (i + 1) * 0.7548776662 % 1]
    return np.stack(columns, axis=1)


QUERIES = np.array([[0.5, 0.4, 0.7], [0.56, 0.1, 0.2]])


def test_constants_are_those_of_the_specification(sample):
    np.testing.assert_allclose(bandwidth_steps(40, 1.0, 0.9, 1e-3)[0], 0.766094061, atol=1e-8)
    np.testing.assert_allclose(search_threshold(40), 3.160443701, atol=1e-8)
    z, error = derivative(QUERIES[0], sample, np.full(3, bandwidth_steps(40, 1.0, 0.9, 1e-3)[0]))
    np.testing.assert_allclose(z, [-0.154101662, -0.132598664, -0.125034022], atol=1e-8)
    np.testing.assert_allclose(error, [0.003439268, 0.005577366, 0.007804720], atol=1e-8)


def test_search_gives_the_vectors_of_the_specification(sample):
    bandwidth, log_density = local_bandwidths(QUERIES, sample)
    expected = [[0.036084016, 0.296800536, 0.329778373], [0.067898443, 0.502634314, 0.366420415]]
    np.testing.assert_allclose(bandwidth, expected, atol=1e-8)
    np.testing.assert_allclose(log_density, [1.657367678, 0.428602257], atol=1e-8)


def test_steps_end_at_the_minimum():
    steps = bandwidth_steps(150, 1.0, 0.9, 1e-3)
    assert steps[-1] >= 1e-3 > 0.9 * steps[-1]
    np.testing.assert_allclose(steps[1:] / steps[:-1], 0.9, rtol=1e-13)
    assert len(bandwidth_steps(150, 1e-4, 0.9, 1e-3)) == 1


@pytest.mark.parametrize("c0", [0.3, 1.0])
@pytest.mark.parametrize("n_points", [1, 2, 3, 60])
def test_compiled_search_equals_the_twin(n_points, c0):
    rng = np.random.default_rng(n_points)
    points = np.column_stack([rng.normal(0.5, 0.05, n_points), rng.random((n_points, 4)), np.full(n_points, 0.25)])
    queries = np.vstack([points[:5], rng.random((20, 6)), [[0.5, 0.5, 0.5, 0.5, 0.5, 0.25]]])
    bandwidth, log_density = local_bandwidths(queries, points, c0=c0)
    for q, query in enumerate(queries):
        expected, expected_density = search_twin(query, points, c0=c0)
        np.testing.assert_allclose(bandwidth[q], expected, rtol=1e-12)
        np.testing.assert_allclose(log_density[q], expected_density, rtol=1e-10, atol=1e-10)


def test_leaving_a_point_out_equals_a_sample_without_it(sample):
    bandwidth, log_density = local_bandwidths(sample, sample, np.arange(40))
    for i in range(40):
        expected, expected_density = search_twin(sample[i], np.delete(sample, i, axis=0))
        np.testing.assert_allclose(bandwidth[i], expected, rtol=1e-12)
        np.testing.assert_allclose(log_density[i], expected_density, rtol=1e-10)


def test_z_is_the_derivative_of_the_density(sample):
    bandwidth, step = np.array([0.3, 0.5, 0.4]), 1e-5
    z, _ = derivative(QUERIES[0], sample, bandwidth)
    for j, shift in enumerate(step * np.eye(3)):
        up, down = (np.exp(log_weights(QUERIES[0], sample, bandwidth + sign * shift)).mean() for sign in (1, -1))
        np.testing.assert_allclose(z[j], (up - down) / (2 * step), atol=1e-7)


def test_point_mass_runs_down_to_the_minimum():
    points = np.random.default_rng(0).random((50, 2)) * [1, 0] + [0, 0.3]
    bandwidth, _ = local_bandwidths(np.array([[0.5, 0.3]]), points)
    assert bandwidth[0, 1] == bandwidth_steps(50, 1.0, 0.9, 1e-3)[-1]
    assert bandwidth[0, 0] > 0.1


def test_far_queries_stay_finite_and_farther_ones_are_minus_infinity(sample):
    _, log_density = local_bandwidths(np.array([[1e9, 0.5, 0.5], [1e200, 0.5, 0.5]]), sample)
    assert np.isfinite(log_density[0])
    assert log_density[0] < -1e17
    assert log_density[1] == -np.inf


def test_the_threads_do_not_change_a_bit():
    rng = np.random.default_rng(3)
    queries, points = rng.random((37, 4)), rng.random((30, 4))
    alone = local_bandwidths(queries, points)
    for one, three in zip(alone, local_bandwidths(queries, points, n_threads=3), strict=True):
        np.testing.assert_array_equal(one, three)
