"""Curves f_j as functions of the coordinate: contributions of rows, points to draw, and the way back to values.

Float64 throughout, by the basis functions that decisions are made of.
"""

import numpy as np

from linadd._jit import compiled
from linadd.encoders.coordinates import locate_row
from linadd.encoders.exact import encode_coordinates, make_scratch

__all__ = ["contributions", "coordinates", "curve_coordinates", "error_bounds", "values_of"]

STEP = 1e-9  # before the end of a bin of degree 0, where the curve jumps


@compiled
def locate_rows(X, axes, u):
    """Coordinates of every row of X, into float64 u of the same shape."""
    for i in range(X.shape[0]):
        locate_row(X, i, axes, u[i])


@compiled
def contribute_rows(u, axes, basis, coef, parts, index, values):
    """parts[i, j, o] += coef[j, :, o] . phi(u_ij)."""
    n_local, n_features = values.shape
    for i in range(u.shape[0]):
        encode_coordinates(u[i], None, axes, basis, index, values)
        for j in range(n_features):
            for m in range(n_local):
                place, value = coef[j, index[j] + m], values[m, j]
                for o in range(parts.shape[2]):
                    parts[i, j, o] += value * place[o]


@compiled
def bound_rows(u, axes, basis, middle, deviation, bounds, index, values):
    """bounds[i, j, o] += |phi(u_ij) - middle_j| . deviation[j, :, o]."""
    n_local, n_features = values.shape
    for i in range(u.shape[0]):
        encode_coordinates(u[i], None, axes, basis, index, values)
        for j in range(n_features):
            for m in range(n_local):
                k = index[j] + m
                for o in range(bounds.shape[2]):
                    bounds[i, j, o] += abs(values[m, j] - middle[j, k]) * deviation[j, k, o]


def coordinates(encoder, X):
    """Coordinates of values: what the basis functions are functions of.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    X : array, shape (n_rows, n_features), any real dtype, C-contiguous
        Feature values, finite; clamped to the training range.

    Returns
    -------
    float64 array, shape (n_rows, n_features)
        In [0, n_bins] for a local basis, in [-1, 1] for a dense one, standardised for the identity.
    """
    u = np.empty(X.shape)
    locate_rows(np.require(X, requirements="CW"), encoder.axes, u)
    return u


def contributions(encoder, u, coef):
    """What each feature adds to each score.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    u : float64 array, shape (n_rows, n_features)
        Coordinates, in the range that `coordinates` gives.
    coef : float32 array, shape (n_features, n_basis, n_outputs)
        Coefficients in phi units.

    Returns
    -------
    float64 array, shape (n_rows, n_features, n_outputs)
        coef_j . phi(u_ij).
    """
    u, parts = np.require(u, np.float64, "CW"), np.zeros((*u.shape, coef.shape[2]))
    index, values = make_scratch(encoder)[:2]
    contribute_rows(u, encoder.axes, encoder.basis, np.require(coef, requirements="CW"), parts, index, values)
    return parts


def error_bounds(encoder, u, mean_code, deviation):
    """Bound of the standard error of every centred curve, from those of its coefficients.

    By the triangle inequality: the error of a sum is at most the sum of the errors. It is the standard error itself at
    the knots of a curve of degree 1, and everywhere for degree 0.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    u : float64 array, shape (n_rows, n_features)
        Coordinates.
    mean_code : array, shape (n_features, n_basis)
        Mean of phi.
    deviation : float32 array, shape (n_features, n_basis, n_outputs)
        Standard errors of the coefficients; for a local basis, those of the centred curve.

    Returns
    -------
    float64 array, shape (n_rows, n_features, n_outputs)
    """
    u, bounds = np.require(u, np.float64, "CW"), np.zeros((*u.shape, deviation.shape[2]))
    index, values = make_scratch(encoder)[:2]
    middle = np.zeros(mean_code.shape) if encoder.is_local else np.require(mean_code, np.float64, "CW")
    deviation = np.require(deviation, requirements="CW")
    bound_rows(u, encoder.axes, encoder.basis, middle, deviation, bounds, index, values)
    return bounds


def has_own_knots(encoder, feature):
    """Whether a feature's bins stand at knots of its own."""
    return encoder.is_local and bool(np.isfinite(encoder.axes.edges[feature, 0]))


def values_of(encoder, feature, u):
    """Values of a feature at coordinates, the inverse of `coordinates`.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    feature : int
        Index of the feature.
    u : array, shape (n,)
        Coordinates.

    Returns
    -------
    float64 array, shape (n,)
        Within the training range; all coordinates of a spike's bin are its one value, those of a constant feature too.
    """
    axes, u = encoder.axes, np.asarray(u, np.float64)
    if has_own_knots(encoder, feature):
        n_bins = axes.n_bins[feature]
        return np.interp(u, np.arange(n_bins + 1.0), axes.edges[feature, : n_bins + 1])
    if axes.inverse[feature] == 0:
        return np.full(u.shape, axes.origin[feature])
    x = axes.origin[feature] + u / axes.inverse[feature]
    return np.clip(x, axes.lower[feature], axes.upper[feature])


def curve_coordinates(encoder, resolution, ends=None):
    """Coordinates at which to draw every curve; straight lines between the points are the curve of degree 0 or 1.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    resolution : int
        Least number of steps over the range of a feature with the most bins.
    ends : float array, shape (2, n_features), optional
        First and last coordinate under a dense basis; by default those of the training range.

    Returns
    -------
    float64 array, shape (n_points, n_features), increasing along the first axis
        A feature of fewer bins than others repeats its last point. Those of a spike at an end of the range begin or end
        in the middle of its bin, where all its rows are.
    """
    if not encoder.is_local:
        if ends is None:
            ends = (encoder.ranges.T - encoder.axes.origin) * encoder.axes.inverse
        return np.linspace(*ends, max(resolution, 1) + 1)
    per_bin = max(-(-resolution // encoder.n_bins), 2 if encoder.axes.has_knots else 1)
    per_bin += per_bin % 2 if encoder.axes.has_knots else 0  # an even number: a spike has its value in the middle
    steps = np.arange(encoder.n_bins * per_bin + 1) / per_bin
    if encoder.n_local == 1:
        left, right = steps[:-1], steps[1:] - STEP
        steps = np.append(np.stack([left, right], axis=1).ravel()[:-1], encoder.n_bins)
    return np.clip(steps[:, None], *coordinates(encoder, encoder.ranges.T))
