"""Searches over small problems, and what the tests of them share."""

import numpy as np

from linadd.embedding import fit_encoder
from linadd.encoders.rows import locate, positions_dtype
from linadd.options import Options
from linadd.search import Choice, SearchProgress, search
from linadd.search.groups import next_group, train_group
from linadd.sources import open_source
from linadd.train import plan_of, survey
from tests.solvers.problems import toy

X, Y = toy(200)
COSTS = (0.05, 1.0, 5.0)
SETTINGS = {"n_bins": 4, "knots": "uniform", "max_epochs": 2000}


class Told(SearchProgress):
    """Notes what it is told, and stops after a number of questions whether to."""

    def __init__(self, n_questions=None):
        self.settings, self.records, self.costs, self.n_questions, self.n_asked = [], [], [], n_questions, 0

    def setting(self, *values):
        self.settings.append(values)

    def cost(self, C):
        self.costs.append(C)

    def epoch(self, record):
        self.records.append(record)

    def should_stop(self):
        self.n_asked += 1
        return self.n_questions is not None and self.n_asked > self.n_questions


def group_of(X, y, grid=({},), costs=COSTS, n_folds=3, weights=None, sequential=False, **choices):
    """(source, Choice, census, Group) of rows in memory, for settings that are dicts of options."""
    source = open_source(X, y, weights=weights)
    settings = [Options(**SETTINGS | choices | each) for each in grid]
    census, choice = survey(source, settings[0], SearchProgress()), Choice(costs, n_folds, "error", False, sequential)
    plan = plan_of(source, settings[0], census)
    members = [(setting, fit_encoder(source, setting, plan, census)) for setting in settings]
    return source, choice, census, next_group(source, members, choice, census, 0)


def make_paths(*args, progress=None, **choices):
    """The trained paths of `group_of`."""
    source, choice, census, group = group_of(*args, **choices)
    return train_group(source, group, choice, census, progress or SearchProgress())[0]


def make_path(*args, **choices):
    """The trained path of one setting."""
    return make_paths(*args, **choices)[0]


def positions_of(problem, X):
    """Rows X as a problem's solver keeps them."""
    positions = np.empty(X.shape, positions_dtype(problem.encoder))
    locate(problem.encoder, X, positions)
    return positions


def find(X, y, chunk_rows=None, progress=None, **choices):
    """The SearchResult of rows in memory; keywords that are no option go to `search`."""
    names = ("costs", "n_folds", "grid", "metric", "one_se", "sequential")
    own = {name: choices.pop(name) for name in names if name in choices}
    own = {"costs": COSTS, "n_folds": 3} | own
    return search(open_source(X, y, chunk_rows=chunk_rows), Options(**SETTINGS | choices), progress=progress, **own)
