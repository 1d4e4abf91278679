"""What `train_mnist.py` and `train_daimler.py` share: prepare once, train out of core, score by chunks, report."""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import warnings
from dataclasses import fields
from pathlib import Path

import h5py
import numpy as np
from dask.utils import parse_bytes

from linadd.errors import ConfigError, LinaddError
from linadd.options import Options

__all__ = ["accuracy", "main"]

DATA_PREP = Path(__file__).parents[1] / "data_prep"
OPTIONS = ("loss", "C", "degree", "n_bins", "penalty_order", "tol", "max_epochs", "memory_limit", "seed", "n_jobs")


def argument_parser(documentation, defaults):
    """A parser of the data, the report and those training options that a reader will want to vary.

    Parameters
    ----------
    documentation : str
        Help.
    defaults : dict
        Training options where they differ from linadd's.
    """
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=documentation, formatter_class=formatter)
    parser.add_argument("--data", required=True, type=Path, metavar="SRC|PREPARED.h5", help="official images, or HDF5")
    parser.add_argument(
        "--prepared", type=Path, metavar="FILE.h5", help="keep the prepared file; used again if it exists"
    )
    parser.add_argument("--unchecked", action="store_true", help="prepare other images than the official ones")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    for entry in fields(Options):
        if entry.name in OPTIONS:
            flag = "-C" if entry.name == "C" else "--" + entry.name.replace("_", "-")
            default = defaults.get(entry.name, entry.default)
            kind = parse_bytes if entry.name == "memory_limit" else entry.type
            text = f"{entry.metadata['help']} (default: {default})"
            parser.add_argument(flag, dest=entry.name, type=kind, default=default, help=text)
    return parser


@contextlib.contextmanager
def prepared(arguments, script):
    """The path of the prepared file: as given, or made by a script of `data_prep`, in a process of its own.

    So the memory of the preparation is not that of the training.

    Parameters
    ----------
    arguments : argparse.Namespace
        `data`, `prepared`, `unchecked`.
    script : str
        The script of `data_prep`.

    Yields
    ------
    pathlib.Path
    """
    if h5py.is_hdf5(arguments.data):
        yield arguments.data
        return
    with tempfile.TemporaryDirectory(prefix="linadd-") as folder:
        target = arguments.prepared or Path(folder) / "images.h5"
        if not target.exists():
            command = [sys.executable, DATA_PREP / script, arguments.data, target]
            command += ["--unchecked"] if arguments.unchecked else []
            done = subprocess.run(command, stdout=sys.stderr)
            if done.returncode:
                raise SystemExit(done.returncode)
        yield target


def accuracy(model, source):
    """Share of a source's rows that a model labels rightly, read by chunks.

    Parameters
    ----------
    model : AdditiveModel
        Of the source's features.
    source : Source
        Labelled rows.

    Returns
    -------
    float
    """
    n_right = sum(np.count_nonzero(model.predict(chunk.dense()) == chunk.y) for chunk in source.chunks())
    return int(n_right) / source.n_rows


def main(experiment, script, documentation, defaults, arguments=None):
    """Command line of an experiment.

    Parameters
    ----------
    experiment : callable
        From the prepared file's path and Options to (figures, text): a dict for --json, with `converged`, and lines.
    script : str
        The script of `data_prep` that makes the file.
    documentation : str
        Help.
    defaults : dict
        Training options where they differ from linadd's.
    arguments : list of str, optional
        By default those of the process.

    Returns
    -------
    int
        Exit code: 0, or 3 if the gap stayed above the tolerance; after one line on stderr 1, or 2 for a bad option.
    """
    arguments = argument_parser(documentation, defaults).parse_args(arguments)
    warnings.formatwarning = lambda message, *place, **line: f"{message}\n"
    try:
        options = Options(knots="uniform", **{name: getattr(arguments, name) for name in OPTIONS})
        with prepared(arguments, script) as path:
            figures, text = experiment(path, options)
    except LinaddError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    print(json.dumps(figures) if arguments.json else text)
    return 0 if figures["converged"] else 3
