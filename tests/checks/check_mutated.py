"""Damaged files: each of many seeded mutants of a whole file reads as the format's own library reads it, or is refused.

What must not happen to any of them: a crash of the process, ten seconds without an answer, more memory than `MEMORY`,
another exception than DataError, a message of two lines, other values than the library's. To add a format: a Case in
`CASES`, whose small file holds whatever its format can hold. The mutants of a case are read in one child process.
"""

import contextlib
import faulthandler
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import scipy.io
import scipy.sparse

from linadd.errors import DataError
from linadd.sources import open_source
from linadd.sources.convert import convert
from tests.checks.check_source import dense, position_table, table_of, write_table

N_MUTANTS = 200
SECONDS = 10
MEMORY = 1 << 30  # bytes of address space above what the imports take
HEAD_BYTES = 512  # where most formats keep their header
N_ROWS, N_FEATURES = 30, 4
X, Y, WEIGHT = position_table(N_ROWS, N_FEATURES, "float32")
NAMES = np.array(["a", "bé", "c", "d"])
TEXTS = np.array(["cat", "dog", "épagneul"])[Y]


class Case(NamedTuple):
    """A format of files.

    Attributes
    ----------
    name : str
        Name of the file.
    write : callable
        write(path) writes a whole file.
    own : callable
        own(path, rows) gives X and y (or None) of a slice of rows by the format's own library.
    options : dict
        For `open_source`.
    """

    name: str
    write: Callable
    own: Callable
    options: dict | None = None


def write_npy(path):
    np.save(path, X)


def own_npy(path, rows):
    return np.load(path)[rows], None


def write_npz(path):
    np.savez_compressed(path, X=X, y=TEXTS, feature_names=NAMES)


def own_npz(path, rows):
    with np.load(path) as archive:
        return archive["X"][rows], archive["y"][rows] if "y" in archive else None


def write_hdf5(path, **layout):
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, **layout)
        file["y"], file["weight"] = Y, WEIGHT


def write_hdf5_native(path):
    convert(open_source(X, Y), path, chunk_rows=7)


def write_hdf5_text(path):
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("X", data=X, chunks=(7, 3), compression="gzip", shuffle=True)
        file["y"] = TEXTS.astype(object)
        file.attrs["feature_names"] = NAMES.astype(object)


def own_hdf5(path, rows):
    with h5py.File(path) as file:
        if "y" not in file or isinstance(file["y"], h5py.Group):
            return file["X"][rows], None
        y = file["y"]
        return file["X"][rows], (y.asstr() if y.dtype.kind == "O" else y)[rows]


def write_csv(path):
    write_table(path, X, TEXTS, WEIGHT, NAMES.tolist())


def own_csv(path, rows):
    import pyarrow.csv

    text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys([*NAMES, "y", "w"], pyarrow.string()))
    table = pyarrow.csv.read_csv(path, convert_options=text).slice(rows.start, rows.stop - rows.start)
    X = [np.array(table.column(j).to_pylist(), np.float64) for j in range(N_FEATURES)]
    return np.transpose(X), np.array([label.strip() for label in table.column(N_FEATURES).to_pylist()])


def write_parquet(path, **layout):
    import pyarrow.parquet

    pyarrow.parquet.write_table(table_of(X, TEXTS, WEIGHT), path, **layout)


def write_parquet_groups(path):
    write_parquet(path, row_group_size=7, compression="zstd")


def own_parquet(path, rows):
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path).slice(rows.start, rows.stop - rows.start)
    features = [name for name in table.column_names if name not in ("y", "w")]
    y = np.array(table["y"].to_pylist()) if "y" in table.column_names else None
    return np.transpose([table[name].to_numpy() for name in features]), y


def write_mat(path, **options):
    scipy.io.savemat(path, {"X": X, "y": Y[:, None]}, **options)


def write_mat_sparse(path, **options):
    variables = {"X": scipy.sparse.csc_matrix(X), "y": TEXTS.astype(object), "feature_names": NAMES}
    scipy.io.savemat(path, variables, **options)


def own_mat(path, rows):
    X, y = (scipy.io.loadmat(path, variable_names=[name]).get(name) for name in "Xy")
    X = X.toarray() if scipy.sparse.issparse(X) else X
    if y is not None:
        y = [label[0] if label.size else "" for label in y.ravel()[rows]] if y.dtype == object else y.ravel()[rows]
    return X[rows], y


def write_mat73(path):
    with h5py.File(path, "w", userblock_size=512) as file:
        file["X"], file["y"] = X.T, Y[None]
        for name, kind in (("X", b"single"), ("y", b"int64")):
            file[name].attrs["MATLAB_class"] = np.bytes_(kind)


def own_mat73(path, rows):
    with h5py.File(path) as file:
        is_transposed = "MATLAB_class" in file["X"].attrs
        y = file["y"][()].ravel()[rows] if "y" in file else None
        return file["X"][:, rows].T if is_transposed else file["X"][rows], y


def write_zarr(path, zarr_format=3):
    import zarr

    store = zarr.storage.ZipStore(path, mode="w") if path.suffix == ".zip" else zarr.storage.LocalStore(path)
    with contextlib.closing(store):
        group = zarr.open_group(store, mode="w", zarr_format=zarr_format)
        group.create_array("X", data=X, chunks=(7, 3))
        group.create_array("y", data=TEXTS.astype(np.dtypes.StringDType()))
        group.attrs["feature_names"] = NAMES.tolist()


def own_zarr(path, rows):
    import zarr

    store = zarr.storage.ZipStore(path) if path.suffix == ".zip" else zarr.storage.LocalStore(path, read_only=True)
    with contextlib.closing(store):
        group = zarr.open_group(store, mode="r")
        y = group.get("y")
        return group["X"][rows], None if y is None else y[rows]


def write_libsvm(path):
    rows = [" ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row) if j != 2) for row in X.tolist()]
    lines = [f"{label} {row} # {name}" for label, row, name in zip(Y.tolist(), rows, TEXTS, strict=True)]
    path.write_text("\n".join(["# a comment", "", *lines]))


def own_libsvm(path, rows):
    """In plain Python, as scikit-learn and LIBLINEAR refuse lines that are not sorted."""
    lines = [line.split(b"#")[0].split() for line in path.read_bytes().split(b"\n")]
    lines = [[token for token in line if not token.startswith(b"qid:")] for line in lines if line]
    entries = [[tuple(map(float, token.split(b":"))) for token in tokens] for _, *tokens in lines]
    table = np.zeros((len(lines), int(max(index for line in entries for index, _ in line))))
    for i, line in enumerate(entries):
        for index, value in line:
            table[i, int(index) - 1] = value
    return table[rows], np.array([float(label) for label, *_ in lines])[rows]


CASES = {
    "npy": Case("data.npy", write_npy, own_npy),
    "npz": Case("data.npz", write_npz, own_npz),
    "hdf5": Case("data.h5", write_hdf5, own_hdf5),
    "hdf5_packed": Case("data.h5", lambda path: write_hdf5(path, chunks=(7, 2), compression="gzip"), own_hdf5),
    "hdf5_checked": Case("data.h5", lambda path: write_hdf5(path, chunks=(7, 2), fletcher32=True), own_hdf5),
    "hdf5_native": Case("data.h5", write_hdf5_native, own_hdf5),
    "hdf5_text": Case("data.h5", write_hdf5_text, own_hdf5),
    "csv": Case("data.csv", write_csv, own_csv, {"weights": "w"}),
    "parquet": Case("data.parquet", write_parquet, own_parquet, {"weights": "w"}),
    "parquet_groups": Case("data.parquet", write_parquet_groups, own_parquet, {"weights": "w"}),
    "mat4": Case("data.mat", lambda path: write_mat(path, format="4"), own_mat),
    "mat5": Case("data.mat", write_mat, own_mat),
    "mat5_sparse": Case("data.mat", write_mat_sparse, own_mat),
    "mat5_packed": Case("data.mat", lambda path: write_mat_sparse(path, do_compression=True), own_mat),
    "mat73": Case("data.mat", write_mat73, own_mat73),
    "libsvm": Case("data.svm", write_libsvm, own_libsvm),
    "zarr2": Case("data.zarr", lambda path: write_zarr(path, 2), own_zarr),
    "zarr3": Case("data.zarr", write_zarr, own_zarr),
    "zarr_zip": Case("data.zip", write_zarr, own_zarr),
}


def mutant(content, seed):
    """The bytes of a file, damaged in one of six ways."""
    random = np.random.default_rng(seed)
    content, n_bytes = np.frombuffer(content, np.uint8).copy(), len(content)
    kind, size = random.integers(6), int(random.integers(1, 5))
    n_head = n_bytes if random.random() < 0.5 else min(n_bytes, HEAD_BYTES)
    if kind == 0:  # some bits
        content[random.integers(n_bytes, size=size)] ^= (1 << random.integers(8, size=size)).astype(np.uint8)
    elif kind == 1:  # some bytes, of the header in half of the cases
        content[random.integers(n_head, size=size)] = random.integers(256, size=size)
    elif kind == 2:  # a number in the header: a size, an offset, a count
        width = 1 << int(random.integers(4))
        start = int(random.integers(max(n_head - width, 1)))
        number = int.from_bytes(content[start : start + width].tobytes(), "little")
        options = (0, 1, number + 1, number - 1, 2 * number, 1 << (8 * width - 1), (1 << 8 * width) - 1, number << 8)
        number = options[random.integers(len(options))] % (1 << 8 * width)
        new = np.frombuffer(number.to_bytes(width, "little"), np.uint8)
        content[start : start + width] = new[: n_bytes - start]
    elif kind == 3:  # the end is missing
        content = content[: random.integers(n_bytes)]
    elif kind == 4:  # a run of zeros, as after a crash of the machine
        start = random.integers(n_bytes)
        content[start : start + (1 << random.integers(1, 10))] = 0
    else:  # bytes too few or too many
        start, length = random.integers(n_bytes), random.integers(1, 65)
        part = random.integers(256, size=length) if size % 2 else content[start:start]
        content = np.concatenate([content[:start], part.astype(np.uint8), content[start + length * (1 - size % 2) :]])
    return content.tobytes()


def outcome(case, path):
    """What becomes of a mutant: "read" or "refused", or an AssertionError."""
    try:
        source = open_source(path, chunk_rows=7, **(case.options or {}))
        ends = [slice(0, min(3 * N_ROWS, source.n_rows)), slice(max(source.n_rows - N_ROWS, 0), source.n_rows)]
        found = [source.read(rows.start, rows.stop) for rows in ends]  # all of it, unless the damage has made it long
    except DataError as error:
        assert "\n" not in str(error) and os.fspath(path) in str(error), str(error)
        return "refused"
    for rows, chunk in zip(ends, found, strict=True):
        own_X, own_y = case.own(path, rows)
        np.testing.assert_array_equal(dense(chunk), own_X)
        if own_y is not None:
            assert list(map(str, chunk.y)) == list(map(str, own_y))
    return "read"


def address_space():
    """Bytes of address space that the process takes."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def main(name, folder, first, last):
    """Read the mutants of a case; a line of standard output says of each what came of it."""
    case = CASES[name]
    path = Path(folder) / case.name
    case.write(path)
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    whole = [file.read_bytes() for file in files]
    assert outcome(case, path) == "read"
    faulthandler.enable()
    limit = address_space() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for seed in range(int(first), int(last)):
        print(f"\nmutant {seed}:", end=" ", flush=True)
        k = seed % len(files)
        files[k].write_bytes(mutant(whole[k], seed))
        faulthandler.dump_traceback_later(SECONDS, exit=True)  # from a thread that needs no lock of Python's
        print(outcome(case, path), end="", flush=True)
        faulthandler.cancel_dump_traceback_later()
        files[k].write_bytes(whole[k])


def check_mutants(name, folder):
    """Read the mutants of a case in a child process; each must end well, and some of them be read, some refused."""
    command = [sys.executable, "-m", "tests.checks.check_mutated", name, str(folder), "0", str(N_MUTANTS)]
    run = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    said = run.stdout.splitlines()
    assert run.returncode == 0, f"{said[-1]}\n{run.stderr}"
    outcomes = [line.split(": ")[1] for line in said[1:]]
    assert len(outcomes) == N_MUTANTS and set(outcomes) == {"read", "refused"}


if __name__ == "__main__":
    main(*sys.argv[1:])
