"""Export `liblinear`: a model file for LIBLINEAR's own `predict`, and rows in the encoding that it is a model of.

    m.model               v as w = D_d v: one weight a basis function, the intercept as the weight of the bias feature
    m.check.libsvm        the check rows as phi^d = D_d'^-1 phi, with the labels that the model gives them
    m.check.scores        the model's scores of the check rows, a line a row
    m.rows.libsvm         any other rows (`rows=`), with their labels where they have some, else 0

`predict m.check.libsvm m.model out` must print an accuracy of 100 %. w . phi^d = v . phi [Maji2011], and |w|^2 is the
penalty, so that LIBLINEAR also trains on such rows. Column j n_basis + i + 1 is basis function i of feature j; where
curves go on as lines, two more columns for each feature hold the way below and above its range. LIBLINEAR knows
integer labels only: other classes are numbered from 0, in their order.
"""

from pathlib import Path

import numpy as np
import scipy.sparse

from linadd.encoders.exact import check_finite
from linadd.errors import ConfigError, DataError
from linadd.penalty import differences, penalised_code
from linadd.ranges import refuse_outside
from linadd.score import PHI, coordinates

__all__ = ["encoded", "score", "weights", "write"]

PIECE_BYTES = 8 << 20  # of encoded rows at a time
INT32 = np.iinfo(np.int32)


def write(arrays, path, rows=None):
    """Write the model file and the encoded rows beside it.

    Parameters
    ----------
    arrays : dict of str to array
        From `tables.model_arrays`.
    path : path-like
        The `*.model` file.
    rows : Source, optional
        Rows of the model's features to be encoded too, as a stream.

    Raises
    ------
    DataError
        `rows` has another number of features, a value that is not finite, or one outside a strict range.
    """
    path, w = Path(path), weights(arrays)
    labels = integer_labels(arrays["classes"])
    order = [1, 0] if w.shape[1] == 1 else range(len(labels))
    with open(path, "w", encoding="ascii") as file:
        file.write(f"solver_type {'L2R_LR' if 'link' in arrays else 'L2R_L1LOSS_SVC_DUAL'}\n")
        file.write(f"nr_class {len(labels)}\nlabel {' '.join(str(labels[k]) for k in order)}\n")
        file.write(f"nr_feature {len(w)}\nbias 1\nw\n")
        for row in [*w.tolist(), arrays["intercept"].tolist()]:
            file.write(" ".join(map(repr, row)) + " \n")
    scores = arrays["check_scores"]
    places = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else np.argmax(scores, axis=1)
    with open(path.with_suffix(".check.libsvm"), "w", encoding="ascii") as file:
        write_rows(file, encoded(arrays, arrays["check_rows"]), [labels[place] for place in places])
    np.savetxt(path.with_suffix(".check.scores"), scores, "%.17g")
    if rows is not None:
        with open(path.with_suffix(".rows.libsvm"), "w", encoding="ascii") as file:
            write_source(file, arrays, rows, dict(zip(arrays["classes"].tolist(), labels, strict=True)))


def score(path, X, rows=None):
    """Scores by LIBLINEAR itself of the check rows, which stand encoded in a file beside the model.

    Parameters
    ----------
    path : path-like
        The `*.model` file.
    X : float64 array, shape (n_rows, n_features)
        The same rows, which LIBLINEAR has no use for.
    rows : Source, optional
        As for `write`; not scored.

    Returns
    -------
    float64 array, shape (n_rows, n_outputs)

    Raises
    ------
    ConfigError
        The package liblinear-official is not installed.
    """
    try:
        from liblinear import liblinearutil
    except ImportError:
        raise ConfigError(
            "export: files for LIBLINEAR are checked by the package liblinear-official. Run: pip install "
            "'linadd[baseline]'."
        ) from None
    labels, codes = liblinearutil.svm_read_problem(str(Path(path).with_suffix(".check.libsvm")))
    model = liblinearutil.load_model(str(path))
    _, _, scores = liblinearutil.predict(labels, codes, model, "-q")
    return np.array(scores)


def weights(arrays):
    """w = D_d v, then the slopes of curves that go on as lines, float64 (n_columns, n_outputs)."""
    coef = np.moveaxis(arrays["coef"], 1, 2)
    w = np.moveaxis(differences(coef, int(arrays.get("penalty_order", 0))), 1, 2).reshape(-1, coef.shape[1])
    return np.concatenate([w, *(arrays[name] for name in ("lower_slope", "upper_slope") if name in arrays)])


def encoded(arrays, X):
    """phi^d of rows, then their ways below and above the ranges where these count, float64 (n_rows, n_columns).

    Parameters
    ----------
    arrays : dict of str to array
        From `tables.model_arrays`.
    X : float64 array, shape (n_rows, n_features)
        Finite feature values.
    """
    phi = PHI[str(arrays["encoder"])](arrays, coordinates(arrays, X))
    parts = [penalised_code(phi, int(arrays.get("penalty_order", 0))).reshape(len(X), -1)]
    if "lower_slope" in arrays:
        parts += [np.minimum(X - arrays["lower"], 0), np.maximum(X - arrays["upper"], 0)]
    return np.concatenate(parts, axis=1)


def integer_labels(classes):
    """The classes as LIBLINEAR's labels: themselves where they are 32-bit integers, else 0, 1, ..."""
    values = classes.tolist()
    is_integer = all(type(value) is int and INT32.min <= value <= INT32.max for value in values)
    return values if is_integer else list(range(len(values)))


def write_source(file, arrays, source, labels):
    """Encode all rows of a source, a piece at a time; a label that the model does not know stays, text becomes -1."""
    if source.n_features != len(arrays["coef"]):
        raise DataError(
            f"has {source.n_features} features, the model has {len(arrays['coef'])}. Give data of the same columns.",
            source=source.origin,
        )  # fmt: skip
    ranges = np.stack([arrays["lower"], arrays["upper"]], axis=1)
    piece = max(1, PIECE_BYTES // (8 * arrays["coef"][:, :, 0].size))
    is_strict = arrays.get("is_strict", np.zeros(len(ranges), bool))
    for chunk in source.chunks():
        own = [0] * chunk.n_rows
        if chunk.y is not None:
            own = [labels.get(y, -1 if isinstance(y, str) else y) for y in chunk.y.tolist()]
        for start in range(0, chunk.n_rows, piece):
            X = chunk.X[start : start + piece]
            X = (X.toarray() if scipy.sparse.issparse(X) else X).astype(np.float64)
            where = chunk.origin, source.feature_names, lambda i, chunk=chunk, start=start: chunk.row_number(start + i)
            check_finite(X, *where)
            refuse_outside(X, ranges, is_strict, *where)
            write_rows(file, encoded(arrays, X), own[start : start + piece])


def write_rows(file, codes, labels):
    """Rows as libsvm text: numbers that read back to the same doubles, zeros left out."""
    for label, row in zip(labels, codes, strict=True):
        columns = np.flatnonzero(row)
        entries = zip(columns + 1, row[columns].tolist(), strict=True)
        file.write(f"{label} {' '.join(f'{column}:{value!r}' for column, value in entries)}\n")
