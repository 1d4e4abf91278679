"""`search`: a path of values of C times folds trained together as outputs of one stream, for each setting of a grid.

Outputs = values of C x held-out folds x machines (one for two classes, else one a class), in that order, so that the
16 lanes of a group have like values of C and are frozen together. Output (C, k) is trained on all rows but those of
fold k, which are scored in one more read. Ranges, knots, scale and centre come from all rows: labels have no part in
them. The settings of the grid (`n_bins`, `degree`, ...) are other embeddings: they follow one after the other and share
the census.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from linadd.choices import COSTS, ENCODERS, GRID, METRICS
from linadd.chunks import prefetch
from linadd.embedding import embed
from linadd.encoders import make_encoder
from linadd.encoders.exact import decide
from linadd.errors import ConfigError
from linadd.losses import LOSSES
from linadd.metrics import AreaUnderCurve, Metrics, log_probabilities
from linadd.options import Options
from linadd.row_sample import PIECE_ROWS, fill_folds
from linadd.solvers import dual_cd
from linadd.solvers.memory import Memory
from linadd.train import Progress, make_problem, make_run, plan_of, survey, train

__all__ = ["Choice", "Path", "SearchProgress", "SearchResult", "refit", "search"]

log = logging.getLogger(__name__)

MAX_FOLDS = 1000
SINGLE_FOLD_PARTS = 5  # a single fold is the first of these


class SearchProgress(Progress):
    """What `search` tells while it runs."""

    def setting(self, number, n_settings, values):
        """Setting `number`, from 1, of the grid begins; `values` are those of its options, a dict."""


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    table : list of dict
        A record for each setting and C, of JSON values: `C` and the options of the grid; `error`, `auc`, `log_loss`
        (means over the folds; None where not defined), each with its `_deviation` (over the folds; None for one fold);
        `gap` (certified, of the worst output), `passes`; and `folds`, a list of `fold` (from 1), `n_rows` (held out),
        the figures and `gap`.
    best : Options
        The chosen setting.
    choice : dict
        How it was chosen: `metric`, `one_se`, `n_folds`, and the values `best`.
    deviation : float32 array, shape (n_features, n_basis, n_outputs), or None
        Standard errors of the curves of the chosen setting (`fold_deviation`); None for a single fold.
    is_interrupted : bool
        Ended by Ctrl-C; the table holds what was finished.
    reads : int
        Reads of the source.
    seconds : float
        Time taken.
    """

    table: list
    best: Options
    choice: dict
    deviation: np.ndarray | None
    is_interrupted: bool
    reads: int
    seconds: float


@dataclass(frozen=True)
class Choice:
    """What to search over, and by which figure to choose; checked when made.

    Attributes
    ----------
    costs : tuple of float
        Values of C, ascending.
    n_folds : int
        Folds held out in turn; 1 for a single one of SINGLE_FOLD_PARTS.
    metric : str
        One of METRICS.
    one_se : bool
        Choose by the rule of one standard error.
    """

    costs: tuple
    n_folds: int
    metric: str
    one_se: bool

    def __post_init__(self):
        if not 1 <= self.n_folds <= MAX_FOLDS or self.n_folds != int(self.n_folds):
            raise ConfigError(f"n_folds: {self.n_folds!r} is not an integer between 1 and {MAX_FOLDS}.")
        if self.metric not in METRICS:
            raise ConfigError(f"metric: {self.metric!r} is not one of {', '.join(METRICS)}.")
        if self.one_se and self.n_folds == 1:
            raise ConfigError("one_se: a single fold (n_folds=1) has no standard error. Use at least 2 folds.")

    @property
    def n_parts(self):
        """Parts that the rows are cut into."""
        return self.n_folds if self.n_folds > 1 else SINGLE_FOLD_PARTS

    def check(self, options):
        """Raise ConfigError where the options cannot be searched with."""
        if options.solver not in ("auto", "dual-cd"):
            raise ConfigError(f"solver: {options.solver!r} cannot train folds on one stream. Search with 'dual-cd'.")
        if options.stop_on != "gap":
            raise ConfigError(f"stop_on: {options.stop_on!r} is not searched with. Use 'gap'.")
        if options.validation is not None:
            raise ConfigError("validation: a search holds out folds of its own. Leave it out, or use `train`.")
        if self.metric == "log_loss" and not LOSSES[options.loss].has_probabilities:
            raise ConfigError(
                f"metric: 'log_loss' needs probabilities, which {options.loss!r} loss does not give. Use 'logistic'."
            )


def search(source, options=None, costs=COSTS, n_folds=5, grid=None, metric="error", one_se=False, progress=None):
    """Find C, and options of the embedding, by cross-validation on shared reads.

    Parameters
    ----------
    source : Source
        Labelled rows.
    options : Options, optional
        All other options; its C is not used.
    costs : sequence of float
        Values of C.
    n_folds : int
        Folds, of rows by a hash of their index; 1 holds out a single fifth of the rows.
    grid : dict of str to sequence, optional
        Values of options named in GRID; each combination is a setting.
    metric : {"error", "auc", "log_loss"}
        Held-out figure to choose by.
    one_se : bool
        Choose the most regularised setting within one standard error of the best, not the best itself: the least C,
        then the fewest basis functions, then the highest penalty order. Equal settings are chosen among likewise.
    progress : SearchProgress, optional
        Told what happens, and asked whether to stop.

    Returns
    -------
    SearchResult

    Raises
    ------
    ConfigError
        On values that cannot be searched; where the coefficients of all outputs, or the scores of a chosen AUC, do not
        fit the memory limit; and where a fold has no rows, or all rows of a class.
    DataError
        As `train`.
    """
    options, progress, started = options or Options(), progress or SearchProgress(), time.monotonic()
    choice = Choice(distinct("C", costs), n_folds, metric, one_se)
    choice.check(options)
    settings = expand(options, choice.costs, grid or {})
    census, table, is_interrupted = survey(source, options, progress), [], False
    reads = census.n_reads
    deviations = {}
    for number, setting in enumerate(settings, 1):
        is_interrupted = is_interrupted or (number > 1 and progress.should_stop())
        if is_interrupted:
            break
        progress.setting(number, len(settings), grid_values(setting))
        path = Path(source, setting, choice, census, progress, sum(each.nbytes for each in deviations.values()))
        is_interrupted = path.result.interrupted
        finished = path.finished(is_first=not table) if is_interrupted else range(len(choice.costs))
        table += path.records(finished)
        reads += path.reads
        deviations |= path.deviations(finished)
        best = choose(table, options, choice)
        if not one_se:  # whose choice may yet fall back on an earlier setting
            deviations = {key: each for key, each in deviations.items() if key == setting_key(best)}
    how = {"metric": metric, "one_se": one_se, "n_folds": n_folds, "best": {"C": best.C} | grid_values(best)}
    deviation = deviations.get(setting_key(best))
    return SearchResult(table, best, how, deviation, is_interrupted, reads, time.monotonic() - started)


def refit(source, result, progress=None):
    """Train on all rows with the chosen options; the model is that of `train`, with the table in its summary.

    Parameters
    ----------
    source : Source
        The rows of the search.
    result : SearchResult
        What it found.
    progress : Progress, optional
        As for `train`.

    Returns
    -------
    AdditiveModel
        `summary["search"]` holds `metric`, `one_se`, `n_folds`, `best` and `table`.
    """
    model = train(source, result.best, progress)
    model.summary["search"] = result.choice | {"table": result.table}
    model.deviation = result.deviation
    return model


def setting_key(options):
    """What tells a setting and its C from the others of a search."""
    return options.C, *grid_values(options).values()


def fold_deviation(coef, mean_code, is_local):
    """Standard errors of curves from the models of the folds, by the delete-a-group jackknife [Kott2001].

        sqrt((K - 1) / K  sum_k (v_k - mean of v)^2)

    Parameters
    ----------
    coef : float32 array, shape (n_folds, n_features, n_basis, n_outputs)
        Of the model that was trained without each fold.
    mean_code : array, shape (n_features, n_basis)
        Mean of phi over all rows.
    is_local : bool
        The basis sums to 1: the coefficients are first centred, so that they are those of centred curves.

    Returns
    -------
    float32 array, shape (n_features, n_basis, n_outputs)
    """
    coef = coef.astype(np.float64)
    if is_local:
        coef -= np.einsum("jk,fjko->fjo", mean_code.astype(np.float64), coef)[:, :, None]
    return (coef.std(axis=0) * np.sqrt(len(coef) - 1)).astype(np.float32)


def distinct(name, values):
    """The values as a sorted tuple; ConfigError where there are none, or one of them twice."""
    values = tuple(values) if isinstance(values, (Sequence, np.ndarray)) and not isinstance(values, str) else (values,)
    if not values:
        raise ConfigError(f"{name}: no value is given.")
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise ConfigError(f"{name}: {twice!r} is given twice.")
    return tuple(sorted(values))


def expand(options, costs, grid):
    """Options of each setting of the grid, all values checked; C is the greatest."""
    for name in grid:
        if name not in GRID:
            raise ConfigError(f"grid: {name!r} is not one of {', '.join(GRID)}.")
        if name not in ENCODERS[options.encoder]:
            raise ConfigError(f"grid: the encoder {options.encoder!r} has no option {name!r}.")
    for C in costs:
        replace(options, C=C)
    columns = [distinct(name, values) for name, values in grid.items()]
    return [replace(options, C=costs[-1], **dict(zip(grid, values, strict=True))) for values in product(*columns)]


def grid_values(options):
    """The options of the grid that the encoder has."""
    return {name: getattr(options, name) for name in GRID if name in ENCODERS[options.encoder]}


class Path:
    """One setting: all values of C and folds trained on one stream, then their held-out rows scored in one more read.

    Parameters
    ----------
    source : Source
        The rows.
    options : Options
        The setting.
    choice : Choice
        Values of C, folds, and the figure to choose by.
    census : Census
        Of the rows.
    progress : SearchProgress
        As for `search`.
    held_bytes : int
        Memory that earlier settings hold.

    Attributes
    ----------
    result : SolverResult
        With a column for each (C, fold, machine).
    reads : int
        Reads of the source so far.
    """

    def __init__(self, source, options, choice, census, progress, held_bytes=0):
        self.source, self.options, self.choice, self.census = source, options, choice, census
        plan, memory = plan_of(source, options, census), Memory(options.memory_limit)
        memory.take(held_bytes)
        embedded = embed(source, options, plan, memory, progress, census)
        self.mean_code = embedded.density.mean_code
        fill_folds(embedded.folds, choice.n_parts, options.seed)
        problem = make_problem(source, embedded, options)
        self.check_folds(problem)
        n_costs, self.n_machines = len(choice.costs), problem.n_outputs
        self.problem = problem = replace(
            problem,
            positive=np.tile(problem.positive, n_costs * choice.n_folds),
            cost=np.repeat(np.array(choice.costs, np.float64), choice.n_folds * self.n_machines),
            held_out=np.tile(np.repeat(np.arange(choice.n_folds, dtype=np.int16), self.n_machines), n_costs),
        )
        self.plan = plan
        self.check_memory(memory)
        self.result = dual_cd.solve(problem, replace(make_run(options, plan, memory, progress), freezes=True))
        self.reads = 1 + self.result.reads
        self.gaps = self.by_cost(self.result.certificate.gaps)

    def by_cost(self, values):
        """An array over the outputs as (n_costs, n_folds, n_machines, ...)."""
        return np.reshape(values, (len(self.choice.costs), self.choice.n_folds, self.n_machines, *values.shape[1:]))

    def check_folds(self, problem):
        """Raise ConfigError where a held-out fold has no rows, or leaves none of a class to train on."""
        counts = np.zeros((len(self.census.classes), self.choice.n_parts), np.int64)
        for start in range(0, len(problem.folds), PIECE_ROWS):
            rows = slice(start, start + PIECE_ROWS)
            is_weighted = problem.costs[rows] > 0
            np.add.at(counts, (problem.targets[rows][is_weighted], problem.folds[rows][is_weighted]), 1)
        self.n_held = counts.sum(axis=0)[: self.choice.n_folds]
        remedy = "Use fewer folds, or another seed."
        if not self.n_held.all():
            fold = int(np.argmin(self.n_held)) + 1
            raise ConfigError(f"n_folds: fold {fold} of {self.choice.n_parts} has no rows of positive cost. {remedy}")
        rest = (counts.sum(axis=1, keepdims=True) - counts)[:, : self.choice.n_folds]
        if not rest.all():
            k, fold = (int(index[0]) for index in np.nonzero(rest == 0))
            label = self.census.classes.tolist()[k]
            raise ConfigError(f"n_folds: every row of the class {label!r} is in fold {fold + 1}. {remedy}")

    def check_memory(self, memory):
        """Raise ConfigError where the outputs do not fit what is left of the memory limit; else decide on the AUC."""
        problem, choice, plan = self.problem, self.choice, self.plan
        block_rows = min(plan.block_chunks * plan.chunk_rows, plan.n_rows)
        needed = dual_cd.coef_bytes(problem.encoder, problem.n_outputs, plan.n_partial)
        needed += block_rows * problem.n_outputs * (1 if plan.fits else 5)  # active, and the duals of a block
        if needed > memory.left:
            machines = f" x {self.n_machines} classes" if self.n_machines > 1 else ""
            raise ConfigError(
                f"search: the coefficients of {problem.n_outputs} outputs ({len(choice.costs)} values of C x "
                f"{choice.n_folds} folds{machines}) need {needed / 1e6:,.1f} MB, above the {memory.left / 1e6:,.1f} MB "
                "that are left of the memory limit. Raise it, or give fewer values of C or folds."
            )
        scores = AreaUnderCurve.memory_bytes(int(self.n_held.sum()), len(choice.costs) * self.n_machines)
        self.with_auc = scores <= memory.left - needed
        if not self.with_auc:
            text = f"the scores of an AUC take {scores / 1e6:,.1f} MB, which the memory limit does not leave"
            if choice.metric == "auc":
                raise ConfigError(f"metric: {text}. Raise it, or choose by 'error'.")
            log.info("search: no AUC: %s.", text)

    def finished(self, is_first):
        """Indices of the values of C whose outputs are all within tol; all of them if none is, and nothing else is."""
        is_done = (self.gaps <= self.options.tol).all(axis=(1, 2))
        return np.flatnonzero(is_done | (is_first and not is_done.any()))

    def records(self, which):
        """Records of the table for the values of C of these indices, after a read that scores the held-out rows."""
        if not len(which):
            return []
        figures = self.score(which)
        return [self.record(int(c), own) for c, own in zip(which, figures, strict=True)]

    def deviations(self, which):
        """Standard errors of curves, float32 (n_features, n_basis, n_machines), by setting_key; none for one fold."""
        if self.choice.n_folds == 1:
            return {}
        coef = self.by_cost(np.moveaxis(self.result.coef, 2, 0))
        found = {}
        for c in which:
            key = setting_key(replace(self.options, C=float(self.choice.costs[c])))
            by_fold = np.moveaxis(coef[c], 1, 3)  # the machines last
            found[key] = fold_deviation(by_fold, self.mean_code, self.problem.encoder.is_local)
        return found

    def score(self, which):
        """Figures (dict) of each of these values of C, for each fold: nested lists."""
        problem, folds = self.problem, range(self.choice.n_folds)
        coef = self.by_cost(np.moveaxis(self.result.coef, 2, 0))[which]
        intercept = self.by_cost(self.result.intercept)[which]
        has_probabilities = LOSSES[self.options.loss].has_probabilities
        metrics = [[Metrics(len(self.census.classes), self.with_auc) for _ in folds] for _ in which]
        columns = [np.moveaxis(coef[:, k].reshape(-1, *coef.shape[3:]), 0, 2).copy() for k in folds]
        # Training chunks, not the reader's: sums of weights and losses then have the same bits for any reader.
        bounds = map(self.plan.chunk_bounds, range(self.plan.n_chunks))
        for chunk in prefetch(partial(self.source.read, *pair) for pair in bounds):
            X, place = problem.values(chunk), slice(chunk.first_row, chunk.first_row + chunk.n_rows)
            for k in folds:
                rows = np.flatnonzero(problem.folds[place] == k)
                targets = problem.targets[place][rows].astype(np.int64)
                weight = None if chunk.weight is None else chunk.weight[rows]
                decisions = decide(problem.encoder, X[rows], columns[k], intercept[:, k].ravel())
                for own, part in zip(metrics, np.split(decisions, len(which), axis=1), strict=True):
                    own[k].update(targets, part, log_probabilities(part) if has_probabilities else None, weight)
        self.reads += 1
        return [[each.figures() for each in own] for own in metrics]

    def record(self, c, figures):
        """The record of the c-th value of C from the figures of its folds."""
        folds = [
            {"fold": k + 1, "n_rows": int(self.n_held[k])}
            | {name: own[name] for name in METRICS}
            | {"gap": float(self.gaps[c, k].max())}
            for k, own in enumerate(figures)
        ]
        record = {"C": float(self.choice.costs[c])} | grid_values(self.options)
        for name in METRICS:
            values = [fold[name] for fold in folds]
            is_known = None not in values
            record[name] = float(np.mean(values)) if is_known else None
            has_deviation = is_known and len(values) > 1
            record[f"{name}_deviation"] = float(np.std(values, ddof=1)) if has_deviation else None
        return record | {"gap": float(self.gaps[c].max()), "passes": self.result.passes, "folds": folds}


def choose(table, options, choice):
    """Options of the best record of the table, by the metric and rule of a Choice; ConfigError where it has none."""
    metric, sign = choice.metric, METRICS[choice.metric]
    names = {name for name in ("C", *GRID) if name in table[0]}
    scored = [(record, replace(options, **{name: record[name] for name in names})) for record in table]
    scored = [(record, setting) for record, setting in scored if record[metric] is not None]
    if not scored:
        raise ConfigError(f"metric: {metric!r} is not defined on these folds: some lack a class. Choose by 'error'.")

    def simplicity(setting):
        encoder = make_encoder(setting.encoder, **setting.encoder_options())
        return setting.C, encoder.n_basis, -encoder.penalty_order

    record, best = min(scored, key=lambda pair: (sign * pair[0][metric], *simplicity(pair[1])))
    if choice.one_se:
        limit = sign * record[metric] + record[f"{metric}_deviation"] / np.sqrt(choice.n_folds)
        within = [setting for record, setting in scored if sign * record[metric] <= limit]
        best = min(within, key=simplicity)
    return best
