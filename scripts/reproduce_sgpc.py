"""Reproduce the experiments of Sundararajan and Shevade (arXiv 1206.6030) on the IDA benchmark sets.

    python scripts/reproduce_sgpc.py --data ../shared/data/ida --results results.jsonl --figure sgpc.png

Training sets are enlarged as in the paper, by the first test rows of each partition. Every fit appends one line to the
results file and is skipped when its line is there, so the script can be stopped and continued; the report is of the
lines that exist. `--quick` runs the whole of it on two small generated sets.
"""

import argparse
import json
import time
from itertools import combinations, product
from pathlib import Path

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

from linadd.sparse_kernel import SparseGPClassifier

# Rows moved from the test to the training set.
SETS = {"banana": 3600, "waveform": 3600, "twonorm": 3600, "ringnorm": 3600, "splice": 1000, "image": 0}
METHODS = {
    "random": {"selection": "random"},
    "adaptive 1": {"selection": "adaptive", "n_candidates": 1},
    "adaptive 2": {"selection": "adaptive", "n_candidates": 2},
    "entropy": {"selection": "entropy"},
    "information gain": {"selection": "information_gain"},
    "validation 59": {"selection": "validation"},
}
# Critical values of the two-tailed Bonferroni-Dunn test at 0.05 against a control (Demsar, JMLR 2006, table 5b).
BONFERRONI_DUNN = {2: 1.960, 3: 2.241, 4: 2.394, 5: 2.498, 6: 2.576}
MEASURES = {"error": "test error", "nlp": "test NLP"}


def ida_split(folder, name, partition):
    """(X_train, y_train, X_test, y_test) of the enlarged partition."""
    with np.load(folder / f"{name}.npz") as data:
        X, y = data["X"].astype(float), data["y"]
        train, test = data["train_idx"][partition], data["test_idx"][partition]
    train, test = np.concatenate([train, test[: SETS[name]]]), test[SETS[name] :]
    return X[train], y[train], X[test], y[test]


def toy_split(folder, name, partition):
    """Two generated sets for --quick: a class around the other ("ring"), and two classes side by side."""
    rng = np.random.default_rng([len(name), partition])
    y = rng.integers(2, size=300)
    X = rng.normal(size=(300, 2))
    X = X * (1 + y[:, None]) if name == "ring" else X + 2 * y[:, None]
    return X[:150], y[:150], X[150:], y[150:]


def run(split, name, partition, n_basis, method, max_outer_iter):
    """Fit one model; return its line of the results file."""
    X, y, X_test, y_test = split(name, partition)
    started = time.process_time()
    model = SparseGPClassifier(n_basis=n_basis, max_outer_iter=max_outer_iter, random_state=partition,
                               **METHODS[method]).fit(X, y)
    seconds = time.process_time() - started
    proba = model.predict_proba(X_test)
    p_true = proba[np.arange(len(y_test)), np.searchsorted(model.classes_, y_test)]
    return {"set": name, "partition": partition, "n_basis": n_basis, "method": method, "outer": max_outer_iter,
            "error": float(np.mean(model.classes_[proba.argmax(axis=1)] != y_test)),
            "nlp": float(-np.mean(np.log(np.clip(p_true, 1e-12, None)))), "train_nlp": float(model.nlp_),
            "log_variance": float(np.log(model.kernel_.variance)), "seconds": seconds}


def table(lines, measure, sets, sizes, partitions):
    """Values (n_sets, n_sizes, n_methods, n_partitions) of a measure, NaN where a fit is missing."""
    values = np.full((len(sets), len(sizes), len(METHODS), len(partitions)), np.nan)
    methods = list(METHODS)
    for line in lines:
        if line["set"] in sets and line["n_basis"] in sizes and line["partition"] in partitions:
            values[sets.index(line["set"]), sizes.index(line["n_basis"]), methods.index(line["method"]),
                   partitions.index(line["partition"])] = line[measure]
    return values


def print_means(values, sets, sizes, title):
    """Markdown table of means and standard errors over the partitions that every method has."""
    print(f"\n{title} (mean ± standard error)\n\n| set | d_max | n | " + " | ".join(METHODS) + " |")
    print("|---|---|---|" + "---|" * len(METHODS))
    for s, name in enumerate(sets):
        for k, size in enumerate(sizes):
            complete = values[s, k][:, ~np.isnan(values[s, k]).any(axis=0)]
            n = complete.shape[1]
            if n < 2:
                continue
            mean, error = complete.mean(axis=1), complete.std(axis=1, ddof=1) / np.sqrt(n)
            cells = [f"**{m:.4f}** ± {e:.4f}" if m == mean.min() else f"{m:.4f} ± {e:.4f}"
                     for m, e in zip(mean, error, strict=True)]
            print(f"| {name} | {size} | {n} | " + " | ".join(cells) + " |")


def print_wilcoxon(values, sets, sizes, title):
    """One-sided Wilcoxon tests over partitions: in how many sets the first method is better than the second."""
    methods = list(METHODS)
    pairs = [(a, b) for a, b in combinations(range(len(methods)), 2) if a in (1, 2) or b in (1, 2)]
    print(f"\n{title}: sets where a method is better at p <= 0.05 (one-sided Wilcoxon over partitions)\n\n| pair | "
          + " | ".join(f"d_max {size}" for size in sizes) + " |\n|---|" + "---|" * len(sizes))
    for a, b in pairs:
        cells = []
        for k in range(len(sizes)):
            first, second = [], []
            for s, name in enumerate(sets):
                x, y = values[s, k, a], values[s, k, b]
                both = ~np.isnan(x) & ~np.isnan(y)
                if both.sum() < 5 or np.all(x[both] == y[both]):
                    continue
                for better, tail in ((first, "less"), (second, "greater")):
                    if wilcoxon(x[both], y[both], alternative=tail).pvalue <= 0.05:
                        better.append(name)
            cells.append(f"{len(first)} : {len(second)}")
        print(f"| {methods[a]} : {methods[b]} | " + " | ".join(cells) + " |")


def print_ranks(values, sizes, title):
    """Friedman test of the means over sets and the Bonferroni-Dunn difference against adaptive 1."""
    methods = list(METHODS)
    print(f"\n{title}: mean ranks over sets; Friedman test; Bonferroni-Dunn distance to adaptive 1\n\n| d_max | sets | "
          + " | ".join(methods) + " | Friedman p | distance |\n|---|---|" + "---|" * (len(methods) + 2))
    for k, size in enumerate(sizes):
        complete = ~np.isnan(values[:, k]).any(axis=1)
        means = np.array([values[s, k][:, complete[s]].mean(axis=1) for s in range(len(values)) if complete[s].any()])
        if len(means) < 2:
            continue
        ranks = rankdata(means, axis=1).mean(axis=0)
        distance = BONFERRONI_DUNN[len(methods)] * np.sqrt(len(methods) * (len(methods) + 1) / (6 * len(means)))
        p = friedmanchisquare(*means.T).pvalue
        cells = [f"{rank:.2f}" for rank in ranks] + [f"{p:.3f}", f"{distance:.2f}"]
        print(f"| {size} | {len(means)} | " + " | ".join(cells) + " |")


def draw(tables, sets, sizes, path):
    """The paper's form: a column a set, error above and NLP below, against d_max."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(sets), figsize=(2.6 * len(sets), 4.8), squeeze=False, sharex=True)
    for row, measure in enumerate(MEASURES):
        for column, name in enumerate(sets):
            axis = axes[row, column]
            for m, method in enumerate(METHODS):
                mean = [np.nanmean(v) if np.any(~np.isnan(v)) else np.nan for v in tables[measure][column, :, m]]
                axis.plot(sizes, mean, marker="o", markersize=3, linewidth=1, label=method)
            axis.set_xscale("log", base=2)
            axis.set_xticks(sizes, [str(size) for size in sizes])
            axis.tick_params(labelsize=7)
            axis.set_title(name if row == 0 else "", fontsize=9)
        axes[row, 0].set_ylabel(MEASURES[measure], fontsize=8)
    figure.supxlabel("basis vectors d_max", fontsize=8)
    entries = axes[0, 0].get_legend_handles_labels()
    figure.legend(*entries, loc="upper center", ncols=len(METHODS), fontsize=7, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def report(lines, sets, sizes, partitions, figure):
    """Print every table of the results and draw the figure."""
    tables = {measure: table(lines, measure, sets, sizes, partitions) for measure in MEASURES}
    for measure, title in MEASURES.items():
        print_means(tables[measure], sets, sizes, title)
        print_wilcoxon(tables[measure], sets, sizes, title)
        print_ranks(tables[measure], sizes, title)
    seconds = table(lines, "seconds", sets, sizes, partitions)
    print("\nCPU seconds a fit, mean over sets and partitions\n\n| d_max | " + " | ".join(METHODS) + " |\n|---|"
          + "---|" * len(METHODS))
    for k, size in enumerate(sizes):
        means = [np.nanmean(v) if np.any(~np.isnan(v)) else np.nan for v in seconds[:, k].transpose(1, 0, 2)]
        print(f"| {size} | " + " | ".join(f"{mean:.1f}" for mean in means) + " |")
    if figure:
        draw(tables, sets, sizes, figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the IDA sets (*.npz)")
    parser.add_argument("--results", type=Path, required=True, help="JSON lines, one a fit; continued if it exists")
    parser.add_argument("--figure", type=Path, help="PNG to draw")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[40, 80, 160, 320])
    parser.add_argument("--partitions", type=int, default=5)
    parser.add_argument("--outer", type=int, default=20, help="rebuilds of the basis, the paper: 20")
    parser.add_argument("--report-only", action="store_true", help="fit nothing")
    parser.add_argument("--quick", action="store_true", help="two small generated sets instead of --data")
    arguments = parser.parse_args()
    sets, sizes, partitions = arguments.sets, arguments.sizes, list(range(arguments.partitions))
    loader = ida_split
    if arguments.quick:
        sets, sizes, partitions, loader = ["ring", "two"], [4, 8], [0, 1], toy_split
    elif not arguments.report_only and arguments.data is None:
        parser.error("--data is needed: the folder of the IDA sets, or --quick")
    lines = []
    if arguments.results.exists():
        lines = [json.loads(line) for line in arguments.results.read_text().splitlines()]
        lines = [line for line in lines if line["outer"] == arguments.outer]
    done = {(line["set"], line["partition"], line["n_basis"], line["method"]) for line in lines}
    wanted = [] if arguments.report_only else product(sizes, partitions, sets, METHODS)
    for size, partition, name, method in wanted:
        if (name, partition, size, method) in done:
            continue
        line = run(lambda *key: loader(arguments.data, *key), name, partition, size, method, arguments.outer)
        lines.append(line)
        with arguments.results.open("a") as file:
            file.write(json.dumps(line) + "\n")
    report(lines, sets, sizes, partitions, arguments.figure)


if __name__ == "__main__":
    main()
