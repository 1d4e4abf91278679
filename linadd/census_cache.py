"""Censuses that are kept from run to run, so that the next one begins with the read after.

A census is kept under a name made from all that it depends on: path, size, times and inode of every file that the rows
come from, the digest of their sampled content and what is read of them (`Source.fingerprint`), the options of the
census, the version of its format and of this package, and the processor's vector instructions. The time of the last
change (ctime) is set by the system: a file whose time of modification was put back is a changed file all the same.

Rows that come from memory are never kept, nor files below `LEAST_BYTES`, which are read in no time, nor files that were
changed after they were opened, or so short before that they might have changed again within one tick of their clock.
A kept census that cannot be
written or read costs a line in the log and the read that it would have saved.
"""

import contextlib
import hashlib
import json
import logging
import os
import sys
import zipfile
import zlib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.sparse

from linadd._jit import cpu_features
from linadd.atomic import atomic_path
from linadd.census import Census, take_census
from linadd.errors import LinaddError

__all__ = ["FOLDER_VARIABLE", "kept_census", "user_folder"]

log = logging.getLogger(__name__)

FORMAT_VERSION = 1
FOLDER_VARIABLE = "LINADD_CACHE"  # another folder; empty: keep nothing
LEAST_BYTES = 64_000_000  # of the files together
MOST_BYTES = 1_000_000_000  # of all kept censuses; the ones that were used longest ago go first
SETTLED_NS = 2_000_000_000  # the coarsest clock of a file system, in nanoseconds
# What NumPy and zipfile raise on a file that is damaged or no archive.
ARCHIVE_ERRORS = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error)
ARRAYS = ("minimum", "maximum", "mean", "variance", "n_distinct", "classes", "class_counts", "sample_weight")
NUMBERS = ("n_rows", "n_features", "weight_sum", "n_filled", "is_label_sorted")


def kept_census(source, sample_rows, seed, on_chunk=None):
    """`take_census`, unless one of the same data was kept: its `n_reads` is then 0.

    Parameters
    ----------
    source : Source
        The rows; `opened_ns` and `files()` tell whether theirs may be kept.
    sample_rows, seed : int
        As for `take_census`.
    on_chunk : callable, optional
        As for `take_census`.

    Returns
    -------
    Census

    Raises
    ------
    DataError
        As `take_census`.
    """
    folder, key = user_folder(), key_of(source, sample_rows, seed)
    if folder is None or key is None:
        return take_census(source, sample_rows, seed, on_chunk)
    path = folder / f"census-{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}.npz"
    census = load(path, key, source)
    if census is None:
        census = take_census(source, sample_rows, seed, on_chunk)
        if key_of(source, sample_rows, seed) == key:
            store(path, key, census)
    return census


def user_folder():
    """Where censuses are kept: $LINADD_CACHE, else a folder of the user's cache; None to keep nothing."""
    if FOLDER_VARIABLE in os.environ:
        own = os.environ[FOLDER_VARIABLE]
        return Path(own) if own else None
    try:
        parent = {
            "darwin": Path.home() / "Library" / "Caches",
            "win32": Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"),
        }.get(sys.platform) or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        return None
    return parent / "linadd"


def key_of(source, sample_rows, seed):
    """All that a census depends on, as JSON text; None for rows whose census is not worth keeping, or not safe to."""
    if source.opened_ns is None:
        return None
    try:
        files = source.files()
        if files is None:
            return None
        states, fingerprint = [os.stat(path) for path in files], source.fingerprint()
    except (OSError, LinaddError):  # for the census to tell
        return None
    is_settled = all(state.st_ctime_ns < source.opened_ns - SETTLED_NS for state in states)
    if not is_settled or sum(state.st_size for state in states) < LEAST_BYTES:
        return None
    key = {
        "version": [FORMAT_VERSION, version("linadd"), np.__version__],
        "cpu_features": cpu_features(),
        "files": [
            [os.path.abspath(path), each.st_size, each.st_mtime_ns, each.st_ctime_ns, each.st_dev, each.st_ino]
            for path, each in zip(files, states, strict=True)
        ],
        "fingerprint": fingerprint,
        "rows": [source.n_rows, source.n_features, source.dtype.str, source.has_labels, source.has_weights],
        "sample": [sample_rows, seed],
    }
    return json.dumps(key, sort_keys=True)


def store(path, key, census):
    """Write a census; a folder that cannot be written to is a line in the log."""
    arrays = {name: getattr(census, name) for name in ARRAYS if getattr(census, name) is not None}
    arrays |= {name: np.array(getattr(census, name)) for name in NUMBERS} | {"key": np.array(key)}
    if scipy.sparse.issparse(census.sample):
        arrays |= {f"sample_{part}": getattr(census.sample, part) for part in ("data", "indices", "indptr")}
        arrays["sample_shape"] = np.array(census.sample.shape)
    else:
        arrays["sample"] = census.sample
    if sum(array.nbytes for array in arrays.values()) > MOST_BYTES // 4:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary:
            np.savez(temporary, **arrays)
        make_room(path)
    except (OSError, LinaddError) as error:
        log.info("census: cannot be kept for the next run (%s)", error)


def make_room(path):
    """Remove the censuses that were used longest ago, but not this one, until all take no more than MOST_BYTES."""
    others = []
    for other in path.parent.glob("census-*.npz"):
        with contextlib.suppress(OSError):  # another process may remove it too
            state = other.stat()
            others.append((other == path, state.st_mtime_ns, state.st_size, other))
    total = sum(size for _, _, size, _ in others)
    for is_own, _, size, other in sorted(others):
        if total <= MOST_BYTES or is_own:
            return
        other.unlink(missing_ok=True)
        total -= size


def load(path, key, source):
    """The census that was kept under a key; None where there is none, or it is damaged."""
    if not path.exists():
        return None
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            if str(archive["key"]) != key:
                return None
            census = read_census(archive, source)
    except ARCHIVE_ERRORS:
        log.info("%s: the kept census is damaged; the data are read anew", path)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    log.info("census: kept from an earlier run, as the data are the same; --no-cache reads them anew")
    return census


def read_census(archive, source):
    """The Census of an open archive."""
    values = {name: archive[name] for name in ARRAYS if name in archive.files}
    values |= {name: archive[name].item() for name in NUMBERS}
    if "sample" in archive.files:
        values["sample"] = archive["sample"]
    else:
        parts = tuple(archive[f"sample_{part}"] for part in ("data", "indices", "indptr"))
        values["sample"] = scipy.sparse.csr_array(parts, shape=tuple(archive["sample_shape"].tolist()))
    values.setdefault("n_distinct", None)
    return Census(source.origin, feature_names=source.feature_names, n_reads=0, **values)
