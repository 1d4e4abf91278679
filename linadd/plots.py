"""Pictures of a model: its curves as small multiples, and importances folded back over images."""

import numpy as np

from linadd.errors import ConfigError
from linadd.figures import new_figure, save_figure
from linadd.shapes import density_bars, image_maps, importances, ranking, shape_function, value_limits

__all__ = ["COLORS", "plot_curves", "plot_maps"]

# Okabe and Ito's, told apart by all common kinds of colour vision; yellow, too light on white, is left out.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
DASHES = ("solid", "dashed", "dotted", "dashdot")  # one for each round of the colours
COLUMNS = 4
MOST_CLASSES = 10  # more lines in one panel nobody can follow
BARS = 40
MARGIN = 0.06  # of the range, on either side, where values are clamped
NAME_LETTERS = 30


def plot_curves(model, path, n_curves=12, features=None):
    """Draw the most important curves, one panel a feature, one colour a class.

    Under each curve stands the density of the training data; ticks between them are the knots, a dot is a value that
    many rows share, a band one standard error (after a search). In the shaded ends beyond the training range a dotted
    line tells what values count as: the nearer end, or what the range policy `linear` makes of them.

    Parameters
    ----------
    model : AdditiveModel
        The model.
    path : path-like
        Picture to write: *.png, *.svg or *.pdf.
    n_curves : int
        Features to draw, at most.
    features : int array, optional
        Features to choose among; by default all.

    Returns
    -------
    list of int
        The features drawn, the most important first.

    Raises
    ------
    ConfigError
        Another suffix, no matplotlib; or nobody knows where a curve ends (`linadd.shapes.curve_points`).
    DataError
        The picture cannot be written.
    """
    order, size, kind = ranking(model)
    pool = np.arange(model.n_features) if features is None else np.asarray(features)
    order = order[np.isin(order, pool)]
    chosen = [int(j) for j in order[:n_curves] if np.isfinite(size[j])]
    if not chosen:
        raise ConfigError("plots need curves with a training range; this model does not clamp its features.")
    columns = min(COLUMNS, len(chosen))
    n_rows = -(-len(chosen) // columns)
    figure = new_figure(path, figsize=(3 * columns + 1.5, 2.5 * n_rows + 0.6))
    outputs = drawn_outputs(model)
    panels = figure.add_gridspec(n_rows, columns)
    first = None
    for place, j in enumerate(chosen):
        pair = panels[place // columns, place % columns].subgridspec(2, 1, height_ratios=(5, 1), hspace=0)
        first = figure.add_subplot(pair[0], sharey=first)
        shape = shape_function(model, j)
        draw_curve(first, model, shape, outputs)
        spikes = draw_density(figure.add_subplot(pair[1], sharex=first), shape)
        draw_spikes(first, shape_function(model, j, spikes), outputs)
        first.set_title(shortened(shape.name), fontsize=8, loc="left", parse_math=False)
        first.set_title(f"{size[j]:.3g}", fontsize=7, loc="right", color="0.4")
        if place % columns:
            first.tick_params(labelleft=False)
    if model.density is not None:
        limits = value_limits(model, np.array(chosen))
        low, high = limits[:, 0].min(), limits[:, 1].max()
        margin = 0.15 * (high - low) or 1.0
        first.set_ylim(low - margin, high + margin)
    legend(figure, first, model, outputs)
    figure.supylabel("part of the score", fontsize=9)
    figure.suptitle(f"{len(chosen)} of {len(pool)} features, by {kind} (the number at the right)", fontsize=10)
    save_figure(figure, path)
    return chosen


def drawn_outputs(model):
    """Outputs to draw: all, or of many those of greatest importance, in their order."""
    if model.n_outputs <= MOST_CLASSES or model.density is None:
        return list(range(min(model.n_outputs, MOST_CLASSES)))
    return sorted(np.argsort(-importances(model).sum(axis=0), kind="stable")[:MOST_CLASSES].tolist())


def style(place):
    """Colour and dashes of the class drawn in that place."""
    return {"color": COLORS[place % len(COLORS)], "linestyle": DASHES[place // len(COLORS) % len(DASHES)]}


def draw_curve(axes, model, shape, outputs):
    """The curves of one feature, its knots, and what becomes of values beyond its range."""
    low, high = shape.grid[0], shape.grid[-1]
    margin = MARGIN * ((high - low) or 1.0)
    is_clamped = np.isfinite(shape.range).all()
    axes.axhline(0, color="0.85", linewidth=0.8, zorder=0)
    if is_clamped:
        beyond = shape_function(model, shape.feature, [low - margin, low, high, high + margin])
    for place, o in enumerate(outputs):
        curve, own = shape.values[:, o], style(place)
        axes.plot(shape.grid, curve, linewidth=1.4, label=str(class_of(model, o)), **own)
        if shape.error is not None:
            band = shape.error[:, o]
            axes.fill_between(shape.grid, curve - band, curve + band, color=own["color"], alpha=0.2, lw=0)
        for end in (slice(0, 2), slice(2, 4)) if is_clamped else ():
            axes.plot(beyond.grid[end], beyond.values[end, o], linewidth=1, color=own["color"], linestyle=(0, (1, 1)))
    if is_clamped:
        for x in ((low - margin, low), (high, high + margin)):
            axes.axvspan(*x, color="0.93", linewidth=0, zorder=0)
    if shape.knots is not None:
        axes.plot(shape.knots, np.zeros(len(shape.knots)), "|", color="0.4", markersize=5, clip_on=False,
                  transform=axes.get_xaxis_transform())  # fmt: skip
    axes.set_xlim(low - margin, high + margin)
    axes.tick_params(labelsize=7, labelbottom=False, bottom=False)


def draw_spikes(axes, shape, outputs):
    """A dot on each curve for the values that many rows share: there it jumps, and next to it may be no rows."""
    for place, o in enumerate(outputs):
        axes.plot(shape.grid, shape.values[:, o], "o", markersize=3.5, color=style(place)["color"])


def draw_density(axes, shape):
    """The data under a curve: a bar a part of the range, a dark line for each value of many rows; returns those."""
    axes.set_yticks([])
    axes.tick_params(labelsize=7)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.get_offset_text().set_fontsize(7)
    if shape.share is None:
        axes.text(0.5, 0.5, "density unknown", fontsize=6, color="0.4", ha="center", va="center",
                  transform=axes.transAxes)  # fmt: skip
        return []
    bars, spikes = density_bars(shape.cells, shape.share, BARS)
    highest = max([bars.max(), *(part for _, part in spikes)]) or 1.0
    width = (shape.cells[-1] - shape.cells[0]) / BARS
    axes.bar(shape.cells[0] + width * (np.arange(BARS) + 0.5), bars / highest, width, color="0.65", linewidth=0)
    for x, part in spikes:
        axes.plot([x, x], [0, part / highest], color="0.2", linewidth=2, solid_capstyle="butt")
    axes.set_ylim(0, 1.1)
    return [x for x, _ in spikes]


def class_of(model, output):
    """Label of the class that an output speaks for."""
    return model.classes.tolist()[-model.n_outputs :][output]


def shortened(text):
    """A name that fits a panel; shown as it is, where a $ is no mathematics."""
    return text if len(text) <= NAME_LETTERS else text[: NAME_LETTERS - 1] + "…"


def legend(figure, axes, model, outputs):
    """What the colours are, at the right."""
    handles, labels = axes.get_legend_handles_labels()
    what = "class" if len(outputs) == model.n_outputs else f"class\n({len(outputs)} of {model.n_outputs})"
    box = figure.legend(handles, labels, title=what, loc="outside right upper", fontsize=8, title_fontsize=8)
    for text in box.get_texts():
        text.set_parse_math(False)
        text.set_text(shortened(text.get_text()))


def plot_maps(model, path, grid, features=None):
    """Draw importances folded back over the cells of an image: of all classes, and with their sign of each class.

    Parameters
    ----------
    model : AdditiveModel
        The model.
    path : path-like
        As in `plot_curves`.
    grid : (int, int, int)
        Height, width and channels.
    features : int array, optional
        Features that stand for the image, in the order of `linadd.shapes.image_maps`; by default all.

    Raises
    ------
    ConfigError
        Another suffix, no matplotlib, the grid does not fit, or the model has no density.
    DataError
        The picture cannot be written.
    """
    size, signed = image_maps(model, np.arange(model.n_features) if features is None else features, grid)
    maps = [("all classes" if model.n_outputs > 1 else "importance", size.sum(axis=2).mean(axis=2), False)]
    maps += [(f"class {class_of(model, o)}", signed[..., o].sum(axis=2), True) for o in range(model.n_outputs)]
    if model.n_outputs == 1 and grid[2] > 1:
        maps += [(f"channel {c}", signed[:, :, c, 0], True) for c in range(grid[2])]
    columns = min(6, len(maps))
    n_rows = -(-len(maps) // columns)
    height = min(max(1.6 * grid[0] / grid[1], 0.8), 4.0)
    figure = new_figure(path, figsize=(1.6 * columns + 0.6, (height + 0.3) * n_rows + 0.2))
    panels = figure.subplots(n_rows, columns, squeeze=False).ravel()
    limit = max(np.abs(values).max() for _, values, is_signed in maps if is_signed) or 1.0
    for axes, (name, values, is_signed) in zip(panels, maps, strict=False):
        colors = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit} if is_signed else {"cmap": "cividis", "vmin": 0}
        image = axes.imshow(values, interpolation="nearest", **colors)
        axes.set_title(shortened(name), fontsize=8, parse_math=False)
        axes.set_xticks([])
        axes.set_yticks([])
    for axes in panels[len(maps) :]:
        axes.set_axis_off()
    bar = figure.colorbar(image, ax=panels.tolist(), shrink=0.7, label="greater values speak against / for")
    bar.ax.tick_params(labelsize=7)
    save_figure(figure, path)
