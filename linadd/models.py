"""The list of model classes: key in a model file -> class, imported when a file of that class is loaded."""

from importlib import import_module

from linadd.errors import FormatError
from linadd.liblinear_model import is_liblinear_model, load_liblinear_model
from linadd.model_file import load_model_file, restore
from linadd.sparse_kernel import ESTIMATORS

__all__ = ["MODELS", "load_model"]

# Each class has `from_state(tensors, header)`, which checks what it is given and verifies the check rows.
MODELS = {"additive": "linadd.model.AdditiveModel", **ESTIMATORS}


def load_model(path):
    """Read any model that linadd saved, or LIBLINEAR; nothing in the file is executed.

    Parameters
    ----------
    path : path-like
        A model file of linadd, or one of LIBLINEAR (see `load_liblinear_model`).

    Returns
    -------
    AdditiveModel or kernel classifier
        Of the class that the file names, verified on the check rows that were saved with it.

    Raises
    ------
    FormatError
        The file is no model, damaged, newer than this version, or of a class that this version does not know.
    DataError
        The file cannot be read.
    """
    if is_liblinear_model(path):
        return load_liblinear_model(path)
    tensors, header = load_model_file(path)
    try:
        return restore(model_class(header.get("class")), tensors, header)
    except FormatError as error:
        raise FormatError(str(error), source=path) from error


def model_class(key):
    """The class that a key of MODELS stands for."""
    if not isinstance(key, str) or key not in MODELS:
        raise FormatError(f"is of class {key!r}, this linadd knows {', '.join(MODELS)}. Upgrade linadd.")
    module, name = MODELS[key].rsplit(".", 1)
    return getattr(import_module(module), name)
