"""libsvm text through the verbs: the base of its indices, and files that are narrower or wider than the model."""

import h5py
import numpy as np
import pytest

from linadd import AdditiveClassifier
from linadd.models import load_model
from linadd.options import Options
from linadd.sources import open_source
from linadd.train import train

ROWS = np.random.default_rng(0).random((60, 3)).round(3)
LABELS = (ROWS[:, 0] > ROWS[:, 1]).astype(int)


def write(path, X, y, base):
    """libsvm text that counts from `base`; zeros are left out."""
    rows = [" ".join(f"{j + base}:{x}" for j, x in enumerate(row) if x) for row in X.tolist()]
    path.write_text("".join(f"{label} {row}\n" for label, row in zip(y.tolist(), rows, strict=True)))
    return path


@pytest.fixture
def model(linadd, tmp_path):
    """A model of text that counts from 0."""
    path = tmp_path / "model.safetensors"
    run = linadd("train", write(tmp_path / "train.svm", ROWS, LABELS, 0), path, "--index-base", 0, "--json")
    assert run.status == 0 and run.record["n_features"] == 3
    return path


def test_an_index_0_is_named_with_its_line(linadd, tmp_path):  # users.md C19, M11
    path = tmp_path / "rows.svm"
    path.write_text("-1 1:1\n1 0:1 2:1\n" * 10)
    run = linadd("train", path, tmp_path / "model.safetensors", "--quiet")
    message = "index 0 in '0:1' is below the first index, 1. Use --index-base 0 if the file counts from 0."
    assert (run.status, run.err) == (1, f"error: {path}, row 2: {message}\n")
    run = linadd("train", path, tmp_path / "model.safetensors", "--index-base", "0", "--json")
    assert run.status == 0 and run.record["n_features"] == 3


def test_the_base_of_the_model_holds_for_what_is_read_for_it(linadd, model, tmp_path):  # users.md M10
    """The test rows lack the first feature: a guess from this file alone would shift the others."""
    X = ROWS * [0, 1, 1]
    test = write(tmp_path / "test.svm", X, LABELS, 0)
    expected = load_model(model).predict(X)
    accuracy = np.mean(expected == LABELS)
    assert linadd("evaluate", model, test, "--json").record["accuracy"] == accuracy
    run = linadd("predict", model, test, "-o", tmp_path / "out.npy")
    assert run.status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)
    wrong = linadd("evaluate", model, test, "--index-base", 1, "--json").record["accuracy"]
    assert wrong == np.mean(load_model(model).predict(np.roll(X, -1, axis=1)) == LABELS) != accuracy


def test_the_base_holds_for_estimators_and_validation_rows(tmp_path):
    first = open_source(write(tmp_path / "train.svm", ROWS, LABELS, 0), index_base=0)
    test = write(tmp_path / "test.svm", ROWS * [0, 1, 1], LABELS, 0)
    classifier = AdditiveClassifier().fit(first)
    np.testing.assert_array_equal(classifier.predict(test), classifier.predict(ROWS * [0, 1, 1]))
    np.savez(tmp_path / "t.npz", X=ROWS * [0, 1, 1], y=LABELS)
    watched = [train(first, Options(validation=str(path))).summary["validation"] for path in (test, tmp_path / "t.npz")]
    assert watched[0] == watched[1]


def test_a_narrow_file_is_padded(linadd, model, tmp_path):  # users.md C21, M9, M10
    X = ROWS * [1, 1, 0]
    test = write(tmp_path / "test.svm", X, LABELS, 0)
    assert open_source(test, index_base=0).n_features == 2
    record = linadd("evaluate", model, test, "--json").record
    assert record["accuracy"] == np.mean(load_model(model).predict(X) == LABELS)


def test_a_wide_file_is_refused_unless_its_columns_are_chosen(linadd, model, tmp_path):  # users.md C21, M13
    test = write(tmp_path / "test.svm", np.hstack([ROWS, np.full((60, 5), 1e9)]), LABELS, 0)
    message = f"{test}: has 8 features, the model {model} has 3. Choose those of the model by --features."
    run = linadd("evaluate", model, test)
    assert (run.status, run.err) == (1, f"error: {message}\n")
    record = linadd("evaluate", model, test, "--features", "1-3", "--json").record
    assert record["accuracy"] == np.mean(load_model(model).predict(ROWS) == LABELS)


def test_several_files_by_a_pattern(linadd, model, tmp_path):
    """The widest part makes the width, and a fault names the part and its own line."""
    for part in range(3):
        own = slice(20 * part, 20 * part + 20)
        write(tmp_path / f"part-{part}.svm", ROWS[own] * [1, 1, part == 2], LABELS[own], 0)
    pattern = tmp_path / "part-*.svm"
    record = linadd("evaluate", model, pattern, "--json").record
    X = ROWS * np.repeat([[1, 1, 0], [1, 1, 0], [1, 1, 1]], 20, axis=0)
    assert record["n_rows"] == 60 and record["file"] == str(pattern)
    assert record["accuracy"] == np.mean(load_model(model).predict(X) == LABELS)
    (tmp_path / "part-1.svm").write_text("1 0:0.5\n0 1:nan\n")
    run = linadd("train", pattern, tmp_path / "other.safetensors", "--index-base", "0", "--json")
    error = run.record["error"]
    assert run.status == 1 and (error["file"], error["row"]) == (str(tmp_path / "part-1.svm"), 2)


def test_no_file_of_a_pattern_is_overwritten(linadd, tmp_path):
    for part in range(2):
        with h5py.File(tmp_path / f"part-{part}.h5", "w") as file:
            file["X"], file["y"] = ROWS, LABELS
    run = linadd("convert", tmp_path / "part-*.h5", tmp_path / "part-1.h5")
    message = f"{tmp_path}/part-1.h5: would be overwritten while it is read. Give another name."
    assert (run.status, run.err) == (2, f"error: {message}\n")
