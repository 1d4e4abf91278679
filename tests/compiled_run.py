"""Run in a fresh interpreter: train small models, print their scores and how often each loop was compiled, as JSON.

    python tests/compiled_run.py FOLDER

The models take every path through the compiled code of the additive trainer: one output and lanes, local and dense
bases, knots, one register and more, partial solutions, rows that stay in memory and rows that are read again; from
float64, uint8 and read-only arrays. FOLDER receives a model file.
"""

import inspect
import json
import sys
import warnings
from pathlib import Path

import numpy as np

from linadd import load_model
from linadd._jit import JIT_DISABLED
from linadd.options import Options
from linadd.sources import open_source
from linadd.train import train

N_ROWS, N_FEATURES = 60, 3
RUNS = [
    {"loss": "hinge"},
    {"loss": "logistic", "degree": 3, "knots": "quantile", "partial_solutions": 2},
    {"loss": "squared_hinge", "n_bins": 20, "degree": 2, "memory_limit": 2000, "training_chunk": 10},
    {"loss": "hinge", "encoder": "fourier", "n_harmonics": 3},
    {"loss": "logistic", "encoder": "hermite"},
    {"loss": "squared_hinge", "encoder": "identity", "intercept": "penalised"},
    {"loss": "logistic", "solver": "sgd"},
    {"loss": "squared_hinge", "solver": "newton"},
]


def data(n_classes):
    """Rows of whole numbers, and labels that depend on them."""
    rng = np.random.default_rng(n_classes)
    X = rng.integers(0, 200, size=(N_ROWS, N_FEATURES)).astype(np.float64)
    X[:20, 0] = 0
    return X, (X.sum(axis=1) + rng.normal(size=N_ROWS) * 20).argsort().argsort() * n_classes // N_ROWS


def scores(X, y, options, folder):
    """Decisions of a model trained for two passes, after a way through its file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two passes do not converge
        model = train(open_source(X, y), Options(**{"solver": "dual-cd", "max_epochs": 2, "seed": 3, **options}))
    model.save(Path(folder) / "model.safetensors")
    return load_model(Path(folder) / "model.safetensors").decision_function(X)


def signatures():
    """Name of each compiled function of linadd -> the names of its arguments, and their types in each version."""
    found = {}
    for name, module in list(sys.modules.items()):
        for key, value in vars(module).items() if name.startswith("linadd.") else ():
            if hasattr(value, "signatures") and value.py_func.__module__ == name:
                arguments = list(inspect.signature(value.py_func).parameters)
                found[f"{name}.{key}"] = arguments, [str(signature) for signature in value.signatures]
    return found


def main(folder):
    """Print the result."""
    decisions = []
    for options in RUNS:
        for n_classes in (2, 3):
            X, y = data(n_classes)
            read_only = X.copy()
            read_only.flags.writeable = False
            variants = [X] if JIT_DISABLED else [X, read_only, X.astype(np.uint8)]
            trained = [scores(rows, y, options, folder) for rows in variants]
            for other in trained[1:]:
                np.testing.assert_array_equal(trained[0], other)
            decisions.append(trained[0].tolist())
    print(json.dumps({"decisions": decisions, "signatures": signatures()}))


if __name__ == "__main__":
    main(sys.argv[1])
