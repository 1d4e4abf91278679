"""Models of random coefficients, one for each encoder in the list and each shape that an export must carry."""

import numpy as np

from linadd.census import CensusTaker
from linadd.chunks import Chunk
from linadd.encoders import ENCODERS, make_encoder
from linadd.model import AdditiveModel

N_FEATURES = 4
# Every encoder with its defaults, and what changes the arrays of an export.
ENCODER_OPTIONS = [
    *((name, {}) for name in ENCODERS),
    *(("bspline", {"degree": degree, "n_bins": 5, "knots": "uniform"}) for degree in range(4)),
    *(("bspline", {"degree": degree, "n_bins": 5, "knots": "quantile"}) for degree in range(4)),
    ("bspline", {"degree": 1, "n_bins": 1}),
    ("fourier", {"n_harmonics": 64, "penalty_order": 2}),
    ("hermite", {"n_terms": 12, "penalty_order": 3}),
    ("identity", {"clamp": False}),
]  # fmt: skip


def training_rows():
    """A spike at 0, a time stamp, a constant, an even feature: (300, N_FEATURES)."""
    rng = np.random.default_rng(0)
    X = np.stack(
        [
            np.maximum(rng.standard_normal(300), 0.0),
            1.6e9 + rng.random(300) * 10,
            np.full(300, -2.5),
            rng.uniform(-1, 1, 300),
        ],
        axis=1,
    )
    X[:2, 0] = -1, 5
    return X


def toy_model(name="bspline", options=None, n_outputs=1, labels="numbers"):
    """An AdditiveModel that nobody trained."""
    X = training_rows()
    taker = CensusTaker("toy", N_FEATURES, sample_rows=len(X))
    taker.update(Chunk(X, None, None, 0, "toy"))
    encoder = make_encoder(name, **(options or {})).fit(taker.finish())
    rng = np.random.default_rng(1)
    classes = np.arange(max(n_outputs, 2)) * 3 - 1
    return AdditiveModel(
        encoder=encoder,
        coef=rng.standard_normal((N_FEATURES, encoder.n_basis, n_outputs)).astype(np.float32),
        intercept=rng.standard_normal(n_outputs),
        classes=classes if labels == "numbers" else np.array([f"class {c} é" for c in classes]),
        loss="hinge",
        feature_scale=np.ones(N_FEATURES),
        feature_names=None if labels == "numbers" else ["a", "b", 'c "quoted"', "d"],
        options={"seed": 5},
    )


def edge_rows(encoder):
    """Rows at the ends of the range, beyond them, at every knot and next to each, for all features alike."""
    low, high = np.where(np.isfinite(encoder.ranges), encoder.ranges, [-9.0, 9.0]).T
    edges = encoder.axes.edges
    share = np.linspace(0, 1, 21)[:, None]
    knots = np.where(np.isnan(edges), low[:, None], edges).T
    rows = np.concatenate([[low - 1, high + 1, low, high], low * (1 - share) + high * share, knots])
    return np.concatenate([rows, np.nextafter(rows, -np.inf), np.nextafter(rows, np.inf)])


def calibrated(kind, scores):
    """Arrays of a made-up calibration, and the probabilities that it gives scores (n_rows, n_outputs)."""
    rng, n_outputs = np.random.default_rng(2), scores.shape[1]
    if kind == "sigmoid":
        slope, offset = -rng.uniform(0.5, 1.5, n_outputs), rng.standard_normal(n_outputs)
        arrays = {"calibration_slope": slope, "calibration_offset": offset}
        share = 1 / (1 + np.exp(slope * scores + offset))
    else:
        x, p = np.sort(rng.standard_normal((n_outputs, 5)), axis=1), np.sort(rng.random((n_outputs, 5)), axis=1)
        p[:, 0] = 0
        arrays = {
            "calibration_starts": 5 * np.arange(n_outputs + 1),
            "calibration_scores": x.ravel(),
            "calibration_probabilities": p.ravel(),
        }
        share = np.column_stack([np.interp(scores[:, o], x[o], p[o]) for o in range(n_outputs)])
    if n_outputs == 1:
        expected = np.hstack([1 - share, share])
    else:
        total = share.sum(axis=1, keepdims=True)
        expected = np.divide(share, total, out=np.full_like(share, 1 / n_outputs), where=total > 0)
    return {"calibration": np.array(kind), **arrays}, expected
