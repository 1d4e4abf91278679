"""Make the pictures of docs/gallery.md; every picture is one or two commands of linadd, printed as they run.

    python scripts/gallery.py [--out DIR] [--adult adult.npz] [--pedestrians PREPARED.h5] [--rows N]

The digits come with scikit-learn. `adult.npz` holds X_train, y_train and feature_names; PREPARED.h5 is what
`data_prep/daimler.py` writes. What is not given is left out. --rows takes the first rows only, to try the commands.
"""

import argparse
import shlex
import sys
from pathlib import Path

import h5py
import numpy as np

from linadd.cli import main as linadd

SEED = 0


def write_rows(path, X, y, names, n_rows):
    """Rows in a seeded order, in two groups: `train`, and `test` with every fourth."""
    order = np.random.default_rng(SEED).permutation(len(y))[:n_rows]
    with h5py.File(path, "w") as file:
        for group, rows in (("train", order[np.arange(len(order)) % 4 > 0]), ("test", order[::4])):
            table = file.create_dataset(f"{group}/X", data=X[rows], track_order=True)
            table.attrs.create("feature_names", names, dtype=h5py.string_dtype())
            file.create_dataset(f"{group}/y", data=y[rows])


def run(*arguments):
    """Run a command of linadd in this process; a status above 3 never comes, 1 and 2 end the script."""
    arguments = [str(argument) for argument in arguments]
    print(f"linadd {shlex.join(arguments)}", flush=True)
    status = linadd([*arguments, "--quiet"])
    if status in (1, 2):
        raise SystemExit(status)


def digits(out, n_rows):
    """8 x 8 pixels, ten classes."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    names = [f"pixel {i // 8},{i % 8}" for i in range(64)]
    write_rows(out / "digits.h5", bunch.data.astype(np.float32), bunch.target, names, n_rows)
    model = out / "digits.safetensors"
    run("train", out / "digits.h5::train", model, "--knots", "uniform", "--loss", "squared_hinge")
    run("plot", model, "-o", out / "digits_maps.png", "--grid", "8x8")
    run("plot", model, "-o", out / "digits_curves.png", "--n-curves", "4")
    run("plot", model, "-o", out / "digits.html", "--grid", "8x8", "--data", out / "digits.h5::test")


def adult(out, n_rows, source):
    """Census rows: who earns more than 50,000 dollars; numbers and one column a category."""
    with np.load(source) as data:
        labels = np.where(data["y_train"] == 1, b">50K", b"<=50K")
        write_rows(out / "adult.h5", data["X_train"], labels, [str(name) for name in data["feature_names"]], n_rows)
    model = out / "adult.safetensors"
    run("search", out / "adult.h5::train", model, "--one-se")
    run("plot", model, "-o", out / "adult_curves.png", "--n-curves", "8")
    run("plot", model, "-o", out / "adult.html", "--data", out / "adult.h5::test")


def pedestrians(out, n_rows, source):
    """Histograms of gradients in 12 x 6 cells of 8 orientations, and two coarser levels."""
    model = out / "pedestrians.safetensors"
    if n_rows is not None:
        with h5py.File(source) as data:
            names = data["train/X"].attrs["feature_names"].tolist()
            write_rows(out / "few.h5", data["train/X"][: 2 * n_rows], data["train/y"][: 2 * n_rows], names, n_rows)
        source = out / "few.h5"
    run("train", f"{source}::train", model, "--knots", "uniform", "--loss", "squared_hinge", "-C", "0.3")
    run("plot", model, "-o", out / "pedestrians_maps.png", "--grid", "12x6x8", "--features", "level2.*")


def main(arguments=None):
    """Make what there are data for; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("gallery"), metavar="DIR")
    parser.add_argument("--adult", type=Path, metavar="FILE.npz")
    parser.add_argument("--pedestrians", type=Path, metavar="PREPARED.h5")
    parser.add_argument("--rows", type=int, metavar="N")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    digits(options.out, options.rows)
    if options.adult is not None:
        adult(options.out, options.rows, options.adult)
    if options.pedestrians is not None:
        pedestrians(options.out, options.rows, options.pedestrians)
    return 0


if __name__ == "__main__":
    sys.exit(main())
