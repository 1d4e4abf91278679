"""Every training option: name, default, choices and meaning, declared once for Python, the command line and models."""

import math
import os
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any

from linadd.choices import (
    CALIBRATIONS,
    DENSE_SOLVERS,
    ENCODERS,
    INTERCEPTS,
    KNOTS,
    LOSSES,
    PENALTY_ORDERS,
    PRECISIONS,
    ROWS,
    SCALES,
    SCHEDULES,
    SOLVERS,
    SPLINE_DEGREES,
    STOPPING_RULES,
)
from linadd.errors import ConfigError


def option(default, text, choices=None, least=None, above=None, most=None):
    """A field with its help text and its check."""
    rule = {"help": text, "choices": choices, "least": least, "above": above, "most": most}
    return field(default=default, metadata=rule)


@dataclass(frozen=True)
class Options:
    """What to train and how; each field's help is its meaning."""

    encoder: str = option("bspline", "embedding of each feature", tuple(ENCODERS))
    degree: int = option(1, "degree of the B-splines", SPLINE_DEGREES)
    n_bins: int = option(10, "bins of a B-spline, for each feature", least=1)
    n_harmonics: int = option(4, "harmonics of the Fourier embedding", least=1)
    n_terms: int = option(4, "terms of the Hermite embedding", least=1)
    penalty_order: int = option(1, "order d of the difference penalty", PENALTY_ORDERS)
    knots: str = option("auto", "where the bins stand", KNOTS)
    clamp: bool = option(True, "clamp values to the training range (identity encoder only: the others always do)")
    scale: str = option("unit", "factor of each feature", SCALES)
    center: bool = option(True, "subtract the mean code")
    intercept: str = option("free", "unpenalised, penalised as a feature of value intercept_scale, or none", INTERCEPTS)
    intercept_scale: float = option(1.0, "feature value of a penalised intercept", above=0.0)
    loss: str = option("logistic", "loss function", LOSSES)
    C: float = option(1.0, "cost of a row's loss against the penalty", above=0.0, most=1e15)
    class_weight: Any = option(None, "'balanced', or factors of C by class")
    calibrate: str = option(
        None, "probabilities from the decisions of held-out rows: Platt's sigmoid or isotonic", (None, *CALIBRATIONS)
    )
    solver: str = option("auto", "how to minimise", ("auto", *SOLVERS))
    tol: float = option(1e-3, "relative duality gap to reach, of the worst output", above=0.0)
    max_epochs: int = option(50, "passes over the data at most", least=1)
    memory_limit: int = option(1_000_000_000, "bytes that linadd may allocate", least=1)
    precision: str = option("exact", "rows in memory: 4 bytes a value, or codes of 2 or 1", tuple(PRECISIONS))
    training_chunk: int = option(1000, "rows of a training chunk", least=1)
    partial_solutions: Any = option("auto", "partial solutions merged by line search, or auto")
    rows: str = option("auto", "keep all values of a row, or its stored entries", ROWS)
    hessian_sample: float = option(1.0, "share of the rows that newton takes the Hessian from", above=0.0, most=1.0)
    schedule: str = option("shifted", "step sizes of sgd", SCHEDULES)
    average: bool = option(True, "report the averaged iterate of sgd")
    shuffle: bool = option(True, "visit rows in a fresh random order every pass (sgd only: dual-cd always does)")
    n_expected: int = option(100_000, "rows that sgd expects of a stream", least=1)
    validation: Any = option(None, "rows to score after every pass: a file, or the fraction of the rows to hold out")
    early_stopping: bool = option(
        False, "end where the loss of the validation rows has not fallen for some passes (patience), and keep the best"
    )
    patience: int = option(5, "passes without a lower validation loss before early stopping ends", least=1)
    certify: bool = option(False, "spend the extra reads for the gap of a solver that has none")
    stop_on: str = option("gap", "stopping rule: relative duality gap, or LIBLINEAR's violation", STOPPING_RULES)
    seed: int = option(0, "seed of every random choice", least=0, most=2**32 - 1)
    n_jobs: int = option(1, "threads; never changes the result", least=1)

    def __post_init__(self):
        from linadd.encoders import make_encoder  # numba, which the command line's parser must not load

        for entry in fields(self):
            check_option(entry, getattr(self, entry.name))
        check_class_weight(self.class_weight)
        check_partial_solutions(self.partial_solutions)
        check_validation(self.validation)
        if self.early_stopping and self.validation is None:
            raise ConfigError("early_stopping: there are no rows to watch. Give validation=0.1, or a file.")
        if self.validation is not None and self.solver == "liblinear":
            raise ConfigError("validation: the solver liblinear has no passes to watch. Use dual-cd, newton or sgd.")
        make_encoder(self.encoder, **self.encoder_options()).check_precision(self.precision)
        if self.rows == "sparse" and (reason := self.needs_dense_rows()):
            raise ConfigError(f"rows: 'sparse' {reason}. Use 'dense', or 'auto'.")
        if self.schedule == "pegasos" and self.loss != "hinge":
            raise ConfigError(f"schedule: 'pegasos' is for hinge loss; with {self.loss} use 'shifted'.")
        if self.calibrate is not None and self.solver == "liblinear":
            raise ConfigError(
                "calibrate: held-out rows are left out by a weight of 0, which the solver liblinear does not know. Use "
                "dual-cd."
            )
        if self.encoder == "identity" and self.scale == "libspline":
            raise ConfigError("scale: 'libspline' is a rule for bins; the identity encoder takes 'unit' or 'none'.")

    def needs_dense_rows(self):
        """Why rows cannot be kept as their stored entries, as the predicate of a sentence; None where they can.

        Every curve is then 0 at 0, and the free intercept takes up the constants.
        """
        if self.solver in DENSE_SOLVERS:
            return f"is not for the solver {self.solver}, which takes all values of a row"
        if self.intercept != "free":
            return f"leaves the curves' constants to a free intercept, which {self.intercept!r} is not"
        if not self.center:
            return "anchors every curve at zero, where center=False asks for the plain code"
        if self.precision != "exact":
            return f"keeps exact positions, not the codes of precision={self.precision!r}"
        return None

    def encoder_options(self):
        """The options that the chosen encoder takes."""
        return {name: getattr(self, name) for name in ENCODERS[self.encoder]}

    def record(self):
        """All options as a dict of plain values, with class weights by the text of the label, as JSON keeps them."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        if isinstance(self.class_weight, dict):
            values["class_weight"] = {str(label): float(factor) for label, factor in self.class_weight.items()}
        if isinstance(self.validation, os.PathLike):
            values["validation"] = os.fspath(self.validation)
        return {name: value.item() if hasattr(value, "item") else value for name, value in values.items()}


def check_option(entry, value):
    """Raise ConfigError where a value is not of its option's kind, choices or range."""
    rule = entry.metadata
    if rule["choices"] is not None and value not in rule["choices"]:
        choices = ", ".join(map(str, rule["choices"]))
        raise ConfigError(f"{entry.name}: {value!r} is not one of {choices}.")
    if entry.type is int and (isinstance(value, bool) or not hasattr(value, "__index__")):
        raise ConfigError(f"{entry.name}: {value!r} is not an integer.")
    if entry.type is bool and type(value).__name__ != "bool":  # of Python or NumPy
        raise ConfigError(f"{entry.name}: {value!r} is not True or False.")
    if entry.type is float and not is_number(value):
        raise ConfigError(f"{entry.name}: {value!r} is not a finite number.")
    if rule["least"] is not None and value < rule["least"]:
        raise ConfigError(f"{entry.name}: {value} is below {rule['least']}.")
    if rule["above"] is not None and value <= rule["above"]:
        raise ConfigError(f"{entry.name}: {value} is not above {rule['above']:g}.")
    if rule["most"] is not None and value > rule["most"]:
        raise ConfigError(f"{entry.name}: {value} is above {rule['most']:.10g}.")


def is_number(value):
    """Whether it is a finite real number, of Python or NumPy."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def check_class_weight(value):
    """Raise ConfigError unless it is None, "balanced" or a dict of finite factors above 0."""
    if value is None or (isinstance(value, str) and value == "balanced"):
        return
    if not isinstance(value, dict):
        raise ConfigError(f"class_weight: {value!r} is not 'balanced' or a factor for each class.")
    for label, factor in value.items():
        if not is_number(factor) or factor <= 0:
            raise ConfigError(
                f"class_weight: {factor!r}, of class {label!r}, is not a number above 0. To leave a class out, drop "
                "its rows."
            )


def check_partial_solutions(value):
    """Raise ConfigError unless it is "auto" or an integer of at least 1."""
    if isinstance(value, str) and value == "auto":
        return
    if isinstance(value, (bool, str)) or not hasattr(value, "__index__") or value < 1:
        raise ConfigError(f"partial_solutions: {value!r} is not 'auto' or an integer of at least 1.")


def check_validation(value):
    """Raise ConfigError unless it is None, a path, or a fraction of the rows."""
    if value is None or isinstance(value, (str, os.PathLike)) or (is_number(value) and 0 < value < 1):
        return
    raise ConfigError(f"validation: {value!r} is neither a file nor a fraction between 0 and 1.")
