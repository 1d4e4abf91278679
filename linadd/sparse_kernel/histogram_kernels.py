"""The histogram kernels, for rows >= 0: K(x, z) = variance * sum_m f(x_m, z_m) with f(x, x) = x, in compiled loops."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from linadd._jit import compiled_sums
from linadd.errors import DataError
from linadd.sparse_kernel.kernel_base import VarianceOnly

__all__ = ["ChiSquared", "Intersection", "JensenShannon"]

INTERSECTION, CHI_SQUARED, JENSEN_SHANNON = range(3)


@compiled_sums
def intersection(x, z):
    """sum_m min(x_m, z_m)."""
    total = 0.0
    for m in range(x.shape[0]):
        total += min(x[m], z[m])
    return total


@compiled_sums
def chi_squared(x, z):
    """sum_m 2 x_m z_m / (x_m + z_m), a term 0 where both are 0."""
    total = 0.0
    for m in range(x.shape[0]):
        both = x[m] + z[m]
        total += 2.0 * x[m] * z[m] / both if both > 0.0 else 0.0
    return total


@compiled_sums
def jensen_shannon(x, z):
    """sum_m [x_m/2 log2((x_m + z_m)/x_m) + z_m/2 log2((x_m + z_m)/z_m)], a half 0 where its own value is 0."""
    total = 0.0
    for m in range(x.shape[0]):
        both = x[m] + z[m]
        if x[m] > 0.0:
            total += 0.5 * x[m] * math.log2(both / x[m])
        if z[m] > 0.0:
            total += 0.5 * z[m] * math.log2(both / z[m])
    return total


@compiled_sums
def fill_gram(code, X, Z, out):
    """out[i, k] = the function of `code` on rows X[i] and Z[k]; float64, C-contiguous, values >= 0."""
    for i in range(X.shape[0]):
        for k in range(Z.shape[0]):
            if code == INTERSECTION:
                out[i, k] = intersection(X[i], Z[k])
            elif code == CHI_SQUARED:
                out[i, k] = chi_squared(X[i], Z[k])
            else:
                out[i, k] = jensen_shannon(X[i], Z[k])


class _Histogram(VarianceOnly):
    """What the three additive histogram kernels share: rows >= 0, K(x, x) = variance * sum_m x_m."""

    needs_unit_range: ClassVar[bool] = True
    gram_code: ClassVar[int]

    def __call__(self, X, Z=None):
        """Gram matrix, float64 (n_rows of X, n_rows of Z); DataError on a negative value; Z defaults to X."""
        Z = X if Z is None else Z
        self._refuse_negative(X)
        self._refuse_negative(Z)
        out = np.empty((len(X), len(Z)))
        fill_gram(self.gram_code, np.array(X, dtype=float), np.array(Z, dtype=float), out)
        out *= self.variance
        return out

    def diag(self, X):
        self._refuse_negative(X)
        return self.variance * X.sum(axis=1)

    def _refuse_negative(self, X):
        if X.size and X.min() < 0:
            row, column = np.unravel_index(X.argmin(), X.shape)
            raise DataError(f"{X[row, column]} is negative, and {type(self).__name__} takes values >= 0. "
                            "Use scale='minmax'.", row=int(row) + 1, column=int(column) + 1)


@dataclass(frozen=True)
class Intersection(_Histogram):
    """Histogram intersection kernel variance * sum_m min(x_m, z_m), rows >= 0.

    Parameters
    ----------
    variance : float, default=1.0
        Above 0.
    """

    variance: float = 1.0
    name: ClassVar[str] = "intersection"
    gram_code: ClassVar[int] = INTERSECTION


@dataclass(frozen=True)
class ChiSquared(_Histogram):
    """Additive chi-squared kernel variance * sum_m 2 x_m z_m / (x_m + z_m), rows >= 0; 0 where both are 0.

    Parameters
    ----------
    variance : float, default=1.0
        Above 0.
    """

    variance: float = 1.0
    name: ClassVar[str] = "chi-squared"
    gram_code: ClassVar[int] = CHI_SQUARED


@dataclass(frozen=True)
class JensenShannon(_Histogram):
    """Jensen-Shannon kernel variance * sum_m [x/2 log2((x+z)/x) + z/2 log2((x+z)/z)], rows >= 0; a term at 0 is 0.

    Parameters
    ----------
    variance : float, default=1.0
        Above 0.
    """

    variance: float = 1.0
    name: ClassVar[str] = "jensen-shannon"
    gram_code: ClassVar[int] = JENSEN_SHANNON
