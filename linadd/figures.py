"""Figures of matplotlib, written whole or not at all: the only place that imports it."""

import os

from linadd.atomic import atomic_path
from linadd.errors import ConfigError

__all__ = ["SUFFIXES", "new_figure", "save_figure"]

SUFFIXES = (".png", ".svg", ".pdf")


def new_figure(path, **options):
    """An empty figure, before any work is spent on a picture that cannot be written.

    Parameters
    ----------
    path : path-like
        The file that it is for. matplotlib would add a suffix to a name without one, and leave the file of the name
        that was asked for empty.
    **options
        Of matplotlib's Figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ConfigError
        The suffix is none of SUFFIXES, or matplotlib is not installed.
    """
    if os.path.splitext(path)[1].lower() not in SUFFIXES:
        listed = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
        raise ConfigError(f"{path}: pictures are {listed}. Give the name one of these suffixes.")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("plots need matplotlib. Install it by pip install 'linadd[plot]'.") from None
    return Figure(layout="constrained", **options)


def save_figure(figure, path, dpi=100):
    """Write a figure.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        From `new_figure`.
    path : path-like
        The same file; an existing one is replaced in one step.
    dpi : int
        Pixels an inch.

    Raises
    ------
    DataError
        The file cannot be written.
    """
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=dpi)
