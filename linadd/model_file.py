"""Model files: named arrays and a JSON header in one safetensors file, for every class of model.

The file is read and written here with NumPy alone: 8 bytes of length, a JSON table, then the arrays one after another.
The safetensors package reads the same files, but orders its metadata differently in every process, and a program that
only scores should need no more than NumPy. What the arrays mean belongs to the model classes; `models.py` finds those.

A file is untrusted input. Nothing in it is executed, every size is compared with the file's length before anything of
that size is allocated, and a checksum over the whole content tells a damaged file from a good one.
"""

import hashlib
import json
import math
import os

import numpy as np

from linadd.atomic import atomic_path
from linadd.errors import DataError, FormatError

__all__ = [
    "check_tensors",
    "load_model_file",
    "make_check_rows",
    "model_digest",
    "restore",
    "save_model",
    "score_difference",
    "take_tensor",
    "verify_check_scores",
]

FORMAT = "linadd"
FORMAT_VERSION = 1
N_CHECK_ROWS = 32
TABLE_BYTES_LIMIT = 100_000_000  # the safetensors package refuses a longer table
DTYPES = {
    name: np.dtype(code)
    for name, code in {
        "F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
        "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
    }.items()
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}
# Header keys, at any depth, that tell of one run and not of the model: two runs with the same bits differ in them.
RUN_KEYS = frozenset({"fingerprint", "n_jobs", "peak_memory_bytes", "reads", "rows_per_second", "seconds"})


def save_model(path, tensors, header):
    """Write a model file, whole or not at all; the same content gives the same bytes.

    Parameters
    ----------
    path : path-like
        Target; by convention `*.safetensors`. An existing file is replaced in one step.
    tensors : dict of str to array
        Float32, float64 or integer arrays of any shape; stored little-endian, in order of item size, then name.
    header : dict
        JSON values and NumPy scalars or arrays of them, no NaN or infinity; the key `"class"` names the model class
        (`models.MODELS`).

    Raises
    ------
    FormatError
        A tensor's dtype or a header value cannot be stored.
    DataError
        The file cannot be written (`atomic_path`).
    """
    arrays = {name: stored_array(name, array) for name, array in tensors.items()}
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    table, offset = {}, 0
    for name in order:
        array = arrays[name]
        end = offset + array.nbytes
        table[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    text = canonical_json(header)
    metadata = {
        "checksum": content_checksum(table, text, (arrays[name] for name in order)),
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "header": text,
    }
    head = canonical_json({"__metadata__": metadata, **table}).encode()
    head += b" " * (-len(head) % 8)  # so that every array starts at a multiple of its item size
    if len(head) > TABLE_BYTES_LIMIT:
        raise FormatError(
            f"the header takes {len(head)} bytes, the limit is {TABLE_BYTES_LIMIT}. Shorten it.", source=path
        )  # fmt: skip
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for name in order:
            file.write(arrays[name].data)


def load_model_file(path):
    """Read a model file.

    Parameters
    ----------
    path : path-like
        A file that `save_model` of this or an older version wrote.

    Returns
    -------
    tensors : dict of str to array
        Newly allocated, writable, in native byte order.
    header : dict
        As it was saved: tuples and arrays have become lists.

    Raises
    ------
    FormatError
        The file is no model of linadd, of a newer format, cut short, or damaged; names the file and what is wrong.
    DataError
        The file cannot be opened or read.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            metadata, table, data_start = read_table(file, size, path)
            header = parse_header(metadata, path)
            order = check_table(table, size - data_start, path)
            tensors = {name: read_tensor(file, table[name], path) for name in order}
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"cannot be read ({reason}). Give a model file that exists.", source=path) from error
    if content_checksum(table, metadata["header"], tensors.values()) != metadata.get("checksum"):
        raise damaged(path, "its content does not match its checksum")
    return {name: array.astype(array.dtype.newbyteorder("="), copy=False) for name, array in tensors.items()}, header


def restore(cls, tensors, header):
    """The model of a class that a file holds; whatever its `from_state` trips over in the file is a FormatError."""
    from_state = cls.from_state
    try:
        return from_state(tensors, header)
    except FormatError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # The checksum holds, so another program wrote this: still the file's fault, and no traceback.
        raise FormatError(f"its header or tensors do not fit its class ({error!r}). Train the model anew.") from error


def model_digest(tensors, header):
    """Name a model by what the reproducibility contract covers: two runs with the same bits have the same digest.

    Parameters
    ----------
    tensors : dict of str to array
        As given to `save_model` or returned by `load_model_file`.
    header : dict
        Likewise; the keys of `RUN_KEYS` (times, threads, memory, reads, the data's fingerprint) stay outside at any
        depth.

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    arrays = {name: stored_array(name, tensors[name]) for name in sorted(tensors)}
    table = {name: [NAMES[array.dtype], list(array.shape)] for name, array in arrays.items()}
    return content_checksum(table, canonical_json(without_run_keys(header)), arrays.values())


def make_check_rows(ranges, seed=0):
    """Draw the synthetic rows on which every copy of a model is compared with the model itself.

    Parameters
    ----------
    ranges : array, shape (n_features, 2), float64
        Lowest and highest value of each feature; the rows are uniform between them, and never training rows. An
        infinite end, of a feature that is not clamped, stands for -1 or 1.
    seed : int
        Seed of the draw.

    Returns
    -------
    array, shape (32, n_features), float64
    """
    ranges = np.where(np.isfinite(ranges), ranges, [-1.0, 1.0])
    share = np.random.default_rng(seed).random((N_CHECK_ROWS, len(ranges)))
    # Not low + share * (high - low): the difference may overflow.
    rows = ranges[:, 0] * (1 - share) + ranges[:, 1] * share
    return np.clip(rows, *ranges.T)  # by rounding it may end beside the range


def check_tensors(ranges, decision_function, seed=0, dtype=np.float64):
    """Check rows and their scores, to be saved with a model.

    Parameters
    ----------
    ranges : array, shape (n_features, 2), float64
        As in `make_check_rows`.
    decision_function : callable
        The model's scores of float64 rows.
    seed : int
        Seed of the rows.
    dtype : dtype
        Float type that the rows are rounded to.

    Returns
    -------
    dict
        `check_rows`, shape (32, n_features), and `check_scores`, as `decision_function` returns them, both float64.
    """
    rows = make_check_rows(ranges, seed).astype(dtype).astype(np.float64)
    return {"check_rows": rows, "check_scores": np.asarray(decision_function(rows), np.float64)}


def verify_check_scores(tensors, decision_function, tolerance=1e-9):
    """Refuse a loaded model whose scores of its check rows are not those that were saved with it.

    Parameters
    ----------
    tensors : dict of str to array
        Holds `check_rows` and `check_scores`.
    decision_function : callable
        The scores of the model as loaded.
    tolerance : float
        Largest accepted `score_difference`. Another CPU adds in another order: some 1e-13 with thousands of features.

    Raises
    ------
    FormatError
        The check rows are missing, or the scores differ.
    """
    rows = take_tensor(tensors, "check_rows", np.float64, (N_CHECK_ROWS, None))
    scores = decision_function(rows)
    saved = take_tensor(tensors, "check_scores", np.float64, np.shape(scores))
    difference = score_difference(scores, saved)
    if not difference <= tolerance:
        raise FormatError(
            f"the scores of its check rows differ from the saved ones by {difference:.1e} (relative; allowed "
            f"{tolerance:.0e}): it does not compute what it computed when it was saved. Train the model anew."
        )


def score_difference(scores, expected):
    """Largest difference of two score arrays, relative to the largest expected score; NaN if a score is NaN.

    Parameters
    ----------
    scores, expected : array, of one shape, float64
        Not empty.

    Returns
    -------
    float
        max |scores - expected| / max |expected|; the denominator is at least the smallest normal number.
    """
    scale = max(float(np.max(np.abs(expected))), np.finfo(np.float64).tiny)
    with np.errstate(invalid="ignore"):  # infinity minus infinity: NaN is the answer
        return float(np.max(np.abs(np.asarray(scores) - expected)) / scale)


def take_tensor(tensors, name, dtype, shape):
    """Get one array of a loaded file, after checking what compiled code is going to rely on.

    Parameters
    ----------
    tensors : dict of str to array
        From `load_model_file`.
    name : str
        The array's name.
    dtype : dtype
        Required dtype.
    shape : tuple of int or None
        Required shape; None stands for any length.

    Returns
    -------
    array
        `tensors[name]` itself.

    Raises
    ------
    FormatError
        No such array, or another dtype or shape.
    """
    if name not in tensors:
        raise FormatError(f"tensor {name!r} is missing; it has {', '.join(tensors) or 'none'}. Train the model anew.")
    array = tensors[name]
    fits = len(shape) == array.ndim and all(want in (None, have) for want, have in zip(shape, array.shape, strict=True))
    if array.dtype != dtype or not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise FormatError(
            f"tensor {name!r} is {array.dtype} of shape {array.shape}, not {np.dtype(dtype)} of shape ({wanted}). "
            "Train the model anew."
        )
    return array


def read_table(file, size, path):
    """The safetensors table at the head of a file: metadata, tensor entries, and where the arrays start."""
    length = int.from_bytes(file.read(8), "little")
    if length > min(size - 8, TABLE_BYTES_LIMIT):
        raise FormatError(
            f"is no model file: its {size} bytes do not begin with the table of one. Give a model of linadd.",
            source=path,
        )
    table = parse_json(file.read(length), path)
    metadata = table.pop("__metadata__", None)
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise FormatError("is a safetensors file of another program. Give a model that linadd wrote.", source=path)
    return metadata, table, 8 + length


def parse_header(metadata, path):
    """The JSON header, once the format version is known to be one of ours."""
    version = metadata.get("format_version")
    if not isinstance(version, str) or not version.isdecimal() or len(version) > 9 or int(version) < 1:
        raise damaged(path, f"its format version is {version!r:.40}")
    if int(version) > FORMAT_VERSION:
        raise FormatError(
            f"has format version {version}, this linadd reads up to {FORMAT_VERSION}. Upgrade linadd.",
            source=path,
        )
    text = metadata.get("header")
    if not isinstance(text, str):
        raise damaged(path, "its header is missing")
    return parse_json(text, path)


def parse_json(text, path):
    """A JSON object; anything else, NaN and infinity included, is damage."""
    try:
        value = json.loads(text, parse_constant=finite, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"its header is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise damaged(path, f"its header is a {type(value).__name__}, not an object")
    return value


def finite(text):
    """The float of a JSON number; `json` would let NaN, Infinity and 1e999 pass."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text:.40}")
    return value


def check_table(table, n_bytes, path):
    """Names in order of their offsets, once the entries are seen to tile the `n_bytes` of arrays exactly."""
    for name, entry in table.items():
        check_entry(f"tensor {name!r:.40}", entry, path)
    order = sorted(table, key=lambda name: (table[name]["data_offsets"], name))
    end = 0
    for name in order:
        start, stop = table[name]["data_offsets"]
        if start != end:
            raise damaged(path, f"tensor {name!r:.40} starts at byte {start}, the one before ends at {end}")
        end = stop
    if end != n_bytes:
        raise damaged(path, f"its tensors take {end} bytes, {n_bytes} are there")
    return order


def check_entry(what, entry, path):
    """Refuse a table entry whose dtype, shape and offsets do not agree."""

    def are_counts(value):
        return isinstance(value, list) and len(value) <= 32 and all(type(v) is int and 0 <= v < 2**63 for v in value)

    dtype = DTYPES.get(str(entry.get("dtype"))) if isinstance(entry, dict) else None
    if dtype is None:
        raise damaged(path, f"{what} has no known dtype")
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    # An empty array may have other lengths, but NumPy refuses those that overflow.
    if not are_counts(shape) or math.prod(length or 1 for length in shape) > 2**59:
        raise damaged(path, f"{what} has no valid shape")
    if not are_counts(offsets) or len(offsets) != 2:
        raise damaged(path, f"{what} has no valid offsets")
    if math.prod(shape) * dtype.itemsize != offsets[1] - offsets[0]:
        raise damaged(path, f"{what} does not fill its bytes {offsets[0]} to {offsets[1]}")


def read_tensor(file, entry, path):
    """The next array of the file, whose size has been checked."""
    array = np.empty(entry["shape"], DTYPES[entry["dtype"]])
    if file.readinto(array.reshape(-1).view(np.uint8)) != array.nbytes:
        raise damaged(path, "it became shorter while it was read")
    return array


def stored_array(name, array):
    """A contiguous, little-endian array of a dtype that the format has."""
    array = np.asarray(array)
    dtype = array.dtype.newbyteorder("<")
    if dtype not in NAMES:
        allowed = ", ".join(map(str, NAMES))
        raise FormatError(f"tensor {name!r} has dtype {array.dtype}. Convert it to one of {allowed}.")
    return np.ascontiguousarray(array, dtype).reshape(array.shape)


def canonical_json(value):
    """The one text of a JSON value: keys sorted, no spaces, floats in their shortest exact form."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"the header holds what JSON cannot: {error}. Leave it out or use null.") from error


def plain(value):
    """NumPy scalars and arrays as Python numbers and lists, for `json`."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__}")


def without_run_keys(value):
    """A copy of a header without the facts of one run."""
    if isinstance(value, dict):
        return {key: without_run_keys(item) for key, item in value.items() if key not in RUN_KEYS}
    return [without_run_keys(item) for item in value] if isinstance(value, list | tuple) else value


def content_checksum(table, text, arrays):
    """128-bit BLAKE2 checksum of a table, a header text and the bytes of arrays."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (canonical_json(table), text):
        digest.update(part.encode(errors="surrogatepass") + b"\0")
    for array in arrays:
        digest.update(array.data)
    return digest.hexdigest()


def damaged(path, what):
    """The error of a file that linadd, or something on the way, did not leave whole."""
    return FormatError(f"{what}: the file is damaged or cut short. Copy it again or train the model anew.", source=path)
