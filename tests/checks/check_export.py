"""Laws that every entry of EXPORTERS obeys for a model."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from linadd.export import EXPORTERS, export_model
from linadd.export import json as export_json
from linadd.export.c_code import COMPILERS
from linadd.export.tables import model_arrays
from linadd.model_file import score_difference

DOCS = Path(__file__).parents[2] / "docs"
# Every kind of export with each of its options: a new entry is tested as soon as it is in the list.
CASES = [
    (to, {name: value} if value else {})
    for to, exporter in EXPORTERS.items()
    for name, values in [("", ("",)), *exporter.options.items()]
    for value in values
]
SCORERS = {"score.py": [sys.executable], "score.js": ["node"]}  # of docs/, which read the JSON export


def skip_without_programs(to):
    """Skip where the program that an export is checked by is not there."""
    if to == "c" and not any(map(shutil.which, COMPILERS)):
        pytest.skip(f"no C compiler: {', '.join(COMPILERS)}")
    if to == "onnx":
        pytest.importorskip("onnxruntime")
    if to == "liblinear":
        pytest.importorskip("liblinear")


def check_export_is_verified(model, to, options, folder):
    """The report agrees with the files, which are the only ones there; writing them twice gives the same bytes."""
    skip_without_programs(to)
    exporter = EXPORTERS[to]
    path = folder / f"model{exporter.suffix}"
    report = export_model(model, path, to, **options)
    assert report == {
        "path": str(path),
        "to": to,
        "files": sorted(str(folder / name) for name in os.listdir(folder)),
        "n_check_rows": 32,
        "difference": report["difference"],
        "tolerance": report["tolerance"],
        "label_flips": 0,
    }
    assert str(path) in report["files"]
    assert report["difference"] <= report["tolerance"]
    content = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    export_model(model, path, to, **options)
    assert content == {name: (folder / name).read_bytes() for name in os.listdir(folder)}


def check_export_scores_like_the_model(model, to, options, X, folder):
    """The files alone score rows X as the model does, in the place of the check rows."""
    skip_without_programs(to)
    exporter = EXPORTERS[to]
    path = folder / f"model{exporter.suffix}"
    X = X.astype(options.get("dtype", np.float64)).astype(np.float64)
    expected = model.decision_function(X)
    arrays = model_arrays(model) | {"check_rows": X, "check_scores": expected}
    exporter.write(arrays, path, **options)
    scores = exporter.score(path, X, **options)
    assert scores.shape == expected.shape and np.isfinite(expected).all()
    assert score_difference(scores, expected) <= exporter.tolerance(arrays, **options)


def check_documented_scorer_scores_like_the_model(model, scorer, X, folder):
    """A program of docs/ gives the model's scores from the JSON export."""
    if shutil.which(SCORERS[scorer][0]) is None:
        pytest.skip(f"{SCORERS[scorer][0]} is not installed")
    path = folder / "model.json"
    export_json.write(model_arrays(model), path)
    command = [*SCORERS[scorer], DOCS / scorer, path]
    run = subprocess.run(command, input=json.dumps(X.tolist()), capture_output=True, text=True, check=True)
    assert score_difference(np.array(json.loads(run.stdout)), model.decision_function(X)) <= 1e-12
