"""The kernel protocol, sums and products of kernels, and the helpers that all kernels share.

A kernel is an immutable value: parameters are on their natural scale in the constructor and logarithms in `theta`;
`with_theta` returns another kernel, so a model's kernel cannot change behind it. Nothing here forms an n x n matrix
unless it is asked for K(X, X): `row_slices` cuts a large request into blocks.
"""

from dataclasses import dataclass, fields
from functools import partial
from typing import ClassVar

import numpy as np

from linadd.errors import ConfigError

__all__ = ["Kernel", "Product", "Sum", "VarianceOnly", "default_length", "row_slices", "squared_distances"]

# Bounds of log(variance); a length, gamma or offset may move by LOG_RANGE to each side of where it starts.
LOG_VARIANCE_LOWER, LOG_VARIANCE_UPPER = -4.6, 7.0
LOG_RANGE = 3.0
BLOCK_BYTES = 32 * 2**20


def row_slices(n_rows, n_columns, block_bytes=BLOCK_BYTES):
    """Slices that cut n_rows so that float64 blocks of n_columns take at most `block_bytes` (one row at the least)."""
    step = max(1, block_bytes // (8 * max(1, n_columns)))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def squared_distances(X, norms, Z):
    """|x|^2 + |z|^2 - 2 x'z clipped at 0, float64 (n_rows of X, n_rows of Z), for `norms` = |x|^2 of the rows of X."""
    distances = X @ (-2.0 * Z.T)
    distances += norms[:, None]
    distances += np.einsum("ij,ij->i", Z, Z)
    return np.maximum(distances, 0.0, out=distances)


def default_length(X):
    """sqrt(sum of the variances of the features), 1 where all are constant: sqrt(n_features) on standardised X."""
    return float(np.sqrt(X.var(axis=0).sum())) or 1.0


class Kernel:
    """Base of all kernels: the logarithmic parameter vector, cloning, sums and products.

    A subclass is a frozen dataclass that names its positive parameters in `log_parameters` and defines `__call__`,
    `diag`, `grad` and `grad_diag`. A parameter that is exactly 0 (an offset) is fixed there and absent from `theta`.
    """

    name: ClassVar[str]
    log_parameters: ClassVar[tuple] = ("variance",)
    needs_unit_range: ClassVar[bool] = False

    def __post_init__(self):
        for name in self.log_parameters:
            values = np.atleast_1d(np.asarray(getattr(self, name), dtype=object))
            least_ok = (lambda v: v >= 0) if name == "offset" else (lambda v: v > 0)
            for value in values:
                if value is not None and not (np.isfinite(value) and least_ok(value)):
                    kind = "a finite number >= 0" if name == "offset" else "a finite number above 0"
                    raise ConfigError(f"{type(self).__name__}: {name} is {value}. Give {kind}.")

    def __call__(self, X, Z=None):
        """Gram matrix K(X, Z), float64 (n_rows of X, n_rows of Z); Z defaults to X."""
        raise NotImplementedError

    def bind(self, X):
        """Return a callable Z -> K(X, Z) that keeps what depends on X alone (norms, codes) between calls."""
        return partial(self, X)

    def diag(self, X):
        """K(x, x) of every row, float64 (n_rows,), without the Gram matrix."""
        raise NotImplementedError

    def grad(self, X, Z):
        """Derivatives of K(X, Z) in each entry of `theta`: a list of arrays of the shape of K(X, Z)."""
        raise NotImplementedError

    def grad_diag(self, X):
        """Derivatives of `diag(X)` in each entry of `theta`: a list of (n_rows,) arrays."""
        raise NotImplementedError

    def grad_dot(self, X, Z, weight):
        """Sum of weight * dK(X, Z)/dtheta_k for every k, float64 (len(theta),); weight has the shape of K(X, Z)."""
        return np.array([np.vdot(weight, derivative) for derivative in self.grad(X, Z)])

    def _free(self):
        return [name for name in self.log_parameters if np.all(np.asarray(getattr(self, name)) != 0)]

    @property
    def theta(self):
        """Logarithms of the free parameters, float64; the order of `grad`."""
        return np.log(np.concatenate([np.atleast_1d(getattr(self, name)) for name in self._free()]).astype(float))

    def with_theta(self, theta):
        """Return this kernel with other log-parameters (this one is left alone)."""
        values = self.parameters
        position = 0
        for name in self._free():
            old = getattr(self, name)
            size = np.size(old)
            new = np.exp(theta[position : position + size])
            values[name] = tuple(new.tolist()) if isinstance(old, tuple) else float(new[0])
            position += size
        return type(self)(**values)

    def bounds(self, log_variance_upper=LOG_VARIANCE_UPPER):
        """Search bounds of `theta`, float64 (len(theta), 2); those of lengths are relative to this kernel's own."""
        rows = []
        for name in self._free():
            for value in np.log(np.atleast_1d(getattr(self, name))):
                around = (value - LOG_RANGE, value + LOG_RANGE)
                rows.append((LOG_VARIANCE_LOWER, log_variance_upper) if name == "variance" else around)
        return np.array(rows)

    @property
    def parameters(self):
        """Constructor parameters by name, on the natural scale."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def copy(self):
        """Return an equal kernel."""
        return type(self)(**self.parameters)

    def with_default_lengths(self, X):
        """Return this kernel with lengths that were left None set to sqrt(sum of the features' variances) of X.

        On standardised features without constants this is sqrt(n_features).
        """
        return self

    def description(self):
        """JSON-able record from which `kernel_from_description` makes an equal kernel."""
        return {"kernel": self.name, **self.parameters}

    def __add__(self, other):
        return Sum(self, other)

    def __mul__(self, other):
        return Product(self, other)


class VarianceOnly(Kernel):
    """Kernels whose only free parameter is the factor in front."""

    def grad(self, X, Z):
        return [self(X, Z)]

    def grad_diag(self, X):
        return [self.diag(X)]


class _Pair(Kernel):
    """What Sum and Product share: two kernels, and the parameters of the left one first.

    `combine` joins their Gram matrices; `slopes(evaluate, left, right)` are its derivatives in them, where `evaluate`
    gives the matrix of a kernel.
    """

    log_parameters: ClassVar[tuple] = ()

    @property
    def theta(self):
        """Log-parameters of the left kernel, then of the right one."""
        return np.concatenate([self.left.theta, self.right.theta])

    def with_theta(self, theta):
        """Return this pair with other log-parameters."""
        cut = len(self.left.theta)
        return type(self)(self.left.with_theta(theta[:cut]), self.right.with_theta(theta[cut:]))

    def bounds(self, log_variance_upper=LOG_VARIANCE_UPPER):
        """Search bounds of `theta`, float64 (len(theta), 2)."""
        return np.concatenate([self.left.bounds(log_variance_upper), self.right.bounds(log_variance_upper)])

    @property
    def needs_unit_range(self):
        """Whether either kernel takes features in [0, 1] only."""
        return self.left.needs_unit_range or self.right.needs_unit_range

    def with_default_lengths(self, X):
        """Return this pair with lengths that were left None filled in."""
        return type(self)(self.left.with_default_lengths(X), self.right.with_default_lengths(X))

    def description(self):
        """JSON-able record of both kernels."""
        return {"kernel": self.name, "left": self.left.description(), "right": self.right.description()}

    def bind(self, X):
        left, right = self.left.bind(X), self.right.bind(X)
        return lambda Z=None: self.combine(left(Z), right(Z))

    def __call__(self, X, Z=None):
        return self.combine(self.left(X, Z), self.right(X, Z))

    def diag(self, X):
        return self.combine(self.left.diag(X), self.right.diag(X))

    def grad(self, X, Z):
        by_left, by_right = self.slopes(lambda kernel: kernel(X, Z), self.left, self.right)
        return [by_left * g for g in self.left.grad(X, Z)] + [by_right * g for g in self.right.grad(X, Z)]

    def grad_diag(self, X):
        by_left, by_right = self.slopes(lambda kernel: kernel.diag(X), self.left, self.right)
        return [by_left * g for g in self.left.grad_diag(X)] + [by_right * g for g in self.right.grad_diag(X)]

    def grad_dot(self, X, Z, weight):
        by_left, by_right = self.slopes(lambda kernel: kernel(X, Z), self.left, self.right)
        return np.concatenate([self.left.grad_dot(X, Z, weight * by_left),
                               self.right.grad_dot(X, Z, weight * by_right)])


@dataclass(frozen=True)
class Sum(_Pair):
    """The kernel left + right.

    Parameters
    ----------
    left, right : Kernel
    """

    left: Kernel
    right: Kernel
    name: ClassVar[str] = "sum"
    combine: ClassVar = staticmethod(np.add)
    slopes: ClassVar = staticmethod(lambda evaluate, left, right: (1.0, 1.0))


@dataclass(frozen=True)
class Product(_Pair):
    """The kernel left * right (elementwise).

    Parameters
    ----------
    left, right : Kernel
    """

    left: Kernel
    right: Kernel
    name: ClassVar[str] = "product"
    combine: ClassVar = staticmethod(np.multiply)
    slopes: ClassVar = staticmethod(lambda evaluate, left, right: (evaluate(right), evaluate(left)))
