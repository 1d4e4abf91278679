"""The sums over rows against explicit codes, and the algebra of a Newton step against NumPy's."""

from itertools import pairwise

import numpy as np
import pytest

from linadd.encoders.exact import encode as encode_exactly
from linadd.encoders.rows import make_scratch
from linadd.solvers import gram
from linadd.solvers.gram import CURVATURE, POSITIVE, RESIDUAL
from tests.solvers.problems import explicit_codes, make_run, mean_code, penalty_order, toy

ENCODERS = [
    {"degree": 0, "n_bins": 4},
    {"degree": 1, "n_bins": 5},
    {"degree": 3, "n_bins": 4, "penalty_order": 2},
    {"encoder": "fourier", "n_harmonics": 2},
    {"encoder": "identity"},
]
# Positions keep 24 bits of a fraction, codes are float32.
FLOAT32 = {"rtol": 2e-6, "atol": 2e-6}


def problem_of(**options):
    """A problem of 83 rows with one constant feature."""
    X, y = toy(n_rows=83)
    X[:, 2] = 3.0
    return make_run(X, y, **options)[0]


def encoded(problem):
    """Codes of all rows, and what they score under random coefficients: (codes, scores, coef)."""
    n_rows, encoder = len(problem.targets), problem.encoder
    codes, scores = gram.empty_codes(encoder, n_rows), np.zeros((n_rows, 2))
    coef = np.random.default_rng(0).standard_normal((encoder.n_features, encoder.n_basis, 2))
    gram.encode(encoder, problem.positions, coef, codes, scores, 3)
    return codes, scores, coef


def plain_codes(problem):
    """phi of all rows, float64 (n_rows, n_columns)."""
    X = problem.source.read(0, len(problem.targets)).dense()
    return encode_exactly(problem.encoder, X).toarray()


def lower_blocks(problem):
    """Mask of the lower triangle by whole blocks of features."""
    feature = np.repeat(np.arange(problem.encoder.n_features), problem.encoder.n_basis)
    return feature[:, None] >= feature


def summed(problem, weights, n_pieces=1, n_shares=1):
    """(sums, gram) of two outputs with weights (2, 4, n_rows), the rows in pieces and the features in shares."""
    codes, _, _ = encoded(problem)
    n_columns = problem.encoder.n_features * problem.encoder.n_basis
    sums, products = np.zeros((2, 4, n_columns)), np.zeros((2, n_columns, n_columns))
    bounds = np.linspace(0, len(problem.targets), n_pieces + 1).astype(int)
    for start, stop in pairwise(bounds):
        for features in gram.shares_of_triangle(problem.encoder.n_features, n_shares):
            gram.add_rows(
                codes.columns[start:stop], codes.values[start:stop], np.ascontiguousarray(weights[:, :, start:stop]),
                np.arange(2), features, problem.encoder.is_local, sums, products,
            )  # fmt: skip
    return sums, products


def random_weights(n_rows):
    """Weights of two outputs; some rows have none."""
    rng = np.random.default_rng(1)
    return rng.random((2, 4, n_rows)) * (rng.random(n_rows) < 0.8)


@pytest.mark.parametrize("options", ENCODERS, ids=str)
def test_scores_are_those_of_explicit_codes(options):
    problem = problem_of(**options)
    _, scores, coef = encoded(problem)
    np.testing.assert_allclose(scores, plain_codes(problem) @ coef.reshape(-1, 2), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", ENCODERS, ids=str)
def test_sums_and_gram_are_those_of_explicit_codes(options):
    problem = problem_of(**options)
    weights, codes = random_weights(len(problem.targets)), plain_codes(problem)
    sums, products = summed(problem, weights)
    np.testing.assert_allclose(sums, weights @ codes, **FLOAT32)
    for o in range(2):
        expected = codes.T @ (weights[o, CURVATURE, :, None] * codes)
        np.testing.assert_allclose(products[o], expected * lower_blocks(problem), **FLOAT32)


@pytest.mark.parametrize("options", ENCODERS, ids=str)
def test_pieces_and_shares_do_not_change_a_bit(options):
    problem = problem_of(**options)
    weights = random_weights(len(problem.targets))
    expected = summed(problem, weights)
    for n_pieces, n_shares in ((3, 1), (83, 2), (7, 9)):
        for found, right in zip(summed(problem, weights, n_pieces, n_shares), expected, strict=True):
            np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("inverse", [0.0, 0.05])
@pytest.mark.parametrize("options", ENCODERS, ids=str)
def test_hessian_is_that_of_the_centred_codes(options, inverse):
    problem = problem_of(**options)
    weights = random_weights(len(problem.targets))
    sums, products = summed(problem, weights)
    scale = problem.centre.scale
    gram.penalise_rows_and_columns(products[0], problem.encoder.n_basis, penalty_order(problem), scale)
    h, z = weights[0, CURVATURE], explicit_codes(problem)
    code_sum, c = h @ (z + mean_code(problem)), np.empty(z.shape[1])
    gram.complete_hessian(products[0], code_sum, mean_code(problem), h.sum(), inverse, c)
    np.testing.assert_allclose(c, h @ z, rtol=0, atol=1e-5)
    expected = np.eye(len(c)) + z.T @ (h[:, None] * z) - inverse * np.outer(c, c)
    np.testing.assert_allclose(np.tril(products[0]), np.tril(expected), rtol=1e-5, atol=1e-5)
    assert sums[0, RESIDUAL].any() and sums[1, POSITIVE].any()


@pytest.mark.parametrize("n", [1, 31, 32, 70, 600])
def test_factor_and_solution_are_numpys(n):
    rng = np.random.default_rng(n)
    root, vector = rng.standard_normal((n, n)), rng.standard_normal(n)
    matrix = np.eye(n) + root @ root.T
    factor, solution = np.tril(matrix), vector.copy()
    gram.factorise(factor)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix), rtol=1e-10, atol=1e-12)
    gram.substitute(factor, solution)
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, vector), rtol=1e-8, atol=1e-10)


def test_a_pivot_lost_to_rounding_is_one():
    # I + 1e20 u u': float64 does not see the identity, and the second pivot, exactly 2 - 1e20 / (1e20 + 1), comes as 0.
    factor = np.full((2, 2), 1e20)
    gram.factorise(factor)
    assert factor[1, 1] == 1.0


def test_shares_cover_the_features_and_are_about_equal():
    for n_features, n_shares in ((1, 3), (54, 2), (200, 4)):
        shares = gram.shares_of_triangle(n_features, n_shares)
        assert [j for start, stop in shares for j in range(start, stop)] == list(range(n_features))
    work = [stop**2 - start**2 for start, stop in shares]
    assert max(work) < 1.05 * min(work)


def test_a_piece_has_rows_however_many_features():
    problem = problem_of()
    assert gram.piece_rows(problem.encoder, 1, 10**6) == 8192
    scratch = make_scratch(problem.encoder)
    assert scratch.values.shape[0] == gram.empty_codes(problem.encoder, 1).values.shape[2]


@pytest.mark.parametrize("n", [33, 70, 131])
def test_threads_do_not_change_a_bit_of_the_factor(n):
    root = np.random.default_rng(n).standard_normal((n, n))
    expected = np.eye(n) + root @ root.T
    others = [expected.copy() for _ in range(3)]
    gram.factorise(expected)
    for n_threads, other in zip((2, 3, 7), others, strict=True):
        gram.factorise(other, n_threads)
        np.testing.assert_array_equal(other, expected)
