"""Curves beyond their training range as straight lines: what the range policy `linear` adds to clamped scores."""

import numpy as np

__all__ = ["add_extrapolation", "curve_slopes"]


def curve_slopes(encoder, coef, is_linear):
    """Slope of every curve at the ends of its range.

    Parameters
    ----------
    encoder : Encoder
        Fitted.
    coef : float32 array, shape (n_features, n_basis, n_outputs)
        Coefficients in phi units.
    is_linear : bool array, shape (n_features,)
        Features that are continued; the slopes of the others are 0.

    Returns
    -------
    float64 array, shape (2, n_features, n_outputs)
        At the lower and the upper end, a unit of x.
    """
    slopes = np.zeros((2, encoder.n_features, coef.shape[2]))
    ends = encoder.end_slopes()[:, is_linear]
    slopes[:, is_linear] = np.einsum("ejb,jbo->ejo", ends, coef[is_linear].astype(np.float64))
    return slopes


def add_extrapolation(scores, X, ranges, slopes):
    """Add (x - end) slope of every value beyond an end, one after another, so that rows do not depend on each other.

    Parameters
    ----------
    scores : float64 array, shape (n_rows, n_outputs) or (n_rows, n_features, n_outputs)
        Scores of the clamped rows, or what each feature adds to them; changed in place.
    X : array, shape (n_rows, n_features)
        Feature values.
    ranges : float64 array, shape (n_features, 2)
        Ends of the features.
    slopes : float64 array, shape (2, n_features, n_outputs)
        From `curve_slopes`.
    """
    is_linear = slopes.any(axis=2)
    for end, is_beyond in enumerate((ranges[:, 0] > X, ranges[:, 1] < X)):
        rows, features = np.nonzero(is_beyond & is_linear[end])
        excess = X[rows, features].astype(np.float64) - ranges[features, end]
        place = rows if scores.ndim == 2 else (rows, features)
        np.add.at(scores, place, excess[:, None] * slopes[end, features])
