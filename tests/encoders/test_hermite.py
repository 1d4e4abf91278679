"""The Hermite basis: its weights, by quadrature."""

import numpy as np

from linadd.penalty import hermite_weights


def test_hermite_terms_are_orthonormal_in_their_derivatives():
    # Gauss quadrature of degree 40 is exact for products of degree 2 * 8.
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    for d in range(4):
        own = hermite_weights(8, d)
        for k in range(1, 9):
            series = np.zeros(k + 1)
            series[k] = own[k - 1]
            derivative = np.polynomial.hermite_e.hermeder(series, d if k >= d else 0)
            np.testing.assert_allclose(weights @ np.polynomial.hermite_e.hermeval(nodes, derivative) ** 2, 1.0)
