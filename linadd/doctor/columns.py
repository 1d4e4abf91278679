"""Findings about columns: values that training refuses, columns without use, values that hide something."""

from dataclasses import dataclass

import numpy as np

from linadd.doctor.report import listed, plural
from linadd.encoders.knots import CROWDED, fullest_bin, sampled_columns

__all__ = ["report_columns"]

STUDIED_COLUMNS = 20_000  # whose values are studied one by one
LEAST_ROWS = 30  # below, chance makes identifiers and leaks
LEAST_OF_CLASS = 10  # rows of the second largest class, for a leak
FEW = 10  # distinct values that may be categories
ALMOST_ALL = 0.999  # share of one value, from which a column is nearly constant
FINE_STEPS = 256  # steps of float32 within the range of a feature, below which its values are coarse
UNLIKE = 1e4  # ratio of spans
N_BINS = 10
LABEL_RUNS = 2  # runs of equal labels for each class that a threshold or an interval makes


@dataclass(frozen=True)
class Study:
    """What the sampled values of a column show."""

    share: float  # of the rows that have the most common value
    outlier: float  # the end that lies farther from all other values than those span; NaN without
    n_outliers: int  # rows that have it
    is_crowded: bool  # one uniform bin holds over half of the rows, none of its values does
    is_code: bool  # a different integer in every row
    tells_label: bool


def study(values, labels, n_rows_of_classes):
    """The Study of a column's values, float64 (n,), with labels as small integers (n,) or None."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    distinct, counts = ordered[starts], np.diff(np.append(starts, len(ordered)))
    outlier, n_outliers = find_outlier(distinct, counts)
    span, is_crowded = ordered[-1] - ordered[0], False
    common = counts.max() / len(ordered)
    if 0 < span < np.inf and common <= CROWDED:
        is_crowded = fullest_bin(distinct, counts / len(ordered), ordered[0], N_BINS / span, N_BINS) > CROWDED
    is_code = len(distinct) == len(ordered) >= LEAST_ROWS and bool((distinct == np.rint(distinct)).all())
    has_runs = labels is not None and tells_label(labels[order], starts, n_rows_of_classes)
    return Study(common, outlier, n_outliers, is_crowded, is_code, has_runs)


def find_outlier(distinct, counts):
    """(value, rows) of an end of the sorted distinct values that is farther from the others than these span."""
    if len(distinct) <= FEW:
        return np.nan, 0
    steps = np.diff(distinct)
    for end, step, rest in ((0, steps[0], steps[1:]), (-1, steps[-1], steps[:-1])):
        if step > rest.sum():
            return float(distinct[end]), int(counts[end])
    return np.nan, 0


def tells_label(labels, starts, n_rows_of_classes):
    """Whether equal values have equal labels, and there are few such values, or few runs of labels in their order.

    Parameters
    ----------
    labels : array, shape (n,)
        In the order of the values.
    starts : array
        Where each distinct value begins.
    n_rows_of_classes : array, shape (n_classes,)
        In the sample.
    """
    n_classes = len(n_rows_of_classes)
    if n_classes < 2 or np.sort(n_rows_of_classes)[-2] < LEAST_OF_CLASS or len(starts) < n_classes:
        return False
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    is_simple = len(changes) < LABEL_RUNS * n_classes or LEAST_OF_CLASS * len(starts) <= len(labels)
    return is_simple and bool(np.isin(changes, starts).all())


def report_columns(report, profile):
    """Add the findings about columns.

    Parameters
    ----------
    report : Report
        Where to add.
    profile : Profile
        Of its source.
    """
    report_bad_values(report, profile.missing, "missing-values", "NaN", profile.n_rows)
    report_bad_values(report, profile.infinite, "infinite-values", "infinity", profile.n_rows)
    report_names(report)
    if profile.census is None:
        return
    census, is_clean = profile.census, profile.is_clean
    is_constant = is_clean & (census.minimum == census.maximum)
    report_constant(report, np.flatnonzero(is_constant), profile)
    is_open = is_clean & ~is_constant
    report_duplicates(report, profile.column_hashes, np.flatnonzero(is_open))
    rising = np.flatnonzero(is_open & profile.is_rising) if profile.n_rows >= LEAST_ROWS else np.zeros(0, int)
    report_few(report, census, is_open)
    report_scales(report, census, is_open)
    report_coarse(report, census, np.flatnonzero(is_open))
    report_values(report, profile, np.flatnonzero(is_open)[:STUDIED_COLUMNS], rising)


def report_bad_values(report, faults, kind, name, n_rows):
    """Values that are not finite, by column."""
    columns = np.flatnonzero(faults.counts)
    if not len(columns):
        return
    columns = columns[np.argsort(-faults.counts[columns], kind="stable")]
    first = int(faults.first_rows[columns].min())
    names = report.names(columns)
    shown = listed([f"{name} ({faults.counts[j]:,})" for name, j in zip(names, columns, strict=True)])
    what = f"{name} in {plural(len(columns), 'column')}, {plural(faults.counts.sum(), 'value')}: {shown}."
    mostly = columns[faults.counts[columns] > n_rows / 2]
    remedy = "linadd takes no NaN or infinity: fill these values or drop the rows."
    if len(mostly):
        remedy += f" Leave out what is mostly missing: {report.drop_command(mostly)}"
    report.add("error", kind, what, remedy, columns, [first])


def report_names(report):
    """Names that several columns have."""
    names = report.source.feature_names or []
    found, counts = np.unique(np.array(names, dtype=str), return_counts=True)
    double = set(found[counts > 1].tolist())
    columns = [j for j, name in enumerate(names) if name in double]
    if columns:
        what = f"several columns of one name: {listed(sorted(double))}."
        report.add("warning", "duplicate-names", what, "Give each column its own name.", columns)


def report_constant(report, columns, profile):
    """Columns of one value."""
    if len(columns):
        where = "" if profile.is_whole else f" in all {profile.n_rows:,} rows looked at"
        what = f"a single value{where} in {plural(len(columns), 'column')}: {report.listed(columns)}."
        remedy = "A constant contributes nothing. "
        if len(columns) == report.source.n_features:
            remedy += "Give data whose columns vary."
        else:
            remedy += f"Leave it out: {report.drop_command(columns)}"
        report.add("warning", "constant-columns", what, remedy, columns)


def report_duplicates(report, hashes, columns):
    """Columns that are equal in every row."""
    _, first, place = np.unique(hashes[columns], return_index=True, return_inverse=True)
    copies = columns[first[place] != np.arange(len(columns))]
    if len(copies):
        originals = columns[first[place]][first[place] != np.arange(len(columns))]
        pairs = [f"{a} = {b}" for a, b in zip(report.names(originals), report.names(copies), strict=True)]
        what = f"copies of other columns, equal in every row looked at: {listed(pairs)}."
        remedy = f"Equal columns share one curve between them. Keep one of each: {report.drop_command(copies)}"
        report.add("warning", "duplicate-columns", what, remedy, copies)


def report_few(report, census, is_open):
    """Columns of a few integers, which may be categories; columns of two values need no word."""
    if census.n_distinct is None:
        return
    is_few = is_open & (census.n_distinct > 2) & (census.n_distinct <= FEW)
    columns = [j for j in np.flatnonzero(is_few) if census.minimum[j] == np.rint(census.minimum[j])]
    if columns:
        counts = [f"{name} ({census.n_distinct[j]})" for name, j in zip(report.names(columns), columns, strict=True)]
        what = f"3 to {FEW} distinct values in {plural(len(columns), 'column')}: {listed(counts)}."
        remedy = "If these are categories without an order, make one column of 0 and 1 of each category."
        report.add("info", "few-values", what, remedy, columns)


def report_scales(report, census, is_open):
    """Spans that differ by much."""
    columns = np.flatnonzero(is_open)
    if len(columns) < 2:
        return
    with np.errstate(over="ignore"):
        span = (census.maximum - census.minimum)[columns]
    low, high = int(np.argmin(span)), int(np.argmax(span))
    if span[high] > UNLIKE * span[low]:
        pair = columns[[low, high]]
        names = report.names(pair)
        what = f"columns are on unlike scales: {names[0]} spans {span[low]:.3g}, {names[1]} {span[high]:.3g}."
        remedy = "Nothing to do with --scale unit, the default; do not use --scale none with --encoder identity."
        report.add("info", "unlike-scales", what, remedy, pair)


def report_coarse(report, census, columns):
    """Values of float32 so far from 0 that few of its steps lie in their range: time stamps, large offsets."""
    if report.source.dtype != np.float32:
        return
    size = np.maximum(np.abs(census.minimum), np.abs(census.maximum))[columns]
    steps = (census.maximum - census.minimum)[columns] / np.spacing(size.astype(np.float32))
    columns = columns[steps < FINE_STEPS]
    if len(columns):
        least = int(steps.min())
        what = f"float32 is too coarse for {plural(len(columns), 'column')}: {report.listed(columns)}, at worst "
        what += f"{least} steps between {census.minimum[columns[0]]:.9g} and {census.maximum[columns[0]]:.9g}."
        remedy = "Subtract the least value before the column is stored as float32, or store it as float64."
        report.add("warning", "coarse-float32", what, remedy, columns)


def report_values(report, profile, columns, rising):
    """What the sampled values of each column show."""
    labels, counts, wanted = None, np.zeros(0, int), set(np.asarray(columns).tolist())
    if profile.y is not None and profile.labels.error is None and not profile.labels.n_missing:
        labels, counts = np.unique(profile.y, return_inverse=True, return_counts=True)[1:]
    n_rows = profile.X.shape[0]
    with np.errstate(over="ignore"):  # spans wider than a float64, which training refuses
        sampled = enumerate(sampled_columns(profile.X)) if n_rows >= LEAST_ROWS else ()
        studies = {j: study(values.astype(np.float64), labels, counts) for j, values in sampled if j in wanted}
    chosen = {name: [j for j, found in studies.items() if getattr(found, name)] for name in ("is_code", "tells_label")}
    ascending = set(rising.tolist())  # in a file sorted by label these tell it too
    report_leaks(report, [j for j in chosen["tells_label"] if j not in ascending], n_rows)
    codes = [j for j in chosen["is_code"] if j not in ascending]
    report_identifiers(report, rising, codes)
    report_outliers(report, {j: found for j, found in studies.items() if found.n_outliers})
    nearly = [j for j, found in studies.items() if found.share >= ALMOST_ALL]
    if nearly:
        what = f"one value in over {ALMOST_ALL:.1%} of the rows in {plural(len(nearly), 'column')}: "
        what += f"{report.listed(nearly)}."
        remedy = "Rare values have few rows to learn from. Nothing to do; they can be left out by --drop."
        report.add("info", "nearly-constant", what, remedy, nearly)
    crowded = [j for j, found in studies.items() if found.is_crowded]
    if crowded:
        what = f"long tails in {plural(len(crowded), 'column')}, one of {N_BINS} equal bins holding over half of the "
        what += f"rows: {report.listed(crowded)}."
        remedy = "Nothing to do with --knots auto, the default, which takes quantiles here; do not use --knots uniform."
        report.add("info", "long-tails", what, remedy, crowded)


def report_leaks(report, columns, n_rows):
    """Columns that tell the label."""
    if columns:
        what = f"the label follows from {plural(len(columns), 'column')} alone in all {n_rows:,} rows looked at: "
        what += f"{report.listed(columns)}."
        remedy = "If this is not known when the model is used, leave it out: " + report.drop_command(columns)
        report.add("warning", "leak", what, remedy, columns)


def report_identifiers(report, rising, codes):
    """Columns that name the row rather than describe it."""
    for columns, text in ((rising, "values that rise from row to row"), (codes, "another integer in every row")):
        if len(columns):
            what = f"{text} in {plural(len(columns), 'column')}: {report.listed(columns)}."
            remedy = f"If these are row numbers, identifiers or times, leave them out: {report.drop_command(columns)}"
            report.add("warning", "identifier-columns", what, remedy, columns)


def report_outliers(report, studies):
    """Values far from all others: codes for missing values if they repeat."""
    for severity, kind, repeats in (("warning", "placeholder-values", True), ("info", "outliers", False)):
        chosen = {j: found for j, found in studies.items() if (found.n_outliers > 1) == repeats}
        if not chosen:
            continue
        names = report.names(list(chosen))
        pairs = zip(names, chosen.values(), strict=True)
        shown = [f"{name} ({found.outlier:g}{count_of(found)})" for name, found in pairs]
        what = f"a value far from all others in {plural(len(chosen), 'column')}: {listed(shown)}."
        remedy = "Check the value; --knots quantile keeps it from taking the bins of the others."
        if repeats:
            remedy = "If it stands for a missing value, fill it with one that occurs; the curve takes it as a number."
        report.add(severity, kind, what, remedy, list(chosen))


def count_of(found):
    """How often a Study's outlier is there, if more than once."""
    return f", {found.n_outliers:,} times" if found.n_outliers > 1 else ""
