"""`linadd export`: the files that the library writes, and its refusals."""

from dataclasses import replace

import numpy as np
import pytest

from linadd.export import EXPORTERS
from linadd.export import json as export_json
from linadd.models import load_model
from linadd.score import decision_function
from tests.checks.check_export import skip_without_programs
from tests.cli.conftest import rows_and_labels, write_h5


@pytest.mark.parametrize("kind", EXPORTERS)
def test_an_export_gives_the_scores_of_the_model(kind, linadd, model, tmp_path):
    skip_without_programs(kind)
    out = tmp_path / f"m{EXPORTERS[kind].suffix}"
    record = linadd("export", model, out, "--to", kind, "--json").record
    assert (record["to"], record["model"], record["path"], record["label_flips"]) == (kind, str(model), str(out), 0)
    assert record["files"] == sorted(map(str, tmp_path.iterdir()))
    run = linadd("export", model, out, "--to", kind)
    check = f"32 check rows differ by at most {record['difference']:.1e} of the largest score"
    assert (run.status, run.out) == (0, f"{out}: {kind} export of {model}, {check}\n")


@pytest.mark.parametrize(
    ("out", "to", "flags", "difference"),
    [("m.onnx", "onnx", "--dtype float32", 1e-5), ("m.c", "c", "--quantised int8", 1)],
)
def test_options_of_a_kind_reach_it(out, to, flags, difference, linadd, model, tmp_path):
    skip_without_programs(to)
    record = linadd("export", model, tmp_path / out, "--to", to, *flags.split(), "--json").record
    assert 1e-9 < record["difference"] <= record["tolerance"] <= difference


def test_a_range_policy_goes_into_the_export(linadd, model, tmp_path):
    assert linadd("export", model, tmp_path / "m.json", "--to", "json", "--range", "linear").status == 0
    X = np.random.default_rng(0).uniform(-2, 2, (50, 3))
    expected = replace(load_model(model), range_policy="linear").decision_function(X)
    np.testing.assert_allclose(decision_function(export_json.read(tmp_path / "m.json"), X), expected, atol=1e-12)


def test_rows_of_a_file_are_encoded_for_liblinear(linadd, data, model, tmp_path):
    liblinearutil = pytest.importorskip("liblinear.liblinearutil")
    out = tmp_path / "m.model"
    run = linadd("export", model, out, "--to", "liblinear", "--rows", data / "test.h5", "--json")
    assert run.record["files"] == [str(tmp_path / f"m.{end}") for end in
                                   ("check.libsvm", "check.scores", "model", "rows.libsvm")]  # fmt: skip
    X, y = rows_and_labels(200, seed=1)
    X[0, 0] = 7.5
    labels, codes = liblinearutil.svm_read_problem(str(tmp_path / "m.rows.libsvm"))
    assert labels == y.tolist()
    found, _, scores = liblinearutil.predict(labels, codes, liblinearutil.load_model(str(out)), "-q")
    loaded = load_model(model)
    assert found == loaded.predict(X).tolist()
    np.testing.assert_allclose(scores, loaded.decision_function(X), rtol=1e-10, atol=1e-10)


def test_flipped_labels_are_told(linadd, model, tmp_path, monkeypatch):
    """A score within the tolerance, on the other side of zero."""
    def flipped(path, X):
        scores = EXPORTERS["npz"].score(path, X)
        return np.where(np.abs(scores) < 0.5, -1e-3 * np.sign(scores), scores)

    monkeypatch.setitem(EXPORTERS, "json", EXPORTERS["npz"]._replace(
        suffix=".json", score=flipped, tolerance=lambda arrays: 1.0
    ))  # fmt: skip
    run = linadd("export", model, tmp_path / "m.json", "--to", "json", "--json")
    n_flips = run.record["label_flips"]
    assert n_flips > 0
    text = linadd("export", model, tmp_path / "m.json", "--to", "json").out
    assert text.endswith(f" of the largest score, {n_flips} of them change their class\n")


@pytest.mark.parametrize(
    ("out", "to", "flags", "message"),
    [
        ("m.npz", "pickle", "", "export: 'pickle' is not one of npz, json, onnx, c, liblinear."),
        ("m.json", "npz", "", "m.json: the export 'npz' is a *.npz file. Give the name that suffix."),
        ("m.npz", "npz", "--dtype float32", "export: 'npz' takes no option 'dtype'. It is for onnx."),
        ("m.onnx", "onnx", "--dtype float16", "dtype: 'float16' is not one of float64, float32."),
        ("m.c", "c", "--quantised int4", "quantised: 'int4' is not one of int16, int8."),
        ("m.npz", "npz", "--range wrap", "range: 'wrap' is not one of clamp, error, report, linear."),
    ],
)
def test_a_usage_error_is_one_line_and_2(out, to, flags, message, linadd, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = linadd("export", model, out, "--to", to, *flags.split())
    assert (run.status, run.err) == (2, f"error: {message}\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flags", ["--range clamp", "--dtype float32"])
def test_a_kernel_classifier_has_none_of_the_options(flags, linadd, kernel_model, tmp_path):
    run = linadd("export", kernel_model, tmp_path / "m.onnx", "--to", "onnx", *flags.split())
    name = flags.split()[0]
    assert (run.status, run.err) == (2, f"error: {name}: is for additive models. Leave it out for lspc.\n")


def test_rows_of_other_columns_are_refused(linadd, model, tmp_path):
    rows = write_h5(tmp_path / "rows.h5", X=np.zeros((4, 2)))
    run = linadd("export", model, tmp_path / "m.model", "--to", "liblinear", "--rows", rows)
    message = f"{rows}: has 2 features, the model {model} has 3. Give data of the same columns."
    assert (run.status, run.err) == (1, f"error: {message}\n")


def test_the_model_itself_is_not_overwritten(linadd, model, tmp_path):
    path = tmp_path / "m.npz"
    path.write_bytes(model.read_bytes())
    run = linadd("export", path, path, "--to", "npz")
    assert (run.status, run.err) == (2, f"error: {path}: would be overwritten while it is read. Give another name.\n")
