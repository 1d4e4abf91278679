"""Stochastic gradient over rows as they come: what `partial_fit` is, the solver sgd without a file behind it."""

import numpy as np

from linadd.advice import warn_of_data
from linadd.embedding import check_costs, class_factors, embed, lean
from linadd.encoders.exact import check_finite
from linadd.encoders.rows import located
from linadd.errors import ConfigError, DataError
from linadd.model import AdditiveModel
from linadd.solvers.base import Start
from linadd.solvers.blocks import measured
from linadd.solvers.memory import Memory
from linadd.solvers.sgd import SGD
from linadd.train import Progress, make_problem, plan_of, survey
from linadd.validation import places_of

__all__ = ["Stream"]


class Stream:
    """Stochastic gradient over rows as they come: the solver sgd, one pass, in the order given.

    Parameters
    ----------
    embedded : Embedded
        Ranges, scale, centre and classes; without rows (`lean`).
    options : Options
        What to train and how.
    n_expected : int
        Rows that lambda = 1 / (n C) counts on.
    feature_names : list of str, optional
        Names of the columns.
    fingerprint : dict
        Of the data that the embedding comes from.

    Raises
    ------
    ConfigError
        With `calibrate`.
    """

    def __init__(self, embedded, options, n_expected, feature_names=None, fingerprint=None):
        if options.calibrate is not None:
            raise ConfigError("calibrate: a stream holds no rows out. Use fit, or CalibratedClassifierCV.")
        self.embedded, self.options, self.feature_names = embedded, options, feature_names
        self.fingerprint, self.n_rows = fingerprint or {}, 0
        self.problem = make_problem(None, embedded, options)
        self.machine = SGD(self.problem, n_expected, options.schedule)
        self.factors = class_factors(embedded.census, options.class_weight)

    @classmethod
    def over(cls, source, options, n_expected, classes=None):
        """A stream whose ranges, scale and centre come from two reads of a source, usually the whole training file.

        Parameters
        ----------
        source : Source
            Rows, with labels unless `classes` are given.
        options, n_expected
            As for the class.
        classes : array, optional
            All labels, where the source does not have them.
        """
        census, memory = survey(source, options, Progress(), classes), Memory(options.memory_limit)
        plan = plan_of(source, options, census)
        embedded = lean(embed(source, options, plan, memory, Progress(), census))
        warn_of_data(census, embedded.encoder, stacklevel=5)
        return cls(embedded, options, n_expected, source.feature_names, source.fingerprint())

    @classmethod
    def after(cls, model, embedded, options):
        """A stream that goes on from a trained model, as if its rows had just been seen once.

        Parameters
        ----------
        model : AdditiveModel
            The point to start from.
        embedded : Embedded
            What it was trained in.
        options : Options
            What to train and how.
        """
        n_rows = model.summary["n_rows"]
        stream = cls(embedded, options, n_rows, model.feature_names, model.fingerprint)
        stream.machine.start(Start(model.coef, model.intercept, n_rows))
        stream.n_rows = n_rows
        return stream

    def feed(self, rows):
        """One step for each row of a Source of labelled rows, in order.

        Raises
        ------
        DataError
            On a label that is none of the classes, another number of features, a value that is not finite, or a weight
            that passes what the solver can bear.
        """
        encoder, classes = self.embedded.encoder, self.embedded.census.classes
        rows.require_labels()
        if rows.n_features != encoder.n_features:
            raise DataError(f"has {rows.n_features} features; the model has {encoder.n_features}.", source=rows.origin)
        for chunk in rows.chunks():
            check_finite(self.problem.values(chunk), chunk.origin, rows.feature_names, chunk.row_number)
            targets = places_of(chunk, classes)
            with np.errstate(over="ignore"):  # refused below
                costs = (self.factors[targets] * chunk.weights()).astype(np.float32)
            check_costs(costs, self.options.C, chunk)
            own = located(encoder, chunk, self.problem.centre.is_sparse)
            self.machine.feed(measured(self.problem, own, targets, costs), np.arange(chunk.n_rows))
            self.n_rows += chunk.n_rows

    def model(self):
        """The model of the rows so far."""
        coef, intercept = self.machine.point(self.options.average)
        summary = {"solver": "sgd", "gap": None, "converged": True, "passes": 1, "n_rows": self.n_rows}
        return AdditiveModel(
            self.embedded.encoder, coef, intercept, self.embedded.census.classes, self.options.loss,
            self.embedded.centre.scale, self.feature_names, self.options.record(), [], summary, self.fingerprint,
            density=self.embedded.density,
        )  # fmt: skip
