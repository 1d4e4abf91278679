"""B-splines of degree 0 to 3 on n_bins bins of each feature: degree + 1 non-zeros a value, which sum to 1.

With bin k and fraction t of the coordinate u, the non-zeros stand at k .. k + degree [deBoor1978; Eilers1996]:

    degree 0   1
    degree 1   1-t, t
    degree 2   (1-t)^2/2, 1/2 + t - t^2, t^2/2
    degree 3   (1-t)^3/6, (4 - 6t^2 + 3t^3)/6, (1 + 3t + 3t^2 - 3t^3)/6, t^3/6
"""

import numpy as np

from linadd._jit import compiled
from linadd.choices import KNOTS, SPLINE_DEGREES
from linadd.encoders.base import Encoder, affine_axes, check_count
from linadd.encoders.coordinates import Grid, codes_per_bin, coordinate, feature_of, fraction_bits, whole_numbers
from linadd.encoders.knots import choose_knots
from linadd.errors import ConfigError

CODE = 0  # branch in rows.py and exact.py


@compiled
def basis_values(t, degree, j, values):
    """Write the degree + 1 values at fraction t to values[:, j], in the float type of `values`."""
    real = values.dtype.type
    s = real(1) - t
    if degree == 0:
        values[0, j] = real(1)
    elif degree == 1:
        values[0, j] = s
        values[1, j] = t
    elif degree == 2:
        half = real(0.5)
        values[0, j] = half * s * s
        values[1, j] = half + t * s
        values[2, j] = half * t * t
    else:
        sixth = real(1 / 6)
        tt, ss = t * t, s * s
        values[0, j] = sixth * ss * s
        values[1, j] = sixth * (real(4) + tt * (real(3) * t - real(6)))
        values[2, j] = sixth * (real(4) + ss * (real(3) * s - real(6)))
        values[3, j] = sixth * tt * t


@compiled
def encode_coordinates(u, columns, n_bins, degree, index, values):
    """Bins and values of a row of float64 coordinates, of the features `columns` (None: of all)."""
    if degree == 1:  # the default, as a loop that LLVM turns into vectors
        for e in range(u.shape[0]):
            k = min(int(u[e]), n_bins[feature_of(columns, e)] - 1)
            t = u[e] - k
            index[e] = k
            values[0, e] = 1.0 - t
            values[1, e] = t
    else:
        for e in range(u.shape[0]):
            k = min(int(u[e]), n_bins[feature_of(columns, e)] - 1)
            index[e] = k
            basis_values(u[e] - k, degree, e, values)


@compiled
def encode_row(positions, degree, bits, index, values):
    """Bins and float32 values of a row of fixed-point positions."""
    unit = np.float32(1.0 / (1 << bits))
    mask = np.int32((1 << bits) - 1)
    shift = np.int32(bits)
    if degree == 1:  # the default, as a loop that LLVM turns into vectors
        for j in range(positions.shape[0]):
            p = np.int32(positions[j])
            t = np.float32(p & mask) * unit
            index[j] = p >> shift
            values[0, j] = np.float32(1) - t
            values[1, j] = t
    else:
        for j in range(positions.shape[0]):
            p = np.int32(positions[j])
            index[j] = p >> shift
            basis_values(np.float32(p & mask) * unit, degree, j, values)


@compiled
def encode_codes(codes, degree, steps, index, values):
    """encode_row for a row of codes."""
    if degree == 1:  # as above
        for j in range(codes.shape[0]):
            u = coordinate(codes, steps, j)
            k = np.int32(u)
            t = u - np.float32(k)
            index[j] = k
            values[0, j] = np.float32(1) - t
            values[1, j] = t
    else:
        for j in range(codes.shape[0]):
            u = coordinate(codes, steps, j)
            index[j] = np.int32(u)
            basis_values(u - np.float32(index[j]), degree, j, values)


class BSpline(Encoder):
    """Local polynomial basis of each feature between its least and greatest training value.

    Parameters
    ----------
    degree : {0, 1, 2, 3}
        Degree of the polynomials.
    n_bins : int
        Bins a feature, 1 to 4096, of degree 0 at least 2; n_basis = n_bins + degree.
    penalty_order : {0, 1, 2, 3}
        Order d of the difference penalty |D_d v_j|^2.
    knots : {"auto", "uniform", "quantile"}
        `uniform`: bins of equal width; `quantile`: bins of equal mass; `auto`: uniform, unless one uniform bin of the
        feature holds more than half of its rows.
    """

    name = "bspline"
    code = CODE
    is_local = True

    def __init__(self, degree=1, n_bins=10, penalty_order=1, knots="auto"):
        if degree not in SPLINE_DEGREES:
            raise ConfigError(f"degree: {degree!r} is not one of 0, 1, 2, 3.")
        check_count("n_bins", n_bins, 1 if degree else 2, 4096)  # one bin of degree 0 is a constant
        if knots not in KNOTS:
            raise ConfigError(f"knots: {knots!r} is not one of {', '.join(KNOTS)}.")
        super().__init__(n_local=degree + 1, n_basis=n_bins + degree, penalty_order=penalty_order)
        self.degree, self.n_bins, self.knots = int(degree), int(n_bins), knots
        self.bits = fraction_bits(n_bins)

    @property
    def options(self):
        """The constructor's arguments."""
        return {
            "degree": self.degree,
            "n_bins": self.n_bins,
            "penalty_order": self.penalty_order,
            "knots": self.knots,
        }

    def make_axes(self, census, scale):
        """Uniform bins on [minimum, maximum], or knots at quantiles."""
        span = census.maximum - census.minimum
        with np.errstate(divide="ignore", over="ignore"):
            inverse = self.n_bins / span
        axes = affine_axes(census, census.minimum, inverse, np.full(len(span), self.n_bins))
        return axes if self.knots == "uniform" else choose_knots(axes, census, self.n_bins, self.knots)

    def end_slopes(self):
        """Slopes at t = 0 of the first and t = 1 of the last bin; d/dt of degree r are differences of degree r - 1."""
        axes, slopes = self.axes, np.zeros((2, self.n_features, self.n_basis))
        per_u = np.stack([axes.inverse, axes.inverse])  # du/dx at both ends
        for j in np.flatnonzero(~np.isnan(axes.edges[:, 0])):
            widths = np.diff(axes.edges[j, : axes.n_bins[j] + 1])[[0, -1]]
            per_u[:, j] = np.divide(1.0, widths, out=np.zeros(2), where=widths > 0)
        if self.degree:
            lower = np.zeros((self.degree, 1))
            for end, first in ((0, np.zeros_like(axes.n_bins)), (1, axes.n_bins - 1)):
                basis_values(float(end), self.degree - 1, 0, lower)
                steps = -np.diff(lower[:, 0], prepend=0.0, append=0.0)
                for m in range(self.n_local):
                    slopes[end, np.arange(self.n_features), first + m] = steps[m] * per_u[end]
        return slopes

    def check_precision(self, precision):
        """Raise ConfigError where there are more bins than codes of a precision can tell apart."""
        if precision != "exact":
            codes_per_bin(precision, self.n_bins, self.degree)

    def make_grid(self, census, dtype, precision):
        """An equal number of codes a bin, or one for each whole number between the ends of uniform bins."""
        n_bins = self.axes.n_bins
        rate = np.array([codes_per_bin(precision, int(n), self.degree) for n in n_bins], np.float64)
        if self.degree:
            is_whole = whole_numbers(census, dtype, precision) & np.isnan(self.axes.edges[:, 0])
            rate = np.where(is_whole, (census.maximum - census.minimum) / n_bins, rate)
        return Grid(
            first=np.full(len(n_bins), 0.0 if self.degree else 0.5, np.float32),
            step=(1.0 / rate).astype(np.float32),
            last=np.nextafter(n_bins.astype(np.float32), np.float32(0)),
            rate=rate,
            top=np.rint(n_bins * rate) if self.degree else n_bins - 1.0,
        )

    def relative_scale(self, census, scale):
        """sqrt(1 / n_bins_j), sqrt(h_j) in units of x, or 1."""
        if scale == "libspline":
            return np.sqrt((census.maximum - census.minimum) / self.n_bins)
        return np.sqrt(1.0 / self.axes.n_bins) if scale == "unit" else np.ones(self.n_features)
