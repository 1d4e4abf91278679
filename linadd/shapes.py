"""What a trained model has learned of each feature: its centred curve, the data along it, and how much it counts.

A curve f_j is centred by its mean over the training rows, coef_j . mean_code_j. Models of versions that did not count
the rows have no density: their curves are centred by the mean over points spread over the range (without a range, over
the grid that is given), and no importance is known.
"""

from dataclasses import dataclass

import numpy as np

from linadd.encoders import from_state
from linadd.encoders.curves import contributions, coordinates, curve_coordinates, error_bounds, values_of
from linadd.encoders.density import Density, cell_coordinates, n_cells
from linadd.encoders.exact import check_finite
from linadd.encoders.extrapolation import add_extrapolation, curve_slopes
from linadd.errors import ConfigError, FormatError
from linadd.model_file import take_tensor

__all__ = [
    "Shape",
    "cell_curves",
    "curve_points",
    "curve_spans",
    "density_bars",
    "density_tensors",
    "directions",
    "feature_index",
    "feature_name",
    "image_maps",
    "importances",
    "ranking",
    "restore_density",
    "shape_function",
    "value_limits",
]

RARE = 0.005  # share of the rows in a cell that does not count for a common scale
BATCH = 500  # features that are drawn together
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
        is_ranged = np.isfinite(encoder.ranges).all()
        spread = contributions(encoder, curve_coordinates(encoder, RESOLUTION), coef) if is_ranged else values
        return values - spread.mean(axis=0), None
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
        Values of it; beyond the training range the policy `linear` continues the curve, the others clamp. By default
        RESOLUTION steps or more over the range, knots among them.

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
        if model.range_policies[j] == "linear":
            add_extrapolation(values, grid[:, None], encoder.ranges, curve_slopes(encoder, coef, np.array([True])))
    knots, cells = None, cell_coordinates(encoder, 0)
    if encoder.is_local:
        knots = values_of(encoder, 0, np.arange(encoder.axes.n_bins[0] + 1))
    cells = None if cells is None or model.density is None else values_of(encoder, 0, cells)
    share = None if cells is None else model.density.weight[j, : len(cells) - 1].astype(np.float64)
    return Shape(
        j, feature_name(model, j), grid, values[:, 0], None if error is None else error[:, 0], knots,
        encoder.ranges[0], cells, share,
    )  # fmt: skip


def cell_curves(model, features=None):
    """Yield of every cell its share of the rows, mean coordinate and centred curves there.

    Parameters
    ----------
    model : AdditiveModel
        The model.
    features : int array, optional
        Some of its features; by default all.

    Yields
    ------
    share, place : float64 arrays, shape (n_features, 1)
        Of the rows, and their mean coordinate.
    values : float64 array, shape (n_features, n_outputs)
        Of the centred curves at that coordinate.

    Raises
    ------
    ConfigError
        The model is of a version that did not count the rows.
    """
    if model.density is None:
        raise ConfigError("importance: the model is of a version that kept no density of its data. Train it anew.")
    encoder, coef, density, _ = part_of(model, slice(None) if features is None else features)
    means = mean_curves(coef, density)
    for c in range(density.weight.shape[1]):
        place = density.place[:, c].astype(np.float64)
        values = contributions(encoder, place[None], coef)[0] - means
        yield density.weight[:, c, None].astype(np.float64), place[:, None], values


def value_limits(model, features):
    """Least and greatest value of each curve where the training rows lie, 0 among them, all but RARE of them a cell.

    For a scale that several curves share: one that runs far away where there are next to no rows must not flatten the
    others.

    Parameters
    ----------
    model : AdditiveModel
        The model.
    features : int array, shape (n,)
        Features to look at.

    Returns
    -------
    float64 array, shape (n, 2)
        Over all outputs.

    Raises
    ------
    ConfigError
        The model is of a version that did not count the rows.
    """
    limits = np.zeros((len(features), 2))
    for share, _, values in cell_curves(model, features):
        values = np.where(share > RARE, values, 0.0)
        limits[:, 0] = np.minimum(limits[:, 0], values.min(axis=1))
        limits[:, 1] = np.maximum(limits[:, 1], values.max(axis=1))
    return limits


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
    return sum(weight * np.abs(values) for weight, _, values in cell_curves(model))


def directions(model):
    """Whether greater values of a feature raise each score, over the training rows: the sign of a covariance.

    Parameters
    ----------
    model : AdditiveModel
        The model.

    Returns
    -------
    float64 array, shape (n_features, n_outputs)
        1 where the curve and the feature's coordinate go together, -1 where they go against each other, 0 for neither.

    Raises
    ------
    ConfigError
        The model is of a version that did not count the rows.
    """
    return np.sign(sum(weight * place * values for weight, place, values in cell_curves(model)))


def ranking(model):
    """Features in the order in which to show them, and what it is by.

    Parameters
    ----------
    model : AdditiveModel
        The model.

    Returns
    -------
    order : int64 array, shape (n_features,)
        The most important first; equal ones as they stand.
    size : float64 array, shape (n_features,)
        Importance, of several outputs the mean; without a density the span of the curve, of the widest output.
    kind : {"importance", "span"}

    Raises
    ------
    ConfigError
        As `curve_points`.
    """
    kind = "span" if model.density is None else "importance"
    size = curve_spans(model) if model.density is None else importances(model).mean(axis=1)
    return np.argsort(-size, kind="stable"), size, kind


def curve_spans(model):
    """How far each curve reaches from its lowest to its highest value over the training range.

    Parameters
    ----------
    model : AdditiveModel
        The model.

    Returns
    -------
    float64 array, shape (n_features,)
        Of the output where it is largest; NaN for a feature that is not clamped, whose curve has no end.
    """
    spans = np.full(model.n_features, np.nan)
    has_end = np.flatnonzero(np.isfinite(model.encoder.ranges).all(axis=1))
    for some in np.array_split(has_end, -(-len(has_end) // BATCH) or 1):
        spans[some] = np.ptp(curve_points(model, some)[2], axis=0).max(axis=1)
    return spans


def density_bars(cells, share, n_bars):
    """The density of a feature over equal parts of its range, and the values that many rows share.

    Parameters
    ----------
    cells, share : arrays
        As in Shape.
    n_bars : int
        Parts of the range.

    Returns
    -------
    bars : float64 array, shape (n_bars,)
        Share of the rows in each part, those of spikes excepted.
    spikes : list of (float, float)
        Value and share of every cell of width 0 that has rows.
    """
    is_spike = np.diff(cells) == 0
    spikes = [(float(x), float(part)) for x, part in zip(cells[:-1][is_spike], share[is_spike], strict=True) if part]
    below = np.concatenate([[0.0], np.cumsum(np.where(is_spike, 0.0, share))])
    return np.diff(np.interp(np.linspace(cells[0], cells[-1], n_bars + 1), cells, below)), spikes


def image_maps(model, features, grid):
    """Importances and directions folded back over the cells of an image.

    Parameters
    ----------
    model : AdditiveModel
        The model.
    features : int array
        Features that stand for the image: row after row, in each from left to right, the channels of a cell together.
    grid : (int, int, int)
        Height, width and channels.

    Returns
    -------
    size : float64 array, shape (height, width, channels, n_outputs)
        Importance.
    signed : float64 array of that shape
        Importance, negative where greater values lower the score.

    Raises
    ------
    ConfigError
        The grid has not as many cells as there are features; or as `importances`.
    """
    if np.prod(grid) != len(features):
        text = "x".join(map(str, grid))
        raise ConfigError(
            f"--grid {text}: has {np.prod(grid)} cells, and there are {len(features)} features. Choose those of the "
            "image by --features, in their order, or give its height, width and channels."
        )
    size = importances(model)
    signed = size * directions(model)
    return tuple(each[features].reshape(*grid, model.n_outputs) for each in (size, signed))
