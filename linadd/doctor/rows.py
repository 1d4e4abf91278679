"""Findings about rows: their labels, weights and order, and rows that are there twice."""

import numpy as np

from linadd.doctor.report import listed, plural
from linadd.errors import DataError

__all__ = ["report_rows"]

RARE = 10  # rows of a class, below which little can be learned of it
UNEVEN = 100  # ratio of the rows of the largest and the smallest class
MANY_COPIES = 0.01  # share of the rows


def report_rows(report, profile, is_in_memory):
    """Add the findings about labels, weights, order and repeated rows.

    Parameters
    ----------
    report : Report
        Where to add.
    profile : Profile
        Of its source.
    is_in_memory : bool
        Training would keep all rows in memory.
    """
    if report.source.has_labels:
        report_labels(report, profile, is_in_memory)
    else:
        try:
            report.source.require_labels()
        except DataError as error:
            report.add_error("no-labels", error)
    if profile.weight_error is not None:
        report.add_error("weights", profile.weight_error)
    n_copies = len(profile.row_hashes) - len(np.unique(profile.row_hashes))
    if n_copies > MANY_COPIES * len(profile.row_hashes):
        share = f"{n_copies:,} of {len(profile.row_hashes):,} rows looked at repeat another one of them."
        remedy = "If the same measurement is there twice, drop one: held-out rows would not be new to the model."
        report.add("info", "duplicate-rows", share, remedy)


def report_labels(report, profile, is_in_memory):
    """Labels that training refuses, classes of few rows, and rows that come sorted by label."""
    tally = profile.labels
    if tally.n_missing:
        what = f"{plural(tally.n_missing, 'label')} missing: NaN or infinite."
        remedy = "Drop these rows or give them a label."
        report.add("error", "missing-labels", what, remedy, rows=[tally.first_missing])
    if tally.error is not None:
        report.add_error("labels", tally.error)
        return
    counts, n_rows = tally.labels.counts, sum(tally.labels.counts.values())
    if not counts:
        return
    if len(counts) > n_rows / 2 and n_rows > 2 * RARE:
        kind = "a regression target" if tally.labels.n_real else "an identifier"
        what = f"{len(counts):,} of {n_rows:,} labels are distinct: this looks like {kind}."
        report.add("warning", "many-labels", what, "linadd trains classifiers; name the label column by --y.")
        return
    try:
        is_sorted = tally.labels.finish(report.source.origin)[2]
    except DataError as error:
        # A class that the sample has no rows of, or none with weight, may yet be in the file.
        if profile.weight_error is None:
            report.add_error("labels", error, "error" if profile.is_whole else "warning")
        return
    report_classes(report, counts, profile.is_whole)
    if is_sorted and n_rows > 2 * len(counts):
        report_order(report, is_in_memory)


def report_classes(report, counts, is_whole):
    """Classes of few rows, and of far fewer than another."""
    seen = "" if is_whole else " looked at"
    rare = {label: count for label, count in counts.items() if count < RARE}
    if rare and is_whole:
        shown = listed([f"{label} {count:,}" for label, count in sorted(rare.items(), key=lambda pair: pair[1])])
        what = f"{len(rare):,} of {len(counts):,} classes have fewer than {RARE} rows: {shown}."
        report.add("warning", "rare-classes", what, "Give more rows of them, or join them with others.")
    most, least = max(counts, key=counts.get), min(counts, key=counts.get)
    if counts[most] > UNEVEN * counts[least]:
        what = f"of the rows{seen} {counts[most]:,} are of class {most} and {counts[least]:,} of class {least}."
        remedy = "If the rare class matters as much, train with --class-weight balanced."
        report.add("info", "uneven-classes", what, remedy)


def report_order(report, is_in_memory):
    """Rows sorted by label."""
    what = "the rows come sorted by label."
    if is_in_memory:
        remedy = "Nothing to do: they are visited in random order. Do not take the first rows as a sample."
        report.add("info", "sorted-rows", what, remedy)
    else:
        remedy = "Training draws blocks at random, and they learn faster if these hold all labels: "
        report.add("warning", "sorted-rows", what, remedy + report.convert_command("--shuffle", suffix="_shuffled"))
