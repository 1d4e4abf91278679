"""Range policies: their text, their effect on the scores of a model, and their way through a file."""

from dataclasses import replace

import numpy as np
import pytest

from linadd.errors import ConfigError, DataError, DataWarning
from linadd.export import export_model
from linadd.model_file import load_model_file
from linadd.models import load_model
from linadd.ranges import count_outside, feature_policies, widened
from tests.export.toy import ENCODER_OPTIONS, edge_rows, toy_model

NAMES = ["age", "b=c", "3", "d"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("clamp", "clamp clamp clamp clamp"),
        ("linear,age=error", "error linear linear linear"),
        ("clamp,b=c=linear,3=report,2=error", "clamp error report clamp"),  # a name comes before a number
        (["clamp", "linear", "error", "report"], "clamp linear error report"),
    ],
)
def test_the_text_of_a_policy(policy, expected):
    assert feature_policies(policy, 4, NAMES).tolist() == expected.split()


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("wrap", "range: 'wrap' is not one of clamp, error, report, linear."),
        ("", "range: '' is not one of clamp, error, report, linear."),
        ("clamp,age", "range: 'age' is not FEATURE=POLICY. Write it as linear,age=clamp,3=error."),
        ("clamp,age=no", "range: 'no' is not one of clamp, error, report, linear."),
        ("clamp,5=linear", "range: '5' is no feature of the model. Give a name, or a number from 1 to 4."),
        (["clamp", "no", "clamp", "clamp"], "range: 'no' is not one of clamp, error, report, linear."),
    ],
)
def test_what_is_no_policy_is_refused(policy, message):
    with pytest.raises(ConfigError) as caught:
        feature_policies(policy, 4, NAMES)
    assert str(caught.value) == message


def test_a_name_of_two_features_is_refused():
    names = ["a", "b", "a"]
    assert feature_policies("clamp,b=linear,3=error", 3, names).tolist() == ["clamp", "linear", "error"]
    with pytest.raises(ConfigError) as caught:
        feature_policies("clamp,a=error", 3, names)
    assert str(caught.value) == "range: 2 features have the name 'a'. Give their numbers, from 1 to 3."


def test_widened_ranges_keep_what_is_infinite_and_finite():
    ranges = np.array([[0.0, 8.0], [0.0, 8.0], [-np.inf, np.inf], [-1.7e308, 1.7e308], [3.0, 3.0]])
    with np.errstate(over="ignore"):
        wide = widened(ranges, np.array([True, False, True, True, True]))
    largest = np.finfo(float).max
    np.testing.assert_array_equal(wide, [[-1, 9], [0, 8], [-np.inf, np.inf], [-largest, largest], [3, 3]])


def test_values_outside_are_counted_by_feature():
    model = toy_model()
    X = np.array([[-2.0, 1.6e9, -2.5, 5.0], [9.0, 1.6e9 + 5, -2.6, 0.0], [9.0, 1.6e9 + 5, -2.5, 0.0]])
    below, above = model.range_counts(X)
    assert below.tolist() == [1, 1, 1, 0] and above.tolist() == [2, 0, 0, 1]
    assert count_outside(X[:0], model.ranges).tolist() == [[0] * 4] * 2


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("name", "options"), ENCODER_OPTIONS, ids=str)
def test_a_linear_curve_goes_on_from_its_end(name, options, n_outputs):
    """Inside the range nothing changes; beyond an end the curve is the line through it, of the slope just inside."""
    model = toy_model(name, options, n_outputs)
    line = replace(model, range_policy="linear")
    for j, (low, high) in enumerate(np.where(np.isfinite(model.ranges), model.ranges, [-9.0, 9.0])):
        span = high - low or 1.0
        inside = np.linspace(low, high, 7)
        np.testing.assert_array_equal(line.component(j, inside), model.component(j, inside))
        for end, out in ((low, -1.0), (high, 1.0)):
            at, one, three = line.component(j, end + out * span * np.array([0.0, 1.0, 3.0]))
            np.testing.assert_allclose(three - at, 3 * (one - at), rtol=1e-6, atol=1e-6)  # of 1.6e9 in units of 1e-7
            if name == "bspline" and not options.get("degree", 1):
                np.testing.assert_array_equal(one, at)
            elif not (j == 0 and end == low) and j != 1:  # no spike; and a time stamp leaves no digits for a difference
                step = 1e-6 * span
                slope = (at - model.component(j, [end - out * step])[0]) / (out * step)
                np.testing.assert_allclose((one - at) / (out * span), slope, rtol=2e-4, atol=1e-4)


def test_a_bin_of_a_single_value_at_an_end_is_continued_flat():
    from linadd.encoders import from_state

    model = toy_model("bspline", {"knots": "quantile", "n_bins": 4})
    state = model.encoder.tensors()
    state["edges"][0] = [-1.0, -1.0, 0.0, 2.0, 5.0]
    state["n_bins"][0] = 4
    encoder = from_state("bspline", model.encoder.options, state)
    line = replace(model, encoder=encoder, range_policy="linear")
    at, below = line.component(0, [-1.0, -3.0])
    np.testing.assert_array_equal(at, below)
    assert (line.component(0, [6.0]) != line.component(0, [5.0])).all()


@pytest.mark.parametrize(("name", "options"), ENCODER_OPTIONS, ids=str)
def test_decisions_are_the_sum_of_the_curves_beyond_the_ranges_too(name, options):
    model = replace(toy_model(name, options, 3), range_policy="linear,2=clamp")
    X = edge_rows(model.encoder)
    total = sum(model.component(j, X[:, j]) for j in range(4)) + model.intercept
    np.testing.assert_allclose(model.decision_function(X), total, rtol=1e-12, atol=1e-11)
    parts = model.explain(X)
    np.testing.assert_allclose(parts[:, 1], model.component(1, X[:, 1]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(parts.sum(axis=1) + model.intercept, total, rtol=1e-12, atol=1e-11)


def test_a_row_is_scored_alike_in_any_company():
    model = replace(toy_model(n_outputs=3), range_policy="linear")
    X = edge_rows(model.encoder)
    alone = np.concatenate([model.decision_function(row[None]) for row in X])
    np.testing.assert_array_equal(model.decision_function(X), alone)


def test_a_strict_feature_refuses_its_own_values_only():
    model = replace(toy_model(labels="text"), range_policy="clamp,d=error")
    X = np.tile(np.clip(0.0, *model.ranges.T), (5, 1))
    X[1, 0], X[3, 3] = 99.0, 7.0
    with pytest.raises(DataError) as caught:
        model.predict(X)
    low, high = model.ranges[3]
    assert str(caught.value) == (
        f"array, row 4, column 'd': the value 7.0 is outside the training range {low:g} to {high:g}, and the range "
        "policy is error. Drop this row, or use another policy, such as clamp (--range clamp)."
    )
    model.predict(np.delete(X, 3, axis=0))


def test_a_report_is_a_warning():
    model = replace(toy_model(labels="text"), range_policy="report,b=clamp")
    X = np.tile(np.clip(0.0, *model.ranges.T), (4, 1))
    model.predict(X)
    X[:, 1], X[:3, 3], X[0, 0] = 0.0, 7.0, 99.0
    with pytest.warns(DataWarning) as caught:
        scores = model.decision_function(X)
    assert str(caught[0].message) == (
        "array: 4 values outside the training range count as its nearer end, most of them (3) of feature 'd'."
    )
    np.testing.assert_array_equal(scores, replace(model, range_policy="clamp").decision_function(X))


@pytest.mark.parametrize("kind", ["json", "npz"])
def test_check_rows_beyond_the_range_are_not_reported(kind, tmp_path):
    """pytest has warnings as errors."""
    model = replace(toy_model(labels="text"), range_policy="report,b=clamp,d=linear")
    export_model(model, tmp_path / f"m.{kind}", kind)
    model.save(tmp_path / "m.safetensors")
    assert load_model(tmp_path / "m.safetensors").range_policy == model.range_policy


@pytest.mark.parametrize("policy", ["linear,a=error", ["clamp", "linear", "report", "error"]])
def test_a_policy_is_kept_in_the_file_and_changes_the_digest(policy, tmp_path):
    plain = toy_model(labels="text")
    model = replace(plain, range_policy=policy, **{name: {"path": "x"} for name in ("fingerprint",)})
    model.save(tmp_path / "m.safetensors")
    again = load_model(tmp_path / "m.safetensors")
    assert again.range_policy == policy and again.digest == model.digest != plain.digest
    X = np.tile(model.ranges[:, 0], (3, 1))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_check_rows_of_a_linear_feature_lie_beyond_its_range(tmp_path):
    """A reader that knows nothing of the policy is refused by them."""
    model = replace(toy_model(labels="text"), range_policy="linear,a=clamp")
    model.save(tmp_path / "m.safetensors")
    tensors, header = load_model_file(tmp_path / "m.safetensors")
    below, above = count_outside(tensors["check_rows"], model.ranges)
    assert (below + above > 0).tolist() == [False, True, False, True]
    assert header["range_policy"] == "linear,a=clamp" and tensors["end_slopes"].shape == (2, 4, 1)
