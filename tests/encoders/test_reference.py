"""Encoded values against libspline, the program of the method's author (tests/reference/README.md)."""

import re
from pathlib import Path

import numpy as np
import pytest

from linadd.encoders import make_encoder
from linadd.encoders.exact import encode
from tests.encoders.explicit import census_of

FILE = Path(__file__).parent.parent / "reference" / "libspline_additive.npz"
REFERENCE = dict(np.load(FILE))
CASES = [match for name in REFERENCE if (match := re.fullmatch(r"(\w+)_(\w+)_degree(\d)_order(\d)_encoded", name))]
OPTIONS = {"bspline": "degree", "fourier": "n_harmonics", "hermite": "n_terms"}


def test_every_case_of_the_design_is_there():
    names = {match.group(1, 2, 3, 4) for match in CASES}
    for data in ("toy", "digits"):
        assert {(data, "bspline", str(r), str(d)) for r in range(4) for d in range(3)} <= names
        assert {(data, "fourier", r, str(d)) for r in "14" for d in range(3)} <= names
        assert {(data, "hermite", "1", str(d)) for d in range(3)} | {(data, "hermite", "4", "1")} <= names


@pytest.mark.parametrize("case", CASES, ids=lambda match: match.group())
def test_encoded_values_are_libsplines(case):
    data, family, degree, order = case.groups()
    expected = REFERENCE[case.group()]
    X = REFERENCE[f"{data}_X"]
    knots = {"knots": "uniform"} if family == "bspline" else {}
    encoder = make_encoder(family, **{OPTIONS[family]: int(degree)}, penalty_order=int(order), **knots)
    encoder.fit(census_of(X), "libspline")
    found = encode(encoder, X[: len(expected)], penalised=True).toarray().reshape(expected.shape)
    np.testing.assert_allclose(found * encoder.scale[:, None], expected, rtol=0, atol=1e-12 * np.abs(expected).max())
