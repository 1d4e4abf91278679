"""What the benchmark scripts share: the machine in one line, repeated times, and what a process of its own takes."""

import os
import platform
import resource
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version

import numpy as np

__all__ = ["child", "machine", "ratio", "spread", "timed"]


def machine(*packages):
    """The machine, Python and the versions of linadd, NumPy, numba and `packages`, in one line."""
    names = []
    for name in ("linadd", "numpy", "numba", *packages):
        try:
            names.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            names.append(f"{name} absent")
    model = ""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            model = next((line.split(":")[1].strip() + ", " for line in file if line.startswith("model name")), "")
    python = f"python {platform.python_version()}"
    return f"{model}{platform.machine()}, {os.cpu_count()} cores; {', '.join([python, *names])}"


def timed(function, repeats, clock=time.thread_time):
    """Result and times of repeated calls.

    Parameters
    ----------
    function : callable
        Of no arguments.
    repeats : int
        Calls.
    clock : callable
        Seconds: `time.thread_time` for one thread, `time.process_time` for all, `time.perf_counter` by the wall.

    Returns
    -------
    (object, list of float)
        Of the last call; of each.
    """
    times = []
    for _ in range(repeats):
        start = clock()
        result = function()
        times.append(clock() - start)
    return result, times


def spread(times, factor=1.0, unit="s"):
    """Median with range, as text."""
    scaled = factor * np.asarray(times)
    return f"{np.median(scaled):.3g} {unit} ({scaled.min():.3g}-{scaled.max():.3g})"


def ratio(times, base):
    """Ratio of two medians."""
    return float(np.median(times) / np.median(base))


def child(arguments, code=(0,)):
    """Run Python with arguments, in a process of its own.

    Parameters
    ----------
    arguments : list of str
        After `python`.
    code : tuple of int
        Exit codes that are no failure.

    Returns
    -------
    (str, float, float)
        What it printed; its CPU seconds; its seconds by the wall.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    if done.returncode not in code:
        raise RuntimeError(f"{' '.join(map(str, arguments))} ended with {done.returncode}: {done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, cpu, wall
