"""Train, export the weights as npz and as json, and score with NumPy alone: copy from here into your own program.

    python scripts/export_weights.py                               # scikit-learn's digits
    python scripts/export_weights.py train.h5 --out weights        # a file of yours, read out of core

The two functions between the lines are all that a deployment needs: no linadd, no pickle, no training stack. They score
linear B-splines (`--degree 1`, the default of linadd); `linadd/score.py` has every encoder.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from linadd import AdditiveClassifier, load_model, open_source
from linadd.export import export_model

# ----------------------------------------------------------------------------------------------------------------------


def scores(model, X):
    """Scores (n_rows, n_outputs) of rows X, from the arrays of an export (their names: `linadd/export/tables.py`)."""
    x = np.clip(X.astype(np.float64), model["lower"], model["upper"])
    u = (x - model["origin"]) * model["inverse"]  # uniform bins: u runs from 0 to n_bins
    for j, edges in enumerate(model.get("edges", [])):
        if len(edges) and not np.isnan(edges[0]):  # this feature has knots of its own
            edges = edges[: model["n_bins"][j] + 1]
            k = np.searchsorted(edges, x[:, j], side="right") - 1
            width = np.append(np.diff(edges), 1)[k]
            u[:, j] = np.where(edges[k - 1] == x[:, j], k - 0.5, k + (x[:, j] - edges[k]) / width)
    k = np.minimum(u.astype(int), model["n_bins"] - 1)  # the bin, and how far x lies in it
    t = (u - k)[:, :, None]
    feature = np.arange(X.shape[1])
    left, right = model["coef"][feature, k], model["coef"][feature, k + 1]
    return ((1 - t) * left + t * right).sum(axis=1) + model["intercept"]


def arrays_of_json(path):
    """The same arrays from the JSON export."""
    document = json.loads(Path(path).read_text("utf-8"))
    features = document["features"]
    model = {name: np.array(document[name]) for name in ("classes", "intercept", "check_rows", "check_scores")}
    for name in ("lower", "upper", "origin", "inverse", "n_bins", "coef"):
        model[name] = np.array([feature[name] for feature in features])
    return model | {"edges": [np.array(feature.get("edges", [])) for feature in features]}


# ----------------------------------------------------------------------------------------------------------------------


def labels(model, decision):
    """Two classes: the second where the score is positive. More: the class of the largest score."""
    index = (decision[:, 0] > 0).astype(int) if decision.shape[1] == 1 else decision.argmax(axis=1)
    return model["classes"][index]


def digits():
    """The bundled example: 1,797 images of 8 x 8 pixels, ten classes."""
    from sklearn.datasets import load_digits

    return open_source(*load_digits(return_X_y=True))


def main():
    """Train, export twice, and compare the plain scores with the model's on every row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="labelled rows in any format that linadd reads; digits if not given")
    parser.add_argument("--out", type=Path, default=Path("weights"), help="folder for the model and its exports")
    arguments = parser.parse_args()
    source = open_source(arguments.file) if arguments.file else digits()
    arguments.out.mkdir(parents=True, exist_ok=True)

    AdditiveClassifier(degree=1, n_bins=10).fit(source).save(arguments.out / "model.safetensors")
    model = load_model(arguments.out / "model.safetensors")
    exports = {}
    for to, read in {"npz": lambda path: dict(np.load(path)), "json": arrays_of_json}.items():
        report = export_model(model, arguments.out / f"model.{to}", to)  # an error if the file scores otherwise
        print(f"{report['path']}: {report['n_check_rows']} check rows within {report['difference']:.1e}")
        exports[to] = read(report["path"])

    n_right, largest = 0, dict.fromkeys(exports, 0.0)
    for chunk in source.chunks():  # never the whole file in memory
        X = chunk.dense()
        expected = model.decision_function(X)
        for to, arrays in exports.items():
            decision = scores(arrays, X)
            largest[to] = max(largest[to], float(np.abs(decision - expected).max() / np.abs(expected).max()))
        n_right += int(np.count_nonzero(labels(arrays, decision) == chunk.y))
    for to, difference in largest.items():
        print(f"{to}: scores of {source.n_rows} rows differ from the model's by {difference:.1e} of the largest")
    print(f"accuracy on the training rows: {n_right / source.n_rows:.4f}")
    return 0 if max(largest.values()) < 1e-12 else 1


if __name__ == "__main__":
    sys.exit(main())
