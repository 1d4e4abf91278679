"""load_model: finds the class that a file names, and gives one line for everything that does not fit."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from linadd import models
from linadd.errors import FormatError
from linadd.model_file import save_model, score_difference
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
def test_models_of_every_format_version_give_their_old_scores(file, rows, expected):
    model = load_model(GOLDEN / file)
    # Another CPU, or another libm under the Fourier basis, may differ in the last bits.
    assert score_difference(model.decision_function(np.array(rows)), np.array(expected["scores"])) < 1e-12
    assert model.predict(np.array(rows)).tolist() == expected["labels"]
    assert model.summary["gap"] == expected["gap"]


def test_there_is_an_expectation_for_every_golden_file():
    files = sorted(path.name for path in GOLDEN.glob("*.safetensors"))
    assert files and files == sorted(param.id for param in GOLDEN_MODELS)


@pytest.mark.parametrize("key", MODELS)
def test_every_entry_is_a_class_that_restores_itself(key):
    assert callable(model_class(key).from_state)


def test_a_file_is_restored_by_its_class_alone(tmp_path, monkeypatch):
    class Toy:
        @classmethod
        def from_state(cls, tensors, header):
            return tensors["coef"].tolist(), header["class"]

    monkeypatch.setattr(sys.modules[__name__], "Toy", Toy, raising=False)
    monkeypatch.setitem(models.MODELS, "toy", f"{__name__}.Toy")
    path = tmp_path / "m.safetensors"
    save_model(path, {"coef": np.ones(2)}, {"class": "toy"})
    assert load_model(path) == ([1.0, 1.0], "toy")


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
