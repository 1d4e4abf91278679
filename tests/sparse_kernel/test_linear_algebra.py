"""The jitter rule of the design page: none, then 1e-10 of the mean diagonal, tenfold up to 1e-4, then an error."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from linadd.sparse_kernel.linear_algebra import jittered_cholesky


def test_a_positive_definite_matrix_is_not_touched():
    A = np.random.default_rng(0).normal(size=(6, 6))
    G = A @ A.T + np.eye(6)
    L = jittered_cholesky(G)
    np.testing.assert_array_equal(L, np.linalg.cholesky(G))
    assert jittered_cholesky(np.zeros((0, 0))).shape == (0, 0)


@pytest.mark.parametrize(("negative", "jitter"), [(1e-12, 1e-10), (5e-10, 1e-9), (5e-8, 1e-7), (5e-5, 1e-4)])
def test_jitter_grows_tenfold_until_it_helps(negative, jitter):
    """One eigenvalue of -negative; the mean of the diagonal is 1 up to that."""
    G = np.diag([2.0 + negative, -negative])
    L = jittered_cholesky(G)
    np.testing.assert_allclose(np.diag(L @ L.T) - np.diag(G), jitter, rtol=1e-5)


def test_beyond_the_largest_jitter_it_fails():
    with pytest.raises(LinAlgError):
        jittered_cholesky(np.diag([2.0, -1e-3]))
