"""Export `json`: the content of `tables.py` as one JSON object, for any language that has a JSON parser.

    {"format": "linadd-json", "format_version": 1,
     "encoder": "bspline", "degree": 1,                   degree: bspline only; and "penalty_order"
     "weights": [...],                                    the other encoders: n_basis factors of the basis functions
     "classes": [...], "intercept": [...],                n_classes labels; n_outputs numbers
     "link": "logistic",                                  where the scores have probabilities
     "calibration": "sigmoid",                            in its place, with the arrays of `tables.py` for it
     "features": [                                        one object a feature:
        {"name": "age",                                   where the model has names
         "lower": 17, "upper": 90,                        null where the value is not clamped
         "lower_slope": [...], "upper_slope": [...],      where a curve goes on as a line: n_outputs numbers
         "is_strict": false,                              where the model refuses values outside the range of some
         "origin": 17, "inverse": 0.137,                  u = (x - origin) * inverse, unless it has edges
         "n_bins": 10,                                    bspline only
         "edges": [...],                                  n_bins + 1 knots, where the feature has its own
         "coef": [[...], ...]},                           n_basis lists of n_outputs numbers
        ...],
     "check_rows": [[...], ...], "check_scores": [[...], ...]}

Every number is written in its shortest form that reads back to the same double (float32 coefficients as the double of
equal value). NaN and infinity do not occur.
"""

import json

import numpy as np

__all__ = ["read", "write"]

BY_FEATURE = ("lower", "upper", "lower_slope", "upper_slope", "is_strict", "origin", "inverse", "n_bins", "coef")
WHOLE = (
    "encoder", "degree", "penalty_order", "weights", "classes", "intercept", "link", "check_rows", "check_scores",
    "calibration", "calibration_slope", "calibration_offset", "calibration_starts", "calibration_scores",
    "calibration_probabilities",
)  # fmt: skip


def write(arrays, path):
    """Write the arrays as a JSON object.

    Parameters
    ----------
    arrays : dict of str to array
        From `tables.model_arrays`; finite but for infinite ranges and the NaN of unused edges.
    path : path-like
        Target.
    """
    document = {"format": "linadd-json", "format_version": int(arrays["format_version"])}
    document |= {name: arrays[name].tolist() for name in WHOLE if name in arrays}
    document["features"] = [feature_object(arrays, j) for j in range(len(arrays["coef"]))]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, allow_nan=False)


def feature_object(arrays, j):
    """What concerns feature j."""
    feature = {"name": str(arrays["feature_names"][j])} if "feature_names" in arrays else {}
    feature |= {name: arrays[name][j].tolist() for name in BY_FEATURE if name in arrays}
    for end in ("lower", "upper"):
        if np.isinf(feature[end]):
            feature[end] = None
    if "edges" in arrays and not np.isnan(arrays["edges"][j, 0]):
        feature["edges"] = arrays["edges"][j, : arrays["n_bins"][j] + 1].tolist()
    return feature


def read(path):
    """Read the object back into the arrays it was made from.

    Parameters
    ----------
    path : path-like
        A file that `write` made.

    Returns
    -------
    dict of str to array
        As `tables.model_arrays` gives them.
    """
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    features = document["features"]
    arrays = {"format": np.array("linadd-arrays"), "format_version": np.array(document["format_version"])}
    arrays |= {name: np.array(document[name]) for name in WHOLE if name in document}
    arrays |= {name: np.array([feature[name] for feature in features]) for name in BY_FEATURE if name in features[0]}
    arrays["coef"] = arrays["coef"].astype(np.float32)
    for end, infinite in (("lower", -np.inf), ("upper", np.inf)):
        arrays[end] = np.array([infinite if value is None else value for value in arrays[end]])
    if "name" in features[0]:
        arrays["feature_names"] = np.array([feature["name"] for feature in features])
    own = [feature.get("edges", []) for feature in features]
    if any(own):
        arrays["edges"] = np.full((len(own), max(map(len, own))), np.nan)
        for j, edges in enumerate(own):
            arrays["edges"][j, : len(edges)] = edges
    return arrays
