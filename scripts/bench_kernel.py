"""Time the sparse kernel classifiers, single thread; those of Rodeo are in the tables of `reproduce_rodeo.py`.

    OPENBLAS_NUM_THREADS=1 python scripts/bench_kernel.py --data ../shared/data [--only NAME ...]

inner: one inner loop of the sparse GP on banana (n = 4000, d_max 80) for each selection. ivm: 10,000 rows of ijcnn1
with at most 200 import vectors against scikit-learn's calibrated SVC; also with one length a feature, which a sparse GP
learns on 2,000 of the rows (its time counts). chosen: the same with lambda and C chosen on held-out rows. gpc: both
Gaussian process classifiers against scikit-learn's GaussianProcessClassifier at n = 2000. large: covertype 2 against
the rest, n = 100,000, with its peak memory. lspc: the least-squares classifier on example 1 of the Rodeo paper, with
parameters given and with all of its cross-validation, then streamed from a file of 1,000,000 x 20 generated rows, with
its peak memory (of the process: run it alone). online: the sparse online GP with EP at a budget of 100 on one class of
USPS. Times are CPU seconds (the machine may be shared): the least, the median and the largest of some repeats.
`--quick` runs all of it on toy sizes.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import h5py
import measuring
import numpy as np
from reproduce_rodeo import LAMBDAS, SIGMAS, example_1_rows
from sklearn.calibration import CalibratedClassifierCV
from sklearn.gaussian_process import GaussianProcessClassifier, kernels
from sklearn.svm import SVC

from linadd.cli.terminal import peak_memory_bytes
from linadd.sparse_kernel import (
    ImportVectorMachine,
    LeastSquaresProbabilisticClassifier,
    SparseGPClassifier,
    SparseOnlineGPClassifier,
)
from linadd.sparse_kernel.kernels import ARD, RBF
from linadd.sparse_kernel.sparse_gp_selection import SelectionOptions
from linadd.sparse_kernel.sparse_gp_training import TrainingOptions, build


def timed(call, repeats):
    """(last result, text of the CPU seconds, least CPU seconds) of a call."""
    result, seconds = measuring.timed(call, repeats, time.process_time)
    text = f"{min(seconds):.3f} ({np.median(seconds):.3f}, {max(seconds):.3f})"
    return result, text, min(seconds)


def standardised(X, X_test):
    mean, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0] = 1.0
    return (X - mean) / spread, (X_test - mean) / spread


def error_and_log_loss(model, X, y):
    proba = model.predict_proba(X)
    p_true = proba[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return np.mean(model.predict(X) != y), -np.mean(np.log(np.clip(p_true, 1e-12, None)))


def load(folder, name, n_train, n_test, seed=0):
    """Shuffled rows (X, y, X_test, y_test) of a set, standardised by the training rows."""
    if folder is None:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n_train + n_test, 2))
        y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=len(X)) > 0, 1, -1)
    else:
        with np.load(folder / name) as data:
            X, y = (data["X_train"], data["y_train"]) if "X_train" in data.files else (data["X"], data["y"])
        order = np.random.default_rng(seed).permutation(len(X))[: n_train + n_test]
        X, y = X[order].astype(float), y[order]
    train, test = standardised(X[:n_train], X[n_train:])
    return train, y[:n_train], test, y[n_train:]


def bench_inner(folder, quick):
    """One inner loop for each selection; every selection must end with the same number of basis vectors."""
    n, d, repeats = (300, 10, 2) if quick else (4000, 80, 15)
    X, y, _, _ = load(folder, "ida/banana.npz", n, 100)
    options = TrainingOptions(d, False, "nlp", 1, 10, 1, 1e-3, 0.0, 1.0, 0)
    print(f"\n| inner loop, n = {n}, d_max = {d} | CPU seconds: least (median, largest) | NLP |\n|---|---|---|")
    for name, n_candidates in (("adaptive", 1), ("adaptive", 2), ("random", None), ("entropy", None),
                               ("information_gain", None), ("validation", 59)):
        selection = SelectionOptions(name, n_candidates, "one_minus_phi", "moment")

        def inner(selection=selection):
            state, _ = build(X, y.astype(float), RBF(3.0, 0.5), 0.0, options, selection, np.random.default_rng(0))
            return state

        state, text, _ = timed(inner, repeats)
        assert len(state.active) == d
        print(f"| {name} {n_candidates or ''} | {text} | {state.nlp():.4f} |")


def learned_lengths(X, y):
    """A kernel with one length a feature, which a sparse GP learns on the first 2,000 rows."""
    gp = SparseGPClassifier("ard", n_basis=60, n_candidates=2, scale=None, max_outer_iter=4, n_restarts=1,
                            random_state=0).fit(X[:2000], y[:2000])
    return ARD(1.0, gp.kernel_.length_scales)


def import_vectors(kernel, n_candidates, n_additions, reg_lambda, most):
    """An import vector machine of the comparison."""
    return ImportVectorMachine(kernel, reg_lambda, scale=None, tol=0, max_import_vectors=most, random_state=0,
                               n_candidates=n_candidates, n_additions=n_additions)


def bench_ivm(folder, quick):
    """Import vectors against support vectors."""
    n, n_test, most = (300, 300, 20) if quick else (10_000, 20_000, 200)
    X, y, X_test, y_test = load(folder, "ijcnn1.npz", n, n_test)
    print(f"\n| ijcnn1, n = {n} | CPU seconds | vectors | test error | log loss |\n|---|---|---|---|---|")
    for C in (1, 10):
        svc = SVC(C=C, gamma=1 / X.shape[1])
        svm, _, _ = timed(lambda svc=svc: svc.fit(X, y), 1)
        model, text, _ = timed(lambda svc=svc: CalibratedClassifierCV(svc).fit(X, y), 1 if quick else 3)
        error, loss = error_and_log_loss(model, X_test, y_test)
        print(f"| CalibratedClassifierCV(SVC(C={C})) | {text} | {len(svm.support_)} | {error:.4f} | {loss:.4f} |")
    isotropic = RBF(1.0, float(np.sqrt(X.shape[1] / 2)))

    def fit(learns_lengths, n_candidates, n_additions, reg_lambda, most):
        kernel = learned_lengths(X, y) if learns_lengths else isotropic
        return import_vectors(kernel, n_candidates, n_additions, reg_lambda, most).fit(X, y)

    for case in ((False, 59, 1, 1e-2, most), (False, 300, 10, 1e-2, most), (False, 300, 20, 1e-2, most),
                 (False, 400, 40, 1e-2, most), (True, 200, 20, 3e-4, most * 19 // 20),
                 (True, 200, 38, 3e-4, most * 19 // 20)):
        model, text, _ = timed(lambda case=case: fit(*case), 1 if case[2] == 1 or quick else 3)
        error, loss = error_and_log_loss(model, X_test, y_test)
        print(f"| ImportVectorMachine, {case[2]} of {case[1]} candidates a step, "
              f"{'a length a feature' if case[0] else 'one length'} | {text} | "
              f"{len(model.import_indices_)} | {error:.4f} | {loss:.4f} |")


def bench_chosen(folder, quick):
    """Import vectors against support vectors, lambda and C chosen on a fifth of the training rows, for some draws."""
    n, n_test, most, n_draws = (300, 300, 20, 1) if quick else (10_000, 20_000, 190, 3)
    print(f"\n| ijcnn1, n = {n}, chosen on held-out rows | parameter | CPU seconds | vectors | test error | "
          "log loss |\n|---|---|---|---|---|---|")
    for draw in range(n_draws):
        X, y, X_test, y_test = load(folder, "ijcnn1.npz", n, n_test, draw)
        part = n * 4 // 5

        def ivm(X, y, reg_lambda):
            return import_vectors(learned_lengths(X, y), 200, 38, reg_lambda, most).fit(X, y)

        def svc(X, y, C):
            return CalibratedClassifierCV(SVC(C=C, gamma=1 / X.shape[1])).fit(X, y)

        for name, fit, values in (("ImportVectorMachine", ivm, (1e-4, 3e-4, 1e-3, 3e-3)),
                                  ("CalibratedClassifierCV(SVC)", svc, (1, 10, 100))):
            errors = [np.mean(fit(X[:part], y[:part], value).predict(X[part:]) != y[part:]) for value in values]
            best = values[int(np.argmin(errors))]
            model, text, _ = timed(lambda fit=fit, best=best, X=X, y=y: fit(X, y, best), 1 if quick else 3)
            plain = SVC(C=best, gamma=1 / X.shape[1]).fit(X, y).support_ if fit is svc else model.import_indices_
            error, loss = error_and_log_loss(model, X_test, y_test)
            print(f"| {name}, draw {draw} | {best:g} | {text} | {len(plain)} | {error:.4f} | {loss:.4f} |")


def bench_gpc(folder, quick):
    """Sparse against full Gaussian process classification."""
    n, n_test, d = (150, 200, 10) if quick else (2000, 3000, 80)
    X, y, X_test, y_test = load(folder, "ida/banana.npz", n, n_test)
    print(f"\n| banana, n = {n} | CPU seconds | test error | log loss |\n|---|---|---|---|")
    full = GaussianProcessClassifier(kernels.ConstantKernel(1.0) * kernels.RBF(float(np.sqrt(2))))
    model, text, slow = timed(lambda: full.fit(X, y), 1)
    error, loss = error_and_log_loss(model, X_test, y_test)
    print(f"| GaussianProcessClassifier of scikit-learn | {text} | {error:.4f} | {loss:.4f} |")
    classifiers = {}
    for selection, n_candidates, n_basis in (("adaptive", 1, d), ("adaptive", 2, d), ("validation", None, d),
                                             ("adaptive", 2, 2 * d), ("validation", None, 2 * d)):
        classifiers[f"SparseGPClassifier({selection} {n_candidates or ''}, n_basis={n_basis})"] = SparseGPClassifier(
            n_basis=n_basis, selection=selection, n_candidates=n_candidates, scale=None, max_outer_iter=6,
            random_state=0)
    classifiers["SparseGPClassifier(adaptive 2), then one build by validation at twice the basis"] = Staged(d)
    for max_basis in (d // 2, d):
        classifiers[f"SparseOnlineGPClassifier(max_basis={max_basis})"] = SparseOnlineGPClassifier(
            max_basis=max_basis, optimize_hyperparameters=True, tol=1e-3, scale=None, random_state=0)
    for name, classifier in classifiers.items():
        model, text, fast = timed(lambda classifier=classifier: classifier.fit(X, y), 1 if quick else 3)
        error, loss = error_and_log_loss(model, X_test, y_test)
        print(f"| {name}, {slow / fast:.0f} times faster | {text} | {error:.4f} | {loss:.4f} |")


class Staged:
    """Hyper-parameters searched with few vectors and cheap candidates; one build of twice the size with them."""

    def __init__(self, n_basis):
        self.n_basis = n_basis

    def fit(self, X, y):
        """Return the second classifier, fitted."""
        found = SparseGPClassifier(n_basis=self.n_basis, n_candidates=2, max_outer_iter=3, scale=None,
                                   random_state=0).fit(X, y)
        return SparseGPClassifier(found.kernel_, bias=found.bias_, n_basis=2 * self.n_basis, selection="validation",
                                  optimize_hyperparameters=False, scale=None, random_state=0).fit(X, y)


def bench_large(folder, quick):
    """100,000 rows, and the peak memory of this process."""
    n, n_test, d = (500, 200, 10) if quick else (100_000, 20_000, 80)
    X, y, X_test, y_test = load(folder, "covertype_397k.npz", n, n_test)
    y, y_test = (y == 2).astype(int), (y_test == 2).astype(int)
    if folder is None:
        y, y_test = (X[:, 0] > 0).astype(int), (X_test[:, 0] > 0).astype(int)
    print(f"\n| covertype 2 against the rest, n = {n} | CPU seconds | vectors | test error | log loss | peak MB |\n"
          "|---|---|---|---|---|---|")
    print(f"| data loaded | | | | | {peak_memory_bytes() / 1e6:.0f} |")
    models = {"SparseGPClassifier": SparseGPClassifier(n_basis=d, n_candidates=2, max_outer_iter=4, n_restarts=1,
                                                       random_state=0),
              "ImportVectorMachine": ImportVectorMachine(reg_lambda=0.1, max_import_vectors=d, n_candidates=100,
                                                         n_additions=10, tol=0, random_state=0)}
    for name, estimator in models.items():
        model, text, _ = timed(lambda estimator=estimator: estimator.fit(X, y), 1)
        error, loss = error_and_log_loss(model, X_test, y_test)
        print(f"| {name} | {text} | {d} | {error:.4f} | {loss:.4f} | {peak_memory_bytes() / 1e6:.0f} |")


def bench_lspc(folder, quick):
    """The least-squares classifier in memory, and streamed."""
    sizes, n_rows, n_centers, repeats = ((30, 10), 2000, 20, 1) if quick else ((150, 100), 1_000_000, 500, 5)
    rng = np.random.default_rng(0)
    (X, y), (X_test, y_test) = (example_1_rows(rng, n) for n in sizes)
    print("\n| least-squares classifier | CPU seconds | accuracy | peak MB |\n|---|---|---|---|")
    for label, parameters in (("example 1, sigma and lambda given", {"sigma": 0.3, "reg_lambda": 0.01}),
                              ("example 1, chosen by cross-validation", {"sigmas": SIGMAS, "lambdas": LAMBDAS})):
        classifier = LeastSquaresProbabilisticClassifier(scale=None, random_state=0, **parameters)
        predicted, text, _ = timed(lambda c=classifier: c.fit(X, y).predict(X_test), repeats)
        print(f"| {label} | {text} | {np.mean(predicted == y_test):.3f} | |")
    with tempfile.TemporaryDirectory(prefix="linadd-bench-") as made:
        path = Path(made) / "rows.h5"
        with h5py.File(path, "w") as file:
            rows = file.create_dataset("X", (n_rows, 20), np.float32, chunks=(n_rows // 50, 20))
            labels = file.create_dataset("y", (n_rows,), np.int64)
            for start in range(0, n_rows, n_rows // 10):
                part = np.random.default_rng(start).normal(size=(n_rows // 10, 20)).astype(np.float32)
                rows[start : start + len(part)] = part
                labels[start : start + len(part)] = part[:, 0] + part[:, 1] ** 2 > 0.5
        before = peak_memory_bytes() / 1e6
        # Centres are counted a class.
        classifier = LeastSquaresProbabilisticClassifier(sigma=3.0, reg_lambda=1e-4, max_centers=n_centers // 2,
                                                         random_state=0)
        model, text, _ = timed(lambda: classifier.fit(path), 1)
        assert sum(map(len, model.centers_)) == n_centers
        print(f"| {n_rows:,} x 20 streamed, {n_centers} centres | {text} | | {peak_memory_bytes() / 1e6:.0f} "
              f"({before:.0f} before) |")


def bench_online(folder, quick):
    """EP sweeps to convergence on one class of USPS, or on generated rows."""
    n, budget = (300, 10) if quick else (None, 100)
    if folder is None:
        X, y, _, _ = load(None, None, n or 7291, 10)
    else:
        with np.load(folder / "usps.npz") as data:
            X, y = data["X_train"][:n].astype(float), data["y_train"][:n]
        y = y == y[0]
    classifier = SparseOnlineGPClassifier(RBF(10.0, 8.0), max_basis=budget, max_sweeps=60, scale=None, random_state=0)
    model, text, _ = timed(lambda: classifier.fit(X, y), 1 if quick else 3)
    print(f"\n| online GP, one class, budget {budget} | CPU seconds | sweeps |\n|---|---|---|\n"
          f"| {len(X):,} rows | {text} | {model.n_sweeps_} |")


BENCHES = {"inner": bench_inner, "ivm": bench_ivm, "chosen": bench_chosen, "gpc": bench_gpc, "large": bench_large,
           "lspc": bench_lspc, "online": bench_online}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the shared data sets; without it generated rows")
    parser.add_argument("--only", nargs="+", choices=BENCHES, default=list(BENCHES))
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    arguments = parser.parse_args()
    print(f"{measuring.machine('scipy', 'scikit-learn')}; load {os.getloadavg()[0]:.1f}")
    for name in arguments.only:
        BENCHES[name](arguments.data, arguments.quick)


if __name__ == "__main__":
    main()
