"""Write the golden model files of this format version; run by hand, once, when a version is released.

    python tests/golden/make.py

Each file is a model as that version of linadd trained and saved it, on 60 made-up rows; `expected-vN.json` holds its
scores of rows inside and outside the training ranges. The files are never written again: a later linadd must load them
and find the same scores. A new format version, or a new group of models, gets new files beside the old ones.
"""

import json
import warnings
from pathlib import Path

import numpy as np

from linadd.errors import ConvergenceWarning, DataWarning
from linadd.model_file import FORMAT_VERSION
from linadd.options import Options
from linadd.sources import open_source
from linadd.train import train

FOLDER = Path(__file__).parent
PLAIN = {
    "bspline-uniform": ("text", {"degree": 3, "n_bins": 4, "knots": "uniform", "penalty_order": 2}),
    "bspline-quantile": ("three", {"degree": 1, "n_bins": 6, "knots": "quantile", "loss": "squared_hinge"}),
    "fourier": ("two", {"encoder": "fourier", "n_harmonics": 3}),
    "hermite": ("two", {"encoder": "hermite", "n_terms": 4, "loss": "hinge"}),
    "identity": ("two", {"encoder": "identity"}),
    "identity-unclamped": ("three", {"encoder": "identity", "clamp": False}),
}
CALIBRATED = {
    "calibrated-sigmoid": ("three", {"loss": "hinge", "calibrate": "sigmoid", "seed": 1}),
    "calibrated-isotonic": ("text", {"loss": "squared_hinge", "calibrate": "isotonic", "seed": 1}),
}
GROUPS = {"": PLAIN, "-calibrated": CALIBRATED}


def rows_and_labels():
    """A spike, a time stamp, a constant and an even feature; two classes, three classes, two classes by name."""
    rng = np.random.default_rng(0)
    spike, time = np.maximum(rng.standard_normal(60), 0), 1.6e9 + rng.random(60)
    X = np.stack([spike, time, np.full(60, 2.0), rng.uniform(-1, 1, 60)], axis=1)
    three = (X[:, 0] + X[:, 3] > 0).astype(int) + (X[:, 3] > 0.5)
    two = np.minimum(three, 1)
    return X, {"three": three, "two": two * 2 - 1, "text": np.array(["no", "yes — é"])[two]}


def scored_rows(X):
    """Training rows, their ends, and rows beyond the ranges."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.concatenate([X[:8], [low, high, low - 1, high + 1]])


def main():
    """Write the groups that are not there yet."""
    warnings.simplefilter("ignore", DataWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for group, models in GROUPS.items():
        path = FOLDER / f"expected-v{FORMAT_VERSION}{group}.json"
        if not path.exists():
            path.write_text(json.dumps(write_group(models)) + "\n", "utf-8")


def write_group(models):
    """Train and save the models of a group; returns their scores."""
    X, labels = rows_and_labels()
    rows = scored_rows(X)
    expected = {"rows": rows.tolist(), "models": {}}
    for name, (kind, options) in models.items():
        model = train(open_source(X, labels[kind]), Options(max_epochs=20, **options))
        file = f"{name}-v{FORMAT_VERSION}.safetensors"
        model.save(FOLDER / file)
        expected["models"][file] = {
            "scores": model.decision_function(rows).tolist(),
            "labels": model.predict(rows).tolist(),
            "gap": model.summary["gap"],
        }
        if model.calibration is not None:
            expected["models"][file]["probabilities"] = model.predict_proba(rows).tolist()
    return expected


if __name__ == "__main__":
    main()
