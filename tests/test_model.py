"""AdditiveModel: decisions, labels, probabilities, curves, and its way through a file."""

import json

import numpy as np
import pytest
import scipy.sparse

from linadd.encoders import ENCODERS
from linadd.encoders.exact import encode
from linadd.errors import ConfigError, DataError, FormatError
from linadd.model import AdditiveModel, finite_or_none
from linadd.model_file import load_model_file, save_model
from linadd.models import load_model
from tests.solvers.problems import fit, toy


@pytest.fixture(scope="module", params=[2, 3])
def trained(request):
    """(model, X) of two or three classes."""
    X, y = toy(n_classes=request.param)
    return fit(X, np.array(["no", "or", "yes"])[y], max_epochs=30), X


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_decision_is_the_explicit_product(encoder, n_classes):
    X, y = toy(n_classes=n_classes)
    model = fit(X, y, encoder=encoder)
    rows = np.concatenate([X, 10 * X])
    flat = model.coef.reshape(-1, model.n_outputs).astype(np.float64)
    expected = encode(model.encoder, rows) @ flat + model.intercept
    np.testing.assert_allclose(model.decision_function(rows), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_decisions_are_the_sum_of_the_curves_and_the_intercept(encoder):
    X, y = toy(n_classes=3)
    model = fit(X, y, encoder=encoder)
    total = sum(model.component(j, X[:, j]) for j in range(4)) + model.intercept
    np.testing.assert_allclose(model.decision_function(X), total, rtol=1e-12, atol=1e-12)


def test_values_beyond_the_range_are_clamped(trained):
    model, X = trained
    low, high = model.encoder.ranges.T
    np.testing.assert_array_equal(model.decision_function(X * 50), model.decision_function(np.clip(X * 50, low, high)))


@pytest.mark.parametrize("change", [np.asfortranarray, list, lambda X: X.astype("g"), lambda X: X.astype(">f8")])
def test_any_real_table_is_scored(change, trained):
    model, X = trained
    np.testing.assert_array_equal(model.decision_function(change(X)), model.decision_function(X))


def test_narrow_and_sparse_tables_are_scored_by_their_values(trained):
    model, X = trained
    whole = np.rint(X)
    expected = model.decision_function(whole)
    for change in (lambda X: X.astype("i1"), lambda X: X.astype("f2")):
        np.testing.assert_array_equal(model.decision_function(change(whole)), expected)
    def unsorted(X):
        return scipy.sparse.csr_array(X[:, ::-1])[:, ::-1]

    for change in (scipy.sparse.csr_matrix, scipy.sparse.coo_array, unsorted):
        # Entries are added to the scores of zero: another order of the same sum.
        np.testing.assert_allclose(model.decision_function(change(whole)), expected, rtol=1e-12, atol=1e-12)
    assert model.decision_function(X[:0]).shape == (0, model.n_outputs)
    frozen = X.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(model.decision_function(frozen), model.decision_function(X))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((2, 3)), "the data have shape (2, 3); the model needs 4 features a row."),
        (np.zeros(4), "the data have shape (4,); the model needs 4 features a row."),
        (np.zeros((2, 4), complex), "the data have dtype complex128; the model needs real numbers."),
        (np.full((2, 4), "a"), "the data have dtype <U1; the model needs real numbers."),
        (np.zeros((2, 4), object), "the data have dtype object; the model needs real numbers."),
    ],
)
def test_what_is_no_table_of_the_features_is_refused(X, message, trained):
    with pytest.raises(DataError) as caught:
        trained[0].decision_function(X, "rows.h5")
    assert str(caught.value) == f"rows.h5: {message}"


def test_values_that_are_not_finite_are_named(trained):
    model, X = trained
    bad = X.copy()
    bad[7, 2], bad[8, 0] = np.nan, np.inf
    with pytest.raises(DataError) as caught:
        model.predict(bad)
    assert str(caught.value) == (
        "array, row 8, column 3: the value is nan. linadd takes no NaN or infinity: fill or drop this row."
    )
    named = AdditiveModel(**{**vars(model), "feature_names": ["a", "b", "c", "d"]})
    with pytest.raises(DataError, match="array, row 9, column 'a': the value is inf"):
        named.predict(np.where(np.isnan(bad), 0, bad))


def test_labels_are_the_side_of_zero_or_the_greatest(trained):
    model, X = trained
    decisions, labels = model.decision_function(X), model.predict(X)
    if model.n_outputs == 1:
        assert labels.tolist() == ["or" if f > 0 else "no" for f in decisions[:, 0]]
        assert model.labels_of(np.zeros((1, 1))).tolist() == ["no"]
    else:
        assert labels.tolist() == [model.classes[row.argmax()] for row in decisions]


def test_probabilities(trained):
    model, X = trained
    decisions, proba = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-14)
    positive = 1 / (1 + np.exp(-decisions))
    if model.n_outputs == 1:
        np.testing.assert_allclose(proba, np.hstack([1 - positive, positive]), atol=1e-15)
    else:
        np.testing.assert_allclose(proba, positive / positive.sum(axis=1, keepdims=True), rtol=1e-14)
    far = model.probabilities_of(np.array([[1e9], [-1e9]]) * np.ones(model.n_outputs))
    assert np.isfinite(far).all() and (far >= 0).all()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_margin_loss_has_no_probabilities(loss):
    model = fit(*toy(), loss=loss)
    with pytest.raises(ConfigError) as caught:
        model.predict_proba(toy()[0])
    assert str(caught.value) == (
        f"a model of {loss} loss has no probabilities. Train with the logistic loss, or with calibrate (--calibrate "
        "sigmoid)."
    )


@pytest.mark.parametrize("feature", [-1, 4, 1.5, "a"])
def test_a_curve_of_a_feature_that_is_not_there_is_refused(feature, trained):
    with pytest.raises(ConfigError) as caught:
        trained[0].component(feature, [0.0])
    assert str(caught.value) == f"feature: {feature!r} is not one of 0 to 3."


def test_a_grid_must_be_finite(trained):
    with pytest.raises(DataError) as caught:
        trained[0].component(0, [0.0, np.nan])
    assert str(caught.value) == (
        "grid, row 2, column 1: the value is nan. linadd takes no NaN or infinity: fill or drop this row."
    )
    assert trained[0].component(np.int64(1), 0.5).shape == (1, trained[0].n_outputs)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize(
    "labels", [["a", "é"], [0, 1], [False, True], [-0.5, 2.5], ["x", "y", "z"]], ids=lambda labels: str(labels[0])
)
def test_a_saved_model_is_the_same_model(encoder, labels, tmp_path):
    X, y = toy(n_classes=len(labels))
    choices = {"encoder": encoder, "class_weight": {labels[0]: 2.0}, "seed": 3}
    model = fit(X, np.array(labels)[y], **choices)
    model.save(tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert loaded.digest == model.digest
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    for name in ("loss", "feature_names", "options", "history", "summary", "fingerprint"):
        assert getattr(loaded, name) == getattr(model, name), name
    for name in ("coef", "intercept", "classes", "feature_scale"):
        ours, theirs = getattr(model, name), getattr(loaded, name)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def test_the_digest_is_of_the_model_not_of_the_run(trained):
    model = trained[0]
    other = AdditiveModel(**vars(model))
    other.summary, other.fingerprint = other.summary | {"seconds": 1e9}, {"path": "elsewhere"}
    assert other.digest == model.digest
    other.summary = other.summary | {"gap": 0.5}
    assert other.digest != model.digest


@pytest.mark.parametrize("name", ["coef", "intercept", "feature_scale", "edges", "n_bins"])
def test_a_file_without_one_of_its_arrays_is_refused(name, trained, tmp_path):
    path = tmp_path / "m.safetensors"
    trained[0].save(path)
    tensors, header = load_model_file(path)
    del tensors[name]
    save_model(path, tensors, header)
    with pytest.raises(FormatError, match=f"m.safetensors: .*{name!r}"):
        load_model(path)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("loss", "absolute", "it has the loss 'absolute' and the classes ["),
        ("classes", ["no"], " and the classes ['no']."),
    ],
)
def test_a_header_that_makes_no_model_is_refused(key, value, text, trained, tmp_path):
    path = tmp_path / "m.safetensors"
    trained[0].save(path)
    tensors, header = load_model_file(path)
    header[key] = value
    save_model(path, tensors, header)
    with pytest.raises(FormatError) as caught:
        load_model(path)
    assert text in str(caught.value)


def test_scores_that_a_file_no_longer_gives_are_refused(trained, tmp_path):
    path = tmp_path / "m.safetensors"
    trained[0].save(path)
    tensors, header = load_model_file(path)
    tensors["coef"][0, 3] += np.float32(0.01)
    save_model(path, tensors, header)
    with pytest.raises(FormatError) as caught:
        load_model(path)
    assert "check rows" in str(caught.value)


def test_bins_outside_their_range_are_refused(trained, tmp_path):
    path = tmp_path / "m.safetensors"
    trained[0].save(path)
    for name, value in (("n_bins", 10**6), ("lower", 1e300), ("inverse", -1.0), ("upper", np.inf), ("origin", np.nan)):
        tensors, header = load_model_file(path)
        tensors[name][1] = value
        save_model(tmp_path / "bad.safetensors", tensors, header)
        with pytest.raises(FormatError) as caught:
            load_model(tmp_path / "bad.safetensors")
        assert str(caught.value).endswith("its bins of feature 2 do not fit their range. Train the model anew."), name


def test_numbers_that_json_does_not_have_become_null():
    record = {"gap": float("nan"), "violation": -float("inf"), "epoch": 3, "objective": 1.5, "certified_gap": None}
    clean = finite_or_none(record)
    assert json.loads(json.dumps(clean, allow_nan=False)) == record | {"gap": None, "violation": None}
