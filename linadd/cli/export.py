"""`linadd export MODEL OUT --to KIND`: weights for other programs, compared with the model before they are there."""

from dataclasses import replace
from typing import Annotated

import typer

from linadd.choices import EXPORTS
from linadd.cli.arguments import ModelFile, RangePolicy, refuse_same_file, verb
from linadd.cli.terminal import Result
from linadd.errors import ConfigError

__all__ = ["export"]


@verb
def export(
    terminal,
    model: ModelFile,
    out: Annotated[str, typer.Argument(metavar="OUT", help="File to write; its suffix is that of the kind.")],
    to: Annotated[str, typer.Option("--to", metavar="|".join(EXPORTS), help="Kind of export.")],
    dtype: Annotated[
        str | None, typer.Option("--dtype", metavar="float64|float32", help="Of an ONNX graph; float64 by default.")
    ] = None,
    quantised: Annotated[
        str | None, typer.Option("--quantised", metavar="int16|int8", help="Integer tables and sums in C.")
    ] = None,
    rows: Annotated[
        str | None, typer.Option("--rows", metavar="FILE", help="Rows to encode for LIBLINEAR's predict.")
    ] = None,
    range_policy: RangePolicy = None,
):
    """Write a model for other programs.

    Kinds: npz and json (*.npz, *.json), onnx (*.onnx), c (*.c and its header), liblinear (*.model and encoded rows).
    The files are scored and compared with the model before they are kept. Kernel classifiers have npz, json and onnx.
    """
    from linadd.cli.scoring import open_for_model  # these load numba
    from linadd.export import exporter_of
    from linadd.models import load_model

    trained = load_model(model)
    refuse_same_file(out, model)
    options = {name: value for name, value in (("dtype", dtype), ("quantised", quantised)) if value is not None}
    if rows is not None:
        options["rows"] = open_for_model(rows, trained, model, target=out)
    if not hasattr(trained, "range_policy"):
        refuse_options(trained, [*options, *(["range"] if range_policy is not None else [])])
    elif range_policy is not None:
        trained = replace(trained, range_policy=range_policy)
    record = exporter_of(trained)(trained, out, to, **options)
    check = f"{record['n_check_rows']} check rows differ by at most {record['difference']:.1e} of the largest score"
    if record["label_flips"]:
        check += f", {record['label_flips']} of them change their class"
    return Result(record | {"model": model}, f"{out}: {to} export of {model}, {check}")


def refuse_options(model, names):
    """Raise ConfigError where an option of additive models is given for a kernel classifier."""
    if names:
        raise ConfigError(f"--{names[0]}: is for additive models. Leave it out for {model.key}.")
