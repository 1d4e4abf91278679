"""Out of core: a pass against reading and arithmetic alone, resident memory at any file size, and time against rows.

    python scripts/bench_out_of_core.py [--gigabytes 20] [--rows 100000] [--most-rows 10000000] [--json] [--quick]
                                        [--parts pass,memory,scaling] [--folder DIR]

All data are synthetic, made by the script in DIR and deleted after. Bars:

pass      A pass over a file (plain and lz4 HDF5) takes at most 1.25 times the longer of reading the same training
          chunks alone and the same pass over an array in memory. By the wall, since reading runs beside the
          arithmetic; CPU times beside it. Models of file and array must have the same digest.
memory    `linadd train --memory-limit 500MB` on the file of --gigabytes stays within 550 MB above the same command on
          its first 100 rows, each a process of its own.
scaling   Time from a tenth to ten times as many rows, streamed from a generator: the slope of log time on log rows is
          1.00 +- 0.05. Passes, solver and partial solutions are fixed by options.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
import warnings
from collections import deque
from functools import partial
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
from measuring import child, machine, spread, timed

from linadd.chunks import Chunk
from linadd.errors import ConvergenceWarning
from linadd.options import Options
from linadd.solvers.plan import make_plan
from linadd.sources import open_source
from linadd.sources.base import Source
from linadd.train import Progress, train

FEATURES = 656
PIECE_ROWS = 1000
PASSES = 5
CODECS = {"plain HDF5": {}, "lz4 HDF5": dict(hdf5plugin.LZ4())}
FIXED = {"loss": "squared_hinge", "knots": "uniform", "solver": "dual-cd", "partial_solutions": 2, "tol": 1e-12}


class Synthetic(Source):
    """Rows drawn as they are read, the same for any reading: piece k of PIECE_ROWS rows has a generator of its own.

    Parameters
    ----------
    n_rows, n_features : int
        Shape; values of two decimals, float32.
    """

    kind = "synthetic"
    has_labels = True

    def __init__(self, n_rows, n_features):
        self.n_rows, self.n_features, self.origin = n_rows, n_features, "synthetic"
        self.dtype, self.chunk_rows = np.dtype(np.float32), 8 * PIECE_ROWS

    def piece(self, k):
        """Rows and labels of piece k."""
        rng = np.random.default_rng([0, k])
        X = rng.integers(0, 100, (PIECE_ROWS, self.n_features), np.uint8).astype(np.float32)
        X /= 100
        score = np.abs(X[:, :5] - 0.5).sum(axis=1) + 0.3 * rng.standard_normal(PIECE_ROWS, np.float32)
        return X, (score > 1.25).astype(np.int8)

    def _read(self, start, stop):
        first = start // PIECE_ROWS
        pieces = [self.piece(k) for k in range(first, -(-stop // PIECE_ROWS))]
        X, y = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        own = slice(start - first * PIECE_ROWS, stop - first * PIECE_ROWS)
        return Chunk(X[own], y[own], None, start, self.origin)

    def fingerprint(self):
        """Its shape."""
        return {"synthetic": [self.n_rows, self.n_features]}


class Clock(Progress):
    """Times at the ends of the passes."""

    def __init__(self):
        self.walls, self.cpus = [], []

    def epoch(self, record):
        """Note the time."""
        self.walls.append(time.perf_counter())
        self.cpus.append(time.process_time())


def write(path, source, codec, n_rows=None):
    """Write the first rows of a source as HDF5 in chunks of PIECE_ROWS; returns bytes of the features."""
    n_rows = n_rows or source.n_rows
    with h5py.File(path, "w") as file:
        layout = (min(PIECE_ROWS, n_rows), source.n_features)
        X = file.create_dataset("X", (n_rows, source.n_features), "f4", chunks=layout, **codec)
        y = file.create_dataset("y", (n_rows,), "i1")
        for start in range(0, n_rows, PIECE_ROWS):
            rows = slice(start, min(start + PIECE_ROWS, n_rows))
            X[rows], y[rows] = (part[: rows.stop - start] for part in source.piece(start // PIECE_ROWS))
    return n_rows * source.n_features * 4


def passes(source, limit):
    """(model, seconds of each pass but the first by the wall, by the CPU); no certificate falls between them."""
    clock = Clock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the tolerance is out of reach on purpose
        model = train(source, Options(memory_limit=limit, max_epochs=PASSES, n_jobs=1, **FIXED), clock)
    return model, np.diff(clock.walls)[:-1].tolist(), np.diff(clock.cpus)[:-1].tolist()


def of_pass(n_rows, folder, repeats):
    """{way: figures} of a pass over an array, and over files beside reading alone."""
    rows = Synthetic(n_rows, FEATURES)
    held = rows.read(0, n_rows)
    limit = n_rows * FEATURES  # half of it holds an eighth of the rows, and a block is a tenth
    plan = make_plan(n_rows, FEATURES, limit)
    train(open_source(held.X[:2000], held.y[:2000]), Options(max_epochs=1, **FIXED | {"tol": 1.0}))  # compile
    model, walls, cpus = passes(open_source(held.X, held.y), limit)
    report = {"array": {"wall": walls, "cpu": cpus}}
    for name, codec in CODECS.items():
        path = folder / "rows.h5"
        write(path, rows, codec)
        source = open_source(path)

        def read(source=source):
            for group in plan.blocks(1):
                for chunk in group:
                    source.read(*plan.chunk_bounds(int(chunk)))

        _, reading = timed(read, repeats, time.perf_counter)
        found, walls_file, cpus_file = passes(source, limit)
        assert found.digest == model.digest, "the file gave another model than the array"
        bound = max(np.median(reading), np.median(walls))
        report[name] = {
            "reading": reading, "wall": walls_file, "cpu": cpus_file, "ratio": float(np.median(walls_file) / bound),
            "cpu_ratio": float(np.median(cpus_file) / np.median(cpus)), "bytes": path.stat().st_size,
        }  # fmt: skip
        path.unlink()
    return report


def of_memory(gigabytes, folder):
    """Bytes of the file, and resident memory of training on it above that on 100 rows."""
    n_rows = int(gigabytes * 1e9) // (4 * FEATURES)
    needed, free = gigabytes * 1e9 * 1.02, shutil.disk_usage(folder).free
    if free < needed:
        raise SystemExit(f"{folder}: {free / 1e9:.0f} GB are free; the file takes {needed / 1e9:.0f}. Give --folder.")
    rows, peaks = Synthetic(n_rows, FEATURES), {}
    for name, count in (("100 rows", 100), ("all rows", n_rows)):
        path = folder / "big.h5"
        n_bytes = write(path, rows, {}, count)
        command = ["-m", "linadd", "train", path, folder / "m.safetensors", "--memory-limit", "500MB", "--max-epochs",
                   1, "--solver", "dual-cd", "--knots", "uniform", "--json", "--quiet"]  # fmt: skip
        printed, cpu, wall = child(command, code=(0, 3))
        peaks[name] = json.loads(printed)["peak_memory_bytes"]
        path.unlink()
    return {
        "n_rows": n_rows, "bytes": n_bytes, "peak": peaks, "above": peaks["all rows"] - peaks["100 rows"],
        "cpu": cpu, "wall": wall,
    }  # fmt: skip


def of_scaling(most_rows, repeats):
    """{rows: CPU seconds of training, of drawing the rows}, and the slope of log time on log rows."""
    limit = 4 * 10 * (most_rows // 100)  # half of the rows of the smallest would fit
    options = Options(memory_limit=limit, training_chunk=250, max_epochs=2, **FIXED)
    times = {}
    for n_rows in (most_rows // 100, most_rows // 10, most_rows):
        source = Synthetic(n_rows, 10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            calls = repeats if n_rows < most_rows else 1
            model, seconds = timed(partial(train, source, options), calls, time.process_time)
        assert model.summary["passes"] == 2 and not model.summary["plan"]["fits"]
        _, drawing = timed(partial(deque, source.chunks(), maxlen=0), 1, time.process_time)
        reads = model.summary["reads"]
        times[n_rows] = [s - reads * drawing[0] for s in seconds]
    rows = np.array(list(times))
    slope = np.polyfit(np.log(rows), np.log([np.median(times[n]) for n in rows]), 1)[0]
    return {"seconds": times, "slope": float(slope)}


def print_report(report):
    """The tables."""
    print(report["machine"])
    if "pass" in report:
        array = report["pass"].pop("array")
        print(f"{report['rows']:,} rows x {FEATURES}, a block of a tenth; over the array {spread(array['wall'])}, "
              f"CPU {spread(array['cpu'])}")  # fmt: skip
        for name, run in report["pass"].items():
            print(f"{name}: a pass {spread(run['wall'])}, CPU {spread(run['cpu'])}; reading alone "
                  f"{spread(run['reading'])}; {run['ratio']:.2f} of the longer (bar 1.25), CPU "
                  f"{run['cpu_ratio']:.2f} of the array's")  # fmt: skip
    if "memory" in report:
        run = report["memory"]
        print(f"memory: {run['bytes'] / 1e9:.1f} GB, {run['n_rows']:,} rows, limit 500 MB: peak "
              f"{run['peak']['all rows'] / 1e6:.0f} MB, {run['above'] / 1e6:.0f} MB above that of 100 rows (bar 550); "
              f"{run['wall']:.0f} s, CPU {run['cpu']:.0f} s")  # fmt: skip
    if "scaling" in report:
        for n_rows, seconds in report["scaling"]["seconds"].items():
            print(f"scaling: {n_rows:,} rows x 10, two passes, drawing the rows taken off: {spread(seconds)}")
        print(f"slope of log time on log rows: {report['scaling']['slope']:.3f} (bar 1.00 +- 0.05)")


def main(arguments=None):
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--rows", type=int, default=100_000, help="of the pass")
    parser.add_argument("--most-rows", type=int, default=10_000_000, help="of the scaling")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--parts", default="pass,memory,scaling")
    parser.add_argument("--folder", help="where the files are made; the temporary folder by default")
    parser.add_argument("--quick", action="store_true", help="a toy size: does the script still run?")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if options.quick:
        options.gigabytes, options.rows, options.most_rows, options.repeats = 0.004, 1500, 200_000, 1
    parts = options.parts.split(",")
    report = {"machine": machine("h5py", "dask"), "rows": options.rows}
    with tempfile.TemporaryDirectory(prefix="linadd-", dir=options.folder) as folder:
        if "pass" in parts:
            report["pass"] = of_pass(options.rows, Path(folder), options.repeats)
        if "memory" in parts:
            report["memory"] = of_memory(options.gigabytes, Path(folder))
    if "scaling" in parts:
        report["scaling"] = of_scaling(options.most_rows, options.repeats)
    if options.json:
        json.dump(report, sys.stdout)
    else:
        print_report(report)


if __name__ == "__main__":
    main()
