"""Options: each check's message, read whole; and what is recorded."""

import json

import pytest

from linadd.errors import ConfigError
from linadd.options import Options

BAD = [
    ({"encoder": "spline"}, "encoder: 'spline' is not one of bspline, fourier, hermite, identity."),
    ({"degree": 4}, "degree: 4 is not one of 0, 1, 2, 3."),
    ({"knots": "even"}, "knots: 'even' is not one of auto, uniform, quantile."),
    ({"n_bins": 0}, "n_bins: 0 is below 1."),
    ({"n_bins": 5000}, "n_bins: 5000 is not between 1 and 4096."),
    ({"n_bins": 2.5}, "n_bins: 2.5 is not an integer."),
    ({"max_epochs": True}, "max_epochs: True is not an integer."),
    ({"C": 0.0}, "C: 0.0 is not above 0."),
    ({"C": float("nan")}, "C: nan is not a finite number."),
    ({"tol": "1e-3"}, "tol: '1e-3' is not a finite number."),
    ({"class_weight": "even"}, "class_weight: 'even' is not 'balanced' or a factor for each class."),
    ({"class_weight": 2.0}, "class_weight: 2.0 is not 'balanced' or a factor for each class."),
    ({"class_weight": {3: -1.0}}, "class_weight: -1.0, of class 3, is not a number of at least 0."),
    ({"class_weight": {"a": "2"}}, "class_weight: '2', of class 'a', is not a number of at least 0."),
    ({"partial_solutions": 0}, "partial_solutions: 0 is not 'auto' or an integer of at least 1."),
    ({"partial_solutions": "all"}, "partial_solutions: 'all' is not 'auto' or an integer of at least 1."),
    (
        {"encoder": "identity", "scale": "libspline"},
        "scale: 'libspline' is a rule for bins; the identity encoder takes 'unit' or 'none'.",
    ),
    (
        {"penalty_order": 3, "n_bins": 30},
        "penalty_order: 3 with 31 basis functions has a condition number above 5e7, beyond float32. Use at most 20 "
        "(n_bins + degree), or penalty_order 2.",
    ),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=str)
def test_a_bad_option_is_named_with_its_value(options, message):
    with pytest.raises(ConfigError) as caught:
        Options(**options)
    assert str(caught.value) == message


def test_good_values_pass_and_are_recorded_as_json():
    options = Options(class_weight={"a": 2, "b": 0.0}, partial_solutions=3, C=2)
    assert json.loads(json.dumps(options.record()))["class_weight"] == {"a": 2, "b": 0.0}
    assert Options(class_weight="balanced").class_weight == "balanced"


def test_an_encoder_gets_its_own_options_only():
    assert Options(encoder="fourier", n_harmonics=7).encoder_options() == {"n_harmonics": 7, "penalty_order": 1}
