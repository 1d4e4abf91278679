"""Laws that every entry of EXPORTERS obeys for a model."""

import os

import numpy as np

from linadd.export import EXPORTERS, export_model
from linadd.export.tables import model_arrays
from linadd.model_file import score_difference


def check_export_is_verified(model, to, folder):
    """The report agrees with the file, which is the only one there; writing it twice gives the same bytes."""
    exporter = EXPORTERS[to]
    path = folder / f"model{exporter.suffix}"
    report = export_model(model, path, to)
    assert os.listdir(folder) == [path.name]
    assert report == {
        "path": str(path),
        "to": to,
        "n_check_rows": 32,
        "difference": report["difference"],
        "label_flips": 0,
    }
    assert report["difference"] <= exporter.tolerance
    content = path.read_bytes()
    export_model(model, path, to)
    assert path.read_bytes() == content


def check_export_scores_like_the_model(model, to, X, folder):
    """The file alone scores rows as the model does, on check rows and on X."""
    exporter = EXPORTERS[to]
    path = folder / f"model{exporter.suffix}"
    arrays = model_arrays(model)
    exporter.write(arrays, path)
    for rows in (arrays["check_rows"], X):
        scores = exporter.score(path, rows)
        expected = model.decision_function(rows)
        assert scores.shape == expected.shape and np.isfinite(expected).all()
        assert score_difference(scores, expected) <= exporter.tolerance
