"""`linadd doctor FILE`: what is wrong with a data set, and what to do about it."""

import shlex
import textwrap
import time
from typing import Annotated

import typer

from linadd.cli.arguments import (
    DataFile,
    Drop,
    Features,
    IndexBase,
    Labels,
    MemoryLimit,
    Table,
    Weights,
    Where,
    parse_where,
    verb,
)
from linadd.cli.terminal import Result, format_bytes, peak_memory_bytes
from linadd.cli.training_options import given_names

__all__ = ["doctor"]

SHOWN_CLASSES = 10
SHOWN_LETTERS = 400  # of a remedy
WIDTH = 120
MARGIN = 9  # the width of a severity
OWN = {"file", "full", "memory_limit", "json", "quiet"}  # all other options tell how to read the file

Full = Annotated[bool, typer.Option("--full", help="Read all rows, once; else a sample spread over the file.")]


@verb
def doctor(
    terminal,
    context: typer.Context,
    file: DataFile,
    full: Full = False,
    x: Table = "X",
    y: Labels = "y",
    weights: Weights = None,
    where: Where = None,
    features: Features = None,
    drop: Drop = None,
    index_base: IndexBase = "auto",
    memory_limit: MemoryLimit = "1GB",
):
    """Look for what makes data hard to learn from, and say what to do.

    An error is what `linadd train` would refuse, a warning what will hurt, the rest is good to know. Exit status: 0
    whatever was found; 1 the file cannot be read; 2 usage.
    """
    from linadd.cli.progress import row_bar  # these load numba
    from linadd.doctor import diagnose

    started = time.monotonic()
    with row_bar(terminal, "rows") as progress:
        found = diagnose(
            file, full=full, memory_limit=memory_limit, reading=reading_options(context), on_rows=progress,
            where=parse_where(where), x=x, y_name=y, weights=weights, index_base=index_base, features=features,
            drop=drop,
        )  # fmt: skip
    with found.source as source:
        record = {
            "file": file,
            "format": source.kind,
            "n_rows": source.n_rows,
            "n_features": source.n_features,
            "dtype": source.dtype.name,
            "layout": found.layout,
            "rows_seen": found.profile.n_rows,
            "is_exact": found.profile.is_whole,
            "classes": class_counts(found.profile.labels.labels.counts),
            "findings": [finding.record() for finding in found.findings],
            "seconds": time.monotonic() - started,
            "peak_memory_bytes": peak_memory_bytes(),
        }
    return Result(record, as_text(record))


def reading_options(context):
    """The given options that tell how to read the file, as the command line spells them."""
    given, parts = given_names(context) - OWN, []
    for parameter in context.command.params:
        if parameter.name in given:
            value = context.params[parameter.name]
            for each in value if isinstance(value, (list, tuple)) else [value]:
                parts.append(f"{parameter.opts[0]} {shlex.quote(str(each))}")
    return " ".join(parts)


def class_counts(counts):
    """Label and rows of each class, sorted by label; labels of two kinds keep the order of the rows."""
    labels = list(counts)
    if len({isinstance(label, str) for label in labels}) == 1:
        labels.sort()
    return [{"label": plain_label(label), "n_rows": counts[label]} for label in labels]


def plain_label(label):
    """An integral number as int, as the classes of a model are."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


def as_text(record):
    """The record for people."""
    return "\n".join([*head_lines(record), *finding_lines(record["findings"])])


def head_lines(record):
    """What the file is, how much of it was looked at, and its classes."""
    shape = f"{record['n_rows']:,} rows of {record['n_features']:,} features, {record['dtype']}"
    layout = record["layout"]
    stored = [f"chunks of {' x '.join(map(str, layout['chunks']))}"] if layout.get("chunks") else []
    stored += [layout["codec"]] if layout.get("codec") else []
    stored += [format_bytes(layout["bytes"])] if "bytes" in layout else []
    lines = [", ".join([f"{record['file']}: {record['format']}, {shape}", *stored])]
    if record["is_exact"]:
        lines.append(f"looked at   all {record['n_rows']:,} rows")
    else:
        lines.append(f"looked at   {record['rows_seen']:,} rows spread over the file; --full reads them all")
    classes = record["classes"]
    if classes:
        total = sum(each["n_rows"] for each in classes)
        shown = [f"{each['label']} {each['n_rows'] / total:.1%}" for each in classes[:SHOWN_CLASSES]]
        more = f" and {len(classes) - SHOWN_CLASSES:,} more" if len(classes) > SHOWN_CLASSES else ""
        lines.append(f"classes     {len(classes):,}: {', '.join(shown)}{more}")
    return lines


def finding_lines(findings):
    """Each finding with its remedy below it, and a count of each severity at the end."""
    lines = [""] if findings else []
    for each in findings:
        rows = each["where"]["rows"]
        place = f" First in row {rows[0]:,}." if rows else ""
        lines += wrapped(each["severity"].ljust(MARGIN), f"{capital(each['what'])}{place}")
        if each["remedy"]:
            lines.append(f"{' ' * MARGIN}-> {shortened(each['remedy'])}")
    counts = {name: sum(each["severity"] == name for each in findings) for name in ("error", "warning", "info")}
    names = [("error", "errors"), ("warning", "warnings"), ("note", "notes")]
    summed = [f"{count} {pair[count != 1]}" for count, pair in zip(counts.values(), names, strict=True)]
    end = "training refuses these data" if counts["error"] else "training takes these data"
    return [*lines, "", f"{', '.join(summed)}: {end}."]


def wrapped(lead, text):
    """Lines of a text behind its lead."""
    return textwrap.wrap(text, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead), break_on_hyphens=False)


def shortened(remedy):
    """A remedy on one line, so that it can be pasted; one of very many columns is whole in --json."""
    if len(remedy) <= SHOWN_LETTERS:
        return remedy
    return f"{remedy[:SHOWN_LETTERS].rpartition(',')[0]},... (whole in --json)"


def capital(text):
    """The text with a capital letter first."""
    return text[:1].upper() + text[1:]
