"""The embedding of several encoders in one read is that of each alone."""

import numpy as np
import pytest

from linadd.embedding import embed, embed_together, first_alike, fit_encoder
from linadd.options import Options
from linadd.solvers.memory import Memory
from linadd.sources.arrays import ArraySource
from linadd.train import Progress, plan_of, survey
from tests.solvers.problems import thin, toy

SETTINGS = [
    {"n_bins": 4}, {"n_bins": 4, "penalty_order": 2}, {"n_bins": 9}, {"n_bins": 4, "degree": 2},
    {"encoder": "fourier"}, {"encoder": "fourier", "n_harmonics": 2}, {"encoder": "hermite"},
]  # fmt: skip


@pytest.mark.parametrize(
    "choices",
    [{}, {"rows": "sparse"}, {"precision": "uint8"}, {"memory_limit": 30_000}, {"n_jobs": 3}],
    ids=["exact", "sparse", "codes", "in blocks", "threads"],
)
def test_encoders_embedded_together(choices):
    X, y = toy(2500, n_classes=3)
    source = ArraySource(thin(X, 0.2) if "rows" in choices else X, y, np.random.default_rng(0).random(2500))
    settings = [Options(**choices | each) for each in SETTINGS]
    census = survey(source, settings[0], Progress())
    plan = plan_of(source, settings[0], census)
    encoders = [fit_encoder(source, each, plan, census) for each in settings]
    # Codes of the same bins differ with the degree only if there is one a bin.
    assert first_alike(encoders) == [0, 0, 2, 0, 4, 4, 4]
    together = embed_together(source, settings[0], encoders, plan, Memory(10**9), Progress(), census)
    for k, (setting, found) in enumerate(zip(settings, together, strict=True)):
        alone = embed(source, setting, plan, Memory(10**9), Progress(), census)
        for name in ("targets", "costs", "folds"):
            np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))
            assert getattr(found, name) is getattr(together[0], name)
        for part in ("centre", "density"):
            own, other = (vars(getattr(each, part)) for each in (found, alone))
            for name in ("scale", "mean_code", "shifted_code", "mean_norm") if part == "centre" else own:
                np.testing.assert_array_equal(own[name], other[name])
        rows = found.positions
        assert (rows is None) == (not plan.fits) and rows is together[first_alike(encoders)[k]].positions
        if plan.is_sparse:
            for one, another in zip(rows, alone.positions, strict=True):
                np.testing.assert_array_equal(one, another)
        elif plan.fits:
            np.testing.assert_array_equal(rows, alone.positions)
            assert rows.dtype == alone.positions.dtype


def test_degree_0_has_codes_of_its_own():
    source = ArraySource(*toy(100))
    settings = [Options(n_bins=4, precision="uint8", degree=degree) for degree in (0, 1)]
    census = survey(source, settings[0], Progress())
    plan = plan_of(source, settings[0], census)
    encoders = [fit_encoder(source, each, plan, census) for each in settings]
    assert first_alike(encoders) == [0, 1]
    exact = [fit_encoder(source, each, plan_of(source, Options(), census), census) for each in settings]
    assert first_alike(exact) == [0, 0]
