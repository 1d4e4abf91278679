"""`linadd train --estimator NAME`: the kernel classifiers, on rows gathered in memory or on the source itself."""

import ast
import json
import time
import warnings
from typing import Annotated

import typer

from linadd.cli.arguments import open_rows
from linadd.cli.terminal import DONE, STOPPED_EARLY, Result, format_bytes, peak_memory_bytes
from linadd.cli.training_options import option_flag
from linadd.errors import ConfigError, ConvergenceWarning, DataWarning, LinaddError
from linadd.options import Options
from linadd.sparse_kernel import ESTIMATORS, estimator_class

__all__ = ["ADDITIVE", "EstimatorName", "Settings", "kernel_classifier", "refuse_settings", "train_kernel"]

ADDITIVE = "additive"
# Options of the command line that are parameters of an estimator by another name, or by theirs.
SHARED = {"seed": "random_state", "memory_limit": "memory_limit", "n_jobs": "n_jobs"}
MEMORY_COPIES = 2  # of the rows as float64: as read, and scaled

EstimatorName = Annotated[
    str, typer.Option("--estimator", metavar="|".join((ADDITIVE, *ESTIMATORS)), help="What to train.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of an estimator that is not additive; repeatable."),
]


def refuse_settings(settings):
    """Raise ConfigError if --set was given: the additive trainer has options of its own."""
    if settings:
        raise ConfigError(f"--set {settings[0]}: goes with --estimator {', '.join(ESTIMATORS)}. Give it as an option.")


def kernel_classifier(name, settings, given, values):
    """The estimator with its parameters, all names checked.

    Parameters
    ----------
    name : str
        A key of ESTIMATORS.
    settings : list of str
        NAME=VALUE; the value is JSON, a Python literal or text.
    given : set of str
        Names of the arguments that the command line or the config file gave.
    values : dict
        Values of the options of the additive trainer, of which SHARED are used.

    Returns
    -------
    KernelClassifier
        Not fitted.

    Raises
    ------
    ConfigError
        An unknown estimator or parameter, with those that exist; an option of the additive trainer.
    """
    if name not in ESTIMATORS:
        raise ConfigError(f"--estimator: {name!r} is not one of {', '.join((ADDITIVE, *ESTIMATORS))}.")
    estimator = estimator_class(name)()
    known = estimator.get_params()
    shared = {option: parameter for option, parameter in SHARED.items() if parameter in known}
    options = shared.keys() | {"memory_limit"}  # that rows in memory keep, whatever the estimator
    taken = ", ".join(option_flag(option) for option in SHARED if option in options)
    of_additive = values.keys() | {"compat", "initial", "letters", "range_policy", "weights"}
    for option in sorted(given & of_additive - options):
        raise ConfigError(f"{option_flag(option)}: {name} does not take it. It takes {taken}, and --set for the rest.")
    Options(**{option: values[option] for option in SHARED})  # checks them
    parameters = {parameter: values[option] for option, parameter in shared.items()}
    for setting in settings or []:
        parameter, mark, text = setting.partition("=")
        if not mark:
            raise ConfigError(f"--set {setting}: is not NAME=VALUE.")
        if parameter in shared.values():
            option = next(option for option in shared if shared[option] == parameter)
            raise ConfigError(f"--set {parameter}: has an option of its own. Give it as {option_flag(option)}.")
        if parameter not in known:
            listed = ", ".join(each for each in known if each not in shared.values())
            raise ConfigError(f"--set {parameter}: {name} has no such parameter. It has {listed}.")
        parameters[parameter] = parse_value(text)
    return estimator.set_params(**parameters)


def parse_value(text):
    """The value of a setting: JSON, else a Python literal, else the text; an object that names a kernel is one."""
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text)
        except (ValueError, SyntaxError):
            continue
        if isinstance(value, dict) and "kernel" in value:
            from linadd.sparse_kernel.kernels import kernel_from_description  # scipy

            return kernel_from_description(value)
        return value
    return text


def train_kernel(terminal, estimator, file, model, memory_limit, **options):
    """Train an estimator on a file and write the model.

    Parameters
    ----------
    terminal : Terminal
        Told of progress and warnings.
    estimator : KernelClassifier
        With its parameters.
    file, model : str
        Rows to read, model to write.
    memory_limit : int
        Bytes that rows in memory may take.
    **options
        Of `open_rows`.

    Returns
    -------
    Result

    Raises
    ------
    ConfigError
        Rows that pass the memory limit, or a parameter of a type that the estimator cannot work with.
    DataError
        Rows or labels that cannot be learned from.
    """
    source = open_rows(file, target=model, **options)
    if source.has_weights:
        terminal.warn(f"{source.origin}: its sample weights are not used: {estimator.key} takes none.")
        source = open_rows(file, weights=False, **options)
    source.require_labels()
    terminal.say(f"{source.origin}: {source.n_rows:,} rows of {source.n_features:,} features ({source.dtype})")
    started = time.monotonic()
    rows = (source,) if estimator.reads_sources else gather(terminal, source, estimator.key, memory_limit)
    converged = fit(terminal, estimator, rows)
    if source.feature_names is not None:
        import numpy as np  # which the parser must not load

        estimator.feature_names_in_ = np.array(source.feature_names, dtype=object)
    estimator.training_ = {
        "converged": converged,
        "n_rows": source.n_rows,
        "seconds": time.monotonic() - started,
        "fingerprint": source.fingerprint(),
    }
    estimator.save(model)
    return describe(estimator, model)


def gather(terminal, source, name, memory_limit):
    """All rows as float64 (n_rows, n_features), and their labels; ConfigError if they pass the memory limit."""
    import numpy as np  # and these load numba

    from linadd.census import take_census
    from linadd.cli.progress import row_bar

    needed = MEMORY_COPIES * 8 * source.n_rows * source.n_features
    if needed > memory_limit:
        raise ConfigError(
            f"{source.origin}: {name} holds its rows in memory, and {source.n_rows:,} of {source.n_features:,} "
            f"features take {format_bytes(needed)}, above the limit of {format_bytes(memory_limit)}. "
            "Raise --memory-limit, select rows by --where, or use --estimator lspc, which reads them from the file."
        )
    X, labels = np.empty((source.n_rows, source.n_features)), []
    with row_bar(terminal, "reading") as progress:

        def keep(chunk):
            end = chunk.first_row + chunk.n_rows
            X[chunk.first_row : end] = chunk.dense()
            labels.append(chunk.y)
            progress(end, source.n_rows)

        classes = take_census(source, sample_rows=0, on_chunk=keep).classes
    return X, classes[np.searchsorted(classes, np.concatenate(labels))]


def fit(terminal, estimator, rows):
    """Fit with warnings on the terminal; returns whether the estimator says that it converged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator.fit(*rows)
        except LinaddError:
            raise
        except TypeError as error:
            raise ConfigError(f"--set: {estimator.key} cannot work with a value of this type ({error}).") from error
    ours = [each for each in caught if issubclass(each.category, (DataWarning, ConvergenceWarning))]
    for each in ours:
        terminal.warn(str(each.message))
    return not any(issubclass(each.category, ConvergenceWarning) for each in ours)


def describe(estimator, path):
    """The Result of a training run."""
    summary = estimator.summary
    record = {
        "estimator": estimator.key,
        **{name: summary[name] for name in ("objective", "n_basis", "converged", "n_rows")},
        "n_features": estimator.n_features,
        "classes": estimator.classes.tolist(),
        "seconds": summary["seconds"],
        "peak_memory_bytes": peak_memory_bytes(),
        "model": path,
        "digest": estimator.digest,
        "seed": estimator.random_state,
    }
    return Result(record, as_text(record), DONE if summary["converged"] else STOPPED_EARLY)


def as_text(record):
    """The record in three lines for people."""
    objective = "" if record["objective"] is None else f"objective {record['objective']:.8g}, "
    stopped = "" if record["converged"] else ", stopped before it converged"
    peak = record["peak_memory_bytes"]
    memory = "" if peak is None else f", peak memory {format_bytes(peak)}"
    shape = f"{record['n_rows']:,} rows, {record['n_features']:,} features, {len(record['classes'])} classes"
    return (
        f"{record['model']}: {shape}\n"
        f"{record['estimator']}, {objective}{record['n_basis']:,} basis vectors{stopped}\n"
        f"{record['seconds']:.1f} s{memory}"
    )
