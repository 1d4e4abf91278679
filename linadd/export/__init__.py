"""The list of exports: name -> Exporter; and `export_model`, which writes one and checks it before it is there.

An export is made from `tables.model_arrays`, written in a temporary folder, scored on the check rows by what its user
will have (the files and no model), and only moved to its place if these scores are the model's.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from linadd.atomic import atomic_folder, check_writable
from linadd.errors import ConfigError, LinaddError
from linadd.export import c_code, json, liblinear, onnx, tables
from linadd.model import AdditiveModel
from linadd.model_file import score_difference
from linadd.score import decision_function

__all__ = ["EXPORTERS", "Exporter", "export_model", "exporter_of"]


class Exporter(NamedTuple):
    """How one kind of export is written and checked; `options` go to all three functions."""

    suffix: str  # of its main file; others of the same stem may stand beside it
    tolerance: Callable  # (arrays, **options) -> largest accepted `score_difference` on the check rows
    write: Callable  # (arrays of tables.model_arrays, path, **options)
    score: Callable  # (path, X float64, **options) -> scores (n_rows, n_outputs), from the files alone
    options: dict  # name -> values that it may have; none where they are not listed


def numpy_scores(read):
    """The `score` of an export whose file `read` turns back into the arrays."""
    return lambda path, X: decision_function(read(path), X)


def doubles(arrays, **options):
    """1e-12: doubles throughout; the sum over the features is taken in another order."""
    return 1e-12


def onnx_tolerance(arrays, dtype="float64"):
    """That of the sums in the dtype."""
    return {"float64": 1e-12, "float32": 1e-5}[dtype]


def liblinear_tolerance(arrays, rows=None):
    """Of order d the sums of w . phi^d cancel as the condition number of D_d grows, n_basis^d at most."""
    return 1e-12 * arrays["coef"].shape[1] ** int(arrays.get("penalty_order", 0))


EXPORTERS = {
    "npz": Exporter(".npz", doubles, tables.write, numpy_scores(tables.read), {}),
    "json": Exporter(".json", doubles, json.write, numpy_scores(json.read), {}),
    "onnx": Exporter(".onnx", onnx_tolerance, onnx.write, onnx.score, {"dtype": ("float64", "float32")}),
    "c": Exporter(".c", c_code.tolerance, c_code.write, c_code.score, {"quantised": ("int16", "int8")}),
    "liblinear": Exporter(".model", liblinear_tolerance, liblinear.write, liblinear.score, {"rows": ()}),
}


def exporter_of(model):
    """The function (model, path, to) -> record that exports a model of its class; kernel classifiers have their own."""
    if model.key == AdditiveModel.key:
        return export_model
    from linadd.sparse_kernel.export import export_kernel_model  # scikit-learn

    return export_kernel_model


def export_model(model, path, to, **options):
    """Write a model for other programs, whole and checked or not at all.

    Parameters
    ----------
    model : AdditiveModel
        The model.
    path : path-like
        Target; its suffix must be that of the kind. An existing file is replaced in one step.
    to : str
        Kind of export, a key of EXPORTERS.
    **options
        Of the kind: `dtype` ("float64", "float32") of onnx; `quantised` ("int16", "int8") of c; `rows`, a Source to be
        encoded for LIBLINEAR.

    Returns
    -------
    dict
        `path`, `to`, `files` (all that were written), `n_check_rows`, `difference` (largest, relative to the largest
        score), `tolerance` (what was allowed), `label_flips` (check rows to which the export gives another class).

    Raises
    ------
    ConfigError
        Unknown kind or option, a suffix of another kind, a model that the kind cannot hold, or a program that its
        check needs is missing.
    DataError
        The target cannot be written.
    LinaddError
        The model holds NaN or infinity, or the export does not give the model's scores.
    """
    exporter = check_request(path, to, options)
    check_writable(path)
    if not (np.isfinite(model.coef).all() and np.isfinite(model.intercept).all()):
        raise LinaddError(f"{path}: not written: the model holds NaN or infinity. Train it anew.")
    arrays = tables.model_arrays(model, options.get("dtype", np.float64))
    expected = arrays["check_scores"]
    with atomic_folder(path) as temporary:
        exporter.write(arrays, temporary, **options)
        scores = exporter.score(temporary, arrays["check_rows"], **options)
        difference, allowed = score_difference(scores, expected), exporter.tolerance(arrays, **options)
        label_flips = int(np.count_nonzero(model.labels_of(scores) != model.labels_of(expected)))
        if not difference <= allowed:
            raise LinaddError(
                f"{path}: not written: its scores differ from the model's by {difference:.1e} (relative; allowed "
                f"{allowed:.0e}), and {label_flips} of {len(scores)} check rows change their class. "
                "Report this as a fault of linadd."
            )
        files = sorted(os.listdir(temporary.parent))
    return {
        "path": str(path),
        "to": to,
        "files": [os.path.join(os.path.dirname(path), name) for name in files],
        "n_check_rows": len(scores),
        "difference": difference,
        "tolerance": allowed,
        "label_flips": label_flips,
    }


def check_request(path, to, options):
    """The Exporter of a kind, once path and options are seen to be for it; ConfigError if not."""
    if to not in EXPORTERS:
        raise ConfigError(f"export: {to!r} is not one of {', '.join(EXPORTERS)}.")
    exporter = EXPORTERS[to]
    if os.path.splitext(path)[1].lower() != exporter.suffix:
        raise ConfigError(f"{path}: the export {to!r} is a *{exporter.suffix} file. Give the name that suffix.")
    for name, value in options.items():
        if name not in exporter.options:
            kinds = ", ".join(kind for kind, each in EXPORTERS.items() if name in each.options) or "none"
            raise ConfigError(f"export: {to!r} takes no option {name!r}. It is for {kinds}.")
        if exporter.options[name] and value not in exporter.options[name]:
            raise ConfigError(f"{name}: {value!r} is not one of {', '.join(exporter.options[name])}.")
    return exporter
