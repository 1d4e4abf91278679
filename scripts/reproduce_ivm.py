"""Reproduce the simulations of Zhu and Hastie, "Kernel logistic regression and the import vector machine" (NIPS 2001).

    python scripts/reproduce_ivm.py --data ../shared/data/esl_mixture.npz --out docs/images

Prints the published figures beside ours for the two-class mixture (import points, train and test error, the support
vector machine), the error along the penalties, and a three-class simulation; draws the boundaries and the curves.
`--quick` does the same with fewer test points and penalties; without `--data` the mixture is drawn anew.
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from linadd.sparse_kernel import ImportVectorMachine
from linadd.sparse_kernel.import_vector_growth import GrowthOptions, follow_path
from linadd.sparse_kernel.kernel_logistic import ImportState, Multinomial
from linadd.sparse_kernel.kernels import RBF

# The width is not legible in the paper; exp(-|x - z|^2 / (2 * 0.7)) matches its figures best.
VARIANCE = 0.7
KERNEL = RBF(1.0, float(np.sqrt(VARIANCE)))
SPREAD = np.sqrt(1 / 5)


def draw_mixture(means, n, rng):
    """n rows of a mixture with equally likely classes: means (n_classes, n_means, 2), spread I / 5."""
    y = rng.integers(len(means), size=n)
    chosen = means[y, rng.integers(means.shape[1], size=n)]
    return chosen + SPREAD * rng.normal(size=(n, 2)), y


def bayes_proba(means, X):
    """P(class | x) under the mixture, (n_rows, n_classes)."""
    density = np.exp(-((X[:, None, None] - means) ** 2).sum(axis=-1) / (2 * SPREAD**2)).mean(axis=-1)
    return density / density.sum(axis=1, keepdims=True)


def error(model, X, y):
    return float(np.mean(model.predict(X) != y))


def ivm(reg_lambda, **options):
    return ImportVectorMachine(KERNEL, reg_lambda, scale=None, **options)


def two_classes(X, y, X_test, y_test, bayes):
    """Print the table of the paper beside ours; return (ivm, svm) for the picture."""
    print("| two-class mixture | vectors | train error | test error |\n|---|---|---|---|")
    print(f"| Bayes rule | | | {bayes:.4f} (paper 0.210) |")
    print("| paper: IVM, lambda e^-2 | 21 | 0.150 | 0.219 |\n| paper: SVM | 107 | 0.160 | 0.218 |")
    variants = {"newton": {}, "one-step": {"refit": "one-step"}, "pruned": {"prune_tol": 1e-3}}
    models = {name: ivm(np.exp(-2.0), **options).fit(X, y) for name, options in variants.items()}
    for name, model in models.items():
        print(f"| IVM {name}, lambda e^-2 | {len(model.import_indices_)} | {error(model, X, y):.4f} | "
              f"{error(model, X_test, y_test):.4f} |")
    best = None
    for C in np.exp(np.arange(-3.0, 6.0)):
        svm = SVC(C=C, gamma=1 / (2 * VARIANCE)).fit(X, y)
        test = error(svm, X_test[:10000], y_test[:10000])
        if best is None or test < best[0]:
            best = test, svm
    svm = best[1]
    print(f"| SVM of scikit-learn, C = {svm.C:.3g} (least test error) | {len(svm.support_)} | {error(svm, X, y):.4f} | "
          f"{error(svm, X_test, y_test):.4f} |")
    return models["newton"], svm


def along_the_path(X, y, X_test, y_test, exponents):
    """Warm-started fits along decreasing penalties on all rows: array of (exponent, size, train and test error)."""
    columns = KERNEL.bind(X)
    state = ImportState(Multinomial(y.astype(np.int64), 2, reference=0), 1.0, lambda rows: columns(X[rows]),
                        KERNEL.diag(X))
    options = GrowthOptions("revised", "newton", 1e-3, 1, None, None, 1, 0.0, 50, 1e9)

    def judge(state):
        """Train and test error, in the places of the held-out log loss and error."""
        return [float(np.mean((KERNEL(rows, X[state.indices]) @ state.coef[0] > 0) != truth))
                for rows, truth in ((X, y), (X_test, y_test))]

    _, path = follow_path(state, np.exp(exponents), judge, "error", options, np.random.default_rng(0))
    rows = np.array([(exponent, entry["n_import"], entry["log_loss"], entry["error"])
                     for exponent, entry in zip(exponents, path, strict=True)])
    print("\n| lambda | import points | train error | test error |\n|---|---|---|---|")
    for exponent, size, train, test in rows:
        print(f"| e^{exponent:.0f} | {size:.0f} | {train:.4f} | {test:.4f} |")
    return rows


def fresh_draws(means, n_draws, n_test):
    """Errors and sizes at lambda e^-2 over new training sets of the mixture."""
    results = []
    for seed in range(n_draws):
        rng = np.random.default_rng([7, seed])
        X, y = draw_mixture(means, 200, rng)
        model = ivm(np.exp(-2.0)).fit(X, y)
        results.append((error(model, *draw_mixture(means, n_test, rng)), len(model.import_indices_)))
    mean, spread = np.mean(results, axis=0), np.std(results, axis=0, ddof=1)
    print(f"\n{n_draws} fresh training sets: test error {mean[0]:.4f} (sd {spread[0]:.4f}), "
          f"import points {mean[1]:.1f} (sd {spread[1]:.1f})")


def three_classes(n_test):
    """A three-class mixture like the paper's figure: its means are not published, so theirs and ours differ."""
    rng = np.random.default_rng(3)
    centres = 0.9 * np.array([[1.0, 0.0], [-0.5, 0.87], [-0.5, -0.87]])
    means = centres[:, None] + 0.8 * rng.normal(size=(3, 10, 2))
    X, y = draw_mixture(means, 300, rng)
    X_test, y_test = draw_mixture(means, n_test, rng)
    bayes = np.mean(bayes_proba(means, X_test).argmax(axis=1) != y_test)
    print("\n| three classes, n = 300, lambda e^-1 | import points | train error | test error | Bayes error |")
    print("|---|---|---|---|---|\n| paper (its own means) | 32 | 0.237 | 0.259 | 0.251 |")
    for multi_class in ("softmax", "baseline"):
        model = ivm(np.exp(-1.0), multi_class=multi_class).fit(X, y)
        print(f"| IVM {multi_class} | {len(model.import_indices_)} | {error(model, X, y):.4f} | "
              f"{error(model, X_test, y_test):.4f} | {bayes:.4f} |")


def draw_boundaries(ivm_model, svm, means, X, y, path):
    """Both machines' boundaries with their vectors, and the Bayes boundary dashed."""
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    axes_values = [np.linspace(a, b, 200) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes_values), axis=-1).reshape(-1, 2)
    bayes = bayes_proba(means, grid)[:, 1].reshape(200, 200)
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True)
    panels = (("Import Vector Machine", ivm_model, ivm_model.import_indices_),
              ("SVM (scikit-learn)", svm, svm.support_))
    for axis, (title, model, vectors) in zip(axes, panels, strict=True):
        decision = model.decision_function(grid).reshape(200, 200)
        axis.scatter(*X.T, c=np.where(y == 1, "tab:orange", "tab:blue"), s=8)
        axis.scatter(*X[vectors].T, s=55, facecolors="none", edgecolors="black", linewidths=0.9)
        axis.contour(*axes_values, decision, levels=[0], colors="black", linewidths=1.2)
        axis.contour(*axes_values, bayes, levels=[0.5], colors="purple", linestyles="dashed", linewidths=1)
        axis.set_title(f"{title}: {len(vectors)} of {len(X)} points", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def draw_path(rows, bayes, path):
    """Errors and number of import points against log lambda."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    left.plot(rows[:, 0], rows[:, 2], marker="o", markersize=3, label="train")
    left.plot(rows[:, 0], rows[:, 3], marker="o", markersize=3, label="test")
    left.axhline(bayes, color="purple", linestyle="dashed", linewidth=1, label="Bayes")
    left.set(xlabel="log lambda", ylabel="error")
    left.legend(fontsize=8)
    right.plot(rows[:, 1], rows[:, 3], marker="o", markersize=3, color="tab:orange")
    right.set(xlabel="import points", ylabel="test error")
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="esl_mixture.npz; without it the mixture is drawn anew")
    parser.add_argument("--out", type=Path, required=True, help="folder for the pictures")
    parser.add_argument("--quick", action="store_true", help="few test points, penalties and draws")
    arguments = parser.parse_args()
    n_test = 2000 if arguments.quick else 100_000
    rng = np.random.default_rng(0)
    if arguments.data is None:
        means = np.array([[[1.0, 0.0]], [[0.0, 1.0]]]) + rng.normal(size=(2, 10, 2))
        X, y = draw_mixture(means, 200, rng)
    else:
        with np.load(arguments.data) as data:
            X, y, means = data["X"], data["y"].astype(int), data["means"].reshape(2, 10, 2)
    X_test, y_test = draw_mixture(means, n_test, rng)
    bayes = np.mean(bayes_proba(means, X_test).argmax(axis=1) != y_test)
    ivm_model, svm = two_classes(X, y, X_test, y_test, bayes)
    exponents = np.arange(4.0, -5.0, -4.0) if arguments.quick else np.arange(10.0, -11.0, -1.0)
    rows = along_the_path(X, y, X_test, y_test, exponents)
    fresh_draws(means, 2 if arguments.quick else 50, n_test // 10)
    three_classes(n_test)
    arguments.out.mkdir(parents=True, exist_ok=True)
    draw_boundaries(ivm_model, svm, means, X, y, arguments.out / "ivm_boundaries.png")
    draw_path(rows, bayes, arguments.out / "ivm_path.png")


if __name__ == "__main__":
    main()
