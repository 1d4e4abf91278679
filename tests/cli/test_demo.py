"""`linadd demo`: the tour ends with its files, figures and certificate, and goes on without what is not installed."""

import builtins
import json

import pytest

from linadd.cli.demo import COSTS, Tour
from linadd.cli.terminal import Terminal
from linadd.errors import LinaddError


def test_the_tour(linadd, tmp_path):
    out = tmp_path / "tour"
    run = linadd("demo", "--out", out, "--json")
    record = run.record
    assert run.status == 0
    names = ["digits.h5", "additive.safetensors", "linear.safetensors", "additive.npz", "additive.json", "curves.png"]
    assert record["files"] == [f"{out}/{name}" for name in names]
    assert {path.name for path in out.iterdir()} == set(names)
    for name in ("additive", "linear"):
        assert record[name]["converged"] and record[name]["gap"] <= 1e-3
    assert record["additive"]["test_error"] < min(record["linear"]["test_error"], 0.035)
    plan = json.loads(linadd("inspect", out / "additive.safetensors", "--json").out)["summary"]["plan"]
    assert not plan["fits"] and plan["block_chunks"] * 9 < plan["n_rows"] / plan["chunk_rows"]  # ten blocks a pass
    commands = [line for line in run.err.splitlines() if line.startswith("$ linadd ")]
    assert [command.split()[2] for command in commands] == ["train", "evaluate"] * 2 + ["export"] * 2


@pytest.fixture
def without(monkeypatch):
    """Make an import fail."""

    def hide(package):
        original = builtins.__import__

        def missing(name, *arguments):
            if name.split(".")[0] == package:
                raise ImportError(name)
            return original(name, *arguments)

        monkeypatch.setattr(builtins, "__import__", missing)

    return hide


def test_without_liblinear_one_line_says_so(without, tmp_path, capsys):
    without("liblinear")
    assert Tour(Terminal(), str(tmp_path)).liblinear(None, None) is None
    message = "LIBLINEAR's figures are left out: liblinear-official (needs a C++ compiler) is missing.\n"
    assert capsys.readouterr().err == message


def test_without_matplotlib_one_line_says_so(without, model, tmp_path, capsys):
    (tmp_path / "additive.safetensors").write_bytes(model.read_bytes())
    without("matplotlib")
    assert Tour(Terminal(), str(tmp_path)).draw() == []
    message = "No picture: plots need matplotlib. Install it by pip install 'linadd[plot]'.\n"
    assert capsys.readouterr().err == message


def test_liblinear_is_asked_for_its_best_cost(tmp_path):
    pytest.importorskip("liblinear.liblinearutil", reason="liblinear-official is not installed")
    tour = Tour(Terminal(is_quiet=True), str(tmp_path))
    result = tour.liblinear(*tour.write_digits())
    assert result["options"] in [f"-s 1 -c {cost:g}" for cost in COSTS]
    assert 0.02 < result["test_error"] < 0.06


def test_a_step_that_fails_ends_the_tour(tmp_path):
    with pytest.raises(LinaddError) as caught:
        Tour(Terminal(is_quiet=True), str(tmp_path)).command("inspect", "absent")
    assert str(caught.value) == "the step `linadd inspect absent` ended with status 1."
