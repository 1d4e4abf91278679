"""`linadd inspect`: all that a file holds as JSON, the widest curves and the last epochs for people."""

import numpy as np
import pytest

from linadd.bounds import bound
from linadd.model_file import load_model_file, save_model
from linadd.models import load_model
from tests.cli.conftest import NAMES, rows_and_labels


def test_json_is_the_header_with_sizes_and_curves(linadd, data, model):
    record = linadd("inspect", model, "--json").record
    tensors, header = load_model_file(model)
    assert header.items() <= record.items()
    assert record["tensors"] == {n: {"dtype": a.dtype.name, "shape": list(a.shape)} for n, a in tensors.items()}
    assert (record["n_features"], record["n_basis"], record["n_outputs"]) == (3, 5, 1)
    assert record["bytes"] == model.stat().st_size and record["model"] == str(model)
    assert record["digest"] == load_model(model).digest
    assert record["fingerprint"]["path"] == f"{data}/train.h5"
    X, _ = rows_and_labels()
    assert [each["feature"] for each in record["features"]] == NAMES
    assert [each["lower"] for each in record["features"]] == X.min(axis=0).tolist()
    assert [each["upper"] for each in record["features"]] == X.max(axis=0).tolist()


def test_people_get_the_options_the_curves_and_the_history(linadd, data, model):
    lines = linadd("inspect", model).out.splitlines()
    loaded = load_model(model)
    summary = loaded.summary
    assert lines[0].endswith(f" digest {loaded.digest}")
    assert lines[1:5] == [
        "classes    2: 0, 1",
        "features   3, 5 coefficients each, 1 outputs",
        "encoder    bspline (degree 1, knots uniform, n_bins 4, penalty_order 1)",
        "training   loss logistic, C 1, solver dual-cd, scale unit, intercept free, seed 0",
    ]
    assert lines[5] == (
        f"result     relative duality gap {bound(summary['gap'])}, objective {summary['objective']}, passes "
        f"{summary['passes']}, reads {summary['reads']}"
    )
    assert lines[6] == f"data       300 rows of {data}/train.h5, digest {loaded.fingerprint['digest']}"
    assert lines[8].split() == ["widest", "curves", "from", "to", "span"]
    assert lines[9].split()[0] == "age"  # the labels depend on its square
    curve = loaded.component(0, np.linspace(*loaded.encoder.ranges[0], 101))
    assert float(lines[9].split()[3]) == pytest.approx(np.ptp(curve), rel=1e-3)
    assert lines[13].split() == ["pass", "objective", "gap"]
    assert [line.split()[0] for line in lines[14:]] == [str(k + 1) for k in range(summary["passes"])]
    marks = [line.split()[2][0] for line in lines[14:]]
    assert "~" in marks[:-1] and marks[-1] != "~"  # estimates, and the certificate of the last pass


def test_curves_without_a_range_have_no_span(linadd, data, tmp_path):
    out = tmp_path / "m.safetensors"
    linadd("train", data / "train.h5", out, "--encoder", "identity", "--no-clamp")
    features = linadd("inspect", out, "--json").record["features"]
    assert features[0] == {"feature": "age", "lower": None, "upper": None, "span": None}
    assert "widest" not in linadd("inspect", out).out


def test_a_kernel_classifier_shows_its_header(linadd, kernel_model):
    record = linadd("inspect", kernel_model, "--json").record
    assert record["class"] == "lspc" and record["classes"] == [0, 1] and record["bytes"] == kernel_model.stat().st_size
    assert [each["feature"] for each in record["features"]] == [1, 2, 3]
    lines = linadd("inspect", kernel_model).out.splitlines()
    assert lines[0].endswith(f"digest {load_model(kernel_model).digest}")
    assert lines[1:4] == ["classes    2: 0, 1", "estimator  lspc", "features   3, 2 outputs"]
    assert lines[4].startswith("parameters centers class, cv 5, ")
    assert lines[5] == "result     objective 0.2, 40 basis vectors"


def test_a_file_that_is_not_there_is_named(linadd):
    run = linadd("inspect", "absent")
    message = "absent: cannot be read (No such file or directory). Give a model file that exists."
    assert (run.status, run.err) == (1, f"error: {message}\n")


def test_a_model_of_an_unknown_class_is_named(linadd, tmp_path):
    path = tmp_path / "m.safetensors"
    save_model(path, {"coef": np.ones(2)}, {"class": "forest"})
    run = linadd("inspect", path)
    assert run.status == 1 and run.err.startswith(f"error: {path}: is of class 'forest', this linadd knows additive, ")
