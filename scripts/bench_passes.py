"""Passes over the file to a certified gap: loss x data set x C, a block holding a tenth of the rows.

    python scripts/bench_passes.py --data FOLDER [--solver dual-cd] [--C 1,10,100] [--in-memory] [--json]

FOLDER holds some of `daimler.h5` (of `python data_prep/daimler.py`), `ijcnn1.npz` and `covertype_397k.npz`; a data set
whose file is absent is left out, and said so. Rows: pedestrians, training parts 1 and 2; ijcnn1, the training file;
covertype, class 2 against the rest, the first 60,000 of `train_idx`. Linear splines of 10 bins, D_1. CPU seconds are
those of the process, census and certificates included: only their ratios in one run mean anything.
"""

import argparse
import json
import sys
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from measuring import machine

from linadd.errors import ConvergenceWarning, DataWarning
from linadd.options import Options
from linadd.sources import open_source
from linadd.train import train

LOSSES = ("squared_hinge", "logistic", "hinge")
# Of the bytes of all rows at 4 bytes a value: half of the limit holds rows, a hundredth more than a tenth of them.
TENTH = 2 * 0.101
ROW = "{data:12s} {loss:14s} {C:5g} {solver:>8s} {passes:6d} {reads:5d}  {gap:9.1e} {cpu_seconds:6.2f}  {objective:.6g}"


def pedestrians(path):
    """Rows of the training parts 1 and 2."""
    chunks = list(open_source(path, group="train", where={"part": ["1", "2"]}).chunks())
    return np.concatenate([chunk.dense() for chunk in chunks]), np.concatenate([chunk.y for chunk in chunks])


def ijcnn1(path):
    """Rows of the training file."""
    with np.load(path) as data:
        return data["X_train"], data["y_train"]


def covertype(path):
    """Rows of class 2 against the rest."""
    with np.load(path) as data:
        rows = data["train_idx"][:60_000]
        return data["X"][rows].astype(np.float32), data["y"][rows] == 2


DATA = {
    "pedestrians": ("daimler.h5", pedestrians),
    "ijcnn1": ("ijcnn1.npz", ijcnn1),
    "covertype": ("covertype_397k.npz", covertype),
}


def measure(X, y, options):
    """Record of one training run."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is printed
        warnings.simplefilter("ignore", DataWarning)  # covertype has a constant feature
        summary = train(open_source(X, y), options).summary
    names = ("solver", "passes", "reads", "gap", "converged", "objective", "dual_objective")
    return {name: summary[name] for name in names} | {"cpu_seconds": time.process_time() - start}


def parse(arguments):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--sets", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--losses", nargs="+", default=list(LOSSES), choices=LOSSES)
    parser.add_argument("--C", nargs="+", type=float, default=[1.0, 10.0, 100.0])
    parser.add_argument("--solver", default="dual-cd")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--max-epochs", type=int, default=100)
    parser.add_argument("--in-memory", action="store_true", help="all rows in one block")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Run the benchmark and print its table."""
    choices, records = parse(arguments), []
    if not choices.json:
        print(machine())
        print(f"{'data':12s} {'loss':14s} {'C':>5s} {'solver':>8s} passes reads  certified  CPU s  objective")
    for name in choices.sets:
        file, load = DATA[name]
        if not (choices.data / file).exists():
            print(f"{name}: no {choices.data / file}", file=sys.stderr)
            continue
        X, y = load(choices.data / file)
        limit = 10**10 if choices.in_memory else int(TENTH * 4 * X.size)
        for loss, C in product(choices.losses, choices.C):
            own = {"solver": choices.solver, "tol": choices.tol, "max_epochs": choices.max_epochs}
            options = Options(loss=loss, C=C, memory_limit=limit, **own)
            record = {"data": name, "loss": loss, "C": C} | measure(X, y, options)
            records.append(record)
            if not choices.json:
                print(ROW.format(**record), flush=True)
    if choices.json:
        print(json.dumps(records))


if __name__ == "__main__":
    main()
