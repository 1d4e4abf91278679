"""Five sparse kernel classifiers for up to some 10^5 rows; they write the same model files as the additive part.

`ESTIMATORS` is the list that the command line and the model files refer to. Classes are imported when they are asked
for, because they need scikit-learn: `from linadd.sparse_kernel import ImportVectorMachine`.
"""

from importlib import import_module

from linadd.errors import ConfigError

__all__ = ["ESTIMATORS", "estimator_class"]

ESTIMATORS = {
    "import-vector-machine": "linadd.sparse_kernel.import_vector_machine.ImportVectorMachine",
    "lspc": "linadd.sparse_kernel.lspc.LeastSquaresProbabilisticClassifier",
    "rodeo": "linadd.sparse_kernel.rodeo_density.RodeoDensityClassifier",
    "sparse-gp": "linadd.sparse_kernel.sparse_gp.SparseGPClassifier",
    "sparse-online-gp": "linadd.sparse_kernel.sparse_online_gp.SparseOnlineGPClassifier",
}


def estimator_class(name):
    """Import and return the class of an estimator.

    Parameters
    ----------
    name : str
        A key of `ESTIMATORS`.

    Raises
    ------
    ConfigError
        On another name; lists those that exist.
    """
    if name not in ESTIMATORS:
        raise ConfigError(f"estimator: {name!r} is not a kernel classifier. Choose from {', '.join(ESTIMATORS)}.")
    module, class_name = ESTIMATORS[name].rsplit(".", 1)
    return getattr(import_module(module), class_name)


def __getattr__(class_name):
    for name, path in ESTIMATORS.items():
        if path.endswith(f".{class_name}"):
            return estimator_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {class_name!r}")
