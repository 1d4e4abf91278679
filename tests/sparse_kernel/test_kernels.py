"""Kernels: shared laws over the list, the vectors of the design page, messages."""

import numpy as np
import pytest

from linadd.errors import ConfigError, DataError
from linadd.sparse_kernel.kernel_base import default_length
from linadd.sparse_kernel.kernels import (
    ARD,
    KERNELS,
    RBF,
    BSplineKernel,
    ChiSquared,
    Intersection,
    JensenShannon,
    Linear,
    Polynomial,
    kernel_from_description,
    make_kernel,
)
from tests.checks.check_kernel import check_gradients, check_gram, check_value_semantics
from tests.sparse_kernel.toy import T1

EXAMPLES = [
    RBF(1.5, 0.9),
    ARD(0.7, (0.5, 1.0, 2.0)),
    Linear(1.2, 0.3),
    Linear(1.2, 0.0),
    Polynomial(0.5, 0.8, 0.4, 3),
    Polynomial(2.0, 0.8, 0.0, 2),
    Intersection(1.3),
    ChiSquared(0.6),
    JensenShannon(2.0),
    BSplineKernel(1.4, 5, 3, 2),
    RBF(1.5, 0.9) + Linear(0.2, 0.0),
    RBF(1.5, 0.9) * ARD(0.7, (0.5, 1.0, 2.0)) + Intersection(0.4),
]
ROWS = np.random.default_rng(0).uniform(size=(12, 3))
OTHER = np.random.default_rng(1).uniform(size=(7, 3))
H1, H2 = np.array([[0.2, 0.3, 0.5]]), np.array([[0.1, 0.6, 0.3]])


def test_examples_cover_the_list():
    assert {type(kernel) for kernel in EXAMPLES} >= set(KERNELS.values())


@pytest.mark.parametrize("kernel", EXAMPLES, ids=repr)
@pytest.mark.parametrize("check", [check_gram, check_gradients], ids=lambda check: check.__name__)
def test_laws(kernel, check):
    check(kernel, ROWS, OTHER)


@pytest.mark.parametrize("kernel", EXAMPLES, ids=repr)
def test_value_semantics(kernel):
    check_value_semantics(kernel)


def test_rbf_row_of_the_toy_data():
    expected = [1.5, 0.693405835, 0.693405835, 0.201753680, 0.436440688, 0.583343346, 0.558673971, 0.809111261]
    np.testing.assert_allclose(RBF(1.5, 0.9)(T1)[0], expected, atol=1e-8)


@pytest.mark.parametrize(("kernel", "value"), [(Intersection(), 0.7), (ChiSquared(), 0.908333333),
                                               (JensenShannon(), 0.932751102)])
def test_histogram_kernels(kernel, value):
    np.testing.assert_allclose(kernel(H1, H2), [[value]], atol=1e-8)
    np.testing.assert_allclose(kernel.diag(H1), [1.0], atol=1e-15)
    corner = kernel(np.array([[0.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    assert corner[0, 0] == 0 and corner[0, 2] == 1
    assert np.all(np.isfinite(corner))


@pytest.mark.parametrize(("degree", "penalty_order", "value"), [(1, 1, 2.48), (2, 1, 2.98), (3, 1, 3.478651466),
                                                                (3, 2, 34.696149333)])
def test_bspline_kernel(degree, penalty_order, value):
    kernel = BSplineKernel(1.0, 4, degree, penalty_order)
    np.testing.assert_allclose(kernel(np.array([[0.37]]), np.array([[0.81]])), [[value]], atol=1e-8)
    np.testing.assert_array_equal(kernel(np.array([[-1.0, 2.0]])), kernel(np.array([[0.0, 1.0]])))


@pytest.mark.parametrize(("degree", "least", "greatest"), [(1, 0.75, 1.0), (2, 1.25, 1.5), (3, 1.70, 2.0)])
def test_bspline_kernel_tends_to_the_intersection_kernel(degree, least, greatest):
    """The bounds are the measured ones of the design page, in units of 1 / n_bins."""
    x = np.random.default_rng(4).uniform(size=(300, 1))
    for n_bins in (10, 40):
        gap = BSplineKernel(1.0, n_bins, degree, 1)(x) - n_bins * Intersection()(x)
        assert least - 1e-9 < gap.min() and gap.max() < greatest + 1e-9


def test_identical_rows_have_distance_zero_exactly():
    X = 1e4 + np.random.default_rng(2).normal(size=(50, 6))
    assert np.all(np.diag(RBF(1.5, 0.1)(X)) == 1.5)


def test_default_length_is_sqrt_of_features_on_standardised_rows():
    X = np.random.default_rng(3).normal(size=(200, 5))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert make_kernel("rbf").with_default_lengths(X) == RBF(1.0, default_length(X))
    assert default_length(X) == pytest.approx(np.sqrt(5))
    assert make_kernel("ard").with_default_lengths(X).length_scales == (default_length(X),) * 5
    assert default_length(np.ones((4, 2))) == 1.0
    assert RBF(1.0, 0.3).with_default_lengths(X) == RBF(1.0, 0.3)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: RBF(variance=-1), "RBF: variance is -1. Give a finite number above 0."),
    (lambda: RBF(length_scale=np.inf), "RBF: length_scale is inf. Give a finite number above 0."),
    (lambda: ARD(length_scales=[1, 0]), "ARD: length_scales is 0.0. Give a finite number above 0."),
    (lambda: Linear(offset=-0.5), "Linear: offset is -0.5. Give a finite number >= 0."),
    (lambda: Polynomial(power=1.5), "Polynomial: power is 1.5. Give a whole number of at least 1."),
    (lambda: make_kernel("gauss"), "kernel: 'gauss' is not a kernel. Choose from "
     f"{', '.join(KERNELS)} or give a Kernel object."),
    (lambda: kernel_from_description({"kernel": "x"}), f"kernel: 'x' is not a kernel. Choose from "
     f"{', '.join(KERNELS)}, sum, product."),
    (lambda: kernel_from_description({"kernel": "rbf", "ell": 1}), "kernel rbf: it has no parameter 'ell'."),
])
def test_messages(make, message):
    with pytest.raises(ConfigError) as error:
        make()
    assert str(error.value) == message


def test_negative_value_is_refused_with_its_place():
    with pytest.raises(DataError) as error:
        Intersection()(np.array([[0.1, 0.2], [0.3, -0.4]]))
    assert str(error.value) == ("row 2, column 2: -0.4 is negative, and Intersection takes values >= 0. "
                                "Use scale='minmax'.")
