"""Findings about the file: how it is stored, what its values need, whether the rows fit the memory limit."""

import math

import numpy as np

from linadd.solvers.plan import row_bytes

__all__ = ["report_memory", "report_storage"]

LARGE_BYTES = 50_000_000  # below, storage matters little
SLOW_CODECS = ("gzip", "szip", "bzip2", "lzf")
SPARSE = 0.1  # density below which dense storage is mostly zeros
DENSE = 0.5  # density above which text of entries is a detour
SMALL_TYPES = ("uint8", "int8", "uint16", "int16", "float32")


def report_storage(report, profile, layout):
    """Add the findings about storage.

    Parameters
    ----------
    report : Report
        Where to add.
    profile : Profile
        Of its source.
    layout : dict
        `Source.layout()` of it.
    """
    source = report.source
    if layout.get("bytes", 0) < LARGE_BYTES:
        return
    codec = layout.get("codec")
    if codec in SLOW_CODECS:
        what = f"the rows are packed by {codec}, which unpacks several times slower than lz4."
        report.add("info", "slow-codec", what, f"Rewrite them once: {report.convert_command('--codec lz4')}")
    if layout.get("is_text"):
        what = "the rows are text, which is parsed anew in every pass over the file."
        report.add("info", "text", what, f"Rewrite them once: {report.convert_command(suffix='')}")
    if not profile.is_clean.all() or profile.census is None:
        return
    smaller = smallest_type(profile.X, source.dtype)
    if smaller is not None and not source.is_sparse:
        ratio = source.dtype.itemsize // np.dtype(smaller).itemsize
        what = f"{source.dtype} is stored where {smaller} holds every value looked at: {ratio} times the bytes."
        report.add("info", "wide-type", what, f"Rewrite them: {report.convert_command(f'--dtype {smaller}')}")
    density = profile.census.density
    if source.is_sparse and density > DENSE:
        what = f"{density:.0%} of the values are not 0, in a format for few of them."
        report.add("info", "dense-rows", what, f"A table is read faster: {report.convert_command(suffix='')}")
    if not source.is_sparse and density < SPARSE:
        what = f"{density:.1%} of the values are not 0, in a format that stores them all."
        report.add("info", "sparse-rows", what, "--rows sparse trains on the others only, at a fraction of the memory.")


def smallest_type(X, dtype):
    """The smallest type that holds every value of a sample; None if that is the stored one."""
    values = getattr(X, "data", X) if hasattr(X, "indptr") else X
    for name in SMALL_TYPES:
        small = np.dtype(name)
        if small.itemsize >= dtype.itemsize:
            continue
        if small.kind in "iu":
            bounds = np.iinfo(small)
            if values.min(initial=0) < bounds.min or values.max(initial=0) > bounds.max:
                continue
        with np.errstate(over="ignore"):
            if (values.astype(small) == values).all():
                return name
    return None


def report_memory(report, plan, memory_limit):
    """Add whether training reads the file in every pass.

    Parameters
    ----------
    report : Report
        Where to add.
    plan : Plan
        Of training under the limit.
    memory_limit : int
        Bytes.
    """
    if plan.fits:
        return
    needed = math.ceil(plan.n_rows * row_bytes(report.source.n_features, row_entries=plan.row_entries))
    what = f"the rows take {needed:,} bytes in training, more than half of the limit of {memory_limit:,}."
    remedy = f"They are read anew in every pass; --memory-limit {math.ceil(2 * needed / 1e6)}MB keeps them in memory."
    report.add("info", "out-of-core", what, remedy)
