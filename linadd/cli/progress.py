"""Progress of training and of plain reading on stderr: a live bar in a terminal, lines elsewhere, nothing if quiet."""

import contextlib
import math
import sys
import time

from linadd.cli.terminal import format_bytes, gap_of, peak_memory_bytes
from linadd.solvers import SOLVERS
from linadd.train import Progress

__all__ = ["LiveProgress", "TrainingProgress", "row_bar", "training_progress"]


def training_progress(terminal, options, n_rows, stop):
    """The Progress that fits the terminal; a context manager.

    Parameters
    ----------
    terminal : Terminal
        Where to write.
    options : Options
        `tol` and `max_epochs`, for the time that is left.
    n_rows : int
        Rows of the data.
    stop : StopRequest
        Tells of Ctrl-C.
    """
    is_live = sys.stderr.isatty() and not terminal.is_quiet
    return (LiveProgress if is_live else TrainingProgress)(terminal, options, n_rows, stop)


class TrainingProgress(Progress):
    """One line an epoch."""

    def __init__(self, terminal, options, n_rows, stop):
        self.terminal, self.options, self.n_rows, self.stop = terminal, options, n_rows, stop
        self.started = self.last = time.monotonic()
        self.distances = []  # from the stopping rule, an epoch each; None where it is not known
        self.has_rule = options.solver == "auto" or SOLVERS[options.solver].certifies

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        """Nothing is left on the screen that would have to go."""

    def should_stop(self):
        """Whether Ctrl-C was pressed."""
        return self.stop.is_set

    def read(self, phase, n_rows, n_total):
        """Start the clock of the first epoch."""
        self.last = time.monotonic()

    def epoch(self, record):
        """A line of the epoch's figures."""
        self.terminal.say(self.describe(record))

    def describe(self, record):
        """The figures of an epoch in one line; an estimated gap is marked by ~."""
        now = time.monotonic()
        seconds, self.last = max(now - self.last, 1e-9), now
        gap, is_estimated = gap_of(record)
        distance = record.get("violation") if self.options.stop_on == "violation" else gap
        self.distances.append(distance)
        parts = [f"pass {record['epoch']}", f"objective {record['objective']:.6g}"]
        if gap is not None:
            parts.append(f"gap {'~' if is_estimated else ''}{gap:.2g}")
        if self.options.stop_on == "violation" and distance is not None:
            parts.append(f"violation {distance:.2g}")
        if "validation_loss" in record:
            parts.append(f"validation loss {record['validation_loss']:.4g}, error {record['validation_error']:.4g}")
        left = self.seconds_left(seconds)
        if left is not None and left >= 1:
            parts.append(f"about {format_seconds(left)} left")
        parts += [f"{self.n_rows / seconds:,.0f} rows/s", format_memory()]
        return ", ".join(parts)

    def seconds_left(self, seconds):
        """Time to `tol` if the distance goes on falling as it did, at most to `max_epochs`; None before it is known."""
        n_left = self.options.max_epochs - len(self.distances)
        known = [distance for distance in self.distances if distance]
        if len(known) >= 2:
            to_tol = math.log(max(known[-1] / self.options.tol, 1.0))
            rate = math.log(known[0] / known[-1]) / (len(known) - 1)
            n_left = min(n_left, math.ceil(to_tol / rate)) if rate > 0 else n_left
        elif self.has_rule:
            return None
        return n_left * seconds


class LiveProgress(TrainingProgress):
    """A bar that moves: rows of the census, then passes with gap, rate, time left and memory."""

    def __enter__(self):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), BarColumn(bar_width=24), TextColumn("{task.description}", markup=False))
        self.bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
        self.bar.start()
        self.task = self.bar.add_task("opening", total=None)
        return self

    def __exit__(self, *exception):
        self.bar.stop()

    def read(self, phase, n_rows, n_total):
        """Move the bar of a reading phase."""
        super().read(phase, n_rows, n_total)
        text = f"{phase}: {n_rows:,} of {n_total:,} rows, {format_memory()}"
        self.bar.update(self.task, completed=n_rows, total=n_total, description=text)

    def epoch(self, record):
        """Move the bar by the gap on a logarithmic scale, or by passes where there is none."""
        text = self.describe(record)
        share = len(self.distances) / self.options.max_epochs
        known = [distance for distance in self.distances if distance]
        if len(known) >= 2 and known[0] > self.options.tol:
            share = math.log(known[0] / known[-1]) / math.log(known[0] / self.options.tol)
        self.bar.update(self.task, completed=min(max(share, 0.0), 1.0), total=1.0, description=text)


def format_seconds(seconds):
    """Seconds as 8 s, 5 min or 3.1 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def format_memory():
    """Peak memory so far, as 210 MB."""
    peak = peak_memory_bytes()
    return "memory unknown" if peak is None else format_bytes(peak)


@contextlib.contextmanager
def row_bar(terminal, what):
    """Show how many rows are done, where stderr is a terminal and not quiet.

    Parameters
    ----------
    terminal : Terminal
        Tells whether to be quiet.
    what : str
        What the bar counts.

    Yields
    ------
    callable
        (n_rows_done, n_rows) -> None; moves the bar.
    """
    if terminal.is_quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
