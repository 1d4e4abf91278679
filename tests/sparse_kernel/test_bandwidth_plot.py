"""The picture of bandwidths: a panel a class, a box a variable, and what it says without matplotlib."""

import sys

import numpy as np
import pytest

from linadd.errors import ConfigError
from linadd.sparse_kernel.bandwidth_plot import OTHER, SELECTED, plot_bandwidths
from linadd.sparse_kernel.rodeo_density import RodeoDensityClassifier


@pytest.fixture
def classifier():
    """Two classes; variable 1 is narrow in the first, variable 2 in the second."""
    rng = np.random.default_rng(0)
    X = rng.random((80, 4))
    X[:40, 0], X[40:, 1] = rng.normal(0.5, 0.02, 40), rng.normal(0.5, 0.02, 40)
    return RodeoDensityClassifier().fit(X, np.repeat([0, 1], 40))


@pytest.fixture
def figures(monkeypatch):
    """The figures that are saved."""
    figure = pytest.importorskip("matplotlib.figure")
    saved, savefig = [], figure.Figure.savefig

    def keep(self, *arguments, **options):
        saved.append(self)
        savefig(self, *arguments, **options)

    monkeypatch.setattr(figure.Figure, "savefig", keep)
    return saved


def test_a_panel_a_class_and_a_box_a_variable(classifier, figures, tmp_path):
    plot_bandwidths(classifier, tmp_path / "picture.png", title="two classes")
    assert (tmp_path / "picture.png").stat().st_size > 1000
    from matplotlib.colors import to_rgba
    for panel, chosen in zip(figures[0].axes, ([0], [1]), strict=True):
        colours = [box.get_facecolor() for box in panel.patches]
        assert colours == [to_rgba(SELECTED if j in chosen else OTHER) for j in range(4)]
        medians = np.median(classifier.training_bandwidths(chosen[0]), axis=0)
        assert medians.argmin() == chosen[0]
    assert [panel.get_ylabel() for panel in figures[0].axes] == ["class 0", "class 1"]


def test_given_bandwidths_and_number_of_classes(classifier, figures, tmp_path):
    plot_bandwidths(classifier, tmp_path / "picture.svg", [np.full((5, 4), 0.3)] * 2, n_classes=1)
    assert len(figures[0].axes) == 1


def test_without_matplotlib_it_says_what_to_install(classifier, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigError) as error:
        plot_bandwidths(classifier, tmp_path / "picture.png")
    assert str(error.value) == "plots need matplotlib. Install it by pip install 'linadd[plot]'."
