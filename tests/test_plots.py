"""Pictures: a file that is a picture of the right features, what is drawn in it, and refusals."""

import numpy as np
import pytest

from linadd import plots
from linadd.errors import ConfigError, DataError
from linadd.plots import plot_curves, plot_maps
from linadd.shapes import ranking, value_limits
from tests.export.toy import toy_model
from tests.solvers.problems import fit, toy

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are written, looked into before they are."""
    figures = []
    save = plots.save_figure
    monkeypatch.setattr(plots, "save_figure", lambda figure, path: (figures.append(figure), save(figure, path)))
    return figures


def trained(n_classes=2):
    """A model of four features."""
    return fit(*toy(n_classes=n_classes), max_epochs=3, tol=10, knots="uniform", n_bins=4)


@pytest.mark.parametrize("n_outputs", [1, 3, 12])
def test_a_picture_is_written(n_outputs, tmp_path):
    path = tmp_path / "curves.png"
    chosen = plot_curves(toy_model(n_outputs=n_outputs, labels="text"), path, n_curves=3)
    assert path.read_bytes().startswith(b"\x89PNG") and [each.name for each in tmp_path.iterdir()] == ["curves.png"]
    assert len(chosen) == 3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_panels_stand_in_the_order_of_importance(n_classes, drawn, tmp_path):
    model = trained(n_classes)
    order, size, kind = ranking(model)
    assert kind == "importance" and plot_curves(model, tmp_path / "c.png") == order.tolist()
    curves = drawn[0].axes[::2]
    assert [each.get_title("left") for each in curves] == [f"feature {j + 1}" for j in order]
    assert [each.get_title("right") for each in curves] == [f"{size[j]:.3g}" for j in order]
    classes = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert classes == (["1"] if n_classes == 2 else ["0", "1", "2"])
    labels = [line for line in curves[0].lines if not line.get_label().startswith("_")]
    assert len({line.get_color() for line in labels}) == len(labels) == model.n_outputs
    low, high = curves[0].get_ylim()
    limits = value_limits(model, order)
    assert low < limits.min() < limits.max() < high


def test_a_panel_shows_curve_knots_ends_and_density(drawn, tmp_path):
    model = trained()
    plot_curves(model, tmp_path / "c.png", features=[2])
    curve, strip = drawn[0].axes
    shape = model.shape_function(2)
    x, y = curve.lines[1].get_data()  # after the line at 0
    np.testing.assert_array_equal(x, shape.grid)
    np.testing.assert_array_equal(y, shape.values[:, 0])
    knots = next(line for line in curve.lines if line.get_marker() == "|")
    np.testing.assert_array_equal(knots.get_xdata(), shape.knots)
    low, high = curve.get_xlim()
    assert low < shape.range[0] and shape.range[1] < high and len(curve.patches) == 2
    heights = [bar.get_height() for bar in strip.patches]
    assert len(heights) == plots.BARS and max(heights) == pytest.approx(1)


def test_bands_are_drawn_after_a_search(drawn, tmp_path):
    model = trained()
    model.deviation = np.abs(model.coef) + 0.1
    plot_curves(model, tmp_path / "c.png", n_curves=1)
    assert len(drawn[0].axes[0].collections) == 1


def test_only_features_asked_for_are_drawn(tmp_path):
    assert sorted(plot_curves(trained(), tmp_path / "c.png", features=[1, 3])) == [1, 3]


def test_names_are_text(drawn, tmp_path):
    """A $ is mathematics to matplotlib, and an error if there is no second one or no such command."""
    model = trained()
    model.feature_names = ["$x", r"$\nothing$", "a_b^{", "a name longer than a panel is wide, much longer"]
    plot_curves(model, tmp_path / "c.png")
    titles = {axes.get_title("left") for axes in drawn[0].axes[::2]}
    assert titles == {"$x", r"$\nothing$", "a_b^{", "a name longer than a panel is…"}


def test_a_model_without_density_says_so(drawn, tmp_path):
    model = toy_model()
    order, _, kind = ranking(model)
    assert kind == "span" and plot_curves(model, tmp_path / "c.png") == order.tolist()
    assert [text.get_text() for text in drawn[0].axes[1].texts] == ["density unknown"]


def test_many_classes_are_cut_to_the_important(drawn, tmp_path):
    plot_curves(fit(*toy(240, n_classes=12), max_epochs=1, tol=10), tmp_path / "c.png", n_curves=1)
    legend = drawn[0].legends[0]
    assert len(legend.get_texts()) == plots.MOST_CLASSES and legend.get_title().get_text() == "class\n(10 of 12)"


@pytest.mark.parametrize(("n_classes", "grid", "n_maps"), [(2, (2, 2, 1), 2), (3, (2, 2, 1), 4), (2, (2, 1, 2), 4)])
def test_maps_of_an_image(n_classes, grid, n_maps, drawn, tmp_path):
    model = trained(n_classes)
    plot_maps(model, tmp_path / "m.png", grid)
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    pictures = [axes.images[0].get_array() for axes in drawn[0].axes if axes.images]
    assert len(pictures) == n_maps
    expected = model.importances().mean(axis=1).reshape(grid).sum(axis=2)
    np.testing.assert_allclose(pictures[0], expected)


def test_a_grid_that_does_not_fit_is_refused(tmp_path):
    with pytest.raises(ConfigError) as caught:
        plot_maps(trained(), tmp_path / "m.png", (8, 8, 1))
    assert str(caught.value) == (
        "--grid 8x8x1: has 64 cells, and there are 4 features. Choose those of the image by --features, in their "
        "order, or give its height, width and channels."
    )


def test_curves_without_end_are_refused(tmp_path):
    model = toy_model("identity", {"clamp": False})
    with pytest.raises(ConfigError) as caught:
        plot_curves(model, tmp_path / "curves.png")
    assert str(caught.value) == "plots need curves with a training range; this model does not clamp its features."


@pytest.mark.parametrize("draw", [plot_curves, lambda model, path: plot_maps(model, path, (2, 2, 1))])
def test_a_suffix_of_no_picture_is_refused(draw, tmp_path):
    with pytest.raises(ConfigError, match=r"curves: pictures are \*\.png, "):
        draw(trained(), tmp_path / "curves")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(DataError, match=r"no/curves\.png: the folder '.*/no' does not exist\. Create it first\.$"):
        plot_curves(toy_model(), tmp_path / "no" / "curves.png")
