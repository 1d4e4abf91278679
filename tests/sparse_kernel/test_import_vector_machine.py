"""ImportVectorMachine: vectors and properties of the design page, the plain version, path, files, messages."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from linadd.errors import ConfigError, ConvergenceWarning, DataError, FormatError
from linadd.model_file import load_model_file
from linadd.models import load_model
from linadd.sparse_kernel import import_vector_growth
from linadd.sparse_kernel.import_vector_machine import ImportVectorMachine
from linadd.sparse_kernel.kernels import RBF, Linear
from tests.sparse_kernel import plain_ivm
from tests.sparse_kernel.toy import T1, XS, Y3, Y

KERNEL = RBF(1.5, 0.9)
TOY = {"kernel": KERNEL, "reg_lambda": 0.2, "scale": None}
MIXTURE = Path(__file__).parents[2] / "../shared/data/esl_mixture.npz"
MIXTURE_OPTIONS = {"kernel": RBF(1.0, np.sqrt(0.7)), "reg_lambda": np.exp(-2), "scale": None}


def blobs(n=90, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    return rng.normal(size=(n, 2)) + 1.5 * np.stack([np.cos(2 * y), np.sin(2 * y)], axis=1), y


@pytest.fixture(scope="module")
def mixture():
    if not MIXTURE.exists():
        pytest.skip(f"{MIXTURE.name} is not beside the checkout")
    with np.load(MIXTURE) as data:
        return data["X"], data["y"]


def test_scikit_learn_conventions():
    for result in check_estimator(ImportVectorMachine(), on_skip=None):
        assert result["status"] in ("passed", "skipped")


def test_full_set_equals_kernel_logistic_regression():
    model = ImportVectorMachine(**TOY).fit(T1, Y, basis_indices=range(8))
    expected = [1.337677761, 0.924969585, -0.712125425, 0.663314314, -1.054297433, -1.221891986, -0.768624395,
                0.397428052]
    np.testing.assert_allclose(model.coef_[:, 0], expected, atol=1e-6)
    assert model.objective_history_[-1] == pytest.approx(2.608430864, abs=1e-9)
    np.testing.assert_allclose(model.decision_function(XS), [1.725131312, -1.869682982], atol=1e-6)
    p = model.predict_proba(T1)[:, 1]
    np.testing.assert_allclose(0.2 * model.coef_[:, 0], (Y > 0) - p, atol=1e-6)


@pytest.mark.parametrize(("refit", "objectives"), [
    ("newton", [4.395562838, 3.304026777, 2.911306292, 2.760823671, 2.735504336, 2.713474589, 2.669229802,
                2.608430864]),
    ("one-step", [4.416690916, 3.316059874, 2.912505892, 2.761067340, 2.735529114, 2.713493287, 2.669252290,
                  2.608540698]),
])
def test_greedy_order(refit, objectives):
    model = ImportVectorMachine(**TOY, refit=refit).fit(T1, Y)
    assert model.import_indices_.tolist() == [7, 2, 4, 0, 3, 1, 5, 6]
    np.testing.assert_allclose(model.objective_history_, objectives, atol=1e-8)
    np.testing.assert_array_equal(model.import_vectors_, T1[model.import_indices_])


@pytest.mark.parametrize(("multi_class", "objective", "proba"), [
    ("softmax", 3.929092194, [[0.611259163, 0.113719064, 0.275021773], [0.103684682, 0.441218046, 0.455097272]]),
    ("baseline", 4.934264199, [[0.581197722, 0.113053761, 0.305748518], [0.120725405, 0.503711184, 0.375563412]]),
])
def test_three_classes(multi_class, objective, proba):
    model = ImportVectorMachine(**TOY, multi_class=multi_class, tol=0).fit(T1, Y3)
    assert model.objective_history_[-1] == pytest.approx(objective, abs=1e-8)
    np.testing.assert_allclose(model.predict_proba(XS), proba, atol=1e-6)
    assert model.decision_function(XS).shape == (2, 3)
    plain = plain_ivm.full_softmax(KERNEL(T1), Y3, 3, 0.2, reference=multi_class == "baseline")
    assert model.objective_history_[-1] == pytest.approx(plain, rel=1e-6)
    np.testing.assert_array_equal(model.predict(XS), np.argmax(proba, axis=1))


@pytest.mark.parametrize(("refit", "algorithm"), [("newton", "revised"), ("one-step", "revised"), ("newton", "basic")])
def test_equals_the_plain_version_step_by_step(refit, algorithm):
    X, y = blobs(40)
    model = ImportVectorMachine(KERNEL, 0.05, algorithm=algorithm, refit=refit, scale=None, max_import_vectors=9,
                                tol=0).fit(X, y)
    order, history = plain_ivm.greedy(KERNEL(X), y, 0.05, refit, algorithm, n_steps=9)
    assert model.import_indices_.tolist() == order
    # The refit stops at a Newton decrement of 1e-10 |H|; a Newton step alone is equal to rounding.
    np.testing.assert_allclose(model.objective_history_, history, rtol=1e-9 if refit == "newton" else 1e-12)


def test_objective_falls_and_the_label_swap_negates_the_decision():
    X, y = blobs()
    model = ImportVectorMachine(random_state=0).fit(X, y)
    assert np.all(np.diff(model.objective_history_) < 0)
    swapped = ImportVectorMachine(random_state=0).fit(X, 1 - y)
    np.testing.assert_allclose(swapped.coef_, -model.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, atol=1e-14)


def test_all_points_equal_full_regression_on_random_data():
    X, y = blobs(50, n_classes=3)
    model = ImportVectorMachine(KERNEL, 0.1, scale=None, tol=0).fit(X, y)
    assert model.objective_history_[-1] == pytest.approx(plain_ivm.full_softmax(KERNEL(X), y, 3, 0.1), rel=1e-6)


def test_mixture_at_the_published_penalty(mixture):
    """Figures of the design page's prototype (8.2): order, H, 22 import vectors, train error 0.150."""
    X, y = mixture
    model = ImportVectorMachine(**MIXTURE_OPTIONS).fit(X, y)
    assert model.import_indices_[:10].tolist() == [67, 183, 152, 10, 82, 92, 173, 88, 188, 136]
    np.testing.assert_allclose(np.array(model.objective_history_)[[0, -1]], [123.132781, 84.382268], atol=1e-6)
    assert len(model.import_indices_) == 22
    assert np.mean(model.predict(X) != y) == pytest.approx(0.15)
    assert len(ImportVectorMachine(**MIXTURE_OPTIONS, refit="one-step").fit(X, y).import_indices_) == 25
    pruned = ImportVectorMachine(**MIXTURE_OPTIONS, prune_tol=1e-3).fit(X, y)
    assert 18 <= len(pruned.import_indices_) <= 21
    full = plain_ivm.full_softmax(model.kernel_(X), y.astype(int), 2, np.exp(-2), reference=True)
    assert full == pytest.approx(83.644797798, rel=1e-8)
    assert full < pruned.objective_history_[-1] < 1.011 * full


def test_basic_and_revised_selection_agree_on_the_mixture(mixture):
    X, y = mixture
    options = {**MIXTURE_OPTIONS, "max_import_vectors": 10, "tol": 0}
    histories = [ImportVectorMachine(**options, algorithm=algorithm).fit(X, y).objective_history_
                 for algorithm in ("basic", "revised")]
    difference = np.abs(np.subtract(*histories)) / histories[0]
    assert np.all(difference < 0.03) and np.all(difference[7:] < 0.005)


def test_path_keeps_import_vectors_and_chooses_by_held_out_rows():
    X, y = blobs(200, seed=4)
    lambdas = [0.01, 10.0, 1.0, 0.1]
    model = ImportVectorMachine(reg_lambda="path", reg_path=lambdas, refit_full=False, random_state=1).fit(X, y)
    assert [entry["reg_lambda"] for entry in model.path_] == sorted(lambdas, reverse=True)
    assert np.all(np.diff([entry["n_import"] for entry in model.path_]) >= 0)
    best = min(model.path_, key=lambda entry: entry["log_loss"])
    assert model.reg_lambda_ == best["reg_lambda"] and len(model.coef_) == best["n_import"]
    refitted = ImportVectorMachine(reg_lambda="path", reg_path=lambdas, random_state=1).fit(X, y)
    direct = ImportVectorMachine(reg_lambda=best["reg_lambda"], random_state=1).fit(X, y)
    np.testing.assert_array_equal(refitted.coef_, direct.coef_)
    by_error = ImportVectorMachine(reg_lambda="path", reg_path=lambdas, scoring="error", random_state=1).fit(X, y)
    assert by_error.reg_lambda_ == min(model.path_, key=lambda e: (e["error"], e["log_loss"]))["reg_lambda"]


def test_groups_of_additions_cost_little_accuracy():
    """Five at a time end within 3 % of the objective of one at a time, and stop exactly at the limit."""
    X, y = blobs(400, seed=2)
    options = {"reg_lambda": 0.05, "max_import_vectors": 18, "tol": 0}
    single = ImportVectorMachine(**options).fit(X, y)
    groups = ImportVectorMachine(n_additions=5, **options).fit(X, y)
    assert len(groups.objective_history_) == 4 and len(set(groups.import_indices_.tolist())) == 18
    assert groups.objective_history_[-1] < 1.03 * single.objective_history_[-1]


def test_candidates_are_drawn_by_the_seed():
    X, y = blobs(300)
    fits = [ImportVectorMachine(n_candidates=5, random_state=seed).fit(X, y).import_indices_ for seed in (1, 1, 2)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert fits[0].tolist() != fits[2].tolist()


def test_linear_kernel_ends_when_every_row_is_dependent():
    """Rank 2: a third import vector would add nothing; the origin has K(x, x) = 0 and is skipped."""
    X, y = blobs(30)
    X[0] = 0
    model = ImportVectorMachine(Linear(1.0, 0.0), scale=None, tol=0).fit(X, y)
    assert len(model.import_indices_) == 2 and 0 not in model.import_indices_


def test_separable_data_with_a_tiny_penalty_stay_finite():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    model = ImportVectorMachine(reg_lambda=1e-6).fit(X, ["a", "a", "b", "b"])
    assert np.all(np.isfinite(model.coef_)) and model.predict([[3.0]])[0] == "b"


def test_saved_model_is_the_same_model(tmp_path):
    X, y = blobs(60, n_classes=3)
    for options in ({"fit_intercept": True}, {"kernel": RBF(1.0, 0.5) * RBF(2.0, 1.5), "multi_class": "baseline"}):
        model = ImportVectorMachine(**options).fit(X, np.array(["x", "y", "z"])[y])
        model.save(tmp_path / "model.safetensors")
        loaded = load_model(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert loaded.kernel_ == model.kernel_ and loaded.objective_history_ == model.objective_history_
        tensors, header = load_model_file(tmp_path / "model.safetensors")
        tensors["coef"] = 2 * tensors["coef"]
        with pytest.raises(FormatError, match="the scores of its check rows differ"):
            ImportVectorMachine.from_state(tensors, header)


def test_interrupt_keeps_the_model_so_far(monkeypatch):
    X, y = blobs()
    best = import_vector_growth.best_step

    def interrupted(state, *arguments):
        if len(state.indices) == stop_at:
            raise KeyboardInterrupt
        return best(state, *arguments)

    monkeypatch.setattr(import_vector_growth, "best_step", interrupted)
    stop_at = 3
    with pytest.warns(ConvergenceWarning) as caught:
        model = ImportVectorMachine(tol=0).fit(X, y)
    assert str(caught[0].message) == (
        "ImportVectorMachine stopped at 3 import vectors: interrupted by Ctrl-C, the model so far is kept. "
        "Fit again for a converged one.")
    assert len(model.coef_) == len(model.objective_history_) == 3
    stop_at = 0
    with pytest.raises(KeyboardInterrupt):
        ImportVectorMachine().fit(X, y)


def test_memory_limit_is_refused_before_and_kept_during_the_fit():
    X, y = blobs(100)
    with pytest.raises(ConfigError) as error:
        ImportVectorMachine(max_import_vectors=50, memory_limit=10_000).fit(X, y)
    assert str(error.value) == (
        "memory_limit: the kernel columns of the import vectors takes 100 x 50 x 8 = 4e+04 bytes, above the limit of "
        "1e+04. Raise memory_limit, ask for fewer basis vectors or train on fewer rows.")
    with pytest.warns(ConvergenceWarning) as caught:
        model = ImportVectorMachine(tol=0, memory_limit=4_000).fit(X, y)
    assert len(model.coef_) == 5
    assert str(caught[0].message) == (
        "ImportVectorMachine stopped at 5 import vectors: one more column of 100 rows would pass memory_limit = 4e+03 "
        "bytes. Raise memory_limit or tol.")


@pytest.mark.parametrize(("options", "message"), [
    ({"algorithm": "fast"}, "algorithm: 'fast' is not a choice. Choose from 'revised', 'basic'."),
    ({"scale": "robust"}, "scale: 'robust' is not a choice. Choose from 'standard', 'minmax', None."),
    ({"reg_lambda": 0}, "reg_lambda: 0 is not a number above 0 nor 'path'. Give one of them."),
    ({"reg_lambda": "cv"}, "reg_lambda: 'cv' is not a number above 0 nor 'path'. Give one of them."),
    ({"algorithm": "basic", "n_additions": 2}, "n_additions: 2 needs algorithm='revised'; 'basic' adds one at a time."),
    ({"n_candidates": 0}, "n_candidates: 0 is below 1. Give a larger number."),
])
def test_option_messages(options, message):
    with pytest.raises(ConfigError) as error:
        ImportVectorMachine(**options).fit(T1, Y)
    assert str(error.value) == message


def test_data_messages():
    with pytest.raises(DataError) as error:
        ImportVectorMachine().fit(T1, np.ones(8))
    assert str(error.value) == "y: all 8 labels are 1.0: one class only. Give rows of two classes."
    with pytest.raises(DataError) as error:
        ImportVectorMachine().fit(np.where(T1 == 1.2, np.nan, T1), Y)
    assert str(error.value) == "X, row 6, column 2: the value is NaN (0 more NaN or inf). Fill or drop it."
