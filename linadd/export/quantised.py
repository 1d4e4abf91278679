"""Coefficients as small integers, for devices: the tables of the quantised C export, and a bound of their error."""

import numpy as np

from linadd.errors import ConfigError
from linadd.score import PHI, coordinates

__all__ = ["BITS", "LARGEST", "Quantised"]

BITS = 14  # of a fraction, and of phi: products with int16 coefficients stay within 30 bits
LARGEST = {"int8": 127, "int16": 32767}
# Error of a value of phi in units of its last bit, by degree: of the truncated fraction, times the largest slope, and
# of the products that are rounded.
VALUE_ERROR = (0, 1, 3, 6)


class Quantised:
    """Integer tables of a model.

    Parameters
    ----------
    arrays : dict of str to array
        From `tables.model_arrays`.
    kind : {"int8", "int16"}
        Of the integers.

    Attributes
    ----------
    kind : str
        As given.
    coef : int64 array, shape (n_features, n_basis, n_outputs)
        Coefficients in steps.
    step : float64 array, shape (n_outputs,)
        Value of a step times that of the last bit of phi.
    intercept : float64 array, shape (n_outputs,)
        With the middles of the curves.
    phi_scale : float64 array, shape (n_basis,)
        Of a dense basis: what phi is multiplied by to be an integer.
    error : float64 array, shape (n_outputs,)
        Bound of the error of a score.
    """

    def __init__(self, arrays, kind):
        if "lower_slope" in arrays or not np.isfinite(arrays["lower"]).all():
            raise ConfigError(
                "export: integers need values within bounds. Export with --range clamp and a clamped encoder, or "
                "without --quantised."
            )
        self.kind = kind
        coef, one = arrays["coef"].astype(np.float64), float(1 << BITS)
        if "degree" in arrays:
            self.phi_scale, middle = None, (coef.max(axis=1) + coef.min(axis=1)) / 2
            largest_phi, phi_error = 1.0, VALUE_ERROR[int(arrays["degree"])] / one
            n_active = int(arrays["degree"]) + 1
        else:
            bounds = largest_values(arrays)
            self.phi_scale, middle = one / bounds, np.zeros(coef.shape[::2])
            coef = coef * bounds[:, None]  # phi becomes phi / bound, within -1 and 1
            largest_phi, phi_error, n_active = coef.shape[1], 1 / one, coef.shape[1]
        centred = coef - middle[:, None]
        step = np.maximum(np.abs(centred).max(axis=(0, 1)), np.finfo(np.float64).tiny) / LARGEST[kind]
        self.coef = np.rint(centred / step).astype(np.int64)
        self.intercept = arrays["intercept"] + middle.sum(axis=0)
        self.step = step / one
        rounded_coef = step * len(coef) * largest_phi / 2
        rounded_phi = np.abs(centred).max(axis=1).sum(axis=0) * phi_error * n_active
        self.error = rounded_coef + rounded_phi


def largest_values(arrays):
    """Largest |phi_i| over the coordinates of all features, float64 (n_basis,), by a fine grid with its ends."""
    share = np.linspace(0, 1, 4097)[:, None]
    rows = arrays["lower"] * (1 - share) + arrays["upper"] * share
    phi = PHI[str(arrays["encoder"])](arrays, coordinates(arrays, rows))
    return np.maximum(np.abs(phi).max(axis=(0, 1)), np.finfo(np.float64).tiny)
