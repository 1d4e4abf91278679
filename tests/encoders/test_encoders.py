"""The list of encoders: shared laws, names, options and refusals."""

import numpy as np
import pytest

from linadd.encoders import ENCODERS, make_encoder
from linadd.errors import ConfigError, DataError
from tests.checks.check_encoder import CASES, CHECKS
from tests.encoders.explicit import census_of, rows


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_law(name, options, check):
    X = rows()
    check(make_encoder(name, **options).fit(census_of(X)), X)


def test_codes_are_distinct():
    assert sorted(encoder.code for encoder in ENCODERS.values()) == list(range(len(ENCODERS)))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("spline", {}, "encoder: 'spline' is not one of bspline, fourier, hermite, identity."),
        ("bspline", {"degree": 4}, "degree: 4 is not one of 0, 1, 2, 3."),
        ("bspline", {"n_bins": 0}, "n_bins: 0 is not an integer between 1 and 4096."),
        ("bspline", {"n_bins": 1, "degree": 0}, "n_bins: 1 is not an integer between 2 and 4096."),
        ("bspline", {"n_bins": 4097}, "n_bins: 4097 is not an integer between 1 and 4096."),
        ("bspline", {"n_bins": 10.5}, "n_bins: 10.5 is not an integer between 1 and 4096."),
        ("bspline", {"n_bins": float("nan")}, "n_bins: nan is not an integer between 1 and 4096."),
        ("bspline", {"knots": "even"}, "knots: 'even' is not one of auto, uniform, quantile."),
        ("bspline", {"penalty_order": 4}, "penalty_order: 4 is not one of 0, 1, 2, 3."),
        ("fourier", {"n_harmonics": 257}, "n_harmonics: 257 is not an integer between 1 and 256."),
        ("hermite", {"n_terms": 33}, "n_terms: 33 is not an integer between 1 and 32."),
    ],
)
def test_what_an_encoder_cannot_be_is_refused(name, options, message):
    with pytest.raises(ConfigError) as caught:
        make_encoder(name, **options)
    assert str(caught.value) == message


def test_an_unknown_option_is_named():
    with pytest.raises(ConfigError) as caught:
        make_encoder("identity", degree=1)
    assert str(caught.value) == (
        "encoder identity: Identity.__init__() got an unexpected keyword argument 'degree'."
    )  # fmt: skip


def test_whole_floats_are_integers():
    encoder = make_encoder("bspline", n_bins=8.0, degree=np.int64(2))
    assert encoder.options["n_bins"] == 8 and type(encoder.options["n_bins"]) is int and encoder.n_basis == 10


def fit_error(X, scale="unit", name="bspline", kind=DataError, names=None, **options):
    """Text of what `fit` raises."""
    with pytest.raises(kind) as caught:
        make_encoder(name, **options).fit(census_of(np.array(X), names=names), scale)
    return str(caught.value)


def test_an_unknown_scale_is_refused():
    assert fit_error([[0.0], [1.0]], "std", kind=ConfigError) == "scale: 'std' is not one of unit, libspline, none."


@pytest.mark.parametrize("name", ENCODERS)
def test_constant_data_are_refused(name):
    message = "train.h5: every feature is constant: there is nothing to learn from."
    for scale in ("unit", "none"):
        assert fit_error([[1.0, 2.0]] * 3, scale, name) == message


@pytest.mark.parametrize("name", ENCODERS)
def test_a_range_beyond_float64_is_refused(name):
    X = [[0.0, 1e308], [1.0, -1e308]]
    message = "the range -1e+308 to 1e+308 is wider than a float64 number. Rescale it."
    assert fit_error(X, name=name) == f"train.h5, column 2: {message}"
    assert fit_error(X, name=name, names=["a", "b"]) == f"train.h5, column 'b': {message}"


@pytest.mark.parametrize("name", ENCODERS)
def test_values_that_are_too_close_to_divide_by_are_not_called_constant(name):
    with pytest.raises(DataError) as caught:
        make_encoder(name).fit(census_of(np.array([[0.0, 1e-320], [1.0, 2e-320]])))
    assert str(caught.value) == (
        "train.h5, column 2: the range 9.99989e-321 to 1.99998e-320 is too narrow for float64 numbers. Rescale it."
    )


@pytest.mark.parametrize("name", ENCODERS)
def test_scales(name):
    X = rows()
    encoder = make_encoder(name, **({"n_bins": 5, "knots": "uniform"} if name == "bspline" else {}))
    span, n_bins = np.ptp(X, axis=0), 5 if name == "bspline" else 10
    np.testing.assert_allclose(encoder.fit(census_of(X), "libspline").scale, np.sqrt(span / n_bins), rtol=1e-15)
    live = span > 0
    unit = np.sqrt(1 / 5) if name == "bspline" else 1.0
    np.testing.assert_allclose(encoder.fit(census_of(X), "unit").scale, unit * live, rtol=1e-15)
    # The identity without a scale is LIBLINEAR's problem, where a constant column is a feature like any other.
    np.testing.assert_array_equal(encoder.fit(census_of(X), "none").scale, live | (name == "identity"))


def test_the_basis_is_made_once_and_aligned():
    encoder = make_encoder("bspline", n_bins=20)
    assert encoder.basis is encoder.basis
    assert encoder.basis.table.shape == (21, 32) and encoder.basis.table.ctypes.data % 64 == 0
    np.testing.assert_array_equal(encoder.basis.table[:, :21], encoder.basis.table_exact)
    assert not encoder.basis.table[:, 21:].any()
