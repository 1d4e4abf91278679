"""The only file, with `_simd.py`, that imports numba: the decorators, the cache on disk, and the thread helper.

Compiled functions are cached in a folder named by a digest of the package's sources, because numba's own cache does not
see an edit in a callee's file. Parallelism is plain threads over compiled loops that release the GIL, each writing its
own slice: the result then cannot depend on the number of threads.
"""

import hashlib
import os
import shutil
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import llvmlite.binding
import numba

# Flags under which a sum may be vectorised; never "nnan" or "ninf", with which isnan() returns False on NaN.
SUM_FLAGS = {"reassoc", "contract", "nsz", "arcp"}
KEEP_CACHES = 4  # of other sources, which running processes may still use
JIT_DISABLED = bool(numba.config.DISABLE_JIT)


def source_digest():
    """Digest of every source file that compiled code comes from: names the cache folder.

    Those are the files that use this one or `_simd.py`, and those of the named tuples that loops are given: numba tells
    two of them apart by their name, not by the order of their fields.
    """
    root = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        if any(word in text for word in (b"linadd._jit", b"linadd._simd", b"NamedTuple")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + text)
    return digest.hexdigest()


def cache_folder():
    """The folder of this source's compiled code: beside the package if that is writable, else in the user's cache."""
    beside = Path(__file__).parent / "__pycache__"
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "linadd"
    try:
        beside.mkdir(exist_ok=True)
        parent = beside if os.access(beside, os.W_OK) else user
    except OSError:
        parent = user
    return parent / f"compiled-{source_digest()}"


def age(path):
    """Time of the last change of a folder; 0 if another process has just removed it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def use_cache():
    """Point numba at this source's cache folder and drop the oldest folders of other sources."""
    folder = cache_folder()
    if not folder.exists():
        others = sorted((age(path), path) for path in folder.parent.glob("compiled-*"))
        for _, old in others[:-KEEP_CACHES]:
            shutil.rmtree(old, ignore_errors=True)
    numba.config.CACHE_DIR = str(folder)


if not os.environ.get("NUMBA_CACHE_DIR"):
    use_cache()


def cpu_features():
    """Vector instructions that compiled code may use here; the same bits are promised for the same set of them."""
    features = llvmlite.binding.get_host_cpu_features()
    kinds = ("sse", "ssse", "avx", "fma", "neon", "sve", "v")
    return sorted(name for name, is_there in features.items() if is_there and name.startswith(kinds))


compiled = numba.njit(cache=True, nogil=True, error_model="numpy")
# Each module that calls a function holds a copy of it, and a process takes the copy that it loads first. Where sums may
# be re-associated the copies differ in their last bits, and results would depend on what was compiled or loaded before:
# such functions are inlined into every caller. What they are inlined into has copies again if compiled code calls it:
# then it is marked too (`rows.code_norm`).
compiled_sums = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=SUM_FLAGS, forceinline=True)
# What is called once a row: a call counts a reference to every array of the tuples that it hands on, which costs more
# than the arithmetic of a row of some twenty values.
compiled_inline = numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


def shares(n_rows, n_threads):
    """Slices of rows, as equal as can be, one a thread."""
    bounds = [n_rows * k // n_threads for k in range(n_threads + 1)]
    return [slice(*pair) for pair in pairwise(bounds)]


def run_threads(function, tasks, n_threads):
    """Call `function(*task)` for every task on up to `n_threads` threads; results in the order of the tasks.

    The function must release the GIL and write only what its own task owns, so that the result is the same for any
    number of threads. The first exception is raised again here.
    """
    tasks = list(tasks)
    if n_threads <= 1 or len(tasks) <= 1:
        return [function(*task) for task in tasks]
    with ThreadPoolExecutor(min(n_threads, len(tasks))) as pool:
        return [future.result() for future in [pool.submit(function, *task) for task in tasks]]


def stream_threads(function, tasks, n_threads):
    """Yield `function(*task)` of every task in order, on up to `n_threads` threads.

    `tasks` is consumed as the results are: at most one more than there are threads is held. The function as in
    `run_threads`. Closing the generator waits for what is under way.
    """
    if n_threads <= 1:
        for task in tasks:
            yield function(*task)
        return
    pending = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        for task in tasks:
            pending.append(pool.submit(function, *task))
            if len(pending) > n_threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
