"""Plain tables of a kernel classifier, for code without linadd: npz, JSON, ONNX.

    format, format_version       "linadd-kernel", 1
    estimator                    a key of `TABLES`
    classes (n_classes,)         labels, sorted
    offset, factor (n_features,) a row is first scaled, x = (x - offset) * factor, then clipped to [0, 1] if `clip`
    clip                         bool
    link                         "logistic", "softmax", "softmax-reference" (a last class of score 0), "probit",
                                 "positive-part" or "density"
    outputs                      one record an output (of a class; of classes[1] where there are two classes):
      kernel                     as `Kernel.description()`
      basis (d, n_features)      scaled basis rows;  k = K(x, basis)
      coef (d,), intercept       score = k . coef + intercept
      half (d, d), noise         probit only: z = score / sqrt(noise + K(x, x) - |half k|^2)
                                 density has other records, one a class: see `rodeo_export.py`
    check_rows, check_scores, check_proba    rows with the model's scores and probabilities

Probabilities are 1/(1 + exp(-score)) of classes[1]; softmax of the scores; Phi(z) of classes[1], or for more classes
Phi(z_c) / sum_c Phi(z_c); max(0, score_c) / sum_c max(0, score_c), equal where that is 0 / 0; softmax of the log joint
densities. Decisions are the scores, with z in their place for probit with more than two classes.
"""

import json
import os
import warnings

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit, softmax

from linadd.atomic import atomic_path, check_writable
from linadd.errors import ConfigError, LinaddError
from linadd.model_file import make_check_rows, score_difference
from linadd.sparse_kernel.base import Scaling, one_versus_rest_proba
from linadd.sparse_kernel.kernels import RBF, kernel_from_description
from linadd.sparse_kernel.lspc import posterior
from linadd.sparse_kernel.onnx_graph import write_onnx
from linadd.sparse_kernel.probit import log_phi, phi
from linadd.sparse_kernel.rodeo_export import density_scores, rodeo_outputs

__all__ = ["export_kernel_model", "kernel_tables", "score_tables"]

# Sums are taken in another order, and the variance through an explicit inverse factor; the density has neither.
TOLERANCE, DENSITY_TOLERANCE = 1e-9, 1e-12


def kernel_tables(model):
    """The tables above as nested dicts of arrays and plain values.

    Parameters
    ----------
    model : KernelClassifier
        Fitted, of a class in `TABLES`.

    Raises
    ------
    ConfigError
        On a logit likelihood, whose probabilities are integrals.
    """
    outputs, link = TABLES[model.key](model)
    rows = make_check_rows(model.ranges_)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        scores = model.scores(rows)
        proba = model.predict_proba(rows)
    return {"format": "linadd-kernel", "format_version": 1, "estimator": model.key, "classes": model.classes_,
            "offset": model.scaling_.offset, "factor": model.scaling_.factor, "clip": bool(model.scaling_.clip),
            "link": link, "outputs": outputs, "check_rows": rows,
            "check_scores": scores[:, 0] if scores.shape[1] == 1 else scores, "check_proba": proba}


def import_vector_outputs(model):
    """One record an output, which share kernel and basis; and the link."""
    basis, n_outputs = model.scaling_(model.import_vectors_), len(model.intercept_)
    outputs = [{"kernel": model.kernel_.description(), "basis": basis, "coef": model.coef_[:, c],
                "intercept": float(model.intercept_[c])} for c in range(n_outputs)]
    if len(model.classes_) == 2:
        return outputs, "logistic"
    return outputs, "softmax" if n_outputs == len(model.classes_) else "softmax-reference"


def sparse_gp_outputs(model):
    """One record a latent function, and the link."""
    return [probit_output(part) for part in model.models_], "probit"


def probit_output(part):
    """The record of one SparseGPModel."""
    half = solve_triangular(part.L, np.diag(np.sqrt(part.precision)), lower=True)
    return {"kernel": part.kernel.description(), "basis": part.basis, "coef": half.T @ (half @ part.site_mean),
            "intercept": part.bias, "half": half, "noise": 1.0 / part.slope**2}


def online_gp_outputs(model):
    """One record a latent function, and the link."""
    if model.likelihood == "logit":
        raise ConfigError("export: likelihood='logit' has no tables, its probabilities are integrals. Train with "
                          "likelihood='probit'.")
    return [online_gp_output(part) for part in model.models_], "probit"


def online_gp_output(part):
    """The record of one OnlineGP; half' half = -C, which is positive semi-definite but for rounding."""
    d, settings = part.size, part.settings
    values, vectors = np.linalg.eigh(-part.posterior.C[:d, :d])
    return {"kernel": part.kernel.description(), "basis": part.basis[:d], "coef": part.posterior.alpha[:d],
            "intercept": settings.bias, "half": np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T,
            "noise": 1.0 / settings.slope**2}


def least_squares_outputs(model):
    """One record a class, and the link."""
    kernel = RBF(variance=1.0, length_scale=model.sigma_).description()
    return [{"kernel": kernel, "basis": centers, "coef": coef, "intercept": 0.0}
            for centers, coef in zip(model.centers_, model.coef_, strict=True)], "positive-part"


TABLES = {"import-vector-machine": import_vector_outputs, "lspc": least_squares_outputs, "rodeo": rodeo_outputs,
          "sparse-gp": sparse_gp_outputs, "sparse-online-gp": online_gp_outputs}


def score_tables(tables, X):
    """Scores and probabilities from the tables alone, as `decision_function` and `predict_proba` of the model.

    Parameters
    ----------
    tables : dict
        From `kernel_tables` or a file.
    X : float64 array (n_rows, n_features)

    Returns
    -------
    scores : float64 array (n_rows,) or (n_rows, n_classes)
    proba : float64 array (n_rows, n_classes)
    """
    rows = Scaling(np.asarray(tables["offset"]), np.asarray(tables["factor"]), tables["clip"])(X)
    if tables["link"] == "density":
        F = density_scores(tables["outputs"], rows)
        return F, softmax(F, axis=1)
    scores, z = [], []
    for output in tables["outputs"]:
        kernel = kernel_from_description(output["kernel"])
        K = kernel(rows, np.asarray(output["basis"]))
        scores.append(K @ output["coef"] + output["intercept"])
        if tables["link"] == "probit":
            variance = kernel.diag(rows) - np.sum((K @ np.asarray(output["half"]).T) ** 2, axis=1)
            z.append(scores[-1] / np.sqrt(output["noise"] + np.maximum(variance, 0.0)))
    F = np.column_stack(scores)
    if tables["link"] == "probit":
        if len(z) == 1:
            return F[:, 0], np.column_stack([phi(-z[0]), phi(z[0])])
        return np.column_stack(z), one_versus_rest_proba(log_phi(np.column_stack(z)))
    if tables["link"] == "positive-part":
        return F, posterior(F)
    if tables["link"] == "logistic":
        return F[:, 0], np.hstack([expit(-F), expit(F)])
    if tables["link"] == "softmax-reference":
        F = np.hstack([F, np.zeros((len(F), 1))])
    return F, softmax(F, axis=1)


def export_kernel_model(model, path, to=None):
    """Write the tables of a model as npz, JSON or ONNX, checked against the model, whole or not at all.

    Parameters
    ----------
    model : KernelClassifier
        Fitted.
    path : path-like
        Target, whose suffix is the kind: `*.npz`, `*.json`, `*.onnx`.
    to : str, optional
        The kind; by default that of the suffix.

    Returns
    -------
    dict
        `path`, `to`, `n_check_rows`, `difference` (largest, of scores relative to the largest score or of
        probabilities to the largest probability), `label_flips` (check rows to which the export gives another class).

    Raises
    ------
    ConfigError
        Another kind or suffix, or a kernel that ONNX cannot hold.
    LinaddError
        The export does not give the model's scores and probabilities on the check rows; nothing is written.
    """
    suffix = os.path.splitext(path)[1].lower()
    to = suffix.removeprefix(".") if to is None else to
    if to not in WRITERS:
        raise ConfigError(f"export: {to!r} is not one of {', '.join(WRITERS)}.")
    if suffix != f".{to}":
        raise ConfigError(f"{path}: the export {to!r} is a *.{to} file. Give the name that suffix.")
    check_writable(path)
    tables = kernel_tables(model)
    write, score = WRITERS[to]
    allowed = DENSITY_TOLERANCE if tables["link"] == "density" else TOLERANCE
    with atomic_path(path) as temporary:
        write(tables, temporary)
        scores, proba = score(temporary, tables["check_rows"])
        difference = 0.0
        for got, name in ((scores, "check_scores"), (proba, "check_proba")):
            found = score_difference(got, tables[name])
            if not found <= allowed:
                raise LinaddError(f"{path}: not written: {name} of the export differ from the model's by "
                                  f"{found:.1e} (allowed {allowed:.0e}). Report this model.")
            difference = max(difference, found)
    flips = np.count_nonzero(np.argmax(proba, axis=1) != np.argmax(tables["check_proba"], axis=1))
    return {"path": str(path), "to": to, "n_check_rows": len(proba), "difference": difference,
            "label_flips": int(flips)}


def write_json(tables, path):
    """The tables as one JSON object."""
    path.write_text(json.dumps(tables, default=lambda value: value.tolist()))


def read_json(path):
    """The tables of a JSON export."""
    return json.loads(path.read_text())


def write_npz(tables, path):
    """Arrays under their names, those of output c as `outputs.c.name`; the rest as JSON text in `header`."""
    arrays, header = split_arrays(tables)
    np.savez(path, header=np.array(json.dumps(header)), **arrays)


def split_arrays(tables):
    """(arrays by dotted name, everything else)."""
    arrays = {name: value for name, value in tables.items() if isinstance(value, np.ndarray)}
    header = {name: value for name, value in tables.items() if name not in arrays and name != "outputs"}
    header["outputs"] = []
    for c, output in enumerate(tables["outputs"]):
        own = {name: value for name, value in output.items() if isinstance(value, np.ndarray)}
        arrays |= {f"outputs.{c}.{name}": value for name, value in own.items()}
        header["outputs"].append({name: value for name, value in output.items() if name not in own})
    return arrays, header


def read_npz(path):
    """The tables of an npz export."""
    with np.load(path, allow_pickle=False) as file:
        tables = json.loads(str(file["header"]))
        for name in file.files:
            if name.startswith("outputs."):
                _, c, part = name.split(".")
                tables["outputs"][int(c)][part] = file[name]
            elif name != "header":
                tables[name] = file[name]
    return tables


def score_onnx(path, X):
    """Scores and probabilities by onnxruntime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["scores", "probabilities"], {"X": X})


WRITERS = {
    "npz": (write_npz, lambda path, X: score_tables(read_npz(path), X)),
    "json": (write_json, lambda path, X: score_tables(read_json(path), X)),
    "onnx": (write_onnx, score_onnx),
}
