"""The float64 loops: the certificate's scatter, and the check of values for scores. Decisions and the embedding are in
the shared laws."""

import numpy as np
import pytest
import scipy.sparse

from linadd.encoders import make_encoder
from linadd.encoders.exact import (
    certify_rows,
    check_finite,
    decide,
    encode,
    make_scratch,
    scores_of_zero,
    values_of,
)
from linadd.errors import DataError
from tests.checks.check_encoder import CASES, coefficients
from tests.encoders import explicit
from tests.solvers.problems import thin


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_certify_rows(is_sparse, name, options, n_outputs):
    X = thin(explicit.rows(60), 0.3) if is_sparse else explicit.rows(60)
    encoder = make_encoder(name, **options).fit(explicit.census_of(X))
    coef, _ = coefficients(encoder, n_outputs)
    duals = np.random.default_rng(0).normal(size=(60, n_outputs))
    duals[::4] = 0
    duals[1, 0] = 0
    scores, sums = np.zeros((60, n_outputs)), np.zeros((encoder.n_features, encoder.n_basis, n_outputs))
    stored = scipy.sparse.csr_array(X) if is_sparse else X
    values, scratch = values_of(stored), make_scratch(encoder, is_sparse)
    for start, stop in ((0, 25), (25, 60)):
        rows = slice(start, stop)
        certify_rows(
            values.part(start, stop), encoder.axes, encoder.basis, coef, duals[rows], scores[rows], sums, scratch
        )  # fmt: skip
    codes, base = explicit.codes(encoder, X), np.zeros(n_outputs)
    if is_sparse:
        at_zero = explicit.codes(encoder, np.zeros((1, 6)))
        codes, base = codes - at_zero, scores_of_zero(encoder, coef)
        np.testing.assert_allclose(base, np.einsum("ijk,jko->io", at_zero, coef), atol=1e-11 * np.abs(at_zero).max())
    np.testing.assert_array_equal(scores + base, decide(encoder, stored, coef, np.zeros(n_outputs)))
    np.testing.assert_allclose(scores, np.einsum("ijk,jko->io", codes, coef), rtol=0, atol=1e-11 * np.abs(codes).max())
    # 60 terms of float64.
    np.testing.assert_allclose(sums, np.einsum("ijk,io->jko", codes, duals), rtol=0, atol=1e-11 * np.abs(codes).max())
    whole = np.zeros_like(sums)
    certify_rows(values, encoder.axes, encoder.basis, coef, duals, scores, whole, scratch)
    np.testing.assert_array_equal(whole, sums)


def test_scores_are_added_to_what_is_there():
    X = explicit.rows(5)
    encoder = make_encoder("bspline").fit(explicit.census_of(X))
    coef, _ = coefficients(encoder, 2)
    scores, sums = np.ones((5, 2)), np.zeros((6, 11, 2))
    certify_rows(values_of(X), encoder.axes, encoder.basis, coef, np.zeros((5, 2)), scores, sums, make_scratch(encoder))
    np.testing.assert_allclose(scores, decide(encoder, X, coef, np.ones(2)), rtol=1e-14)
    assert not sums.any()


def test_zeros_are_stored_in_phi_and_not_in_its_penalised_form():
    # The first coefficient's suffix sum is all of phi; beyond the last bin reached there is nothing.
    encoder = make_encoder("bspline", n_bins=4, knots="uniform").fit(explicit.census_of(np.array([[0.0], [4.0]])))
    at_knot = np.array([[1.0]])
    assert encode(encoder, at_knot).nnz == 2
    penalised = encode(encoder, at_knot, penalised=True)
    assert penalised.indices.tolist() == [0, 1] and penalised.data.tolist() == [1.0, 1.0]


def test_float32_rows_are_encoded_in_float64_and_rounded_once():
    X = explicit.rows(50)
    encoder = make_encoder("bspline", degree=3, penalty_order=2, knots="uniform").fit(explicit.census_of(X))
    narrow = X.astype(np.float32)
    for penalised in (False, True):
        expected = encode(encoder, narrow.astype(np.float64), penalised).toarray().astype(np.float32)
        np.testing.assert_array_equal(encode(encoder, narrow, penalised).toarray(), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_value_that_is_not_finite_is_named(dtype):
    X = np.ones((4, 3), dtype)
    check_finite(X, "new.npy")
    X[2, 1], X[3, 0] = np.nan, np.inf
    message = "the value is nan. linadd takes no NaN or infinity: fill or drop this row."
    with pytest.raises(DataError) as caught:
        check_finite(X, "new.npy")
    assert str(caught.value) == f"new.npy, row 3, column 2: {message}"
    with pytest.raises(DataError) as caught:
        check_finite(X, "new.npy", ["a", "b", "c"], lambda i: i + 101)
    assert str(caught.value) == f"new.npy, row 103, column 'b': {message}"


def test_an_entry_that_is_not_finite_is_named():
    X = scipy.sparse.csr_array(np.diag([1.0, np.nan, np.inf]))
    with pytest.raises(DataError) as caught:
        check_finite(X, "new.svm")
    assert str(caught.value).startswith("new.svm, row 2, column 2: the value is nan. ")


def test_integers_are_finite():
    check_finite(np.array([[1, 2]], np.uint8), "new.npy")
