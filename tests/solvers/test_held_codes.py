"""The problem on codes: the same one, over the rows that the codes stand for."""

import numpy as np
import pytest

from linadd.solvers.held_codes import PIECE_ROWS, is_floor, on_codes
from linadd.solvers.stopping import Certifier
from tests.encoders import explicit
from tests.solvers.problems import explicit_codes, make_run, toy

ENCODERS = [{"knots": "quantile"}, {"degree": 3, "n_bins": 5}, {"encoder": "fourier"}, {"encoder": "identity"}]


@pytest.mark.parametrize("options", ENCODERS, ids=str)
def test_its_rows_are_those_that_the_codes_stand_for(options):
    X, y = toy(n_rows=PIECE_ROWS + 7)
    problem, _ = make_run(X, y, precision="uint8", **options)
    coded = on_codes(problem)
    chunks = list(coded.source.chunks())
    assert [(chunk.first_row, chunk.n_rows) for chunk in chunks] == [(0, PIECE_ROWS), (PIECE_ROWS, 7)]
    u = np.concatenate([chunk.dense() for chunk in chunks])
    located = np.array([[explicit.coordinate(problem.encoder.axes, x, j) for j, x in enumerate(row)] for row in X])
    assert 0 < np.abs(u - located).max() <= problem.encoder.grid.step.max()
    for row in (3, PIECE_ROWS + 2):
        expected = explicit.codes_of_coordinates(problem.encoder, u[row : row + 1])
        found = explicit.codes(coded.encoder, u[row : row + 1])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_its_certificate_is_that_of_its_explicit_codes():
    X, y = toy(n_rows=500)
    problem, run = make_run(X, y, precision="uint8", loss="squared_hinge", n_bins=20)
    rng = np.random.default_rng(0)
    coef = rng.standard_normal((4, 21, 1)).astype(np.float32)
    duals = (1e-3 * rng.random((500, 1))).astype(np.float32)  # D > 0, where the certificate does not replace it
    exact, coded = (
        Certifier(each, run.memory, 500).certify([coef], duals, np.zeros(1)) for each in (problem, on_codes(problem))
    )
    assert exact.primal != coded.primal and exact.dual != coded.dual
    np.testing.assert_allclose(exact.primal, coded.primal, rtol=0.05)
    # By explicit codes: D = sum a - a^2 / 4 - |w|^2 / 2, duals scaled to balance.
    z = explicit_codes(on_codes(problem))
    signs = np.where(problem.targets == 1, 1.0, -1.0)
    sums = [duals[signs == side, 0].sum(dtype=np.float64) for side in (-1, 1)]
    a = duals[:, 0] * np.where(signs > 0, min(sums) / sums[1], min(sums) / sums[0])
    w = (a * signs) @ z
    np.testing.assert_allclose(coded.dual, [(a - a**2 / 4).sum() - w @ w / 2], rtol=1e-6)


def test_rows_without_codes_have_no_such_problem():
    X, y = toy()
    assert on_codes(make_run(X, y)[0]) is None
    problem, _ = make_run(X, y, precision="uint8", memory_limit=900)
    assert problem.positions is None and on_codes(problem) is None


def test_a_floor_is_what_the_codes_alone_keep():
    gaps, on_them = np.array([5e-3, 5e-3, 1.5e-3, 5e-4, 1.02e-3]), np.array([9e-4, 2e-3, 9e-4, 1e-5, 1e-4])
    assert is_floor(gaps, on_them, 1e-3).tolist() == [True, False, False, False, True]
