"""Compiled Gram loops of the histogram kernels: for each pair of rows, a sum over features of f(x_m, z_m)."""

import math

from linadd._jit import compiled_sums

__all__ = ["CHI_SQUARED", "INTERSECTION", "JENSEN_SHANNON", "fill_gram"]

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
