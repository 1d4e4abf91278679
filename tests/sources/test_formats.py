"""One data set in every format: the same census, the same model bits and the same predictions.

The formats are the builders of `check_source.py`, so that a new one is here before its author thinks of it. Values are
whole float32 numbers, which every format holds exactly.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from linadd.census import take_census
from linadd.options import Options
from linadd.sources import open_source
from linadd.train import train
from tests.checks.check_source import BUILDERS, open_table
from tests.solvers.problems import toy

LETTER = Path(__file__).parents[2] / "../shared/data/letter.npz"
N_ROWS = 1100  # more than one group of the census


@cache
def table(name):
    """Rows, labels and weights of a data set."""
    if name == "synthetic":
        X, y = toy(n_rows=N_ROWS, n_features=4, n_classes=3)
        return X.astype(np.float32), y, np.ones(N_ROWS)
    with np.load(LETTER) as archive:
        return archive["X"][:N_ROWS].astype(np.float32), archive["y"][:N_ROWS] % 5, np.ones(N_ROWS)


def fitted(source):
    """Census, model and predictions of a source."""
    census = take_census(source, sample_rows=300)
    model = train(source, Options(max_epochs=2, tol=1.0, n_bins=6, solver="dual-cd"))
    return census, model, np.concatenate([model.predict(chunk.dense()) for chunk in source.chunks()])


@cache
def expected(name):
    """Of the same rows in memory."""
    return fitted(open_source(*table(name)[:2]))


@pytest.mark.parametrize("name", ["synthetic", pytest.param("letter", marks=[
    pytest.mark.skipif(not LETTER.exists(), reason="../shared/data/letter.npz is absent")
])])  # fmt: skip
@pytest.mark.parametrize("kind", BUILDERS)
def test_the_same_census_model_and_predictions(kind, name, tmp_path):
    wanted, model, predictions = expected(name)
    with open_table(kind, tmp_path, *table(name), chunk_rows=333) as source:
        census, other, found = fitted(source)
    for what in ("n_rows", "n_features", "weight_sum", "n_filled", "is_label_sorted"):
        assert getattr(census, what) == getattr(wanted, what), what
    for what in ("minimum", "maximum", "mean", "variance", "n_distinct", "classes", "class_counts", "sample_weight"):
        np.testing.assert_array_equal(getattr(census, what), getattr(wanted, what), what)
    sample = census.sample.toarray() if source.is_sparse else census.sample
    np.testing.assert_array_equal(sample, wanted.sample)
    assert other.summary["plan"] == model.summary["plan"]
    assert other.coef.tobytes() == model.coef.tobytes() and other.intercept.tobytes() == model.intercept.tobytes()
    assert other.summary["gap"] == model.summary["gap"] > 0
    assert other.feature_names is not None or other.digest == model.digest
    np.testing.assert_array_equal(found, predictions)
