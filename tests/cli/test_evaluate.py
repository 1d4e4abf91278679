"""`linadd evaluate`: the figures are those of a plain computation, and every mismatch has its line."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from linadd.models import load_model
from tests.cli.conftest import NAMES, rows_and_labels, write_h5, write_libsvm


def test_figures_are_those_of_scikit_learn(linadd, data, model):
    record = linadd("evaluate", model, data / "test.h5", "--json").record
    X, y = rows_and_labels(200, seed=1)
    X[0, 0] = 7.5
    loaded = load_model(model)
    decision, labels = loaded.decision_function(X)[:, 0], loaded.predict(X)
    assert record["n_rows"] == 200 and record["classes"] == [0, 1] and record["support"] == [sum(y == 0), sum(y == 1)]
    assert record["accuracy"] == pytest.approx(np.mean(labels == y)) and record["error"] == 1 - record["accuracy"]
    assert record["recall"] == pytest.approx([np.mean(labels[y == k] == k) for k in (0, 1)])
    assert record["precision"] == pytest.approx([np.mean(y[labels == k] == k) for k in (0, 1)])
    assert record["auc"] == pytest.approx(roc_auc_score(y, decision))
    assert record["log_loss"] == pytest.approx(log_loss(y, loaded.predict_proba(X)))
    assert record["model"] == str(model) and record["file"] == f"{data}/test.h5" and record["unseen"] == 0


def test_values_out_of_range_are_counted_by_feature(linadd, data, model):
    run = linadd("evaluate", model, data / "test.h5", "--json")
    lower, upper = load_model(model).encoder.ranges.T
    X, _ = rows_and_labels(200, seed=1)
    X[0, 0] = 7.5
    below, above = (lower > X).sum(axis=0), (upper < X).sum(axis=0)
    expected = [{"feature": n, "below": b, "above": a} for n, b, a in zip(NAMES, below, above, strict=True) if b + a]
    expected.sort(key=lambda each: -(each["below"] + each["above"]))
    assert run.record["range"] == {"n_values": 600, "n_clamped": sum(below) + sum(above), "features": expected}
    last = linadd("evaluate", model, data / "test.h5").out.splitlines()[-1]
    counts = ", ".join(f"{each['feature']} ({each['below'] + each['above']})" for each in expected)
    share = (sum(below) + sum(above)) / 600
    assert last == (
        f"range: {sum(below) + sum(above)} values ({share:.2%}) outside the training range count as its nearer end; "
        f"by feature: {counts}"
    )


def test_another_range_policy_than_the_models(linadd, data, model):
    expected = linadd("evaluate", model, data / "test.h5", "--json").record
    refused = linadd("evaluate", model, data / "test.h5", "--range", "error")
    assert refused.status == 1 and refused.err.endswith("use another policy, such as clamp (--range clamp).\n")
    record = linadd("evaluate", model, data / "test.h5", "--range", "linear", "--json").record
    assert record["range"] == expected["range"] and record["log_loss"] != expected["log_loss"]


def test_people_get_a_line_for_each_class(linadd, data, three_classes):
    lines = linadd("evaluate", three_classes, data / "three.h5").out.splitlines()
    record = linadd("evaluate", three_classes, data / "three.h5", "--json").record
    assert lines[0] == f"{data}/three.h5: 300 rows, model {three_classes}"
    assert lines[1:4] == [
        f"accuracy {record['accuracy']:.4%}", f"error {record['error']:.4%}", f"auc {record['auc']:.6f}"
    ]  # fmt: skip
    assert record["log_loss"] is None  # hinge loss has no probabilities
    assert lines[5].split() == ["class", "rows", "recall", "precision"]
    assert [line.split("  ")[0] for line in lines[6:9]] == ["high", "low", "mid — é"]
    assert lines[-1] == "range: all values are within the training range"


def test_weights_count(linadd, data, model, tmp_path):
    X, y = rows_and_labels(200, seed=1)
    wrong = load_model(model).predict(X) != y
    path = write_h5(tmp_path / "weighted.h5", X=X, y=y, weight=np.where(wrong, 0.0, 2.0))
    assert linadd("evaluate", model, path, "--json").record["accuracy"] == 1.0


def test_labels_that_the_model_does_not_know_are_errors(linadd, model, tmp_path):
    X, _ = rows_and_labels(20)
    run = linadd("evaluate", model, write_h5(tmp_path / "new.h5", X=X, y=np.full(20, 5)))
    assert run.status == 0
    assert "labels that the model does not know: 20 rows, counted as errors" in run.out.splitlines()
    assert "accuracy 0.0000%" in run.out.splitlines()


def test_the_auc_is_left_out_where_its_scores_do_not_fit(linadd, data, model):
    run = linadd("evaluate", model, data / "test.h5", "--memory-limit", "1kB", "--json")
    assert run.record["auc"] is None
    assert run.err == "no AUC: the scores of all rows take 11.2 kB. Raise --memory-limit to have it.\n"


def test_fewer_or_more_columns_are_named_on_both_sides(linadd, model, tmp_path):
    X, y = rows_and_labels(20)
    path = write_h5(tmp_path / "two.h5", X=X[:, :2], y=y)
    run = linadd("evaluate", model, path)
    message = f"{path}: has 2 features, the model {model} has 3. Give data of the same columns."
    assert (run.status, run.err) == (1, f"error: {message}\n")


def test_libsvm_text_of_fewer_columns_is_padded(linadd, model, tmp_path):
    X, y = rows_and_labels(50)
    X[:, 2] = 0
    narrow = write_libsvm(tmp_path / "narrow.libsvm", X[:, :2], y)
    full = write_h5(tmp_path / "full.h5", X=X, y=y)
    records = [linadd("evaluate", model, path, "--json").record for path in (narrow, full)]
    assert records[0]["log_loss"] == records[1]["log_loss"]
    wide = write_libsvm(tmp_path / "wide.libsvm", np.hstack([X, X]), y)
    message = f"{wide}: has 6 features, the model {model} has 3. Choose those of the model by --features."
    assert linadd("evaluate", model, wide).err == f"error: {message}\n"


def test_columns_in_another_order_are_matched_by_name(linadd, model, tmp_path):
    X, y = rows_and_labels(200, seed=3)
    plain = write_h5(tmp_path / "plain.h5", X=X, y=y)
    order = [2, 0, 1]
    path = write_h5(tmp_path / "swapped.h5", X=X[:, order], y=y, feature_names=[NAMES[j] for j in order])
    records = [linadd("evaluate", model, each, "--json").record for each in (plain, path)]
    same = ("accuracy", "auc", "log_loss", "confusion", "range")
    assert [records[0][name] for name in same] == [records[1][name] for name in same]
    for out, each in (("plain.npy", plain), ("swapped.npy", path)):
        assert linadd("predict", model, each, "-o", tmp_path / out, "--output", "decision").status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "plain.npy"), np.load(tmp_path / "swapped.npy"))


def test_columns_of_other_names_are_refused(linadd, model, tmp_path):
    X, y = rows_and_labels(20)
    path = write_h5(tmp_path / "other.h5", X=X, y=y, feature_names=["age", "weight", "dose"])
    run = linadd("evaluate", model, path)
    message = f"{path}: has no column 'height', which the model needs. The nearest: 'weight'."
    assert (run.status, run.err) == (1, f"error: {message}\n")


def test_labels_of_another_kind_are_refused(linadd, data, model, three_classes):
    path = data / "three.h5"
    run = linadd("evaluate", model, path)
    message = f"{path}: the labels are text, the model's classes numbers. Give labels of the same kind."
    assert (run.status, run.err) == (1, f"error: {message}\n")


def test_a_file_without_labels_is_refused(linadd, model, tmp_path):
    path = write_h5(tmp_path / "bare.h5", X=rows_and_labels(20)[0])
    run = linadd("evaluate", model, path)
    message = f"{path}: has no labels. Name their dataset with --y (y_name=): the file has none for it."
    assert (run.status, run.err) == (1, f"error: {message}\n")


def test_a_file_that_is_no_model_is_refused(linadd, data):
    run = linadd("evaluate", data / "test.h5", data / "test.h5")
    size = (data / "test.h5").stat().st_size
    remedy = "do not begin with the table of one. Give a model of linadd."
    message = f"{data}/test.h5: is no model file: its {size} bytes {remedy}"
    assert (run.status, run.err) == (1, f"error: {message}\n")
