"""Export `npz`: the model as plain arrays, for code that has NumPy or can read its format; and their names.

    format, format_version      "linadd-arrays", 1
    encoder                     "bspline", "fourier", "hermite" or "identity"
    classes (n_classes,)        labels, sorted; scores of two classes have one column, positive for classes[1]
    feature_names (n_features,) where the model has them
    coef                        float32 (n_features, n_basis, n_outputs)
    intercept                   float64 (n_outputs,)
    lower, upper                float64 (n_features,); a value outside is moved to the nearer end
    origin, inverse             float64 (n_features,); coordinate u = (x - origin) * inverse
    degree                      bspline: of the polynomials, 0 to 3
    n_bins                      bspline: int64 (n_features,)
    edges                       bspline, where a feature has knots of its own: float64 (n_features, n_edges); the first
                                n_bins[j] + 1 of row j are in use; a row that starts with NaN has uniform bins
    weights                     other encoders: float64 (n_basis,), factors of the basis functions
    check_rows, check_scores    float64 (32, n_features) and (32, n_outputs): rows, and the model's scores of them

`scorer.py` computes scores from these arrays in NumPy; any program that reproduces `check_scores` does it right.
"""

import numpy as np

from linadd.model_file import check_tensors

__all__ = ["model_arrays", "read", "write"]

FORMAT_VERSION = 1


def model_arrays(model):
    """The arrays of the table above, which every export is made from.

    Parameters
    ----------
    model : AdditiveModel
        Its arrays are not copied.

    Returns
    -------
    dict of str to array
    """
    encoder = model.encoder
    state = encoder.tensors()
    arrays = {
        "format": np.array("linadd-arrays"),
        "format_version": np.array(FORMAT_VERSION),
        "encoder": np.array(encoder.name),
        "classes": np.asarray(model.classes),
        "coef": model.coef,
        "intercept": model.intercept,
        **{name: state[name] for name in ("lower", "upper", "origin", "inverse")},
    }
    if model.feature_names is not None:
        arrays["feature_names"] = np.array(model.feature_names)
    if encoder.is_local:
        arrays |= {"degree": np.array(encoder.n_local - 1), "n_bins": state["n_bins"]}
        in_use = ~np.isnan(state["edges"]).all(axis=0)
        if in_use.any():
            arrays["edges"] = state["edges"][:, in_use]
    else:
        arrays["weights"] = encoder.weights
    return arrays | check_tensors(encoder.ranges, model.decision_function, model.options.get("seed", 0))


def write(arrays, path):
    """Write the arrays as they are; the same arrays give the same bytes.

    Parameters
    ----------
    arrays : dict of str to array
        From `model_arrays`.
    path : path-like
        Target.
    """
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def read(path):
    """Read the arrays back.

    Parameters
    ----------
    path : path-like
        A file that `write` made.

    Returns
    -------
    dict of str to array
    """
    with np.load(path, allow_pickle=False) as file:
        return dict(file)
