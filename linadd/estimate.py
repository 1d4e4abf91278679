"""`estimate`: what a training run will take in memory and time, from a probe of a few pieces of the file.

Memory is counted from the plan: the same arrays that the run will hold, phase by phase. Time comes from the probe: its
rows are read where the run would read them, and trained on by the run's own code; each phase's time a row is then that
of the file.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from linadd.census import MAX_TABLES
from linadd.chunks import join_chunks
from linadd.embedding import embed
from linadd.errors import ConfigError
from linadd.solvers import SOLVERS, choose_solver, dual_cd, newton
from linadd.solvers.blocks import READ_AHEAD_SHARE
from linadd.solvers.memory import Memory
from linadd.solvers.plan import row_bytes
from linadd.sources.base import WrappedSource
from linadd.train import Progress, make_problem, make_run, plan_of, sample_rows_of, survey

__all__ = ["Estimate", "estimate"]

PROBE_VALUES = 8_000_000  # fewer rows of wide data would tell of what a pass costs whatever the rows
LEAST_ROWS, MOST_ROWS = 200, 20_000
N_SPANS = 8  # pieces of the file that the probe is read from
N_CHUNKS = 16  # training chunks that are read for their time
UNLIMITED = 10**12  # bytes: the probe is small
PROBE_SECONDS = 20.0  # of training on the probe
# Bytes a row and output beside what the account of the memory limit knows: signs, scores and costs of one output.
JUDGING_BYTES = 40
TABLE_BYTES = 1024 + 100  # of the census, a feature


@dataclass(frozen=True)
class Estimate:
    """What a run will take.

    Attributes
    ----------
    solver : str
        The one that would run.
    plan : Plan
        Of the run.
    n_classes : int
        Seen in the probe.
    memory : dict of str to int
        Bytes of what is held together at the peak, above the program itself, by what they are for.
    bytes_per_pass : int
        Read from the file in a pass; 0 where the rows stay in memory.
    seconds_per_pass : float
        Of a pass.
    passes : int
        Until the probe reached the tolerance, or the most that the options allow.
    is_reached : bool
        The probe reached it.
    reads : int
        Of the file in all.
    seconds : float
        Of the run in all.
    probe_rows : int
        Rows of the probe.
    """

    solver: str
    plan: object
    n_classes: int
    memory: dict
    bytes_per_pass: int
    seconds_per_pass: float
    passes: int
    is_reached: bool
    reads: int
    seconds: float
    probe_rows: int


class Clock(Progress):
    """Times of the epochs of a run, which it ends after PROBE_SECONDS."""

    def __init__(self):
        self.started = time.perf_counter()
        self.times = [self.started]

    def epoch(self, record):
        """Note the time."""
        self.times.append(time.perf_counter())

    def should_stop(self):
        """Whether it has taken long enough; not before the second epoch, as the last one ends in a certificate."""
        return len(self.times) > 2 and time.perf_counter() - self.started > PROBE_SECONDS


class ProbeRows(WrappedSource):
    """Some rows of a source, in memory.

    Parameters
    ----------
    source : Source
        Where they come from.
    chunk : Chunk
        The rows, with the numbers that the file gives them.
    """

    def __init__(self, source, chunk):
        super().__init__(source)
        self.chunk, self.n_rows = chunk, chunk.n_rows

    def _read(self, start, stop):
        return replace(self.chunk.take(slice(start, stop)), first_row=start)

    def fingerprint(self):
        """Of the source."""
        return self.source.fingerprint()


def estimate(source, options):
    """Foresee a training run.

    Parameters
    ----------
    source : Source
        Labelled rows; a few pieces of them are read.
    options : Options
        Of the run. Validation and calibration are left out of account.

    Returns
    -------
    Estimate

    Raises
    ------
    DataError
        Rows that cannot be read, or not be trained on.
    ConfigError
        A memory limit that holds no training chunk; the solver liblinear, which makes no passes.
    """
    if options.solver == "liblinear":
        raise ConfigError("solver: 'liblinear' holds all rows and makes no passes. Estimate dual-cd, newton or sgd.")
    source.require_labels()
    options = replace(options, validation=None, early_stopping=False, calibrate=None)
    rows, read = probe(source)
    census = survey(rows, options, Progress())
    whole = replace(census, n_rows=source.n_rows, n_filled=round(census.n_filled * source.n_rows / rows.n_rows))
    plan = plan_of(source, options, whole)
    own = plan_of(rows, replace(options, memory_limit=UNLIMITED), census)
    own = replace(own, n_sweeps=plan.n_sweeps, n_partial=plan.n_partial)
    embedded = embed(rows, options, own, Memory(UNLIMITED), Progress(), census)
    problem = make_problem(rows, embedded, options)
    name = options.solver if options.solver != "auto" else foresee_solver(problem, plan, options)
    result, step, certificate = try_solver(name, problem, own, options)
    # Compiled code is loaded by now: what these take again is what they take.
    take_census = timed(lambda: survey(rows, options, Progress())) / rows.n_rows
    locate = timed(lambda: embed(rows, options, own, Memory(UNLIMITED), Progress(), census)) / rows.n_rows
    is_reached = result.converged and SOLVERS[name].certifies
    passes = result.passes if is_reached else options.max_epochs
    if not plan.fits:
        step = beside(read_chunks(source, plan) + locate, step)
    seconds = beside(read, take_census) + beside(read, locate) + passes * step
    seconds += result.reads * beside(read, certificate)
    file_bytes = source.layout().get("bytes", source.n_rows * source.n_features * source.dtype.itemsize)
    return Estimate(
        solver=name, plan=plan, n_classes=len(census.classes),
        memory=account(source, options, plan, problem, name, whole),
        bytes_per_pass=0 if plan.fits else file_bytes, seconds_per_pass=step * source.n_rows, passes=passes,
        is_reached=is_reached, reads=2 + result.reads + (0 if plan.fits else passes), seconds=seconds * source.n_rows,
        probe_rows=rows.n_rows,
    )  # fmt: skip


def beside(one, other):
    """Seconds of reading and work that run beside each other where there are cores for both: half way to their sum."""
    return max(one, other) + 0.5 * min(one, other)


def probe(source):
    """(ProbeRows from spans that are spread over the source, seconds that reading a row takes)."""
    row_values = max(source.n_features * source.layout().get("density", 1.0), 1)
    n_rows = int(np.clip(PROBE_VALUES // row_values, LEAST_ROWS, MOST_ROWS))
    if n_rows >= source.n_rows:
        starts, length = [0], source.n_rows
    else:
        length = n_rows // N_SPANS
        starts = np.linspace(0, source.n_rows - length, N_SPANS).astype(np.int64).tolist()
    source.read(0, 1)  # loads what the format needs
    started = time.perf_counter()
    chunks = [source.read(start, start + length) for start in starts]
    seconds = (time.perf_counter() - started) / (len(starts) * length)
    return ProbeRows(source, join_chunks(chunks, 0, source.origin)), seconds


def read_chunks(source, plan):
    """Seconds that reading a row takes in the training chunks of a plan, which come in random order."""
    chunks = np.linspace(0, plan.n_chunks - 1, min(N_CHUNKS, plan.n_chunks)).astype(int).tolist()
    bounds = [plan.chunk_bounds(chunk) for chunk in chunks]
    seconds = timed(lambda: [source.read(*each) for each in bounds])
    return seconds / sum(stop - start for start, stop in bounds)


def timed(function):
    """Seconds that a call takes."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def foresee_solver(problem, plan, options):
    """What `auto` stands for in the run of a plan, whose rows may stay in the file."""
    memory = Memory(options.memory_limit)
    memory.take(plan.block_bytes(problem.encoder.n_features) + 10 * plan.n_rows)
    if not plan.fits:
        problem = replace(problem, positions=None)
    return choose_solver(problem, make_run(options, plan, memory, Progress()))


def try_solver(name, problem, plan, options):
    """(SolverResult, seconds of a row in a pass, and in a certificate) of the probe.

    C stays as it is: what a pass of dual steps gains depends on C and the norms of the rows, not on their number
    [ShalevShwartz2013].
    """
    once = replace(options, max_epochs=1)  # loads the compiled code of a pass and a certificate
    SOLVERS[name].solve(problem, make_run(once, plan, Memory(UNLIMITED), Progress()))
    clock, n_rows = Clock(), len(problem.targets)
    result = SOLVERS[name].solve(problem, make_run(options, plan, Memory(UNLIMITED), clock))
    seconds = np.diff(clock.times)
    usual = float(np.median(seconds))  # the last one ends in a certificate
    return result, usual / n_rows, max(float(seconds[-1]) - usual, 0.0) / n_rows


def account(source, options, plan, problem, name, census):
    """Bytes that the run holds at its peak, by what they are for; the larger of census and training."""
    n_rows, n_outputs, encoder = source.n_rows, problem.n_outputs, problem.encoder
    stored = source.dtype.itemsize * source.n_features
    if source.is_sparse:
        stored = (source.dtype.itemsize + 4) * census.n_filled / n_rows + 8
    reader = 3 * min(source.chunk_rows, n_rows) * stored
    sample_rows = sample_rows_of(options, source.n_features)
    kept = min(n_rows, sample_rows)
    first = {"census": TABLE_BYTES * min(source.n_features, MAX_TABLES), "reader": reader}
    if sample_rows:
        # While it is sorted: parts of up to twice the rows, the same joined if they are several, and those that stay.
        # Where all rows are parts there is one sorting only, when the reader is done.
        chunk_rows = min(source.chunk_rows, n_rows)
        held = min(n_rows, max(2 * sample_rows, chunk_rows))
        first["sample"] = (held * (1 + (held > chunk_rows)) + kept) * stored
        first["reader"] = reader if held < n_rows else 0
    block = plan.block_bytes(source.n_features)
    block_rows = min(plan.block_chunks * plan.chunk_rows, n_rows)
    then = {
        "rows": block, "labels": 10 * n_rows, "sample": kept * stored if sample_rows else 0,
        "certificate": JUDGING_BYTES * n_rows, "reader": reader,
    }  # fmt: skip
    if name == "newton":
        then["decisions"] = 24 * n_rows * n_outputs
        then["dual variables"] = n_rows * n_outputs * 8
        then["coefficients"] = newton.required_bytes(problem)
        if not plan.fits:
            then["rows"] = 0
    else:
        then["rows"] += block_rows * (8 if plan.fits else 22 + 4 * n_outputs)
        then["visit"] = block_rows * (16 + n_outputs)
        then["dual variables"] = 4 * n_rows * n_outputs
        then["coefficients"] = dual_cd.coef_bytes(encoder, n_outputs, plan.n_partial)
        then["decisions"] = 16 * n_rows * n_outputs
        if not plan.fits:
            left = options.memory_limit - block - 10 * n_rows - then["dual variables"] - then["coefficients"]
            chunk = plan.chunk_rows * row_bytes(source.n_features, row_entries=plan.row_entries)
            ahead = READ_AHEAD_SHARE * left - plan.chunk_rows * stored
            then["read ahead"] = int(np.clip(ahead // chunk, 2, plan.block_chunks + 1)) * chunk
    parts = max(first, then, key=lambda held: sum(held.values()))
    return {part: int(n_bytes) for part, n_bytes in parts.items() if n_bytes}
