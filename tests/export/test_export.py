"""The list of exports: every entry under the shared laws, and what `export_model` refuses."""

import itertools
import os
from dataclasses import replace

import numpy as np
import pytest

from linadd import export
from linadd.errors import ConfigError, DataError, LinaddError
from linadd.export import EXPORTERS, export_model
from tests.checks.check_export import (
    CASES,
    SCORERS,
    check_documented_scorer_scores_like_the_model,
    check_export_is_verified,
    check_export_scores_like_the_model,
)
from tests.export.toy import ENCODER_OPTIONS, edge_rows, toy_model

# One model an encoder and degree, of one and of three outputs in turn; and some whose curves go on as lines.
MODELS = [
    (name, options, policy, n_outputs)
    for (name, options), policy, n_outputs in zip(
        ENCODER_OPTIONS + ENCODER_OPTIONS[:7],
        ["clamp"] * len(ENCODER_OPTIONS) + ["linear,1=clamp"] * 7,
        itertools.cycle([1, 3]),
    )
]


def random_rows(model, n_rows):
    """Rows in and far out of the ranges; a third of the values stand on an edge of a bin, or next to it."""
    rng = np.random.default_rng(7)
    ranges = np.where(np.isfinite(model.ranges), model.ranges, [-9.0, 9.0])
    low, high = ranges.T
    X = low + (high - low) * rng.uniform(-0.5, 1.5, (n_rows, len(low)))
    return np.where(rng.random(X.shape) < 0.33, rng.choice(edge_rows(model.encoder), n_rows), X)


def can_hold(model, options):
    """Whether a kind of export with these options can hold the model at all."""
    return "quantised" not in options or (model.range_policy == "clamp" and np.isfinite(model.ranges).all())


@pytest.mark.parametrize(("to", "export_options"), CASES, ids=str)
@pytest.mark.parametrize(("name", "options", "policy", "n_outputs"), MODELS, ids=str)
def test_exports_score_like_the_model(to, export_options, name, options, policy, n_outputs, tmp_path):  # users.md C34
    model = replace(toy_model(name, options, n_outputs), range_policy=policy)
    if not can_hold(model, export_options):
        pytest.skip("values without bounds have no integers")
    X = np.concatenate([edge_rows(model.encoder), random_rows(model, 100)])
    check_export_scores_like_the_model(model, to, export_options, X, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("to", "export_options"), CASES, ids=str)
@pytest.mark.parametrize(("name", "options", "policy", "n_outputs"), MODELS, ids=str)
def test_ten_thousand_rows_score_like_the_model(to, export_options, name, options, policy, n_outputs, tmp_path):
    model = replace(toy_model(name, options, 10 if n_outputs > 1 else 1), range_policy=policy)
    if can_hold(model, export_options):
        check_export_scores_like_the_model(model, to, export_options, random_rows(model, 10_000), tmp_path)


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize(("name", "options", "policy", "n_outputs"), MODELS, ids=str)
def test_the_scorers_of_the_documentation_score_like_the_model(scorer, name, options, policy, n_outputs, tmp_path):
    model = replace(toy_model(name, options, n_outputs), range_policy=policy)
    X = np.concatenate([edge_rows(model.encoder), random_rows(model, 100)])
    check_documented_scorer_scores_like_the_model(model, scorer, X, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize(("name", "options", "policy", "n_outputs"), MODELS, ids=str)
def test_ten_thousand_rows_by_the_scorers_of_the_documentation(scorer, name, options, policy, n_outputs, tmp_path):
    model = replace(toy_model(name, options, 10 if n_outputs > 1 else 1), range_policy=policy)
    check_documented_scorer_scores_like_the_model(model, scorer, random_rows(model, 10_000), tmp_path)


@pytest.mark.parametrize(("to", "export_options"), CASES, ids=str)
@pytest.mark.parametrize("labels", ["numbers", "text"])
def test_exports_are_verified(to, export_options, labels, tmp_path):
    check_export_is_verified(toy_model(labels=labels), to, export_options, tmp_path)


def refusal(kind, model, path, to):
    with pytest.raises(kind) as caught:
        export_model(model, path, to)
    return str(caught.value).replace(str(path), "PATH")


def test_an_unknown_kind_lists_those_that_exist(tmp_path):
    text = refusal(ConfigError, toy_model(), tmp_path / "m.bin", "pickle")
    assert text == "export: 'pickle' is not one of npz, json, onnx, c, liblinear."


def test_a_suffix_of_another_kind_is_refused(tmp_path):
    text = refusal(ConfigError, toy_model(), tmp_path / "m.json", "npz")
    assert text == "PATH: the export 'npz' is a *.npz file. Give the name that suffix."


def test_a_folder_that_is_not_there_is_named_before_any_work(tmp_path):
    model = toy_model()
    model.decision_function = None
    text = refusal(DataError, model, tmp_path / "none" / "m.npz", "npz")
    assert text == f"PATH: the folder '{tmp_path / 'none'}' does not exist. Create it first."


@pytest.mark.parametrize("name", ["coef", "intercept"])
def test_a_model_with_nan_is_refused(name, tmp_path):
    model = toy_model()
    getattr(model, name)[0] = np.nan
    text = refusal(LinaddError, model, tmp_path / "m.json", "json")
    assert text == "PATH: not written: the model holds NaN or infinity. Train it anew."


@pytest.mark.parametrize(("factor", "difference", "n_flips"), [(-1, "2.0e+00", 32), (np.nan, "nan", 26)])
def test_an_export_with_other_scores_is_refused_and_the_old_file_stays(
    factor, difference, n_flips, tmp_path, monkeypatch
):
    path = tmp_path / "m.npz"
    path.write_bytes(b"old")
    wrong = EXPORTERS["npz"]._replace(score=lambda path, X: factor * EXPORTERS["npz"].score(path, X))
    monkeypatch.setattr(export, "EXPORTERS", {"npz": wrong})
    assert refusal(LinaddError, toy_model(), path, "npz") == (
        f"PATH: not written: its scores differ from the model's by {difference} (relative; allowed 1e-12), and "
        f"{n_flips} of 32 check rows change their class. Report this as a fault of linadd."
    )
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == [path.name]


def test_labels_that_flip_within_the_tolerance_are_counted(tmp_path, monkeypatch):
    """A score just above zero, scored as zero, has the other class: reported, not refused."""
    model = toy_model()
    model.decision_function = lambda X: np.where(np.arange(len(X)) < 3, 1e-15, 1.0)[:, None]
    zeroed = EXPORTERS["npz"]._replace(score=lambda path, X: np.where(np.arange(len(X)) < 3, 0.0, 1.0)[:, None])
    monkeypatch.setattr(export, "EXPORTERS", {"npz": zeroed})
    report = export_model(model, tmp_path / "m.npz", "npz")
    assert report["label_flips"] == 3 and report["difference"] == 1e-15
