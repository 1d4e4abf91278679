"""`AdditiveClassifier`: training and prediction by the conventions of scikit-learn, on arrays, files and streams."""

import os
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from linadd.errors import ConfigError, DataWarning
from linadd.estimator_input import is_named_data, open_rows
from linadd.losses import LOSSES
from linadd.metrics import Confusion, class_indices, predicted_indices
from linadd.options import Options
from linadd.stream import Stream
from linadd.train import Progress, train_embedded

RENAMED = {"random_state": "seed"}  # scikit-learn's name -> the option's
NOT_OPTIONS = {"warm_start"}  # parameters that are no option of training


def has_probabilities(classifier):
    """Whether the model has probabilities, or before `fit` the one that was asked for will have them."""
    if hasattr(classifier, "model_"):
        return classifier.model_.has_probabilities
    return classifier.calibrate is not None or LOSSES[classifier.loss].has_probabilities


class AdditiveClassifier(ClassifierMixin, BaseEstimator):
    """Additive classifier: a smooth curve for every feature, summed.

    Minimises 1/2 sum_j |D_d v_j|^2 / s_j^2 + sum_i C_i loss(y_i f(x_i)), f(x) = sum_j v_j . phi(x_j) + b, and says how
    far from the minimum it stopped (`gap_`). Two classes have one output, more are trained one-versus-rest.

    Parameters
    ----------
    encoder : {"bspline", "fourier", "hermite", "identity"}
        Embedding phi of each feature.
    degree, n_bins, knots
        Of B-splines: degree 0 to 3, bins a feature, "auto", "uniform" or "quantile".
    n_harmonics, n_terms : int
        Of the Fourier and the Hermite embedding.
    penalty_order : {0, 1, 2, 3}
        Order d of the difference penalty.
    clamp : bool
        Clamp values to the training range (identity only; the others always do).
    scale : {"unit", "libspline", "none"}
        Factor s_j of each feature; "unit" makes C = 1 a sane start for any data.
    center : bool
        Subtract the mean code.
    intercept, intercept_scale
        "free", "penalised" (like a feature of that value) or "none".
    loss : {"logistic", "hinge", "squared_hinge"}
        Loss function.
    C : float
        Cost of a row's loss against the penalty.
    class_weight : None, "balanced" or dict of label to float
        Factor of C for the rows of a class.
    calibrate : {None, "sigmoid", "isotonic"}
        Fit probabilities to the decisions of a held-out fifth of the rows, by a second training without them; the
        coefficients stay those of all rows. Not in `partial_fit`.
    solver : {"auto", "dual-cd", "newton", "sgd", "liblinear"}
        How to minimise; "auto" is newton for a smooth loss and up to 2,000 coefficients an output, if rows are
        dense; else dual-cd.
    tol : float
        Relative duality gap to reach.
    max_epochs : int
        Passes over the data at most.
    memory_limit : int
        Bytes that may be allocated.
    training_chunk, partial_solutions
        Of the plan: rows of a training chunk, and partial solutions merged by line search.
    precision : {"exact", "uint16", "uint8"}
        Rows in memory: 4 bytes a value, or codes of 2 or 1, whose certified gap has a floor.
    rows : {"auto", "dense", "sparse"}
        What is kept of a row: all values, or those that are not 0; "auto" keeps these of sparse input below a density
        of 0.25, with a free intercept, centring, exact precision, and a solver that can.
    hessian_sample : float
        Share of the rows that newton takes the Hessian from.
    schedule, average, shuffle, n_expected
        Of sgd and `partial_fit`: step sizes, average of the iterates, order of the rows, rows expected of a stream.
    validation : None, float or path
        Rows to score after every pass of `fit` (`history_`): a fraction to hold out, or a file.
    early_stopping : bool
        End where the validation loss has not fallen for `patience` passes, and keep the best model.
    patience : int
        Passes without a lower validation loss before early stopping ends.
    certify : bool
        Spend two more reads for the gap of a solver that has none.
    stop_on : {"gap", "violation"}
        Stopping rule.
    warm_start : bool
        Let `fit` begin at the coefficients of the last one: newton and sgd do; dual-cd and liblinear begin at zero all
        the same, which a log line says. The minimum is the same one.
    random_state : int
        Seed.
    n_jobs : int
        Threads; never changes the result.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        Sorted labels.
    coef_ : float32 array, shape (n_outputs, n_features * n_basis)
        Coefficients in phi units.
    intercept_ : float64 array, shape (n_outputs,)
        Intercepts.
    gap_ : float or None
        Certified relative duality gap, of the worst output.
    history_ : list of dict
        One record an epoch.
    n_iter_ : int
        Passes over the data; 1 after `partial_fit`.
    n_features_in_ : int
        Features.
    feature_names_in_ : array of str, shape (n_features_in_,)
        Their names, where the data have them: those of a frame or a file.
    feature_importances_ : float64 array, shape (n_features,)
        Mean of |f_j| over the training rows, f_j centred; of several outputs the mean.
    model_ : AdditiveModel
        What the command line, files and exports use.

    Examples
    --------
    >>> import numpy as np
    >>> from linadd import AdditiveClassifier
    >>> x = np.linspace(-1, 1, 400)[:, None]
    >>> clf = AdditiveClassifier(C=10.0).fit(x, np.abs(x[:, 0]) < 0.5)
    >>> clf.predict([[0.0], [0.9]]).tolist()
    [True, False]
    """

    def __init__(
        self,
        encoder="bspline",
        *,
        degree=1,
        n_bins=10,
        n_harmonics=4,
        n_terms=4,
        penalty_order=1,
        knots="auto",
        clamp=True,
        scale="unit",
        center=True,
        intercept="free",
        intercept_scale=1.0,
        loss="logistic",
        C=1.0,
        class_weight=None,
        calibrate=None,
        solver="auto",
        tol=1e-3,
        max_epochs=50,
        memory_limit=1_000_000_000,
        precision="exact",
        training_chunk=1000,
        partial_solutions="auto",
        rows="auto",
        hessian_sample=1.0,
        schedule="shifted",
        average=True,
        shuffle=True,
        n_expected=100_000,
        validation=None,
        early_stopping=False,
        patience=5,
        certify=False,
        stop_on="gap",
        warm_start=False,
        random_state=0,
        n_jobs=1,
    ):
        self.encoder = encoder
        self.degree = degree
        self.n_bins = n_bins
        self.n_harmonics = n_harmonics
        self.n_terms = n_terms
        self.penalty_order = penalty_order
        self.knots = knots
        self.clamp = clamp
        self.scale = scale
        self.center = center
        self.intercept = intercept
        self.intercept_scale = intercept_scale
        self.loss = loss
        self.C = C
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.solver = solver
        self.tol = tol
        self.max_epochs = max_epochs
        self.memory_limit = memory_limit
        self.precision = precision
        self.training_chunk = training_chunk
        self.partial_solutions = partial_solutions
        self.rows = rows
        self.hessian_sample = hessian_sample
        self.schedule = schedule
        self.average = average
        self.shuffle = shuffle
        self.n_expected = n_expected
        self.validation = validation
        self.early_stopping = early_stopping
        self.patience = patience
        self.certify = certify
        self.stop_on = stop_on
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def options(self):
        """The parameters as checked training options; raises ConfigError."""
        values = {name: value for name, value in self.get_params(deep=False).items() if name not in NOT_OPTIONS}
        return Options(**{RENAMED.get(name, name): value for name, value in values.items()})

    def fit(self, X, y=None, sample_weight=None):
        """Train on rows in memory, or out of core on a file.

        Parameters
        ----------
        X : array, sparse array, frame, dask array, shape (n_samples, n_features); or a path or Source with labels
            Feature values.
        y : array, shape (n_samples,), or str
            Labels, for rows in memory; for a file the name of its labels.
        sample_weight : array, shape (n_samples,), or str, optional
            Factors of C; for a file the name of its weights.

        Returns
        -------
        self

        Raises
        ------
        DataError, ConfigError, ValueError, TypeError
            Before any training; the last two are scikit-learn's, on rows in memory.

        Warns
        -----
        ConvergenceWarning
            Where the tolerance was not reached.
        """
        rows = open_rows(self, X, y, sample_weight, is_first=True, least_rows=2)
        start = getattr(self, "model_", None) if self.warm_start else None
        self.model_, self.embedded_ = train_embedded(rows, self.options(), Progress(), start)
        self.stream_ = None
        return self

    def partial_fit(self, X, y=None, classes=None, sample_weight=None, census=None):
        """Take one step of stochastic gradient for each row, in order.

        After `fit` it goes on from the fitted model, with its classes, ranges and scale. With a census, any batching of
        the same rows in the same order gives the same bits; a row of weight 0 is no step at all.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array, shape (n_classes,)
            All labels that will come; needed in the first call unless `census` has labels.
        census : path, Source or (X, y), optional
            Data whose ranges, scale and centre to use, in the first call (after `fit`: to start anew with); without it
            they are taken from the rows of that call, with a warning, and later values beyond their range are clamped.

        Returns
        -------
        self

        Raises
        ------
        DataError, ConfigError, ValueError, TypeError
            As in `fit`, and on labels outside `classes`, or other classes than in an earlier call.
        """
        stream = getattr(self, "stream_", None)
        if stream is None and (census is not None or not hasattr(self, "model_")):
            rows = open_rows(self, X, y, sample_weight, is_first=True)
            stream = self.start_stream(rows, classes, census)
        else:
            rows = open_rows(self, X, y, sample_weight)
            stream = stream or Stream.after(self.model_, self.embedded_, self.options())
            check_classes(classes, stream.embedded.census.classes)
        stream.feed(rows)
        self.stream_, self.model_ = stream, stream.model()
        return self

    def start_stream(self, rows, classes, census):
        """A stream whose embedding comes from `census`, or from the rows of the first call."""
        if census is not None:
            source = open_rows(self, *census) if isinstance(census, tuple) else open_rows(self, census)
            return Stream.over(source, self.options(), source.n_rows, None if source.has_labels else classes)
        if classes is None:
            raise ConfigError("partial_fit: the first call needs classes=, all labels that will come, or census=.")
        warnings.warn(
            f"partial_fit: ranges and scale are taken from the {rows.n_rows} rows of the first call. Give census= to "
            "take them from all data.",
            DataWarning,
            stacklevel=3,
        )
        return Stream.over(rows, self.options(), self.n_expected, classes)

    @property
    def classes_(self):
        """Sorted labels."""
        return self.fitted().classes

    @property
    def coef_(self):
        """Coefficients, float32 (n_outputs, n_features * n_basis)."""
        coef = self.fitted().coef
        return np.moveaxis(coef, 2, 0).reshape(coef.shape[2], -1)

    @property
    def intercept_(self):
        """Intercepts, float64 (n_outputs,)."""
        return self.fitted().intercept

    @property
    def gap_(self):
        """Certified relative duality gap of the worst output; None where the solver has none."""
        return self.fitted().summary["gap"]

    @property
    def history_(self):
        """One record an epoch."""
        return self.fitted().history

    @property
    def n_iter_(self):
        """Passes over the data; 1 after `partial_fit`, which sees each row once."""
        return self.fitted().summary["passes"]

    @property
    def feature_importances_(self):
        """Mean of |f_j| over the training rows, float64 (n_features,); of several outputs the mean."""
        return self.fitted().importances().mean(axis=1)

    def shape_function(self, feature, grid=None):
        """The centred curve of one feature.

        Parameters
        ----------
        feature : int or str
            Index or name.
        grid : array, shape (n,), optional
            Values of the feature; by default 100 steps or more over the training range.

        Returns
        -------
        linadd.shapes.Shape
            With `grid`, `values`, `error` (after a search), `knots`, and the density of the training rows.
        """
        return self.fitted().shape_function(feature, grid)

    def explain(self, X):
        """What each feature adds to each score, float64 (n_samples, n_features, n_outputs).

        Parameters
        ----------
        X : array, sparse array or dask array, shape (n_samples, n_features); or a path or Source
            Feature values; clamped to the training range. The sum over the features plus `intercept_` is the decision.
        """
        model = self.fitted()
        chunks = open_rows(self, X).chunks()
        return np.concatenate([model.explain(part.dense(), part.origin, part.row_number) for part in chunks])

    def fitted(self):
        """The model; raises NotFittedError before fit."""
        check_is_fitted(self, "model_")
        return self.model_

    def decision_function(self, X):
        """Scores, float64 (n_samples,) for two classes, else (n_samples, n_classes).

        Parameters
        ----------
        X : array, sparse array, frame or dask array, shape (n_samples, n_features); or a path or Source
            Feature values; clamped to the training range.

        Raises
        ------
        DataError, ValueError, TypeError
            On rows that do not fit the model. Columns of an array in another order than in `fit` are not seen; those
            of a frame are refused, those of a file with names are put in order.
        """
        decisions = self.decisions(X)
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    def decisions(self, X):
        """Scores (n_samples, n_outputs), chunk by chunk."""
        model = self.fitted()
        chunks = open_rows(self, X).chunks()
        places = ((part.X, part.origin, part.row_number) for part in chunks)
        return np.concatenate([model.decision_function(*place, self.n_jobs) for place in places])

    def predict(self, X):
        """Labels, shape (n_samples,); X as in decision_function."""
        return self.fitted().labels_of(self.decisions(X))

    @available_if(has_probabilities)
    def predict_proba(self, X):
        """Probabilities of the classes, (n_samples, n_classes); X as in decision_function.

        The logistic loss has them, and any loss with `calibrate`: with another one there is no such method, as
        scikit-learn's tools expect. After `calibrate` the most likely class may differ from `predict`, which goes by
        the decisions.
        """
        return self.fitted().probabilities_of(self.decisions(X))

    def score(self, X, y=None, sample_weight=None):
        """Share of the rows, by weight, that are given their label.

        Parameters
        ----------
        X : as in `decision_function`
            A path or Source brings its labels and weights.
        y : array, shape (n_samples,), or str
            Labels, for rows in memory; for a file the name of its labels.
        sample_weight : array, shape (n_samples,), or str, optional
            Weights of the rows.

        Returns
        -------
        float
        """
        if not is_named_data(X):
            return super().score(X, y, sample_weight)
        model, rows = self.fitted(), open_rows(self, X, y, sample_weight)
        rows.require_labels()
        accuracy = Confusion(len(model.classes))
        for chunk in rows.chunks():
            decisions = model.decision_function(chunk.X, chunk.origin, chunk.row_number, self.n_jobs)
            index = class_indices(chunk.y, model.classes)
            accuracy.update(index, predicted_indices(decisions), chunk.weight)
        return accuracy.accuracy

    def save(self, path):
        """Write the model file, whole or not at all.

        Parameters
        ----------
        path : path-like
            Ends in .safetensors, so that no file of data is overwritten; an earlier model is replaced in one step.

        Raises
        ------
        ConfigError
            On another suffix.
        """
        model = self.fitted()
        if os.path.splitext(path)[1].lower() != ".safetensors":
            raise ConfigError(f"{path}: a model is a *.safetensors file. Give the name that suffix.")
        model.save(path)


def check_classes(given, classes):
    """Raise ConfigError where a later call of partial_fit names other classes than the first."""
    if given is not None and not np.array_equal(np.unique(given), classes):
        given, known = (", ".join(map(str, values)) for values in (np.unique(given), classes))
        raise ConfigError(f"partial_fit: classes={given} are not those of the first call or of fit, {known}.")
