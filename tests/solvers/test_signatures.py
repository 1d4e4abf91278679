"""One compiled version of each loop: read-only, strided, memory-mapped or one-column arrays must not make a second."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import importlib, json, pkgutil, sys, warnings

import numpy as np

import linadd.solvers
from linadd.solvers.memory import Memory
from tests.solvers.problems import Full, fit, toy

warnings.simplefilter("ignore")
for n_classes in (2, 3, 17):
    X, y = toy(n_rows=200, n_classes=n_classes)
    frozen = X.copy()
    frozen.flags.writeable = False
    choices = {"encoder": sys.argv[1], "max_epochs": 2, "certify": True}
    small = {"memory_limit": 5000}
    for loss in ("hinge", "logistic"):
        for solver in ("dual-cd", "sgd", "newton")[: 2 + (loss == "logistic")]:
            for data in (X, frozen, np.asfortranarray(X)):
                fit(data, y, np.ones(200), loss=loss, solver=solver, **choices)
            if solver != "newton":
                fit(X, y, loss=loss, solver=solver, **choices | small)
        fit(X, y, loss=loss, solver="dual-cd", partial_solutions=2, **choices)
    import linadd.train

    linadd.train.Memory = Full  # all that grows with the rows goes to files
    for solver in ("dual-cd", "sgd", "newton"):
        fit(X, y, solver=solver, **choices)
    linadd.train.Memory = Memory
counts = {}
for info in pkgutil.iter_modules(linadd.solvers.__path__):
    module = importlib.import_module(f"linadd.solvers.{info.name}")
    for name, value in vars(module).items():
        if hasattr(value, "signatures") and value.__module__ == module.__name__:
            counts[f"{info.name}.{name}"] = [str(signature) for signature in value.signatures]
print(json.dumps(counts))
"""


@pytest.mark.parametrize("encoder", ["bspline", "identity"])
def test_every_loop_is_compiled_for_one_signature(encoder):
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", CODE, encoder], cwd=root, capture_output=True, text=True, check=True)
    counts = json.loads(run.stdout)
    assert {name: found for name, found in counts.items() if len(found) > 1} == {}
    # Inlined callees have none of their own; every loop over rows was run.
    assert all(counts[name] for name in ("dual_cd.sweep", "sgd.learn", "sgd.fold", "merging.merge_products"))
    assert all(counts[name] for name in ("stopping.signed_dual_rows", "stopping.class_sums", "row_sums.weigh_rows"))
