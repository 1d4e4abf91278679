"""Scores from exported arrays in plain NumPy: the reference for whoever scores in another language.

    score_o = intercept_o + sum_j sum_i coef[j, i, o] phi_i(u_j)

A value becomes a coordinate u (`coordinates`), the coordinate the n_basis values of phi (one function an encoder). The
names of the arrays are those of `tables.py`; this file needs nothing else of linadd, and may be copied.
"""

import numpy as np

__all__ = ["PHI", "decision_function"]


def decision_function(arrays, X):
    """Scores of rows.

    Parameters
    ----------
    arrays : mapping of str to array
        `numpy.load("model.npz")`, or what `json.read` returns.
    X : array, shape (n_rows, n_features)
        Finite feature values; a hundred rows at a time keep the memory small (n_rows * n_features * n_basis doubles).

    Returns
    -------
    array, shape (n_rows, n_outputs), float64
        One column for two classes, positive for classes[1]; else one a class.
    """
    u = coordinates(arrays, np.asarray(X, np.float64))
    phi = PHI[str(arrays["encoder"])](arrays, u)
    return np.tensordot(phi, arrays["coef"].astype(np.float64), 2) + arrays["intercept"]


def coordinates(arrays, X):
    """u of every value, clamped to the training range; shape (n_rows, n_features)."""
    X = np.clip(X, arrays["lower"], arrays["upper"])
    u = (X - arrays["origin"]) * arrays["inverse"]
    if "edges" in arrays:
        for j in np.flatnonzero(~np.isnan(arrays["edges"][:, 0])):
            u[:, j] = knot_coordinate(X[:, j], arrays["edges"][j, : arrays["n_bins"][j] + 1])
    return u


def knot_coordinate(x, edges):
    """u = k + share of the way from edge k to edge k + 1; the middle of the bin where two edges are one value."""
    last = len(edges) - 1
    k = np.searchsorted(edges, x, side="right") - 1
    width = edges[np.minimum(k + 1, last)] - edges[k]
    u = k + (x - edges[k]) / np.where(k < last, width, 1.0)
    return np.where(edges[k - 1] == x, k - 0.5, u)  # k = 0 looks at the last edge, which x is below


def bspline(arrays, u):
    """degree + 1 values that sum to 1, from the bin of u on; shape (n_rows, n_features, n_basis)."""
    k = np.minimum(u.astype(np.int64), arrays["n_bins"] - 1)
    t = u - k
    s = 1 - t
    values = [
        [np.ones_like(t)],
        [s, t],
        [s**2 / 2, 1 / 2 + t * s, t**2 / 2],
        [s**3 / 6, (4 - 6 * t**2 + 3 * t**3) / 6, (4 - 6 * s**2 + 3 * s**3) / 6, t**3 / 6],
    ][int(arrays["degree"])]
    phi = np.zeros((*u.shape, arrays["coef"].shape[1]))
    for m, value in enumerate(values):
        np.put_along_axis(phi, (k + m)[:, :, None], value[:, :, None], axis=2)
    return phi


def fourier(arrays, u):
    """sin(pi u), cos(pi u), sin(2 pi u), cos(2 pi u), ... times their weights; shape (n_rows, n_features, n_basis)."""
    angle = np.pi * u[:, :, None] * np.arange(1, len(arrays["weights"]) // 2 + 1)
    return np.stack([np.sin(angle), np.cos(angle)], axis=3).reshape(*u.shape, -1) * arrays["weights"]


def hermite(arrays, u):
    """He_1(u) = u, He_2(u) = u^2 - 1, He_(k+1) = u He_k - k He_(k-1), times their weights; shape as above."""
    values = [np.ones_like(u), u]
    for k in range(1, len(arrays["weights"])):
        values.append(u * values[k] - k * values[k - 1])
    return np.stack(values[1:], axis=2) * arrays["weights"]


def identity(arrays, u):
    """u itself; shape (n_rows, n_features, 1)."""
    return u[:, :, None] * arrays["weights"]


PHI = {"bspline": bspline, "fourier": fourier, "hermite": hermite, "identity": identity}
