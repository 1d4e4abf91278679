"""The picture of a Rodeo density classifier: how far each bandwidth shrank, by class and variable."""

from linadd.figures import new_figure, save_figure

__all__ = ["plot_bandwidths"]

SELECTED, OTHER = "tab:orange", "0.85"


def plot_bandwidths(classifier, path, bandwidths=None, n_classes=10, title=None):
    """Draw a box plot of the bandwidths of every variable, a panel a class; boxes of selected variables are coloured.

    Parameters
    ----------
    classifier : RodeoDensityClassifier
        Fitted.
    path : path-like
        Picture to write: *.png, *.svg or *.pdf.
    bandwidths : list of n_classes float64 arrays (n_rows, n_features), optional
        What to draw instead of the bandwidths at each class's training rows.
    n_classes : int, default=10
        Classes to draw, at most: the first.
    title : str, optional
        Over the panels.

    Raises
    ------
    ConfigError
        Another suffix, or matplotlib is not installed.
    DataError
        The picture cannot be written.
    """
    n_panels = min(n_classes, len(classifier.classes_))
    n_features = classifier.n_features_in_
    figure = new_figure(path, figsize=(2.0 + 0.22 * n_features, 0.6 + 1.7 * n_panels))
    panels = figure.subplots(n_panels, 1, sharex=True, squeeze=False).ravel()
    names = getattr(classifier, "feature_names_in_", None)
    for c, (panel, selected) in enumerate(zip(panels, classifier.selected_, strict=False)):
        drawn = classifier.training_bandwidths(c) if bandwidths is None else bandwidths[c]
        boxes = panel.boxplot(drawn, patch_artist=True, flierprops={"markersize": 1.5},
                              medianprops={"color": "black"})["boxes"]
        for j, box in enumerate(boxes):
            box.set_facecolor(SELECTED if j in selected else OTHER)
        panel.set_ylabel(f"class {classifier.classes_[c]}", fontsize=8)
        panel.tick_params(labelsize=7)
    if names is not None:
        panels[-1].set_xticklabels(names, rotation=90)
    figure.supylabel("bandwidth (scaled units)", fontsize=9)
    figure.supxlabel("variable; coloured: selected", fontsize=9)
    figure.suptitle(title, fontsize=10)
    save_figure(figure, path, dpi=110)
