"""Reading: linadd's sources against the libraries that own the formats, and the libsvm parser against scikit-learn's.

    python scripts/bench_io.py [--megabytes 64] [--features 100] [--repeats 5] [--json]

Each format holds the same float32 table. Its own library reads it in the same ranges of rows into arrays, linadd's
source reads them as chunks; the values are compared before the times are taken. libsvm text is parsed whole: when it is
opened, and when its rows are read. Times are CPU seconds of the process, all its threads; a ratio is the library's time
over linadd's, so that 1 is as fast as the library. Bars: 0.8, for libsvm text 1.5 times scikit-learn's speed.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np
import pyarrow.parquet
import zarr
from measuring import machine, ratio, spread, timed
from sklearn.datasets import load_svmlight_file

from linadd.sources import open_source

BARS = {"libsvm": 1.5}  # of the others 0.8
GROUP_ROWS = 20_000  # of Parquet
TEXT_SHARE = 8  # libsvm text has this part of the rows


def write_hdf5(path, X, **layout):
    """Row chunks of 1000 rows, which `linadd convert` writes too."""
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(min(1000, len(X)), X.shape[1]), **layout)


def hdf5_reader(path):
    """h5py, the file staying open."""
    dataset = h5py.File(path, "r")["X"]
    return lambda start, stop: dataset[start:stop]


def npy_reader(path):
    """numpy.load with a memory map, whose rows are copied."""
    table = np.load(path, mmap_mode="r")
    return lambda start, stop: np.array(table[start:stop])


def write_zarr(path, X, zarr_format):
    """Row chunks of 1000 rows, with the codec that is zarr's default."""
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    group.create_array("X", data=X, chunks=(min(1000, len(X)), X.shape[1]))


def zarr_reader(path):
    """zarr, the array staying open."""
    array = zarr.open_group(path, mode="r")["X"]
    return lambda start, stop: array[start:stop]


def write_parquet(path, X):
    """Row groups of GROUP_ROWS rows."""
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=GROUP_ROWS)


def parquet_reader(path):
    """pyarrow, the row groups of a range as a table, cut, and copied to an array of whole rows."""

    def read(start, stop):
        with pyarrow.parquet.ParquetFile(path) as file:
            groups = range(start // GROUP_ROWS, -(-stop // GROUP_ROWS))
            table = file.read_row_groups(groups, use_threads=False)
        table = table.slice(start - GROUP_ROWS * groups[0], stop - start)
        return np.column_stack([column.to_numpy() for column in table.columns])

    return read


FORMATS = {
    "hdf5": (".h5", write_hdf5, hdf5_reader),
    "hdf5 lz4": (".h5", lambda path, X: write_hdf5(path, X, **hdf5plugin.Bitshuffle()), hdf5_reader),
    "npy": (".npy", np.save, npy_reader),
    "zarr 2": (".zarr", lambda path, X: write_zarr(path, X, 2), zarr_reader),
    "zarr 3": (".zarr", lambda path, X: write_zarr(path, X, 3), zarr_reader),
    "parquet": (".parquet", write_parquet, parquet_reader),
}


def compare(name, folder, X, repeats):
    """Times of a format's own library and of linadd over all rows, in linadd's reader chunks."""
    suffix, write, reader = FORMATS[name]
    path = folder / f"{name.replace(' ', '_')}{suffix}"
    write(path, X)
    source, read = open_source(path), reader(path)
    bounds = [(start, min(start + source.chunk_rows, len(X))) for start in range(0, len(X), source.chunk_rows)]
    for start, stop in bounds:
        np.testing.assert_array_equal(source.read(start, stop).X, X[start:stop])
        np.testing.assert_array_equal(read(start, stop), X[start:stop])

    def run(function):
        for start, stop in bounds:
            function(start, stop)

    return alternate(lambda: run(read), lambda: run(source.read), repeats)


def alternate(library, linadd, repeats):
    """CPU times of two functions, called in turn."""
    pairs = [(timed(library, 1, time.process_time)[1], timed(linadd, 1, time.process_time)[1]) for _ in range(repeats)]
    return [own[0] for own, _ in pairs], [ours[0] for _, ours in pairs]


def write_text(path, X):
    """libsvm text of a dense table, nine significant digits, which tell float32 numbers apart."""
    with open(path, "w") as file:
        for i, row in enumerate(X.tolist()):
            file.write(f"{i % 2} " + " ".join(f"{j}:{value:.9g}" for j, value in enumerate(row, 1)) + "\n")


def compare_text(folder, X, repeats):
    """Times of scikit-learn's loader and of opening and reading libsvm text, and the parser's bytes a second."""
    path = folder / "rows.svm"
    write_text(path, X)
    source = open_source(path)
    (own, y), chunk = load_svmlight_file(str(path)), source.read(0, len(X))
    assert (own != chunk.X).nnz == 0 and (y == chunk.y).all()
    np.testing.assert_array_equal(chunk.X.toarray().astype(np.float32), X)

    def both():
        opened = open_source(path)
        return opened.read(0, opened.n_rows)

    times = alternate(lambda: load_svmlight_file(str(path)), both, repeats)
    size = path.stat().st_size
    parsing = [timed(lambda: open_source(path), 1)[1][0] for _ in range(repeats)]
    reading = [timed(lambda: source.read(0, len(X)), 1)[1][0] for _ in range(repeats)]
    rates = {"opening": size / np.median(parsing) / 1e6, "reading": size / np.median(reading) / 1e6}
    return times, rates


def parse(arguments):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=float, default=64, help="size of the table")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Run the benchmark and print its table."""
    choices = parse(arguments)
    n_rows = max(TEXT_SHARE, int(choices.megabytes * 1e6 / 4 / choices.features))
    X = np.random.default_rng(0).standard_normal((n_rows, choices.features)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        times = {name: compare(name, Path(folder), X, choices.repeats) for name in FORMATS}
        times["libsvm"], rates = compare_text(Path(folder), X[: n_rows // TEXT_SHARE], choices.repeats)
    report = {
        name: {"library": own, "linadd": ours, "ratio": ratio(own, ours), "bar": BARS.get(name, 0.8)}
        for name, (own, ours) in times.items()
    }
    report["libsvm"]["megabytes_per_second"] = rates
    if choices.json:
        print(json.dumps(report))
        return
    print(machine("h5py", "zarr", "pyarrow", "scikit-learn"))
    print(f"{n_rows:,} rows of {choices.features} features, float32; libsvm text of {n_rows // TEXT_SHARE:,} rows")
    for name, record in report.items():
        own, ours = (spread(record[side], 1e3, "ms") for side in ("library", "linadd"))
        print(f"{name:9s} library {own:26s} linadd {ours:26s} ratio {record['ratio']:5.2f}, bar {record['bar']}")
    print("libsvm text, one thread: " + ", ".join(f"{what} {rate:.0f} MB/s" for what, rate in rates.items()))


if __name__ == "__main__":
    main()
