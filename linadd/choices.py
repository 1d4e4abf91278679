"""The names a user chooses among, apart from what they stand for: the command line offers them without loading numba.

The things themselves are in the lists of `encoders`, `losses.py`, `solvers` and `export`; the tests hold lists and
names equal.
"""

__all__ = [
    "AUTO_SOLVERS",
    "CALIBRATIONS",
    "COSTS",
    "DENSE_SOLVERS",
    "ENCODERS",
    "EXPORTS",
    "GRID",
    "INTERCEPTS",
    "KNOTS",
    "LOSSES",
    "METRICS",
    "PENALTY_ORDERS",
    "PRECISIONS",
    "PROBABILITY_LOSSES",
    "RANGE_POLICIES",
    "ROWS",
    "SCALES",
    "SCHEDULES",
    "SOLVERS",
    "SPLINE_DEGREES",
    "STOPPING_RULES",
    "WATCHED",
]

WATCHED = ("validation", "early_stopping", "patience")  # options of the solvers that make passes

# Name of an encoder or solver -> the options that only some of its kind take.
ENCODERS = {
    "bspline": ("degree", "n_bins", "penalty_order", "knots"),
    "fourier": ("n_harmonics", "penalty_order"),
    "hermite": ("n_terms", "penalty_order"),
    "identity": ("clamp",),
}
SOLVERS = {
    "dual-cd": ("tol", "precision", "stop_on", "partial_solutions", *WATCHED),
    "newton": ("tol", "precision", "hessian_sample", *WATCHED),
    "sgd": ("precision", "schedule", "average", "shuffle", "certify", *WATCHED),
    "liblinear": ("tol", "certify"),
}
AUTO_SOLVERS = ("dual-cd", "newton")  # that solver="auto" may stand for
EXPORTS = ("npz", "json", "onnx", "c", "liblinear")
PRECISIONS = {"exact": 4, "uint16": 2, "uint8": 1}  # bytes of a value of the rows in memory
DENSE_SOLVERS = ("newton", "liblinear")  # that take all values of a row
LOSSES = ("hinge", "squared_hinge", "logistic")
PROBABILITY_LOSSES = ("logistic",)  # 1 / (1 + exp(-f)) estimates P(y = +1)
RANGE_POLICIES = ("clamp", "error", "report", "linear")  # of values outside the training range
CALIBRATIONS = ("sigmoid", "isotonic")
SCALES = ("unit", "libspline", "none")
ROWS = ("auto", "dense", "sparse")
KNOTS = ("auto", "uniform", "quantile")
INTERCEPTS = ("free", "penalised", "none")
SCHEDULES = ("shifted", "pegasos")
STOPPING_RULES = ("gap", "violation")
SPLINE_DEGREES = (0, 1, 2, 3)
PENALTY_ORDERS = (0, 1, 2, 3)

# Of a search: options that it takes several values of, the default values of C, and the held-out figures to choose by,
# with 1 where less of it is better, else -1.
GRID = ("n_bins", "degree", "n_harmonics", "n_terms", "penalty_order")
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)
METRICS = {"error": 1, "auc": -1, "log_loss": 1}
