"""Test AUC and CPU seconds of linadd and of other glass-box models on the same splits, as a table in Markdown.

    python scripts/bench_accuracy.py FOLDER [--data adult,ijcnn1,...] [--skip-ebm] [--rows N] [--json]

FOLDER holds adult.npz, ijcnn1.npz, magic_gamma.npz, credit_default.npz, covertype_397k.npz and a9a.npz. Splits:
official for adult (one-hot), ijcnn1 and a9a; 13,000 / 6,020 rows of magic and 20,000 / 10,000 of credit default after
`default_rng(0).permutation`; covertype 2 against the rest on the first 60,000 of train_idx and 40,000 of test_idx.

linadd runs with its defaults, and by one `search` (the same grid for all sets, on the training rows alone): logistic
loss, GRID below, chosen by the AUC of 5 folds, refitted on all rows. Beside it: logistic regression on standardised
features, scikit-learn's splines with logistic regression, LightGBM of depth 1 and interpret-core's additive boosting
without interactions (the extra `bench`; minutes for the large sets: --skip-ebm). Target: adult 0.920 (stretch 0.929),
the others within 0.003 of the better booster. CPU time of the process and all its threads.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from measuring import machine, timed

from linadd.metrics import area_under_curve
from linadd.options import Options
from linadd.search import refit, search
from linadd.sources import open_source
from linadd.train import train

SETS = ("adult", "ijcnn1", "magic", "credit default", "covertype", "a9a")
FILES = {"magic": "magic_gamma", "credit default": "credit_default", "covertype": "covertype_397k"}
TRAINING_ROWS = {"magic": 13_000, "credit default": 20_000}  # of those that have no official split
GRID = {"n_bins": (10, 30, 100)}
COSTS = (1.0, 10.0, 100.0)  # times 5 folds: the 16 lanes of one group of outputs
TARGETS = {"adult": 0.920}
WARM_ROWS = 500  # fitted before the clock runs: linadd compiles, and the others load
SLACK = 0.003  # to the better booster, on the other sets


def load(folder, name, n_rows=None):
    """(X, y, X_test, y_test) of a set; y is 0 or 1. n_rows: so many training and test rows only."""
    archive = np.load(folder / f"{FILES.get(name, name)}.npz", allow_pickle=False)
    if "X_train" in archive:
        parts = [archive[key] for key in ("X_train", "y_train", "X_test", "y_test")]
    else:
        X, y = archive["X"], archive["y"]
        if name == "covertype":
            y = (y == 2).astype(np.uint8)
            train_rows, test_rows = archive["train_idx"][:60_000], archive["test_idx"][:40_000]
        else:
            order = np.random.default_rng(0).permutation(len(X))
            train_rows, test_rows = np.split(order, [TRAINING_ROWS[name]])
        parts = [X[train_rows], y[train_rows], X[test_rows], y[test_rows]]
    X, y, X_test, y_test = (part[:n_rows] for part in parts)
    return X.astype(np.float32), (y > 0).astype(int), X_test.astype(np.float32), (y_test > 0).astype(int)


def by_defaults(X, y):
    """linadd as it comes."""
    model = train(open_source(X, y))
    return lambda rows: model.decision_function(rows)[:, 0], {"gap": model.summary["gap"]}


def by_search(X, y):
    """linadd by one search."""
    source, options = open_source(X, y), Options(loss="logistic", tol=1e-2, knots="quantile")
    found = search(source, options, COSTS, grid=GRID, metric="auc")
    model = refit(source, found)
    return lambda rows: model.decision_function(rows)[:, 0], found.choice["best"] | {"gap": model.summary["gap"]}


def of_sklearn(*steps):
    """A fit of scikit-learn's estimators, one after the other."""

    def fit(X, y):
        from sklearn.pipeline import make_pipeline

        model = make_pipeline(*(step() for step in steps)).fit(X, y)
        scores = model.decision_function if hasattr(model, "decision_function") else None
        return scores or (lambda rows: model.predict_proba(rows)[:, 1]), {}

    return fit


def standard_scaler():
    """Unit deviation."""
    from sklearn.preprocessing import StandardScaler

    return StandardScaler()


def splines():
    """Linear splines of ten bins between quantiles, sparse."""
    from sklearn.preprocessing import SplineTransformer

    return SplineTransformer(n_knots=11, degree=1, knots="quantile", sparse_output=True)


def logistic_regression():
    """Of scikit-learn, C = 1."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def stumps():
    """LightGBM of depth 1."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(max_depth=1, num_leaves=2, n_estimators=1500, learning_rate=0.1, n_jobs=1, verbose=-1)


def boosting():
    """interpret-core's additive boosting without interactions, 4 bags."""
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(interactions=0, outer_bags=4, n_jobs=1, random_state=0)


BOOSTERS = ("LightGBM, depth 1", "additive boosting")
MODELS = {
    "linadd, defaults": by_defaults,
    "linadd, search": by_search,
    "logistic regression": of_sklearn(standard_scaler, logistic_regression),
    "splines + logistic regression": of_sklearn(splines, logistic_regression),
    BOOSTERS[0]: of_sklearn(stumps),
    BOOSTERS[1]: of_sklearn(boosting),
}


def measure(folder, name, models, n_rows):
    """{model: figures} on one set."""
    X, y, X_test, y_test = load(folder, name, n_rows)
    records = {}
    for label in models:
        MODELS[label](X[:WARM_ROWS], y[:WARM_ROWS])
        (scores, notes), seconds = timed(lambda fit=MODELS[label]: fit(X, y), 1, time.process_time)
        auc = area_under_curve(y_test == 1, np.asarray(scores(X_test), np.float64), np.ones(len(y_test)))
        records[label] = {"auc": float(auc), "seconds": seconds[0], **notes}
    boosters = [records[label]["auc"] for label in BOOSTERS if label in records]
    target = TARGETS.get(name, max(boosters) - SLACK if boosters else None)
    return {"n_rows": len(X), "n_features": X.shape[1], "models": records, "target": target}


def table(report, names, models):
    """The figures in Markdown, one set a column."""
    lines = ["| AUC (CPU seconds) | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for label in models:
        cells = (report["sets"][name]["models"][label] for name in names)
        lines.append(f"| {label} | " + " | ".join(f"{c['auc']:.4f} ({c['seconds']:.1f})" for c in cells) + " |")
    targets = (report["sets"][name]["target"] for name in names)
    lines.append("| target | " + " | ".join("" if t is None else f"{t:.4f}" for t in targets) + " |")
    chosen = (report["sets"][name]["models"]["linadd, search"] for name in names)
    lines.append("| chosen | " + " | ".join(", ".join(f"{k}={c[k]:g}" for k in ("C", *GRID)) for c in chosen) + " |")
    return "\n".join(lines)


def main(arguments=None):
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", default=",".join(SETS), help=f"of {', '.join(SETS)}")
    parser.add_argument("--skip-ebm", action="store_true", help="leave out interpret-core, which takes minutes")
    parser.add_argument("--skip-boosters", action="store_true", help="leave out interpret-core and LightGBM")
    parser.add_argument("--rows", type=int, help="so many training and test rows only: a quick look")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    skipped = BOOSTERS if options.skip_boosters else BOOSTERS[1:] * options.skip_ebm
    names, models = options.data.split(","), [label for label in MODELS if label not in skipped]
    warnings.simplefilter("ignore")  # constant features, iterations: the gaps are in the report
    report = {"machine": machine("scikit-learn", "lightgbm", "interpret-core"), "sets": {}}
    for name in names:
        report["sets"][name] = measure(options.folder, name, models, options.rows)
    if options.json:
        print(json.dumps(report))
        return
    print(report["machine"] + "\n\n" + table(report, names, models))


if __name__ == "__main__":
    main()
