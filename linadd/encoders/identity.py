"""The linear classifier as an encoder: one value a feature, the baseline that everything else is checked against.

Under `scale="unit"` the value is (x - mean) / standard deviation, else x itself. Keeping the centred and scaled value
in the code, not in the coefficient, keeps float32 coefficients exact enough for columns such as time stamps.
"""

import numpy as np

from linadd.encoders.base import DenseEncoder, affine_axes
from linadd.errors import DataError

CODE = 3  # branch in rows.py and exact.py


class Identity(DenseEncoder):
    """phi(x) = x, standardised under `scale="unit"`.

    Parameters
    ----------
    clamp : bool
        Clamp values to the training range, as the other encoders do; LIBLINEAR does not.
    """

    name = "identity"
    code = CODE

    def __init__(self, clamp=True):
        super().__init__(n_local=1, n_basis=1, penalty_order=0)
        self.clamp = bool(clamp)

    @property
    def options(self):
        """The constructor's arguments."""
        return {"clamp": self.clamp}

    def make_axes(self, census, scale):
        """Mean and 1 / standard deviation, or 0 and 1; a constant feature has inverse 0 under `unit`."""
        n_features = len(census.mean)
        origin, inverse = np.zeros(n_features), np.ones(n_features)
        if scale == "unit":
            if not np.isfinite(census.variance).all():
                j = int(np.argmax(~np.isfinite(census.variance)))
                raise DataError(
                    f"values up to {max(-census.minimum[j], census.maximum[j]):g} have no finite variance. Rescale it.",
                    source=census.origin, column=census.column_name(j),
                )  # fmt: skip
            origin = census.mean
            with np.errstate(divide="ignore"):
                inverse = 1.0 / np.sqrt(census.variance)
        axes = affine_axes(census, origin, inverse, np.zeros(n_features))
        if not self.clamp:
            axes = axes._replace(lower=np.full(n_features, -np.inf), upper=np.full(n_features, np.inf))
        return axes

    def derivative(self, u):
        """1."""
        return np.ones((*u.shape, 1))


def in_other_units(coef, intercept, axes, other):
    """Coefficients that give the same line under other origins and scales of the features.

    Parameters
    ----------
    coef : float32 array, shape (n_features, 1, n_outputs)
        Under `axes`.
    intercept : float64 array, shape (n_outputs,)
        Of the same model.
    axes, other : Axes
        Of two identity encoders of the same features.

    Returns
    -------
    coef : float32 array, shape (n_features, 1, n_outputs)
        Under `other`; 0 where it holds a feature for constant, whose value is then in the intercept.
    intercept : float64 array, shape (n_outputs,)
    """
    slopes = coef[:, 0].astype(np.float64) * axes.inverse[:, None]
    unit = np.divide(1.0, other.inverse, out=np.zeros(len(coef)), where=other.inverse != 0)
    moved = ((other.origin - axes.origin)[:, None] * slopes).sum(axis=0)
    return (slopes * unit[:, None])[:, None].astype(np.float32), intercept + moved
