"""What a search is over, and how it chooses: values of C, folds, settings of a grid, the figure and the rule."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from linadd.choices import ENCODERS, GRID, METRICS
from linadd.encoders import make_encoder
from linadd.errors import ConfigError
from linadd.losses import LOSSES

MAX_FOLDS = 1000
SINGLE_FOLD_PARTS = 5  # a single fold is the first of these


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
    sequential : bool
        Train the values of C one after the other, each from the duals of the last.
    """

    costs: tuple
    n_folds: int
    metric: str
    one_se: bool
    sequential: bool = False

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

    @property
    def steps(self):
        """Tuples of the values of C that are trained together, in order."""
        return [(C,) for C in self.costs] if self.sequential else [self.costs]

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


def setting_key(options):
    """What tells a setting and its C from the others of a search."""
    return options.C, *grid_values(options).values()


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
