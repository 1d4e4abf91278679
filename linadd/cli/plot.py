"""`linadd plot MODEL -o OUT`: a picture of an additive model's curves or image maps, or a report for a browser."""

import os
from dataclasses import replace
from typing import Annotated

import typer

from linadd.cli.arguments import (
    Drop,
    Features,
    IndexBase,
    Labels,
    MemoryLimit,
    ModelFile,
    RangePolicy,
    Table,
    Weights,
    Where,
    refuse_same_file,
    verb,
)
from linadd.cli.terminal import Result, format_bytes
from linadd.errors import ConfigError

__all__ = ["plot"]


def parse_grid(value):
    """(height, width, channels) of HxW or HxWxC; a tuple stays as it is."""
    if not isinstance(value, str):
        return value
    parts = value.lower().split("x")
    if len(parts) not in (2, 3) or not all(part.isdecimal() and int(part) for part in parts):
        raise typer.BadParameter(f"{value!r} is not HxW or HxWxC, as 8x8 or 12x6x8.")
    return tuple(map(int, [*parts, "1"][:3]))


@verb
def plot(
    terminal,
    model: ModelFile,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="OUT", help="Picture (.png, .svg, .pdf) or report (.html).")
    ],
    n_curves: Annotated[int, typer.Option("--n-curves", min=1, help="Features in a picture, at most.")] = 12,
    features: Features = None,
    drop: Drop = None,
    grid: Annotated[
        str | None,
        typer.Option("--grid", parser=parse_grid, metavar="HxW[xC]", help="Fold importances back over an image."),
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="FILE", help="Labelled rows to measure the model on, for a report.")
    ] = None,
    x: Table = "X",
    y: Labels = "y",
    weights: Weights = None,
    where: Where = None,
    index_base: IndexBase = "auto",
    memory_limit: MemoryLimit = "1GB",
    range_policy: RangePolicy = None,
):
    """Draw the curves of a model, or write a report.

    Curves stand with the density of the training data, the most important features first. With --grid the features are
    the cells of an image, row by row, channels together: its importances are drawn. A report (.html) has all curves to
    search and page through, the options, the certificate, and with --data the figures of `linadd evaluate`; it is one
    file that needs no network.
    """
    is_report = os.path.splitext(out)[1].lower() in (".html", ".htm")
    if data is not None and not is_report:
        raise ConfigError(f"--data: only a report (.html) shows test figures, and {out} is a picture. Leave it out.")
    from linadd.cli.scoring import chosen_features  # these load numba
    from linadd.models import load_model

    refuse_same_file(out, model)
    trained = load_model(model)
    if trained.key != "additive":
        raise ConfigError(f"{model}: is a kernel classifier ({trained.key}), which has no curves to plot.")
    if range_policy is not None:
        trained = replace(trained, range_policy=range_policy)
    chosen = chosen_features(trained, model, features, drop)
    record = {"model": model, "path": out, "n_features": len(chosen), "features": None, "test": None}
    if is_report:
        from linadd.report import write_report

        if data is not None:
            columns = {"where": where, "x": x, "y_name": y, "weights": weights, "index_base": index_base}
            record["test"] = figures_on(terminal, trained, model, data, columns, memory_limit)
        write_report(trained, out, model, chosen, grid, record["test"])
        text = f"{out}: report of {len(chosen)} features, {format_bytes(os.path.getsize(out))}"
        return Result(record | {"kind": "report", "bytes": os.path.getsize(out)}, text)
    record["kind"], record["features"], text = draw(trained, out, n_curves, chosen, grid)
    return Result(record | {"bytes": os.path.getsize(out)}, f"{out}: {text}")


def figures_on(terminal, trained, model, data, columns, memory_limit):
    """What `linadd evaluate` finds on a file, a dict."""
    from linadd.cli.evaluate import measure
    from linadd.cli.scoring import open_for_model

    return measure(terminal, trained, open_for_model(data, trained, model, **columns), memory_limit)[0]


def draw(model, out, n_curves, chosen, grid):
    """Write a picture of curves, or of an image with a grid: (kind, names of the features drawn, what was drawn)."""
    from linadd.plots import plot_curves, plot_maps
    from linadd.shapes import feature_name

    if grid is not None:
        plot_maps(model, out, grid, chosen)
        names = [feature_name(model, int(j)) for j in chosen]
        return "maps", names, f"importances of {len(chosen)} features over {grid[0]} x {grid[1]} cells"
    drawn = plot_curves(model, out, n_curves, chosen)
    return "curves", [feature_name(model, j) for j in drawn], f"curves of {len(drawn)} of {len(chosen)} features"
