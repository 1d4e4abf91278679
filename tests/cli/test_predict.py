"""`linadd predict`: every form of output holds the model's own predictions, in file order, or nothing at all."""

import csv
import tracemalloc
from dataclasses import replace

import h5py
import numpy as np
import pytest

from linadd.cli import predictions, scoring
from linadd.errors import DataError
from linadd.models import load_model
from linadd.sources import base
from tests.cli.conftest import rows_and_labels, write_h5, write_libsvm

X_TEST = rows_and_labels(200, seed=1)[0]
X_TEST[0, 0] = 7.5


def read_predictions(path, output):
    """Columns (n_rows, n_columns) as text, and their names; names of a .npy file are None."""
    if path.suffix == ".csv":
        with open(path, encoding="utf-8", newline="") as file:
            names, *rows = csv.reader(file)
        return np.array(rows), names
    if path.suffix == ".npy":
        values = np.load(path, allow_pickle=False)
        return values.reshape(len(values), -1), None
    with h5py.File(path) as file:
        data = file[output]
        values = data.asstr()[:] if data.dtype.kind == "O" else data[:]
        return values.reshape(len(values), -1), data.attrs["columns"].tolist()


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".h5"])
@pytest.mark.parametrize("output", ["label", "decision", "proba"])
def test_two_classes(suffix, output, linadd, data, model, tmp_path):
    out = tmp_path / f"out{suffix}"
    assert linadd("predict", model, data / "test.h5", "-o", out, "--output", output).status == 0
    loaded = load_model(model)
    expected = {
        "label": loaded.predict(X_TEST)[:, None],
        "decision": loaded.decision_function(X_TEST),
        "proba": loaded.predict_proba(X_TEST),
    }[output]
    values, names = read_predictions(out, output)
    assert values.shape == expected.shape
    assert (values.astype(expected.dtype) == expected).all()
    assert names in (None, ["0", "1"] if output == "proba" else [output])


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".h5"])
@pytest.mark.parametrize("output", ["label", "decision"])
def test_three_classes_of_text(suffix, output, linadd, data, three_classes, tmp_path):
    out = tmp_path / f"out{suffix}"
    assert linadd("predict", three_classes, data / "three.h5", "-o", out, "--output", output).status == 0
    loaded, (X, _) = load_model(three_classes), rows_and_labels()
    expected = loaded.predict(X)[:, None] if output == "label" else loaded.decision_function(X)
    values, names = read_predictions(out, output)
    assert (values.astype(expected.dtype) == expected).all()
    assert names in (None, ["label"] if output == "label" else ["high", "low", "mid — é"])


def test_one_column_is_a_one_dimensional_array(linadd, data, model, tmp_path):
    for output, shape in (("label", (200,)), ("decision", (200,)), ("proba", (200, 2))):
        linadd("predict", model, data / "test.h5", "-o", tmp_path / "out.npy", "--output", output)
        assert np.load(tmp_path / "out.npy").shape == shape


def test_the_digest_of_the_model_stands_in_the_result_and_in_hdf5(linadd, data, model, tmp_path):
    out = tmp_path / "out.h5"
    record = linadd("predict", model, data / "test.h5", "-o", out, "--json").record
    digest = load_model(model).digest
    assert record["model_digest"] == digest and record["n_rows"] == 200 and record["columns"] == ["label"]
    with h5py.File(out) as file:
        assert dict(file["label"].attrs.items()).keys() == {"columns", "model", "model_digest"}
        assert file["label"].attrs["model_digest"] == digest
    text = linadd("predict", model, data / "test.h5", "-o", out).out
    assert text == f"{out}: label of 200 rows of {data}/test.h5, model {model} ({digest})\n"


def test_selected_rows_keep_their_order(linadd, data, model, tmp_path):
    out = tmp_path / "out.npy"
    linadd("predict", model, data / "test.h5", "-o", out, "--output", "decision", "--where", "part=1")
    assert (np.load(out) == load_model(model).decision_function(X_TEST[1::2])[:, 0]).all()


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".h5"])
def test_rows_of_text_come_in_pieces(suffix, linadd, model, tmp_path, monkeypatch):
    monkeypatch.setattr(scoring, "PIECE_BYTES", 7 * 3 * 8)  # seven rows
    path = write_libsvm(tmp_path / "rows.libsvm", X_TEST, np.ones(len(X_TEST), int))
    out = tmp_path / f"out{suffix}"
    linadd("predict", model, path, "-o", out, "--output", "decision")
    values, _ = read_predictions(out, "decision")
    assert (values.astype(np.float64) == load_model(model).decision_function(X_TEST)).all()


def test_labels_are_not_needed(linadd, model, tmp_path):
    path = write_h5(tmp_path / "bare.h5", X=X_TEST, y=np.zeros(3))
    assert linadd("predict", model, path, "-o", tmp_path / "out.csv").status == 0


def test_a_value_out_of_range_is_an_error_if_asked(linadd, model, tmp_path):
    X = np.clip(X_TEST, -0.9, 0.9)
    X[41, 1] = 3.5
    path = write_h5(tmp_path / "rows.h5", X=X)
    run = linadd("predict", model, path, "-o", tmp_path / "out.csv", "--range", "error")
    low, high = load_model(model).encoder.ranges[1]
    outside = f"the value 3.5 is outside the training range {low:g} to {high:g}, and the range policy is error"
    remedy = "Drop this row, or use another policy, such as clamp (--range clamp)"
    message = f"{path}, row 42, column 'height': {outside}. {remedy}."
    assert (run.status, run.err) == (1, f"error: {message}\n")
    assert not (tmp_path / "out.csv").exists()


def test_the_range_report_is_printed_if_asked(linadd, model, tmp_path):
    X = np.clip(X_TEST, -0.9, 0.9)
    X[41, 1] = 3.5
    path = write_h5(tmp_path / "rows.h5", X=X)
    run = linadd("predict", model, path, "-o", tmp_path / "out.csv", "--range", "report")
    assert run.out.splitlines()[1] == (
        "range: 1 values (0.17%) outside the training range count as its nearer end; by feature: height (1)"
    )


def test_a_policy_of_the_command_line_beats_that_of_the_model(linadd, data, model, tmp_path):
    stored, out = tmp_path / "linear.safetensors", tmp_path / "out.npy"
    loaded = replace(load_model(model), range_policy="linear")
    loaded.save(stored)
    linadd("predict", stored, data / "test.h5", "-o", out, "--output", "decision")
    np.testing.assert_array_equal(np.load(out), loaded.decision_function(X_TEST)[:, 0])
    clamp = "--output", "decision", "--range", "clamp", "--json"
    record = linadd("predict", stored, data / "test.h5", "-o", out, *clamp).record
    clamped = load_model(model).decision_function(X_TEST)[:, 0]
    np.testing.assert_array_equal(np.load(out), clamped)
    assert loaded.decision_function(X_TEST[:1])[0, 0] != clamped[0]
    assert record["model_digest"] == loaded.digest  # of the file


def test_a_report_of_some_features_says_nothing_of_the_fate_of_all(linadd, data, model, tmp_path):
    run = linadd("predict", model, data / "test.h5", "-o", tmp_path / "out.csv", "--range", "linear,age=report")
    assert run.err == ""
    assert run.out.splitlines()[1].startswith("range: 3 values (0.50%) outside the training range; by feature: ")


def test_a_kernel_classifier_takes_no_lines(linadd, data, kernel_model, tmp_path):
    run = linadd("predict", kernel_model, data / "test.h5", "-o", tmp_path / "out.csv", "--range", "linear")
    message = "range: 'linear' is for additive models. A kernel classifier takes clamp, error, report."
    assert (run.status, run.err) == (2, f"error: {message}\n")


def peak_of(command):
    """Most bytes that NumPy and Python held while it ran."""
    tracemalloc.start()
    try:
        assert command().status == 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_rows(linadd, model, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "CHUNK_BYTES", 1 << 16)
    peaks = []
    for n_rows in (20_000, 20_000, 100_000):  # the first run loads modules
        np.save(tmp_path / "rows.npy", np.zeros((n_rows, 3), np.float32))
        arguments = "predict", model, tmp_path / "rows.npy", "-o", tmp_path / "out.npy", "--output", "decision"
        peaks.append(peak_of(lambda arguments=arguments: linadd(*arguments)))
    assert peaks[2] < peaks[1] + 300_000  # 80,000 more decisions take 640,000 bytes


def test_a_value_that_is_not_finite_is_named_and_nothing_is_written(linadd, model, tmp_path):
    X = X_TEST.copy()
    X[150, 2] = np.nan
    path = write_h5(tmp_path / "rows.h5", X=X)
    out = tmp_path / "out.npy"
    out.write_bytes(b"before")
    run = linadd("predict", model, path, "-o", out)
    message = "the value is nan. linadd takes no NaN or infinity: fill or drop this row."
    assert (run.status, run.err) == (1, f"error: {path}, row 151, column 'dose': {message}\n")
    assert out.read_bytes() == b"before" and {each.name for each in tmp_path.iterdir()} == {"rows.h5", "out.npy"}


def test_a_full_disk_is_one_line_and_leaves_nothing(linadd, data, model, tmp_path, monkeypatch):
    def full(path, table, n_rows):
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(predictions.WRITERS, ".csv", full)
    run = linadd("predict", model, data / "test.h5", "-o", tmp_path / "out.csv")
    message = "cannot be written (No space left on device). Free space there or give another path."
    assert (run.status, run.err) == (1, f"error: {tmp_path}/out.csv: {message}\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("-o out.txt", "out.txt: predictions are written as .csv, .npy, .h5, not .txt."),
        ("-o out", "out: predictions are written as .csv, .npy, .h5, not without suffix."),
        ("-o out.csv --output odds", "--output: 'odds' is not one of label, decision, proba."),
        (
            "-o out.csv --range clamp,4=error",
            "range: '4' is no feature of the model. Give a name, or a number from 1 to 3.",
        ),
        ("-o out.csv --range ignore", "range: 'ignore' is not one of clamp, error, report, linear."),
        ("", "Missing option '--out' / '-o'. See `linadd predict --help`."),
    ],
)
def test_a_usage_error_is_one_line_and_2(arguments, message, linadd, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = linadd("predict", model, "absent.h5", *arguments.split())
    assert (run.status, run.err) == (2, f"error: {message}\n")


@pytest.mark.parametrize("name", ["junk.npz", "junk.safetensors", "junk"])
def test_a_junk_model_is_named_with_its_file(name, linadd, data, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"junk" * 20)
    run = linadd("predict", path, data / "test.h5", "-o", tmp_path / "out.csv", "--json")
    message = "is no model file: its 80 bytes do not begin with the table of one. Give a model of linadd."
    error = {"type": "FormatError", "message": message, "row": None, "column": None, "file": str(path)}
    assert (run.status, run.record, run.err) == (1, {"error": error}, f"error: {path}: {message}\n")


def test_junk_rows_are_told_from_a_damaged_file(linadd, model, tmp_path):
    path = tmp_path / "junk.npz"
    path.write_bytes(b"junk" * 20)
    run = linadd("predict", model, path, "-o", tmp_path / "out.csv")
    message = "is named as a NumPy file, but holds none. Name it by its format, or write it again."
    assert (run.status, run.err) == (1, f"error: {path}: {message}\n")


def test_no_rows_are_refused(linadd, model, tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros((0, 3)))
    run = linadd("predict", model, tmp_path / "rows.npy", "-o", tmp_path / "out.csv")
    message = "the array has shape (0, 3): no rows. Give data that have some."
    assert (run.status, run.err) == (1, f"error: {tmp_path}/rows.npy: {message}\n")


def test_probabilities_of_hinge_loss_are_refused_before_the_file_is_opened(linadd, three_classes, tmp_path):
    run = linadd("predict", three_classes, "absent.h5", "-o", tmp_path / "out.csv", "--output", "proba")
    remedy = "Train with the logistic loss, or with calibrate (--calibrate sigmoid)."
    message = f"a model of hinge loss has no probabilities. {remedy}"
    assert (run.status, run.err) == (2, f"error: {message}\n")


def test_the_file_that_is_read_is_not_overwritten(linadd, data, model, tmp_path):
    path = write_h5(tmp_path / "rows.h5", X=X_TEST)
    run = linadd("predict", model, path, "-o", path)
    assert (run.status, run.err) == (2, f"error: {path}: would be overwritten while it is read. Give another name.\n")


def test_the_column_of_an_unnamed_feature_is_its_number(model):
    loaded = load_model(model)
    loaded.feature_names = None
    guard = scoring.RangeGuard(loaded, "error")
    chunk = type("Chunk", (), {"origin": "rows", "row_number": staticmethod(lambda row: row + 1)})
    with pytest.raises(DataError) as caught:
        guard.update(np.array([[0.0, 0.0, 5.0]]), chunk, 10)
    assert (caught.value.row, caught.value.column) == (11, 3)
