"""One pass: its sums by their definitions, its dual objective as the certificate's, its bits from anywhere."""

from dataclasses import replace

import numpy as np
import pytest

from linadd.encoders.exact import encode
from linadd.solvers.gram import CURVATURE, NEGATIVE, POSITIVE, RESIDUAL
from linadd.solvers.memory import Memory
from linadd.solvers.row_sums import RowSums
from linadd.solvers.stopping import Certifier
from linadd.sources import open_source
from tests.solvers.problems import costs_of, make_run, signs_of, toy

SMOOTH = ("squared_hinge", "logistic")


def point_of(problem, seed=0, size=0.3):
    """(coef, offset) at random."""
    rng = np.random.default_rng(seed)
    shape = (problem.encoder.n_features, problem.encoder.n_basis, problem.n_outputs)
    return size * rng.standard_normal(shape), rng.standard_normal(problem.n_outputs)


def passed(problem, points, n_threads=1):
    """RowSums after passes at points."""
    rows = RowSums(problem, Memory(10**9), True)
    for coef, offset in points:
        rows.old[...] = rows.new
        assert rows.run(coef, offset, np.arange(problem.n_outputs), n_threads, lambda: False)
    return rows


def slopes(problem, margins):
    """(loss', loss'') by their formulas."""
    if problem.loss.is_bounded:
        p = 1 / (1 + np.exp(margins))
        return -p, p * (1 - p)
    return -2 * np.maximum(0, 1 - margins), 2.0 * (margins < 1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", SMOOTH)
def test_sums_by_their_definitions(loss, n_classes):
    X, y = toy(n_classes=n_classes)
    weights = np.random.default_rng(2).choice([0.0, 0.5, 2.0], len(y))
    weights[np.unique(y, return_index=True)[1]] = 1.0
    problem, _ = make_run(X, y, weights, loss=loss, C=3.0, n_bins=5)
    points = [point_of(problem, seed) for seed in (0, 1)]
    rows = passed(problem, points)
    codes, signs, costs = encode(problem.encoder, X).toarray(), signs_of(problem), costs_of(problem)
    old, new = (signs * (codes @ coef.reshape(codes.shape[1], -1) + offset) for coef, offset in points)
    np.testing.assert_allclose(signs * rows.new.T, new, rtol=1e-4, atol=1e-5)
    slope, curvature = slopes(problem, new)
    before, before_curvature = slopes(problem, old)
    duals = np.maximum(-costs * (before + before_curvature * (new - old)), 0)
    duals = np.minimum(duals, costs) if problem.loss.is_bounded else duals
    close = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(rows.duals, duals, **close)
    for o in range(problem.n_outputs):
        for row, terms in (
            (RESIDUAL, -costs * signs * slope),
            (CURVATURE, costs * curvature),
            (NEGATIVE, np.where(signs < 0, -duals, 0)),
            (POSITIVE, np.where(signs > 0, duals, 0)),
        ):
            np.testing.assert_allclose(rows.sums[o, row], terms[:, o] @ codes, rtol=1e-4, atol=1e-3)


def test_the_first_dual_point_is_that_of_the_decisions():
    X, y = toy()
    problem, _ = make_run(X, y, loss="logistic")
    rows = passed(problem, [point_of(problem)])
    margins = signs_of(problem)[:, 0] * rows.new[0]
    np.testing.assert_allclose(rows.duals[:, 0], 1 / (1 + np.exp(margins)), rtol=1e-6)


@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_dual_objective_is_the_certificates(loss, intercept):
    X, y = toy(n_classes=3)
    problem, _ = make_run(X, y, loss=loss, intercept=intercept, C=1e-3)
    rows = passed(problem, [point_of(problem)])
    coef = np.zeros((4, 11, 3), np.float32)
    certificate = Certifier(problem, Memory(10**9), len(y)).certify([coef], rows.duals, np.zeros(3))
    assert certificate.dual.any()
    np.testing.assert_allclose(np.maximum(rows.dual_objectives(), 0.0), certificate.dual, rtol=1e-5)  # D(0) = 0


@pytest.mark.parametrize("options", [{}, {"degree": 3}, {"encoder": "fourier"}], ids=str)
def test_tables_of_bytes_give_the_sums_of_the_rows(options):
    X, y = toy(n_rows=203, n_classes=3)
    problem, _ = make_run(X, y, loss="logistic", precision="uint8", **options)
    wide = replace(problem, positions=problem.positions.astype(np.uint16))  # the same codes, but decoded row by row
    points = [point_of(problem, seed) for seed in (0, 1)]
    tables, rows = passed(problem, points, n_threads=3), passed(wide, points)
    assert tables.is_bytes and not rows.is_bytes
    np.testing.assert_array_equal(tables.new, rows.new)
    np.testing.assert_allclose(tables.sums, rows.sums, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(tables.gram, rows.gram)
    without = RowSums(problem, Memory(10**9), False)
    assert without.run(*points[1], np.arange(3), 1, lambda: False)
    np.testing.assert_array_equal(without.new, tables.new)


def test_line_terms_are_the_derivatives_of_the_loss():
    X, y = toy()
    for loss in SMOOTH:
        problem, _ = make_run(X, y, loss=loss)
        rows = passed(problem, [point_of(problem, seed) for seed in (0, 1)])
        step, eta = 1e-5, 0.3
        (low, *_), (value, slope, curvature, balance, total), (high, *_) = (
            rows.line(0, at) for at in (eta - step, eta, eta + step)
        )
        np.testing.assert_allclose(slope, (high - low) / (2 * step), rtol=1e-4)
        middle = signs_of(problem)[:, 0] * (rows.old[0] + eta * (rows.new[0] - rows.old[0]))
        first, second = slopes(problem, middle)
        np.testing.assert_allclose(curvature, second @ (rows.new[0] - rows.old[0]) ** 2, rtol=1e-10)
        np.testing.assert_allclose(balance, -first @ signs_of(problem)[:, 0], rtol=1e-10)
        np.testing.assert_allclose(total, second.sum(), rtol=1e-10)
        assert value > 0


def test_bits_do_not_depend_on_memory_reader_or_threads():
    X, y = toy(n_rows=700, n_classes=3)
    problem, _ = make_run(X, y, loss="logistic")
    points = [point_of(problem, seed) for seed in (0, 1)]
    expected = passed(problem, points)
    others = [passed(problem, points, n_threads=3)]
    for chunk_rows in (1, 77, 1000):
        source = open_source(X, y, chunk_rows=chunk_rows)
        others.append(passed(replace(problem, source=source, positions=None), points, n_threads=2))
    for other in others:
        for name in ("new", "duals", "sums", "gram"):
            np.testing.assert_array_equal(getattr(other, name), getattr(expected, name))
        assert (other.dual_objectives() == expected.dual_objectives()).all()
    assert expected.reads == 0 and others[-1].reads == 2


def test_outputs_not_asked_for_have_no_sums():
    X, y = toy(n_classes=3)
    problem, _ = make_run(X, y, loss="logistic")
    rows = RowSums(problem, Memory(10**9), True)
    rows.run(*point_of(problem), np.array([1]), 1, lambda: False)
    assert rows.sums[1].any() and not rows.sums[[0, 2]].any() and not rows.gram[[0, 2]].any()


def test_a_pass_is_left_between_pieces():
    X, y = toy(n_rows=20_000)
    problem, _ = make_run(X, y, loss="logistic")
    rows = RowSums(problem, Memory(10**9), False)
    size = len(rows.codes.columns)
    assert not rows.run(*point_of(problem), np.arange(1), 1, lambda: True)
    assert rows.new[0, :size].all() and not rows.new[0, size:].any()
    assert rows.gram.shape[0] == 0
