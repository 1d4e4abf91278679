"""The list of kernel classifiers: names, lazy import, message."""

import subprocess
import sys

import pytest

import linadd.sparse_kernel
from linadd.errors import ConfigError
from linadd.models import MODELS
from linadd.sparse_kernel import ESTIMATORS, estimator_class


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_names_lead_to_classes_and_model_files_to_the_same(name):
    cls = estimator_class(name)
    assert cls.key == name
    assert getattr(linadd.sparse_kernel, cls.__name__) is cls
    assert MODELS[name] == ESTIMATORS[name]


def test_scikit_learn_is_imported_only_with_a_class():
    code = "import sys, linadd.sparse_kernel; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_messages():
    with pytest.raises(ConfigError) as error:
        estimator_class("svm")
    assert str(error.value) == ("estimator: 'svm' is not a kernel classifier. Choose from import-vector-machine, lspc, "
                                "rodeo, sparse-gp, sparse-online-gp.")
    with pytest.raises(AttributeError, match="has no attribute 'SVM'"):
        linadd.sparse_kernel.SVM  # noqa: B018
