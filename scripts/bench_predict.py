"""Prediction rate: linadd's decisions against LIBLINEAR's linear prediction and scikit-learn's spline pipeline.

    python scripts/bench_predict.py [--rows 20000] [--features 656] [--repeats 5] [--json] [--quick]

Linear splines, D_1, 10 bins; 1 and 10 outputs; random rows. LIBLINEAR's `predict_values` runs over rows that are
prepared for it, and the time of as many calls on empty rows is taken off (they are the calls from Python). The pipeline
is SplineTransformer(degree=1, sparse) and LinearSVC. Bars: at least 20 times the rate of the pipeline, at least half of
LIBLINEAR's. Every answer is compared with an independent one before its time is taken: linadd's with the explicit
embedding, LIBLINEAR's with X @ w, the pipeline's with its parts, C's with linadd's. Times are CPU times of this
process; prediction of a file includes the reading thread.
"""

import argparse
import ctypes
import json
import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import h5py
import numpy as np
from measuring import machine, ratio, spread, timed

from linadd.encoders.exact import encode
from linadd.export import EXPORTERS, export_model
from linadd.options import Options
from linadd.sources import open_source
from linadd.train import train

TRAINING_ROWS = 2000
LINEAR, PIPELINE = "LIBLINEAR predict", "SplineTransformer + LinearSVC"
C_CALLER = """
#include "model.h"
void decide_all(const double *X, long n, double *out) {
    for (long i = 0; i < n; i++) linadd_decision(X + i * LINADD_N_FEATURES, out + i * LINADD_N_OUTPUTS);
}
"""


def data(n_rows, n_features, n_classes):
    """Rows of whole numbers 0..255 (uint8), and labels that some of the features tell."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (n_rows, n_features), np.uint8)
    return X, np.abs(X[:, :n_classes] - 128.0).argmax(axis=1)


def of_linadd(X, y, folder, repeats):
    """(model, {name: times}): decisions of float32, float64 and uint8 arrays, and of a file."""
    n_train = min(TRAINING_ROWS, len(X) // 2)
    options = Options(loss="squared_hinge", knots="uniform", max_epochs=3, tol=1.0)  # any coefficients will do
    model = train(open_source(X[:n_train], y[:n_train]), options)
    wide, wider = X.astype(np.float32), X.astype(np.float64)
    explicit = encode(model.encoder, wider[:n_train]) @ model.coef.reshape(-1, model.n_outputs)
    decisions = model.decision_function(wide)
    np.testing.assert_allclose(decisions[:n_train], explicit + model.intercept, rtol=1e-9, atol=1e-9)
    path = folder / "rows.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=wide, chunks=(min(1000, len(X)), X.shape[1]))
    source = open_source(path)

    def stream():
        return np.concatenate([model.decision_function(chunk.dense()) for chunk in source.chunks()])

    calls = {
        "float32": lambda: model.decision_function(wide),
        "float64": lambda: model.decision_function(wider),
        "uint8": lambda: model.decision_function(X),
        "HDF5 file, float32": stream,
    }
    times = {}
    for name, call in calls.items():
        np.testing.assert_array_equal(call(), decisions)
        _, times[name] = timed(call, repeats, time.process_time)
    return model, times


def of_liblinear(X, y, repeats):
    """{name: times} of LIBLINEAR's predict_values on prepared rows, and of X @ w."""
    from liblinear import liblinear, liblinearutil

    wide = X / 255.0
    n_train = min(TRAINING_ROWS, len(X) // 2)
    model = liblinearutil.train(
        liblinear.problem(y[:n_train].astype(float), wide[:n_train]), liblinear.parameter("-s 2 -e 0.1 -q")
    )
    n_outputs = 1 if model.nr_class == 2 else model.nr_class
    w = np.array(model.w[: X.shape[1] * n_outputs]).reshape(-1, n_outputs)
    rows, out = liblinear.problem(y.astype(float), wide), np.empty((len(X), model.nr_class))
    places = [(ctypes.c_double * model.nr_class).from_buffer(out, out.strides[0] * i) for i in range(len(X))]
    empty, predict = liblinear.gen_feature_nodearray([])[0], liblinear.liblinear.predict_values

    def run(nodes):
        for node, place in zip(nodes, places, strict=True):
            predict(model, node, place)

    _, calls = timed(lambda: run([empty] * len(X)), repeats, time.process_time)
    nodes = [rows.x[i] for i in range(len(X))]
    _, times = timed(lambda: run(nodes), repeats, time.process_time)
    np.testing.assert_allclose(out[:, :n_outputs], wide @ w, rtol=1e-9, atol=1e-9)
    narrow, narrow_w = wide.astype(np.float32), w.astype(np.float32)
    _, product = timed(lambda: narrow @ narrow_w, repeats, time.process_time)
    overhead = np.median(calls)
    return {LINEAR: [max(t - overhead, 1e-9) for t in times], "X @ w, float32": product}


def of_pipeline(X, y, repeats):
    """Times of scikit-learn's pipeline."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer
    from sklearn.svm import LinearSVC

    n_train, wide = min(TRAINING_ROWS, len(X) // 2), X.astype(np.float64)
    pipeline = make_pipeline(SplineTransformer(n_knots=11, degree=1, sparse_output=True), LinearSVC(max_iter=20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # its accuracy has no part in the rate
        pipeline.fit(wide[:n_train], y[:n_train])
    splines, linear = pipeline[0], pipeline[1]
    decisions, times = timed(lambda: pipeline.decision_function(wide), min(repeats, 3), time.process_time)
    explicit = splines.transform(wide[:n_train]) @ linear.coef_.T + linear.intercept_
    np.testing.assert_allclose(decisions[:n_train].reshape(explicit.shape), explicit, rtol=1e-9, atol=1e-9)
    return times


def of_c(model, X, folder, repeats):
    """Times of the exported C, compiled by cc with -O3; None where there is no cc or no such export."""
    if "c" not in EXPORTERS or shutil.which("cc") is None:
        return None
    export_model(model, folder / "model.c", "c")
    (folder / "caller.c").write_text(C_CALLER)
    command = ["cc", "-O3", "-march=native", "-shared", "-fPIC", "-std=c99", "caller.c", "model.c", "-o", "model.so"]
    subprocess.run(command, cwd=folder, check=True)
    decide = ctypes.CDLL(str(folder / "model.so")).decide_all
    pointer = np.ctypeslib.ndpointer(np.float64, flags="C")
    decide.argtypes, decide.restype = [pointer, ctypes.c_long, pointer], None
    wide, out = X.astype(np.float64), np.empty((len(X), model.n_outputs))
    _, times = timed(lambda: decide(wide, len(wide), out), repeats, time.process_time)
    np.testing.assert_allclose(out, model.decision_function(wide), rtol=1e-9, atol=1e-9)
    return times


def measure(n_rows, n_features, n_classes, repeats):
    """{name: times} of every way to score the rows."""
    X, y = data(n_rows, n_features, n_classes)
    with tempfile.TemporaryDirectory(prefix="linadd-") as folder:
        model, times = of_linadd(X, y, Path(folder), repeats)
        of_export = of_c(model, X, Path(folder), repeats)
        if of_export is not None:
            times["exported C, float64"] = of_export
    times |= of_liblinear(X, y, repeats)
    times[PIPELINE] = of_pipeline(X, y, repeats)
    return times


def main(arguments=None):
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=656)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a toy size: does the script still run?")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    n_rows, n_features, repeats = (300, 20, 1) if options.quick else (options.rows, options.features, options.repeats)
    report = {"machine": machine("scikit-learn", "liblinear-official"), "n_rows": n_rows, "n_features": n_features}
    report["times"] = {n: measure(n_rows, n_features, max(n, 2), repeats) for n in (1, 10)}
    if options.json:
        print(json.dumps(report))
        return
    print(report["machine"])
    print(f"{n_rows:,} rows x {n_features} features; CPU time a value, median (range) of {repeats}")
    for n_outputs, times in report["times"].items():
        for name, each in times.items():
            linear, splines = (ratio(each, times[key]) for key in (LINEAR, PIPELINE))
            print(f"{n_outputs:2} outputs, {name:30} {spread(each, 1e9 / n_rows / n_features, 'ns'):28} "
                  f"{1 / linear:6.2f} times LIBLINEAR's rate, {1 / splines:7.1f} times the pipeline's")  # fmt: skip


if __name__ == "__main__":
    main()
