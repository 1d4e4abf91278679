"""`--features` and `--drop` on every verb that reads rows, and a model's names, which decide over a file's columns."""

import h5py
import numpy as np
import pytest

from linadd.models import load_model
from tests.cli.conftest import NAMES, rows_and_labels, write_h5, write_libsvm

FAST = ["--n-bins", "4", "--knots", "uniform", "--solver", "dual-cd", "--quiet"]
FIGURES = ("accuracy", "auc", "log_loss", "confusion", "range")


@pytest.fixture
def wide(tmp_path):
    """The rows of the fixtures between two columns of noise, the features turned."""
    X, y = rows_and_labels()
    noise = np.random.default_rng(5).uniform(-1, 1, (len(X), 2)).astype(np.float32)
    columns = {"id": noise[:, 0], "dose": X[:, 2], "height": X[:, 1], "age": X[:, 0], "odd,name": noise[:, 1]}
    return write_h5(tmp_path / "wide.h5", X=np.stack(list(columns.values()), 1), y=y, feature_names=list(columns))


@pytest.mark.parametrize(
    "choice",
    [
        ["--drop", "id", "--drop", "odd,name"],
        ["--features", "age,dose,height"],
        ["--features", "*e*", "--drop", "o*"],
    ],
)
def test_training_on_some_columns_is_training_on_a_file_of_them(choice, linadd, wide, tmp_path):
    kept = ["dose", "height", "age"]
    X, y = rows_and_labels()
    narrow = write_h5(tmp_path / "narrow.h5", X=X[:, ::-1], y=y, feature_names=kept)
    assert linadd("train", wide, tmp_path / "a.safetensors", *choice, *FAST).status == 0
    assert linadd("train", narrow, tmp_path / "b.safetensors", *FAST).status == 0
    chosen, plain = (load_model(tmp_path / f"{name}.safetensors") for name in "ab")
    assert chosen.feature_names == kept and chosen.digest == plain.digest


def test_the_models_names_decide_over_a_wider_file(linadd, data, model, wide, tmp_path):
    expected = linadd("evaluate", model, data / "train.h5", "--json").record
    run = linadd("evaluate", model, wide, "--json")
    assert [run.record[name] for name in FIGURES] == [expected[name] for name in FIGURES]
    line = f"{wide}: columns are matched by the model's names; it does not know 'id', 'odd,name'"
    assert line in run.err.splitlines()
    for name, path in (("a.npy", data / "train.h5"), ("b.npy", wide)):
        assert linadd("predict", model, path, "-o", tmp_path / name, "--output", "decision").status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))
    run = linadd("predict", model, wide, "-o", tmp_path / "c.npy", "--drop", "age")
    message = "the model needs 'age', which --features (features=) or --drop (drop=) leaves out. Keep what it needs."
    assert (run.status, run.err) == (1, f"error: {wide}: {message}\n")


def test_numbers_of_columns_without_names(linadd, tmp_path):
    """They become the names, by which a wider file is read; one of as many columns counts by position."""
    X, y = rows_and_labels()
    X[0] = X[1] = 0.25  # no row lacks an entry
    texts = [write_libsvm(tmp_path / f"{name}.svm", rows, y) for name, rows in (("all", X), ("two", X[:, 1:]))]
    np.savez(tmp_path / "all.npz", X=X, y=y)
    model = tmp_path / "m.safetensors"
    assert linadd("train", tmp_path / "all.npz", model, "--drop", 1, *FAST).status == 0
    assert load_model(model).feature_names == ["2", "3"]
    np.savez(tmp_path / "two.npz", X=X[:, 1:], y=y)
    records = [
        linadd("evaluate", model, path, *options, "--json").record
        for path, *options in (
            (tmp_path / "all.npz",), (tmp_path / "all.npz", "--drop", "1"), (tmp_path / "two.npz",), (texts[0],),
        )
    ]  # fmt: skip
    assert all([each[name] for name in FIGURES] == [records[0][name] for name in FIGURES] for each in records)
    run = linadd("evaluate", model, texts[1])
    line = f"{texts[1]}: columns are matched by the model's names; it does not know '1'"
    assert run.status == 0 and line in run.err.splitlines()  # text of two columns lacks the third: all zero
    run = linadd("evaluate", model, tmp_path / "all.npz", "--features", "2")
    message = "the model needs '3', which --features (features=) or --drop (drop=) leaves out. Keep what it needs."
    assert run.err == f"error: {tmp_path}/all.npz: {message}\n"


def test_validation_rows_are_matched_too(linadd, wide, data, tmp_path):
    reports, model = [], tmp_path / "m.safetensors"
    for path in (wide, data / "train.h5"):
        options = ["--features", "age,dose", "--validation", path]
        assert linadd("train", data / "train.h5", model, *options, *FAST).status == 0
        reports.append(load_model(model).summary["validation"])
    assert reports[0] == reports[1] and load_model(model).feature_names == ["age", "dose"]


def test_the_other_verbs(linadd, data, model, wide, tmp_path):
    out = tmp_path / "m.safetensors"
    search = ["-C", "1", "--n-bins", "4", "--folds", "1", "--solver", "dual-cd", "--quiet"]
    assert linadd("search", wide, out, "--features", "age,dose", *search).status == 0
    assert load_model(out).feature_names == ["dose", "age"]
    options = ["--estimator", "lspc", "--quiet", "--features", "age,dose"]
    assert linadd("train", wide, out, *options).status == 0
    assert load_model(out).feature_names == ["dose", "age"]
    assert linadd("convert", wide, tmp_path / "few.h5", "--drop", "odd,name").status == 0
    with h5py.File(tmp_path / "few.h5") as file:
        assert file.attrs["feature_names"].tolist() == ["id", "dose", "height", "age"]
    for name in (model, out):
        record = linadd("inspect", name, "--json", "--features", "a*", "--features", "dose").record
        assert sorted(each["feature"] for each in record["features"]) == ["age", "dose"]
    record = linadd("plot", model, "-o", tmp_path / "c.png", "--drop", "age", "--json").record
    assert sorted(record["features"]) == ["dose", "height"]
    run = linadd("plot", model, "-o", tmp_path / "c.png", "--features", "z*")
    names = ", ".join(map(repr, NAMES))
    message = f"{model}: has no column 'z*', which --features (features=) names. Its columns: {names}."
    assert (run.status, run.err) == (1, f"error: {message}\n")


@pytest.mark.parametrize("text", ['drop = "id,odd*"', 'drop = ["id", "odd,name"]'])
def test_a_config_file_chooses_too(text, linadd, wide, tmp_path):
    (tmp_path / "o.toml").write_text(text)
    assert linadd("train", wide, tmp_path / "m.safetensors", "--config", tmp_path / "o.toml", *FAST).status == 0
    assert load_model(tmp_path / "m.safetensors").feature_names == ["dose", "height", "age"]


def test_tables_with_text_that_is_left_out(linadd, tmp_path, monkeypatch):
    """A column of texts is no fault where --drop, or the model, leaves it out; several files are one data set."""
    monkeypatch.chdir(tmp_path)
    X, y = rows_and_labels()
    for part in range(2):
        rows = [f"r{i},{X[i, 1]},{y[i]},{X[i, 0]},{X[i, 2]}" for i in range(150 * part, 150 * part + 150)]
        (tmp_path / f"part-{part}.csv").write_text("\n".join(["id,height,kind,age,dose", *rows]) + "\n")
    options = ["--y", "kind", "--drop", "id", "--rename", "age=years", "--label", "0=-1"]
    assert linadd("convert", "part-*.csv", "all.h5", *options).status == 0
    with h5py.File("all.h5") as file:
        assert file.attrs["feature_names"].tolist() == ["height", "years", "dose"]
        np.testing.assert_array_equal(file["X"][:].astype(np.float32), X[:, [1, 0, 2]])
        np.testing.assert_array_equal(file["y"][:], np.where(y == 0, -1, 1))
    assert linadd("train", "part-*.csv", "m.safetensors", "--y", "kind", "--drop", "id", *FAST).status == 0
    whole = write_h5(tmp_path / "whole.h5", X=X, y=y, feature_names=NAMES)
    records = [
        linadd("evaluate", "m.safetensors", *arguments, "--json").record
        for arguments in (("part-*.csv", "--y", "kind"), (whole,))
    ]
    assert [records[0][name] for name in FIGURES] == [records[1][name] for name in FIGURES]
    run = linadd("convert", "part-*.csv", "all.h5", "--y", "kind", "--features", "kind,age")
    message = "column 'kind' holds the labels and is no feature. Take it off --features (features=)."
    assert run.err.splitlines()[-1] == f"error: part-0.csv: {message}"
