"""The Fourier basis: its penalty, and the digits of its recurrence."""

import numpy as np

from linadd.encoders import make_encoder
from linadd.encoders.exact import encode
from tests.encoders.explicit import census_of

rng = np.random.default_rng(0)


def test_fourier_penalises_derivatives():
    # |w|^2 is the mean square of the d-th derivative up to a constant: f = w . phi, integrated over the period.
    for d in range(3):
        encoder = make_encoder("fourier", n_harmonics=5, penalty_order=d).fit(census_of(np.array([[-1.0], [1.0]])))
        u = np.linspace(-1, 1, 4001)[:-1, None]
        w = rng.normal(size=10)
        f = encode(encoder, u).toarray() @ w
        spectrum = np.fft.rfft(f)
        derivative = np.fft.irfft((1j * np.arange(len(spectrum))) ** d * spectrum, len(u))
        np.testing.assert_allclose((derivative**2).mean(), (w**2).sum() / 2, rtol=1e-9)


def test_fourier_recurrence_keeps_its_digits():
    encoder = make_encoder("fourier", n_harmonics=256, penalty_order=0).fit(census_of(np.array([[-1.0], [1.0]])))
    u, k = rng.uniform(-1, 1, 50), np.arange(1, 257)
    code = encode(encoder, u[:, None]).toarray()
    # Errors add up linearly: 256 steps of an ulp or two.
    np.testing.assert_allclose(code[:, ::2], np.sin(np.pi * u[:, None] * k), atol=1e-12)
    np.testing.assert_allclose(code[:, 1::2], np.cos(np.pi * u[:, None] * k), atol=1e-12)
