"""`linadd search`: keys, table, choice and exit statuses."""

import json
import sys

import pytest

from linadd.interrupt import StopRequest
from linadd.models import load_model
from tests.cli.test_train import KEYS

FAST = ["--n-bins", "4", "--knots", "uniform", "--C", "0.1,1", "--folds", "2"]


def test_json_has_best_and_table_beside_the_keys_of_train(linadd, data, tmp_path):
    out = tmp_path / "m.safetensors"
    run = linadd("search", data / "train.h5", out, *FAST, "--degree", "1,0", "--json", "--metric", "auc")
    record = run.record
    assert run.status == 0 and record.keys() >= KEYS | {"best", "table"}
    settings = [(row["C"], row["n_bins"], row["degree"], row["penalty_order"]) for row in record["table"]]
    assert settings == [(C, 4, degree, 1) for degree in (0, 1) for C in (0.1, 1)]
    for row in record["table"]:
        assert 0 <= row["error"] <= 1 and 0 <= row["auc"] <= 1 and row["log_loss"] > 0 and 0 <= row["gap"] <= 1e-3
        assert [fold["fold"] for fold in row["folds"]] == [1, 2] and sum(fold["n_rows"] for fold in row["folds"]) == 300
    best = max(record["table"], key=lambda row: row["auc"])
    assert best.items() >= record["best"].items() and list(record["best"]) == ["C", "n_bins", "degree", "penalty_order"]
    model = load_model(out)
    assert model.options.items() >= record["best"].items()
    assert model.summary["search"]["table"] == record["table"]
    assert (record["metric"], record["one_se"], record["search_interrupted"]) == ("auc", False, False)
    assert record["search_reads"] > 5 and record["search_seconds"] > 0


def test_people_get_a_table_and_the_lines_of_train(linadd, data, tmp_path):
    run = linadd("search", data / "train.h5", tmp_path / "m.safetensors", *FAST, "--one-se")
    header, *rows, blank, chosen, _, shape, _, _ = run.out.splitlines()
    table = load_model(tmp_path / "m.safetensors").summary["search"]
    assert header.split() == ["C", "n_bins", "error", "auc", "log_loss", "gap"] and len(rows) == 2 and blank == ""
    best = table["best"]
    for text, row in zip(rows, table["table"], strict=True):
        cells = ["*"] if row["C"] == best["C"] else []
        cells += [f"{row['C']:g}", "4", f"{row['error']:.4%} +- {row['error_deviation']:.4%}"]
        cells += [f"{row[name]:.6f} +- {row[name + '_deviation']:.6f}" for name in ("auc", "log_loss")]
        assert text.split() == " ".join([*cells, f"{row['gap']:.1e}"]).split() and len(text) == len(header)
    rule = "the most regularised within one standard error of the best by error"
    assert chosen == f"chosen: C {best['C']:g}, n_bins 4 ({rule})"
    assert shape == f"{tmp_path}/m.safetensors: 300 rows, 3 features, 2 classes"
    opening, setting, first, *_ = run.err.splitlines()
    assert opening == f"{data}/train.h5: 300 rows of 3 features (float32)"
    assert setting == "setting 1 of 1: n_bins 4, degree 1, penalty_order 1" and first.startswith("pass 1, ")
    assert f"training the chosen setting on all rows: C {best['C']:g}, n_bins 4, degree 1, penalty_order 1" in run.err


def test_one_fold_has_no_deviation_and_hinge_loss_no_log_loss(linadd, data, tmp_path):
    run = linadd("search", data / "train.h5", tmp_path / "m.safetensors", *FAST, "--loss", "hinge", "--folds", 1)
    header, first, *_ = run.out.splitlines()
    assert header.split() == ["C", "n_bins", "error", "auc", "gap"] and "+-" not in run.out
    assert len(first.replace("*", "").split()) == 5


def test_a_config_file_gives_lists(linadd, data, tmp_path):
    (tmp_path / "c.toml").write_text('C = [0.1, 2]\nn-bins = "3,4"\nfolds = 2\nknots = "uniform"\n')
    run = linadd("search", data / "train.h5", tmp_path / "m.safetensors", "--config", tmp_path / "c.toml", "--json")
    assert [(row["C"], row["n_bins"]) for row in run.record["table"]] == [(C, b) for b in (3, 4) for C in (0.1, 2)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--C", "0.1,x"], "Invalid value for '-C' / '--C': 'x' is not a number. See `linadd search --help`."),
        (["--n-bins", "2.5"], "n_bins: 2.5 is not an integer."),
        (["--degree", "1,1"], "degree: 1 is given twice."),
        (["--metric", "f1"], "metric: 'f1' is not one of error, auc, log_loss."),
        (
            ["--folds", "1", "--one-se"],
            "one_se: a single fold (n_folds=1) has no standard error. Use at least 2 folds.",
        ),
        (
            ["--encoder", "fourier", "--degree", "1"],
            "--degree: the encoder fourier has no such option. It takes --n-harmonics, --penalty-order.",
        ),
    ],
)
def test_usage_errors(linadd, data, tmp_path, arguments, message):
    run = linadd("search", data / "train.h5", tmp_path / "m.safetensors", *arguments)
    assert run.status == 2 and run.err.splitlines()[-1] == f"error: {message}"
    assert not (tmp_path / "m.safetensors").exists()


def test_ctrl_c_ends_the_search_and_trains_the_best_so_far(linadd, data, tmp_path, monkeypatch):
    class Pressed(StopRequest):
        """Ctrl-C is pressed once, as the first of the two parts begins."""

        n = 0

        def __enter__(self):
            Pressed.n += 1
            super().__enter__()
            if Pressed.n == 1:
                self.handle(2, None)
            return self

    monkeypatch.setattr(sys.modules["linadd.cli.search"], "StopRequest", Pressed)
    run = linadd("search", data / "train.h5", tmp_path / "m.safetensors", *FAST, "--degree", "0,1", "--json")
    assert run.status == 3 and Pressed.n == 2
    assert run.record["search_interrupted"] and not run.record["interrupted"] and run.record["converged"]
    # Both settings were on the same stream: the table has them as they were after its first block.
    assert [(row["degree"], row["passes"]) for row in run.record["table"]] == [(0, 1), (0, 1), (1, 1), (1, 1)]
    assert all(row["gap"] > 0 for row in run.record["table"])
    assert load_model(tmp_path / "m.safetensors").options.items() >= run.record["best"].items()
    said = "Stopping the search after this block; the best so far is then trained. Ctrl-C again aborts."
    assert said in run.err.splitlines()


def test_values_of_C_in_turn_are_told_of_one_by_one(linadd, data, tmp_path):
    run = linadd("search", data / "train.h5", tmp_path / "m.safetensors", *FAST, "--sequential", "--degree", "0,1")
    assert run.status == 0
    told = [line for line in run.err.splitlines() if line.startswith(("setting", "C "))]
    settings = [f"setting {k} of 2: n_bins 4, degree {degree}, penalty_order 1" for k, degree in ((1, 0), (2, 1))]
    assert told == [*settings, "C 0.1", "C 1"]
    assert len(load_model(tmp_path / "m.safetensors").summary["search"]["table"]) == 4


def test_a_refit_above_tol_exits_with_3(linadd, data, tmp_path):
    run = linadd("search", data / "train.h5", tmp_path / "m.safetensors", *FAST, "--max-epochs", 1, "--tol", 1e-9)
    assert run.status == 3
    assert json.loads(linadd("inspect", tmp_path / "m.safetensors", "--json").out)
