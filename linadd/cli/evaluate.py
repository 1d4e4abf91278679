"""`linadd evaluate MODEL FILE`: how well a model does on labelled rows."""

import time

from linadd.cli.arguments import (
    DataFile,
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
    verb,
)
from linadd.cli.terminal import Result, format_bytes, peak_memory_bytes
from linadd.errors import DataError

__all__ = ["evaluate", "measure"]

SHOWN_CLASSES = 30  # rows of the table for people; the object of --json holds all


@verb
def evaluate(
    terminal,
    model: ModelFile,
    file: DataFile,
    x: Table = "X",
    y: Labels = "y",
    weights: Weights = None,
    where: Where = None,
    features: Features = None,
    drop: Drop = None,
    index_base: IndexBase = "auto",
    memory_limit: MemoryLimit = "1GB",
    range_policy: RangePolicy = None,
):
    """Measure a model on labelled rows.

    Accuracy, error, a line for each class, AUC, and where the model has probabilities log loss and reliability: for
    each tenth of the predicted probability (of the second class; of several, of the most likely one) its mean and the
    rate at which it came true. Then the values outside the training range. The AUC needs every score: it is left out
    where the scores do not fit --memory-limit.
    """
    from linadd.cli.scoring import open_for_model  # these load numba
    from linadd.models import load_model

    started = time.monotonic()
    trained = load_model(model)
    source = open_for_model(
        file, trained, model, where=where, x=x, y_name=y, weights=weights, index_base=index_base, features=features,
        drop=drop,
    )  # fmt: skip
    record, guard = measure(terminal, trained, source, memory_limit, range_policy)
    record |= {
        "model": model,
        "seconds": time.monotonic() - started,
        "peak_memory_bytes": peak_memory_bytes(),
    }
    return Result(record, as_text(record, guard))


def measure(terminal, model, source, memory_limit, range_policy=None):
    """Score every row of a source; what was found.

    Parameters
    ----------
    terminal : Terminal
        Shows the progress.
    model : model of any class
        As `load_model` returns it.
    source : Source
        Rows of the model's features; DataError if they have no labels.
    memory_limit : int
        Bytes that the scores of an AUC may take.
    range_policy : str, optional
        As for `RangeGuard`.

    Returns
    -------
    record : dict
        The figures as JSON values, and `file`.
    guard : RangeGuard
        Counts of values outside the training range.
    """
    from linadd.cli.progress import row_bar  # these load numba
    from linadd.cli.scoring import RangeGuard, scored_pieces
    from linadd.metrics import Metrics

    source.require_labels()
    has_auc = auc_bytes(source, model) <= memory_limit
    if not has_auc:
        needed = format_bytes(auc_bytes(source, model))
        terminal.say(f"no AUC: the scores of all rows take {needed}. Raise --memory-limit to have it.")
    metrics, guard = Metrics(len(model.classes), has_auc), RangeGuard(model, range_policy)
    model = guard.model
    with row_bar(terminal, "rows") as progress:
        for chunk, rows, (scores, log_proba) in scored_pieces(source, model, guard, model.ranking):
            index = indices_of(chunk, rows, model.classes)
            weight = None if chunk.weight is None else chunk.weight[rows]
            metrics.update(index, scores, log_proba, weight)
            progress(chunk.first_row + rows.stop, source.n_rows)
    return describe(metrics, model, guard) | {"file": source.origin}, guard


def indices_of(chunk, rows, classes):
    """Place of the labels of a chunk's rows among the classes; DataError names the file."""
    from linadd.metrics import class_indices  # numpy

    try:
        return class_indices(chunk.y[rows], classes)
    except DataError as error:
        raise DataError(error.message, source=chunk.origin) from None


def auc_bytes(source, model):
    """Memory that the area under the curve takes: scores, labels, weights, and the sorting of one class."""
    return source.n_rows * 8 * (model.n_outputs + 2 + 4)


def describe(metrics, model, guard):
    """The figures as JSON values, with precision and rows of each class."""
    figures = metrics.figures()
    counts = metrics.confusion.counts
    given = counts.sum(axis=0)
    return figures | {
        "classes": model.classes.tolist(),
        "support": counts.sum(axis=1).tolist(),
        "precision": [float(hits / n) if n > 0 else None for hits, n in zip(counts.diagonal(), given, strict=True)],
        "range": guard.record(),
    }


def as_text(record, guard):
    """The figures for people."""
    lines = [f"{record['file']}: {record['n_rows']:,} rows, model {record['model']}"]
    figures = dict.fromkeys(("accuracy", "error"), "{:.4%}")
    figures |= dict.fromkeys(("auc", "log_loss", "calibration_error"), "{:.6f}")
    lines += [f"{name} {form.format(record[name])}" for name, form in figures.items() if record[name] is not None]
    if record["unseen"]:
        lines.append(f"labels that the model does not know: {record['unseen']:g} rows, counted as errors")
    lines += ["", f"{'class':<12} {'rows':>10} {'recall':>9} {'precision':>9}"]
    columns = zip(*(record[name] for name in ("classes", "support", "recall", "precision")), strict=True)
    for label, rows, recall, precision in list(columns)[:SHOWN_CLASSES]:
        shares = " ".join(f"{'-' if share is None else f'{share:.2%}':>9}" for share in (recall, precision))
        lines.append(f"{label!s:<12} {rows:>10,g} {shares}")
    if len(record["classes"]) > SHOWN_CLASSES:
        lines.append(f"and {len(record['classes']) - SHOWN_CLASSES} more classes (--json has all)")
    if record["reliability"]:
        lines += ["", f"{'probability':<12} {'rows':>10} {'predicted':>9} {'observed':>9}"]
    for part in record["reliability"]:
        shares = f"{part['predicted']:>9.2%} {part['observed']:>9.2%}"
        lines.append(f"{part['low']:.1f} to {part['high']:.1f}   {part['count']:>10,g} {shares}")
    return "\n".join([*lines, "", guard.text()])
