"""What a verb says: results on stdout; errors, warnings, log and progress on stderr, one line each; the exit status.

Verbs return a `Result` and raise; nothing else of the package prints. With --json the result, or the error, is one
object on stdout (docs/json.md).
"""

import contextlib
import errno
import json
import logging
import os
import sys
import warnings
from dataclasses import dataclass, field

from linadd.errors import ConfigError, ConvergenceWarning, DataWarning, LinaddError

__all__ = [
    "DONE",
    "FAILED",
    "INTERRUPTED",
    "STOPPED_EARLY",
    "USAGE",
    "Result",
    "Terminal",
    "format_bytes",
    "gap_of",
    "peak_memory_bytes",
    "resident_bytes",
]

DONE, FAILED, USAGE, STOPPED_EARLY, INTERRUPTED = 0, 1, 2, 3, 130
TRACEBACK_VARIABLE = "LINADD_TRACEBACK"


@dataclass
class Result:
    """What a verb found.

    Attributes
    ----------
    record : dict
        The object of --json; JSON values.
    text : str
        The same for people.
    status : int
        Exit status.
    """

    record: dict
    text: str
    status: int = DONE


@dataclass
class Terminal:
    """The streams of one command.

    Attributes
    ----------
    is_json, is_quiet : bool
        The options --json and --quiet.
    warnings : list of str
        Those shown so far.
    """

    is_json: bool = False
    is_quiet: bool = False
    warnings: list = field(default_factory=list)

    def run(self, function, arguments):
        """Call `function(self, **arguments)`, print its Result or its error, and return the exit status."""
        try:
            with self.listening():
                result = function(self, **arguments)
            return self.print_result(result)
        except KeyboardInterrupt:
            self.print_error("Interrupted", "interrupted.")
            return INTERRUPTED
        except Exception as error:
            if os.environ.get(TRACEBACK_VARIABLE):
                raise
            return self.fail(error)

    @contextlib.contextmanager
    def listening(self):
        """Turn warnings and log records of linadd into lines on stderr; those of other packages are not the user's."""
        handler = logging.Handler(logging.INFO)
        handler.emit = lambda record: self.say(record.getMessage())
        log = logging.getLogger("linadd")
        level = log.level
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for category in (DataWarning, ConvergenceWarning):
                warnings.simplefilter("always", category)
            warnings.showwarning = lambda message, *_: self.warn(str(message))
            log.addHandler(handler)
            log.setLevel(logging.INFO)
            try:
                yield
            finally:
                log.removeHandler(handler)
                log.setLevel(level)

    def say(self, text):
        """A line of log on stderr, unless --quiet."""
        if not self.is_quiet:
            print(one_line(text), file=sys.stderr, flush=True)

    def warn(self, text):
        """A warning on stderr."""
        self.warnings.append(one_line(text))
        print(f"warning: {one_line(text)}", file=sys.stderr, flush=True)

    def print_result(self, result):
        """The result on stdout; returns its status. A reader that closed the pipe early has seen enough."""
        text = json.dumps(result.record | {"warnings": self.warnings}) if self.is_json else result.text
        try:
            print(text, flush=True)
        except OSError as error:
            # Whatever is left in the buffer would fail again when the interpreter exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno != errno.EPIPE:
                raise OSError(error.errno, error.strerror, "standard output") from error
        return result.status

    def fail(self, error):
        """Print an exception as one line, or as an object with --json; returns the exit status."""
        names = {"file": "source", "row": "row", "column": "column"}
        place = {key: getattr(error, name, None) for key, name in names.items()}
        if isinstance(error, LinaddError):
            self.print_error(type(error).__name__, str(error), getattr(error, "message", None), **place)
            return USAGE if isinstance(error, ConfigError) else FAILED
        if isinstance(error, MemoryError):
            text = f"out of memory ({str(error) or 'the system has no more'}). "
            text += "Lower --memory-limit, or choose fewer columns by --features."
        elif isinstance(error, OSError):
            place["file"] = error.filename
            where = f"{error.filename}: " if error.filename else ""
            text = f"{where}{error.strerror or error}."
        else:
            text = (
                f"a fault of linadd itself, {type(error).__name__}: {error}. Please report it; with "
                f"{TRACEBACK_VARIABLE}=1 in the environment you see where it happened."
            )
        self.print_error(type(error).__name__, text, **place)
        return FAILED

    def print_error(self, kind, text, message=None, file=None, row=None, column=None):
        """An error on stderr and, with --json, as an object on stdout; `message` is the text without the place."""
        print(f"error: {one_line(text)}", file=sys.stderr, flush=True)
        if self.is_json:
            error = {"type": kind, "message": one_line(message or text), "row": row, "column": column}
            error["file"] = None if file is None else str(file)
            with contextlib.suppress(OSError):
                print(json.dumps({"error": error}), flush=True)


def one_line(text):
    """The text with every run of white space as one space."""
    return " ".join(str(text).split())


def gap_of(record):
    """(gap, whether it is an estimate) of a record of the history; (None, True) where the solver has none."""
    if record["certified_gap"] is not None:
        return record["certified_gap"], False
    return None if record["gap"] is None else abs(record["gap"]), True


def format_bytes(n_bytes):
    """A size as 12 kB, 210 MB or 3.1 GB."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes} bytes"


def peak_memory_bytes():
    """Largest resident memory of this process so far, in bytes; None where the system does not tell.

    Linux's own figure comes first: `getrusage` starts a child process with the peak of its parent.
    """
    peak = status_bytes("VmHWM")
    if peak is not None:
        return peak
    with contextlib.suppress(ImportError):
        import resource  # not on Windows

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return None


def resident_bytes():
    """Resident memory of this process now, in bytes; None where the system does not tell."""
    return status_bytes("VmRSS")


def status_bytes(name):
    """A size that Linux tells of this process; None elsewhere."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None
