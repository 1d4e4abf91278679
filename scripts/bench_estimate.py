"""Estimates against runs: `linadd estimate` and `linadd train` of the same file and options, each a process of its own.

    python scripts/bench_estimate.py [--factor 1] [--repeats 3] [--json] [--folder DIR]

All data are synthetic, made in DIR and deleted after; --factor multiplies the rows. Bars: peak memory within 25 % of
the run's, seconds within a factor of 2 of the run's median. The machine should do nothing else. Runs of a second or two
are dominated by the loading of compiled code, which an estimate leaves out.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import h5py
import numpy as np
from measuring import child, machine, spread

PIECE_ROWS = 5000
# Name -> rows, features, classes, and options.
SHAPES = {
    "in memory": ((300_000, 100, 2), "--loss hinge"),
    "in blocks": ((300_000, 100, 2), "--loss hinge --memory-limit 100MB"),
    "newton": ((300_000, 60, 2), ""),
    "many classes": ((100_000, 50, 50), "--loss hinge"),
    "wide": ((5000, 5000, 2), "--loss hinge"),
    "sgd": ((300_000, 100, 2), "--solver sgd --max-epochs 10"),
}
MEMORY_BAR, TIME_BAR = 1.25, 2.0


def write(path, n_rows, n_features, n_classes):
    """A file of normal features and labels by the size of the first four."""
    rng, edges = np.random.default_rng(0), np.linspace(2, 4.5, n_classes - 1) if n_classes > 2 else [3.2]
    with h5py.File(path, "w") as file:
        X = file.create_dataset("X", (n_rows, n_features), np.float32)
        y = file.create_dataset("y", (n_rows,), np.int32)
        for start in range(0, n_rows, PIECE_ROWS):
            rows = slice(start, min(start + PIECE_ROWS, n_rows))
            X[rows] = piece = rng.standard_normal((rows.stop - start, n_features), np.float32)
            y[rows] = np.digitize(np.abs(piece[:, :4]).sum(axis=1) + 0.3 * rng.standard_normal(len(piece)), edges)


def linadd(*arguments):
    """The object that a command prints, in a process of its own."""
    return json.loads(child(["-m", "linadd", *arguments, "--json", "--quiet"], (0, 3))[0])


def compare(folder, shape, options, factor, repeats):
    """Figures of a shape: peak memory and seconds, foreseen and real."""
    (n_rows, n_features, n_classes), path = shape, folder / "rows.h5"
    write(path, int(factor * n_rows), n_features, n_classes)
    runs = [linadd("train", path, folder / "model", "--no-cache", *options.split()) for _ in range(repeats + 1)][1:]
    found = linadd("estimate", path, *options.split())
    real = {name: [run[name] for run in runs] for name in ("peak_memory_bytes", "seconds", "passes", "reads")}
    ratios = {name: found[name] / float(np.median(real[name])) for name in ("peak_memory_bytes", "seconds")}
    is_met = 1 / MEMORY_BAR < ratios["peak_memory_bytes"] < MEMORY_BAR and 1 / TIME_BAR < ratios["seconds"] < TIME_BAR
    return {"estimate": found, "real": real, "ratios": ratios, "is_met": is_met}


def report(name, figures):
    """A line for people."""
    found, real = figures["estimate"], figures["real"]
    memory = f"{found['peak_memory_bytes'] / 1e6:.0f} MB for {spread(real['peak_memory_bytes'], 1e-6, 'MB')}"
    seconds = f"{found['seconds']:.3g} s for {spread(real['seconds'])}"
    passes = f"{found['passes']} passes for {real['passes'][0]}"
    print(f"{name:<14}{memory:<40}{seconds:<36}{passes:<20}{'met' if figures['is_met'] else 'MISSED'}", flush=True)


def main(arguments=None):
    """Run; prints a table, or with --json one object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factor", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--folder")
    options = parser.parse_args(arguments)
    folder, figures = Path(tempfile.mkdtemp(prefix="linadd-", dir=options.folder)), {}
    try:
        if not options.json:
            print(machine("h5py"))
        for name in options.shapes.split(","):
            figures[name] = compare(folder, *SHAPES[name], options.factor, options.repeats)
            if not options.json:
                report(name, figures[name])
    finally:
        shutil.rmtree(folder)
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
