"""Metrics: equal to scikit-learn's for any cut into chunks, with ties and weights, and None where undefined."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from linadd.errors import DataError
from linadd.metrics import (
    AreaUnderCurve,
    LogLoss,
    Metrics,
    Reliability,
    class_indices,
    log_probabilities,
    predicted_indices,
)

ROUNDING = 1e-12  # sums of a few hundred terms in another order than scikit-learn's


def some_rows(n_rows, n_classes, seed, is_weighted):
    """True classes, scores with many ties, and weights, some of them 0."""
    rng = np.random.default_rng(seed)
    y_index = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)])
    n_outputs = 1 if n_classes == 2 else n_classes
    decision = np.round(rng.standard_normal((n_rows, n_outputs)), 1)
    weight = rng.integers(0, 4, n_rows) * 0.25 if is_weighted else None
    if is_weighted:
        weight[:n_classes] = 1.0
    return y_index, decision, weight


def fed(rows, cuts, n_classes):
    """A Metrics that saw the rows in the chunks that `cuts` makes."""
    y_index, decision, weight = rows
    metrics = Metrics(n_classes)
    bounds = [0, *sorted(cuts), len(y_index)]
    for start, stop in pairwise(bounds):
        part = slice(start, stop)
        chunk = decision[part]
        metrics.update(y_index[part], chunk, log_probabilities(chunk), None if weight is None else weight[part])
    return metrics


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_figures_equal_those_of_scikit_learn(n_classes, is_weighted, seed):
    rows = y_index, decision, weight = some_rows(300, n_classes, seed, is_weighted)
    figures = fed(rows, [17, 17, 200], n_classes).figures()
    predicted = predicted_indices(decision)
    probability = np.exp(log_probabilities(decision))
    accuracy = sklearn.metrics.accuracy_score(y_index, predicted, sample_weight=weight)
    if n_classes == 2:
        auc = sklearn.metrics.roc_auc_score(y_index, decision[:, 0], sample_weight=weight)
    else:
        one_against_rest = [(y_index == k, decision[:, k]) for k in range(n_classes)]
        auc = np.mean([sklearn.metrics.roc_auc_score(*pair, sample_weight=weight) for pair in one_against_rest])
    expected = {
        "accuracy": accuracy,
        "error": 1 - accuracy,
        "recall": sklearn.metrics.recall_score(y_index, predicted, average=None, sample_weight=weight),
        "confusion": sklearn.metrics.confusion_matrix(y_index, predicted, sample_weight=weight),
        "auc": auc,
        "log_loss": sklearn.metrics.log_loss(y_index, probability, sample_weight=weight),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(figures[name], value, rtol=ROUNDING, atol=ROUNDING, err_msg=name)
    assert figures["n_rows"] == 300 and figures["unseen"] == 0


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    n_classes=st.integers(2, 4),
    n_rows=st.integers(4, 60),
    seed=st.integers(0, 99),
    is_weighted=st.booleans(),
    cuts=st.lists(st.integers(0, 4), max_size=4),
    split=st.integers(1, 3),
)
def test_figures_do_not_depend_on_chunks_or_merges(n_classes, n_rows, seed, is_weighted, cuts, split):
    rows = some_rows(n_rows, n_classes, seed, is_weighted)
    whole = fed(rows, [], n_classes).figures()
    parts = [tuple(None if array is None else array[half] for array in rows) for half in halves(split)]
    merged = fed(parts[0], [min(cut, split) for cut in cuts], n_classes)
    merged.merge(fed(parts[1], [], n_classes))
    figures = merged.figures()
    for own, other in zip(figures.pop("reliability"), whole.pop("reliability"), strict=True):
        assert own == pytest.approx(other, rel=ROUNDING)
    for name, value in figures.items():
        np.testing.assert_allclose(value, whole[name], rtol=ROUNDING, err_msg=name)


def halves(split):
    return slice(None, split), slice(split, None)


def test_a_weight_of_k_counts_as_k_rows():
    y_index, decision, _ = some_rows(60, 3, 7, False)
    times = np.random.default_rng(8).integers(0, 4, 60)
    weighted = fed((y_index, decision, times.astype(float)), [], 3).figures()
    repeated = fed((y_index.repeat(times), decision.repeat(times, axis=0), None), [], 3).figures()
    for name in ("accuracy", "recall", "confusion", "auc", "log_loss"):
        np.testing.assert_allclose(weighted[name], repeated[name], rtol=ROUNDING, err_msg=name)


def test_area_counts_the_pairs():
    y_index, decision, weight = some_rows(80, 2, 9, True)
    score, positive = decision[:, 0], y_index == 1
    order = np.sign(score[positive][:, None] - score[~positive])
    pairs = weight[positive][:, None] * weight[~positive]
    area = AreaUnderCurve()
    area.update(y_index, decision, weight)
    assert area.value == pytest.approx((pairs * (order + 1) / 2).sum() / pairs.sum(), rel=ROUNDING)


def test_area_owns_its_scores():
    y_index, decision, weight = some_rows(50, 2, 10, True)
    area = AreaUnderCurve()
    area.update(y_index, decision, weight)
    before = area.value
    y_index[:], decision[:], weight[:] = 0, 0, 1
    assert area.value == before


@pytest.mark.parametrize("n_outputs", [1, 5])
def test_area_takes_the_memory_that_it_states(n_outputs):
    rng = np.random.default_rng(12)
    n_rows = 300_000  # so that what tracemalloc counts of pytest itself does not matter
    y_index, decision, weight = rng.integers(0, 2, n_rows), rng.standard_normal((n_rows, n_outputs)), rng.random(n_rows)
    tracemalloc.start()
    area = AreaUnderCurve()
    area.update(y_index, decision, weight)
    assert len(area.per_class) == n_outputs
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    stated = AreaUnderCurve.memory_bytes(n_rows, n_outputs)
    assert 0.8 * stated < peak < stated


def test_log_probabilities_are_those_of_the_logistic_function():
    decision = np.random.default_rng(11).standard_normal((50, 4))
    share = expit(decision)
    np.testing.assert_allclose(
        np.exp(log_probabilities(decision)), share / share.sum(axis=1, keepdims=True), rtol=ROUNDING
    )
    one = decision[:, :1]
    np.testing.assert_allclose(np.exp(log_probabilities(one)), np.hstack([expit(-one), expit(one)]), rtol=ROUNDING)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_log_probabilities_are_finite_for_huge_scores(n_outputs):
    for sign in (-1, 1):
        logs = log_probabilities(np.full((1, n_outputs), sign * 1e9))
        assert np.isfinite(logs).all()
        expected = [-1e9, 0] if n_outputs == 1 else [-np.log(3)] * 3
        np.testing.assert_allclose(np.sort(logs[0]), expected)


def test_log_loss_keeps_what_probabilities_round_away():
    loss = LogLoss()
    loss.update(np.array([0, 1]), log_probabilities(np.array([[100.0], [100.0]])))
    assert loss.value == pytest.approx(50.0, rel=ROUNDING)


def test_a_probability_of_zero_counts_as_the_smallest_normal_number():
    loss = LogLoss()
    loss.update(np.array([0]), np.array([[-np.inf, 0.0]]))
    assert loss.value == pytest.approx(708.396418532264, rel=1e-14)  # -log(2 ** -1022)


def test_a_label_that_is_no_class_is_an_error_and_leaves_the_rest_undefined():
    metrics = Metrics(2)
    decision = np.array([[1.0], [-1.0], [3.0]])
    metrics.update(np.array([1, 0]), decision[:2], log_probabilities(decision[:2]))
    other = Metrics(2)
    other.update(np.array([-1]), decision[2:], log_probabilities(decision[2:]), np.array([2.0]))
    metrics.merge(other)
    figures = metrics.figures()
    # Whatever was predicted of the row did not come true.
    assert [part["observed"] for part in figures.pop("reliability")] == [0.0, 1.0, 0.0]
    assert figures.pop("calibration_error") == pytest.approx((2 * expit(-1) + 2 * expit(3)) / 4)
    assert figures == {
        "n_rows": 3,
        "accuracy": 0.5,
        "error": 0.5,
        "recall": [1.0, 1.0],
        "confusion": [[1.0, 0.0], [0.0, 1.0]],
        "auc": None,
        "log_loss": None,
        "unseen": 2.0,
    }


def test_without_rows_or_with_one_class_only_nothing_is_guessed():
    assert Metrics(2).figures() == {
        "n_rows": 0,
        "accuracy": None,
        "error": None,
        "recall": [None, None],
        "confusion": [[0.0, 0.0], [0.0, 0.0]],
        "auc": None,
        "log_loss": None,
        "reliability": [],
        "calibration_error": None,
        "unseen": 0.0,
    }
    metrics = Metrics(3)
    metrics.update(np.array([0, 1]), np.eye(3)[:2])
    figures = metrics.figures()
    assert figures["recall"] == [1.0, 1.0, None]
    assert figures["auc"] is None and figures["log_loss"] is None and figures["accuracy"] == 1
    assert metrics.area.per_class == [1.0, 1.0, None]
    empty = Metrics(2)
    empty.update(np.zeros(0, np.int64), np.zeros((0, 1)))
    assert empty.figures()["auc"] is None


def test_scores_are_kept_only_on_request():
    metrics = Metrics(2, with_auc=False)
    metrics.update(np.array([0, 1]), np.array([[-1.0], [1.0]]))
    assert metrics.figures()["auc"] is None and metrics.area.parts == []


def test_zero_stands_for_the_first_class_and_the_first_of_equals_wins():
    assert predicted_indices(np.array([[0.0], [-1.0], [1e-300]])).tolist() == [0, 0, 1]
    assert predicted_indices(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        ([3, 1, 2, 9, -5], [1, 3], [1, 0, -1, -1, -1]),
        ([3.0, 1.5, np.nan], [1, 3], [1, -1, -1]),
        (["b", "a", "aa", "z"], ["a", "b"], [1, 0, -1, -1]),
        ([True, False], [0, 1], [1, 0]),
    ],
)
def test_class_indices_find_each_label_or_none(labels, classes, expected):
    assert class_indices(np.array(labels), np.array(classes)).tolist() == expected


@pytest.mark.parametrize(
    ("labels", "classes", "kinds"), [(["1"], [1], ("text", "numbers")), ([1], ["1"], ("numbers", "text"))]
)
def test_text_and_numbers_do_not_mix(labels, classes, kinds):
    with pytest.raises(DataError) as caught:
        class_indices(np.array(labels), np.array(classes))
    assert str(caught.value) == (
        f"the labels are {kinds[0]}, the model's classes {kinds[1]}. Give labels of the same kind."
    )


class TestReliability:
    def test_bins_hold_the_rows_of_their_probability(self):
        reliability = Reliability()
        p = np.array([0.0, 0.05, 0.62, 0.68, 1.0])
        y, weight = np.array([0, 1, 1, -1, 1]), np.array([1, 1, 3, 1, 2.0])
        with np.errstate(divide="ignore"):
            reliability.update(y, np.log(np.column_stack([1 - p, p])), weight)
        expected = [(0.0, 0.1, 2, 0.025, 0.5), (0.6, 0.7, 4, 0.635, 0.75), (0.9, 1.0, 2, 1.0, 1.0)]
        names = ("low", "high", "count", "predicted", "observed")
        for part, values in zip(reliability.table, expected, strict=True):
            assert part == pytest.approx(dict(zip(names, values, strict=True)))
        assert reliability.error == pytest.approx((2 * 0.475 + 4 * 0.115) / 8)

    def test_of_several_classes_the_most_likely_one_counts(self):
        reliability = Reliability()
        reliability.update(np.array([0, 1]), np.log([[0.7, 0.2, 0.1], [0.1, 0.35, 0.55]]))
        assert [(part["predicted"], part["observed"]) for part in reliability.table] == [
            (pytest.approx(0.55), 0.0), (pytest.approx(0.7), 1.0),
        ]  # fmt: skip

    def test_parts_are_merged(self):
        rng = np.random.default_rng(0)
        p, y = rng.uniform(size=100), rng.integers(0, 2, 100)
        log_p = np.log(np.column_stack([1 - p, p]))
        whole, first, second = Reliability(), Reliability(), Reliability()
        whole.update(y, log_p)
        first.update(y[:40], log_p[:40])
        second.update(y[40:], log_p[40:])
        first.merge(second)
        np.testing.assert_allclose(first.sums, whole.sums)
        assert Reliability().error is None and Reliability().table == []
