"""Feed a file to the classifier chunk after chunk; then train on the same file by one call. Copy from here.

    python scripts/train_chunked.py                                # scikit-learn's digits
    python scripts/train_chunked.py train.h5 test.h5 --out chunked.safetensors

The first way suits rows that come from anywhere: a queue, a simulation, a data base. It takes one step of stochastic
gradient a row, so how good it gets is for a test set to say. The second way reads the file as often as it needs, says
how far from the optimum it stopped, and is the one to prefer where the rows are in a file.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from linadd import AdditiveClassifier, load_model, open_source


def main():
    """Train both ways; print the error on the test rows after every chunk, and of the one call."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train", nargs="?", help="labelled rows in any format that linadd reads; digits if not given")
    parser.add_argument("test", nargs="?", help="other labelled rows; by default the training rows")
    parser.add_argument("--chunk-rows", type=int, default=200, help="rows that are fed at a time")
    parser.add_argument("--out", type=Path, default=Path("chunked.safetensors"), help="the model of the first way")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        train_file, test_file = (arguments.train, arguments.test) if arguments.train else digits(Path(folder))
        by_chunks(train_file, test_file or train_file, arguments.chunk_rows, arguments.out)
        by_one_call(train_file, test_file or train_file)
    return 0


def by_chunks(train_file, test_file, chunk_rows, out):
    """One pass, a chunk at a time, evaluated after each; the model is saved."""
    # 1. Open. Nothing is read but the header; `chunk_rows` changes the size of the pieces, never the model.
    rows = open_source(train_file, chunk_rows=chunk_rows)

    # 2. Census. Two reads of the file give range, scale and mean of every feature, and the classes. Where there is no
    #    file to read ahead, leave `census` out and give `classes`: the first chunk then sets the ranges.
    classifier = AdditiveClassifier(loss="squared_hinge", random_state=0)
    n_rows = 0
    for chunk in rows.chunks():
        # 3. Feed. `chunk.X` (n, n_features), `chunk.y` (n,) and `chunk.weight` (n,) or None could come from elsewhere.
        first = {"census": train_file} if n_rows == 0 else {}
        classifier.partial_fit(chunk.X, chunk.y, sample_weight=chunk.weight, **first)
        n_rows += chunk.n_rows

        # 4. Evaluate the model so far.
        print(f"{n_rows:>9,} rows fed: {error(classifier.model_, test_file):.2%} of the test rows wrong")

    # 5. Save, and load it as another program would.
    classifier.save(out)
    print(f"{out}: {error(load_model(out), test_file):.2%} of the test rows wrong")


def by_one_call(train_file, test_file):
    """The same classifier by `fit` on the file: out of core, to a certified gap."""
    classifier = AdditiveClassifier(loss="squared_hinge", random_state=0, tol=1e-2, memory_limit=100_000_000)
    classifier.fit(train_file)
    wrong = error(classifier.model_, test_file)
    print(f"fit, {classifier.n_iter_} passes, gap {classifier.gap_:.1g}: {wrong:.2%} of the test rows wrong")


def error(model, path):
    """Share of the rows of a file that a model gets wrong, a chunk at a time."""
    source = open_source(path)
    n_wrong = sum(np.count_nonzero(model.predict(chunk.dense()) != chunk.y) for chunk in source.chunks())
    return n_wrong / source.n_rows


def digits(folder):
    """Paths of two files with the bundled example: 1,347 and 450 images of 8 x 8 pixels, ten classes."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    paths = []
    for name, rows in (("train", order[450:]), ("test", order[:450])):
        paths.append(folder / f"{name}.npz")
        np.savez(paths[-1], X=X[rows].astype(np.float32), y=y[rows])
    return paths


if __name__ == "__main__":
    sys.exit(main())
