"""`train`: the only place that wires source, census, encoder, loss and solver into a model."""

import logging
import time
import warnings

import numpy as np

from linadd.census import SAMPLE_ROWS, take_census
from linadd.encoders import make_encoder
from linadd.encoders.centring import CodeMoments
from linadd.encoders.rows import locate, positions_dtype
from linadd.errors import ConfigError, ConvergenceWarning, DataWarning
from linadd.losses import LOSSES
from linadd.model import AdditiveModel
from linadd.options import Options
from linadd.solvers import SOLVERS
from linadd.solvers.base import Problem, Run
from linadd.solvers.memory import Memory
from linadd.solvers.plan import make_plan

log = logging.getLogger(__name__)


class Progress:
    """What `train` tells while it runs; the command line shows it, the library ignores it."""

    def read(self, phase, n_rows, n_total):
        """Rows read so far in a phase ("census", "centre")."""

    def epoch(self, record):
        """A record of the history."""

    def should_stop(self):
        """Whether to end after the present block, keeping the model (Ctrl-C)."""
        return False


def survey(source, options, progress):
    """The census that the options need, after one read of the source."""
    source.require_labels()
    is_sampled = options.encoder == "bspline" and options.knots != "uniform"
    # An eighth of the limit for the sample: its rows are kept twice while it is sorted.
    fitting = options.memory_limit // 8 // (2 * source.dtype.itemsize * source.n_features)
    sample_rows = int(np.clip(fitting, 1000, SAMPLE_ROWS)) if is_sampled else 0

    def on_chunk(rows):
        progress.read("census", rows.first_row + rows.n_rows, source.n_rows)

    return take_census(source, sample_rows, options.seed, on_chunk)


def class_factors(census, class_weight):
    """Factor of C of each class, float64 (n_classes,), from None, "balanced" or a dict by label."""
    classes = census.classes.tolist()
    if class_weight is None:
        return np.ones(len(classes))
    if class_weight == "balanced":
        return census.n_rows / (len(classes) * census.class_counts)
    # By their text: a command line, and the options of a model file, cannot tell the label 1 from "1".
    factors = {str(label): factor for label, factor in class_weight.items()}
    unknown = sorted(factors.keys() - map(str, classes))
    if unknown:
        raise ConfigError(f"class_weight: {unknown[0]!r} is not among the classes {', '.join(map(str, classes))}.")
    return np.array([factors.get(str(label), 1.0) for label in classes], np.float64)


def prepare(source, census, encoder, plan, options, memory, progress):
    """One read for the centre: returns (centre, targets, costs, positions or None)."""
    targets = memory.zeros("labels", source.n_rows, np.int32)
    costs = memory.zeros("costs", source.n_rows, np.float32)
    kept = np.empty((source.n_rows, source.n_features), positions_dtype(encoder)) if plan.fits else None
    memory.take(plan.block_bytes(source.n_features))
    factors = class_factors(census, options.class_weight)
    moments = CodeMoments(encoder)
    for chunk in source.chunks():
        rows = slice(chunk.first_row, chunk.first_row + chunk.n_rows)
        targets[rows] = np.searchsorted(census.classes, chunk.y)
        weight = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
        costs[rows] = factors[targets[rows]] * weight
        positions = np.empty(chunk.X.shape, positions_dtype(encoder)) if kept is None else kept[rows]
        locate(encoder, chunk.dense(), positions)
        moments.update(positions, weight, chunk.first_row)
        progress.read("centre", rows.stop, source.n_rows)
    return moments.centre(options.center, options.scale == "unit"), targets, costs, kept


def train(source, options=None, progress=None):
    """Train an additive classifier.

    Parameters
    ----------
    source : Source
        Labelled rows.
    options : Options, optional
        What to train and how.
    progress : Progress, optional
        Told what happens, and asked whether to stop.

    Returns
    -------
    AdditiveModel

    Raises
    ------
    DataError
        On data that cannot be learned from, before any training.
    ConfigError
        On options that cannot work together or with these data.

    Warns
    -----
    ConvergenceWarning
        Where the declared stopping rule was not met.
    DataWarning
        On constant features.
    """
    options, progress, started = options or Options(), progress or Progress(), time.monotonic()
    census = survey(source, options, progress)
    encoder = make_encoder(options.encoder, **options.encoder_options()).fit(census, options.scale)
    warn_of_data(census, encoder)
    plan = make_plan(
        source.n_rows, source.n_features, options.memory_limit, options.training_chunk, options.partial_solutions,
        options.seed,
    )  # fmt: skip
    memory = Memory(options.memory_limit)
    centre, targets, costs, positions = prepare(source, census, encoder, plan, options, memory, progress)
    n_classes = len(census.classes)
    positive = np.array([1], np.int32) if n_classes == 2 else np.arange(n_classes, dtype=np.int32)
    problem = Problem(
        source, census, encoder, centre, LOSSES[options.loss], targets, costs, positions, positive,
        np.full(len(positive), float(options.C)), options.intercept, options.intercept_scale,
    )  # fmt: skip
    run = Run(
        plan, memory, options.tol, options.max_epochs, options.n_jobs, options.stop_on, options.record(),
        progress.epoch, progress.should_stop,
    )  # fmt: skip
    name = "dual-cd" if options.solver == "auto" else options.solver
    result = SOLVERS[name].solve(problem, run)
    model = AdditiveModel(
        encoder, result.coef, result.intercept, census.classes, options.loss, centre.scale, source.feature_names,
        options.record(), result.history, summarise(result, source, plan, name, started), source.fingerprint(),
    )  # fmt: skip
    warn_of_convergence(model, options)
    return model


def summarise(result, source, plan, solver, started):
    """The model's summary."""
    certificate = result.certificate
    return {
        "solver": solver,
        "objective": None if certificate is None else float(certificate.primal.sum()),
        "dual_objective": None if certificate is None else float(certificate.dual.sum()),
        "gap": None if certificate is None else certificate.gap,
        "gaps": None if certificate is None else certificate.gaps.tolist(),
        "converged": result.converged,
        "interrupted": result.interrupted,
        "passes": result.passes,
        "reads": result.reads + 2,  # census and centre
        "n_rows": source.n_rows,
        "n_features": source.n_features,
        "plan": plan.record(),
        "seconds": time.monotonic() - started,
    }


def warn_of_data(census, encoder):
    """Say which features are constant."""
    if len(encoder.constant):
        names = [str(census.column_name(j)) for j in encoder.constant[:5]]
        more = f" and {len(encoder.constant) - 5} more" if len(encoder.constant) > 5 else ""
        listed = ", ".join(names) + more
        warnings.warn(f"{census.origin}: constant features contribute nothing: {listed}.", DataWarning, stacklevel=3)


def warn_of_convergence(model, options):
    """Say how far from the optimum the solver stopped, and what to change."""
    summary = model.summary
    if summary["converged"] or summary["gap"] is None:
        return
    worst = int(np.argmax(summary["gaps"]))
    where = f" (output {model.classes[worst]!r})" if model.n_outputs > 1 else ""
    warnings.warn(
        f"stopped after {summary['passes']} passes at a relative duality gap of {summary['gap']:.2g}{where}, above "
        f"tol={options.tol:g}. Raise max_epochs, lower C={options.C:g}, or accept the gap by a larger tol.",
        ConvergenceWarning,
        stacklevel=3,
    )
