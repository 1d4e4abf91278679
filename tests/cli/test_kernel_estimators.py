"""The kernel classifiers on the command line: what is trained there is what Python trains, and every refusal."""

import os
import signal
import warnings

import h5py
import numpy as np
import pytest

from linadd.cli import kernel_training
from linadd.cli.kernel_training import parse_value
from linadd.errors import ConvergenceWarning
from linadd.models import load_model
from linadd.sparse_kernel import ESTIMATORS, estimator_class
from linadd.sparse_kernel.export import WRITERS
from linadd.sparse_kernel.kernels import RBF
from tests.cli.conftest import rows_and_labels, write_h5

N_ROWS = 60
# Small settings, for time: --set, and the same for Python.
SETTINGS = {
    "import-vector-machine": {"max_import_vectors": 6},
    "lspc": {"sigma": 0.5, "reg_lambda": 0.1, "max_centers": 10},
    "rodeo": {"class_prior": "empirical"},
    "sparse-gp": {"n_basis": 5, "optimize_hyperparameters": False},
    "sparse-online-gp": {"max_basis": 8, "max_sweeps": 1},
}


def flags(name):
    settings = [f"--set={key}={value}" for key, value in SETTINGS[name].items()]
    return ["--estimator", name, *settings]


@pytest.fixture(scope="module")
def text_labels(tmp_path_factory):
    """`rows.h5`: three named features, two classes of text, an array `part`."""
    path = tmp_path_factory.mktemp("kernel") / "rows.h5"
    X, y = rows_and_labels(N_ROWS)
    write_h5(path, X=X, y=np.array(["no", "yés"])[y], part=np.arange(N_ROWS) % 2)
    with h5py.File(path, "r+") as file:
        file["X"].attrs["feature_names"] = ["age", "height", "dose"]
    return path


@pytest.fixture(params=ESTIMATORS)
def trained(request, text_labels, tmp_path, linadd):
    """(name, path of the model, Run of the training)."""
    path = tmp_path / "m.safetensors"
    return request.param, path, linadd("train", text_labels, path, *flags(request.param), "--json", "--quiet")


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_the_whole_tour(trained, text_labels, tmp_path, linadd):
    name, path, run = trained
    assert (run.status, run.err) == (0, "")
    X, y = rows_and_labels(N_ROWS)
    labels = np.array(["no", "yés"])[y]
    loaded = load_model(path)
    expected = estimator_class(name)(random_state=0, **SETTINGS[name])
    # A source streams: its folds and centres are drawn by row, others than those of arrays in memory.
    expected.fit(*((str(text_labels),) if name == "lspc" else (X, labels)))
    np.testing.assert_array_equal(loaded.scores(X), expected.scores(X))
    record = run.record
    assert record["n_basis"] == expected.summary["n_basis"] and record["objective"] == expected.summary["objective"]
    assert record["estimator"] == name and record["classes"] == ["no", "yés"] and record["converged"]
    assert (record["n_rows"], record["n_features"], record["model"], record["seed"]) == (N_ROWS, 3, str(path), 0)
    assert record["digest"] == loaded.digest and 0 <= record["seconds"] < 600

    figures = linadd("evaluate", path, text_labels, "--json").record
    assert figures["accuracy"] == np.mean(expected.predict(X) == labels) and figures["recall"][0] is not None
    proba = expected.predict_proba(X)
    assert figures["log_loss"] == pytest.approx(-np.mean(np.log(np.maximum(proba[np.arange(N_ROWS), y], 2.3e-308))))
    with np.errstate(divide="ignore"):
        odds = np.log(proba[:, 1]) - np.log(proba[:, 0])
    pairs = odds[y == 1][:, None] - np.where(np.isfinite(odds), odds, np.nan)[y == 0]
    assert np.isnan(pairs).any() or figures["auc"] == pytest.approx(np.mean((pairs > 0) + (pairs == 0) / 2))

    for output, values in (("label", expected.predict(X)), ("proba", proba), ("decision", expected.scores(X))):
        out = tmp_path / "out.npy"
        assert linadd("predict", path, text_labels, "-o", out, "--output", output).status == 0
        np.testing.assert_array_equal(np.load(out), values[:, 0] if values.shape[1:] == (1,) else values)

    seen = linadd("inspect", path, "--json").record
    assert (seen["class"], seen["n_features"], seen["n_basis"]) == (name, 3, record["n_basis"])
    assert [each["feature"] for each in seen["features"]] == ["age", "height", "dose"]
    assert seen["digest"] == record["digest"] and seen["summary"]["n_rows"] == N_ROWS
    text = linadd("inspect", path).out.splitlines()
    assert text[2] == f"estimator  {name}"
    assert text[-1].startswith(f"data       {N_ROWS} rows of {text_labels}, digest ")

    for kind in WRITERS:
        done = linadd("export", path, tmp_path / f"m.{kind}", "--to", kind, "--json")
        assert done.status == 0 and (tmp_path / f"m.{kind}").exists()
        assert (done.record["to"], done.record["n_check_rows"], done.record["label_flips"]) == (kind, 32, 0)


def test_people_get_three_lines_and_a_log(text_labels, tmp_path, linadd):
    path = tmp_path / "m.safetensors"
    run = linadd("train", text_labels, path, *flags("import-vector-machine"), "--where", "part=0")
    first, second, third = run.out.splitlines()
    assert first == f"{path}: 30 rows, 3 features, 2 classes"
    summary = load_model(path).summary
    assert second == f"import-vector-machine, objective {summary['objective']:.8g}, {summary['n_basis']} basis vectors"
    assert third.startswith(f"{summary['seconds']:.1f} s")
    lines = run.err.splitlines()
    assert lines[0] == f"{text_labels}: 30 rows of 3 features (float32)"
    assert lines[1].startswith("import vectors 1, objective ")


def test_more_than_two_classes_and_values_out_of_range(data, three_classes, tmp_path, linadd):
    path = tmp_path / "m.safetensors"
    assert linadd("train", data / "three.h5", path, *flags("lspc")).status == 0
    X, _ = rows_and_labels()
    out = tmp_path / "out.npy"
    linadd("predict", path, data / "three.h5", "-o", out)
    assert (np.load(out) == load_model(path).predict(X)).all()
    X = np.clip(X, -0.9, 0.9)
    X[7, 1] = 5
    rows = write_h5(tmp_path / "rows.h5", X=X)
    report = linadd("predict", path, rows, "-o", out, "--range", "report").out.splitlines()[1]
    assert report == "range: 1 values (0.11%) outside the training range; by feature: 2 (1)"
    low, high = load_model(path).ranges[1]
    outside = f"the value 5.0 is outside the training range {low:g} to {high:g}, and the range policy is error"
    message = f"{outside}. Drop this row, or use another policy, such as clamp (--range clamp)."
    assert linadd("predict", path, rows, "-o", out, "--range", "error").err == (
        f"error: {rows}, row 8, column 2: {message}\n"
    )
    X[11, 2] = np.nan
    run = linadd("predict", path, write_h5(tmp_path / "rows.h5", X=X), "-o", out)
    message = "the value is NaN (0 more NaN or inf). Fill or drop it."
    assert (run.status, run.err) == (1, f"error: {rows}, row 12, column 3: {message}\n")


def test_a_model_that_did_not_converge_is_3(text_labels, tmp_path, linadd):
    path = tmp_path / "m.safetensors"
    settings = ("--set", "max_basis=8", "--set", "max_sweeps=2", "--set", "tol=1e-12")
    run = linadd("train", text_labels, path, "--estimator", "sparse-online-gp", *settings, "--quiet", "--json")
    assert run.status == 3 and not run.record["converged"] and load_model(path).summary["converged"] is False
    (text,) = run.record["warnings"]
    assert text.endswith(" after 2 sweeps, above tol=1e-12. Raise max_sweeps or tol.")
    assert run.err == f"warning: {text}\n"
    assert linadd("inspect", path).out.splitlines()[-2].endswith("8 basis vectors, stopped before it converged")


def test_ctrl_c_keeps_the_best_model_so_far(text_labels, tmp_path, linadd, monkeypatch):
    """The signal comes with the third import vector, as from a keyboard."""
    said = []

    def say(terminal, text):
        said.append(text)
        if text.startswith("import vectors 3,"):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("linadd.cli.terminal.Terminal.say", say)
    path = tmp_path / "m.safetensors"
    run = linadd("train", text_labels, path, "--estimator", "import-vector-machine", "--set", "tol=1e-9")
    stopped = "interrupted by Ctrl-C, the model so far is kept. Fit again for a converged one."
    assert (run.status, run.err) == (3, f"warning: ImportVectorMachine stopped at 3 import vectors: {stopped}\n")
    assert load_model(path).summary["n_basis"] == 3 and not any(text.startswith("import vectors 4,") for text in said)


def test_lspc_streams_and_the_others_refuse_what_memory_does_not_hold(text_labels, tmp_path, linadd):
    path = tmp_path / "m.safetensors"
    run = linadd("train", text_labels, path, *flags("rodeo"), "--memory-limit", "2kB")
    message = (
        f"{text_labels}: rodeo holds its rows in memory, and 60 of 3 features take 2.88 kB, above the limit of 2 kB. "
        "Raise --memory-limit, select rows by --where, or use --estimator lspc, which reads them from the file."
    )
    assert (run.status, run.err.splitlines()[-1]) == (2, f"error: {message}") and not path.exists()
    settings = ("--set", "sigma=1", "--set", "reg_lambda=1", "--set", "max_centers=3", "--memory-limit", "2kB")
    assert linadd("train", text_labels, path, "--estimator", "lspc", *settings).status == 0


@pytest.mark.parametrize("name", ["lspc", "rodeo"])
def test_weights_of_the_file_are_said_to_be_unused(name, tmp_path, linadd):
    X, y = rows_and_labels(N_ROWS)
    path = write_h5(tmp_path / "rows.h5", X=X, y=y, weight=np.ones(N_ROWS))
    run = linadd("train", path, tmp_path / "m.safetensors", *flags(name), "--quiet")
    assert (run.status, run.err) == (0, f"warning: {path}: its sample weights are not used: {name} takes none.\n")


@pytest.mark.parametrize("bad", ["value", "label"])
def test_bad_rows_are_named_as_the_file_counts(bad, tmp_path, linadd):
    X, y = rows_and_labels(N_ROWS)
    if bad == "value":
        X[20, 1] = np.inf
    path = write_h5(tmp_path / "rows.h5", X=X, y=y if bad == "value" else np.where(np.arange(N_ROWS) == 4, np.nan, y))
    run = linadd("train", path, tmp_path / "m.safetensors", *flags("rodeo"), "--quiet")
    text = {
        "value": "row 21, column 2: the value is inf. linadd takes no NaN or infinity: fill or drop these rows.",
        "label": "row 5: the label is nan. Drop the row or give it a label.",
    }[bad]
    assert (run.status, run.err) == (1, f"error: {path}, {text}\n")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5), ("1e-3", 1e-3), ("true", True), ("False", False), ("None", None), ("null", None), ("cv", "cv"),
        ("'path'", "path"), ("[0.1, 1]", [0.1, 1]), ("(1, 2)", (1, 2)), ("a=b", "a=b"), ("", ""),
        ('{"kernel": "rbf", "variance": 2, "length_scale": 0.5}', RBF(2, 0.5)),
    ],
)  # fmt: skip
def test_values_of_settings(text, value):
    found = parse_value(text)
    assert found == value and type(found) is type(value)


def test_a_kernel_and_a_config_file(text_labels, tmp_path, linadd):
    config = tmp_path / "options.toml"
    kernel = '{"kernel": "linear", "variance": 2, "offset": 1}'
    config.write_text(f"estimator = 'import-vector-machine'\nseed = 4\n[set]\nkernel = '{kernel}'\nreg_lambda = 0.5\n")
    path = tmp_path / "m.safetensors"
    assert linadd("train", text_labels, path, "--config", config).status == 0
    model = load_model(path)
    assert model.kernel_.description() == {"kernel": "linear", "variance": 2, "offset": 1}
    assert (model.reg_lambda, model.random_state) == (0.5, 4)


LSPC = "centers, cv, lambdas, max_centers, reg_lambda, scale, scoring, sigma, sigmas"
TAKEN = "It takes --seed, --memory-limit, and --set for the rest."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("svm", f"--estimator: 'svm' is not one of additive, {', '.join(ESTIMATORS)}."),
        ("lspc --encoder fourier", f"--encoder: lspc does not take it. {TAKEN}"),
        ("rodeo -C 2", f"-C: rodeo does not take it. {TAKEN.replace(', and', ', --threads, and')}"),
        ("lspc --weights part", f"--weights: lspc does not take it. {TAKEN}"),
        ("lspc --compat liblinear", f"--compat: lspc does not take it. {TAKEN}"),
        ("lspc --set ridge=1", f"--set ridge: lspc has no such parameter. It has {LSPC}."),
        ("lspc --set ridge", "--set ridge: is not NAME=VALUE."),
        ("lspc --set random_state=1", "--set random_state: has an option of its own. Give it as --seed."),
        ("lspc --set scale=log", "scale: 'log' is not a choice. Choose from 'standard', 'minmax', None."),
        ("lspc --seed -1", "seed: -1 is below 0."),
        ("additive --set cv=3", f"--set cv=3: goes with --estimator {', '.join(ESTIMATORS)}. Give it as an option."),
        ("sparse-gp --set n_basis=many", "--set: sparse-gp cannot work with a value of this type ('<' not supported "
         "between instances of 'str' and 'int')."),
    ],
)  # fmt: skip
def test_a_usage_error_is_one_line_and_2(arguments, message, text_labels, tmp_path, linadd):
    path = tmp_path / "m.safetensors"
    run = linadd("train", text_labels, path, "--quiet", "--estimator", *arguments.split())
    assert (run.status, run.err) == (2, f"error: {message}\n") and not path.exists()


def test_warnings_of_other_packages_are_not_shown(text_labels, tmp_path, linadd, monkeypatch):
    class Loud(estimator_class("rodeo")):
        def fit(self, X, y):
            warnings.warn("not ours", UserWarning, stacklevel=2)
            warnings.warn("ours", ConvergenceWarning, stacklevel=2)
            return super().fit(X, y)

    monkeypatch.setattr(kernel_training, "estimator_class", lambda name: Loud)
    run = linadd("train", text_labels, tmp_path / "m.safetensors", "--estimator", "rodeo", "--quiet")
    assert (run.status, run.err) == (3, "warning: ours\n")


def test_kinds_of_export_are_refused_by_name(tmp_path, linadd, text_labels):
    path = tmp_path / "m.safetensors"
    linadd("train", text_labels, path, *flags("lspc"))
    run = linadd("export", path, tmp_path / "m.h", "--to", "c")
    assert (run.status, run.err) == (2, "error: export: 'c' is not one of npz, json, onnx.\n")
    assert sorted(tmp_path.iterdir()) == [path]
