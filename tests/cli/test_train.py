"""`linadd train`: figures, options that reach the trainer, exit statuses, and one line for everything that is wrong."""

import fcntl
import json

import numpy as np
import pytest

from linadd.bounds import bound
from linadd.models import load_model
from tests.cli.conftest import rows_and_labels, write_h5, write_libsvm

KEYS = {
    "objective", "dual_objective", "gap", "gaps", "converged", "passes", "reads", "n_rows", "n_features", "classes",
    "seconds", "peak_memory_bytes", "model", "seed",
}  # fmt: skip


def test_json_has_the_keys_of_the_contract(linadd, data, tmp_path):
    out = tmp_path / "m.safetensors"
    run = linadd("train", data / "train.h5", out, "--json", "--seed", 3)
    assert run.status == 0 and run.out.count("\n") == 1
    record = run.record
    assert record.keys() >= KEYS
    assert record["converged"] and 0 <= record["gap"] <= 1e-3 and record["gaps"] == [record["gap"]]
    assert record["dual_objective"] <= record["objective"]
    assert (record["n_rows"], record["n_features"], record["classes"], record["seed"]) == (300, 3, [0, 1], 3)
    assert record["model"] == str(out) and record["digest"] == load_model(out).digest and record["warnings"] == []
    assert 50e6 < record["peak_memory_bytes"] < 5e9


def test_people_get_three_lines_and_the_log_a_line_an_epoch(linadd, data, tmp_path):
    run = linadd("train", data / "train.h5", tmp_path / "m.safetensors")
    summary = load_model(tmp_path / "m.safetensors").summary
    first, second, third = run.out.splitlines()
    assert first == f"{tmp_path}/m.safetensors: 300 rows, 3 features, 2 classes"
    gap = f"relative duality gap {bound(summary['gap'])} (within tol 0.001)"
    assert second == f"objective {summary['objective']:.8g}, {gap}"
    assert third.startswith(f"{summary['passes']} passes, {summary['reads']} reads, ") and "peak memory" in third
    lines = run.err.splitlines()
    assert lines[0] == f"{data}/train.h5: 300 rows of 3 features (float32)"
    epochs = [line for line in lines if line.startswith("pass ")]
    assert [line.split(",")[0] for line in epochs] == [f"pass {k + 1}" for k in range(summary["passes"])]


def test_quiet_leaves_stderr_empty(linadd, data, tmp_path):
    assert linadd("train", data / "train.h5", tmp_path / "m.safetensors", "--quiet").err == ""


def test_every_option_reaches_the_model(linadd, data, tmp_path):
    arguments = (
        "--n-bins 5 --degree 2 --penalty-order 2 --knots quantile --scale none --no-center --intercept penalised "
        "--intercept-scale 2 --loss squared_hinge -C 0.5 --class-weight 0=1,1=2.5 --tol 0.01 --max-epochs 9 "
        "--memory-limit 3MB --training-chunk 70 --partial-solutions 2 --seed 4 --threads 2"
    )
    linadd("train", data / "train.h5", tmp_path / "m.safetensors", *arguments.split())
    options = load_model(tmp_path / "m.safetensors").options
    expected = {
        "n_bins": 5, "degree": 2, "penalty_order": 2, "knots": "quantile", "scale": "none", "center": False,
        "intercept": "penalised", "intercept_scale": 2.0, "loss": "squared_hinge", "C": 0.5,
        "class_weight": {"0": 1.0, "1": 2.5}, "tol": 0.01, "max_epochs": 9, "memory_limit": 3_000_000,
        "training_chunk": 70, "partial_solutions": 2, "seed": 4, "n_jobs": 2,
    }  # fmt: skip
    assert {name: options[name] for name in expected} == expected


def test_a_config_file_gives_options_and_the_command_line_wins(linadd, data, tmp_path):
    config = tmp_path / "options.toml"
    config.write_text(
        'n-bins = 5\nC = 2\nthreads = 2\ncenter = false\nmemory_limit = "2MB"\nloss = "hinge"\n'
        '[class_weight]\n1 = 3\n[where]\npart = [0, 1]\n'
    )
    linadd("train", data / "train.h5", tmp_path / "m.safetensors", "--config", config, "-C", "0.25")
    model = load_model(tmp_path / "m.safetensors")
    expected = {
        "n_bins": 5, "C": 0.25, "n_jobs": 2, "center": False, "memory_limit": 2_000_000, "loss": "hinge",
        "class_weight": {"1": 3},
    }  # fmt: skip
    assert {name: model.options[name] for name in expected} == expected
    assert model.summary["n_rows"] == 200


def test_rows_labels_and_weights_are_taken_by_name(linadd, data, tmp_path):
    X, y = rows_and_labels()
    other = write_h5(tmp_path / "other.h5", F=X, t=1 - y, v=np.full(300, 2.0))
    arguments = ("--x", "F", "--y", "t", "--weights", "v", "-C", "0.5", "--json")
    named = linadd("train", other, tmp_path / "a.safetensors", *arguments).record
    plain = linadd("train", data / "train.h5", tmp_path / "b.safetensors", "--json").record
    assert named["objective"] == pytest.approx(plain["objective"], rel=1e-3)  # both within the gap of one optimum
    part = linadd("train", data / "train.h5", tmp_path / "c.safetensors", "--where", "part=0,2", "--json").record
    assert part["n_rows"] == 200


@pytest.mark.parametrize("form", ["npy", "npz", "libsvm"])
def test_the_same_values_in_another_format_give_the_same_model(form, linadd, data, tmp_path):
    X, y = rows_and_labels()
    arguments = ["--json"]
    if form == "libsvm":
        path = write_libsvm(tmp_path / "rows.libsvm", X, y)
    elif form == "npz":
        path = tmp_path / "rows.npz"
        np.savez(path, X=X, y=y)
    else:
        path = tmp_path / "rows.npy"
        np.save(path, X)
        np.save(tmp_path / "labels.npy", y)
        arguments += ["--y", "labels.npy"]
    record = linadd("train", path, tmp_path / "m.safetensors", *arguments).record
    linadd("train", data / "train.h5", tmp_path / "h.safetensors")
    model = load_model(tmp_path / "h.safetensors")
    assert record["gap"] == model.summary["gap"]
    assert (load_model(tmp_path / "m.safetensors").coef == model.coef).all()


def test_stopped_before_tolerance_is_3_with_the_model_and_the_gap(linadd, data, tmp_path):
    out = tmp_path / "m.safetensors"
    run = linadd("train", data / "train.h5", out, "--tol", "1e-9", "--max-epochs", "2", "--json")
    gap = load_model(out).summary["gap"]
    text = (
        f"stopped after 2 passes at a relative duality gap of {bound(gap)}, above tol=1e-09. Raise max_epochs, "
        "lower C=1, or accept it by a larger tol."
    )
    assert run.status == 3
    assert f"\nwarning: {text}\n" in run.err and run.record["warnings"] == [text]
    assert run.record["gap"] == gap and not run.record["converged"]


def test_a_solver_without_certificate_is_done_after_its_epochs(linadd, data, tmp_path):
    run = linadd("train", data / "train.h5", tmp_path / "m.safetensors", "--solver", "sgd", "--max-epochs", "2")
    assert run.status == 0
    assert run.out.splitlines()[1] == "no certificate"
    assert linadd("inspect", tmp_path / "m.safetensors").out.splitlines()[5].startswith("result     no certificate, ")


def test_a_gap_above_tol_is_not_called_within_it(linadd, data, tmp_path):
    options = ["--solver", "sgd", "--max-epochs", "1", "-C", "1e4", "--certify"]
    run = linadd("train", data / "train.h5", tmp_path / "m.safetensors", *options)
    assert run.status == 0 and run.out.splitlines()[1].endswith("(above tol 0.001)")


def test_constant_features_are_a_warning(linadd, tmp_path):
    X, y = rows_and_labels()
    X[:, 1] = 4
    path = write_h5(tmp_path / "train.h5", X=X, y=y)
    run = linadd("train", path, tmp_path / "m.safetensors", "--quiet")
    assert (run.status, run.err) == (0, f"warning: {path}: constant features contribute nothing: 2.\n")


# What is wrong with an HDF5 file of (X, y), and what is said of it.
X, Y = rows_and_labels(30)
NAN = X.copy()
NAN[17, 1], NAN[20, 2] = np.nan, np.inf
BAD_DATA = {
    "lengths": (
        {"X": X, "y": Y[:7]},
        "dataset 'X' has 30 rows and dataset 'y' has 7 entries. Both must describe the same rows.",
    ),
    "one class": (
        {"X": X, "y": np.ones(30)},
        "all rows have the one label 1.0. A classifier needs two classes; name the label column by --y.",
    ),
    "no labels": (
        {"X": X, "other": Y},
        "has no labels. Name their dataset with --y (y_name=): the file has 'other'.",
    ),
    "objects": (
        {"X": np.array([["a", "b"], ["c", "d"]]), "y": [0, 1]},
        "dataset 'X' has dtype object; features must be real numbers. Convert it, for instance with astype('float32').",
    ),
    "zero rows": (
        {"X": X[:0], "y": Y[:0]},
        "dataset 'X' has shape (0, 3): no rows. Give data that have some.",
    ),
    "no X": (
        {"features": X, "y": Y},
        "dataset 'X' does not exist. There are 'features' (30, 3) float32, 'y' (30,) int64. Name one with --x or as "
        "FILE::group.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_is_one_line_and_1(case, linadd, tmp_path):
    arrays, message = BAD_DATA[case]
    path = write_h5(tmp_path / "bad.h5", **arrays)
    run = linadd("train", path, tmp_path / "m.safetensors", "--quiet")
    assert (run.status, run.out, run.err) == (1, "", f"error: {path}: {message}\n")
    assert not (tmp_path / "m.safetensors").exists()


def test_a_value_that_is_not_finite_is_named_with_row_and_column(linadd, tmp_path):
    path = write_h5(tmp_path / "bad.h5", X=NAN, y=Y)
    run = linadd("train", path, tmp_path / "m.safetensors", "--quiet", "--json")
    remedy = "linadd takes no NaN or infinity: fill or drop these rows."
    message = f"the value is nan, the first of 2 that are not finite. {remedy}"
    assert (run.status, run.err) == (1, f"error: {path}, row 18, column 2: {message}\n")
    assert run.record["error"] == {
        "type": "DataError", "message": message, "file": str(path), "row": 18, "column": 2
    }  # fmt: skip


def test_a_regression_target_is_refused(linadd, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.standard_normal(10_050)
    path = write_h5(tmp_path / "bad.h5", X=rng.random((len(y), 1)), y=y)
    run = linadd("train", path, tmp_path / "m.safetensors", "--quiet")
    assert run.status == 1
    assert run.err.startswith(f"error: {path}: the labels have more than 10000 distinct non-integral values, such as ")
    remedy = "linadd trains classifiers; name the label column by --y."
    assert run.err.endswith(f": this looks like a regression target. {remedy}\n")


@pytest.mark.parametrize(
    ("second_line", "message"),
    [
        ("1 0:1", "index 0 in '0:1' is below the first index, 1. Use --index-base 0 if the file counts from 0."),
        ("1 3:1 2:2 3:1", "index 3 in '3:1' stands there already. Give each index once a line."),
        ("1 3:x", "'3:x' is not INDEX:VALUE. Correct the line."),
    ],
)
def test_bad_libsvm_text_is_named_by_line(second_line, message, linadd, tmp_path):
    path = tmp_path / "bad.libsvm"
    path.write_text(f"-1 1:1 2:1\n{second_line}\n")
    run = linadd("train", path, tmp_path / "m.safetensors", "--quiet")
    assert (run.status, run.err) == (1, f"error: {path}, row 2: {message}\n")


def test_index_base_0_reads_what_counts_from_0(linadd, tmp_path):
    path = tmp_path / "rows.libsvm"
    path.write_text("-1 0:1 1:1\n1 0:2\n" * 20)
    record = linadd("train", path, tmp_path / "m.safetensors", "--index-base", "0", "--json").record
    assert record["n_features"] == 2


def test_a_truncated_file_is_named(linadd, data, tmp_path):
    path = tmp_path / "cut.h5"
    path.write_bytes((data / "train.h5").read_bytes()[:3000])
    run = linadd("train", path, tmp_path / "m.safetensors", "--quiet")
    assert run.status == 1 and run.err.count("\n") == 1
    assert run.err.startswith(f"error: {path}: is no whole HDF5 file (truncated file: ")


def test_a_locked_file_is_named(linadd, data, tmp_path):
    path = tmp_path / "open.h5"
    path.write_bytes((data / "train.h5").read_bytes())
    with open(path) as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)  # as HDF5 does in another process that writes
        run = linadd("train", path, tmp_path / "m.safetensors", "--quiet")
    assert run.status == 1 and run.err.count("\n") == 1
    assert run.err.startswith(f"error: {path}: ")


def test_a_missing_file_lists_those_that_exist(linadd, data, tmp_path):
    run = linadd("train", data / "tran.h5", tmp_path / "m.safetensors")
    assert run.status == 1
    assert run.err.startswith(f"error: {data}/tran.h5: does not exist. The folder has 'train.h5'")


# Arguments after `train FILE MODEL`, and the usage error.
BAD_USAGE = [
    ("--degree 9", "degree: 9 is not one of 0, 1, 2, 3."),
    ("--encoder spline", "encoder: 'spline' is not one of bspline, fourier, hermite, identity."),
    ("--n-bins x", "Invalid value for '--n-bins': 'x' is not an integer. See `linadd train --help`."),
    ("-C x", "Invalid value for '-C': 'x' is not a number. See `linadd train --help`."),
    ("-C -1", "C: -1.0 is not above 0."),
    ("--encoder fourier --n-bins 3", "--n-bins: the encoder fourier has no such option. It takes --n-harmonics, "
     "--penalty-order."),
    ("--solver dual-cd --no-average", "--average: the solver dual-cd has no such option. It takes --tol, --precision, "
     "--stop-on, --partial-solutions, --validation, --early-stopping, --patience."),
    ("--schedule shifted", "--schedule: the solver auto has no such option. It takes --tol, --precision, --stop-on, "
     "--partial-solutions, --validation, --early-stopping, --patience, --hessian-sample."),
    ("--memory-limit lots", "Invalid value for '--memory-limit': 'lots' is not a size. Write it as 200MB, 1.5GiB or a "
     "number of bytes. See `linadd train --help`."),
    ("--class-weight 3", "Invalid value for '--class-weight': '3' is not LABEL=WEIGHT. Write it as 0=1,1=2.5, or "
     "balanced. See `linadd train --help`."),
    ("--partial-solutions many", "Invalid value for '--partial-solutions': 'many' is not auto or a number. See `linadd "
     "train --help`."),
    ("--index-base 2", "Invalid value for '--index-base': '2' is not one of auto, 0, 1. See `linadd train --help`."),
    ("--where part", "--where part: is not NAME=V1,V2."),
    (
        "third.h5", "third.h5: train takes one file and a model. Put a pattern of files in quotes; letters after -- go "
        "with --compat.",
    ),
    ("--frobnicate 2", "No such option: --frobnicate. See `linadd train --help`."),
    ("--compat liblinear -s 3", "No such option: -s. See `linadd train --help`. Letters of --compat stand after --."),
    ("--compat svmlight", "--compat: 'svmlight' is not one of liblinear, libspline."),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), BAD_USAGE)
def test_a_usage_error_is_one_line_and_2_before_the_data_are_opened(arguments, message, linadd, tmp_path):
    run = linadd("train", tmp_path / "absent.h5", tmp_path / "m.safetensors", *arguments.split())
    assert (run.status, run.out, run.err) == (2, "", f"error: {message}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_binz = 3", "'n_binz' is no option of train. There is n_bins."),
        ("n_bins = ", "is not TOML: Invalid value (at end of document)."),
    ],
)
def test_a_bad_config_file_is_a_usage_error(text, message, linadd, tmp_path):
    path = tmp_path / "options.toml"
    path.write_text(text)
    run = linadd("train", "a.h5", "b", "--config", path)
    expected = f"error: Invalid value for '--config': {path}: {message.rstrip('.')}. See `linadd train --help`.\n"
    assert (run.status, run.err) == (2, expected)


def test_a_config_file_has_the_options_of_training_only(linadd, tmp_path):
    path = tmp_path / "options.toml"
    path.write_text("json = true")
    run = linadd("train", "a.h5", "b", "--config", path)
    assert run.status == 2
    assert "options.toml: 'json' is no option of train. There is C, average, cache, calibrate, center, " in run.err


def test_a_missing_config_file_is_a_usage_error(linadd, tmp_path):
    run = linadd("train", "a.h5", "b", "--config", tmp_path / "none.toml", "--json")
    message = f"Invalid value for '--config': {tmp_path}/none.toml: cannot be read (No such file or directory)."
    assert run.status == 2
    assert run.record["error"]["message"] == f"{message} See `linadd train --help`."


def test_a_class_without_rows_cannot_have_a_weight(linadd, data, tmp_path):
    run = linadd("train", data / "train.h5", tmp_path / "m.safetensors", "--class-weight", "7=2", "--quiet")
    assert (run.status, run.err) == (2, "error: class_weight: '7' is not among the classes 0, 1.\n")


@pytest.mark.parametrize("is_there", [False, True])
def test_a_target_that_cannot_be_written_is_refused_before_the_data_are_opened(is_there, linadd, tmp_path):
    target = tmp_path if is_there else tmp_path / "no" / "m.safetensors"
    run = linadd("train", tmp_path / "absent.h5", target, "--quiet")
    what = "is a folder. Give the name of a file in it." if is_there else f"the folder '{tmp_path}/no' does not exist."
    assert run.status == 1 and run.err.startswith(f"error: {target}: {what}")


def test_data_are_never_overwritten_by_a_model(linadd, data, tmp_path):
    other = write_h5(tmp_path / "test.h5", X=X, y=Y)
    before = other.read_bytes()
    run = linadd("train", data / "train.h5", other)
    message = f"{other}: exists and is no model of linadd. Give another name, or remove it first."
    assert (run.status, run.err) == (1, f"error: {message}\n")
    assert other.read_bytes() == before


def test_a_model_replaces_an_earlier_one(linadd, data, tmp_path):
    out = tmp_path / "m.safetensors"
    for seed in (0, 1):
        assert linadd("train", data / "train.h5", out, "--seed", seed).status == 0
    assert load_model(out).options["seed"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_two_runs_give_the_same_bits(linadd, data, tmp_path):
    digests = {
        linadd("train", data / "train.h5", tmp_path / f"{k}.safetensors", "--json").record["digest"] for k in range(2)
    }
    assert len(digests) == 1


def test_json_of_a_usage_error_is_one_object(linadd):
    run = linadd("train", "a.h5", "m", "--degree", "9", "--json")
    message = "degree: 9 is not one of 0, 1, 2, 3."
    error = {"type": "ConfigError", "message": message, "file": None, "row": None, "column": None}
    assert json.loads(run.out) == {"error": error}


def test_training_starts_from_a_model_of_liblinear(linadd, data, tmp_path):
    start = tmp_path / "start.model"
    start.write_text("solver_type L2R_LR\nnr_class 2\nlabel 1 0\nnr_feature 3\nbias 1\nw\n0.1 \n0.2 \n0.3 \n-0.4 \n")
    options = ["--encoder", "identity", "--no-clamp", "--solver", "newton", "--quiet"]
    assert linadd("train", data / "train.h5", tmp_path / "m.safetensors", "--initial", start, *options).status == 0
    assert load_model(tmp_path / "m.safetensors").summary["start"] == load_model(start).digest
    assert linadd("evaluate", start, data / "train.h5").status == 0
    text = linadd("inspect", start)
    remedy = "do not begin with the table of one. Give a model of linadd."
    message = f"{start}: is no model file: its {start.stat().st_size} bytes {remedy}"
    assert (text.status, text.err) == (1, f"error: {message}\n")
    linadd("predict", start, data / "train.h5", "-o", tmp_path / "out.npy")
    loaded = load_model(start)
    loaded.save(tmp_path / "saved.safetensors")
    lines = linadd("inspect", tmp_path / "saved.safetensors").out.splitlines()
    assert lines[-1] == f"data       {start}" and "solver LIBLINEAR L2R_LR" in lines[4]


def test_a_kernel_classifier_is_no_start(linadd, data, kernel_model, tmp_path):
    run = linadd("train", data / "train.h5", tmp_path / "m.safetensors", "--initial", kernel_model)
    message = f"--initial {kernel_model}: is of class lspc. Give an additive model, or one of LIBLINEAR."
    assert (run.status, run.err) == (2, f"error: {message}\n")


def test_a_range_policy_is_kept_in_the_model(linadd, data, tmp_path):
    path = tmp_path / "m.safetensors"
    options = ["--n-bins", "4", "--knots", "uniform", "--solver", "dual-cd", "--quiet"]
    assert linadd("train", data / "train.h5", path, *options, "--range", "linear,age=error").status == 0
    assert load_model(path).range_policies.tolist() == ["error", "linear", "linear"]
    assert "range      linear,age=error" in linadd("inspect", path).out.splitlines()
    run = linadd("train", data / "train.h5", path, "--range", "linear,weight=error")
    message = "range: 'weight' is no feature of the model. Give a name, or a number from 1 to 3."
    assert (run.status, run.err) == (2, f"error: {message}\n")


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
def test_a_calibrated_hinge_model_has_probabilities(kind, linadd, data, tmp_path):
    path, out = tmp_path / "m.safetensors", tmp_path / "out.npy"
    run = linadd("train", data / "train.h5", path, "--loss", "hinge", "--calibrate", kind, "--quiet")
    assert run.status == 0, run.err
    assert linadd("predict", path, data / "test.h5", "-o", out, "--output", "proba").status == 0
    np.testing.assert_allclose(np.load(out).sum(axis=1), 1)
    record = linadd("evaluate", path, data / "test.h5", "--json").record
    assert sum(part["count"] for part in record["reliability"]) == 200 and 0 <= record["calibration_error"] < 0.2
    lines = linadd("evaluate", path, data / "test.h5").out.splitlines()
    table = lines[lines.index("probability        rows predicted  observed") + 1 :]
    first = record["reliability"][0]
    shares = f"{first['predicted']:>9.2%} {first['observed']:>9.2%}"
    assert table[0] == f"{first['low']:.1f} to {first['high']:.1f}   {first['count']:>10,g} {shares}"


def test_another_calibration_is_a_usage_error(linadd, data, tmp_path):
    run = linadd("train", data / "train.h5", tmp_path / "m.safetensors", "--calibrate", "platt")
    assert (run.status, run.err) == (2, "error: calibrate: 'platt' is not one of None, sigmoid, isotonic.\n")


def test_rows_are_held_out_and_watched(linadd, data, tmp_path):
    out = tmp_path / "m.safetensors"
    arguments = ("--solver", "dual-cd", "--early-stopping", "--patience", 1, "--precision", "uint8")
    run = linadd("train", data / "train.h5", out, "--validation", 0.3, *arguments, "--json")
    assert run.status == 0
    model, record = load_model(out), run.record["validation"]
    assert model.options["validation"] == 0.3 and model.options["early_stopping"]
    assert record == model.summary["validation"] and record["pass"] <= len(model.history)
    assert model.summary["plan"]["precision"] == "uint8"
    lines = [line for line in run.err.splitlines() if line.startswith("pass ")]
    for line, entry in zip(lines, model.history, strict=True):
        assert f"validation loss {entry['validation_loss']:.4g}, error {entry['validation_error']:.4g}, " in line
    run = linadd("train", data / "train.h5", out, "--validation", data / "train.h5")
    found = load_model(out).summary["validation"]
    assert run.out.splitlines()[2] == (
        f"validation loss {found['loss']:.6g}, error {found['error']:.4g}, of pass {found['pass']}"
    )


def test_a_solver_without_passes_watches_nothing(linadd, data, tmp_path):
    run = linadd("train", data / "train.h5", tmp_path / "m", "--solver", "liblinear", "--validation", 0.3)
    assert run.status == 2
    assert run.err == "error: validation: the solver liblinear has no passes to watch. Use dual-cd, newton or sgd.\n"
