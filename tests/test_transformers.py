"""The three embeddings: scikit-learn's conventions, and a linear model on their codes is the additive model."""

import pickle

import numpy as np
import pandas
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from linadd import AdditiveClassifier, BSplineEmbedding, FourierEmbedding, HermiteEmbedding, open_source
from linadd.encoders.exact import encode
from linadd.errors import ConfigError, DataError
from tests.solvers.problems import toy

EMBEDDINGS = [BSplineEmbedding, FourierEmbedding, HermiteEmbedding]
# They compare repeated with weighted rows at 1e-7; scale and centre are summed from float32 values.
WEIGHTS_TO_1E_7 = ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("embedding", EMBEDDINGS)
def test_scikit_learns_checks(embedding):
    expected = dict.fromkeys(WEIGHTS_TO_1E_7, "compares at 1e-7, below float32")
    results = check_estimator(embedding(), expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {"encoder": "bspline", "degree": 1, "n_bins": 5, "penalty_order": 1},
        {"encoder": "bspline", "degree": 3, "n_bins": 4, "penalty_order": 2, "knots": "quantile"},
        {"encoder": "fourier", "n_harmonics": 3, "penalty_order": 1},
        {"encoder": "hermite", "n_terms": 3, "penalty_order": 2},
    ],
    ids=lambda options: options["encoder"] + str(options.get("degree", "")),
)
def test_a_linear_model_on_the_codes_is_the_additive_model(options, n_classes):
    X, y = toy(n_rows=200, n_classes=n_classes)
    additive = AdditiveClassifier(**options, C=2.0, tol=1e-8, solver="newton").fit(X, y)
    own = {name: value for name, value in options.items() if name != "encoder"}
    embedding = next(each for each in EMBEDDINGS if each.name == options["encoder"])(**own)
    np.testing.assert_array_equal(embedding.fit(X).scale_, additive.model_.feature_scale)
    linear = LogisticRegression(C=2.0, tol=1e-10, max_iter=5000)
    for output in range(1 if n_classes == 2 else 3):
        # One against the rest, as the additive model; LogisticRegression itself would be multinomial.
        target = y if n_classes == 2 else (y == output).astype(int)
        pipeline = make_pipeline(embedding, linear).fit(X, target)
        expected = additive.decision_function(X).reshape(len(X), -1)[:, output]
        # Coefficients are float32 on one side, and the gap of 1e-8 is one of objectives.
        np.testing.assert_allclose(pipeline.decision_function(X), expected, atol=2e-3 * np.abs(expected).max())
        curves = embedding.curve_coefficients(linear.coef_)
        by_curves = encode(embedding.encoder_, X) @ curves.reshape(-1, 1)
        np.testing.assert_allclose(by_curves[:, 0] + linear.intercept_, pipeline.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("embedding", EMBEDDINGS)
@pytest.mark.parametrize("penalised", [True, False])
def test_names_types_and_shapes(embedding, penalised):
    X = toy()[0]
    codes = embedding(penalised=penalised).fit(X)
    dense = embedding(penalised=penalised, sparse_output=False).set_output(transform="pandas")
    frame = dense.fit_transform(pandas.DataFrame(X, columns=list("abcd")))
    assert frame.columns.tolist() == dense.get_feature_names_out().tolist()
    assert isinstance(codes.transform(X), scipy.sparse.csr_array)
    np.testing.assert_array_equal(frame.to_numpy(), codes.transform(X).toarray())
    assert codes.transform(X).indices.dtype == np.int32
    assert codes.get_feature_names_out().shape == (4 * codes.encoder_.n_basis,)
    for dtype in (np.float32, np.float64):
        assert codes.transform(X.astype(dtype)).dtype == dtype
    np.testing.assert_allclose(
        codes.transform(X.astype(np.float32)).toarray(), codes.transform(X).toarray(), atol=1e-5, rtol=1e-5
    )


def test_names_tell_feature_and_basis_function():
    X = np.arange(6.0).reshape(3, 2)
    names = {
        BSplineEmbedding(n_bins=1): ["x0_sp_0", "x0_sp_1", "x1_sp_0", "x1_sp_1"],
        FourierEmbedding(2): ["x0_sin_1", "x0_cos_1", "x0_sin_2", "x0_cos_2", "x1_sin_1"],
        HermiteEmbedding(2): ["x0_he_1", "x0_he_2", "x1_he_1", "x1_he_2"],
    }
    for embedding, expected in names.items():
        assert embedding.fit(X).get_feature_names_out().tolist()[: len(expected)] == expected


class TestPartialFit:
    X = toy(n_rows=2500)[0]

    @pytest.mark.parametrize("embedding", [BSplineEmbedding(knots="quantile"), FourierEmbedding(), HermiteEmbedding()])
    def test_ranges_are_those_of_all_rows_in_any_batches(self, embedding):
        whole = embedding.fit(self.X)
        tensors, scale = whole.encoder_.tensors(), whole.scale_
        for n_batches in (1, 7):
            vars(embedding).pop("taker_", None)
            for piece in np.array_split(self.X, n_batches):
                embedding.partial_fit(piece)
            for name, values in embedding.encoder_.tensors().items():
                np.testing.assert_array_equal(values, tensors[name], err_msg=name)
        # The common factor is what is missing.
        np.testing.assert_allclose(scale / embedding.scale_, scale[0] / embedding.scale_[0], rtol=1e-6)

    def test_rows_that_do_not_fit_leave_the_state(self):
        embedding = BSplineEmbedding().fit(self.X)
        before = embedding.transform(self.X[:5]).toarray()
        with pytest.raises(DataError, match="the value is nan"):
            embedding.partial_fit(np.full((3, 4), np.nan))
        np.testing.assert_array_equal(embedding.transform(self.X[:5]).toarray(), before)
        embedding.partial_fit(10 * self.X)
        assert embedding.encoder_.ranges[0, 1] == 10 * self.X[:, 0].max()


def test_sources_and_pickles_give_the_same_codes():
    X = toy()[0]
    embedding = BSplineEmbedding().fit(X)
    other = pickle.loads(pickle.dumps(BSplineEmbedding().fit(open_source(X, chunk_rows=7))))
    np.testing.assert_array_equal(
        other.transform(open_source(X, chunk_rows=9)).toarray(), embedding.transform(X).toarray()
    )


def test_plain_codes_have_plain_coefficients():
    X = toy()[0]
    embedding = BSplineEmbedding(penalised=False, n_bins=3).fit(X)
    w = np.arange(32.0).reshape(2, 16)
    np.testing.assert_array_equal(embedding.curve_coefficients(w), np.moveaxis(w.reshape(2, 4, 4), 0, 2))
    np.testing.assert_allclose(embedding.transform(X).toarray().reshape(-1, 4, 4).sum(axis=2), 1)
    with pytest.raises(ConfigError) as caught:
        embedding.curve_coefficients(np.ones(15))
    assert str(caught.value) == "coef: has shape (15,); 16 a row are needed."
