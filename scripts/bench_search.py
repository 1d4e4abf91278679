"""What a search shares: values of C on one stream, settings of a grid on the same reads, C in turn with warm starts.

    python scripts/bench_search.py --data FOLDER [--sets ijcnn1] [--losses squared_hinge] [--rows 10000] [--json]

path      20 values of C by `search`, one fold held out, against one training of the same number of passes. Bars: 6
          times its time, 1 times its reads (of the passes: the search reads once more to score, and for a certificate
          whenever half of the outputs may be done).
grid      n_bins 5, 10, 20 and 10 values of C by one search, against the sum of three.
in turn   the 20 values of C one after the other, each from the duals of the last, against one stream.

The first two in memory and out of core. Data as in `bench_passes.py`, the first --rows of them. CPU seconds are those
of the process: only their ratios in one run mean anything.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from bench_passes import DATA
from measuring import machine

from linadd.errors import ConvergenceWarning, DataWarning
from linadd.options import Options
from linadd.search import search
from linadd.sources import open_source
from linadd.train import train

LOSSES = ("squared_hinge", "logistic", "hinge")
N_BINS = [5, 10, 20]
ROW = (
    "{data:12s} {loss:14s} {what:8s} {memory_limit:11,d} {seconds:8.2f} s {base:8.2f} s {ratio:6.2f}  "
    "{reads:5d} {base_reads:5d}  {gap:.1e}"
)


def timed(function, *args, **choices):
    """(what it returns, CPU seconds)."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is printed
        warnings.simplefilter("ignore", DataWarning)  # covertype has a constant feature
        return function(*args, **choices), time.process_time() - start


def record(what, found, seconds, base_reads, base):
    """A row of the table."""
    return {
        "what": what, "seconds": seconds, "base": base, "ratio": seconds / base, "reads": found.reads,
        "base_reads": base_reads, "gap": max(row["gap"] for row in found.table),
    }  # fmt: skip


def path(source, options, costs):
    """20 values of C against one training of as many passes."""
    found, seconds = timed(search, source, options, costs, 1)
    n_passes = max(row["passes"] for row in found.table)
    own = Options(**options.record() | {"C": 1.0, "tol": 1e-300, "max_epochs": n_passes})
    model, base = timed(train, source, own)
    if model.summary["passes"] != n_passes:
        raise AssertionError(f"{model.summary['passes']} passes of one training, {n_passes} of the search")
    return record("path", found, seconds, model.summary["reads"], base)


def grid(source, options, costs):
    """Three values of n_bins in one search against three searches, whose figures must be the same within tol."""
    alone = [timed(search, source, Options(**options.record() | {"n_bins": n}), costs, 1) for n in N_BINS]
    found, seconds = timed(search, source, options, costs, 1, {"n_bins": N_BINS})
    tables = [row for each, _ in alone for row in each.table]
    for row, other in zip(found.table, tables, strict=True):
        if (row["C"], row["n_bins"]) != (other["C"], other["n_bins"]) or abs(row["error"] - other["error"]) > 0.01:
            raise AssertionError(f"C {row['C']:g}, n_bins {row['n_bins']}: {row['error']:.4f}, {other['error']:.4f}")
    return record("grid", found, seconds, sum(each.reads for each, _ in alone), sum(own for _, own in alone))


def in_turn(source, options, costs):
    """Values of C one after the other, against one stream."""
    stream, base = timed(search, source, options, costs, 1)
    found, seconds = timed(search, source, options, costs, 1, sequential=True)
    return record("in turn", found, seconds, stream.reads, base)


def parse(arguments):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--sets", nargs="+", default=["ijcnn1"], choices=DATA)
    parser.add_argument("--losses", nargs="+", default=list(LOSSES), choices=LOSSES)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--max-epochs", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Run the benchmark and print its table."""
    choices, records = parse(arguments), []
    path_costs, grid_costs = np.logspace(-2, 1, 20).tolist(), np.logspace(-2, 1, 10).tolist()
    if not choices.json:
        print(machine())
        print(f"{'data':12s} {'loss':14s} {'what':8s} {'limit':>11s} {'CPU':>10s} {'against':>10s}  ratio  reads")
    for name in choices.sets:
        file, load = DATA[name]
        if not (choices.data / file).exists():
            print(f"{name}: no {choices.data / file}", file=sys.stderr)
            continue
        X, y = (rows[: choices.rows] for rows in load(choices.data / file))
        source = open_source(X, y)
        for loss in choices.losses:
            options = Options(loss=loss, solver="dual-cd", max_epochs=choices.max_epochs)
            # Half of the limit holds rows, here three quarters of them: so they are read in every pass.
            small = Options(**options.record() | {"memory_limit": int(1.5 * 4 * X.size)})
            timed(search, source, options, path_costs[:1], 1)  # compiled
            timed(search, source, small, path_costs[:2], 1)
            for one, own, costs in (
                (path, options, path_costs), (path, small, path_costs), (grid, options, grid_costs),
                (grid, small, grid_costs), (in_turn, options, path_costs),
            ):  # fmt: skip
                row = {"data": name, "loss": loss, "memory_limit": own.memory_limit} | one(source, own, costs)
                records.append(row)
                if not choices.json:
                    print(ROW.format(**row), flush=True)
    if choices.json:
        print(json.dumps(records))


if __name__ == "__main__":
    main()
