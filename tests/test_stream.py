"""Stream: the solver sgd on rows as they come."""

import numpy as np
import pytest

from linadd import Progress, open_source
from linadd.errors import ConfigError, DataError
from linadd.options import Options
from linadd.stream import Stream
from linadd.train import train, train_embedded
from tests.solvers.problems import toy

OPTIONS = Options(solver="sgd", max_epochs=1, shuffle=False, loss="squared_hinge")


def stream_of(n_classes=3):
    """(X, y, stream) with the census of all rows."""
    X, y = toy(n_rows=300, n_classes=n_classes)
    return X, y, Stream.over(open_source(X, y), OPTIONS, len(y))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_the_solver_sgd_in_file_order(n_classes):
    X, y, stream = stream_of(n_classes)
    for piece in np.array_split(np.arange(300), 7):
        stream.feed(open_source(X[piece], y[piece], chunk_rows=5))
    model, whole = stream.model(), train(open_source(X, y), OPTIONS)
    np.testing.assert_array_equal(model.coef, whole.coef)
    np.testing.assert_array_equal(model.intercept, whole.intercept)
    assert model.summary == {"solver": "sgd", "gap": None, "converged": True, "passes": 1, "n_rows": 300}


def test_rows_of_weight_zero_change_nothing():
    X, y, stream = stream_of()
    other = Stream.over(open_source(X, y), OPTIONS, len(y))
    stream.feed(open_source(X[:50], y[:50]))
    other.feed(open_source(X[:100], y[:100], weights=np.repeat([1.0, 0.0], 50)))
    np.testing.assert_array_equal(stream.model().coef, other.model().coef)


def test_the_last_iterate_can_be_asked_for():
    X, y = toy()
    models = []
    for average in (True, False):
        stream = Stream.over(open_source(X, y), Options(average=average), len(y))
        stream.feed(open_source(X, y))
        models.append(stream.model())
    assert not np.array_equal(models[0].coef, models[1].coef)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, :3], y), "array: has 3 features; the model has 4."),
        (lambda X, y: (X, y + 1), "array, row 3: the label 3 is not among the classes 0, 1, 2."),
        (lambda X, y: (X, y.astype(str)), "array, row 1: the label '0' is not among the classes 0, 1, 2."),
        (lambda X, y: (X, y - 0.5), "array, row 1: the label -0.5 is not among the classes 0, 1, 2."),
        (lambda X, y: (X, None), "array: has no labels. Give y."),
        (
            lambda X, y: (np.where(np.isin(X, X[5, 2]), np.inf, X), y),
            "array, row 6, column 3: the value is inf. linadd takes no NaN or infinity: fill or drop this row.",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_leave_the_model(change, message):
    X, y, stream = stream_of()
    stream.feed(open_source(X, y))
    before, y = stream.model(), np.repeat([0, 1, 2], 100)
    y[2] = 2
    with pytest.raises(DataError) as caught:
        stream.feed(open_source(*change(X[:50], np.where(y[:50] == 2, 2, 0))))
    assert str(caught.value) == message
    np.testing.assert_array_equal(stream.model().coef, before.coef)


def test_balanced_needs_counts():
    with pytest.raises(ConfigError) as caught:
        Stream.over(open_source(toy()[0]), Options(class_weight="balanced"), 100, classes=[0, 1])
    assert str(caught.value) == (
        "class_weight: 'balanced' needs the counts of a census. Give census=, or the factors."
    )


def test_one_class_is_refused():
    with pytest.raises(ConfigError) as caught:
        Stream.over(open_source(toy()[0]), Options(), 100, classes=["a", "a"])
    assert str(caught.value) == "classes: ['a'] is one label only. Name all labels that will come."


@pytest.mark.parametrize("n_classes", [2, 3])
def test_after_a_model_it_goes_on_from_there(n_classes):
    X, y = toy(n_rows=300, n_classes=n_classes)
    model, embedded = train_embedded(open_source(X, y), Options(C=0.01), Progress())
    stream = Stream.after(model, embedded, Options(C=0.01))
    np.testing.assert_allclose(stream.model().decision_function(X), model.decision_function(X), atol=1e-5)
    stream.feed(open_source(X, y, weights=np.zeros(300)))
    np.testing.assert_allclose(stream.model().decision_function(X), model.decision_function(X), atol=1e-5)
    stream.feed(open_source(X, y))
    # At the minimum the steps add up to little: the scores stay near, and the rows are counted.
    moved = np.abs(stream.model().decision_function(X) - model.decision_function(X)).max()
    assert 0 < moved < 0.3 * np.abs(model.decision_function(X)).max()
    assert stream.model().summary["n_rows"] == 900


def test_a_cost_beyond_the_solver_is_refused():
    X, y, stream = stream_of()
    with pytest.raises(DataError) as caught:
        stream.feed(open_source(X, y, weights=np.where(np.arange(300) == 7, 1e16, 1.0)))
    assert str(caught.value) == (
        "array, row 8: C times the weights of class and row is 1e+16, above 1e+15. Lower C, or divide all weights by a "
        "common factor."
    )


def test_a_stream_is_not_calibrated():
    with pytest.raises(ConfigError) as caught:
        Stream.over(open_source(*toy()), Options(calibrate="sigmoid"), 100)
    assert str(caught.value) == "calibrate: a stream holds no rows out. Use fit, or CalibratedClassifierCV."
