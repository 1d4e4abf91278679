"""The trained additive classifier: encoder state, coefficients, intercepts and classes; its decisions and its file."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import scipy.sparse

from linadd.encoders import from_state
from linadd.encoders.base import Encoder
from linadd.encoders.exact import decide, encode
from linadd.errors import ConfigError, DataError
from linadd.losses import LOSSES


@dataclass
class AdditiveModel:
    """f_o(x) = sum_j coef[j, :, o] . phi(x_j) + intercept[o], and what is known of how it was found.

    Attributes
    ----------
    encoder : Encoder
        Fitted; phi, the ranges that values are clamped to.
    coef : float32 array, shape (n_features, n_basis, n_outputs)
        In phi units, with every scale folded in.
    intercept : float64 array, shape (n_outputs,)
        Added to the sums.
    classes : array, shape (n_classes,)
        Sorted labels. Two classes have one output, whose positive side is classes[1]; more have one output each.
    loss : str
        Name in the table of losses.
    feature_scale : float64 array, shape (n_features,)
        s_j of the objective 1/2 sum_j |D_d v_j|^2 / s_j^2; 0 for a constant feature.
    feature_names : list of str or None
        Names of the features.
    options : dict
        Training options, the seed among them.
    history : list of dict
        One record an epoch.
    summary : dict
        objective, dual_objective, gap, gaps, converged, passes, reads, n_rows, plan.
    fingerprint : dict
        Of the training data.
    """

    key: ClassVar[str] = "additive"

    encoder: Encoder
    coef: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray
    loss: str
    feature_scale: np.ndarray
    feature_names: list | None = None
    options: dict = field(default_factory=dict)
    history: list = field(default_factory=list)
    summary: dict = field(default_factory=dict)
    fingerprint: dict = field(default_factory=dict)

    @property
    def n_features(self):
        """Number of features."""
        return self.encoder.n_features

    @property
    def n_outputs(self):
        """Columns of the decision."""
        return self.coef.shape[2]

    def decision_function(self, X, origin="array"):
        """Scores of rows, in float64 whatever the dtype of X; values outside the training range are clamped.

        Parameters
        ----------
        X : array or sparse array, shape (n_rows, n_features), any real dtype
            Feature values.
        origin : str
            Name of the data, for messages.

        Returns
        -------
        float64 array, shape (n_rows, n_outputs)

        Raises
        ------
        DataError
            On another number of features, or a value that is not finite.
        """
        X = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise DataError(
                f"the data have shape {X.shape}; the model needs {self.n_features} features a row.", source=origin
            )
        if X.dtype.kind not in "fiub" or X.dtype == np.float16 or not X.dtype.isnative:
            X = X.astype(np.float64)
        X = np.require(X, requirements="CW")
        if X.dtype.kind == "f" and not np.isfinite(X).all():
            i, j = np.argwhere(~np.isfinite(X))[0]
            name = self.feature_names[j] if self.feature_names else int(j) + 1
            raise DataError(
                f"the value is {X[i, j]}. Scores need finite numbers.", source=origin, row=int(i) + 1, column=name
            )
        return decide(self.encoder, X, self.coef, self.intercept)

    def predict(self, X):
        """Labels of rows, an array of the type of `classes`, shape (n_rows,); X as in decision_function."""
        return self.labels_of(self.decision_function(X))

    def labels_of(self, decisions):
        """Labels of decisions (n_rows, n_outputs): the positive side of 0, or the greatest of several outputs."""
        if self.n_outputs == 1:
            return self.classes[(decisions[:, 0] > 0).astype(np.intp)]
        return self.classes[decisions.argmax(axis=1)]

    def predict_proba(self, X):
        """Probabilities of the classes, shape (n_rows, n_classes); X as in decision_function."""
        return self.probabilities_of(self.decision_function(X))

    def probabilities_of(self, decisions):
        """Probabilities from decisions (n_rows, n_outputs) of a logistic model.

        One output: 1 / (1 + exp(-f)). Several: that of each class against the rest, divided by their sum, as
        LIBLINEAR and scikit-learn do for one-versus-rest.
        """
        if not LOSSES[self.loss].has_probabilities:
            raise ConfigError(f"a model of {self.loss} loss has no probabilities. Train with the logistic loss.")
        positive = 1.0 / (1.0 + np.exp(-np.clip(decisions, -700.0, 700.0)))  # exp overflows float64 above 709
        if self.n_outputs == 1:
            return np.hstack([1.0 - positive, positive])
        return positive / positive.sum(axis=1, keepdims=True)

    def component(self, feature, grid):
        """The curve of one feature.

        Parameters
        ----------
        feature : int
            Index of the feature.
        grid : array, shape (n,)
            Values of it; clamped to the training range.

        Returns
        -------
        float64 array, shape (n, n_outputs)
            coef[feature] . phi(grid): the curve up to a constant, which is in the intercept.
        """
        tensors = {name: values[feature : feature + 1] for name, values in self.encoder.tensors().items()}
        one = from_state(self.encoder.name, self.encoder.options, tensors)
        return encode(one, np.asarray(grid, np.float64)[:, None]) @ self.coef[feature].astype(np.float64)
