"""Settings of a search that are trained together: as many as the memory limit holds, every read shared.

If the rows fit in memory, a group is as many settings as fit at once, rows (those of equal positions are kept once),
dual variables and certificates: a setting then has the bits that it has alone. If they do not, blocks are made for the
sum of the settings: up to a tenth of the rows they are those of a setting alone, else smaller, and the result is equal
within the certified gap.
"""

import logging
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from linadd.chunks import prefetch
from linadd.embedding import embed_together, first_alike
from linadd.errors import ConfigError
from linadd.metrics import AreaUnderCurve
from linadd.row_sample import PIECE_ROWS, fill_folds
from linadd.search.path import Path
from linadd.solvers import dual_cd
from linadd.solvers.memory import Memory
from linadd.solvers.plan import Plan
from linadd.solvers.together import run_together
from linadd.train import make_run, plan_of

log = logging.getLogger(__name__)

# Training chunks of a block that several settings leave each other: of fewer, rows that stand together are visited
# together too often.
LEAST_CHUNKS = 4
ROW_BYTES = 10  # label, cost and fold


class Group(NamedTuple):
    """Settings that are trained together."""

    plan: Plan
    settings: list  # of Options
    encoders: list  # fitted, one a setting


def next_group(source, members, choice, census, held_bytes):
    """The Group of the first of some settings and of all that fit with it.

    Parameters
    ----------
    source : Source
        The rows.
    members : list of (Options, Encoder)
        The settings that are left, in order.
    choice : Choice
        Values of C and folds.
    census : Census
        Of the rows.
    held_bytes : int
        Memory that earlier settings hold.

    Returns
    -------
    Group
    """
    options = members[0][0]
    group = Group(plan_of(source, options, census), [options], [members[0][1]])
    alone, n_machines = group.plan, machines_of(census)
    for setting, encoder in members[1:]:
        encoders = [*group.encoders, encoder]
        n_copies = len(set(first_alike(encoders)))
        try:
            plan = plan_of(source, options, census, n_copies)
        except ConfigError:  # not a single chunk of each
            break
        least = alone.block_chunks if alone.fits else min(alone.block_chunks, LEAST_CHUNKS)
        n_outputs = len(choice.steps[0]) * choice.n_folds * n_machines
        needed = sum(solver_bytes(each, n_outputs, plan) for each in encoders)
        needed += held_bytes + n_copies * plan.block_bytes(source.n_features) + ROW_BYTES * source.n_rows
        if plan.fits:  # else these go to a file: norms, dual variables, and the decisions of two candidates
            needed += len(encoders) * source.n_rows * (8 + n_outputs * (4 + 2 * 8))
        if plan.fits != alone.fits or plan.block_chunks < least or needed > options.memory_limit:
            break
        group = Group(plan, [*group.settings, setting], encoders)
    return group


def machines_of(census):
    """Outputs that the classes of a census need."""
    return 1 if len(census.classes) == 2 else len(census.classes)


def solver_bytes(encoder, n_outputs, plan):
    """Memory of the coefficients of outputs, and of a block's notes on them: what is active, and the duals."""
    block_rows = min(plan.block_chunks * plan.chunk_rows, plan.n_rows)
    return dual_cd.coef_bytes(encoder, n_outputs, plan.n_partial) + block_rows * n_outputs * (1 if plan.fits else 5)


def train_group(source, group, choice, census, progress, held_bytes=0):
    """Train the settings of a group.

    Parameters
    ----------
    source, choice, census, held_bytes
        As for `next_group`.
    group : Group
        The settings.
    progress : SearchProgress
        As for `search`.

    Returns
    -------
    (list of Path, int)
        The settings with their results, and the reads of the source.

    Raises
    ------
    ConfigError
        Where the folds cannot be trained on, or the outputs do not fit the memory limit.
    """
    plan, options = group.plan, group.settings[0]
    memory = Memory(options.memory_limit)
    memory.take(held_bytes)
    embedded = embed_together(source, options, group.encoders, plan, memory, progress, census)
    fill_folds(embedded[0].folds, choice.n_parts, options.seed)
    n_held = held_rows(embedded[0], choice)
    with_auc = decide_on_auc(options, choice, census, n_held)
    pairs = zip(group.settings, embedded, strict=True)
    paths = [Path(source, setting, choice, own, n_held, with_auc) for setting, own in pairs]
    check_memory(paths[0], plan, memory)
    run, machines = replace(make_run(options, plan, memory, progress), freezes=True), []
    for path in paths:
        machines.append(dual_cd.DualCD(path.problem, run, machines))
    reads, results = 1, []
    for k, costs in enumerate(choice.steps):
        if k and (machines[0].interrupted or progress.should_stop()):
            break
        if choice.sequential:
            progress.cost(costs[0])
        if k:
            for path, machine in zip(paths, machines, strict=True):
                machine.raise_cost(path.cost_of(costs))
        reads += run_together(machines)
        results.append([machine.result() for machine in machines])
    for path, own in zip(paths, zip(*results, strict=True), strict=True):
        path.finish(own)
    return paths, reads


def held_rows(embedded, choice):
    """Rows of positive cost in each held-out fold, int64 (n_folds,).

    Raises
    ------
    ConfigError
        Where a fold has no rows, or leaves none of a class to train on.
    """
    classes = embedded.census.classes.tolist()
    counts = np.zeros((len(classes), choice.n_parts), np.int64)
    for start in range(0, len(embedded.folds), PIECE_ROWS):
        rows = slice(start, start + PIECE_ROWS)
        is_weighted = embedded.costs[rows] > 0
        np.add.at(counts, (embedded.targets[rows][is_weighted], embedded.folds[rows][is_weighted]), 1)
    n_held = counts.sum(axis=0)[: choice.n_folds]
    remedy = "Use fewer folds, or another seed."
    if not n_held.all():
        fold = int(np.argmin(n_held)) + 1
        raise ConfigError(f"n_folds: fold {fold} of {choice.n_parts} has no rows of positive cost. {remedy}")
    rest = (counts.sum(axis=1, keepdims=True) - counts)[:, : choice.n_folds]
    if not rest.all():
        k, fold = (int(index[0]) for index in np.nonzero(rest == 0))
        raise ConfigError(f"n_folds: every row of the class {classes[k]!r} is in fold {fold + 1}. {remedy}")
    return n_held


def score_bytes(choice, census, n_held):
    """Memory of the scores of a setting's AUC."""
    return AreaUnderCurve.memory_bytes(int(n_held.sum()), len(choice.costs) * machines_of(census))


def decide_on_auc(options, choice, census, n_held):
    """Whether the scores of an AUC fit the half of the limit that rows take before; ConfigError where they must."""
    needed = score_bytes(choice, census, n_held)
    if needed <= options.memory_limit // 2:
        return True
    text = f"the scores of an AUC take {needed / 1e6:,.1f} MB, which the memory limit does not leave"
    if choice.metric == "auc":
        raise ConfigError(f"metric: {text}. Raise it, or choose by 'error'.")
    log.info("search: no AUC: %s.", text)
    return False


def check_memory(path, plan, memory):
    """Raise ConfigError where the outputs of a setting do not fit what is left of the memory limit."""
    problem, choice = path.problem, path.choice
    needed = solver_bytes(problem.encoder, problem.n_outputs, plan)
    if needed > memory.left:
        machines = f" x {path.n_machines} classes" if path.n_machines > 1 else ""
        n_costs = len(choice.steps[0])
        costs = "one value of C" if n_costs == 1 else f"{n_costs} values of C"
        remedy = "fewer folds" if choice.sequential else "fewer values of C or folds, or train them one after the other"
        raise ConfigError(
            f"search: the coefficients of {problem.n_outputs} outputs ({costs} x {choice.n_folds} folds{machines}) "
            f"need {needed / 1e6:,.1f} MB, above the {memory.left / 1e6:,.1f} MB that are left of the memory limit. "
            f"Raise it, or give {remedy}."
        )


def score_group(source, paths, plan, census):
    """Records of the table, of each setting in turn, from as few reads as the scores of their AUC allow.

    Parameters
    ----------
    source : Source
        The rows.
    paths : list of Path
        Trained.
    plan : Plan
        Its training chunks are read, not the reader's: sums of weights and losses have the same bits for any reader.
    census : Census
        Of the rows.

    Returns
    -------
    (list of dict, int)
        The records, and the reads.
    """
    options, choice = paths[0].options, paths[0].choice
    n_together = len(paths)
    if paths[0].with_auc:
        n_together = max(1, options.memory_limit // 2 // score_bytes(choice, census, paths[0].n_held))
    records, reads = [], 0
    for start in range(0, len(paths), n_together):
        own = paths[start : start + n_together]
        for path in own:
            path.begin_scores()
        bounds = map(plan.chunk_bounds, range(plan.n_chunks))
        for chunk in prefetch(partial(source.read, *pair) for pair in bounds):
            X = own[0].problem.values(chunk)
            for path in own:
                path.score(chunk, X)
        reads += 1
        for path in own:
            records += path.records()
    return records, reads
