"""The identity: standardised, or the plain linear problem."""

import numpy as np
import pytest

from linadd.encoders import make_encoder
from linadd.encoders.exact import encode
from linadd.errors import DataError
from tests.encoders.explicit import census_of

rng = np.random.default_rng(0)


def test_identity_standardises_under_the_unit_scale():
    X = np.array([5.0, 1e9]) + rng.normal(size=(1000, 2)) * [0.1, 30]
    sample_weight = rng.random(1000)
    encoder = make_encoder("identity").fit(census_of(X, sample_weight))
    code = encode(encoder, X).toarray()
    np.testing.assert_allclose(np.average(code, axis=0, weights=sample_weight), 0, atol=1e-7)
    np.testing.assert_allclose(np.average(code**2, axis=0, weights=sample_weight), 1, rtol=1e-7)
    raw = make_encoder("identity", clamp=False).fit(census_of(X), "none")
    np.testing.assert_array_equal(encode(raw, 2 * X).toarray(), 2 * X)


def test_identity_refuses_an_infinite_variance():
    with pytest.raises(DataError) as caught:
        make_encoder("identity").fit(census_of(np.array([[0.0, -2e200], [1.0, 1e200]])))
    assert str(caught.value) == "train.h5, column 2: values up to 2e+200 have no finite variance. Rescale it."
    make_encoder("identity").fit(census_of(np.array([[0.0, -2e200], [1.0, 1e200]])), "none")
