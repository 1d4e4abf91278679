"""load_model: finds the class that a file names, and gives one line for everything that does not fit."""

import json
from pathlib import Path

import numpy as np
import pytest

from linadd import models
from linadd.errors import FormatError
from linadd.model_file import load_model_file, make_check_rows, save_model, score_difference
from linadd.models import MODELS, load_model, model_class

KNOWN = ", ".join(MODELS)
GOLDEN = Path(__file__).parent / "golden"
# (file, rows, what the version that wrote the file found for them); golden/make.py wrote all three.
GOLDEN_MODELS = [
    pytest.param(file, document["rows"], expected, id=file)
    for document in (json.loads(path.read_text("utf-8")) for path in sorted(GOLDEN.glob("expected-v*.json")))
    for file, expected in document["models"].items()
]


@pytest.mark.parametrize(("file", "rows", "expected"), GOLDEN_MODELS)
def test_models_of_every_format_version_give_their_old_scores(file, rows, expected):  # users.md C37
    model = load_model(GOLDEN / file)
    # Another CPU, or another libm under the Fourier basis, may differ in the last bits.
    assert score_difference(model.decision_function(np.array(rows)), np.array(expected["scores"])) < 1e-12
    assert model.predict(np.array(rows)).tolist() == expected["labels"]
    assert model.summary["gap"] == expected["gap"]
    if "probabilities" in expected:
        np.testing.assert_allclose(model.predict_proba(np.array(rows)), expected["probabilities"], rtol=1e-10)


def test_there_is_an_expectation_for_every_golden_file():
    files = sorted(path.name for path in GOLDEN.glob("*.safetensors"))
    assert files and files == sorted(param.id for param in GOLDEN_MODELS)


@pytest.mark.parametrize("key", MODELS)
def test_every_entry_is_a_class_that_restores_itself(key):
    assert callable(model_class(key).from_state)


class Toy:
    """A model class that restores its coefficients, or raises what a test asks for."""

    error = None

    @classmethod
    def from_state(cls, tensors, header):
        if cls.error is not None:
            raise cls.error
        return tensors["coef"].tolist(), header["class"]


@pytest.fixture
def toy_file(tmp_path, monkeypatch):
    monkeypatch.setitem(models.MODELS, "toy", f"{__name__}.Toy")
    path = tmp_path / "m.safetensors"
    save_model(path, {"coef": np.ones(2)}, {"class": "toy"})
    return path


def test_a_file_is_restored_by_its_class_alone(toy_file):
    assert load_model(toy_file) == ([1.0, 1.0], "toy")


def test_what_a_class_trips_over_is_the_fault_of_the_file(toy_file, monkeypatch):
    for error, text in [
        (FormatError("tensor 'knots' is missing. Train anew."), "tensor 'knots' is missing. Train anew."),
        (
            OverflowError("too large"),
            "its header or tensors do not fit its class (OverflowError('too large')). Train the model anew.",
        ),
    ]:
        monkeypatch.setattr(Toy, "error", error)
        with pytest.raises(FormatError) as caught:
            load_model(toy_file)
        assert str(caught.value) == f"{toy_file}: {text}"


@pytest.mark.parametrize("key", ["forest", None, ["additive"], "linadd.model.AdditiveModel"])
def test_an_unknown_class_lists_the_known_ones(key, tmp_path):
    path = tmp_path / "m.safetensors"
    save_model(path, {}, {} if key is None else {"class": key})
    with pytest.raises(FormatError) as caught:
        load_model(path)
    assert str(caught.value) == f"{path}: is of class {key!r}, this linadd knows {KNOWN}. Upgrade linadd."


@pytest.mark.parametrize("key", MODELS)
@pytest.mark.parametrize(
    "header",
    [
        {},
        {"options": None, "classes": 3},
        {"options": {"nonsense": 1}, "classes": []},
        {"options": {}, "classes": [0, 1], "clip": True, "feature_names": 5},
    ],
)
def test_a_file_that_does_not_fit_its_class_is_never_a_traceback(key, header, tmp_path):
    path = tmp_path / "m.safetensors"
    save_model(path, {"coef": np.ones(2), "ranges": np.ones(3)}, {"class": key, **header})
    with pytest.raises(FormatError) as caught:
        load_model(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ") and "\n" not in text and text.endswith("Train the model anew.")


def leaves(value, setter=None):
    """(old value, function that replaces it) for everything inside a JSON value."""
    if setter is not None:
        yield value, setter
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], lambda new, key=key: value.__setitem__(key, new))


def edit(tensors, header, rng):
    """Change one thing that the checksum of a malicious writer would cover."""
    name = list(tensors)[rng.integers(len(tensors))]
    kind = rng.integers(4)
    if kind == 0:
        del tensors[name]
    elif kind == 1:
        tensors[name] = tensors[name][:-1] if rng.integers(2) else tensors[name][..., None]
    elif kind == 2:
        bad = rng.choice([-1.0, 0.0, 1e18] if tensors[name].dtype.kind == "i" else [-1, 1e30, np.nan, np.inf])
        tensors[name].ravel()[rng.integers(tensors[name].size)] = bad
    else:
        found = list(leaves(header))
        new = [None, -1, 10**9, 0.5, "x", [], {}, True][rng.integers(8)]
        found[rng.integers(len(found))][1](new)


@pytest.mark.parametrize("file", [param.id for param in GOLDEN_MODELS])
def test_edited_content_under_a_valid_checksum_never_crashes(file, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "m.safetensors"
    rows = make_check_rows(np.tile([-3.0, 3.0], (4, 1)))
    n_refused = 0
    for _ in range(60):
        tensors, header = load_model_file(GOLDEN / file)
        edit(tensors, header, rng)
        save_model(path, tensors, header)
        try:
            with np.errstate(all="ignore"):
                load_model(path).decision_function(rows)
        except FormatError as error:
            n_refused += 1
            assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
    assert n_refused > 30
