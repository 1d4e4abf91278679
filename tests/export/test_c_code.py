"""The C export as its user has it: self-check, labels, probabilities, refusals; scores are under the shared laws."""

import ctypes
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from linadd.errors import ConfigError, LinaddError
from linadd.export import c_code, export_model
from linadd.export.c_source import c_string
from linadd.export.quantised import Quantised
from linadd.export.tables import model_arrays
from tests.export.toy import ENCODER_OPTIONS, calibrated, edge_rows, toy_model

COMPILER = next(filter(shutil.which, c_code.COMPILERS), None)
pytestmark = pytest.mark.skipif(COMPILER is None, reason=f"no C compiler: {', '.join(c_code.COMPILERS)}")


def library_of(model, path, **options):
    export_model(model, path, "c", **options)
    return ctypes.CDLL(c_code.compile_shared(path, path.parent))


def call(function, row, n_values=0):
    """(what a function of the file returns, the values that it wrote)."""
    pointer, values = ctypes.POINTER(ctypes.c_double), np.zeros(max(n_values, 1))
    row = np.ascontiguousarray(row, np.float64)
    arguments = [row.ctypes.data_as(pointer), *([values.ctypes.data_as(pointer)] if n_values else [])]
    return function(*arguments), values


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_labels_and_probabilities_are_those_of_the_model(n_outputs, tmp_path):
    model = replace(toy_model(n_outputs=n_outputs, labels="text"), loss="logistic")
    library = library_of(model, tmp_path / "m.c")
    n_classes = len(model.classes)
    labels = (ctypes.c_char_p * n_classes).in_dll(library, "linadd_classes")
    assert [label.decode() for label in labels] == model.classes.tolist()
    sizes = [ctypes.c_int.in_dll(library, f"linadd_n_{name}").value for name in ("features", "outputs", "classes")]
    assert sizes == [4, n_outputs, n_classes]
    for row in edge_rows(model.encoder):
        place, _ = call(library.linadd_predict, row)
        assert model.classes[place] == model.predict(row[None])[0]
        code, proba = call(library.linadd_probabilities, row, n_classes)
        assert code == 0
        np.testing.assert_allclose(proba, model.predict_proba(row[None])[0], rtol=1e-9)


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_calibrated_probabilities(n_outputs, kind, tmp_path):
    model = toy_model(n_outputs=n_outputs)
    rows = edge_rows(model.encoder)
    arrays, expected = calibrated(kind, model.decision_function(rows))
    c_code.write(model_arrays(model) | arrays, tmp_path / "m.c")
    library = ctypes.CDLL(c_code.compile_shared(tmp_path / "m.c", tmp_path))
    for row, own in zip(rows, expected, strict=True):
        code, proba = call(library.linadd_probabilities, row, len(own))
        assert code == 0
        np.testing.assert_allclose(proba, own, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["é.c", 'a"b.c', "a\\b.c", "a\nb.c"])
def test_a_name_that_c_cannot_include_is_refused(name, tmp_path):
    with pytest.raises(ConfigError) as caught:
        export_model(toy_model(), tmp_path / name, "c")
    header = name[:-1] + "h"
    assert str(caught.value) == (
        f"export: the C file must include {header!r}, and not every compiler reads that name. Give it letters, digits "
        "and -_+. of ASCII."
    )
    assert not list(tmp_path.iterdir())


def test_a_hinge_model_has_no_probabilities(tmp_path):
    assert not hasattr(library_of(toy_model(), tmp_path / "m.c"), "linadd_probabilities")
    assert "probabilities" not in (tmp_path / "m.h").read_text()


def test_the_number_of_a_feature_that_cannot_be_scored_comes_back(tmp_path):
    model = replace(toy_model(), range_policy="clamp,4=error")
    library = library_of(model, tmp_path / "m.c")
    inside = np.clip(np.zeros(4), *model.ranges.T)
    for feature, value in ((0, np.nan), (1, -np.inf), (3, 7.0)):
        row = inside.copy()
        row[feature] = value
        assert call(library.linadd_decision, row, 1)[0] == feature + 1
        assert call(library.linadd_predict, row)[0] == -(feature + 1)
    assert call(library.linadd_decision, inside, 1)[0] == 0
    with pytest.raises(LinaddError) as caught:
        c_code.score(tmp_path / "m.c", np.array([inside, row]))
    assert str(caught.value) == f"{tmp_path}/m.c: linadd_decision refuses row 2 for its feature 4."


@pytest.mark.parametrize("quantised", [None, "int16", "int8"])
@pytest.mark.parametrize("language", ["-std=c99", "-std=gnu17"])
def test_the_file_checks_itself(language, quantised, tmp_path):
    options = {} if quantised is None else {"quantised": quantised}
    report = export_model(toy_model("bspline", {"degree": 3}, 3), tmp_path / "m.c", "c", **options)
    command = [COMPILER, language, "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-DLINADD_CHECK", "m.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    run = subprocess.run([tmp_path / "a.out"], capture_output=True, text=True, check=True)
    found = f"{report['difference']:.1e}"
    if quantised is None:  # of some 1e-16; compiled in another way it may be another
        found = run.stdout.split(" by at most ")[1].split(" of ")[0]
        assert float(found) <= 1e-12
    assert run.stdout == f"32 check rows differ by at most {found} of the largest score; 0 other labels\n"
    wrong = (tmp_path / "m.c").read_text().replace("+ intercept[o]", "- intercept[o]")
    (tmp_path / "m.c").write_text(wrong)
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "a.out"], capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize("quantised", ["int16", "int8"])
@pytest.mark.parametrize(("name", "options"), [case for case in ENCODER_OPTIONS if case[1].get("clamp", True)], ids=str)
def test_the_stated_error_holds_and_is_no_idle_bound(name, options, quantised, tmp_path):
    model = toy_model(name, options, 3)
    arrays = model_arrays(model)
    integers = Quantised(arrays, quantised)
    limit = {"int16": 32767, "int8": 127}[quantised]
    assert np.abs(integers.coef).max() == limit
    c_code.write(arrays, tmp_path / "m.c", quantised)
    assert f"a score is off by at most {integers.error.max():.2g}." in (tmp_path / "m.c").read_text()
    X = np.random.default_rng(0).uniform(*model.ranges.T, (400, 4))
    error = np.abs(c_code.score(tmp_path / "m.c", X, quantised) - model.decision_function(X)).max(axis=0)
    assert (error <= integers.error).all() and (error >= integers.error / 500).all()


@pytest.mark.parametrize(
    "change", [{"range_policy": "linear"}, {"encoder": toy_model("identity", {"clamp": False}).encoder}], ids=list
)
def test_values_without_bounds_have_no_integers(change, tmp_path):
    model = replace(toy_model("identity"), **change)
    with pytest.raises(ConfigError) as caught:
        export_model(model, tmp_path / "m.c", "c", quantised="int8")
    assert str(caught.value) == (
        "export: integers need values within bounds. Export with --range clamp and a clamped encoder, or without "
        "--quantised."
    )


@pytest.mark.parametrize(
    ("text", "literal"), [("a b", '"a b"'), ('q"\\?', '"q\\"\\\\\\?"'), ("é\n", '"\\303\\251\\012"')], ids=repr
)
def test_a_label_becomes_a_literal(text, literal):
    assert c_string(text) == literal


def test_a_missing_compiler_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ConfigError) as caught:
        export_model(toy_model(), tmp_path / "m.c", "c")
    assert str(caught.value) == (
        "export: C code is compiled and compared with the model before it is kept, and there is no C compiler "
        "(no-such-compiler). Install one, or export *.json."
    )
    assert not list(tmp_path.iterdir())


def test_what_the_compiler_refuses_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(c_code, "source_text", lambda *_: "int x = y;")
    with pytest.raises(LinaddError) as caught:
        export_model(toy_model(), tmp_path / "m.c", "c")
    text = str(caught.value)
    assert "m.c: not written: " in text and "Report this as a fault of linadd." in text
    assert not list(tmp_path.iterdir())
