"""Findings about labels, the order of the rows, and rows that are there twice."""

import numpy as np

from linadd.doctor import diagnose

N_ROWS = 600
X = np.random.default_rng(0).standard_normal((N_ROWS, 2))
Y = np.random.default_rng(1).integers(0, 2, N_ROWS)


def findings(y, rows=X, **options):
    """The findings by kind."""
    return {finding.kind: finding for finding in diagnose(rows, y=y, **options).findings}


def test_labels_without_fault_have_no_finding():
    assert findings(Y) == {}


def test_no_labels():
    found = findings(None)["no-labels"]
    assert (found.severity, found.what, found.remedy) == ("error", "has no labels.", "Give y.")


def test_missing_labels():
    y = Y.astype(float)
    y[[4, 8]] = np.nan
    found = findings(y)["missing-labels"]
    assert (found.severity, found.what) == ("error", "2 labels missing: NaN or infinite.")
    assert (found.rows, found.remedy) == ([5], "Drop these rows or give them a label.")


def test_rare_classes():
    y = Y.copy()
    y[10:13], y[20] = 7, 8
    found = findings(y)["rare-classes"]
    assert (found.severity, found.what) == ("warning", "2 of 4 classes have fewer than 10 rows: 8 1 and 7 3.")
    assert found.remedy == "Give more rows of them, or join them with others."


def test_uneven_classes():
    y = np.zeros(N_ROWS, int)
    y[:3] = 1
    found = findings(y)["uneven-classes"]
    assert (found.severity, found.what) == ("info", "of the rows 597 are of class 0 and 3 of class 1.")
    assert found.remedy == "If the rare class matters as much, train with --class-weight balanced."


def test_a_sample_tells_of_rows_looked_at(monkeypatch):
    monkeypatch.setattr("linadd.doctor.profile.SAMPLE_ROWS", 512)
    y = np.zeros(N_ROWS, int)
    y[:3] = 1
    found = findings(y)
    assert found["uneven-classes"].what == "of the rows looked at 509 are of class 0 and 3 of class 1."
    assert "rare-classes" not in found
    found = findings(np.where(np.arange(N_ROWS) == 34, 1, 0))["labels"]  # in no span
    assert found.severity == "warning" and found.what == "all rows have the one label 0."


def test_many_labels():
    found = findings(np.random.default_rng(0).uniform(size=N_ROWS))["many-labels"]
    assert found.what == "600 of 600 labels are distinct: this looks like a regression target."
    assert (found.severity, found.remedy) == ("warning", "linadd trains classifiers; name the label column by --y.")
    found = findings(np.random.default_rng(0).permutation(N_ROWS))["many-labels"]
    assert found.what == "600 of 600 labels are distinct: this looks like an identifier."


def test_sorted_rows():
    found = findings(np.sort(Y))["sorted-rows"]
    assert (found.severity, found.what) == ("info", "the rows come sorted by label.")
    assert found.remedy == "Nothing to do: they are visited in random order. Do not take the first rows as a sample."
    found = findings(np.sort(Y), memory_limit=4800)["sorted-rows"]
    assert (found.severity, found.what) == ("warning", "the rows come sorted by label.")
    assert found.remedy == (
        "Training draws blocks at random, and they learn faster if these hold all labels: linadd convert array "
        "array_shuffled.h5 --shuffle"
    )


def test_repeated_rows():
    rows = X.copy()
    rows[:50] = rows[50:100]
    found = findings(Y, rows)["duplicate-rows"]
    assert (found.severity, found.what) == ("info", "50 of 600 rows looked at repeat another one of them.")
    assert found.remedy == (
        "If the same measurement is there twice, drop one: held-out rows would not be new to the model."
    )
