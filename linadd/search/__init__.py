"""`search`: a path of values of C times folds trained together as outputs of one stream, and settings of a grid beside.

The outputs of a setting (`path.py`) share its encoded rows. The settings of the grid (`n_bins`, `degree`, ...) are
other embeddings: they share the reads (`groups.py`). Held-out rows are scored in one more read. Ranges, knots, scale
and centre come from all rows: labels have no part in them.
"""

import time
from dataclasses import dataclass

import numpy as np

from linadd.choices import COSTS
from linadd.embedding import fit_encoder
from linadd.options import Options
from linadd.search.choice import Choice, choose, distinct, expand, grid_values, setting_key
from linadd.search.groups import next_group, score_group, train_group
from linadd.train import Progress, plan_of, survey, train

__all__ = ["Choice", "SearchProgress", "SearchResult", "refit", "search"]


class SearchProgress(Progress):
    """What `search` tells while it runs; an epoch's record is that of all settings that are trained together."""

    def setting(self, number, n_settings, values):
        """Setting `number`, from 1, of the grid begins; `values` are those of its options, a dict.

        Those that are trained together are told of one after the other, before they begin.
        """

    def cost(self, C):
        """A value of C begins; only where they are trained one after the other."""


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
        Ended by Ctrl-C. The table holds what was begun, at the state and certified gap that it had reached; chosen is
        among what was finished, if anything was.
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


def search(
    source, options=None, costs=COSTS, n_folds=5, grid=None, metric="error", one_se=False, progress=None,
    sequential=False,
):  # fmt: skip
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
        Values of options named in GRID; each combination is a setting. Settings share reads, as many as the memory
        limit holds together: in memory each has the bits that it has alone; out of core blocks may be smaller.
    metric : {"error", "auc", "log_loss"}
        Held-out figure to choose by.
    one_se : bool
        Choose the most regularised setting within one standard error of the best, not the best itself: the least C,
        then the fewest basis functions, then the highest penalty order. Equal settings are chosen among likewise.
    progress : SearchProgress, optional
        Told what happens, and asked whether to stop.
    sequential : bool
        Train the values of C one after the other, ascending, each from the dual variables of the last, and not as
        outputs of one stream: 2 to 3 times the time, up to 6 times the reads, and figures that are the same within
        `tol`. For outputs that do not fit the memory limit together, and for a large C that does not reach `tol`
        otherwise.

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
    choice = Choice(distinct("C", costs), n_folds, metric, one_se, sequential)
    choice.check(options)
    settings = expand(options, choice.costs, grid or {})
    census, table, finished, deviations = survey(source, options, progress), [], [], {}
    plan, reads, is_interrupted = plan_of(source, options, census), census.n_reads, False
    left = [(setting, fit_encoder(source, setting, plan, census)) for setting in settings]
    while left and not is_interrupted:
        held_bytes = sum(each.nbytes for each in deviations.values())
        group = next_group(source, left, choice, census, held_bytes)
        left = left[len(group.settings) :]
        for number, setting in enumerate(group.settings, len(settings) - len(left) - len(group.settings) + 1):
            progress.setting(number, len(settings), grid_values(setting))
        paths, n_training = train_group(source, group, choice, census, progress, held_bytes)
        records, n_scoring = score_group(source, paths, group.plan, census)
        reads += n_training + n_scoring
        table += records
        is_cut = np.concatenate([path.is_cut for path in paths])
        finished += [record for record, cut in zip(records, is_cut, strict=True) if not cut]
        best = choose(finished or table, options, choice)
        for path in paths:
            deviations |= path.deviations()
        if not one_se:  # whose choice may yet fall back on an earlier setting
            deviations = {key: each for key, each in deviations.items() if key == setting_key(best)}
        is_interrupted = any(path.is_interrupted for path in paths) or (bool(left) and progress.should_stop())
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
