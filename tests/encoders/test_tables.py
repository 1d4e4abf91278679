"""Tables of bytes: scores and sums equal those of the encoded rows, to the last bit where that is promised."""

import numpy as np
import pytest

from linadd.encoders import exact, make_encoder, tables
from linadd.encoders.rows import encode_row, locate, make_scratch
from tests.encoders import explicit

ENCODERS = [
    ("bspline", {"knots": "quantile"}),
    ("bspline", {"degree": 0}),
    ("bspline", {"degree": 3, "n_bins": 4, "knots": "uniform"}),
    ("fourier", {"n_harmonics": 2}),
    ("identity", {}),
]


def images(n_rows, n_features=5):
    """Rows of bytes, one feature constant, some values rare."""
    X = np.random.default_rng(0).integers(0, 256, (n_rows, n_features), dtype=np.uint8)
    X[:, 1] = 7
    X[:, 2] = np.where(X[:, 2] < 180, 0, X[:, 2])
    return X


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("name", "options"), ENCODERS, ids=str)
def test_decisions_on_bytes_are_those_of_the_same_numbers(name, options, n_outputs, monkeypatch):
    X = images(exact.TABLE_ROWS + 3)
    encoder = make_encoder(name, **options).fit(explicit.census_of(X[:200]))
    rng = np.random.default_rng(1)
    coef = rng.normal(size=(5, encoder.n_basis, n_outputs)).astype(np.float32)
    intercept = rng.normal(size=n_outputs)
    expected = exact.decide(encoder, X.astype(np.float32), coef, intercept)
    calls = []
    monkeypatch.setattr(exact, "add_tables", lambda *args: calls.append(args) or tables.add_tables(*args))
    # Two features at a time; 100 rows.
    monkeypatch.setattr(exact, "TABLE_BYTES", 2 * 8 * 256 * n_outputs)
    monkeypatch.setattr(exact, "PIECE_BYTES", 200)
    np.testing.assert_array_equal(exact.decide(encoder, X, coef, intercept), expected)
    assert len(calls) == 3 * 11
    few = exact.TABLE_ROWS - 1
    np.testing.assert_array_equal(exact.decide(encoder, X[:few], coef, intercept), expected[:few])
    assert len(calls) == 33
    plain = np.einsum("ijk,jko->io", explicit.codes(encoder, X[:50]), coef.astype(np.float64)) + intercept
    np.testing.assert_allclose(expected[:50], plain, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("name", "options"), ENCODERS, ids=str)
def test_sums_by_code_are_those_of_the_encoded_rows(name, options):
    X = images(50).astype(np.float64)
    encoder = make_encoder(name, **options).fit(explicit.census_of(X))
    encoder.use_codes(explicit.census_of(X), X.dtype, "uint8")
    codes, n_columns = np.empty(X.shape, np.uint8), 5 * encoder.n_basis
    exact_rows = np.zeros((50, 5, encoder.n_basis))
    locate(encoder, X, codes)
    scratch = make_scratch(encoder)
    for i in range(50):
        encode_row(encoder.basis, codes[i], scratch)
        for m in range(encoder.n_local):
            exact_rows[i, np.arange(5), scratch.index + m] = scratch.values[m]
    weights = np.random.default_rng(0).normal(size=(2, 50)) * (np.arange(50) % 3 > 0)
    code_sums, sums = np.zeros((2, 5, 256)), np.zeros((2, n_columns))
    for start, stop in ((0, 2), (2, 5)):
        tables.scatter_codes(codes[:20], np.ascontiguousarray(weights[:, :20]), start, stop, code_sums)
        tables.scatter_codes(codes[20:], np.ascontiguousarray(weights[:, 20:]), start, stop, code_sums)
    tables.collect_codes(encoder.basis, tables.every_code(5), code_sums, scratch, sums)
    np.testing.assert_allclose(sums, weights @ exact_rows.reshape(50, -1), rtol=1e-12, atol=1e-12)
    coef = np.random.default_rng(2).normal(size=(5, encoder.n_basis, 2))
    entries, scores = np.empty((2, 5, 256)), np.zeros((50, 2))
    tables.tabulate_codes(encoder.basis, tables.every_code(5), coef, entries, scratch)
    tables.add_tables(codes, 0, entries, scores)
    np.testing.assert_allclose(scores, np.einsum("ijk,jko->io", exact_rows, coef), rtol=1e-12, atol=1e-12)
