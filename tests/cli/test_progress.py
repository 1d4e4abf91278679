"""Progress: the line of an epoch, the time that is left, and the live bar."""

import contextlib
import io

import pytest

from linadd.cli import progress as module
from linadd.cli.progress import LiveProgress, TrainingProgress, format_seconds, row_bar, training_progress
from linadd.cli.terminal import Terminal
from linadd.interrupt import StopRequest
from linadd.options import Options


def record_of(epoch, gap, certified=None, **others):
    """A record of the history."""
    return {"epoch": epoch, "objective": 1234.5678, "gap": gap, "certified_gap": certified, **others}


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes ten seconds a look, and a fixed memory."""
    times = iter(range(0, 10**6, 10))
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(times)))
    monkeypatch.setattr(module, "peak_memory_bytes", lambda: 210_000_000)


def lines_of(options, records, capsys):
    """What a run of these records prints on stderr."""
    progress = TrainingProgress(Terminal(), options, 5000, StopRequest())
    for record in records:
        progress.epoch(record)
    return capsys.readouterr().err.splitlines()


def test_a_line_tells_gap_rate_time_left_and_memory(clock, capsys):
    records = [record_of(1, 0.1), record_of(2, -0.01), record_of(3, 0.003, certified=0.001)]
    assert lines_of(Options(tol=1e-4), records, capsys) == [
        "pass 1, objective 1234.57, gap ~0.1, 500 rows/s, 210 MB",
        # The gap fell to a tenth in one pass: two more to a hundredth of it.
        "pass 2, objective 1234.57, gap ~0.01, about 20 s left, 500 rows/s, 210 MB",
        "pass 3, objective 1234.57, gap 0.001, about 10 s left, 500 rows/s, 210 MB",
    ]


def test_before_the_gap_is_known_nothing_is_said_of_the_time(clock, capsys):
    lines = lines_of(Options(), [record_of(1, None), record_of(2, 0.1)], capsys)
    assert lines[0] == "pass 1, objective 1234.57, 500 rows/s, 210 MB"
    assert lines[1] == "pass 2, objective 1234.57, gap ~0.1, 500 rows/s, 210 MB"


def test_passes_bound_the_time_left(clock, capsys):
    records = [record_of(1, 0.1), record_of(2, 0.1)]
    assert "about 80 s left" in lines_of(Options(max_epochs=10), records, capsys)[1]


def test_a_solver_without_certificate_goes_by_passes(clock, capsys):
    lines = lines_of(Options(max_epochs=4, solver="sgd"), [record_of(1, None)], capsys)
    assert lines == ["pass 1, objective 1234.57, about 30 s left, 500 rows/s, 210 MB"]


def test_a_violation_rule_goes_by_the_violation(clock, capsys):
    records = [record_of(1, 0.5, violation=None), record_of(2, 0.5, violation=1.0), record_of(3, 0.4, violation=0.1)]
    assert lines_of(Options(tol=0.01, stop_on="violation"), records, capsys) == [
        "pass 1, objective 1234.57, gap ~0.5, 500 rows/s, 210 MB",
        "pass 2, objective 1234.57, gap ~0.5, violation 1, 500 rows/s, 210 MB",
        "pass 3, objective 1234.57, gap ~0.4, violation 0.1, about 10 s left, 500 rows/s, 210 MB",
    ]


def test_seconds():
    assert [format_seconds(s) for s in (1.4, 89, 90, 5399, 5400)] == ["1 s", "89 s", "2 min", "90 min", "1.5 h"]


def test_the_stop_request_is_passed_on():
    stop = StopRequest()
    progress = training_progress(Terminal(), Options(), 10, stop)
    assert not progress.should_stop()
    stop.is_set = True
    assert progress.should_stop()


class Screen(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """A terminal of a known kind and width, with colours."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.parametrize("has_colour", [True, False])
def test_a_terminal_gets_a_bar_that_is_gone_in_the_end(has_colour, monkeypatch):
    if not has_colour:
        monkeypatch.setenv("NO_COLOR", "1")
    with (
        contextlib.redirect_stderr(Screen()) as screen,
        training_progress(Terminal(), Options(), 5000, StopRequest()) as progress,
    ):
        assert isinstance(progress, LiveProgress)
        progress.read("census", 2500, 5000)
        progress.bar.refresh()
        progress.epoch(record_of(1, 0.1))
        progress.epoch(record_of(2, 0.01))
        progress.bar.refresh()
        # Half of the way from 0.1 to 0.001, in orders of magnitude.
        assert progress.bar.tasks[0].completed == pytest.approx(0.5)
    text = screen.getvalue()
    assert "census: 2,500 of 5,000 rows" in text and "pass 2, objective 1234.57, gap ~0.01" in text
    assert text.endswith("\x1b[2K") and ("\x1b[3" in text) == has_colour


def test_quiet_has_no_bar():
    terminal = Terminal(is_quiet=True)
    with contextlib.redirect_stderr(Screen()) as screen, row_bar(terminal, "rows") as progress:
        progress(1, 2)
        assert not isinstance(training_progress(terminal, Options(), 10, StopRequest()), LiveProgress)
    assert screen.getvalue() == ""


def test_rows_have_a_bar_in_a_terminal():
    with contextlib.redirect_stderr(Screen()) as screen, row_bar(Terminal(), "rows") as progress:
        progress(100, 400)
    assert "rows" in screen.getvalue()
