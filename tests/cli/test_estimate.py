"""`linadd estimate`: what it prints, in both forms."""

import re
import sys

import pytest

from linadd.cli.estimate import format_seconds


def test_an_estimate_for_people(linadd, data):
    run = linadd("estimate", data / "train.h5", "--n-bins", "4", "--loss", "hinge")
    assert run.status == 0
    first, memory, step, whole, basis = run.out.splitlines()
    assert first == f"{data / 'train.h5'}: 300 rows of 3 features, 2 classes, solver dual-cd"
    assert re.fullmatch(r"memory  \d+ MB at the peak, [\d.]+ kB for the data \(.* kB, .*\)", memory)
    assert re.fullmatch(r"a pass  0\.\d+ s, in memory", step)
    assert re.fullmatch(r"in all  \d\.\d+ s, \d+ passes to a gap of 0.001, \d reads", whole)
    assert basis == "from a probe of 300 rows: expect a quarter more or less memory, and up to twice the time"


def test_an_estimate_for_scripts(linadd, data):
    options = ["--n-bins", "4", "--memory-limit", "5kB", "--where", "part=0,1", "--json"]
    record = linadd("estimate", data / "train.h5", *options).record
    assert record["data_bytes"] == sum(record["memory"].values()) < record["peak_memory_bytes"]
    assert (record["n_rows"], record["in_memory"], record["probe_rows"]) == (200, True, 200)


def test_a_run_from_the_file(linadd, data):
    options = ["--n-bins", "4", "--memory-limit", "3kB", "--max-epochs", "1", "--tol", "1e-9"]
    run = linadd("estimate", data / "train.h5", *options)
    assert re.search(r"^a pass  0\.\d+ s, 3\.6 kB read from the file$", run.out, re.MULTILINE)
    assert re.search(r"^in all  \d\.\d+ s, 1 pass at most, \d reads$", run.out, re.MULTILINE)


def test_the_same_refusals_as_of_training(linadd, data):
    for options, message in (
        (
            ["--memory-limit", "10"],
            "memory_limit: 10 bytes do not hold one training chunk of 1 rows of 3 features. Give at least 24, or a "
            "smaller training_chunk.",
        ),
        (
            ["--n-terms", "3"],
            "--n-terms: the encoder bspline has no such option. It takes --degree, --n-bins, --penalty-order, --knots.",
        ),
    ):
        run = linadd("estimate", data / "train.h5", *options)
        assert (run.status, run.err) == (2, f"error: {message}\n")


def test_where_the_system_does_not_tell_its_size(linadd, data, monkeypatch):
    # By the module, as the package has the verb under its name.
    monkeypatch.setattr(sys.modules["linadd.cli.estimate"], "resident_bytes", lambda: None)
    record = linadd("estimate", data / "train.h5", "--n-bins", "4", "--json").record
    assert record["peak_memory_bytes"] is None
    run = linadd("estimate", data / "train.h5", "--n-bins", "4")
    assert re.match(r"memory  [\d.]+ [kM]B for the data \(", run.out.splitlines()[1])


def test_memory_of_the_compiler_is_not_counted(linadd, data, monkeypatch):
    monkeypatch.setattr(sys.modules["linadd.cli.estimate"], "resident_bytes", lambda: 10**9)
    record = linadd("estimate", data / "train.h5", "--n-bins", "4", "--json").record
    assert record["peak_memory_bytes"] - record["data_bytes"] == 230_000_000


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.000000 s"), (0.00123, "0.0012 s"), (0.5, "0.50 s"), (12.34, "12.3 s"), (600, "10.0 min"),
        (9000, "2.5 h"), (3e5, "3.5 days"),
    ],
)
def test_times(seconds, text):
    assert format_seconds(seconds) == text
