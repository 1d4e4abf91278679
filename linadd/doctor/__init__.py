"""`diagnose`: what is wrong with a data set, how much it matters, and what to do about it.

An error is what training by the default options refuses, found by training's own checks: its counts of labels, its
encoder, its plan. Warnings and notes are rules of this folder: `columns.py`, `rows.py`, `storage.py`, over what
`profile.py` has seen of the rows.
"""

import warnings
from dataclasses import dataclass, replace

from linadd.doctor.columns import report_columns
from linadd.doctor.profile import Profile, take_profile
from linadd.doctor.report import Finding, Report
from linadd.doctor.rows import report_rows
from linadd.doctor.storage import report_memory, report_storage
from linadd.embedding import embed
from linadd.encoders import make_encoder
from linadd.errors import DataWarning, LinaddError
from linadd.options import Options
from linadd.solvers.memory import Memory
from linadd.sources import Source, open_source
from linadd.train import Progress, plan_of, survey

__all__ = ["Diagnosis", "Finding", "diagnose"]


@dataclass(frozen=True)
class Diagnosis:
    """What was found.

    Attributes
    ----------
    source : Source
        The data.
    layout : dict
        `Source.layout()`.
    profile : Profile
        What the rows hold.
    findings : list of Finding
        The most severe first.
    """

    source: Source
    layout: dict
    profile: Profile
    findings: list


def diagnose(data, *, full=False, memory_limit=Options.memory_limit, reading="", on_rows=None, **options):
    """Look for what makes data hard to learn from.

    Parameters
    ----------
    data : path-like, Source or any data that `open_source` takes
        The rows.
    full : bool
        Read all rows; else a sample of at most 65,536, spread over the file.
    memory_limit : int
        Bytes; of this run, and of the training that is foreseen.
    reading : str
        Options of the command line that open the data so, for the commands of remedies.
    on_rows : callable, optional
        Called with (rows read, rows to read), for progress.
    **options
        Of `open_source`.

    Returns
    -------
    Diagnosis

    Raises
    ------
    DataError
        Data that cannot be opened or read at all.
    ConfigError
        An option of another form.
    """
    choices = Options(memory_limit=memory_limit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        source = open_source(data, **options)
    report, layout = Report(source, reading), source.layout()
    for each in caught:
        if issubclass(each.category, DataWarning):
            report.add_warning(each.message)
    profile = take_profile(source, full, memory_limit, on_rows)
    report_columns(report, profile)
    plan = foresee(report, profile, choices)
    report_rows(report, profile, plan is None or plan.fits)
    if plan is not None:
        report_memory(report, plan, memory_limit)
    report_storage(report, profile, layout)
    if profile.is_whole and not report.has_errors:
        rehearse(report, profile, choices, plan)
    return Diagnosis(source, layout, profile, report.ordered())


def foresee(report, profile, options):
    """The plan of training on all rows; None, and an error, where the memory limit holds none."""
    source, census = report.source, profile.census
    if census is not None:
        n_filled = round(census.n_filled * source.n_rows / census.n_rows)
        census = replace(census, n_rows=source.n_rows, n_filled=n_filled)
    elif source.is_sparse:
        return None
    try:
        return plan_of(source, options, census)
    except LinaddError as error:
        report.add_error("memory-limit", error)
        return None


def rehearse(report, profile, options, plan):
    """Add what else training refuses: its own preparation of a small file, the encoder alone of a large one."""
    source = report.source
    try:
        if profile.X.shape[0] == source.n_rows:
            memory, progress = Memory(options.memory_limit), Progress()
            embed(source, options, plan, memory, progress, survey(source, options, progress))
        else:
            make_encoder(options.encoder, knots="uniform").fit(profile.census, options.scale)
    except LinaddError as error:
        report.add_error("values", error)
