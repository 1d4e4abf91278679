"""The sparse online GP on the IDA sets and USPS: error, NLP and size against the budget; EP sweeps against one pass.

    python scripts/reproduce_sparse_ep.py                  # all, about twenty minutes; tables as Markdown on stdout
    python scripts/reproduce_sparse_ep.py banana usps      # some of them
    python scripts/reproduce_sparse_ep.py --quick          # toy sizes, seconds: what the test suite runs

No figures are published for the algorithm. The reference is dense EP on the same rows and kernel; on the IDA sets the
kernel (an RBF on standardised features) maximises the evidence at a budget of 100 vectors, partition by partition. NLP
is the mean of -log P(label) on test rows, in nats. Dense EP is out of reach for USPS.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from linadd.sparse_kernel.expectation_propagation import dense_ep
from linadd.sparse_kernel.kernels import RBF
from linadd.sparse_kernel.probit import log_phi
from linadd.sparse_kernel.sparse_online_gp import SparseOnlineGPClassifier

DATA = Path(__file__).resolve().parents[1] / "../shared/data"
IDA_SETS = ("banana", "breast_cancer", "diabetis", "flare_solar", "german", "heart", "image", "ringnorm", "splice",
            "thyroid", "titanic", "twonorm", "waveform")
BUDGETS = (10, 20, 50, 100, 200)


def judge(classifier, X, y):
    """Error and NLP of a fitted classifier."""
    probability = classifier.predict_proba(X)
    column = np.searchsorted(classifier.classes_, y)
    return np.mean(probability.argmax(axis=1) != column), -np.log(probability[np.arange(len(y)), column]).mean()


def judge_dense(kernel, X, y, X_test, y_test):
    """Error and NLP of dense EP."""
    ep = dense_ep(kernel(X), y.astype(float), tol=1e-6)
    cross, root = kernel(X_test, X), np.sqrt(ep.tau)
    B = np.eye(len(X)) + root[:, None] * kernel(X) * root
    mean = cross @ (ep.eta - root * np.linalg.solve(B, root * (kernel(X) @ ep.eta)))
    half = np.linalg.solve(np.linalg.cholesky(B), root[:, None] * cross.T)
    z = y_test * mean / np.sqrt(1 + kernel.diag(X_test) - np.sum(half**2, axis=0))
    return np.mean(z <= 0), -log_phi(z).mean()


def online(kernel, budget, max_sweeps, seed=0, **options):
    """A classifier of the comparison."""
    return SparseOnlineGPClassifier(kernel=kernel, max_basis=budget, max_sweeps=max_sweeps, tol=1e-4, scale=None,
                                    random_state=seed, **options)


def summary(values):
    """Mean and standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.3f} ± {error:.3f}"


def run_ida(name, options):
    """Print the table of one IDA set; NLP by budget for the picture: {label: list}."""
    data = np.load(DATA / "ida" / f"{name}.npz")
    X, y = data["X"].astype(float), data["y"]
    n_partitions, budgets = (1, (5, 10)) if options.quick else (options.partitions, BUDGETS)
    results = {}
    for partition in range(n_partitions):
        train, test = (data[f"{part}_idx"][partition] for part in ("train", "test"))
        train = train[:100] if options.quick else train
        mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
        rows = (X - mean) / np.where(deviation > 0, deviation, 1.0)
        start = RBF(variance=5.0, length_scale=np.sqrt(X.shape[1]))
        searched = online(start, 10 if options.quick else 100, 30, optimize_hyperparameters=True)
        kernel = searched.fit(rows[train], y[train]).kernel_
        results.setdefault("dense", []).append(
            (*judge_dense(kernel, rows[train], y[train], rows[test], y[test]), len(train)))
        for budget in budgets:
            for label, max_sweeps in (("one pass", 1), ("EP", 60)):
                classifier = online(kernel, budget, max_sweeps, seed=partition).fit(rows[train], y[train])
                results.setdefault((budget, label), []).append(
                    (*judge(classifier, rows[test], y[test]), len(classifier.basis_indices_)))
    print(f"\n### {name}: {len(train)} training rows, {n_partitions} partitions\n")
    print("| budget | size | error, EP | error, one pass | NLP, EP | NLP, one pass |\n|---|---|---|---|---|---|")
    for budget in budgets:
        ep, one = (np.array(results[budget, label]).T for label in ("EP", "one pass"))
        print(f"| {budget} | {ep[2].mean():.0f} | {summary(ep[0])} | {summary(one[0])} | {summary(ep[1])} | "
              f"{summary(one[1])} |")
    dense = np.array(results["dense"]).T
    print(f"| dense EP | {dense[2].mean():.0f} | {summary(dense[0])} | | {summary(dense[1])} | |", flush=True)
    curves = {label: [np.mean([r[1] for r in results[b, label]]) for b in budgets] for label in ("one pass", "EP")}
    return budgets, curves, dense[1].mean()


def run_usps(options):
    """Ten classes, one latent function each; `bench_kernel.py --only online` times one class alone."""
    data = np.load(DATA / "usps.npz")
    n_rows, budgets = (300, (5, 10)) if options.quick else (None, (25, 50, 100, 200))
    X, y = data["X_train"][:n_rows].astype(float), data["y_train"][:n_rows]
    X_test, y_test = data["X_test"].astype(float), data["y_test"]
    kernel = RBF(variance=10.0, length_scale=8.0)
    print(f"\n### USPS: {len(X)} training rows, ten classes, pixels as they are, RBF(variance=10, length_scale=8)\n")
    print("| budget | error, EP | error, one pass | NLP, EP | NLP, one pass | CPU s, EP | CPU s, one pass |\n"
          "|---|---|---|---|---|---|---|")
    curves = {"one pass": [], "EP": []}
    for budget in budgets:
        cells = {}
        for label, max_sweeps in (("one pass", 1), ("EP", 60)):
            start = time.process_time()
            classifier = online(kernel, budget, max_sweeps).fit(X, y)
            seconds = time.process_time() - start
            cells[label] = (*judge(classifier, X_test, y_test), seconds)
            curves[label].append(cells[label][1])
        ep, one = cells["EP"], cells["one pass"]
        print(f"| {budget} | {ep[0]:.4f} | {one[0]:.4f} | {ep[1]:.3f} | {one[1]:.3f} | {ep[2]:.1f} | {one[2]:.1f} |",
              flush=True)
    return budgets, curves, None


def draw(results, path):
    """NLP against the budget, a panel a data set."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    n_columns = min(4, len(results))
    n_rows = -(-len(results) // n_columns)
    figure, axes = pyplot.subplots(n_rows, n_columns, figsize=(3 * n_columns, 2.4 * n_rows), layout="constrained",
                                   squeeze=False)
    for panel, (name, (budgets, curves, dense)) in zip(axes.flat, results.items(), strict=False):
        for label, values in curves.items():
            panel.plot(budgets, values, "o-", label=label, markersize=3)
        if dense is not None:
            panel.axhline(dense, color="grey", linestyle="--", label="dense EP")
        panel.set(title=name, xscale="log", xticks=budgets, xticklabels=budgets)
        panel.minorticks_off()
    for panel in list(axes.flat)[len(results):]:
        panel.axis("off")
    figure.supxlabel("budget of basis vectors")
    figure.supylabel("test NLP (nats)")
    axes[0, 0].legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main(arguments=None):
    """Run the data sets named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="NAME", help=f"of {', '.join((*IDA_SETS, 'usps'))}; default all")
    parser.add_argument("--partitions", type=int, default=5, help="partitions of each IDA set")
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="folder of the picture")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.sets) - {*IDA_SETS, "usps"})
    if unknown:
        parser.error(f"{unknown[0]!r} is not a data set. Choose from {', '.join((*IDA_SETS, 'usps'))}.")
    results = {name: run_usps(options) if name == "usps" else run_ida(name, options)
               for name in options.sets or (*IDA_SETS, "usps")}
    draw(results, options.out / "sparse_ep_budget.png")


if __name__ == "__main__":
    main()
