"""A report of a model as one HTML file that needs no network: facts, certificate, curves, image maps, test figures.

The page (`page.html`, `page.css`, `page.js`) draws everything from one JSON object, and only what is on the screen:
curves are numbers in base64, so that ten thousand features stay a few megabytes. Names and labels are data of the user:
they reach the page as JSON without `<`, `>` and `&`, and its script writes them as text, never as HTML.
"""

import base64
import json
from importlib.resources import files

import numpy as np

from linadd.atomic import atomic_path
from linadd.bounds import bound
from linadd.encoders.curves import values_of
from linadd.encoders.density import cell_coordinates
from linadd.errors import ConfigError
from linadd.plots import COLORS
from linadd.shapes import (
    BATCH,
    curve_points,
    density_bars,
    feature_name,
    image_maps,
    ranking,
    shape_function,
    value_limits,
)

__all__ = ["report_data", "write_report"]

BARS = 32  # of a density strip
CURVE_BYTES = 12_000_000  # of all curves; features of less importance are left out above it, and the page says so
CERTIFICATE = ("objective", "dual_objective", "gap", "converged", "passes")
FULL = 65535  # of a fraction in 16 bits
ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def write_report(model, path, title="model", features=None, grid=None, test=None):
    """Write the report of a model.

    Parameters
    ----------
    model : AdditiveModel
        The model.
    path : path-like
        File to write, by convention `*.html`; an existing one is replaced in one step.
    title : str
        Heading; the command line gives the model's file.
    features : int array, optional
        Features to show; by default all.
    grid : (int, int, int), optional
        Height, width and channels of the image that these features are (`linadd.shapes.image_maps`).
    test : dict, optional
        What `linadd evaluate --json` finds on rows that the model was not trained on.

    Raises
    ------
    ConfigError
        The grid does not fit, or nobody knows where a curve ends (`linadd.shapes.curve_points`).
    DataError
        The file cannot be written.
    """
    data = json.dumps(report_data(model, title, features, grid, test), allow_nan=False, separators=(",", ":"))
    parts = {name: files(__package__).joinpath(f"page.{name}").read_text("utf-8") for name in ("html", "css", "js")}
    page = parts["html"]
    for mark, text in (("/*css*/", parts["css"]), ("/*js*/", parts["js"]), ("/*data*/", data.translate(ESCAPES))):
        before, after = page.split(mark)
        page = before + text + after
    with atomic_path(path) as temporary:
        temporary.write_text(page, "utf-8")


def report_data(model, title="model", features=None, grid=None, test=None):
    """The object that the page draws, of JSON values; parameters as for `write_report`.

    Parameters
    ----------
    model, title, features, grid, test
        As for `write_report`.

    Returns
    -------
    dict
        `title`, `facts` (list of [heading, list of [name, text]]), `classes` (labels of the outputs), `colors`,
        `history`, `certificate`, `curves` (see `curve_data`), `maps` (None without a grid), `test`.
    """
    pool = np.arange(model.n_features) if features is None else np.asarray(features)
    summary = model.summary
    certificate = {name: summary.get(name) for name in ("solver", *CERTIFICATE)} | {"tol": model.options.get("tol")}
    certificate["bound"] = None if certificate["gap"] is None else bound(certificate["gap"])
    return {
        "title": str(title),
        "facts": facts(model),
        "classes": [str(label) for label in model.classes.tolist()[-model.n_outputs :]],
        "colors": [*COLORS[:-1], "var(--soft)"],  # grey in either mode
        "certificate": certificate,
        "history": [history_point(record) for record in model.history],
        "curves": curve_data(model, pool),
        "maps": None if grid is None else map_data(model, pool, grid),
        "test": test,
    }


def history_point(record):
    """Pass, objective and gap of a record of the history; null where the solver has none."""
    return {name: record.get(name) for name in ("epoch", "objective", "gap", "certified_gap")}


def facts(model):
    """Data, model and options in words: a list of [heading, list of [name, text]]."""
    summary, fingerprint = model.summary, model.fingerprint
    data = [
        ["file", str(fingerprint.get("path", "arrays in memory"))],
        ["digest of the data", str(fingerprint.get("digest", "unknown"))],
        ["training rows", "unknown" if summary.get("n_rows") is None else f"{summary['n_rows']:,}"],
        ["features", f"{model.n_features:,}"],
        ["constant features", f"{np.count_nonzero(model.feature_scale == 0):,}"],
        ["density along the features", "unknown: a model of an older version" if model.density is None else "counted"],
    ]
    counts = summary.get("class_counts") or [None] * len(model.classes)
    classes = [
        [str(label), "rows unknown" if count is None else f"{count:,} rows ({count / summary['n_rows']:.1%})"]
        for label, count in zip(model.classes.tolist(), counts, strict=True)
    ]
    encoder = ", ".join(f"{name} {value}" for name, value in model.encoder.options.items())
    errors = "none: no search with folds" if model.deviation is None else "from the folds of a search"
    result = [
        ["digest of the model", model.digest],
        ["encoder", f"{model.encoder.name} ({encoder})"],
        ["coefficients", f"{model.coef.size:,} ({model.encoder.n_basis} a feature and output)"],
        ["errors of the curves", errors],
    ]
    options = [[name, str(value)] for name, value in model.options.items()]
    return [["Training data", data], ["Classes", classes], ["Model", result], ["Options", options]]


def packed(array, dtype):
    """Base64 of an array in a little-endian dtype."""
    return base64.b64encode(np.ascontiguousarray(array, np.dtype(dtype).newbyteorder("<")).tobytes()).decode("ascii")


def scaled(values, dtype):
    """(integers, scale) of values (n, ...): each of the n rows in full range, scale * integer its value to 16 bits."""
    most = np.iinfo(dtype).max
    scale = np.abs(values).max(axis=-1) / most
    return np.rint(values / np.where(scale > 0, scale, 1)[..., None]).astype(dtype), scale


def curve_data(model, pool):
    """All that the page draws of the curves.

    Parameters
    ----------
    model : AdditiveModel
        The model.
    pool : int array
        Features to show.

    Returns
    -------
    dict
        `names`, `index` (from 1), `size` (what `kind` says) of the `n_shown` most important of `n_features` features;
        `n_points` a curve; and in base64, feature after feature: `ends` float64 (2), `x` uint16 (n_points) fractions of
        the range, `y` int16 (n_outputs, n_points) in units of `y_scale` float32 (n_outputs), `error` and `error_scale`
        likewise in uint16 (None without), `bars` uint8 (BARS) of the density and `limits` float32 (2) of the curve
        where the rows lie (None without); `knots` lists of fractions by feature; `spikes` lists of [fraction, share of
        the highest bar, value of each output]; `clamped` whether there are ranges;
        `linear` by feature 1 where the range policy continues its curve beyond.

    Raises
    ------
    ConfigError
        There is no feature whose curve can be drawn.
    """
    order, size, kind = ranking(model)
    order = order[np.isin(order, pool) & np.isfinite(size[order])]
    if not len(order):
        raise ConfigError("a report needs curves with a training range; this model does not clamp its features.")
    steps = least_steps(model.encoder)
    n_points = len(curve_points(model, order[:1], steps)[1])
    each = 2 * model.n_outputs * n_points * (1 if model.deviation is None else 2)
    shown = order[: max(1, CURVE_BYTES // each)]
    parts = [batch_data(model, some, steps) for some in np.array_split(shown, -(-len(shown) // BATCH))]
    columns = {name: [part[name] for part in parts] for name in parts[0]}
    flat = {name: [item for part in columns[name] for item in part] for name in ("knots", "spikes")}
    kinds = {"ends": "f8", "x": "u2", "y": "i2", "y_scale": "f4", "error": "u2", "error_scale": "f4", "bars": "u1",
             "limits": "f4"}  # fmt: skip
    arrays = {
        name: None if columns[name][0] is None else packed(np.concatenate(columns[name]), kind)
        for name, kind in kinds.items()
    }
    return {
        "names": [feature_name(model, int(j)) for j in shown],
        "index": (shown + 1).tolist(),
        "size": [float(f"{value:.4g}") for value in size[shown]],
        "kind": kind,
        "n_features": len(pool),
        "n_shown": len(shown),
        "n_points": columns["x"][0].shape[1],
        "n_bars": BARS,
        "clamped": bool(np.isfinite(model.ranges).all()),
        "linear": (model.range_policies[shown] == "linear").astype(int).tolist(),
        **flat,
        **arrays,
    }


def least_steps(encoder):
    """Steps that a curve needs: its knots up to degree 1, else enough to look smooth."""
    if not encoder.is_local:
        return 48
    return 1 if encoder.n_local <= 2 else 6 * encoder.n_bins


def batch_data(model, some, steps):
    """The arrays of `curve_data` for some features, not packed yet."""
    encoder, u, values, error = curve_points(model, some, steps)
    x = np.stack([values_of(encoder, k, u[:, k]) for k in range(len(some))])
    low, high = x[:, :1], x[:, -1:]
    width = np.where(high > low, high - low, 1.0)

    def fraction(k, at):
        return np.clip((np.asarray(at) - low[k, 0]) / width[k, 0], 0, 1)

    y, y_scale = scaled(np.moveaxis(values, 0, 2), np.int16)
    part = {
        "ends": np.concatenate([low, high], axis=1),
        "x": np.rint((x - low) / width * FULL).astype(np.uint16),
        "y": y, "y_scale": y_scale, "error": None, "error_scale": None, "bars": None, "limits": None,
        "knots": [[] for _ in some], "spikes": [[] for _ in some],
    }  # fmt: skip
    if error is not None:
        part["error"], part["error_scale"] = scaled(np.moveaxis(error, 0, 2), np.uint16)
    if encoder.is_local:
        own = [values_of(encoder, k, np.arange(encoder.axes.n_bins[k] + 1)) for k in range(len(some))]
        part["knots"] = [np.round(np.unique(fraction(k, knots)), 4).tolist() for k, knots in enumerate(own)]
    if model.density is not None:
        part["limits"] = value_limits(model, some)
    if model.density is not None and np.isfinite(encoder.ranges).all():
        part["bars"] = np.zeros((len(some), BARS), np.uint8)
        for k, j in enumerate(some):
            cells = values_of(encoder, k, cell_coordinates(encoder, k))
            bars, spikes = density_bars(cells, model.density.weight[j, : len(cells) - 1].astype(np.float64), BARS)
            highest = max([bars.max(), *(share for _, share in spikes)]) or 1.0
            part["bars"][k] = np.ceil(bars / highest * 255)  # no bar with rows vanishes
            middles = spike_values(model, j, [at for at, _ in spikes])
            part["spikes"][k] = [
                [round(float(fraction(k, at)), 4), round(share / highest, 3), *middle]
                for (at, share), middle in zip(spikes, middles, strict=True)
            ]
    return part


def spike_values(model, j, at):
    """The curve of feature j at some values, five digits of each output."""
    if not at:
        return []
    return [[float(f"{value:.5g}") for value in row] for row in shape_function(model, j, at).values.tolist()]


def map_data(model, pool, grid):
    """Importances over the cells of an image, of all classes, and with their sign for each: lists row after row."""
    size, signed = image_maps(model, pool, grid)
    return {
        "height": grid[0],
        "width": grid[1],
        "size": np.round(size.sum(axis=2).mean(axis=2), 6).ravel().tolist(),
        "signed": [np.round(signed[..., o].sum(axis=2), 6).ravel().tolist() for o in range(model.n_outputs)],
    }
