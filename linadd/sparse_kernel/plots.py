"""Pictures of a kernel classifier: its boundary over two features, and its criterion against the number of vectors."""

import numpy as np

from linadd.errors import ConfigError
from linadd.figures import new_figure, save_figure
from linadd.sparse_kernel.base import signs_of
from linadd.sparse_kernel.sparse_gp_state import SparseGPState

__all__ = ["criterion_path", "plot_boundary", "plot_criterion"]

GRID = 200


def plot_boundary(model, X, y, path):
    """Draw the probability of the likeliest class over two features, the boundary, the rows and the model's vectors.

    Parameters
    ----------
    model : ImportVectorMachine or SparseGPClassifier
        Fitted on two features.
    X : float64 array (n_rows, 2)
        Rows to show.
    y : array (n_rows,)
        Their labels, among `model.classes_`.
    path : path-like
        Picture to write: *.png, *.svg or *.pdf.

    Raises
    ------
    ConfigError
        The model has not two features, another suffix, or matplotlib is not installed.
    """
    if model.n_features_in_ != 2:
        raise ConfigError(f"plot: a boundary is drawn over 2 features, this model has {model.n_features_in_}. "
                          "Train on two of them.")
    low, high = model.ranges_.T
    margin = 0.05 * (high - low)
    axes = [np.linspace(a, b, GRID) for a, b in zip(low - margin, high + margin, strict=True)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    proba = model.predict_proba(grid)
    figure = new_figure(path, figsize=(5.2, 4.4))
    axis = figure.subplots()
    shown = axis.contourf(*axes, proba.max(axis=1).reshape(GRID, GRID), levels=10, cmap="Greys", alpha=0.5)
    figure.colorbar(shown, ax=axis, label="probability of the likeliest class")
    for c, label in enumerate(model.classes_):
        others = np.delete(proba, c, axis=1).max(axis=1)
        axis.contour(*axes, (proba[:, c] - others).reshape(GRID, GRID), levels=[0], colors="black", linewidths=1)
        axis.scatter(*X[y == label].T, s=8, label=str(label))
    axis.scatter(*vectors_of(model).T, s=50, facecolors="none", edgecolors="black", linewidths=0.8)
    axis.legend(fontsize=8)
    save_figure(figure, path)


def vectors_of(model):
    """Import vectors, or basis vectors of all classes, in the units of the data."""
    if model.key == "import-vector-machine":
        return model.import_vectors_
    return np.vstack(model.basis_vectors_) if len(model.models_) > 1 else model.basis_vectors_


def criterion_path(model, X, y):
    """The criterion after every addition: H of an Import Vector Machine, LOSS of each output of a sparse GP.

    Parameters
    ----------
    model : ImportVectorMachine or SparseGPClassifier
        Fitted.
    X, y : arrays (n_rows, n_features), (n_rows,)
        The training rows (a sparse GP is built again with its kernel, order and matched moments).

    Returns
    -------
    list of float64 arrays
    """
    if model.key == "import-vector-machine":
        return [np.array(model.objective_history_)]
    rows = model.scaling_(np.asarray(X, dtype=np.float64))
    labels = model.classes_[1:] if len(model.models_) == 1 else model.classes_
    paths = []
    for part, label in zip(model.models_, labels, strict=True):
        columns = part.kernel.bind(rows)
        state = SparseGPState(lambda indices, columns=columns: columns(rows[indices]), part.kernel.diag(rows),
                              signs_of(np.asarray(y) == label), part.bias, part.slope, len(part.indices))
        losses = []
        for index in part.indices:
            alpha, nu = state.moments(np.array([index]))
            state.add(index, state.columns(np.array([index]))[:, 0], alpha[0], nu[0])
            losses.append(state.loss())
        paths.append(np.array(losses))
    return paths


def plot_criterion(model, X, y, path):
    """Draw `criterion_path` against the number of vectors.

    Parameters
    ----------
    model, X, y
        As in `criterion_path`.
    path : path-like
        Picture to write: *.png, *.svg or *.pdf.

    Raises
    ------
    ConfigError
        Another suffix, or matplotlib is not installed.
    """
    is_ivm = model.key == "import-vector-machine"
    figure = new_figure(path, figsize=(4.8, 3.4))
    axis = figure.subplots()
    paths = criterion_path(model, X, y)
    for label, values in zip(model.classes_[-len(paths) :], paths, strict=True):
        axis.plot(np.arange(1, len(values) + 1), values, linewidth=1.2, label=str(label))
    if len(paths) > 1:
        axis.legend(fontsize=8)
    axis.set_xlabel("import vectors" if is_ivm else "basis vectors")
    axis.set_ylabel("objective H" if is_ivm else "LOSS (mean -log2 probability)")
    save_figure(figure, path)
