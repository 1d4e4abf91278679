"""The kernels, a class each, and the list `KERNELS` (name -> class) that options and model files refer to.

Formulas: the table in section 2 of the design page "sparse kernel classifiers".
"""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from linadd.census import Census
from linadd.encoders.bspline import BSpline
from linadd.encoders.exact import encode
from linadd.errors import ConfigError
from linadd.sparse_kernel.histogram_kernels import ChiSquared, Intersection, JensenShannon
from linadd.sparse_kernel.kernel_base import (
    Kernel,
    Product,
    Sum,
    VarianceOnly,
    default_length,
    row_slices,
    squared_distances,
)

__all__ = ["ARD", "KERNELS", "RBF", "BSplineKernel", "ChiSquared", "Intersection", "JensenShannon", "Kernel",
           "Linear", "Polynomial", "Product", "Sum", "kernel_from_description", "make_kernel", "row_slices"]


class _SquaredExponential(Kernel):
    """What RBF and ARD share: variance * exp(-|x - z|^2 / 2) of features divided by their lengths."""

    def lengths(self):
        raise NotImplementedError

    def bind(self, X):
        scaled = X / self.lengths()
        half_norms = -0.5 * np.einsum("ij,ij->i", scaled, scaled)
        # One product gives x'z - |x|^2/2 - |z|^2/2.
        wide = np.column_stack([scaled, half_norms, np.ones(len(X))])

        def gram(Z=None):
            itself = Z is None or Z is X
            other, other_norms = scaled, half_norms
            if not itself:
                other = Z / self.lengths()
                other_norms = -0.5 * np.einsum("ij,ij->i", other, other)
            out = wide @ np.column_stack([other, np.ones(len(other)), other_norms]).T
            np.minimum(out, 0.0, out=out)
            np.exp(out, out=out)
            if itself:
                np.fill_diagonal(out, 1.0)
            if self.variance != 1.0:
                out *= self.variance
            return out

        return gram

    def __call__(self, X, Z=None):
        """Gram matrix variance * exp(-|x - z|^2 / 2), float64 (n_rows of X, n_rows of Z); Z defaults to X."""
        return self.bind(X)(Z)

    def diag(self, X):
        return np.full(len(X), float(self.variance))

    def grad_diag(self, X):
        return [self.diag(X)] + [np.zeros(len(X))] * (len(self.theta) - 1)

    def by_feature(self, X, Z, weight):
        """Sum of weight and, for every feature, sum_ik weight_ik (x_im - z_km)^2 in units of the lengths.

        In O(n_rows of X * n_rows of Z) memory: with row sums r and column sums c of the weight it is
        sum_i r_i x_im^2 + sum_k c_k z_km^2 - 2 (w' x_m)' z_m.
        """
        x, z = X / self.lengths(), Z / self.lengths()
        rows, columns = weight.sum(axis=1), weight.sum(axis=0)
        return rows.sum(), rows @ x**2 + columns @ z**2 - 2 * np.einsum("km,km->m", weight.T @ x, z)


@dataclass(frozen=True)
class RBF(_SquaredExponential):
    """Squared exponential kernel variance * exp(-|x - z|^2 / (2 length_scale^2)).

    Parameters
    ----------
    variance : float, default=1.0
        K(x, x), above 0.
    length_scale : float or None, default=None
        Length in the units of the (scaled) features; None is filled in by `with_default_lengths`.
    """

    variance: float = 1.0
    length_scale: float | None = None
    name: ClassVar[str] = "rbf"
    log_parameters: ClassVar[tuple] = ("variance", "length_scale")

    def lengths(self):
        """The common length."""
        return self.length_scale

    def grad(self, X, Z):
        K, scaled = self(X, Z), X / self.length_scale
        return [K, K * squared_distances(scaled, np.einsum("ij,ij->i", scaled, scaled), Z / self.length_scale)]

    def grad_dot(self, X, Z, weight):
        total, by_feature = self.by_feature(X, Z, weight * self(X, Z))
        return np.array([total, by_feature.sum()])

    def with_default_lengths(self, X):
        return self if self.length_scale is not None else RBF(self.variance, default_length(X))


@dataclass(frozen=True)
class ARD(_SquaredExponential):
    """Squared exponential kernel with a length for each feature: variance * exp(-sum_m (x_m - z_m)^2 / (2 l_m^2)).

    Parameters
    ----------
    variance : float, default=1.0
        K(x, x), above 0.
    length_scales : sequence of float or None, default=None
        Lengths, one a feature; None is filled in by `with_default_lengths`.
    """

    variance: float = 1.0
    length_scales: tuple | None = None
    name: ClassVar[str] = "ard"
    log_parameters: ClassVar[tuple] = ("variance", "length_scales")

    def __post_init__(self):
        if self.length_scales is not None:
            object.__setattr__(self, "length_scales", tuple(float(value) for value in self.length_scales))
        super().__post_init__()

    def lengths(self):
        """The lengths, float64 (n_features,)."""
        return np.array(self.length_scales)

    def grad(self, X, Z):
        K = self(X, Z)
        return [K] + [K * np.subtract.outer(x, z) ** 2 for x, z in zip((X / self.lengths()).T, (Z / self.lengths()).T,
                                                                       strict=True)]

    def grad_dot(self, X, Z, weight):
        total, by_length = self.by_feature(X, Z, weight * self(X, Z))
        return np.concatenate([[total], by_length])

    def with_default_lengths(self, X):
        return self if self.length_scales is not None else ARD(self.variance, (default_length(X),) * X.shape[1])


class _DotProduct(Kernel):
    """What Linear and Polynomial share: K and its derivatives are functions of x'z."""

    def of_products(self, products):
        raise NotImplementedError

    def grad_of_products(self, products):
        raise NotImplementedError

    def __call__(self, X, Z=None):
        """Gram matrix, float64 (n_rows of X, n_rows of Z); Z defaults to X."""
        return self.of_products(X @ (X if Z is None else Z).T)

    def diag(self, X):
        return self.of_products(np.einsum("ij,ij->i", X, X))

    def grad(self, X, Z):
        return self.grad_of_products(X @ Z.T)

    def grad_diag(self, X):
        return self.grad_of_products(np.einsum("ij,ij->i", X, X))


@dataclass(frozen=True)
class Linear(_DotProduct):
    """Linear kernel variance * (x'z + offset).

    Parameters
    ----------
    variance : float, default=1.0
        Above 0.
    offset : float, default=1.0
        At least 0; 0 fixes it.
    """

    variance: float = 1.0
    offset: float = 1.0
    name: ClassVar[str] = "linear"
    log_parameters: ClassVar[tuple] = ("variance", "offset")

    def of_products(self, products):
        """K from x'z."""
        return self.variance * (products + self.offset)

    def grad_of_products(self, products):
        """dK/dtheta from x'z."""
        by_offset = [np.full(products.shape, self.variance * self.offset)] if self.offset else []
        return [self.of_products(products), *by_offset]


@dataclass(frozen=True)
class Polynomial(_DotProduct):
    """Polynomial kernel variance * (gamma x'z + offset)^power.

    Parameters
    ----------
    variance, gamma : float, default=1.0
        Above 0.
    offset : float, default=1.0
        At least 0; 0 fixes it.
    power : int, default=3
        At least 1; fixed.
    """

    variance: float = 1.0
    gamma: float = 1.0
    offset: float = 1.0
    power: int = 3
    name: ClassVar[str] = "polynomial"
    log_parameters: ClassVar[tuple] = ("variance", "gamma", "offset")

    def __post_init__(self):
        if self.power != int(self.power) or self.power < 1:
            raise ConfigError(f"Polynomial: power is {self.power}. Give a whole number of at least 1.")
        super().__post_init__()

    def of_products(self, products):
        """K from x'z."""
        return self.variance * (self.gamma * products + self.offset) ** self.power

    def grad_of_products(self, products):
        """dK/dtheta from x'z."""
        slope = self.variance * self.power * (self.gamma * products + self.offset) ** (self.power - 1)
        by_offset = [slope * self.offset] if self.offset else []
        return [self.of_products(products), slope * self.gamma * products, *by_offset]


@dataclass(frozen=True)
class BSplineKernel(VarianceOnly):
    """The kernel of the additive part, variance * sum_m phi_d(x_m)' phi_d(z_m), for features in [0, 1] (clipped).

    phi_d are the penalised codes of the B-spline encoder, so an additive model with this penalty is this kernel's
    machine. K_1 / n_bins tends to the intersection kernel as n_bins grows (Maji 2011).

    Parameters
    ----------
    variance : float, default=1.0
        Above 0.
    n_bins, degree, penalty_order : int
        As of `linadd.encoders.bspline.BSpline`, with uniform knots on [0, 1].
    """

    variance: float = 1.0
    n_bins: int = 10
    degree: int = 1
    penalty_order: int = 1
    name: ClassVar[str] = "bspline"
    needs_unit_range: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        self._encoder(1)

    def _encoder(self, n_features):
        zero, one = np.zeros(n_features), np.ones(n_features)
        unit_cube = Census(origin="[0, 1]", n_rows=0, n_features=n_features, weight_sum=0.0, minimum=zero, maximum=one,
                           mean=one / 2, variance=one / 12, n_distinct=None, n_filled=0)
        encoder = BSpline(self.degree, self.n_bins, self.penalty_order, knots="uniform")
        return encoder.fit(unit_cube, scale="none")

    def _codes(self, X):
        return encode(self._encoder(X.shape[1]), X, penalised=True)

    def bind(self, X):
        codes = self._codes(X)

        def gram(Z=None):
            other = codes if Z is None or Z is X else self._codes(Z)
            return self.variance * (codes @ other.toarray().T)

        return gram

    def __call__(self, X, Z=None):
        """Gram matrix, float64 (n_rows of X, n_rows of Z); Z defaults to X."""
        return self.bind(X)(Z)

    def diag(self, X):
        return self.variance * self._codes(X).power(2).sum(axis=1)


KERNELS = {kernel.name: kernel for kernel in (RBF, ARD, Linear, Polynomial, Intersection, ChiSquared, JensenShannon,
                                              BSplineKernel)}
PAIRS = {pair.name: pair for pair in (Sum, Product)}


def make_kernel(kernel):
    """Return a kernel from a name in `KERNELS` (default parameters) or a copy of a kernel.

    Raises
    ------
    ConfigError
        On another name or type.
    """
    if isinstance(kernel, Kernel):
        return kernel_from_description(kernel.description())
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]()
    raise ConfigError(f"kernel: {kernel!r} is not a kernel. Choose from {', '.join(KERNELS)} or give a Kernel object.")


def kernel_from_description(description):
    """Return the kernel that a `Kernel.description()` record (from a model file, say) describes.

    Raises
    ------
    ConfigError
        On an unknown kernel or parameter name, or a parameter out of range.
    """
    parameters = dict(description)
    name = parameters.pop("kernel", None)
    if name in PAIRS:
        return PAIRS[name](*(kernel_from_description(parameters[side]) for side in ("left", "right")))
    if name not in KERNELS:
        raise ConfigError(f"kernel: {name!r} is not a kernel. Choose from {', '.join((*KERNELS, *PAIRS))}.")
    unknown = sorted(set(parameters) - {field.name for field in fields(KERNELS[name])})
    if unknown:
        raise ConfigError(f"kernel {name}: it has no parameter {unknown[0]!r}.")
    return KERNELS[name](**parameters)
