"""`linadd export`: the file that the library writes, and its refusals."""

import numpy as np
import pytest

from linadd.export import EXPORTERS
from linadd.models import load_model


@pytest.mark.parametrize("kind", EXPORTERS)
def test_an_export_gives_the_scores_of_the_model(kind, linadd, model, tmp_path):
    out = tmp_path / f"m.{kind}"
    run = linadd("export", model, out, "--to", kind)
    assert run.status == 0
    rows = np.random.default_rng(0).uniform(-2, 2, (50, 3))
    expected = load_model(model).decision_function(rows)
    assert EXPORTERS[kind].score(out, rows) == pytest.approx(expected, abs=1e-12)
    record = linadd("export", model, out, "--to", kind, "--json").record
    assert (record["to"], record["model"], record["path"], record["label_flips"]) == (kind, str(model), str(out), 0)
    check = f"32 check rows differ by at most {record['difference']:.1e} of the largest score"
    assert run.out == f"{out}: {kind} export of {model}, {check}\n"


@pytest.mark.parametrize(
    ("out", "to", "message"),
    [
        ("m.npz", "onnx", "export: 'onnx' is not one of npz, json."),
        ("m.json", "npz", "m.json: the export 'npz' is a *.npz file. Give the name that suffix."),
    ],
)
def test_a_usage_error_is_one_line_and_2(out, to, message, linadd, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = linadd("export", model, out, "--to", to)
    assert (run.status, run.err) == (2, f"error: {message}\n")
    assert not list(tmp_path.iterdir())


def test_the_model_itself_is_not_overwritten(linadd, model, tmp_path):
    path = tmp_path / "m.npz"
    path.write_bytes(model.read_bytes())
    run = linadd("export", path, path, "--to", "npz")
    assert (run.status, run.err) == (2, f"error: {path}: would be overwritten while it is read. Give another name.\n")
