"""The list of exports: name -> Exporter; and `export_model`, which writes one and checks it before it is there.

An export is made from `tables.model_arrays`, written under a temporary name, scored on the check rows by what its user
will have (the file and no model), and only renamed to its target if these scores are the model's.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from linadd.atomic import atomic_path, check_writable
from linadd.errors import ConfigError, LinaddError
from linadd.export import json, tables
from linadd.export.scorer import decision_function
from linadd.model import AdditiveModel
from linadd.model_file import score_difference

__all__ = ["EXPORTERS", "Exporter", "export_model", "exporter_of"]


class Exporter(NamedTuple):
    """How one kind of export is written and checked."""

    suffix: str  # of its files
    tolerance: float  # largest accepted `score_difference` on the check rows
    write: Callable  # (arrays of tables.model_arrays, path)
    score: Callable  # (path, X float64) -> scores (n_rows, n_outputs), from the file alone


def numpy_scores(read):
    """The `score` of an export whose file `read` turns back into the arrays."""
    return lambda path, X: decision_function(read(path), X)


# 1e-12: doubles throughout; the sum over the features is taken in another order.
EXPORTERS = {
    "npz": Exporter(".npz", 1e-12, tables.write, numpy_scores(tables.read)),
    "json": Exporter(".json", 1e-12, json.write, numpy_scores(json.read)),
}


def exporter_of(model):
    """The function (model, path, to) -> record that exports a model of its class; kernel classifiers have their own."""
    if model.key == AdditiveModel.key:
        return export_model
    from linadd.sparse_kernel.export import export_kernel_model  # scikit-learn

    return export_kernel_model


def export_model(model, path, to):
    """Write a model for other programs, whole and checked or not at all.

    Parameters
    ----------
    model : AdditiveModel
        The model.
    path : path-like
        Target; its suffix must be that of the kind. An existing file is replaced in one step.
    to : str
        Kind of export, a key of EXPORTERS.

    Returns
    -------
    dict
        `path`, `to`, `n_check_rows`, `difference` (largest, relative to the largest score), `label_flips` (check rows
        to which the export gives another class).

    Raises
    ------
    ConfigError
        Unknown kind, or a suffix of another kind.
    DataError
        The target cannot be written.
    LinaddError
        The model holds NaN or infinity, or the export does not give the model's scores.
    """
    if to not in EXPORTERS:
        raise ConfigError(f"export: {to!r} is not one of {', '.join(EXPORTERS)}.")
    exporter = EXPORTERS[to]
    if os.path.splitext(path)[1].lower() != exporter.suffix:
        raise ConfigError(f"{path}: the export {to!r} is a *{exporter.suffix} file. Give the name that suffix.")
    check_writable(path)
    if not (np.isfinite(model.coef).all() and np.isfinite(model.intercept).all()):
        raise LinaddError(f"{path}: not written: the model holds NaN or infinity. Train it anew.")
    arrays = tables.model_arrays(model)
    expected = arrays["check_scores"]
    with atomic_path(path) as temporary:
        exporter.write(arrays, temporary)
        scores = exporter.score(temporary, arrays["check_rows"])
        difference = score_difference(scores, expected)
        label_flips = int(np.count_nonzero(model.labels_of(scores) != model.labels_of(expected)))
        if not difference <= exporter.tolerance:
            raise LinaddError(
                f"{path}: not written: its scores differ from the model's by {difference:.1e} (relative; allowed "
                f"{exporter.tolerance:.0e}), and {label_flips} of {len(scores)} check rows change their class. "
                "Report this as a fault of linadd."
            )
    return {
        "path": str(path),
        "to": to,
        "n_check_rows": len(scores),
        "difference": difference,
        "label_flips": label_flips,
    }
