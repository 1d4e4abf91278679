"""`diagnose` and `train` agree: an error is what training refuses, in the same words; nothing else is one."""

import warnings

import numpy as np
import pytest
import scipy.sparse

from linadd.doctor import diagnose
from linadd.errors import ConvergenceWarning, DataError, DataWarning, LinaddError
from linadd.options import Options
from linadd.sources import open_source
from linadd.train import train

N_ROWS = 200
X = np.random.default_rng(0).standard_normal((N_ROWS, 3))
Y = (X[:, 0] + 0.5 * np.random.default_rng(1).standard_normal(N_ROWS) > 0).astype(int)


def changed(array, place, value):
    """A copy with another value."""
    array = np.array(array, dtype=np.result_type(array, type(value)))
    array[place] = value
    return array


MANY = np.random.default_rng(2).uniform(size=10_001)
ONES = np.ones(N_ROWS)
# Name -> features, labels and weights.
REFUSED = {
    "NaN": (changed(X, (5, 1), np.nan), Y, None),
    "NaN of weight 0": (changed(X, (5, 1), np.nan), Y, changed(ONES, 5, 0.0)),
    "infinity": (changed(X, (7, 2), -np.inf), Y, None),
    "a column of NaN": (changed(X, (slice(None), 1), np.nan), Y, None),
    "missing label": (X, changed(Y, 9, np.nan), None),
    "one class": (X, np.zeros(N_ROWS), None),
    "one class, text": (X, np.full(N_ROWS, "a"), None),
    "regression": (MANY[:, None], MANY, None),
    "identifier": (np.arange(100_002.0)[:, None] % 7, np.arange(100_002), None),
    "no labels": (X, None, None),
    "weights of zero": (X, Y, 0 * ONES),
    "class of weight 0": (X, Y, Y.astype(float)),
    "negative weight": (X, Y, changed(ONES, 3, -1.0)),
    "NaN weight": (X, Y, changed(ONES, 3, np.nan)),
    "huge weight": (X, Y, changed(ONES, 3, 1e16)),
    "weights of unlike size": (np.repeat([[0.0], [1.0]], N_ROWS // 2, axis=0), Y, changed(ONES * 1e-12, 0, 1e3)),
    "constant": (np.ones((N_ROWS, 2)), Y, None),
    "too wide": (changed(changed(X, (0, 1), 1.7e308), (1, 1), -1.7e308), Y, None),
    "too narrow": (changed(0 * X, (0, 1), 5e-324), Y, None),
    "mixed labels": (X, np.array([0] * 100 + ["a"] * 100, dtype=object), None),
}
TAKEN = {
    "plain": (X, Y, None),
    "three classes": (X, np.arange(N_ROWS) % 3, None),
    "text labels": (X, np.array(["no", "yes"])[Y], None),
    "a constant column": (changed(X, (slice(None), 1), 4.0), Y, None),
    "equal columns": (X[:, [0, 1, 1]], Y, None),
    "integers": ((X * 50).astype(np.int16), Y, None),
    "float32": (X.astype(np.float32), Y, None),
    "unlike scales": (X * [1e-30, 1, 1e30], Y, None),
    "some weights 0": (X, Y, np.arange(N_ROWS) % 2),
    "one row of a class": (X, np.arange(N_ROWS) == 3, None),
    "half labels": (X, Y / 2, None),
    "two rows": (X[:2], [0, 1], None),
    "sorted": (X, np.sort(Y), None),
}


def refusal(rows, y, weight):
    """What training says; None if it takes the data."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            train(open_source(rows, y, weights=weight), Options(max_epochs=1, tol=1.0))
    except LinaddError as error:
        return error
    return None


def errors_of(rows, y, weight, **options):
    """The errors of a diagnosis; that of reading counts as one."""
    try:
        found = diagnose(rows, y=y, weights=weight, **options).findings
    except DataError as error:
        return [error]
    return [finding for finding in found if finding.severity == "error"]


def forms(rows):
    """The features dense and sparse."""
    return [rows, scipy.sparse.csr_array(rows)]


def assert_in_the_words_of(error, found):
    """There are errors, and those that are not counted by column or row say what training says."""
    assert error is not None and found
    own = [each for each in found if getattr(each, "kind", "") not in ("missing-values", "infinite-values")]
    for each in own:
        if isinstance(each, DataError):
            assert str(each) == str(error)
        elif each.kind != "missing-labels":
            assert f"{each.what} {each.remedy}".strip() == error.message


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_what_training_refuses_is_an_error(name, is_sparse):
    rows, y, weight = REFUSED[name]
    rows = forms(rows)[is_sparse]
    full = name == "identifier"  # which takes more rows than a sample has
    assert_in_the_words_of(refusal(rows, y, weight), errors_of(rows, y, weight, full=full))


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "weights of unlike size"])
def test_one_read_of_a_large_file_finds_it_too(name, monkeypatch):
    """All but what needs the rows' squared norms, and so a second read."""
    monkeypatch.setattr("linadd.doctor.profile.SAMPLE_ROWS", 100)
    monkeypatch.setattr("linadd.doctor.profile.LEAST_ROWS", 100)
    rows, y, weight = REFUSED[name]
    assert_in_the_words_of(refusal(rows, y, weight), errors_of(rows, y, weight, full=True))


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("sample_rows", [100, 65_536])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", TAKEN)
def test_what_training_takes_has_no_error(name, full, sample_rows, is_sparse, monkeypatch):
    monkeypatch.setattr("linadd.doctor.profile.SAMPLE_ROWS", sample_rows)
    monkeypatch.setattr("linadd.doctor.profile.LEAST_ROWS", 100)
    rows, y, weight = TAKEN[name]
    rows = forms(rows)[is_sparse]
    assert refusal(rows, y, weight) is None
    assert errors_of(rows, y, weight, full=full) == []


def test_a_memory_limit_that_holds_no_training_chunk():
    wide = np.zeros((N_ROWS, 1000), np.uint8)
    wide[:, 0] = np.arange(N_ROWS)
    (found,) = errors_of(wide, Y, None, memory_limit=5000)
    expected = "memory_limit: 5,000 bytes do not hold one training chunk of 1 rows of 1000 features."
    assert (found.kind, found.what) == ("memory-limit", expected)
    assert found.remedy == "Give at least 8,000, or a smaller training_chunk."


def test_what_opening_warns_of_is_a_finding(tmp_path):
    import h5py

    path = tmp_path / "a b.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("rows", data=np.zeros((20_000, 60), np.float32), chunks=(20_000, 1))
        file["y"] = np.arange(20_000) % 2
    found = diagnose(path, x="rows", reading="--x rows").findings
    (layout,) = (finding for finding in found if finding.kind == "layout")
    assert layout.severity == "warning"
    assert layout.what == "dataset 'rows' is stored in chunks of 20000 x 1, which is slow to read by rows."
    assert layout.remedy == f"Rewrite it once: linadd convert '{path}' '{tmp_path}/a b_rows.h5' --x rows"


def test_findings_come_by_severity():
    rows = changed(changed(X, (5, 1), np.nan), (slice(None), 2), 0.0)
    severities = [finding.severity for finding in diagnose(rows, y=np.sort(Y)).findings]
    assert severities == ["error", "warning", "info"]


def test_other_warnings_pass():
    class Loud(type(open_source(X, Y))):
        def layout(self):
            warnings.warn("loud", UserWarning, stacklevel=2)
            return {}

    with pytest.warns(UserWarning, match="loud"):
        diagnose(Loud(X, Y))
