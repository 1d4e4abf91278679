"""`linadd export MODEL OUT --to KIND`: weights for other programs, compared with the model before they are there."""

from typing import Annotated

import typer

from linadd.cli.arguments import ModelFile, refuse_same_file, verb
from linadd.cli.terminal import Result

__all__ = ["export"]


@verb
def export(
    terminal,
    model: ModelFile,
    out: Annotated[str, typer.Argument(metavar="OUT", help="File to write; its suffix is that of the kind.")],
    to: Annotated[str, typer.Option("--to", metavar="npz|json|onnx", help="Kind of export.")],
):
    """Write a model as plain arrays, JSON or ONNX.

    ONNX is for kernel classifiers. The file is scored and compared with the model before it is kept.
    """
    from linadd.export import exporter_of  # these load numba
    from linadd.models import load_model

    trained = load_model(model)
    refuse_same_file(out, model)
    record = exporter_of(trained)(trained, out, to)
    check = f"{record['n_check_rows']} check rows differ by at most {record['difference']:.1e} of the largest score"
    text = f"{out}: {to} export of {model}, {check}"
    return Result(record | {"model": model}, text)
