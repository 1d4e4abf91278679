"""`linadd estimate FILE`: what `train` with the same options will take in memory and time, from a short probe."""

import gc
import math

import typer

from linadd.cli.arguments import (
    DataFile,
    Drop,
    Features,
    IndexBase,
    Labels,
    Table,
    Weights,
    Where,
    open_rows,
    verb,
)
from linadd.cli.terminal import Result, format_bytes, resident_bytes
from linadd.cli.train import read_options, with_training_options
from linadd.cli.training_options import ConfigFile

__all__ = ["estimate"]

# Imports and compiled code were seen to take 205 to 222 MB. What passes that here is the compiler's, after a first run
# of this version; the next one finds its code on the disk.
PROGRAM_BYTES = 230_000_000


def estimate_training(
    terminal,
    context: typer.Context,
    file: DataFile,
    x: Table = "X",
    y: Labels = "y",
    weights: Weights = None,
    where: Where = None,
    features: Features = None,
    drop: Drop = None,
    index_base: IndexBase = "auto",
    config: ConfigFile = None,
    **values,
):
    """Foresee memory and time of a training run.

    Takes the options of `train`. A few pieces of the file are read and trained on, in some seconds whatever its size;
    text is first read once, as always. Exit status: 0 done; 1 data that cannot be read or trained on; 2 usage, such as
    a memory limit that is too small.
    """
    options, _ = read_options(context, None, None, values)
    from linadd.estimate import estimate as foresee  # numba

    with open_rows(
        file, where=where, x=x, y_name=y, weights=weights, index_base=index_base, features=features, drop=drop
    ) as source:
        found = foresee(source, options)
        record = {
            "file": file,
            "n_rows": source.n_rows,
            "n_features": source.n_features,
            "n_classes": found.n_classes,
            "solver": found.solver,
            "in_memory": found.plan.fits,
        }
    gc.collect()
    data_bytes, resident = sum(found.memory.values()), resident_bytes()
    record |= {
        "peak_memory_bytes": None if resident is None else min(resident, PROGRAM_BYTES) + data_bytes,
        "data_bytes": data_bytes,
        "memory": found.memory,
        "bytes_per_pass": found.bytes_per_pass,
        "seconds_per_pass": found.seconds_per_pass,
        "passes": found.passes,
        "reaches_tol": found.is_reached,
        "reads": found.reads,
        "seconds": found.seconds,
        "probe_rows": found.probe_rows,
    }
    return Result(record, as_text(record, options))


def as_text(record, options):
    """The record for people."""
    parts = sorted(record["memory"].items(), key=lambda part: -part[1])
    held = ", ".join(f"{name} {format_bytes(n_bytes)}" for name, n_bytes in parts[:4])
    peak = record["peak_memory_bytes"]
    memory = format_bytes(record["data_bytes"]) + " for the data"
    memory = memory if peak is None else f"{format_bytes(peak)} at the peak, {memory}"
    kept = "in memory" if record["in_memory"] else f"{format_bytes(record['bytes_per_pass'])} read from the file"
    passes = f"{record['passes']} pass{'' if record['passes'] == 1 else 'es'}"
    until = f"to a gap of {options.tol:g}" if record["reaches_tol"] else "at most"
    shape = f"{record['n_rows']:,} rows of {record['n_features']:,} features, {record['n_classes']} classes"
    return (
        f"{record['file']}: {shape}, solver {record['solver']}\n"
        f"memory  {memory} ({held})\n"
        f"a pass  {format_seconds(record['seconds_per_pass'])}, {kept}\n"
        f"in all  {format_seconds(record['seconds'])}, {passes} {until}, {record['reads']} reads\n"
        f"from a probe of {record['probe_rows']:,} rows: expect a quarter more or less memory, and up to twice the time"
    )


def format_seconds(seconds):
    """A time with two digits, in the unit that it is told in."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    digits = 1 if seconds >= 1 else min(1 - math.floor(math.log10(max(seconds, 1e-6))), 6)
    return f"{seconds:.{digits}f} s"


estimate = verb(with_training_options(estimate_training))
