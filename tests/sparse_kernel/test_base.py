"""Shared parts of the kernel classifiers: scaling, checks, one-versus-rest, model files."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from linadd.errors import ConfigError, DataError, FormatError
from linadd.model_file import load_model_file
from linadd.models import load_model
from linadd.sparse_kernel.base import (
    KernelClassifier,
    Scaling,
    check_choice,
    check_memory,
    fit_scaling,
    one_versus_rest_proba,
    refuse_non_finite,
    signs_of,
)
from linadd.sparse_kernel.import_vector_machine import ImportVectorMachine
from linadd.sparse_kernel.kernels import RBF

X = np.random.default_rng(0).normal(3, 2, size=(50, 3))
Y = np.where(X[:, 0] > 3, "yes", "no")


class Nearest(KernelClassifier):
    """The smallest classifier that the base allows: the class of the nearer mean."""

    key = "nearest"

    def _figures(self):
        return None, len(self._tensors())

    def __init__(self, scale="standard", kernel=None, random_state=None):
        self.scale, self.kernel, self.random_state = scale, kernel, random_state

    def fit(self, X, y):
        rows, y_index = self._start_fit(X, y, self.scale)
        self.means_ = np.stack([rows[y_index == c].mean(axis=0) for c in range(len(self.classes_))])
        return self

    def predict_proba(self, X):
        distances = ((self._scaled(X)[:, None] - self.means_) ** 2).sum(axis=2)
        return one_versus_rest_proba(-distances)

    def _tensors(self):
        return {"means": self.means_}

    def _header(self):
        return {}

    def _restore(self, tensors, header):
        self.means_ = tensors["means"]


def test_standard_scaling():
    scaled = fit_scaling(X, "standard")(X)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-14)


def test_minmax_scaling_with_and_without_clipping():
    scaled = fit_scaling(X, "minmax")(X)
    np.testing.assert_allclose([scaled.min(axis=0), scaled.max(axis=0)], [[0] * 3, [1] * 3], atol=1e-15)
    outside = np.vstack([X.min(axis=0) - 1, X.max(axis=0) + 1])
    np.testing.assert_array_equal(fit_scaling(X, "minmax", clip=True)(outside), [[0] * 3, [1] * 3])
    assert fit_scaling(X, "minmax")(outside)[1].min() > 1


def test_no_scaling_copies_and_constants_become_zero():
    copy = fit_scaling(X, None)(X)
    np.testing.assert_array_equal(copy, X)
    assert not np.shares_memory(copy, X)
    constant = np.full((4, 1), 0.1)  # its standard deviation is not exactly 0 in floating point
    for scale in ("standard", "minmax"):
        np.testing.assert_array_equal(fit_scaling(constant, scale)(constant + 5), np.zeros((4, 1)))


def test_signs_and_one_versus_rest():
    np.testing.assert_array_equal(signs_of(np.array([0, 1, 1])), [-1.0, 1.0, 1.0])
    p = np.array([[0.2, 0.5, 0.1], [0.9, 0.9, 0.2]])
    np.testing.assert_allclose(one_versus_rest_proba(np.log(p)), p / p.sum(axis=1, keepdims=True), rtol=1e-14)
    np.testing.assert_allclose(one_versus_rest_proba(np.array([[-1e5, -1e5 - np.log(3)]])), [[0.75, 0.25]], rtol=1e-9)


def test_check_messages():
    with pytest.raises(ConfigError) as error:
        check_choice("objective", 3, ("a", None))
    assert str(error.value) == "objective: 3 is not a choice. Choose from 'a', None."
    check_memory("the columns", 10, 10, 800)
    with pytest.raises(ConfigError) as error:
        check_memory("the columns", 10, 10, 799)
    assert str(error.value) == ("memory_limit: the columns takes 10 x 10 x 8 = 800 bytes, above the limit of 799. "
                                "Raise memory_limit, ask for fewer basis vectors or train on fewer rows.")
    broken = X.copy()
    broken[4, 1], broken[7, 2], broken[8, 0] = -np.inf, np.nan, np.inf
    with pytest.raises(DataError) as error:
        refuse_non_finite(broken, "X")
    assert str(error.value) == "X, row 5, column 2: the value is inf (2 more NaN or inf). Fill or drop it."


def test_a_subclass_gets_labels_ranges_and_predictions():
    model = Nearest().fit(X, Y)
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(model.ranges_, np.stack([X.min(axis=0), X.max(axis=0)], axis=1))
    assert np.mean(model.predict(X) == Y) > 0.9
    with pytest.raises(NotFittedError):
        Nearest().predict(X)
    with pytest.raises(DataError, match=r"^X, row 1, column 1: the value is NaN"):
        model.predict(np.full((1, 3), np.nan))


@pytest.mark.parametrize("options", [{}, {"scale": "minmax"}, {"kernel": RBF(2.0, 0.3)},
                                     {"random_state": np.random.default_rng(0)}])
def test_state_round_trip(options, tmp_path):
    """A generator has no seed to name: the model is whole without it."""
    model = Nearest(**options).fit(X, Y)
    model.save(tmp_path / "m.safetensors")
    tensors, header = load_model_file(tmp_path / "m.safetensors")
    loaded = Nearest.from_state(tensors, header)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert isinstance(loaded.scaling_, Scaling) and loaded.kernel == model.kernel and loaded.scale == model.scale
    assert loaded.random_state is None
    del tensors["ranges"]
    with pytest.raises(FormatError, match="tensor 'ranges' is missing"):
        Nearest.from_state(tensors, header)


def test_saving_needs_a_fit(tmp_path):
    with pytest.raises(NotFittedError):
        Nearest().save(tmp_path / "m.safetensors")


def test_feature_names_are_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = ImportVectorMachine().fit(frame, Y)
    model.save(tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[["b", "a", "c"]])


@pytest.mark.parametrize("labels", [[0, 1], [False, True], [1.5, 2.5], ["no", "yes"], [-3, 7]])
def test_labels_of_every_kind_survive_the_file(labels, tmp_path):
    if labels == [1.5, 2.5]:
        with pytest.raises(ValueError, match="Unknown label type"):
            ImportVectorMachine().fit(X, np.where(Y == "yes", *labels))
        return
    y = np.array(labels)[(Y == "yes").astype(int)]
    model = ImportVectorMachine(max_import_vectors=3).fit(X, y)
    model.save(tmp_path / "m.safetensors")
    predicted = load_model(tmp_path / "m.safetensors").predict(X)
    np.testing.assert_array_equal(predicted, model.predict(X))
    assert predicted.dtype.kind == y.dtype.kind
