"""Counts of labels, the same for any chunking, and the labels that are refused."""

import numpy as np
import pytest

from linadd import labels
from linadd.chunks import Chunk
from linadd.errors import DataError
from linadd.labels import Labels


def count(*parts, weights=None, row_numbers=None):
    """Labels of consecutive chunks."""
    counted, first = Labels(), 0
    for k, y in enumerate(parts):
        y = np.asarray(y)
        chunk = Chunk(np.zeros((len(y), 1)), y, None, first, "train.h5", row_numbers)
        counted.update(chunk, np.ones(len(y)) if weights is None else np.asarray(weights[k], float))
        first += len(y)
    return counted


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([3, 1, 3, -2], [-2, 1, 3]),
        ([1.0, -1.0, 1.0], [-1, 1]),
        ([0.5, 0.25, 0.5], [0.25, 0.5]),
        (["no", "yes", "no"], ["no", "yes"]),
        ([True, False], [False, True]),
        (np.array([0, 200, 255], np.uint8), [0, 200, 255]),
        (np.array([1, 2], np.float32), [1, 2]),
    ],
)
def test_classes_are_the_sorted_distinct_labels(y, classes):
    found, counts, _ = count(y).finish("train.h5")
    assert found.tolist() == classes
    assert found.dtype.kind == np.array(classes).dtype.kind
    assert counts.tolist() == [list(np.asarray(y)).count(c) for c in classes]


def test_labels_beyond_exact_integers_stay_floats():
    classes, _, _ = count([1e300, -1e300]).finish("train.h5")
    assert classes.dtype == np.float64 and classes.tolist() == [-1e300, 1e300]


def test_integer_and_float_chunks_hold_the_same_labels():
    classes, counts, is_sorted = count([1, 1], [1.0, 2.0], np.array([2], np.uint8)).finish("train.h5")
    assert classes.tolist() == [1, 2] and counts.tolist() == [3, 2] and is_sorted


@pytest.mark.parametrize(
    ("y", "is_sorted"),
    [([0, 0, 1, 1], True), ([2, 0, 0, 1], True), ([0, 1, 0, 0], False), ([0, 1, 1, 0], False), ([1, 0], True)],
)
def test_sorted_means_one_run_for_each_class(y, is_sorted):
    for cut in range(1, len(y)):
        assert count(y[:cut], y[cut:]).finish("train.h5")[2] == is_sorted
    assert count(y).finish("train.h5")[2] == is_sorted


def test_merged_parts_are_the_whole():
    y = np.random.default_rng(0).choice(["a", "b", "c"], 50)
    whole = count(y)
    for cut in (1, 20, 49):
        merged = count(y[:cut])
        merged.merge(Labels(), "train.h5")
        merged.merge(count(y[cut:]), "train.h5")
        assert merged.counts == whole.counts
        assert (merged.n_changes, merged.first, merged.last) == (whole.n_changes, whole.first, whole.last)


def refusal(*parts, merged=None, **options):
    """Text of the error that labels meet."""
    with pytest.raises(DataError) as caught:
        counted = count(*parts, **options)
        if merged is not None:
            counted.merge(count(merged), "train.h5")
        counted.finish("train.h5")
    return str(caught.value)


def test_a_missing_label_is_named_by_the_row_of_the_file():
    assert refusal([0, 1], [0.0, np.nan, np.nan]) == (
        "train.h5, row 4: the label is nan. Drop the row or give it a label."
    )
    assert refusal([0.0, np.inf], row_numbers=np.array([7, 9])) == (
        "train.h5, row 9: the label is inf. Drop the row or give it a label."
    )


def test_one_class_is_not_enough():
    for y in (["spam", "spam"], [2, 2]):
        assert refusal(y) == (
            f"train.h5: all rows have the one label {y[0]!r}. A classifier needs two classes; name the label column "
            "by --y."
        )


def test_a_class_needs_a_row_with_weight():
    assert refusal([0, 1], [1, 0], weights=[[1, 0], [0, 2]]) == (
        "train.h5: all rows of the class 1 have weight 0. Drop these rows or give one of them a weight."
    )
    count([0, 1], [1, 0], weights=[[1, 0], [1e-9, 2]]).finish("train.h5")


def test_numbers_and_text_do_not_mix():
    assert refusal([0, 1], ["0", "1"]) == (
        "train.h5, row 3: label '0' stands among others of another type. Use numbers only or text only."
    )
    assert refusal(["0", "1"], merged=[0.0, 1.0]) == (
        "train.h5: labels '1' and 0.0 are of two types. Use numbers only or text only."
    )


def test_a_regression_target_is_recognised():
    y = np.arange(labels.MAX_REAL_LABELS) + 0.5
    count(y, np.arange(100.0)).finish("train.h5")
    count(np.arange(20_000.0)).finish("train.h5")
    assert refusal(y, [7.25]) == (
        "train.h5: the labels have more than 10000 distinct non-integral values, such as 0.5: this looks like a "
        "regression target. linadd trains classifiers; name the label column by --y."
    )


def test_an_identifier_is_recognised():
    assert refusal(np.arange(labels.MAX_LABELS + 1)) == (
        "train.h5: the labels have more than 100000 distinct values, such as 0: this looks like an identifier. Name "
        "the label column by --y."
    )
