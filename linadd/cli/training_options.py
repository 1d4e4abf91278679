"""The options of `linadd train`, made from the declaration in `options.py`: names, defaults and help texts."""

import difflib
import inspect
import tomllib
from dataclasses import fields
from typing import Annotated, Any

import typer

from linadd.choices import AUTO_SOLVERS, ENCODERS, SOLVERS
from linadd.cli.arguments import parse_integer, parse_number, parse_size
from linadd.errors import ConfigError
from linadd.options import Options

__all__ = ["ConfigFile", "check_taken", "given_names", "option_flag", "training_parameters"]

FLAGS = {"C": "-C", "n_jobs": "--threads", "range_policy": "--range"}
# A file's rows are counted by the census: nothing is expected of them.
PYTHON_ONLY = {"n_expected"}


def parse_class_weight(value):
    """None, "balanced" or a dict from balanced or LABEL=W,LABEL=W; labels that look like numbers become numbers."""
    if not isinstance(value, str) or value == "balanced":
        return value
    weights = {}
    for part in value.split(","):
        label, mark, factor = part.rpartition("=")
        try:
            weight = float(factor)
        except ValueError:
            mark = ""
        if not (label and mark):
            raise typer.BadParameter(f"{part!r} is not LABEL=WEIGHT. Write it as 0=1,1=2.5, or balanced.")
        if parse_label(label) in weights:
            raise typer.BadParameter(f"{part!r} is a second weight of the class {label}. Give each class one.")
        weights[parse_label(label)] = weight
    return weights


def parse_label(text):
    """A label as a number if it looks like one: integral ones as int, as the census has them."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def parse_partial_solutions(value):
    """An int, or "auto"."""
    if not isinstance(value, str) or value == "auto":
        return value
    if not value.isdecimal():
        raise typer.BadParameter(f"{value!r} is not auto or a number.")
    return int(value)


def parse_validation(value):
    """A fraction where it is a number, else the path."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


# Options whose text is more than a number or a name: metavar and parser.
PARSERS = {
    "class_weight": ("balanced|LABEL=W,...", parse_class_weight),
    "memory_limit": ("SIZE", parse_size),
    "partial_solutions": ("auto|N", parse_partial_solutions),
    "validation": ("FILE|FRACTION", parse_validation),
}
KINDS = {int: ("N", parse_integer), float: ("NUMBER", parse_number)}


def option_flag(name):
    """How the command line spells an option."""
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def training_parameters():
    """The options as parameters of a typer command, in the order of their declaration."""
    return [parameter_of(entry) for entry in fields(Options) if entry.name not in PYTHON_ONLY]


def parameter_of(entry):
    """A typer parameter from a field of Options."""
    rule, flag, kind, default, extra = entry.metadata, option_flag(entry.name), entry.type, entry.default, {}
    if kind is bool:
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    elif kind is not str:
        extra["metavar"], extra["parser"] = PARSERS.get(entry.name) or KINDS[kind]
        kind = Any
    if rule["choices"]:
        extra["metavar"] = "|".join(str(choice) for choice in rule["choices"] if choice is not None)
    if entry.name == "memory_limit":
        default = f"{default // 10**9}GB"
    text = f"{rule['help'][0].upper()}{rule['help'][1:]}."
    annotation = Annotated[kind, typer.Option(flag, help=text, **extra)]
    return inspect.Parameter(entry.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def read_config(context: typer.Context, path: str | None):
    """Take the values of a TOML file as defaults of this command, which the command line overrides."""
    if path is not None:
        try:
            with open(path, "rb") as file:
                values = tomllib.load(file)
        except OSError as error:
            raise typer.BadParameter(f"{path}: cannot be read ({error.strerror}).") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"{path}: is not TOML: {error}.") from error
        context.default_map = check_config(path, values, context.command.params)
    return path


def check_config(path, values, parameters):
    """Values of a config file by parameter; a usage error for a name that is no option of the command."""
    names = {}
    for parameter in parameters:
        if parameter.param_type_name == "option" and parameter.name not in ("config", "json", "quiet", "help"):
            spellings = [parameter.name, *(flag.lstrip("-") for flag in parameter.opts)]
            names |= {spelling.replace("-", "_"): parameter.name for spelling in spellings}
    known = {}
    for name, value in values.items():
        target = names.get(name.replace("-", "_"))
        if target is None:
            near = difflib.get_close_matches(name.replace("-", "_"), names, n=1) or sorted(names)
            raise typer.BadParameter(f"{path}: {name!r} is no option of train. There is {', '.join(near)}.")
        if target in ("features", "drop") and isinstance(value, str):
            value = [value]
        if target == "where" and isinstance(value, dict):
            value = [f"{key}={','.join(map(str, kept))}" for key, kept in value.items()]
        if target == "settings" and isinstance(value, dict):
            value = [f"{key}={setting}" for key, setting in value.items()]
        known[target] = value
    return known


ConfigFile = Annotated[
    str | None,
    typer.Option(
        "--config", metavar="FILE.toml", is_eager=True, callback=read_config,
        help="Options by the same names; the command line wins.",
    ),
]  # fmt: skip


def given_names(context):
    """Names of the parameters that the command line or the config file gave."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name in ("COMMANDLINE", "DEFAULT_MAP")}


def check_taken(given, options):
    """Refuse options that would have no effect.

    Parameters
    ----------
    given : set of str
        Names of the options that were given.
    options : Options
        With the chosen encoder and solver.

    Raises
    ------
    ConfigError
        One of them is not an option of the encoder or the solver; lists those that are.
    """
    auto = dict.fromkeys(name for solver in AUTO_SOLVERS for name in SOLVERS[solver])
    solvers = {"auto": tuple(auto), **SOLVERS}
    for kind, table, chosen in (("encoder", ENCODERS, options.encoder), ("solver", solvers, options.solver)):
        special = {name for names in table.values() for name in names}
        for name in sorted(given & special - set(table[chosen])):
            taken = ", ".join(map(option_flag, table[chosen]))
            raise ConfigError(f"{option_flag(name)}: the {kind} {chosen} has no such option. It takes {taken}.")
