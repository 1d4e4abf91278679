"""`train`: the only place that wires source, census, encoder, loss and solver into a model."""

import time
import warnings
from typing import NamedTuple

import numpy as np

from linadd.census import Census, take_census
from linadd.encoders import make_encoder
from linadd.encoders.base import Encoder
from linadd.encoders.centring import Centre, CodeMoments
from linadd.encoders.exact import check_finite
from linadd.encoders.rows import locate, positions_dtype
from linadd.errors import ConfigError, ConvergenceWarning, DataError, DataWarning
from linadd.losses import LOSSES
from linadd.model import AdditiveModel
from linadd.options import Options
from linadd.row_sample import SAMPLE_ROWS
from linadd.solvers import SOLVERS, choose_solver
from linadd.solvers.base import Problem, Run
from linadd.solvers.blocks import measured
from linadd.solvers.memory import Memory
from linadd.solvers.outputs import NO_FOLD
from linadd.solvers.plan import make_plan
from linadd.solvers.sgd import SGD

# C times weights, up to which all solvers were seen to end with finite coefficients and a true gap.
LARGEST_COST = 1e15


class Progress:
    """What `train` tells while it runs; the command line shows it, the library ignores it."""

    def read(self, phase, n_rows, n_total):
        """Rows read so far in a phase ("census", "centre")."""

    def epoch(self, record):
        """A record of the history."""

    def should_stop(self):
        """Whether to end after the present block, keeping the model (Ctrl-C)."""
        return False


def survey(source, options, progress, classes=None):
    """The census that the options need, after one read of the source; `classes` stand for labels it does not have."""
    if classes is None:
        source.require_labels()
    is_sampled = options.encoder == "bspline" and options.knots != "uniform"
    # An eighth of the limit for the sample: its rows are kept twice while it is sorted. Counted at 8 bytes a value
    # whatever they are stored in, as the knots must not depend on that.
    fitting = options.memory_limit // 8 // (2 * 8 * source.n_features)
    sample_rows = int(np.clip(fitting, 1000, SAMPLE_ROWS)) if is_sampled else 0

    def on_chunk(rows):
        progress.read("census", rows.first_row + rows.n_rows, source.n_rows)

    census = take_census(source, sample_rows, options.seed, on_chunk)
    if classes is not None:
        census.classes, census.class_counts = np.unique(classes), None
        if len(census.classes) < 2:
            raise ConfigError(f"classes: {census.classes.tolist()} is one label only. Name all labels that will come.")
    return census


def class_factors(census, class_weight):
    """Factor of C of each class, float64 (n_classes,), from None, "balanced" or a dict by label."""
    classes = census.classes.tolist()
    if class_weight is None:
        return np.ones(len(classes))
    if class_weight == "balanced":
        if census.class_counts is None:
            raise ConfigError("class_weight: 'balanced' needs the counts of a census. Give census=, or the factors.")
        return census.n_rows / (len(classes) * census.class_counts)
    # By their text: a command line, and the options of a model file, cannot tell the label 1 from "1".
    factors = {str(label): factor for label, factor in class_weight.items()}
    unknown = sorted(factors.keys() - map(str, classes))
    if unknown:
        raise ConfigError(f"class_weight: {unknown[0]!r} is not among the classes {', '.join(map(str, classes))}.")
    return np.array([factors.get(str(label), 1.0) for label in classes], np.float64)


class Embedded(NamedTuple):
    """Training rows as the solvers need them: what the two reads before training have found."""

    census: Census
    encoder: Encoder
    centre: Centre
    targets: np.ndarray  # int32 (n_rows,): place in census.classes
    costs: np.ndarray  # float32 (n_rows,): class weight times sample weight
    folds: np.ndarray  # int16 (n_rows,): 0
    positions: np.ndarray | None  # all rows, where they fit


def embed(source, options, plan, memory, progress, classes=None, census=None):
    """Two reads of the source: the census that ranges and labels come from, if not given; then scale and centre."""
    is_surveyed = census is not None
    census = census if is_surveyed else survey(source, options, progress, classes)
    encoder = make_encoder(options.encoder, **options.encoder_options()).fit(census, options.scale)
    if not is_surveyed:
        warn_of_data(census, encoder)
    factors = class_factors(census, options.class_weight)
    targets = memory.zeros("labels", source.n_rows, np.int32)
    costs = memory.zeros("costs", source.n_rows, np.float32)
    folds = memory.zeros("folds", source.n_rows, np.int16)
    kept = np.empty((source.n_rows, source.n_features), positions_dtype(encoder)) if plan.fits else None
    memory.take(plan.block_bytes(source.n_features))
    moments = CodeMoments(encoder)
    for chunk in source.chunks():
        rows = slice(chunk.first_row, chunk.first_row + chunk.n_rows)
        if classes is None:
            targets[rows] = np.searchsorted(census.classes, chunk.y)
        weight = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
        with np.errstate(over="ignore"):  # refused below
            costs[rows] = factors[targets[rows]] * weight
        check_costs(costs[rows], options.C, chunk)
        positions = np.empty(chunk.X.shape, positions_dtype(encoder)) if kept is None else kept[rows]
        locate(encoder, chunk.dense(), positions)
        moments.update(positions, weight, chunk.first_row)
        progress.read("centre", rows.stop, source.n_rows)
    with np.errstate(over="ignore", invalid="ignore"):
        centre = moments.centre(options.center, options.scale == "unit")
    if not np.isfinite(centre.mean_norm):
        refuse_norms(census, options.scale)
    return Embedded(census, encoder, centre, targets, costs, folds, kept)


def check_costs(costs, C, chunk):
    """Raise DataError where C times class weight times sample weight passes what the solvers can bear."""
    row = int(np.argmax(costs))
    largest = float(costs[row]) * C
    if largest > LARGEST_COST:
        raise DataError(
            f"C times the weights of class and row is {largest:.3g}, above {LARGEST_COST:g}. Lower C, or divide all "
            "weights by a common factor.",
            source=chunk.origin, row=chunk.row_number(row),
        )  # fmt: skip


def refuse_norms(census, scale):
    """Raise DataError for rows whose squared norm is beyond float32: the solvers would leave them alone in silence."""
    size = np.maximum(-census.minimum, census.maximum)
    j = int(np.argmax(size))
    raise DataError(
        f"values up to {size[j]:g} under scale={scale!r} make squared norms that pass the range of float32. Rescale "
        "it, or use scale='unit'.",
        source=census.origin, column=census.column_name(j),
    )  # fmt: skip


def make_problem(source, embedded, options):
    """The problem: one output for two classes, else one-versus-rest."""
    n_classes = len(embedded.census.classes)
    positive = np.array([1], np.int32) if n_classes == 2 else np.arange(n_classes, dtype=np.int32)
    return Problem(
        source, *embedded[:3], LOSSES[options.loss], *embedded[3:], positive, np.full(len(positive), float(options.C)),
        np.full(len(positive), NO_FOLD, np.int16), options.intercept, options.intercept_scale,
    )  # fmt: skip


def plan_of(source, options):
    """The plan of a source under the options."""
    return make_plan(
        source.n_rows, source.n_features, options.memory_limit, options.training_chunk, options.partial_solutions,
        options.seed,
    )  # fmt: skip


def make_run(options, plan, memory, progress):
    """How to solve, from the options."""
    return Run(
        plan, memory, options.tol, options.max_epochs, options.n_jobs, options.stop_on, options.record(),
        progress.epoch, progress.should_stop,
    )  # fmt: skip


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
    plan, memory = plan_of(source, options), Memory(options.memory_limit)
    embedded = embed(source, options, plan, memory, progress)
    run = make_run(options, plan, memory, progress)
    problem = make_problem(source, embedded, options)
    name = choose_solver(problem, run) if options.solver == "auto" else options.solver
    result = SOLVERS[name].solve(problem, run)
    model = AdditiveModel(
        embedded.encoder, result.coef, result.intercept, embedded.census.classes, options.loss, embedded.centre.scale,
        source.feature_names, options.record(), result.history, summarise(result, source, plan, name, started),
        source.fingerprint(),
    )  # fmt: skip
    warn_of_convergence(model, options, embedded.census)
    return model


class Stream:
    """Stochastic gradient over rows as they come: the solver sgd, one pass, in the order given.

    Parameters
    ----------
    source : Source
        Rows that ranges, scale and centre are taken from, by two reads; usually the whole training file.
    options : Options
        What to train and how.
    n_expected : int
        Rows that lambda = 1 / (n C) counts on.
    classes : array, optional
        All labels, where the source does not have them.
    """

    def __init__(self, source, options, n_expected, classes=None):
        self.options, self.source = options, source
        plan, memory = plan_of(source, options), Memory(options.memory_limit)
        embedded = embed(source, options, plan, memory, Progress(), classes)
        self.embedded = embedded._replace(targets=None, costs=None, folds=None, positions=None)
        self.problem = make_problem(source, self.embedded, options)
        self.machine = SGD(self.problem, n_expected, options.schedule)
        self.factors = class_factors(embedded.census, options.class_weight)
        self.n_rows = 0

    def feed(self, rows):
        """One step for each row of a Source of labelled rows, in order.

        Raises
        ------
        DataError
            On a label that the first rows did not have, another number of features, or a value that is not finite.
        """
        encoder, classes = self.embedded.encoder, self.embedded.census.classes
        rows.require_labels()
        if rows.n_features != encoder.n_features:
            raise DataError(f"has {rows.n_features} features; the model has {encoder.n_features}.", source=rows.origin)
        for chunk in rows.chunks():
            X = chunk.dense()
            check_finite(X, chunk.origin, rows.feature_names, chunk.row_number)
            targets = np.minimum(np.searchsorted(classes, chunk.y), len(classes) - 1).astype(np.int32)
            if (classes[targets] != chunk.y).any():
                i = int(np.argmax(classes[targets] != chunk.y))
                raise DataError(
                    f"the label {chunk.y[i].item()!r} is not among the classes {', '.join(map(str, classes))}.",
                    source=chunk.origin, row=chunk.row_number(i),
                )  # fmt: skip
            weight = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
            positions = np.empty(X.shape, positions_dtype(encoder))
            locate(encoder, X, positions)
            costs = (self.factors[targets] * weight).astype(np.float32)
            self.machine.feed(measured(self.problem, positions, targets, costs), np.arange(chunk.n_rows))
            self.n_rows += chunk.n_rows

    def model(self):
        """The model of the rows so far."""
        coef, intercept = self.machine.point(self.options.average)
        summary = {"solver": "sgd", "gap": None, "converged": True, "n_rows": self.n_rows}
        return AdditiveModel(
            self.embedded.encoder, coef, intercept, self.embedded.census.classes, self.options.loss,
            self.embedded.centre.scale, self.source.feature_names, self.options.record(), [], summary,
            self.source.fingerprint(),
        )  # fmt: skip


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
        warnings.warn(f"{census.origin}: constant features contribute nothing: {listed}.", DataWarning, stacklevel=4)


def warn_of_convergence(model, options, census):
    """Say how far from the optimum the solver stopped, and what to change."""
    summary = model.summary
    if summary["converged"] or summary["interrupted"] or summary["gap"] is None:
        return
    worst = int(np.argmax(summary["gaps"]))
    where = f" (output {model.classes.tolist()[worst]!r})" if model.n_outputs > 1 else ""
    gap = f"a relative duality gap of {summary['gap']:.2g}{where}"
    if options.stop_on == "violation":
        reached = f"a violation above tol={options.tol:g}, and {gap}"
    else:
        reached = f"{gap}, above tol={options.tol:g}"
    passes = f"{summary['passes']} pass{'es' if summary['passes'] > 1 else ''}"
    warnings.warn(
        f"stopped after {passes} at {reached}. Raise max_epochs, lower C={options.C:g}, or accept it by a larger tol."
        f"{scale_remedy(census, options)}",
        ConvergenceWarning,
        stacklevel=3,
    )


def scale_remedy(census, options):
    """What to do where features are taken in their own units and these differ much; else nothing."""
    in_units = options.scale == "libspline" or (options.scale == "none" and options.encoder == "identity")
    span = census.maximum - census.minimum
    low, high = int(np.argmin(np.where(span > 0, span, np.inf))), int(np.argmax(span))
    if not in_units or span[high] < 100 * span[low]:
        return ""
    names = [census.column_name(j) for j in (low, high)]
    return (
        f" The features are on unlike scales, column {names[0]} spans {span[low]:.2g} and column {names[1]} "
        f"{span[high]:.2g}: scale='unit' makes them alike."
    )
