"""What a diagnosis consists of: findings, each with its severity, its place and what to do about it."""

import shlex
from dataclasses import dataclass, field
from os.path import splitext

import numpy as np

from linadd.sources.columns import drop_flags

__all__ = ["SEVERITIES", "Finding", "Report", "listed", "plural"]

SEVERITIES = ("error", "warning", "info")  # training refuses; it will hurt; good to know
MAX_ROWS = 10  # row numbers that a finding names


@dataclass(frozen=True)
class Finding:
    """One thing about the data.

    Attributes
    ----------
    severity : {"error", "warning", "info"}
        error: `linadd train` refuses the data.
    kind : str
        A fixed name for scripts.
    what : str
        What is the matter, with the values.
    columns : list of str or int
        All columns it concerns: names, or numbers from 1.
    rows : list of int
        The first rows it concerns, as the file counts, from 1.
    remedy : str
        A command to paste, or a sentence.
    """

    severity: str
    kind: str
    what: str
    columns: list
    rows: list
    remedy: str

    def record(self):
        """As the JSON object of --json."""
        return {
            "severity": self.severity, "kind": self.kind, "what": self.what,
            "where": {"columns": self.columns, "rows": self.rows}, "remedy": self.remedy,
        }  # fmt: skip


@dataclass
class Report:
    """Findings in the making.

    Attributes
    ----------
    source : Source
        What is diagnosed.
    reading : str
        The options that the source was opened with, as a command line spells them: commands of remedies repeat them.
    findings : list of Finding
        So far, in no order.
    """

    source: object
    reading: str = ""
    findings: list = field(default_factory=list)

    @property
    def has_errors(self):
        """Whether training would refuse the data."""
        return any(finding.severity == "error" for finding in self.findings)

    def names(self, columns):
        """Names, or numbers from 1, of columns, given by their indices from 0."""
        return [self.source.column_name(int(j)) for j in columns]

    def listed(self, columns):
        """The same as text, shortened."""
        return listed(self.names(columns))

    def add(self, severity, kind, what, remedy, columns=(), rows=()):
        """Append a finding; `columns` are indices from 0, `rows` numbers of the file."""
        rows = [int(row) for row in rows[:MAX_ROWS]]
        self.findings.append(Finding(severity, kind, what, self.names(columns), rows, remedy))

    def add_error(self, kind, error, severity="error"):
        """Append what one of linadd's own checks has raised or warned, with its place."""
        what, _, remedy = getattr(error, "message", str(error)).partition(". ")
        row, column = getattr(error, "row", None), getattr(error, "column", None)
        columns, rows = ([] if each is None else [each] for each in (column, row))
        self.findings.append(Finding(severity, kind, f"{what.rstrip('.')}.", columns, rows, remedy))

    def add_warning(self, warning):
        """Append what was warned of when the data were opened: a layout that is slow to read."""
        what, _, remedy = str(warning).removeprefix(f"{self.source.origin}: ").partition(". ")
        if "linadd convert" in remedy:
            remedy = f"Rewrite it once: {self.convert_command()}"
        self.findings.append(Finding("warning", "layout", f"{what}.", [], [], remedy))

    def convert_command(self, *options, suffix="_rows"):
        """The command that rewrites the data as HDF5, with these options."""
        target = f"{splitext(self.source.origin.partition('::')[0])[0]}{suffix}.h5"
        parts = ["linadd convert", shlex.quote(self.source.origin), shlex.quote(target), self.reading, *options]
        return " ".join(part for part in parts if part)

    def drop_command(self, columns):
        """The command that trains without some columns, indices from 0."""
        columns = np.sort(columns)
        names = ranges(columns) if self.source.feature_names is None else self.names(columns)
        parts = ["linadd train", shlex.quote(self.source.origin), "MODEL", self.reading, drop_flags(names)]
        return " ".join(part for part in parts if part)

    def ordered(self):
        """The findings, the most severe first."""
        return sorted(self.findings, key=lambda finding: SEVERITIES.index(finding.severity))


def listed(names, shown=3):
    """Names for a sentence: the first of them, and how many more there are."""
    names = [str(name) for name in names]
    if len(names) <= shown + 1:
        return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"{', '.join(names[:shown])} and {len(names) - shown:,} more"


def ranges(columns):
    """Numbers from 1 of sorted columns, runs of three or more as 3-10."""
    runs = np.split(columns, np.flatnonzero(np.diff(columns) > 1) + 1)
    parts = [[f"{run[0] + 1}-{run[-1] + 1}"] if len(run) > 2 else [str(j + 1) for j in run] for run in runs]
    return [part for run in parts for part in run]


def plural(count, noun):
    """A count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
