"""The names a user chooses among, apart from what they stand for: the command line offers them without loading numba.

The things themselves are in the lists of `encoders`, `losses.py` and `solvers`; the tests hold lists and names equal.
"""

__all__ = [
    "AUTO_SOLVERS",
    "ENCODERS",
    "INTERCEPTS",
    "KNOTS",
    "LOSSES",
    "PENALTY_ORDERS",
    "SCALES",
    "SCHEDULES",
    "SOLVERS",
    "SPLINE_DEGREES",
    "STOPPING_RULES",
]

# Name of an encoder or solver -> the options that only some of its kind take.
ENCODERS = {
    "bspline": ("degree", "n_bins", "penalty_order", "knots"),
    "fourier": ("n_harmonics", "penalty_order"),
    "hermite": ("n_terms", "penalty_order"),
    "identity": ("clamp",),
}
SOLVERS = {
    "dual-cd": ("tol", "stop_on", "partial_solutions"),
    "newton": ("tol", "hessian_sample"),
    "sgd": ("schedule", "average", "shuffle", "certify"),
    "liblinear": ("tol", "certify"),
}
AUTO_SOLVERS = ("dual-cd", "newton")  # that solver="auto" may stand for
LOSSES = ("hinge", "squared_hinge", "logistic")
SCALES = ("unit", "libspline", "none")
KNOTS = ("auto", "uniform", "quantile")
INTERCEPTS = ("free", "penalised", "none")
SCHEDULES = ("shifted", "pegasos")
STOPPING_RULES = ("gap", "violation")
SPLINE_DEGREES = (0, 1, 2, 3)
PENALTY_ORDERS = (0, 1, 2, 3)
