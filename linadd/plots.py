"""Pictures of a model's curves; the only file that imports matplotlib."""

import numpy as np

from linadd.atomic import atomic_path
from linadd.errors import ConfigError

__all__ = ["curve_spans", "plot_curves"]

GRID = 101  # points of a curve: ten a bin at the default of ten bins
COLUMNS = 4


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
    for j in np.flatnonzero(np.isfinite(model.encoder.ranges).all(axis=1)):
        spans[j] = np.ptp(model.component(j, feature_grid(model, j)), axis=0).max()
    return spans


def feature_grid(model, feature):
    """GRID values over the training range of a feature."""
    return np.linspace(*model.encoder.ranges[feature], GRID)


def plot_curves(model, path, n_curves=12):
    """Draw the curves that reach furthest, one picture a feature, one line an output.

    Parameters
    ----------
    model : AdditiveModel
        The model.
    path : path-like
        Picture to write; matplotlib knows the format by its suffix.
    n_curves : int
        Features to draw, at most.

    Raises
    ------
    ConfigError
        matplotlib is not installed; or no feature has a training range.
    DataError
        The picture cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("plots need matplotlib. Install it by pip install 'linadd[plot]'.") from None
    spans = curve_spans(model)
    chosen = [int(j) for j in np.argsort(-spans, kind="stable")[:n_curves] if np.isfinite(spans[j])]
    if not chosen:
        raise ConfigError("plots need curves with a training range; this model does not clamp its features.")
    n_rows = -(-len(chosen) // COLUMNS)
    figure = Figure(figsize=(3 * COLUMNS, 2.4 * n_rows), layout="constrained")
    pictures = figure.subplots(n_rows, COLUMNS, sharey=True, squeeze=False).ravel()
    labels = [str(label) for label in model.classes.tolist()][-model.n_outputs :]
    for picture, j in zip(pictures, chosen, strict=False):
        grid = feature_grid(model, j)
        curves = model.component(j, grid)
        for o, label in enumerate(labels):
            picture.plot(grid, curves[:, o] - curves[:, o].mean(), color=f"C{o % 10}", linewidth=1.2, label=label)
        picture.set_title(model.feature_names[j] if model.feature_names else f"feature {j + 1}", fontsize=9)
        picture.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    for picture in pictures[len(chosen) :]:
        picture.set_axis_off()
    figure.legend(*pictures[0].get_legend_handles_labels(), title="class", loc="outside right upper", fontsize=8)
    figure.supylabel("part of the score", fontsize=9)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=110)
