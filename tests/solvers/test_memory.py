"""The account of the memory limit."""

import logging

import numpy as np
import pytest

from linadd.solvers.memory import Memory
from tests.solvers.problems import Full, fit, toy


def test_what_is_taken_is_counted_and_given_back():
    memory = Memory(1000)
    array = memory.zeros("labels", (10, 10), np.int32)
    assert type(array) is np.ndarray and array.dtype == np.int32 and not array.any()
    assert memory.left == 600
    memory.take(500)
    assert memory.left == 100
    memory.take(500)
    assert memory.left == 0  # what other code holds is noted, not refused
    memory.release(array)
    assert memory.left == 400


def test_a_scope_gives_back_what_is_taken_within():
    memory = Memory(1000)
    memory.take(600)
    with pytest.raises(KeyError), memory.scope(unused=500):
        memory.zeros("labels", (800,), np.uint8)
        assert memory.left == 100
        raise KeyError
    assert memory.left == 400


def test_what_does_not_fit_goes_to_a_file_and_the_log_says_so(caplog, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    memory = Memory(1000)
    with caplog.at_level(logging.INFO):
        array = memory.zeros("dual variables", (1001,), np.uint8)
    assert isinstance(array, np.memmap) and array.shape == (1001,) and not array.any()
    array[-1] = 7
    assert array[-1] == 7 and memory.left == 1000
    assert caplog.messages == ["dual variables: 0.0 MB do not fit the memory limit and go to a temporary file."]
    memory.release(array)
    assert memory.left == 1000
    assert list(tmp_path.iterdir()) == []  # the file has no name: nothing is left behind, whatever happens


@pytest.mark.parametrize("shape", [(1000,), (10, 100)])
def test_what_fits_exactly_stays_in_memory(shape):
    memory = Memory(1000)
    assert not isinstance(memory.zeros("labels", shape, np.uint8), np.memmap) and memory.left == 0


HELD = ("labels", "costs", "folds", "dual variables", "decisions")


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_file_holds_the_same_bits(loss, monkeypatch):
    X, y = toy(n_rows=500, n_classes=3)
    options = {"loss": loss, "memory_limit": 400_000, "max_epochs": 200}
    in_files = []
    zeros = Memory.zeros

    def spy(memory, name, shape, dtype):
        array = zeros(memory, name, shape, dtype)
        in_files.append((name, isinstance(array, np.memmap)))
        return array

    monkeypatch.setattr(Memory, "zeros", spy)
    expected = fit(X, y, **options).digest
    assert dict(in_files) == dict.fromkeys(HELD, False)
    in_files.clear()
    monkeypatch.setattr("linadd.train.Memory", Full)
    assert fit(X, y, **options).digest == expected
    assert dict(in_files) == dict.fromkeys(HELD, True)
