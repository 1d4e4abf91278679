"""The list of exports: every entry under the shared laws, and what `export_model` refuses."""

import os

import numpy as np
import pytest

from linadd import export
from linadd.errors import ConfigError, DataError, LinaddError
from linadd.export import EXPORTERS, export_model
from tests.checks.check_export import check_export_is_verified, check_export_scores_like_the_model
from tests.export.toy import ENCODER_OPTIONS, edge_rows, toy_model


@pytest.mark.parametrize("to", EXPORTERS)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("name", "options"), ENCODER_OPTIONS, ids=str)
def test_exports_score_like_the_model(to, n_outputs, name, options, tmp_path):
    model = toy_model(name, options, n_outputs)
    check_export_scores_like_the_model(model, to, edge_rows(model.encoder), tmp_path)


@pytest.mark.parametrize("to", EXPORTERS)
@pytest.mark.parametrize("labels", ["numbers", "text"])
def test_exports_are_verified(to, labels, tmp_path):
    check_export_is_verified(toy_model(labels=labels), to, tmp_path)


def refusal(kind, model, path, to):
    with pytest.raises(kind) as caught:
        export_model(model, path, to)
    return str(caught.value).replace(str(path), "PATH")


def test_an_unknown_kind_lists_those_that_exist(tmp_path):
    text = refusal(ConfigError, toy_model(), tmp_path / "m.bin", "pickle")
    assert text == "export: 'pickle' is not one of npz, json."


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


@pytest.mark.parametrize(("factor", "difference", "n_flips"), [(-1, "2.0e+00", 32), (np.nan, "nan", 24)])
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
