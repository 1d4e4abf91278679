"""`linadd plot`: pictures, maps and reports by the suffix, and its refusals."""

import pytest

from linadd.models import load_model
from linadd.shapes import ranking
from tests.cli.conftest import NAMES
from tests.test_report import data_of

NO_GRID = "is not HxW or HxWxC, as 8x8 or 12x6x8. See `linadd plot --help`."

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def test_curves(linadd, model, tmp_path):
    out = tmp_path / "c.png"
    run = linadd("plot", model, "-o", out)
    assert (run.status, run.out) == (0, f"{out}: curves of 3 of 3 features\n")
    assert out.read_bytes().startswith(b"\x89PNG")
    record = linadd("plot", model, "-o", out, "--n-curves", 2, "--features", "*e*", "--json").record
    order = [NAMES[j] for j in ranking(load_model(model))[0]]
    assert (record["kind"], record["path"], record["model"]) == ("curves", str(out), str(model))
    assert record["features"] == order[:2]


def test_maps(linadd, model, tmp_path):
    out = tmp_path / "m.svg"
    run = linadd("plot", model, "-o", out, "--grid", "1x2", "--features", "age", "--features", "d*")
    assert (run.status, run.out) == (0, f"{out}: importances of 2 features over 1 x 2 cells\n")
    assert b"<svg" in out.read_bytes()
    record = linadd("plot", model, "-o", out, "--grid", "1x1x3", "--json").record
    assert record["kind"] == "maps" and record["features"] == NAMES


def test_a_report_with_test_figures(linadd, data, model, tmp_path):
    out = tmp_path / "r.html"
    run = linadd("plot", model, "-o", out)
    assert run.status == 0 and run.out.startswith(f"{out}: report of 3 features, ")
    assert data_of(out)["test"] is None and data_of(out)["maps"] is None
    record = linadd("plot", model, "-o", out, "--grid", "1x3", "--data", data / "test.h5", "--json").record
    expected = linadd("evaluate", model, data / "test.h5", "--json").record
    shown = data_of(out)
    assert record["kind"] == "report" and record["bytes"] == out.stat().st_size and record["n_features"] == 3
    assert shown["test"] == record["test"] and shown["maps"]["width"] == 3
    assert record["test"] == {name: expected[name] for name in record["test"]}
    assert shown["title"] == str(model)


def test_a_report_under_another_range_policy(linadd, data, model, tmp_path):
    arguments = ("plot", model, "-o", tmp_path / "r.html", "--data", data / "test.h5", "--json", "--range")
    assert linadd(*arguments, "error").status == 1
    record = linadd(*arguments, "linear").record
    expected = linadd("evaluate", model, data / "test.h5", "--json", "--range", "linear").record
    assert record["test"]["log_loss"] == expected["log_loss"]
    assert data_of(tmp_path / "r.html")["curves"]["linear"] == [1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "t.h5"], "--data: only a report (.html) shows test figures, and c.png is a picture. Leave it out."),
        (["--grid", "8"], f"Invalid value for '--grid': '8' {NO_GRID}"),
        (["--grid", "0x3"], f"Invalid value for '--grid': '0x3' {NO_GRID}"),
    ],
)
def test_a_usage_error_is_one_line_and_2(arguments, message, linadd, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = linadd("plot", model, "-o", "c.png", *arguments)
    assert (run.status, run.err) == (2, f"error: {message}\n")
    assert not list(tmp_path.iterdir())


def test_a_kernel_classifier_has_no_curves(linadd, kernel_model, tmp_path):
    run = linadd("plot", kernel_model, "-o", tmp_path / "c.png")
    key = load_model(kernel_model).key
    message = f"{kernel_model}: is a kernel classifier ({key}), which has no curves to plot."
    assert (run.status, run.err) == (2, f"error: {message}\n")


@pytest.mark.parametrize(("name", "what"), [("c.png", "plots need"), ("r.html", "a report needs")])
def test_a_model_of_liblinear_has_no_curves(name, what, linadd, tmp_path):
    (tmp_path / "m.model").write_text("solver_type L2R_LR\nnr_class 2\nlabel 1 0\nnr_feature 2\nbias -1\nw\n0.5\n-1\n")
    run = linadd("plot", tmp_path / "m.model", "-o", tmp_path / name)
    message = f"{what} curves with a training range; this model does not clamp its features."
    assert (run.status, run.err) == (2, f"error: {message}\n")


def test_the_model_itself_is_not_overwritten(linadd, model):
    run = linadd("plot", model, "-o", model)
    assert (run.status, run.err) == (2, f"error: {model}: would be overwritten while it is read. Give another name.\n")
