"""`linadd search FILE MODEL`: C, and options of the embedding, chosen by cross-validation on shared reads."""

import contextlib
import inspect
from dataclasses import fields
from typing import Annotated, Any

import typer

from linadd.choices import COSTS, GRID, METRICS
from linadd.cli.arguments import (
    Cache,
    DataFile,
    Drop,
    Features,
    IndexBase,
    Labels,
    Table,
    Weights,
    Where,
    open_rows,
    parse_number,
    verb,
)
from linadd.cli.terminal import DONE, STOPPED_EARLY, Result
from linadd.cli.train import ModelTarget, check_target, describe
from linadd.cli.training_options import ConfigFile, check_taken, given_names, option_flag, training_parameters
from linadd.interrupt import StopRequest
from linadd.options import Options

__all__ = ["search"]

LISTED = ("C", *GRID)
FIGURES = {"error": "{:.4%}", "auc": "{:.6f}", "log_loss": "{:.6f}"}
FIRST_STOP = "Stopping the search after this block; the best so far is then trained. Ctrl-C again aborts."
SECOND_STOP = "Stopping after this block; Ctrl-C again aborts."


def parse_values(value):
    """A list of numbers from 0.01,0.1,1 or from the list of a config file; integral ones as int."""
    values = value.split(",") if isinstance(value, str) else value
    numbers = [parse_number(each) for each in (values if isinstance(values, (list, tuple)) else [values])]
    return [int(number) if number.is_integer() else number for number in numbers]


Folds = Annotated[int, typer.Option("--folds", min=1, help="Folds; 1 holds out a single fifth of the rows.")]
Metric = Annotated[str, typer.Option("--metric", metavar="|".join(METRICS), help="Held-out figure to choose by.")]
OneSE = Annotated[bool, typer.Option("--one-se", help="The most regularised setting within one standard error.")]
Sequential = Annotated[
    bool,
    typer.Option(
        "--sequential",
        help="Train the values of C one after the other, each from the last one's duals: 2 to 3 times the time, up "
        "to 6 times the reads. For outputs that do not fit the memory limit, or a large C that does not reach the gap.",
    ),
]


def search_options(
    terminal,
    context: typer.Context,
    file: DataFile,
    model: ModelTarget,
    x: Table = "X",
    y: Labels = "y",
    weights: Weights = None,
    where: Where = None,
    features: Features = None,
    drop: Drop = None,
    index_base: IndexBase = "auto",
    cache: Cache = True,
    config: ConfigFile = None,
    folds: Folds = 5,
    metric: Metric = "error",
    one_se: OneSE = False,
    sequential: Sequential = False,
    **values,
):
    """Choose options by cross-validation, and train.

    All values of C and folds are trained together on the same reads, and so are the values of the other options as far
    as the memory limit holds them. Exit status as for `train`. Ctrl-C once ends the search after the present block:
    the table keeps all that was begun, with its gap, and the best of what is finished is trained; once more, during
    that training, ends it too.
    """
    lists = {name: values.pop(name) for name in LISTED}
    given = given_names(context)
    options = Options(**values, **{name: lists[name][0] for name in LISTED})
    check_taken(given & (values.keys() | lists.keys()), options)
    grid = {name: lists[name] for name in LISTED[1:] if name in given}
    check_target(model)
    source = open_rows(
        file, where=where, target=model, x=x, y_name=y, weights=weights, index_base=index_base, features=features,
        drop=drop, cache=cache,
    )  # fmt: skip
    terminal.say(f"{source.origin}: {source.n_rows:,} rows of {source.n_features:,} features ({source.dtype})")
    found, trained = run(terminal, source, options, {
        "costs": lists["C"], "n_folds": folds, "grid": grid, "metric": metric, "one_se": one_se,
        "sequential": sequential,
    })  # fmt: skip
    trained.save(model)
    refitted = describe(trained, found.best, model)
    names = ("C", *grid)
    record = refitted.record | {
        "best": found.choice["best"],
        "table": found.table,
        "metric": metric,
        "one_se": one_se,
        "search_interrupted": found.is_interrupted,
        "search_reads": found.reads,
        "search_seconds": found.seconds,
    }
    text = f"{as_text(found, names)}\n\n{refitted.text}"
    is_done = refitted.status == DONE and not found.is_interrupted
    return Result(record, text, DONE if is_done else STOPPED_EARLY)


def run(terminal, source, options, choices):
    """(SearchResult, model of the best); a Ctrl-C of its own for each of the two."""
    from linadd.cli.progress import training_progress  # numba
    from linadd.search import refit, search

    with (
        StopRequest(lambda: terminal.say(FIRST_STOP)) as stop,
        SettingProgress(terminal, source, options, stop) as told,
    ):
        found = search(source, options, progress=told, **choices)
    terminal.say(f"training the chosen setting on all rows: {named(found.choice['best'])}")
    with (
        StopRequest(lambda: terminal.say(SECOND_STOP)) as stop,
        training_progress(terminal, found.best, source.n_rows, stop) as progress,
    ):
        return found, refit(source, found, progress)


class SettingProgress:
    """The progress of `train` for the settings that are trained together, after a line that names each."""

    def __init__(self, terminal, source, options, stop):
        self.terminal, self.n_rows, self.options, self.stop = terminal, source.n_rows, options, stop
        self.shown = contextlib.ExitStack()

    def __enter__(self):
        self.begin()
        return self

    def __exit__(self, *exception):
        self.shown.close()

    def begin(self):
        """Show a new run."""
        from linadd.cli.progress import training_progress  # numba

        self.shown.close()
        self.progress = self.shown.enter_context(training_progress(self.terminal, self.options, self.n_rows, self.stop))

    def setting(self, number, n_settings, values):
        """A line for the setting that begins."""
        self.shown.close()
        self.terminal.say(f"setting {number} of {n_settings}{': ' if values else ''}{named(values)}")
        self.begin()

    def cost(self, C):
        """A line for the value of C that begins."""
        self.shown.close()
        self.terminal.say(f"C {C:g}")
        self.begin()

    def read(self, phase, n_rows, n_total):
        """Pass on."""
        self.progress.read(phase, n_rows, n_total)

    def epoch(self, record):
        """Pass on."""
        self.progress.epoch(record)

    def should_stop(self):
        """Whether Ctrl-C was pressed."""
        return self.stop.is_set


def as_text(found, names):
    """The table for people, the chosen setting marked by *; `names` are the options that were searched over."""
    best, rows = found.choice["best"], []
    figures = [name for name in FIGURES if any(record[name] is not None for record in found.table)]
    rows.append(["", *names, *figures, "gap"])
    for record in found.table:
        is_best = all(record[name] == value for name, value in best.items())
        cells = ["*" if is_best else "", *(f"{record[name]:g}" for name in names)]
        cells += [format_figure(record, name) for name in figures]
        rows.append([*cells, f"{record['gap']:.1e}"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    rule = "the most regularised within one standard error of the best" if found.choice["one_se"] else "the best"
    chosen = named({name: best[name] for name in names})
    return "\n".join([*lines, "", f"chosen: {chosen} ({rule} by {found.choice['metric']})"])


def named(values):
    """Options as C 0.1, n_bins 10."""
    return ", ".join(f"{name} {value:g}" for name, value in values.items())


def format_figure(record, name):
    """Mean and deviation of a figure."""
    mean, deviation, form = record[name], record[f"{name}_deviation"], FIGURES[name]
    if mean is None:
        return "-"
    return form.format(mean) + ("" if deviation is None else f" +- {form.format(deviation)}")


def list_parameter(parameter):
    """The parameter of a training option as one that takes a list."""
    defaults = {entry.name: str(entry.default) for entry in fields(Options)} | {"C": ",".join(f"{C:g}" for C in COSTS)}
    flags = [option_flag(parameter.name)] + (["--C"] if parameter.name == "C" else [])
    text = f"{parameter.annotation.__metadata__[0].help.rstrip('.')}; several separated by commas."
    option = typer.Option(*flags, help=text, metavar="V1,V2,...", parser=parse_values)
    return parameter.replace(default=defaults[parameter.name], annotation=Annotated[Any, option])


def with_lists(function):
    """The function with the training options in the place of its `**values`, those of LISTED as lists."""
    own = [each for each in inspect.signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD]
    options = [list_parameter(each) if each.name in LISTED else each for each in training_parameters()]
    function.__signature__ = inspect.Signature([*own, *options])
    return function


search = verb(with_lists(search_options))
