"""`BSplineEmbedding`, `FourierEmbedding`, `HermiteEmbedding`: rows to their codes, by the conventions of scikit-learn.

The codes are what the solvers see and never store: phi, or phi^d = s D_d'^-1 phi, on which a linear model with a plain
squared penalty is the additive model of `solvers/base.py`. Kept in memory they need n_samples * n_features * n_basis
numbers: `AdditiveClassifier` is for what does not fit.
"""

import copy
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from linadd import penalty
from linadd.census import CensusTaker
from linadd.chunks import csr_rows, join_rows, row_groups
from linadd.encoders import make_encoder
from linadd.encoders.centring import CodeMoments, located
from linadd.encoders.exact import check_finite, encode
from linadd.errors import ConfigError
from linadd.estimator_input import open_rows
from linadd.row_sample import SAMPLE_ROWS

__all__ = ["BSplineEmbedding", "FourierEmbedding", "HermiteEmbedding"]


class Embedding(TransformerMixin, BaseEstimator):
    """What the three share: `name`, `encoder_parameters` and `basis_names` are a subclass's own."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, y=None, sample_weight=None):
        """Take the ranges and the scale from rows.

        Parameters
        ----------
        X : array, sparse array, frame, dask array, path or Source, shape (n_samples, n_features)
            Feature values; read twice.
        y : ignored
        sample_weight : array, shape (n_samples,), optional
            Weights of the rows; a row of weight 0 has no part.

        Returns
        -------
        self

        Raises
        ------
        DataError, ConfigError, ValueError, TypeError
            On rows that are no table of finite numbers, constant in every feature, or options that cannot work.
        """
        source = open_rows(self, X, sample_weight=sample_weight, is_first=True, least_rows=2)
        self.observe(source, None)
        moments = CodeMoments(self.encoder_)
        for pieces in row_groups(source.chunks()):
            moments.add(*moments.group(located(self.encoder_, pieces)))
        self.scale_ = moments.centre(True, self.scale == "unit").scale
        return self

    def partial_fit(self, X, y=None, sample_weight=None):
        """Take more rows into account: the ranges become those of all rows since the last `fit`, those of it included.

        The factor common to all features, which `scale="unit"` chooses so that the mean squared norm is 1, would need
        the earlier rows again: it is 1 here.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self

        Raises
        ------
        DataError, ConfigError, ValueError, TypeError
            As in `fit`; the state stays as it was.
        """
        taker = getattr(self, "taker_", None)
        self.observe(open_rows(self, X, sample_weight=sample_weight, is_first=taker is None), taker)
        return self

    def observe(self, source, taker):
        """Add the rows of a source to a census, and fit the encoder to it."""
        encoder = make_encoder(self.name, **{name: getattr(self, name) for name in self.encoder_parameters})
        if taker is None:
            sample_rows = SAMPLE_ROWS if getattr(self, "knots", "uniform") != "uniform" else 0
            seed = getattr(self, "random_state", 0)
            taker = CensusTaker(source.origin, source.n_features, sample_rows, seed, source.feature_names)
        taker = copy.deepcopy(taker)
        first_row = taker.next_row or 0
        for chunk in source.chunks():
            taker.update(replace(chunk, y=None, first_row=first_row))
            first_row += chunk.n_rows
        self.encoder_ = encoder.fit(copy.deepcopy(taker).finish(), self.scale)  # finishing closes the last group
        self.scale_, self.taker_ = self.encoder_.scale, taker

    def transform(self, X):
        """The codes of rows; values outside the ranges count as their nearer end.

        Parameters
        ----------
        X : as in `fit`
            Feature values.

        Returns
        -------
        scipy.sparse.csr_array, or array, shape (n_samples, n_features * n_basis)
            float32 for float32 rows, else float64. With `penalised`, s_j D_d'^-1 phi of each feature.

        Raises
        ------
        DataError, ValueError, TypeError
            On rows of other columns, or values that are not finite.
        """
        check_is_fitted(self, "encoder_")
        names, parts = getattr(self, "feature_names_in_", None), []
        for chunk in open_rows(self, X).chunks():
            rows = chunk.dense()
            check_finite(rows, chunk.origin, None if names is None else list(names), chunk.row_number)
            codes = encode(self.encoder_, rows, self.penalised)
            if self.penalised:
                codes.data *= np.repeat(self.scale_, self.encoder_.n_basis)[codes.indices]
            parts.append(codes)
        codes = join_rows(parts)
        codes = csr_rows(codes.data, codes.indices, codes.indptr, codes.shape)
        return codes if self.sparse_output else codes.toarray()

    def curve_coefficients(self, coef):
        """Coefficients of the curves from those of a linear model on the codes: v = s D_d^-1 w.

        Parameters
        ----------
        coef : array, shape (n_features * n_basis,) or (n_outputs, n_features * n_basis)
            `coef_` of the linear model.

        Returns
        -------
        float64 array, shape (n_features, n_basis, n_outputs)
            f_j(x) = v_j . phi(x), as `AdditiveModel.coef`; without `penalised` the coefficients as they are.

        Raises
        ------
        ConfigError
            On another number of coefficients.
        """
        check_is_fitted(self, "encoder_")
        n_features, n_basis = self.encoder_.n_features, self.encoder_.n_basis
        w = np.atleast_2d(np.asarray(coef, np.float64))
        if w.shape[-1] != n_features * n_basis or w.ndim != 2:
            raise ConfigError(f"coef: has shape {np.shape(coef)}; {n_features * n_basis} a row are needed.")
        v = w.reshape(len(w), n_features, n_basis)
        if self.penalised:
            order = self.encoder_.penalty_order if self.encoder_.is_local else 0  # a dense basis has it in its weights
            v = penalty.from_penalised(v, order) * self.scale_[:, None]
        return np.moveaxis(v, 0, 2)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: the feature's, and the basis function's.

        Parameters
        ----------
        input_features : array of str, shape (n_features,), optional
            Names of the features; by default those seen in `fit`, else x0, x1, ...

        Returns
        -------
        array of str objects, shape (n_features * n_basis,)

        Raises
        ------
        ValueError
            Names that are not those of `fit`, or another number of them.
        """
        check_is_fitted(self, "encoder_")
        names = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        return np.array([f"{name}_{basis}" for name in names for basis in self.basis_names()], dtype=object)


class BSplineEmbedding(Embedding):
    """B-splines of each feature between its least and greatest value.

    With `penalised` and a linear model of squared penalty, such as LogisticRegression(C=C), the minimum is that of
    AdditiveClassifier(C=C); `curve_coefficients` gives its curves.

    Parameters
    ----------
    degree, n_bins, penalty_order, knots
        As of AdditiveClassifier.
    penalised : bool
        Give phi^d = s_j D_d'^-1 phi, dense within each feature; else phi, of degree + 1 entries a feature.
    scale : {"unit", "libspline", "none"}
        Rule for s_j.
    sparse_output : bool
        Give a CSR array; else a dense one, as `set_output(transform="pandas")` needs it.
    random_state : int
        Seed of the sample that quantile knots come from, where there are more than 65,536 rows.

    Attributes
    ----------
    encoder_ : Encoder
        The fitted basis.
    scale_ : float64 array, shape (n_features,)
        s_j; 0 for a constant feature.
    n_features_in_, feature_names_in_
        As by scikit-learn.

    Examples
    --------
    >>> from linadd import BSplineEmbedding
    >>> BSplineEmbedding(n_bins=2, penalised=False).fit_transform([[0.0], [1.0], [4.0]]).toarray().tolist()
    [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    """

    name = "bspline"
    encoder_parameters = ("degree", "n_bins", "penalty_order", "knots")

    def __init__(
        self,
        degree=1,
        n_bins=10,
        *,
        penalty_order=1,
        knots="auto",
        penalised=True,
        scale="unit",
        sparse_output=True,
        random_state=0,
    ):
        self.degree = degree
        self.n_bins = n_bins
        self.penalty_order = penalty_order
        self.knots = knots
        self.penalised = penalised
        self.scale = scale
        self.sparse_output = sparse_output
        self.random_state = random_state

    def basis_names(self):
        """sp_0, sp_1, ..., from the least values on."""
        return [f"sp_{i}" for i in range(self.encoder_.n_basis)]


class FourierEmbedding(Embedding):
    """Sines and cosines over the range of each feature, harmonic k divided by k ** penalty_order.

    Parameters
    ----------
    n_harmonics, penalty_order : int
        As of AdditiveClassifier.
    penalised, scale, sparse_output
        As of BSplineEmbedding; the penalty is in the basis, so that `penalised` only multiplies by s_j.

    Attributes
    ----------
    encoder_, scale_, n_features_in_, feature_names_in_
        As of BSplineEmbedding.
    """

    name = "fourier"
    encoder_parameters = ("n_harmonics", "penalty_order")

    def __init__(self, n_harmonics=4, *, penalty_order=1, penalised=True, scale="unit", sparse_output=True):
        self.n_harmonics = n_harmonics
        self.penalty_order = penalty_order
        self.penalised = penalised
        self.scale = scale
        self.sparse_output = sparse_output

    def basis_names(self):
        """sin_1, cos_1, sin_2, ..."""
        return [f"{wave}_{k}" for k in range(1, self.encoder_.n_harmonics + 1) for wave in ("sin", "cos")]


class HermiteEmbedding(Embedding):
    """Hermite polynomials over the range of each feature.

    Parameters
    ----------
    n_terms, penalty_order : int
        As of AdditiveClassifier.
    penalised, scale, sparse_output
        As of FourierEmbedding.

    Attributes
    ----------
    encoder_, scale_, n_features_in_, feature_names_in_
        As of BSplineEmbedding.
    """

    name = "hermite"
    encoder_parameters = ("n_terms", "penalty_order")

    def __init__(self, n_terms=4, *, penalty_order=1, penalised=True, scale="unit", sparse_output=True):
        self.n_terms = n_terms
        self.penalty_order = penalty_order
        self.penalised = penalised
        self.scale = scale
        self.sparse_output = sparse_output

    def basis_names(self):
        """he_1, he_2, ..., by degree."""
        return [f"he_{k}" for k in range(1, self.encoder_.n_basis + 1)]
