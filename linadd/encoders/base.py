"""What every encoder is: a choice of basis, fitted to a census, and its state as plain arrays.

An encoder has two parts that compiled loops read as tuples of arrays: `axes` (value to coordinate, `coordinates.py`)
and `basis` (coordinate to values of phi, and the update table). The loops themselves are in `rows.py` (float32, for
solvers) and `exact.py` (float64, for moments, decisions and certificates).
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from linadd import penalty
from linadd._simd import aligned_zeros, padded
from linadd.choices import PRECISIONS, SCALES
from linadd.encoders.coordinates import NO_GRID, Axes, Grid, whole_numbers
from linadd.errors import ConfigError, DataError


class Basis(NamedTuple):
    """How a coordinate becomes values of phi, and what a step on them adds to the coefficients."""

    code: int  # CODE of the encoder's file
    is_local: bool  # n_local neighbours among n_basis; else dense, and L is the identity
    n_local: int
    n_basis: int
    bits: int  # of the fraction of a fixed-point position
    weights: np.ndarray  # float64 (n_basis,), of a dense basis
    table: np.ndarray  # float32 (n_basis, n_basis padded to 16): L_d
    table_exact: np.ndarray  # float64 (n_basis, n_basis)
    steps: np.ndarray  # float32 (3, n_features), of rows that are kept as codes: Grid.steps


def check_count(name, value, least, most):
    """Raise ConfigError unless an option's value is an integer between two bounds, or a float equal to one."""
    if not (least <= value <= most and value == int(value)):
        raise ConfigError(f"{name}: {value!r} is not an integer between {least} and {most}.")


def affine_axes(census, origin, inverse, n_bins):
    """Axes of features that all map affinely; a constant feature (inverse not finite) gets inverse 0.

    Raises
    ------
    DataError
        Where the inverse is infinite, but the feature is not constant: its values are too close to be divided by.
    """
    n_features = len(census.minimum)
    is_too_narrow = np.isinf(inverse) & (census.maximum > census.minimum)
    if is_too_narrow.any():
        j = int(np.argmax(is_too_narrow))
        raise DataError(
            f"the range {census.minimum[j]:g} to {census.maximum[j]:g} is too narrow for float64 numbers. Rescale it.",
            source=census.origin, column=census.column_name(j),
        )  # fmt: skip
    return Axes(
        lower=np.array(census.minimum, np.float64),
        upper=np.array(census.maximum, np.float64),
        origin=np.array(origin, np.float64),
        inverse=np.where(np.isfinite(inverse), inverse, 0.0),
        n_bins=np.array(n_bins, np.int64),
        edges=np.full((n_features, 1), np.nan),
        has_knots=False,
    )


class Encoder(ABC):
    """A feature embedding; fitted by `fit`, or restored by `from_state` of the package.

    Attributes
    ----------
    name : str
        Key in the list of encoders.
    options : dict
        The constructor's arguments; JSON values.
    n_features : int
        Features seen by `fit`.
    n_basis : int
        Coefficients a feature and output.
    axes, basis : tuples of arrays
        For compiled loops.
    scale : float64 array, shape (n_features,)
        After `fit`: the factor of each feature; 0 for a constant one.
    constant : int64 array
        After `fit`: the features that contribute nothing.
    """

    name: ClassVar[str]
    code: ClassVar[int]
    is_local: ClassVar[bool]

    def __init__(self, n_local, n_basis, penalty_order):
        penalty.check_order(penalty_order, n_basis if self.is_local else 1)
        self.n_local, self.n_basis, self.penalty_order = int(n_local), int(n_basis), int(penalty_order)
        self.bits, self.weights, self.axes, self.grid = 0, np.ones(self.n_basis), None, NO_GRID

    @property
    @abstractmethod
    def options(self):
        """The constructor's arguments, as JSON values."""

    @abstractmethod
    def make_axes(self, census, scale):
        """Axes for the features of a census under a scale rule."""

    @abstractmethod
    def relative_scale(self, census, scale):
        """Factor of each feature before the global one, float64 (n_features,)."""

    @abstractmethod
    def make_grid(self, census, dtype, precision):
        """Grid of codes for the features of a census, from a source of that dtype; after `make_axes`."""

    @abstractmethod
    def check_precision(self, precision):
        """Raise ConfigError where the codes of a precision cannot stand for this basis."""

    def use_codes(self, census, dtype, precision):
        """Set the grid of the codes that stand for the rows of a census.

        Parameters
        ----------
        census : Census
            That of `fit`.
        dtype : dtype
            Of the values in their source.
        precision : {"uint8", "uint16"}
            Kind of codes.
        """
        self.grid = self.make_grid(census, dtype, precision)
        vars(self).pop("basis", None)

    def fit(self, census, scale="unit"):
        """Set the ranges, and return self.

        Parameters
        ----------
        census : Census
            `minimum`, `maximum`, `mean`, `variance`, and for quantile knots the sample.
        scale : {"unit", "libspline", "none"}
            The rule of the design for the factor of each feature; the global factor of `unit` is `centring.py`'s.

        Raises
        ------
        ConfigError
            On an unknown scale.
        DataError
            Where a feature's range is not a finite number, or every feature is constant.
        """
        if scale not in SCALES:
            raise ConfigError(f"scale: {scale!r} is not one of {', '.join(SCALES)}.")
        with np.errstate(over="ignore"):
            span = census.maximum - census.minimum
        if not np.isfinite(span).all():
            j = int(np.argmax(~np.isfinite(span)))
            raise DataError(
                f"the range {census.minimum[j]:g} to {census.maximum[j]:g} is wider than a float64 number. Rescale it.",
                source=census.origin, column=census.column_name(j),
            )  # fmt: skip
        if not span.any():
            raise DataError("every feature is constant: there is nothing to learn from.", source=census.origin)
        self.axes = self.make_axes(census, scale)
        self.scale = self.relative_scale(census, scale) * (self.axes.inverse != 0)
        self.constant = np.flatnonzero(self.scale == 0)
        return self

    def places_like(self, other):
        """Whether rows have the same positions, and codes, as under another fitted encoder."""
        own, others = ((each.bits, *each.axes, *each.grid) for each in (self, other))
        return self.is_local == other.is_local and all(
            np.array_equal(*pair, equal_nan=True) for pair in zip(own, others, strict=True)
        )

    @property
    def n_features(self):
        """Number of features seen by `fit`."""
        return len(self.axes.lower)

    @property
    def ranges(self):
        """Training range of each feature, float64 (n_features, 2); infinite where values are not clamped."""
        return np.stack([self.axes.lower, self.axes.upper], axis=1)

    @cached_property
    def basis(self):
        """The basis as a tuple of arrays, for compiled loops."""
        order = self.penalty_order if self.is_local else 0
        exact = penalty.update_table(self.n_basis, order)
        table = aligned_zeros((self.n_basis, padded(self.n_basis)))
        table[:, : self.n_basis] = exact
        return Basis(
            self.code, self.is_local, self.n_local, self.n_basis, self.bits, self.weights, table, exact,
            self.grid.steps(),
        )  # fmt: skip

    @abstractmethod
    def end_slopes(self):
        """Slopes d phi / d x at the lower and the upper end of each feature, taken from inside.

        Returns
        -------
        float64 array, shape (2, n_features, n_basis)
            0 for a constant feature, and where a bin that holds a single value ends the range.
        """

    def tensors(self):
        """State as named float64 and int64 arrays, for the model file."""
        return {name: np.asarray(value) for name, value in self.axes._asdict().items() if name != "has_knots"}

    def restore(self, tensors):
        """Set the state from `tensors()`, and return self."""
        arrays = {name: np.require(tensors[name], requirements="CW") for name in Axes._fields if name != "has_knots"}
        self.axes = Axes(**arrays, has_knots=bool(np.isfinite(arrays["edges"][:, 0]).any()))
        return self


class DenseEncoder(Encoder):
    """An encoder whose values all differ from zero: the score and the update use the same vector."""

    is_local = False

    def check_precision(self, precision):
        """Pass: smooth functions of the whole range need no bins told apart."""

    def make_axes(self, census, scale):
        """u = (x - centre) / half-range, in [-1, 1]."""
        centre = census.minimum + (census.maximum - census.minimum) / 2
        with np.errstate(divide="ignore", over="ignore"):
            inverse = 2.0 / (census.maximum - census.minimum)
        return affine_axes(census, centre, inverse, np.zeros(len(centre)))

    @abstractmethod
    def derivative(self, u):
        """d phi / d u at coordinates u of any shape, float64 (*u.shape, n_basis)."""

    def end_slopes(self):
        """Slopes at u = -1 and 1; of the unbounded identity anywhere."""
        ends = np.where(np.isfinite(self.ranges), self.ranges, self.axes.origin[:, None]).T
        u = (ends - self.axes.origin) * self.axes.inverse
        return self.derivative(u) * self.axes.inverse[:, None]

    def make_grid(self, census, dtype, precision):
        """Evenly over the range of each feature, both ends included."""
        axes, span = self.axes, census.maximum - census.minimum
        top = float(256 ** PRECISIONS[precision] - 1)
        n_steps = np.where(whole_numbers(census, dtype, precision), span, top)
        width = span * axes.inverse
        rate = np.divide(n_steps, width, out=np.zeros_like(width), where=width > 0)
        return Grid(
            first=((census.minimum - axes.origin) * axes.inverse).astype(np.float32),
            step=(width / n_steps).astype(np.float32),
            last=np.full(len(width), np.inf, np.float32),
            rate=rate,
            top=n_steps,
        )

    def relative_scale(self, census, scale):
        """1, or sqrt((max - min) / 10) in units of x, libspline's default of ten bins."""
        if scale == "libspline":
            return np.sqrt((census.maximum - census.minimum) / 10)
        return np.ones(self.n_features)
