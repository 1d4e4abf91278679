"""Model files of LIBLINEAR: scores, labels and probabilities are its own; training goes on from them; refusals."""

from dataclasses import replace

import numpy as np
import pytest

from linadd.encoders import make_encoder
from linadd.encoders.identity import in_other_units
from linadd.errors import ConfigError, DataError, FormatError
from linadd.export import export_model
from linadd.liblinear_model import CLASSIFIERS, load_liblinear_model
from linadd.models import load_model
from linadd.options import Options
from linadd.sources import open_source
from linadd.train import train
from tests.encoders.explicit import census_of
from tests.solvers.problems import toy

SOLVERS = {
    "L2R_LR": 0, "L2R_L2LOSS_SVC_DUAL": 1, "L2R_L2LOSS_SVC": 2, "L2R_L1LOSS_SVC_DUAL": 3, "MCSVM_CS": 4,
    "L1R_L2LOSS_SVC": 5, "L1R_LR": 6, "L2R_LR_DUAL": 7,
}  # fmt: skip
LABELS = {"greater first": [1, -1], "lesser first": [3, 7], "three": [7, -2, 3]}
TWO = "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 1\nw\n0.25 \n-1.5 \n0.5 \n"


@pytest.fixture(scope="module")
def liblinearutil():
    return pytest.importorskip("liblinear.liblinearutil")


def write(path, text):
    path.write_text(text)
    return path


def test_the_solvers_are_those_that_classify():
    assert SOLVERS.keys() == CLASSIFIERS.keys()


@pytest.mark.parametrize("bias", [-1, 1, 2.5])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("solver", CLASSIFIERS)
def test_scores_and_labels_are_those_of_liblinear(solver, labels, bias, liblinearutil, tmp_path):
    """LIBLINEAR puts the label of the first row first."""
    X, y = toy(n_classes=len(LABELS[labels]))
    order = np.argsort(y != 0, kind="stable")
    X, y = X[order], np.array(LABELS[labels])[y[order]]
    trained = liblinearutil.train(y, X, f"-s {SOLVERS[solver]} -B {bias} -q")
    liblinearutil.save_model(str(tmp_path / "m.model"), trained)
    model = load_model(tmp_path / "m.model")
    rows = 3 * X
    has_probabilities = CLASSIFIERS[solver] == "logistic"
    found, _, scores = liblinearutil.predict([], rows, trained, "-q")
    scores = np.array(scores)
    if len(LABELS[labels]) == 2:
        expected = scores[:, :1] * (1 if labels == "greater first" else -1)
    else:
        expected = scores[:, np.argsort(LABELS[labels])]
    assert model.classes.tolist() == sorted(LABELS[labels]) and model.loss == CLASSIFIERS[solver]
    np.testing.assert_allclose(model.decision_function(rows), expected, rtol=1e-6, atol=1e-6)
    assert (model.predict(rows) == found).mean() > 0.999  # weights are rounded to float32
    if has_probabilities:
        _, _, proba = liblinearutil.predict([], rows, trained, "-b 1 -q")
        own = model.predict_proba(rows)[:, np.searchsorted(model.classes, trained.get_labels())]
        np.testing.assert_allclose(own, proba, atol=1e-6)


def test_a_model_by_hand_becomes_a_model_of_linadd(tmp_path):
    model = load_liblinear_model(write(tmp_path / "m.model", TWO))
    assert model.decision_function([[4.0, 2.0], [1e9, 0.0]]).tolist() == [[-1.5], [2.5e8 + 0.5]]
    model.save(tmp_path / "m.safetensors")
    again = load_model(tmp_path / "m.safetensors")
    assert again.digest == model.digest and again.ranges.tolist() == [[-np.inf, np.inf]] * 2
    assert again.options["intercept"] == "penalised" and again.summary["solver"] == "LIBLINEAR L2R_LR"


def test_there_and_back(liblinearutil, tmp_path):
    model = load_liblinear_model(write(tmp_path / "a.model", TWO))
    export_model(model, tmp_path / "b.model", "liblinear")
    again = load_liblinear_model(tmp_path / "b.model")
    np.testing.assert_array_equal(again.coef, model.coef)
    np.testing.assert_array_equal(again.intercept, model.intercept)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("L2R_LR", "L2R_L2LOSS_SVR", "solver_type L2R_L2LOSS_SVR does not classify. linadd reads models of "
         f"{', '.join(CLASSIFIERS)}."),
        ("label 1 -1", "label 1 1", "has 2 features and the labels [1, 1]. Give a model of two or more."),
        ("label 1 -1\n", "", "its head lacks a number ('label'): it is damaged. Train it again."),
        ("nr_feature 2", "nr_feature x", "its head lacks a number (invalid literal for int() with base 10: 'x'): it is "
         "damaged. Train it again."),
        ("bias 1", "bias nan", "its bias is nan: it is damaged. Train it again."),
        ("-1.5 \n", "", "has 2 finite weights in the place of 3: it is damaged or cut short. Copy it again."),
        ("-1.5", "inf", "has 2 finite weights in the place of 3: it is damaged or cut short. Copy it again."),
        ("-1.5", "1,5", "a weight is no number (could not convert string to float: '1,5'): it is damaged. Train it "
         "again."),
        ("-1.5", "1e39", "has a weight of 1e+39, beyond float32. Scale the features."),
        ("w\n0.25 \n-1.5 \n0.5 \n", "", "ends before its weights: it is cut short. Copy it again."),
        ("nr_class 2", "x" * 70, f"line 2 is {'x' * 70!r:.60}, not of a LIBLINEAR model. Give one."),
    ],
)  # fmt: skip
def test_what_is_no_such_model_is_refused(old, new, message, tmp_path):
    path = write(tmp_path / "m.model", TWO.replace(old, new))
    with pytest.raises(FormatError) as caught:
        load_model(path)
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize("load", [load_model, load_liblinear_model])
def test_a_missing_file_is_named(load, tmp_path):
    with pytest.raises(DataError) as caught:
        load(tmp_path / "m.model")
    reason = "cannot be read (No such file or directory). Give a model file that exists."
    assert str(caught.value) == f"{tmp_path}/m.model: {reason}"


def test_a_line_is_the_same_in_other_units():
    X, _ = toy()
    fits = (X, "none"), (2 * X + 5, "unit")
    axes = [make_encoder("identity").fit(census_of(part), scale).axes for part, scale in fits]
    coef, intercept = np.arange(8, dtype=np.float32).reshape(4, 1, 2), np.array([1.0, -1.0])
    other, moved = in_other_units(coef, intercept, *axes)
    u, v = ((X - each.origin) * each.inverse for each in axes)
    np.testing.assert_allclose(v @ other[:, 0] + moved, u @ coef[:, 0] + intercept, rtol=1e-5, atol=1e-4)
    flat = axes[1]._replace(inverse=np.zeros(4))
    other, moved = in_other_units(coef, intercept, axes[0], flat)
    np.testing.assert_allclose(moved, flat.origin @ coef[:, 0] + intercept, rtol=1e-6)
    assert not other.any()


@pytest.fixture
def start(liblinearutil, tmp_path):
    """LIBLINEAR's logistic model of `toy`."""
    X, y = toy()
    liblinearutil.save_model(str(tmp_path / "m.model"), liblinearutil.train(y, X, "-s 0 -B 1 -c 1 -e 1e-6 -q"))
    return load_model(tmp_path / "m.model")


def options_of(solver, **more):
    same = {"encoder": "identity", "clamp": False, "scale": "none", "center": False, "intercept": "penalised"}
    return Options(**same, solver=solver, **more)


def test_newton_finds_the_optimum_of_liblinear_where_it_starts(start):
    """The same objective, started at its optimum: there after the first pass, which a start at zero is not."""
    X, y = toy()
    source, options = open_source(X, y=y), options_of("newton", tol=1e-6)
    warm, cold = train(source, options, start=start), train(source, options)
    assert warm.summary["passes"] < cold.summary["passes"] and warm.summary["start"] == start.digest
    np.testing.assert_allclose(warm.decision_function(X), start.decision_function(X), atol=1e-3)
    assert warm.summary["gap"] <= 1e-6


@pytest.mark.parametrize("scale", ["none", "unit"])
def test_sgd_goes_on_from_the_lines_of_the_start(scale, start):
    """One pass ends nearer to the start than a pass from zero does, whatever the units of the encoder."""
    X, y = toy()
    options = replace(options_of("sgd", max_epochs=1, average=False), scale=scale, C=1e3)
    begun = train(open_source(X, y=y), options, start=start)
    cold = train(open_source(X, y=y), options)
    expected = start.decision_function(X)
    distance, from_zero = (np.abs(model.decision_function(X) - expected).mean() for model in (begun, cold))
    assert distance < 0.8 * from_zero


def test_a_start_without_an_intercept_has_none_left(start):
    X, y = toy()
    options = replace(options_of("newton", tol=1e-6), intercept="none")
    warm, cold = train(open_source(X, y=y), options, start=start), train(open_source(X, y=y), options)
    np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-2)
    assert warm.intercept.tolist() == [0.0]


def test_a_start_of_other_features_is_refused(start):
    X, y = toy()
    with pytest.raises(ConfigError) as caught:
        train(open_source(X[:, :3], y=y), options_of("newton"), start=start)
    assert str(caught.value) == (
        "start: the model to start from has the encoder identity {'clamp': False}, 4 features and the classes 0, 1; "
        "these are others now. Start anew: warm_start=False, or no --initial."
    )
