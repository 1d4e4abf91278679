"""Shapes: curves centred on the data, their density, importances, and models that do not know their data."""

from pathlib import Path

import numpy as np
import pytest

from linadd import AdditiveClassifier
from linadd.encoders import ENCODERS
from linadd.errors import ConfigError, DataError, FormatError
from linadd.model_file import load_model_file, save_model
from linadd.models import load_model
from linadd.shapes import (
    curve_points,
    curve_spans,
    density_bars,
    directions,
    feature_name,
    image_maps,
    ranking,
    value_limits,
)
from tests.encoders import explicit
from tests.export.toy import toy_model
from tests.solvers.problems import fit, toy

CASES = [
    *(("bspline", {"degree": degree, "n_bins": 5, "knots": "quantile"}) for degree in (0, 1, 3)),
    ("bspline", {"degree": 2, "knots": "uniform"}),
    ("fourier", {}),
    ("hermite", {}),
    ("identity", {}),
    ("identity", {"clamp": False}),
]  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:.*constant features contribute nothing")  # feature 5 is


def trained(encoder="bspline", options=None, n_classes=2, weights=None):
    """(model, rows) on features of every kind."""
    X = explicit.rows(400)
    y = toy(400, n_classes=n_classes)[1]
    return fit(X, y, weights, encoder=encoder, max_epochs=2, tol=10, **(options or {})), X


@pytest.mark.parametrize(("encoder", "options"), CASES, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_curves_have_mean_zero_over_the_training_rows(encoder, options, n_classes):
    weights = np.random.default_rng(3).exponential(size=400)
    model, X = trained(encoder, options, n_classes, weights)
    for j in range(model.n_features):
        values = model.shape_function(j, X[:, j]).values
        means = np.average(values, axis=0, weights=weights)
        assert np.abs(means).max() < 1e-6 * (1 + np.abs(model.coef).max())  # float32 mean codes


@pytest.mark.parametrize(("encoder", "options"), CASES, ids=str)
def test_importance_is_the_mean_size_over_the_training_rows(encoder, options):
    model, X = trained(encoder, options, 3)
    exact = np.stack([np.abs(model.shape_function(j, X[:, j]).values).mean(axis=0) for j in range(model.n_features)])
    # Cells whose curve changes its sign or bends lose a little.
    np.testing.assert_allclose(model.importances(), exact, rtol=0.02, atol=0.01 * exact.max())


def test_importance_is_exact_where_every_value_has_a_cell_of_its_own():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 11, (300, 3))
    model = fit(X, (X[:, 0] > X[:, 1]).astype(int), n_bins=10, knots="uniform", degree=3)
    exact = [np.abs(model.shape_function(j, X[:, j]).values).mean() for j in range(3)]
    np.testing.assert_allclose(model.importances()[:, 0], exact, rtol=1e-5)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_contributions_sum_to_the_decision(encoder):
    model, X = trained(encoder, n_classes=3)
    rows = np.concatenate([X, 3 * X])
    parts = model.explain(rows)
    assert parts.shape == (800, 6, 3)
    bound = 6 * model.encoder.n_basis * 2.0**-53 * (np.abs(parts).sum(axis=1) + np.abs(model.intercept))
    assert (np.abs(parts.sum(axis=1) + model.intercept - model.decision_function(rows)) <= bound).all()
    for j in range(6):
        np.testing.assert_allclose(parts[:, j], model.component(j, rows[:, j]), rtol=1e-12, atol=1e-12)


def test_an_explanation_refuses_what_a_decision_refuses():
    model, X = trained()
    with pytest.raises(DataError) as caught:
        model.explain(X[:, :5], "rows.h5")
    assert str(caught.value) == "rows.h5: the data have shape (400, 5); the model needs 6 features a row."
    X[3, 1] = np.nan
    with pytest.raises(DataError, match=r"^array, row 4, column 2: the value is nan\. "):
        model.explain(X)


def test_the_default_grid_spans_the_range_and_holds_the_knots():
    model, X = trained("bspline", {"degree": 1, "n_bins": 5, "knots": "quantile"})
    shape = model.shape_function(0)
    assert (shape.grid[0], shape.grid[-1]) == (X[:, 0].min(), X[:, 0].max()) == tuple(shape.range)
    assert len(shape.knots) == 6 and np.isin(shape.knots, shape.grid).all() and len(shape.grid) > 100
    assert shape.share.sum() == pytest.approx(1, abs=1e-6) and len(shape.cells) == len(shape.share) + 1
    inner = np.histogram(X[:, 0], shape.cells)[0] / 400
    np.testing.assert_allclose(shape.share, inner, atol=1e-6)
    assert shape.name == "feature 1" and shape.feature == 0 and shape.error is None


def test_a_feature_is_found_by_name():
    model = toy_model(labels="text")
    assert model.shape_function("b").feature == 1 and feature_name(model, 2) == 'c "quoted"'
    for feature, message in (
        ("e", "feature: 'e' is not a name of the model's 4 features."),
        (4, "feature: 4 is not one of 0 to 3."),
        (1.5, "feature: 1.5 is not one of 0 to 3."),
    ):
        with pytest.raises(ConfigError) as caught:
            model.shape_function(feature)
        assert str(caught.value) == message
    with pytest.raises(DataError, match=r"^grid, row 2, column 1: the value is inf\. "):
        model.shape_function(0, [0, np.inf])


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "golden").glob("*.safetensors")), ids=lambda p: p.stem)
def test_models_of_the_first_version_load_and_have_no_density(path):
    model = load_model(path)
    assert model.density is None and model.deviation is None
    with pytest.raises(ConfigError) as caught:
        model.importances()
    assert str(caught.value) == (
        "importance: the model is of a version that kept no density of its data. Train it anew."
    )
    if np.isfinite(model.ranges).all():
        shape = model.shape_function(0)
        assert shape.share is None and shape.values.mean(axis=0) == pytest.approx(0, abs=1e-9)
        np.testing.assert_allclose(model.shape_function(0, shape.range).values, shape.values[[0, -1]], atol=1e-9)
        return
    with pytest.raises(ConfigError) as caught:
        model.shape_function(0)
    assert str(caught.value) == (
        "feature 1: is not clamped, and the model does not know the range of its training data. Train it anew, or give "
        "a grid."
    )
    assert model.shape_function(0, [0.0, 1.0]).values.shape == (2, model.n_outputs)


def test_density_and_errors_go_through_a_file(tmp_path):
    model, _ = trained(n_classes=3)
    model.deviation = np.abs(model.coef)
    model.save(tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    for name in ("mean_code", "weight", "place"):
        np.testing.assert_array_equal(getattr(loaded.density, name), getattr(model.density, name))
    np.testing.assert_array_equal(loaded.deviation, model.deviation)
    assert loaded.digest == model.digest


@pytest.mark.parametrize(("value", "feature"), [(np.nan, 2), (-0.5, 1), (99.0, 3)])
def test_cells_that_would_lead_outside_the_coefficients_are_refused(value, feature, tmp_path):
    tensors, header = trained()[0].to_state()
    tensors["cell_place"][feature - 1, 3] = value
    path = tmp_path / "m.safetensors"
    save_model(path, tensors, header)
    with pytest.raises(FormatError) as caught:
        load_model(path)
    assert str(caught.value) == (
        f"{path}: its cells of feature {feature} lie outside the feature's bins. Train the model anew."
    )


@pytest.mark.parametrize("name", ["mean_code", "cell_weight", "cell_place"])
def test_a_density_is_there_whole_or_not_at_all(name, tmp_path):
    model, _ = trained()
    model.save(tmp_path / "m.safetensors")
    tensors, header = load_model_file(tmp_path / "m.safetensors")
    del tensors[name]
    save_model(tmp_path / "m.safetensors", tensors, header)
    with pytest.raises(FormatError, match=f"tensor '{name}' is missing"):
        load_model(tmp_path / "m.safetensors")


def test_one_feature_is_drawn_as_among_all():
    model, _ = trained("bspline", {"knots": "quantile"}, 3)
    _, u, values, _ = curve_points(model, np.arange(6))
    for j in range(6):
        _, own_u, own, _ = curve_points(model, np.array([j]))
        np.testing.assert_array_equal(np.interp(own_u[:, 0], u[:, j], values[:, j, 1]), own[:, 0, 1])


def test_the_estimator_has_them_too():
    X, y = toy(n_classes=3)
    clf = AdditiveClassifier(max_epochs=5, tol=10).fit(X, y)
    np.testing.assert_array_equal(clf.feature_importances_, clf.model_.importances().mean(axis=1))
    assert set(clf.feature_importances_.argsort()[2:]) == {0, 1}  # that the label follows
    assert clf.shape_function(1, [0.0]).values.shape == (1, 3)
    parts = clf.explain(X)
    np.testing.assert_allclose(parts.sum(axis=1) + clf.intercept_, clf.decision_function(X), rtol=1e-12)


def test_the_span_is_that_of_the_largest_output():
    model = toy_model("bspline", {"degree": 1, "n_bins": 4, "knots": "uniform"}, n_outputs=3)
    spans = curve_spans(model)
    # A linear spline has its extremes at the knots, where it is its coefficient; feature 2 is constant.
    expected = np.ptp(model.coef.astype(np.float64), axis=1).max(axis=1)
    assert spans[[0, 1, 3]] == pytest.approx(expected[[0, 1, 3]], rel=1e-9)
    assert np.isnan(curve_spans(toy_model("identity", {"clamp": False}))).all()


def test_the_ranking_is_by_importance_or_else_by_span():
    model, _ = trained(n_classes=3)
    order, size, kind = ranking(model)
    assert kind == "importance" and (np.diff(size[order]) <= 0).all()
    np.testing.assert_array_equal(size, model.importances().mean(axis=1))
    model.density = None
    order, size, kind = ranking(model)
    assert kind == "span" and order.tolist() == np.argsort(-curve_spans(model), kind="stable").tolist()


def test_directions_are_the_signs_of_covariances():
    X, y = toy(300)
    model = fit(X, y, knots="uniform")
    means = [np.mean(model.shape_function(j, X[:, j]).values[:, 0] * X[:, j]) for j in range(4)]
    assert directions(model)[1, 0] == 1 and directions(model)[:, 0].tolist() == np.sign(means).tolist()
    size, signed = image_maps(model, np.array([3, 2, 1, 0]), (2, 1, 2))
    np.testing.assert_array_equal(size[:, 0, :, 0], model.importances()[[3, 2, 1, 0], 0].reshape(2, 2))
    np.testing.assert_array_equal(signed, size * directions(model)[[3, 2, 1, 0], 0].reshape(2, 1, 2, 1))


def test_bars_keep_the_mass_and_set_spikes_apart():
    cells, share = np.array([0.0, 0.0, 0.0, 1.0, 4.0]), np.array([0.3, 0.0, 0.4, 0.3])
    bars, spikes = density_bars(cells, share, 8)
    np.testing.assert_allclose(bars, [0.2, 0.2, *[0.05] * 6])
    assert spikes == [(0.0, 0.3)]


def test_a_common_scale_ends_where_the_rows_do():
    X, y = toy(4000)
    X[0, 0] = 60  # one row far out
    model = fit(X, y, knots="uniform", n_bins=40, max_epochs=3, tol=10)
    model.coef[0, 20:] = 100
    low, high = value_limits(model, np.array([0]))[0]
    assert low <= 0 <= high < 10 < model.shape_function(0).values.max()


def test_a_curve_is_continued_by_its_policy():
    model, X = trained("bspline", {"knots": "uniform"})
    high = X[:, 0].max()
    flat = model.shape_function(0, [high, high + 2]).values[:, 0]
    model.range_policy = "linear"
    slope = np.diff(model.shape_function(0, [high - 1e-4, high]).values[:, 0]) / 1e-4
    risen = model.shape_function(0, [high, high + 2]).values[:, 0]
    assert flat[0] == flat[1] == risen[0] and risen[1] - risen[0] == pytest.approx(2 * slope[0], rel=1e-6)
