"""`train`: the only place that wires source, census, encoder, loss and solver into a model."""

import copy
import logging
import time
from dataclasses import replace

import numpy as np

from linadd.advice import warn_of_convergence, warn_of_data
from linadd.calibration import CALIBRATIONS
from linadd.census_cache import kept_census
from linadd.embedding import class_factors, embed, lean
from linadd.encoders.exact import decide
from linadd.encoders.identity import in_other_units
from linadd.errors import ConfigError, DataError
from linadd.losses import LOSSES
from linadd.model import AdditiveModel
from linadd.options import Options, is_number
from linadd.row_sample import SAMPLE_ROWS, fill_folds
from linadd.solvers import SOLVERS, choose_solver
from linadd.solvers.base import Problem, Run, Start
from linadd.solvers.memory import Memory
from linadd.solvers.outputs import NO_FOLD
from linadd.solvers.plan import make_plan
from linadd.sources import open_source
from linadd.sources.columns import match_columns
from linadd.validation import TrainingRows, ValidationRows, Watch, keep_best, report

log = logging.getLogger(__name__)

HELD_OUT = 5  # one row of as many is held out for the calibration
DENSEST_SPARSE = 0.25  # share of values that are not 0, below which `rows="auto"` keeps those of a sparse source only


class Progress:
    """What `train` tells while it runs; the command line shows it, the library ignores it."""

    def read(self, phase, n_rows, n_total):
        """Rows read so far in a phase ("census", "centre")."""

    def epoch(self, record):
        """A record of the history."""

    def should_stop(self):
        """Whether to end after the present block, keeping the model (Ctrl-C)."""
        return False


def sample_rows_of(options, n_features):
    """Rows that the census samples for quantile knots; 0 where there are none.

    An eighth of the limit for the sample: its rows are kept twice while it is sorted. Counted at 8 bytes a value
    whatever they are stored in, as the knots must not depend on that.
    """
    if options.encoder != "bspline" or options.knots == "uniform":
        return 0
    return int(np.clip(options.memory_limit // 8 // (2 * 8 * n_features), 1000, SAMPLE_ROWS))


def survey(source, options, progress, classes=None):
    """The census that the options need, kept or after one read; `classes` stand for labels the source does not have."""
    if classes is None:
        source.require_labels()

    def on_chunk(rows):
        progress.read("census", rows.first_row + rows.n_rows, source.n_rows)

    census = kept_census(source, sample_rows_of(options, source.n_features), options.seed, on_chunk)
    if classes is not None:
        census.classes, census.class_counts = np.unique(classes), None
        if len(census.classes) < 2:
            raise ConfigError(f"classes: {census.classes.tolist()} is one label only. Name all labels that will come.")
    return census


def make_problem(source, embedded, options):
    """The problem: one output for two classes, else one-versus-rest."""
    n_classes = len(embedded.census.classes)
    positive = np.array([1], np.int32) if n_classes == 2 else np.arange(n_classes, dtype=np.int32)
    return Problem(
        source, *embedded[:3], LOSSES[options.loss], *embedded[3:7], positive, np.full(len(positive), float(options.C)),
        np.full(len(positive), NO_FOLD, np.int16), options.intercept, options.intercept_scale,
    )  # fmt: skip


def plan_of(source, options, census, n_copies=1):
    """The plan of a source under the options: rows are sparse if asked for, or if that is cheaper and possible.

    Only sparse rows need a census. `n_copies` as in `make_plan`.
    """
    is_thin = source.is_sparse and census.density < DENSEST_SPARSE and options.needs_dense_rows() is None
    is_sparse = options.rows == "sparse" or (options.rows == "auto" and is_thin)
    return make_plan(
        source.n_rows, source.n_features, options.memory_limit, options.training_chunk, options.partial_solutions,
        options.seed, options.precision, census.n_filled / source.n_rows if is_sparse else 0.0, n_copies,
    )  # fmt: skip


def make_run(options, plan, memory, progress):
    """How to solve, from the options."""
    return Run(
        plan, memory, options.tol, options.max_epochs, options.n_jobs, options.stop_on, options.record(),
        progress.epoch, progress.should_stop,
    )  # fmt: skip


def train(source, options=None, progress=None, start=None, validation=None):
    """Train an additive classifier.

    Parameters
    ----------
    source : Source
        Labelled rows.
    options : Options, optional
        What to train and how.
    progress : Progress, optional
        Told what happens, and asked whether to stop.
    start : AdditiveModel, optional
        Where newton and sgd begin; dual-cd and liblinear begin at zero all the same, and a log line says so.
    validation : Source, optional
        Rows of the file that `options.validation` names, where its tables or columns have other names than usual.

    Returns
    -------
    AdditiveModel

    Raises
    ------
    DataError
        On data that cannot be learned from, before any training.
    ConfigError
        On options that cannot work together or with these data, or a start of another shape.

    Warns
    -----
    ConvergenceWarning
        Where the declared stopping rule was not met.
    DataWarning
        On constant features.
    """
    return train_embedded(source, options or Options(), progress or Progress(), start, validation)[0]


def train_embedded(source, options, progress, start=None, validation=None):
    """What `train` does, and what it learned from: (AdditiveModel, lean Embedded)."""
    started, memory = time.monotonic(), Memory(options.memory_limit)
    rows = source
    if is_number(options.validation):
        rows, validation = TrainingRows(source, options.validation, options.seed), source
    if not source.is_sparse and options.rows != "sparse":
        plan_of(source, options, None)  # a limit that holds no training chunk is refused before anything is read
    census = survey(rows, options, progress)
    plan = plan_of(source, options, census)
    embedded = embed(rows, options, plan, memory, progress, census)
    warn_of_data(census, embedded.encoder)
    problem = make_problem(source, embedded, options)
    watch = make_watch(validation, options, problem, memory)
    run = replace(make_run(options, plan, memory, progress), watch=watch)
    name = choose_solver(problem, run) if options.solver == "auto" else options.solver
    if start is not None:
        run = replace(run, start=start_of(start, problem, name))
    is_held = None if options.calibrate is None else held_out_rows(problem, options.seed)
    result = SOLVERS[name].solve(problem, run)
    if watch is not None:
        result = keep_best(result, watch, problem, run)
    model = AdditiveModel(
        embedded.encoder, result.coef, result.intercept, embedded.census.classes, options.loss, embedded.centre.scale,
        source.feature_names, options.record(), result.history,
        summarise(result, embedded.census, source, plan, name, started), source.fingerprint(),
        density=embedded.density,
    )  # fmt: skip
    if watch is not None:
        model.summary["validation"] = report(watch, model)
    if run.start is not None:
        model.summary["start"] = start.digest
    if options.calibrate is not None:
        second = replace(run, memory=copy.copy(memory), start=None, watch=None)
        if options.early_stopping:  # as many passes as the model that is kept has had
            second = replace(second, max_epochs=model.summary["validation"]["pass"])
        calibrate(model, problem, second, name, is_held)
    warn_of_convergence(model, options, embedded.census)
    return model, lean(embedded)


def make_watch(source, options, problem, memory):
    """The Watch of the validation rows of a source, else of the file that the options name; None without any."""
    if options.validation is None:
        return None
    if source is None:
        data = {"match": problem.source.feature_names, "like": problem.source.fingerprint()}
        source = open_source(options.validation, n_features=problem.encoder.n_features, **data)
    else:
        source = match_columns(source, problem.source.feature_names)
    source.require_labels()
    if source.n_features != problem.encoder.n_features:
        raise DataError(
            f"has {source.n_features} features; the training rows have {problem.encoder.n_features}.",
            source=source.origin,
        )  # fmt: skip
    fraction = options.validation if is_number(options.validation) else None
    rows = ValidationRows(source, problem.census.classes, memory, fraction, options.seed)
    factors = class_factors(problem.census, options.class_weight)
    patience = options.patience if options.early_stopping else None
    return Watch(rows, problem.encoder, problem.loss, problem.positive, factors, patience)


def held_out_rows(problem, seed):
    """Which rows are held out for the calibration, bool (n_rows,): a fifth of the hashes of their index.

    Raises
    ------
    ConfigError
        Where they, or those that are left, lack rows of a class.
    """
    folds = np.empty(len(problem.costs), np.int16)
    fill_folds(folds, HELD_OUT, seed)
    is_held, classes = folds == 0, problem.census.classes.tolist()
    for side, rows in (("held-out", is_held), ("other", ~is_held)):
        counts = np.bincount(problem.targets[rows & (problem.costs > 0)], minlength=len(classes))
        if not counts.all():
            raise ConfigError(
                f"calibrate: the {np.count_nonzero(rows)} {side} rows hold none of the class "
                f"{classes[int(np.argmin(counts))]!r}. Give more rows of it, another seed, or no calibration."
            )
    return is_held


def calibrate(model, problem, run, solver, is_held):
    """Give the model a calibration, from the decisions on held-out rows of a second model that is trained without them.

    Labels have no part in ranges, scale and centre, which are those of all rows.
    """
    kind, summary = run.options["calibrate"], model.summary
    costs = run.memory.zeros("costs", len(is_held), np.float32)
    np.multiply(problem.costs, ~is_held, out=costs)
    result = None
    if not summary["interrupted"]:
        result = SOLVERS[solver].solve(replace(problem, costs=costs), replace(run, on_epoch=lambda record: None))
        summary["interrupted"] = result.interrupted
    if summary["interrupted"]:
        log.warning("interrupted before the calibration was fitted: the model has none.")
        return
    held = np.flatnonzero(is_held)
    decisions = run.memory.zeros("held-out decisions", (len(held), problem.n_outputs), np.float64)
    for chunk in problem.source.chunks():
        first, last = np.searchsorted(held, (chunk.first_row, chunk.first_row + chunk.n_rows))
        X = problem.values(chunk)[held[first:last] - chunk.first_row]
        decisions[first:last] = decide(problem.encoder, X, result.coef, result.intercept)
    targets = problem.targets[held]
    # Class weights move the decisions, not the truth: only sample weights count here.
    weight = problem.costs[held] / class_factors(problem.census, run.options["class_weight"])[targets]
    model.calibration = CALIBRATIONS[kind].fit(decisions, targets[:, None] == problem.positive, weight)
    gap = None if result.certificate is None else result.certificate.gap
    summary["calibration"] = {"kind": kind, "n_rows": len(held), "gap": gap}
    summary["reads"] += result.reads + 1


def start_of(model, problem, solver):
    """The Start of a model's coefficients; None for a solver that begins at zero. ConfigError if they do not fit.

    The identity encoder may have other origins and scales now: its lines are kept, not their coefficients.
    """
    encoder, is_line = model.encoder, model.encoder.name == "identity"
    kind = (encoder.name, {} if is_line else encoder.options, model.n_features, model.classes.tolist())
    own, classes = problem.encoder, problem.census.classes.tolist()
    if kind != (own.name, {} if is_line else own.options, own.n_features, classes):
        raise ConfigError(
            f"start: the model to start from has the encoder {encoder.name} {encoder.options}, {model.n_features} "
            f"features and the classes {', '.join(map(str, kind[3]))}; these are others now. Start anew: "
            "warm_start=False, or no --initial."
        )
    names = zip(model.feature_names or [], problem.source.feature_names or [], strict=False)
    for j, (old, new) in enumerate(names, 1):
        if old != new:
            raise ConfigError(
                f"start: column {j} is {new!r}; in the model to start from it is {old!r}. Give the columns in its "
                "order."
            )
    if not SOLVERS[solver].starts:
        log.info("start: the solver %s begins at zero; newton and sgd can start from a model.", solver)
        return None
    coef, intercept = model.coef, model.intercept
    if is_line:
        coef, intercept = in_other_units(coef, intercept, encoder.axes, own.axes)
    if problem.intercept == "none":
        intercept = -problem.mean_scores(coef)
    return Start(coef, intercept, model.summary["n_rows"] or len(problem.targets))


def summarise(result, census, source, plan, solver, started):
    """The model's summary."""
    certificate = result.certificate
    return {
        "solver": solver,
        "objective": None if certificate is None else float(certificate.primal.sum()),
        "dual_objective": None if certificate is None else float(certificate.dual.sum()),
        "gap": None if certificate is None else certificate.gap,
        "gaps": None if certificate is None else certificate.gaps.tolist(),
        "gap_on_codes": result.gap_on_codes,
        "converged": result.converged,
        "interrupted": result.interrupted,
        "passes": result.passes,
        "reads": result.reads + census.n_reads + 1,  # of the centre
        "n_rows": source.n_rows,
        "n_features": source.n_features,
        "class_counts": np.asarray(census.class_counts).tolist(),
        "plan": plan.record(),
        "seconds": time.monotonic() - started,
    }
