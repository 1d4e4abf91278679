"""`linadd train FILE MODEL`: options and paths are checked, then the file is opened, the model trained and written."""

import inspect
import os
from typing import Annotated

import typer

from linadd.atomic import check_writable
from linadd.bounds import bound
from linadd.cli.arguments import (
    Cache,
    DataFile,
    Drop,
    Features,
    IndexBase,
    Labels,
    RangePolicy,
    Table,
    Weights,
    Where,
    open_rows,
    verb,
)
from linadd.cli.compat import PROGRAMS, compat_options
from linadd.cli.kernel_training import (
    ADDITIVE,
    EstimatorName,
    Settings,
    kernel_classifier,
    refuse_settings,
    train_kernel,
)
from linadd.cli.terminal import DONE, STOPPED_EARLY, Result, format_bytes, peak_memory_bytes
from linadd.cli.training_options import ConfigFile, check_taken, given_names, training_parameters
from linadd.errors import ConfigError, DataError, FormatError
from linadd.interrupt import StopRequest
from linadd.options import Options

__all__ = ["train"]

ModelTarget = Annotated[str, typer.Argument(metavar="MODEL", help="File to write, by convention *.safetensors.")]
Letters = Annotated[
    list[str] | None, typer.Argument(metavar="-- LETTERS", help="Letters of the program that --compat names.")
]
Compat = Annotated[
    str | None,
    typer.Option(
        "--compat", metavar="|".join(PROGRAMS), help="That program's objective, defaults, stopping rule and letters."
    ),
]


Initial = Annotated[
    str | None,
    typer.Option(
        "--initial", metavar="MODEL",
        help="Where newton and sgd start: an additive model of linadd, or one of LIBLINEAR.",
    ),
]  # fmt: skip


def train_model(
    terminal,
    context: typer.Context,
    file: DataFile,
    model: ModelTarget,
    letters: Letters = None,
    x: Table = "X",
    y: Labels = "y",
    weights: Weights = None,
    where: Where = None,
    features: Features = None,
    drop: Drop = None,
    index_base: IndexBase = "auto",
    cache: Cache = True,
    config: ConfigFile = None,
    compat: Compat = None,
    estimator: EstimatorName = ADDITIVE,
    settings: Settings = None,
    range_policy: RangePolicy = None,
    initial: Initial = None,
    **values,
):
    """Train a classifier on a file, to a certified gap.

    Exit status: 0 the stopping rule was met; 3 stopped before (model written, gap stated); 1 data or run failed; 2
    usage. Ctrl-C once ends the run after the present block and writes the model. The kernel classifiers (other values
    of the option for it) take seed, memory limit, threads where they have any, and settings; they have no gap.
    """
    if estimator != ADDITIVE:
        classifier = kernel_classifier(estimator, settings, given_names(context), values)
        check_target(model)
        rows = {"where": where, "x": x, "y_name": y, "index_base": index_base, "features": features, "drop": drop}
        return train_kernel(terminal, classifier, file, model, values["memory_limit"], **rows)
    refuse_settings(settings)
    options, is_quiet = read_options(context, letters, compat, values)
    terminal.is_quiet |= is_quiet
    check_target(model)
    start = None if initial is None else read_start(initial)
    with StopRequest(lambda: terminal.say("Stopping after this block; Ctrl-C again aborts.")) as stop:
        source = open_rows(
            file, where=where, target=model, x=x, y_name=y, weights=weights, index_base=index_base, features=features,
            drop=drop, cache=cache,
        )  # fmt: skip
        check_range_policy(range_policy, source)
        terminal.say(f"{source.origin}: {source.n_rows:,} rows of {source.n_features:,} features ({source.dtype})")
        watched = None
        if isinstance(options.validation, str):
            watched = open_rows(
                options.validation, target=model, x=x, y_name=y, weights=weights, index_base=index_base,
                n_features=source.n_features, match=source.feature_names,
            )  # fmt: skip
        trained = run(terminal, source, options, stop, start, watched)
        trained.range_policy = range_policy or "clamp"
        trained.save(model)
    return describe(trained, options, model)


def read_options(context, letters, compat, values):
    """(Options, whether the letter -q stands among the letters), all checked."""
    given = given_names(context) & values.keys()
    is_quiet = False
    if compat is not None:
        values, is_quiet = compat_options(compat, letters or [], {name: values[name] for name in given})
    elif letters:
        remedy = "Put a pattern of files in quotes; letters after -- go with --compat."
        raise ConfigError(f"{letters[0]}: train takes one file and a model. {remedy}")
    options = Options(**values)
    check_taken(given, options)
    return options, is_quiet


def check_target(path):
    """Raise DataError unless the model can be written there, over nothing but an earlier model."""
    check_writable(path)
    if os.path.exists(path) and os.path.getsize(path) > 0:
        from linadd.model_file import load_model_file  # numpy

        try:
            load_model_file(path)
        except FormatError:
            message = "exists and is no model of linadd. Give another name, or remove it first."
            raise DataError(message, source=path) from None


def check_range_policy(policy, source):
    """Raise ConfigError where --range names a policy or a feature that does not exist."""
    if policy is not None:
        from linadd.ranges import feature_policies  # numpy

        feature_policies(policy, source.n_features, source.feature_names)


def read_start(path):
    """The additive model that --initial names."""
    from linadd.models import load_model  # numba

    model = load_model(path)
    if model.key != ADDITIVE:
        raise ConfigError(f"--initial {path}: is of class {model.key}. Give an additive model, or one of LIBLINEAR.")
    return model


def run(terminal, source, options, stop, start=None, validation=None):
    """Train with progress on the terminal, watching rows of another file if given; returns the model."""
    from linadd.cli.progress import training_progress  # numba
    from linadd.train import train

    with training_progress(terminal, options, source.n_rows, stop) as progress:
        return train(source, options, progress, start, validation)


def describe(model, options, path):
    """The Result of a training run."""
    summary = model.summary
    names = ("objective", "dual_objective", "gap", "gaps", "converged", "interrupted", "passes", "reads", "n_rows")
    record = {name: summary[name] for name in (*names, "n_features")} | {
        "classes": model.classes.tolist(),
        "solver": summary["solver"],
        "validation": summary.get("validation"),
        "seconds": summary["seconds"],
        "peak_memory_bytes": peak_memory_bytes(),
        "model": path,
        "digest": model.digest,
        "seed": options.seed,
    }
    return Result(record, as_text(record, options), DONE if summary["converged"] else STOPPED_EARLY)


def as_text(record, options):
    """The record in three lines for people."""
    passes = f"{record['passes']} pass{'' if record['passes'] == 1 else 'es'}"
    outcome = "no certificate" if record["gap"] is None else f"relative duality gap {bound(record['gap'])}"
    if record["interrupted"]:
        outcome += ", interrupted"
    elif record["gap"] is not None and options.stop_on == "gap":
        outcome += f" ({'within' if record['gap'] <= options.tol else 'above'} tol {options.tol:g})"
    elif options.stop_on == "violation":
        outcome += f" (violation {'within' if record['converged'] else 'above'} {options.tol:g})"
    objective = "" if record["objective"] is None else f"objective {record['objective']:.8g}, "
    peak = record["peak_memory_bytes"]
    memory = "" if peak is None else f", peak memory {format_bytes(peak)}"
    kept = ""
    if record["validation"] is not None:
        kept = "validation loss {loss:.6g}, error {error:.4g}, of pass {pass}\n".format(**record["validation"])
    shape = f"{record['n_rows']:,} rows, {record['n_features']:,} features, {len(record['classes'])} classes"
    return (
        f"{record['model']}: {shape}\n"
        f"{objective}{outcome}\n"
        f"{kept}"
        f"{passes}, {record['reads']} reads, {record['seconds']:.1f} s{memory}"
    )


def with_training_options(function):
    """The function with the options of `Options` in the place of its `**values`."""
    parameters = [each for each in inspect.signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD]
    function.__signature__ = inspect.Signature([*parameters, *training_parameters()])
    return function


train = verb(with_training_options(train_model))
