"""What a trained model has learned of each feature: its centred curve, the data along it, and how much it counts.

A curve f_j is centred by its mean over the training rows, coef_j . mean_code_j. Models of versions that did not count
the rows have no density: their curves are centred by the mean over the points drawn, and no importance is known.
"""

from dataclasses import dataclass

import numpy as np

from linadd.encoders import from_state
from linadd.encoders.curves import contributions, coordinates, curve_coordinates, error_bounds, values_of
from linadd.encoders.density import Density, cell_coordinates, n_cells
from linadd.encoders.exact import check_finite
from linadd.errors import ConfigError, FormatError
from linadd.model_file import take_tensor

__all__ = [
    "Shape",
    "curve_points",
    "density_tensors",
    "feature_index",
    "feature_name",
    "importances",
    "restore_density",
    "shape_function",
]

RESOLUTION = 100  # steps of a curve: ten a bin at the default of ten bins
TENSORS = {"mean_code": "mean_code", "cell_weight": "weight", "cell_place": "place"}  # in a file, in a Density


@dataclass(frozen=True)
class Shape:
    """The curve of one feature.

    Attributes
    ----------
    feature : int
        Index of the feature.
    name : str
        Its name, or "feature 3" for the one of index 2.
    grid : float64 array, shape (n,)
        Values of the feature, not decreasing. A value stands twice or more where the curve jumps.
    values : float64 array, shape (n, n_outputs)
        The curve, of mean zero over the training rows.
    error : float64 array, shape (n, n_outputs), or None
        Its standard error, from the folds of a search: as from the delete-a-group jackknife at the knots of a curve of
        degree 0 or 1, elsewhere and for other bases an upper bound.
    knots : float64 array, shape (n_bins + 1,), or None
        Ends of the bins; None for a basis without.
    range : float64 array, shape (2,)
        Least and greatest training value, where values are clamped; else infinite.
    cells : float64 array, shape (n_cells + 1,), or None
        Ends of the cells that the training rows are counted in; of a cell of width 0 the rows have one value.
    share : float64 array, shape (n_cells,), or None
        Share of the training rows in each cell, by their sample weights; None for a model of an older version.
    """

    feature: int
    name: str
    grid: np.ndarray
    values: np.ndarray
    error: np.ndarray | None
    knots: np.ndarray | None
    range: np.ndarray
    cells: np.ndarray | None
    share: np.ndarray | None


def density_tensors(density):
    """A Density as the arrays of a model file."""
    return {name: getattr(density, attribute) for name, attribute in TENSORS.items()}


def restore_density(tensors, encoder):
    """The Density of a model file, None where it has none.

    Parameters
    ----------
    tensors : dict of arrays
        Of the file.
    encoder : Encoder
        Restored from it.

    Raises
    ------
    FormatError
        One of the arrays is missing, or does not fit the encoder.
    """
    if not TENSORS.keys() & tensors.keys():
        return None
    cells = (encoder.n_features, n_cells(encoder))
    shapes = {"mean_code": (encoder.n_features, encoder.n_basis), "cell_weight": cells, "cell_place": cells}
    arrays = {name: take_tensor(tensors, name, np.float32, shape) for name, shape in shapes.items()}
    place = arrays["cell_place"]
    is_sound = np.isfinite(place)
    if encoder.is_local:  # compiled code takes the bin from it
        is_sound &= (place >= 0) & (place <= encoder.axes.n_bins[:, None])
    if not is_sound.all():
        j = int(np.argmin(is_sound.all(axis=1)))
        raise FormatError(f"its cells of feature {j + 1} lie outside the feature's bins. Train the model anew.")
    return Density(**{TENSORS[name]: array for name, array in arrays.items()})


def feature_name(model, j):
    """Name of feature j for people."""
    return str(model.feature_names[j]) if model.feature_names else f"feature {j + 1}"


def feature_index(model, feature):
    """Index of a feature that is given by index or by name; ConfigError where there is no such feature."""
    if isinstance(feature, str):
        if feature in (model.feature_names or []):
            return model.feature_names.index(feature)
        raise ConfigError(f"feature: {feature!r} is not a name of the model's {model.n_features} features.")
    if feature not in range(model.n_features):
        raise ConfigError(f"feature: {feature!r} is not one of 0 to {model.n_features - 1}.")
    return int(feature)


def part_of(model, features):
    """(encoder, coef, density, deviation) of some features of a model."""
    encoder, density, deviation = model.encoder, model.density, model.deviation
    tensors = {name: values[features] for name, values in encoder.tensors().items()}
    one = from_state(encoder.name, encoder.options, tensors)
    if density is not None:
        density = Density(density.mean_code[features], density.weight[features], density.place[features])
    return one, model.coef[features], density, None if deviation is None else deviation[features]


def mean_curves(coef, density):
    """Mean of every curve over the training rows, float64 (n_features, n_outputs)."""
    return np.einsum("jk,jko->jo", density.mean_code.astype(np.float64), coef.astype(np.float64))


def curve_points(model, features, resolution=RESOLUTION):
    """Coordinates and values of the centred curves of some features.

    Parameters
    ----------
    model : AdditiveModel
        The model.
    features : int array, shape (n,)
        Their indices.
    resolution : int
        Least number of steps over the range.

    Returns
    -------
    encoder : Encoder
        Of these features alone.
    u : float64 array, shape (n_points, n)
        Coordinates; `linadd.encoders.curves.values_of` gives the values of a feature.
    values : float64 array, shape (n_points, n, n_outputs)
        The curves.
    error : float64 array of that shape, or None
        Their standard errors, as in Shape.

    Raises
    ------
    ConfigError
        A feature is not clamped and the model has no density: nobody knows where its curve ends.
    """
    encoder, coef, density, deviation = part_of(model, features)
    ends = None
    if not np.isfinite(encoder.ranges).all():
        if density is None:
            raise ConfigError(
                f"{feature_name(model, int(features[0]))}: is not clamped, and the model does not know the range of "
                "its training data. Train it anew, or give a grid."
            )
        is_seen = density.weight > 0
        ends = [
            np.where(is_seen, density.place, np.inf).min(axis=1),
            np.where(is_seen, density.place, -np.inf).max(axis=1),
        ]
    u = curve_coordinates(encoder, resolution, ends)
    return encoder, u, *centred(encoder, u, coef, density, deviation)


def centred(encoder, u, coef, density, deviation):
    """Centred curves at coordinates (n, n_features), and their standard errors or None."""
    values = contributions(encoder, u, coef)
    if density is None:
        return values - values.mean(axis=0), None
    error = None if deviation is None else error_bounds(encoder, u, density.mean_code, deviation)
    return values - mean_curves(coef, density), error


def shape_function(model, feature, grid=None):
    """The centred curve of one feature, with the density of the training data.

    Parameters
    ----------
    model : AdditiveModel
        The model.
    feature : int or str
        Index or name of the feature.
    grid : array, shape (n,), optional
        Values of it, clamped to the training range; by default RESOLUTION steps or more, knots among them.

    Returns
    -------
    Shape

    Raises
    ------
    ConfigError
        No such feature; or, without a grid, a feature whose range is not known.
    DataError
        On a value of the grid that is not finite.
    """
    j = feature_index(model, feature)
    if grid is None:
        encoder, u, values, error = curve_points(model, np.array([j]))
        grid = values_of(encoder, 0, u[:, 0])
    else:
        encoder, coef, density, deviation = part_of(model, np.array([j]))
        grid = np.asarray(grid, np.float64).ravel()
        check_finite(grid[:, None], "grid")
        values, error = centred(encoder, coordinates(encoder, grid[:, None]), coef, density, deviation)
    knots, cells = None, cell_coordinates(encoder, 0)
    if encoder.is_local:
        knots = values_of(encoder, 0, np.arange(encoder.axes.n_bins[0] + 1))
    cells = None if cells is None or model.density is None else values_of(encoder, 0, cells)
    share = None if cells is None else model.density.weight[j, : len(cells) - 1].astype(np.float64)
    return Shape(
        j, feature_name(model, j), grid, values[:, 0], None if error is None else error[:, 0], knots,
        encoder.ranges[0], cells, share,
    )  # fmt: skip


def importances(model):
    """How much each feature moves each score: the mean of |f_j| over the training rows, f_j centred.

    Taken from the cells that the rows are counted in: exact for a curve that is linear and of one sign in every cell,
    as good as two cells a bin, or 64 of a basis without bins, otherwise.

    Parameters
    ----------
    model : AdditiveModel
        The model.

    Returns
    -------
    float64 array, shape (n_features, n_outputs)

    Raises
    ------
    ConfigError
        The model is of a version that did not count the rows.
    """
    if model.density is None:
        raise ConfigError("importance: the model is of a version that kept no density of its data. Train it anew.")
    density, means = model.density, mean_curves(model.coef, model.density)
    total = np.zeros(means.shape)
    for c in range(density.weight.shape[1]):
        values = contributions(model.encoder, density.place[None, :, c], model.coef)[0]
        total += density.weight[:, c, None].astype(np.float64) * np.abs(values - means)
    return total
