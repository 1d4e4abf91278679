"""Arguments that several verbs share, the parsers of their values, and `verb`, which adds --json and --quiet."""

import functools
import inspect
import os
import re
from typing import Annotated

import typer

from linadd.choices import RANGE_POLICIES
from linadd.cli.terminal import Terminal
from linadd.errors import ConfigError

__all__ = [
    "Cache",
    "DataFile",
    "Drop",
    "Features",
    "IndexBase",
    "Labels",
    "MemoryLimit",
    "ModelFile",
    "RangePolicy",
    "Table",
    "Weights",
    "Where",
    "open_rows",
    "parse_integer",
    "parse_number",
    "parse_size",
    "parse_where",
    "refuse_same_file",
    "verb",
]

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
UNITS |= {f"{letter}i": 1024**power for power, letter in enumerate("kmgt", 1)}
SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)


def parse_size(value):
    """Bytes of a size such as 200MB, 1.5GiB or 4096; a number stays as it is."""
    if not isinstance(value, str):
        return value
    match = SIZE.fullmatch(value)
    if not match:
        raise typer.BadParameter(f"{value!r} is not a size. Write it as 200MB, 1.5GiB or a number of bytes.")
    number, unit = match.groups()
    return int(float(number) * UNITS[(unit or "").lower()])


def parse_integer(value):
    """An int from its text; by its text also what a config file holds, where 5.5 and true are no integers."""
    try:
        return int(str(value))
    except ValueError:
        raise typer.BadParameter(f"{value!r} is not an integer.") from None


def parse_number(value):
    """A float from its text; by its text also what a config file holds, where true is no number."""
    try:
        return float(str(value))
    except ValueError:
        raise typer.BadParameter(f"{value!r} is not a number.") from None


def parse_where(conditions):
    """The dict of `open_source(where=)` from conditions NAME=V1,V2; None without any."""
    where = {}
    for condition in conditions or []:
        name, mark, values = condition.partition("=")
        if not (name and mark and values):
            raise ConfigError(f"--where {condition}: is not NAME=V1,V2.")
        where.setdefault(name, []).extend(values.split(","))
    return where or None


def parse_index_base(value):
    """First feature index of libsvm text: 0, 1 or "auto"."""
    if value not in ("auto", "0", "1", 0, 1):
        raise typer.BadParameter(f"{value!r} is not one of auto, 0, 1.")
    return value if value == "auto" else int(value)


DataFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Rows: HDF5, Zarr (FILE::group too), .mat, .npy, .npz, CSV, Parquet or libsvm text; several: 'part-*.h5', "
        "in quotes.",
    ),
]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model that `linadd train` wrote.")]
Table = Annotated[str, typer.Option("--x", metavar="NAME", help="Dataset or array of the features.")]
Labels = Annotated[str, typer.Option("--y", metavar="NAME", help="Dataset or array of the labels; a file beside .npy.")]
Weights = Annotated[
    str | None,
    typer.Option("--weights", metavar="NAME", help="Dataset or array of sample weights; `weight` if there is one."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where", metavar="NAME=V1,V2", help="Only the rows whose array NAME has one of the values; repeatable."
    ),
]
Cache = Annotated[
    bool,
    typer.Option("--cache/--no-cache", help="Keep the census of a large file for the next run, and use the kept one."),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        "--features", metavar="NAME,...",
        help="Only these columns: names or patterns (pixel*), or without names numbers from 1 or ranges (3-10); "
        "repeatable.",
    ),
]  # fmt: skip
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="NAME,...", help="All columns but these, given as for --features; repeatable."),
]
IndexBase = Annotated[
    str, typer.Option("--index-base", parser=parse_index_base, metavar="auto|0|1", help="First index of libsvm text.")
]
MemoryLimit = Annotated[
    int,
    typer.Option("--memory-limit", parser=parse_size, metavar="SIZE", help="Memory that linadd may allocate."),
]
RangePolicy = Annotated[
    str | None,
    typer.Option(
        "--range", metavar="|".join(RANGE_POLICIES) + "[,FEATURE=POLICY]",
        help="Values outside the training range: score as its nearer end; refuse; score and name the features; or "
        "continue the curve as a line. Single features: linear,age=clamp,3=error. By default that of the model, clamp.",
    ),
]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for errors too.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No log and no progress on stderr.")]


def verb(function):
    """A typer command from `function(terminal, **arguments) -> Result`; returns the exit status.

    Parameters
    ----------
    function : callable
        Its signature and docstring become the help.
    """

    @functools.wraps(function)
    def command(json, quiet, **arguments):
        return Terminal(json, quiet).run(function, arguments)

    parameters = list(inspect.signature(function).parameters.values())[1:]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        for name, annotation in (("json", Json), ("quiet", Quiet))
    ]
    command.__signature__ = inspect.Signature([*parameters, *shared])
    command.__annotations__ = {each.name: each.annotation for each in command.__signature__.parameters.values()}
    return command


def open_rows(path, *, where=None, target=None, **options):
    """`open_source` with the conditions of --where; loads NumPy and the readers only now.

    Parameters
    ----------
    path : str
        The file, with `::group` where it has groups, or a pattern of files.
    where : list of str, optional
        Conditions NAME=V1,V2.
    target : str, optional
        A file that is going to be written: checked, before anything is read, not to be the one that is read.
    **options
        Of `open_source`.

    Returns
    -------
    Source

    Raises
    ------
    ConfigError
        A condition of another form; a target that is the file itself.
    """
    from linadd.sources import open_source  # numpy, which the parser must not load
    from linadd.sources.paths import find_files

    conditions = parse_where(where)
    for file, _ in find_files(path) if target is not None else ():
        refuse_same_file(target, file)
    return open_source(path, where=conditions, **options)


def refuse_same_file(target, path):
    """Refuse to overwrite what is read.

    Parameters
    ----------
    target : str
        File to be written.
    path : str
        File to be read.

    Raises
    ------
    ConfigError
        They are the same file.
    """
    if os.path.exists(target) and os.path.samefile(target, path):
        raise ConfigError(f"{target}: would be overwritten while it is read. Give another name.")
