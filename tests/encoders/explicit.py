"""The encoders in plain NumPy, one value at a time in the order of the formulas: what compiled loops must equal."""

import math

import numpy as np

from linadd.census import CensusTaker
from linadd.chunks import Chunk


def census_of(X, weight=None, y=None, origin="train.h5", names=None):
    """Census of rows in memory, all of them in the sample."""
    taker = CensusTaker(origin, X.shape[1], X.shape[0], 0, names)
    taker.update(Chunk(X, y, weight, 0, origin))
    return taker.finish()


def rows(n_rows=200, seed=0):
    """Even, time stamps, a spike at 0, few values, constant, heavy tails: (n_rows, 6)."""
    rng = np.random.default_rng(seed)
    return np.stack(
        [
            rng.uniform(-1, 1, n_rows),
            1.6e9 + rng.random(n_rows) * 1000,
            np.maximum(rng.normal(size=n_rows), 0),
            rng.integers(0, 4, n_rows),
            np.full(n_rows, -2.5),
            rng.standard_cauchy(n_rows),
        ],
        axis=1,
    )


def difference_matrix(n, d):
    """D_d = D_1^d, D_1 with 1 on the diagonal and -1 just below it."""
    return np.linalg.matrix_power(np.eye(n) - np.eye(n, k=-1), d)


def update_matrix(encoder):
    """L = D_d^-1 D_d'^-1 by matrix inverses; the identity for a dense basis."""
    n, order = encoder.n_basis, encoder.penalty_order if encoder.is_local else 0
    return np.linalg.inv(difference_matrix(n, order).T @ difference_matrix(n, order))


def coordinate(axes, x, j):
    """u of one value, from edges by searching, else by the affine map."""
    x = float(min(max(x, axes.lower[j]), axes.upper[j]))
    edges = axes.edges[j, : axes.n_bins[j] + 1]
    if not axes.has_knots or np.isnan(edges[0]):
        return (x - axes.origin[j]) * axes.inverse[j]
    k = np.searchsorted(edges, x, side="right") - 1
    if (edges == x).sum() == 2:
        return k - 0.5
    return float(k) if k == axes.n_bins[j] else k + (x - edges[k]) / (edges[k + 1] - edges[k])


def spline(u, n_bins, degree, n_basis):
    """All values of the B-spline basis at a coordinate, by the formulas of the design."""
    k = min(int(u), n_bins - 1)
    t = u - k
    local = {
        0: [1],
        1: [1 - t, t],
        2: [(1 - t) ** 2 / 2, 1 / 2 + t - t**2, t**2 / 2],
        3: [(1 - t) ** 3 / 6, (4 - 6 * t**2 + 3 * t**3) / 6, (1 + 3 * t + 3 * t**2 - 3 * t**3) / 6, t**3 / 6],
    }[degree]
    code = np.zeros(n_basis)
    code[k : k + degree + 1] = local
    return code


def fourier(u, m, d):
    """sin(k pi u) / k^d, cos(k pi u) / k^d for k = 1..m, interleaved."""
    return np.array([f(k * math.pi * u) / k**d for k in range(1, m + 1) for f in (math.sin, math.cos)])


def hermite(u, m, d):
    """He_k(u) / sqrt((k!)^2 / (k - d)!), or / sqrt(k!) for k < d."""
    values = np.polynomial.hermite_e.hermevander(u, m)[0, 1:]
    norms = [
        math.factorial(k) ** 2 / math.factorial(k - d) if k >= d else math.factorial(k) for k in range(1, m + 1)
    ]
    return values / np.sqrt(norms)


def phi(encoder, x, j):
    """All n_basis values of feature j at x."""
    u = coordinate(encoder.axes, x, j)
    options = encoder.options
    if encoder.name == "bspline":
        return spline(u, int(encoder.axes.n_bins[j]), options["degree"], encoder.n_basis)
    if encoder.name == "fourier":
        return fourier(u, options["n_harmonics"], options["penalty_order"])
    if encoder.name == "hermite":
        return hermite(u, options["n_terms"], options["penalty_order"])
    return np.array([u])


def codes(encoder, X):
    """phi of every value, (n_rows, n_features, n_basis)."""
    return np.array([[phi(encoder, x, j) for j, x in enumerate(row)] for row in np.asarray(X, np.float64)])


def codes_of_positions(encoder, positions):
    """phi of positions as the solver stores them: fixed point for local bases, float32 for dense ones."""
    return codes_of_coordinates(encoder, positions.astype(np.float64) / (1 << encoder.bits))


def codes_of_coordinates(encoder, u):
    """phi of coordinates below the end of the last bin."""
    code = np.empty((*u.shape, encoder.n_basis))
    for i, j in np.ndindex(u.shape):
        if encoder.is_local:
            code[i, j] = spline(u[i, j], 1 << 30, encoder.options["degree"], encoder.n_basis)
        else:
            plain = {"fourier": fourier, "hermite": hermite}.get(encoder.name)
            code[i, j] = plain(u[i, j], *encoder.options.values()) if plain else u[i, j]
    return code
