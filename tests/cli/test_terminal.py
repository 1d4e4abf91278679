"""Terminal: what becomes of results, warnings, log records and exceptions."""

import json
import logging
import warnings

import pytest

from linadd.cli.terminal import Result, Terminal, format_bytes, gap_of, one_line, peak_memory_bytes
from linadd.errors import ConfigError, ConvergenceWarning, DataError, DataWarning, FormatError, LinaddError


def raising(error):
    """A verb that raises."""

    def verb(terminal):
        raise error

    return verb


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (LinaddError("m.npz: not written."), 1, "m.npz: not written."),
        (ConfigError("C: 0 is not above 0."), 2, "C: 0 is not above 0."),
        (FormatError("m: is damaged."), 1, "m: is damaged."),
        (DataError("no rows.", source="a.h5", row=3, column="x"), 1, "a.h5, row 3, column 'x': no rows."),
        (OSError(28, "No space left on device", "a.h5"), 1, "a.h5: No space left on device."),
        (OSError("broken"), 1, "broken."),
        (
            MemoryError(),
            1,
            "out of memory (the system has no more). Lower --memory-limit, or choose fewer columns by --features.",
        ),
        (
            ZeroDivisionError("division\nby zero"),
            1,
            "a fault of linadd itself, ZeroDivisionError: division by zero. Please report it; with LINADD_TRACEBACK=1 "
            "in the environment you see where it happened.",
        ),
        (KeyboardInterrupt(), 130, "interrupted."),
    ],
)
@pytest.mark.parametrize("is_json", [False, True])
def test_an_exception_is_one_line_and_a_status(error, status, text, is_json, capsys):
    assert Terminal(is_json).run(raising(error), {}) == status
    out, err = capsys.readouterr()
    assert err == f"error: {text}\n"
    if is_json:
        assert json.loads(out)["error"].keys() == {"type", "message", "file", "row", "column"}
    else:
        assert out == ""


def test_the_place_of_an_error_stands_apart_in_json(capsys):
    Terminal(is_json=True).run(raising(DataError("no rows.", source="a.h5", row=3, column="x")), {})
    expected = {"type": "DataError", "message": "no rows.", "file": "a.h5", "row": 3, "column": "x"}
    assert json.loads(capsys.readouterr().out) == {"error": expected}


def test_a_traceback_is_shown_if_asked(monkeypatch):
    monkeypatch.setenv("LINADD_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        Terminal().run(raising(ZeroDivisionError()), {})


def noisy(terminal):
    """A verb that warns and logs."""
    warnings.warn("the first\nwarning", DataWarning, stacklevel=1)
    warnings.warn("the second", ConvergenceWarning, stacklevel=1)
    warnings.warn("of another package", DeprecationWarning, stacklevel=1)
    logging.getLogger("linadd.solvers").info("%d bytes go to a file", 7)
    logging.getLogger("elsewhere").warning("not linadd's")
    return Result({"answer": 42}, "the answer is 42", 3)


def test_warnings_and_log_of_linadd_are_lines_on_stderr(capsys):
    assert Terminal().run(noisy, {}) == 3
    out, err = capsys.readouterr()
    assert out == "the answer is 42\n"
    assert err == "warning: the first warning\nwarning: the second\n7 bytes go to a file\n"
    assert logging.getLogger("linadd").handlers == []


def test_quiet_leaves_the_warnings_and_json_repeats_them(capsys):
    Terminal(is_json=True, is_quiet=True).run(noisy, {})
    out, err = capsys.readouterr()
    assert err == "warning: the first warning\nwarning: the second\n"
    assert json.loads(out) == {"answer": 42, "warnings": ["the first warning", "the second"]}


def test_figures_as_text():
    sizes = [format_bytes(n) for n in (7, 999, 1000, 210_400_000, 3_140_000_000)]
    assert sizes == ["7 bytes", "999 bytes", "1 kB", "210 MB", "3.14 GB"]
    assert one_line(" a\n  b\t") == "a b"


def test_a_certified_gap_goes_before_the_estimate():
    assert gap_of({"certified_gap": 0.1, "gap": 0.2}) == (0.1, False)
    assert gap_of({"certified_gap": None, "gap": -0.2}) == (0.2, True)
    assert gap_of({"certified_gap": None, "gap": None}) == (None, True)


def test_the_peak_grows_with_what_is_touched():
    before = peak_memory_bytes()
    block = bytearray(before + 50_000_000)
    assert peak_memory_bytes() >= len(block) + 1_000_000
