"""Options: each check's message, read whole; and what is recorded."""

import json

import numpy as np
import pytest

from linadd.errors import ConfigError
from linadd.options import Options

BAD = [
    ({"encoder": "spline"}, "encoder: 'spline' is not one of bspline, fourier, hermite, identity."),
    ({"degree": 4}, "degree: 4 is not one of 0, 1, 2, 3."),
    ({"knots": "even"}, "knots: 'even' is not one of auto, uniform, quantile."),
    ({"n_bins": 0}, "n_bins: 0 is below 1."),
    ({"n_bins": 5000}, "n_bins: 5000 is not an integer between 1 and 4096."),
    ({"n_bins": 2.5}, "n_bins: 2.5 is not an integer."),
    ({"max_epochs": True}, "max_epochs: True is not an integer."),
    ({"C": 0.0}, "C: 0.0 is not above 0."),
    ({"C": float("nan")}, "C: nan is not a finite number."),
    ({"tol": "1e-3"}, "tol: '1e-3' is not a finite number."),
    ({"class_weight": "even"}, "class_weight: 'even' is not 'balanced' or a factor for each class."),
    ({"class_weight": 2.0}, "class_weight: 2.0 is not 'balanced' or a factor for each class."),
    (
        {"class_weight": {3: 0.0}},
        "class_weight: 0.0, of class 3, is not a number above 0. To leave a class out, drop its rows.",
    ),
    (
        {"class_weight": {"a": "2"}},
        "class_weight: '2', of class 'a', is not a number above 0. To leave a class out, drop its rows.",
    ),
    ({"precision": "float16"}, "precision: 'float16' is not one of exact, uint16, uint8."),
    (
        {"precision": "uint8", "n_bins": 128},
        "precision: the codes of 'uint8' tell up to 127 bins apart; n_bins=128 is above. Use 'uint16' or 'exact'.",
    ),
    (
        {"precision": "uint8", "n_bins": 257, "degree": 0},
        "precision: the codes of 'uint8' tell up to 256 bins apart; n_bins=257 is above. Use 'uint16' or 'exact'.",
    ),
    ({"validation": 1.0}, "validation: 1.0 is neither a file nor a fraction between 0 and 1."),
    ({"validation": True}, "validation: True is neither a file nor a fraction between 0 and 1."),
    ({"patience": 0}, "patience: 0 is below 1."),
    ({"early_stopping": True}, "early_stopping: there are no rows to watch. Give validation=0.1, or a file."),
    (
        {"solver": "liblinear", "validation": 0.1},
        "validation: the solver liblinear has no passes to watch. Use dual-cd, newton or sgd.",
    ),
    ({"solver": "lbfgs"}, "solver: 'lbfgs' is not one of auto, dual-cd, newton, sgd, liblinear."),
    ({"hessian_sample": 1.5}, "hessian_sample: 1.5 is above 1."),
    ({"loss": "squared"}, "loss: 'squared' is not one of hinge, squared_hinge, logistic."),
    ({"intercept": True}, "intercept: True is not one of free, penalised, none."),
    ({"center": "no"}, "center: 'no' is not True or False."),
    ({"average": 1}, "average: 1 is not True or False."),
    ({"C": True}, "C: True is not a finite number."),
    ({"seed": -1}, "seed: -1 is below 0."),
    ({"seed": 2**32}, "seed: 4294967296 is above 4294967295."),
    ({"C": 2e15}, "C: 2000000000000000.0 is above 1e+15."),
    ({"rows": "csr"}, "rows: 'csr' is not one of auto, dense, sparse."),
    (
        {"rows": "sparse", "solver": "newton"},
        "rows: 'sparse' is not for the solver newton, which takes all values of a row. Use 'dense', or 'auto'.",
    ),
    (
        {"rows": "sparse", "intercept": "none"},
        "rows: 'sparse' leaves the curves' constants to a free intercept, which 'none' is not. Use 'dense', or 'auto'.",
    ),
    (
        {"rows": "sparse", "center": False},
        "rows: 'sparse' anchors every curve at zero, where center=False asks for the plain code. Use 'dense', or "
        "'auto'.",
    ),
    (
        {"rows": "sparse", "precision": "uint8"},
        "rows: 'sparse' keeps exact positions, not the codes of precision='uint8'. Use 'dense', or 'auto'.",
    ),
    ({"schedule": "pegasos"}, "schedule: 'pegasos' is for hinge loss; with logistic use 'shifted'."),
    ({"partial_solutions": 0}, "partial_solutions: 0 is not 'auto' or an integer of at least 1."),
    ({"partial_solutions": "all"}, "partial_solutions: 'all' is not 'auto' or an integer of at least 1."),
    (
        {"encoder": "identity", "scale": "libspline"},
        "scale: 'libspline' is a rule for bins; the identity encoder takes 'unit' or 'none'.",
    ),
    (
        {"penalty_order": 3, "n_bins": 24},
        "penalty_order: 3 with 25 basis functions has a condition number above 5e7, beyond float32. Use at most 20 "
        "(n_bins + degree), or penalty_order 2.",
    ),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=str)
def test_a_bad_option_is_named_with_its_value(options, message):
    with pytest.raises(ConfigError) as caught:
        Options(**options)
    assert str(caught.value) == message


def test_good_values_pass_and_are_recorded_as_json():
    options = Options(class_weight={"a": 2, "b": 0.5}, partial_solutions=3, C=2)
    assert json.loads(json.dumps(options.record()))["class_weight"] == {"a": 2, "b": 0.5}
    assert Options(class_weight="balanced").class_weight == "balanced"


def test_an_encoder_gets_its_own_options_only():
    assert Options(encoder="fourier", n_harmonics=7).encoder_options() == {"n_harmonics": 7, "penalty_order": 1}


def test_values_of_numpy_are_recorded_as_plain_ones():
    options = Options(
        n_bins=np.int64(7), C=np.float32(0.5), tol=np.float64(0.1), center=np.bool_(False),
        class_weight={np.int64(3): np.float32(2), np.str_("b"): 1}, partial_solutions=np.int8(2),
    )  # fmt: skip
    record = options.record()
    assert json.loads(json.dumps(record)) == record
    assert (record["n_bins"], record["C"], record["center"], record["partial_solutions"]) == (7, 0.5, False, 2)
    assert record["class_weight"] == {"3": 2.0, "b": 1.0}


def test_a_record_restores_the_options():
    options = Options(encoder="fourier", loss="hinge", class_weight={3: 2.0}, C=0.25)
    assert Options(**options.record()).record() == options.record()
