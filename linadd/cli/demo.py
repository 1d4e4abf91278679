"""`linadd demo`: a tour on scikit-learn's bundled digits; each step is a command that the reader can repeat."""

import json
import os
import shlex
import subprocess
import sys
import time
from typing import Annotated

import typer

from linadd.bounds import bound
from linadd.cli.arguments import verb
from linadd.cli.terminal import DONE, STOPPED_EARLY, Result
from linadd.errors import LinaddError

__all__ = ["demo"]

TEST_ROWS = 450
MEMORY_LIMIT = "300kB"  # of 1,347 x 64 values, about 40 % fit: ten blocks a pass
COSTS = (0.01, 0.1, 1.0, 10.0)


@verb
def demo(
    terminal,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Folder for the files; made if absent.")] = "demo",
):
    """Take the tour on bundled digits.

    Train, certify, evaluate, export and draw, within a memory limit; LIBLINEAR's figures beside ours.
    """
    started = time.monotonic()
    os.makedirs(out, exist_ok=True)
    tour = Tour(terminal, out)
    train_rows, test_rows = tour.write_digits()
    shared = ("--loss", "squared_hinge", "--memory-limit", MEMORY_LIMIT)
    additive = tour.train("additive", "--knots", "uniform", *shared)
    linear = tour.train("linear", "--encoder", "identity", *shared)
    record = {"additive": additive, "linear": linear, "liblinear": tour.liblinear(train_rows, test_rows)}
    record["files"] = [tour.data, additive["model"], linear["model"], *tour.export(), *tour.draw()]
    record["seconds"] = time.monotonic() - started
    return Result(record, as_text(record))


class Tour:
    """The steps of the demonstration, told on stderr as they go.

    Parameters
    ----------
    terminal : Terminal
        Where to tell.
    out : str
        Folder of the files.
    """

    def __init__(self, terminal, out):
        self.terminal, self.out = terminal, out
        self.data = self.path("digits.h5")

    def path(self, name):
        """A file of the demonstration."""
        return os.path.join(self.out, name)

    def write_digits(self):
        """Write the digits, shuffled and cut in two groups; returns ((X, y) of train, (X, y) of test)."""
        import h5py
        import numpy as np
        from sklearn.datasets import load_digits

        from linadd.atomic import atomic_path

        digits = load_digits()
        order = np.random.default_rng(0).permutation(len(digits.target))
        groups = {"train": order[TEST_ROWS:], "test": order[:TEST_ROWS]}
        with atomic_path(self.data) as temporary, h5py.File(temporary, "w") as file:
            for name, rows in groups.items():
                X = file.create_dataset(f"{name}/X", data=digits.data[rows].astype(np.float32))
                X.attrs["feature_names"] = [f"pixel {i // 8},{i % 8}" for i in range(64)]
                file[f"{name}/y"] = digits.target[rows]
        shapes = ", ".join(f"{name} {len(rows):,} rows" for name, rows in groups.items())
        self.terminal.say(f"{self.data}: scikit-learn's digits, 64 pixels, 10 classes; {shapes}")
        return [(digits.data[rows], digits.target[rows]) for rows in groups.values()]

    def command(self, *arguments):
        """Run a command of linadd; returns the object that it prints with --json."""
        self.terminal.say(f"$ linadd {shlex.join(arguments)}")
        command = [sys.executable, "-m", "linadd", *arguments, "--json", "--quiet"]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if run.returncode not in (DONE, STOPPED_EARLY):
            raise LinaddError(f"the step `linadd {shlex.join(arguments)}` ended with status {run.returncode}.")
        return json.loads(run.stdout)

    def train(self, name, *options):
        """Train and evaluate a model; returns the figures of both."""
        model = self.path(f"{name}.safetensors")
        trained = self.command("train", f"{self.data}::train", model, *options)
        tested = self.command("evaluate", model, f"{self.data}::test")
        names = ("model", "objective", "gap", "passes", "reads", "seconds", "peak_memory_bytes", "converged")
        return {key: trained[key] for key in names} | {"test_error": tested["error"]}

    def liblinear(self, train_rows, test_rows):
        """Test error and time of LIBLINEAR -s 1, the best of COSTS on the test rows; None where it is not installed."""
        try:
            from liblinear import liblinearutil
        except ImportError:
            self.terminal.say("LIBLINEAR's figures are left out: liblinear-official (needs a C++ compiler) is missing.")
            return None
        results = []
        for cost in COSTS:
            started = time.monotonic()
            model = liblinearutil.train(train_rows[1], train_rows[0] / 16, f"-s 1 -c {cost} -q")
            seconds = time.monotonic() - started
            labels, _, _ = liblinearutil.predict([], test_rows[0] / 16, model, "-q")
            error = float((labels != test_rows[1]).mean())
            results.append({"options": f"-s 1 -c {cost:g}", "test_error": error, "seconds": seconds})
        return min(results, key=lambda result: result["test_error"])

    def export(self):
        """Write both exports; returns their paths."""
        paths = [self.path(f"additive.{kind}") for kind in ("npz", "json")]
        for path in paths:
            self.command("export", self.path("additive.safetensors"), path, "--to", path.rpartition(".")[2])
        return paths

    def draw(self):
        """Draw the widest curves; returns the picture's path in a list, empty where matplotlib is missing."""
        from linadd.errors import ConfigError
        from linadd.models import load_model
        from linadd.plots import plot_curves

        path = self.path("curves.png")
        try:
            plot_curves(load_model(self.path("additive.safetensors")), path)
        except ConfigError as error:
            self.terminal.say(f"No picture: {error}")
            return []
        return [path]


def as_text(record):
    """The figures as a table, and the files."""
    lines = [f"{'classifier':<34} {'test error':>10} {'gap':>8} {'passes':>6} {'seconds':>8}"]
    for name in ("additive", "linear"):
        row = record[name]
        solved = f"{bound(row['gap'], 1):>8} {row['passes']:>6} {row['seconds']:>8.2f}"
        lines.append(f"{f'linadd, {name}':<34} {row['test_error']:>10.2%} {solved}")
    if record["liblinear"] is not None:
        row = record["liblinear"]
        name = f"LIBLINEAR {row['options']}, best of {len(COSTS)} C"
        lines.append(f"{name:<34} {row['test_error']:>10.2%} {'-':>8} {'-':>6} {row['seconds']:>8.2f}")
        lines.append("LIBLINEAR ran in memory.")
    gap = record["additive"]["gap"]
    lines += [
        f"linadd ran out of core within {MEMORY_LIMIT}; its seconds include compiling or loading its code.",
        f"Certificate: the additive model's objective is within {bound(gap, 1)} (relative) of the least there is.",
        f"Files: {', '.join(record['files'])}",
        f"Done in {record['seconds']:.1f} s.",
    ]
    return "\n".join(lines)
