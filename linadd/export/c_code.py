"""Export `c`: one C99 file with its header: tables, `linadd_decision`, `linadd_predict`, no allocation, thread-safe.

    int linadd_decision(const double *x, double *scores)    0, or the number from 1 of the first feature of x whose
                                                            value is not finite, or outside a strict range
    int linadd_predict(const double *x)                     place in linadd_classes, or minus such a number
    int linadd_probabilities(const double *x, double *p)    of logistic models; returns as linadd_decision

With -DLINADD_CHECK the file is a program that scores its own check rows and ends with 0 if they agree.

`quantised="int16"` or `"int8"` stores the coefficients of each output as integers times one step q, and computes with
integers from the coordinate of a value on: a fraction t of 14 bits for B-splines, else phi times 2^14 / max |phi|. A
curve is first shifted by the middle of its coefficients, which goes to the intercept (B-splines sum to 1). A bound of
the error stands at the head of the file; what is seen on the check rows, and the labels that flip, in the report of
the export. Do not compile with -ffast-math: it takes away the test for values that are not finite.
"""

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from linadd.errors import ConfigError, LinaddError
from linadd.export.c_source import header_text, source_text
from linadd.export.quantised import Quantised

__all__ = ["score", "tolerance", "write"]

COMPILERS = ("cc", "gcc", "clang")
INCLUDED = re.compile(r"[A-Za-z0-9_+. -]+")
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")


def write(arrays, path, quantised=None):
    """Write the C file, and the header of the same name beside it.

    Parameters
    ----------
    arrays : dict of str to array
        From `tables.model_arrays`.
    path : path-like
        The `*.c` file.
    quantised : {None, "int16", "int8"}
        Store integers.

    Raises
    ------
    ConfigError
        A quantised model without bounds of its values; a name that C code cannot include.
    """
    header = Path(path).with_suffix(".h")
    if not INCLUDED.fullmatch(header.name):
        raise ConfigError(
            f"export: the C file must include {header.name!r}, and not every compiler reads that name. Give it "
            "letters, digits and -_+. of ASCII."
        )
    integers = None if quantised is None else Quantised(arrays, quantised)
    header.write_text(header_text(arrays), "ascii")
    Path(path).write_text(source_text(arrays, header.name, integers, tolerance(arrays, quantised)), "ascii")


def score(path, X, quantised=None):
    """Scores of rows by the compiled file.

    Parameters
    ----------
    path : path-like
        The C file.
    X : float64 array, shape (n_rows, n_features)
        Feature values.
    quantised : str, optional
        Kind of integers; the file knows.

    Returns
    -------
    float64 array, shape (n_rows, n_outputs)

    Raises
    ------
    ConfigError
        No C compiler is found: $CC, cc, gcc, clang.
    LinaddError
        The compiler refuses the file, or the file a row.
    """
    with tempfile.TemporaryDirectory() as folder:
        library = ctypes.CDLL(compile_shared(Path(path), folder))
        n_outputs = ctypes.c_int.in_dll(library, "linadd_n_outputs").value
        scores, X = np.zeros((len(X), n_outputs)), np.ascontiguousarray(X, np.float64)
        pointer = ctypes.POINTER(ctypes.c_double)
        for i, row in enumerate(X):
            code = library.linadd_decision(row.ctypes.data_as(pointer), scores[i].ctypes.data_as(pointer))
            if code:
                raise LinaddError(f"{path}: linadd_decision refuses row {i + 1} for its feature {code}.")
    return scores


def compile_shared(path, folder):
    """Path of the shared library of a C file, made in a folder."""
    compiler = os.environ.get("CC") or next(filter(shutil.which, COMPILERS), None)
    if compiler is None or shutil.which(compiler) is None:
        raise ConfigError(
            f"export: C code is compiled and compared with the model before it is kept, and there is no C compiler "
            f"({compiler or ', '.join(COMPILERS)}). Install one, or export *.json."
        )
    library = str(Path(folder) / "model.so")
    command = [compiler, *FLAGS, "-O1", "-shared", "-fPIC", str(path), "-o", library, "-lm"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        said = run.stderr.strip()[:500]
        raise LinaddError(f"{path}: not written: {compiler} refuses it: {said}. Report this as a fault of linadd.")
    return library


def tolerance(arrays, quantised=None):
    """Largest accepted difference, relative to the largest check score: 1e-12, or the bound of the quantisation.

    Parameters
    ----------
    arrays : dict of str to array
        From `tables.model_arrays`.
    quantised : {None, "int16", "int8"}
        Kind of integers.
    """
    if quantised is None:
        return 1e-12  # doubles throughout, in another order
    return float(Quantised(arrays, quantised).error.max() / np.abs(arrays["check_scores"]).max()) + 1e-12
