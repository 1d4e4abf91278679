"""Export `npz`: the model as plain arrays, for code that has NumPy or can read its format; and their names.

    format, format_version      "linadd-arrays", 1
    encoder                     "bspline", "fourier", "hermite" or "identity"
    classes (n_classes,)        labels, sorted; scores of two classes have one column, positive for classes[1]
    link                        "logistic": 1 / (1 + exp(-score)) is a probability; several are divided by their sum
    calibration                 "sigmoid" or "isotonic", in place of `link`, and its arrays (their use: calibration.py):
    calibration_slope, ..._offset   float64 (n_outputs,): 1 / (1 + exp(slope score + offset))
    calibration_scores, ..._probabilities, ..._starts   points of all outputs; those of o begin at starts[o]: linear
                                between points, constant beyond; several outputs are divided by their sum
    feature_names (n_features,) where the model has them
    coef                        float32 (n_features, n_basis, n_outputs)
    intercept                   float64 (n_outputs,)
    lower, upper                float64 (n_features,); a value outside is moved to the nearer end
    lower_slope, upper_slope    where a curve goes on as a straight line: float64 (n_features, n_outputs), scores get
                                min(x - lower, 0) lower_slope + max(x - upper, 0) upper_slope besides
    is_strict                   where the model refuses values outside the range: bool (n_features,)
    origin, inverse             float64 (n_features,); coordinate u = (x - origin) * inverse
    degree                      bspline: of the polynomials, 0 to 3
    penalty_order               bspline: of the differences that were penalised; scores do not need it
    n_bins                      bspline: int64 (n_features,)
    edges                       bspline, where a feature has knots of its own: float64 (n_features, n_edges); the first
                                n_bins[j] + 1 of row j are in use; a row that starts with NaN has uniform bins
    weights                     other encoders: float64 (n_basis,), factors of the basis functions
    check_rows, check_scores    float64 (32, n_features) and (32, n_outputs): rows, also from beyond the ranges that are
                                not strict, and the model's scores of them

`linadd/score.py` computes scores from these arrays in NumPy, `docs/score.py` in 30 lines; any program that reproduces
`check_scores` does it right.
"""

import numpy as np

from linadd.score import arrays_of

__all__ = ["model_arrays", "read", "write"]


def model_arrays(model, dtype=np.float64):
    """The arrays of the table above, which every export is made from.

    Parameters
    ----------
    model : AdditiveModel
        Its arrays are not copied.
    dtype : dtype
        What the check rows are rounded to, for an export that takes no wider numbers.

    Returns
    -------
    dict of str to array
    """
    arrays = arrays_of(*model.to_state())
    checks = model.check_tensors(model.range_policies != "error", dtype)
    return arrays | checks


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
