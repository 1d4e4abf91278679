"""The laws that every source keeps, over the list `BUILDERS` of ways to hand the same table to `open_source`.

The table's values are their positions (`position_table`), so that a lost, repeated or misplaced row shows.
"""

import json
import os
import pickle
import threading

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse

from linadd.errors import DataError
from linadd.sources import open_source
from linadd.sources.columns import match_columns
from linadd.sources.convert import convert
from linadd.sources.renames import RenamedSource

LETTERS = "abcdefghijklmnop"  # names of columns, where the format has some


def position_table(n_rows, n_features, dtype=np.float64):
    """Table of values that tell their position, none of them zero, with a label and a weight for each row."""
    X = np.arange(1, n_rows * n_features + 1, dtype=np.float64).reshape(n_rows, n_features).astype(dtype)
    return X, np.arange(n_rows) % 3, np.arange(n_rows) / 4


def few(X):
    """Rows of a chunk or group of a file: 4 of a small table, a sixteenth of a large one."""
    return min(len(X), max(4, len(X) // 16))


def build_array(folder, X, y, weight):
    return X, {"y": y, "weights": weight}


def build_strided(folder, X, y, weight):
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
    wide[::2, 1::3] = X
    wide.flags.writeable = False
    return wide[::2, 1::3], {"y": y, "weights": weight}


def build_fortran(folder, X, y, weight):
    return np.asfortranarray(X), {"y": y, "weights": weight}


def build_big_endian(folder, X, y, weight):
    return X.astype(X.dtype.newbyteorder(">")), {
        "y": y.astype(y.dtype.newbyteorder(">")),
        "weights": weight.astype(">f8"),
    }


def build_memory_map(folder, X, y, weight):
    np.save(folder / "map.npy", X)
    return np.load(folder / "map.npy", mmap_mode="r"), {"y": y, "weights": weight}


def build_lists(folder, X, y, weight):
    return X.tolist(), {"y": y.tolist(), "weights": weight.tolist()}


def build_csr(folder, X, y, weight):
    return scipy.sparse.csr_array(X), {"y": y, "weights": weight}


def build_csc_matrix(folder, X, y, weight):
    return scipy.sparse.csc_matrix(X), {"y": y, "weights": weight}


def build_dask(folder, X, y, weight):
    import dask.array as da

    chunks = (max(1, len(X) // 3), max(1, X.shape[1] // 2))
    return da.from_array(X, chunks=chunks), {"y": da.from_array(y, chunks=few(X)), "weights": weight}


def build_dask_sparse(folder, X, y, weight):
    import dask.array as da

    sparse = da.from_array(X, chunks=(max(1, len(X) // 2), -1)).map_blocks(scipy.sparse.csr_array)
    return sparse, {"y": y, "weights": weight}


def build_pandas(folder, X, y, weight):
    import pandas

    return pandas.DataFrame(X, columns=list(LETTERS)[: X.shape[1]]), {"y": pandas.Series(y), "weights": weight}


def build_pandas_nullable(folder, X, y, weight):
    import pandas

    nullable = str(X.dtype).title().replace("Ui", "UI")
    return pandas.DataFrame(X).astype(nullable), {"y": y, "weights": weight}


def build_polars(folder, X, y, weight):
    import polars

    frame = polars.DataFrame({name: X[:, j] for j, name in enumerate(LETTERS[: X.shape[1]])})
    return frame, {"y": polars.Series(y), "weights": weight}


def build_columns(folder, X, y, weight):
    data, own = build_polars(folder, X[:, ::-1], y, weight)
    backwards = open_source(data, **own)
    return match_columns(backwards, backwards.feature_names[::-1]), {}


def build_renamed(folder, X, y, weight):
    return RenamedSource(open_source(X, y, weights=weight), {"1": "a"}, {}), {}


def build_npy(folder, X, y, weight):
    for name, array in (("X", X), ("y", y), ("w", weight)):
        np.save(folder / f"{name}.npy", array)
    return folder / "X.npy", {"y_name": "y.npy", "weights": str(folder / "w.npy")}


def build_npy_fortran(folder, X, y, weight):
    np.save(folder / "X.npy", np.asfortranarray(X))
    return str(folder / "X.npy"), {"y": y, "weights": weight}


def build_npz(folder, X, y, weight):
    np.savez_compressed(folder / "data.npz", X=X, target=y, w=weight)
    return folder / "data.npz", {"y_name": "target", "weights": "w"}


def stored(y):
    """Labels as h5py stores them: text as objects."""
    return y.astype(object) if y.dtype.kind == "U" else y


def build_hdf5(folder, X, y, weight):
    with h5py.File(folder / "data.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(few(X), X.shape[1]), compression="gzip")
        file["y"], file["weight"] = stored(y), weight
    return folder / "data.h5", {}


def build_hdf5_group(folder, X, y, weight):
    with h5py.File(folder / "odd::name.h5", "w") as file:
        group = file.create_group("a/b")
        group.create_dataset("features", data=X, chunks=(few(X), 1))
        labels = np.char.encode(y, "utf-8") if y.dtype.kind == "U" else y
        group["target"], group["w"] = labels[:, None], weight[None]
    return f"{folder}/odd::name.h5::a/b", {"x": "features", "y_name": "target", "weights": "w"}


def build_hdf5_matlab(folder, X, y, weight):
    with h5py.File(folder / "data.mat", "w", userblock_size=512) as file:
        file["X"], file["y"], file["weight"] = X.T, stored(y)[None], weight[None]
        file["X"].attrs["MATLAB_class"] = np.bytes_("double")
    with open(folder / "data.mat", "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file")
    return folder / "data.mat", {}


def build_mat(folder, X, y, weight):
    labels = y if y.dtype.kind != "U" else np.array(y, object)[:, None]
    scipy.io.savemat(folder / "data.mat", {"X": X, "y": labels, "w": weight}, do_compression=True)
    return folder / "data.mat", {"weights": "w"}


def build_mat_sparse(folder, X, y, weight):
    variables = {"features": scipy.sparse.csc_matrix(X), "y": y[:, None], "w": weight[:, None]}
    scipy.io.savemat(folder / "data.mat", variables)
    return folder / "data.mat", {"x": "features", "weights": "w"}


def build_hdf5_native(folder, X, y, weight):
    convert(open_source(X, y, weights=weight), folder / "native.h5", chunk_rows=3)
    return folder / "native.h5", {}


def fill_zarr(group, X, y, weight, columns=3):
    """Fill a group with a table."""
    group.create_array("X", data=X, chunks=(few(X), min(columns, X.shape[1])))
    group.create_array("y", data=y.astype(np.dtypes.StringDType()) if y.dtype.kind == "U" else y)
    group.create_array("weight", data=weight)


def build_zarr2(folder, X, y, weight):
    import zarr

    fill_zarr(zarr.open_group(folder / "data.zarr", mode="w", zarr_format=2), X, y, weight)
    return folder / "data.zarr", {}


def build_zarr3(folder, X, y, weight):
    import zarr

    group = zarr.open_group(folder / "data.zarr", mode="w", zarr_format=3, path="a/b")
    fill_zarr(group, X, y, weight, columns=X.shape[1])
    return f"{folder}/data.zarr::a/b", {}


def build_zarr_zip(folder, X, y, weight):
    import zarr

    with zarr.storage.ZipStore(folder / "data.zip", mode="w") as store:
        fill_zarr(zarr.open_group(store, mode="w"), X, y, weight)
    return folder / "data.zip", {}


def build_zarr_array(folder, X, y, weight):
    import zarr

    return zarr.create_array({}, data=X, chunks=(few(X), X.shape[1])), {"y": y, "weights": weight}


def build_files(folder, X, y, weight):
    paths = []
    for first, part in enumerate(np.array_split(np.arange(len(X)), 3)):
        paths.append(folder / f"part-{first}.npz")
        np.savez(paths[-1], X=X[part], y=y[part], weight=weight[part])
    return paths, {"weights": "weight"}


def build_files_libsvm(folder, X, y, weight):
    parts = np.array_split(np.arange(len(X)), 3)
    return [write_libsvm(folder / f"part-{part[0]}.svm", X[part], y[part]) for part in parts], {}


def build_where(folder, X, y, weight):
    part = np.tile([2, 1, 3], len(X))
    keep = part != 2
    table = np.zeros((len(part), X.shape[1]), X.dtype)
    labels, weights = np.zeros(len(part), y.dtype), np.zeros(len(part))
    rows = np.flatnonzero(keep)[: len(X)]
    table[rows], labels[rows], weights[rows] = X, y, weight
    part[np.flatnonzero(keep)[len(X) :]] = 2
    np.savez(folder / "parts.npz", X=table, y=labels, w=weights, part=part)
    return folder / "parts.npz", {"weights": "w", "where": {"part": ["1", "3"]}}


def write_libsvm(path, X, y):
    """Write a table as libsvm text with a comment, a blank line and both kinds of line ends."""
    lines = ["# a comment"] + [
        f"{label} qid:1 {' '.join(f'{j + 1}:{value}' for j, value in enumerate(row))}"
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    ]
    lines.insert(len(lines) // 2, "")
    path.write_text("\r\n".join(lines), newline="")
    return path


def build_libsvm(folder, X, y, weight):
    return write_libsvm(folder / "data.txt", X, y), {}


def build_libsvm_bz2(folder, X, y, weight):
    import bz2

    plain = write_libsvm(folder / "plain", X, y)
    (folder / "data.bz2").write_bytes(bz2.compress(plain.read_bytes()))
    return folder / "data.bz2", {}


def write_table(path, X, y, weight, names, delimiter=","):
    """Write a table as delimited text: quoted labels, a blank line and two kinds of line ends."""
    columns = zip(X.tolist(), y, weight.tolist(), strict=True)
    rows = [[*map(repr, values), f'"{label}"', repr(w)] for values, label, w in columns]
    lines = [delimiter.join(row) for row in ([[*names, "y", "w"]] if names else []) + rows]
    lines[len(lines) // 2] += "\r\n"
    path.write_text("\n".join(lines), newline="")
    return path


def build_csv(folder, X, y, weight):
    return write_table(folder / "data.csv", X, y, weight, LETTERS[: X.shape[1]]), {"weights": "w"}


def build_tsv_gz(folder, X, y, weight):
    import gzip

    plain = write_table(folder / "plain", X, y, weight, None, "\t")
    (folder / "data.tsv.gz").write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    return folder / "data.tsv.gz", {"y_name": str(X.shape[1] + 1), "weights": str(X.shape[1] + 2)}


def table_of(X, y, weight):
    """A pyarrow table, labels and weights first."""
    import pyarrow

    return pyarrow.table({"y": y, "w": weight} | {name: X[:, j] for j, name in enumerate(LETTERS[: X.shape[1]])})


def build_parquet(folder, X, y, weight):
    import pyarrow.parquet

    pyarrow.parquet.write_table(table_of(X, y, weight), folder / "data.parquet", row_group_size=few(X))
    return folder / "data.parquet", {"weights": "w"}


def build_parquet_group(folder, X, y, weight):
    import pyarrow.parquet

    table = table_of(X, y, weight)
    table = table.set_column(0, "a label", table.column("y").dictionary_encode())
    pyarrow.parquet.write_table(table, folder / "data", data_page_size=64, compression="zstd")
    return folder / "data", {"y_name": "a label", "weights": "w"}


def build_frame_columns(folder, X, y, weight):
    return table_of(X, y, weight).to_pandas(), {"y": "y", "weights": "w"}


BUILDERS = {name.removeprefix("build_"): build for name, build in globals().items() if name.startswith("build_")}
# Formats that keep no dtype but their own, and those that hold neither text labels nor weights.
WITHOUT_WEIGHTS = WITHOUT_TEXT = {"libsvm", "libsvm_bz2", "files_libsvm"}
FLOAT64_ONLY = WITHOUT_TEXT | {"csv", "tsv_gz"}
TABLES = ("pandas", "polars", "csv", "parquet", "parquet_group", "frame_columns")
NAMES = {name: list("abcd") for name in TABLES} | {"columns": list("dcba"), "renamed": list("a234")}


def open_table(name, folder, X, y, weight, **options):
    """The table opened by the builder `name`."""
    data, own = BUILDERS[name](folder, X, y, weight)
    return open_source(data, **own, **options)


def refusal(function, *arguments, error=DataError, **options):
    """The message with which a call is refused."""
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    assert type(caught.value) is error
    return str(caught.value)


def dense(chunk):
    """X of a chunk as an array, in whatever dtype the chunk has."""
    assert scipy.sparse.issparse(chunk.X) or isinstance(chunk.X, np.ndarray)
    return chunk.dense()


def check_schema(name, folder):
    X, y, weight = position_table(11, 4)
    source = open_table(name, folder, X, y, weight)
    assert (source.n_rows, source.n_features, source.has_labels) == (11, 4, True)
    assert source.has_weights == (name not in WITHOUT_WEIGHTS)
    names = NAMES.get(name)
    assert source.feature_names == names and source.class_names is None
    assert source.column_name(2) == (names[2] if names else 3)
    assert source.chunk_rows >= 1 and isinstance(source.origin, str)
    assert scipy.sparse.issparse(source.read(0, 1).X) == source.is_sparse


def check_rows_come_once_in_order(name, folder):
    X, y, weight = position_table(13, 4)
    source = open_table(name, folder, X, y, weight)
    for chunk_rows in (1, 2, 3, 5, 13, 50):
        source.chunk_rows = chunk_rows
        chunks = list(source.chunks())
        assert [chunk.first_row for chunk in chunks] == list(range(0, 13, chunk_rows))
        np.testing.assert_array_equal(np.concatenate([dense(chunk) for chunk in chunks]), X)
        np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), y)
        if source.has_weights:
            np.testing.assert_array_equal(np.concatenate([chunk.weight for chunk in chunks]), weight)


def check_chunks_from_a_row(name, folder):
    X, y, weight = position_table(13, 4)
    source = open_table(name, folder, X, y, weight, chunk_rows=5)
    chunks = list(source.chunks(7))
    assert [(chunk.first_row, chunk.n_rows) for chunk in chunks] == [(7, 3), (10, 3)]
    np.testing.assert_array_equal(np.concatenate([dense(chunk) for chunk in chunks]), X[7:])


def check_random_reads(name, folder):
    X, y, weight = position_table(300, 3)
    source = open_table(name, folder, X, y, weight)
    ranges = [sorted(pair) for pair in np.random.default_rng(0).integers(0, 300, (20, 2)).tolist()]
    ranges = [(start, stop + 1) for start, stop in [*ranges, (255, 256), (256, 256), (0, 299), (299, 299)]]
    many = source.read_many(ranges)
    for (start, stop), chunk in zip(ranges, many, strict=True):
        alone = source.read(start, stop)
        assert chunk.first_row == alone.first_row == start
        for each in (chunk, alone):
            np.testing.assert_array_equal(dense(each), X[start:stop])
            np.testing.assert_array_equal(each.y, y[start:stop])
    assert source.read_many([]) == []


def check_dtype_is_kept(name, folder):
    for dtype in ("uint8", "int16", "int64", "float32", "float64"):
        X, y, weight = position_table(5, 3, dtype)
        expected = "float64" if name in FLOAT64_ONLY else "int64" if name == "lists" else dtype
        if name == "lists" and X.dtype.kind == "f":
            expected = "float64"
        (folder / dtype).mkdir()
        source = open_table(name, folder / dtype, X, y, weight)
        chunk = source.read(1, 4)
        assert source.dtype == chunk.X.dtype == expected and chunk.X.dtype.isnative
        np.testing.assert_array_equal(dense(chunk), X[1:4])
        if source.is_sparse:
            assert chunk.X.indices.dtype == chunk.X.indptr.dtype == np.int32


def check_text_labels(name, folder):
    X, y, weight = position_table(9, 3)
    texts = np.array(["cat", "dog", "épagneul"])[y]
    source = open_table(name, folder, X, texts, weight, chunk_rows=2)
    assert [label for chunk in source.chunks() for label in chunk.y.tolist()] == texts.tolist()


def check_ranges_are_refused(name, folder):
    X, y, weight = position_table(5, 3)
    source = open_table(name, folder, X, y, weight)
    for start, stop in ((-1, 2), (2, 2), (3, 2), (0, 6), (5, 6)):
        message = f"{source.origin}: rows {start} to {stop} were asked for; there are 5."
        assert refusal(source.read, start, stop) == message


def check_pickling(name, folder):
    X, y, weight = position_table(9, 3)
    copy = pickle.loads(pickle.dumps(open_table(name, folder, X, y, weight)))
    np.testing.assert_array_equal(dense(copy.read(2, 7)), X[2:7])


def check_threads(name, folder):
    X, y, weight = position_table(64, 3)
    source = open_table(name, folder, X, y, weight)
    found = [None] * 16

    def read(i):
        found[i] = dense(source.read(4 * i, 4 * i + 4))

    threads = [threading.Thread(target=read, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(np.concatenate(found), X)


def check_input_is_not_changed(name, folder):
    def content(data):
        if isinstance(data, (str, os.PathLike)):
            path = folder / os.path.basename(str(data).removesuffix("::a/b"))
            files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
            return [file.read_bytes() for file in files]
        if hasattr(data, "to_numpy"):  # a frame, whose pickle holds caches too
            data = data.to_numpy()
        return pickle.dumps(data.compute() if hasattr(data, "compute") else data)

    X, y, weight = position_table(9, 3)
    data, own = BUILDERS[name](folder, X, y, weight)
    before = content(data)
    for _ in open_source(data, **own).chunks():
        pass
    assert content(data) == before


def check_columns_are_chosen(name, folder):
    X, y, weight = position_table(9, 4)
    whole = open_table(name, folder, X, y, weight)
    names = whole.feature_names or ["1", "2", "3", "4"]
    few = {"features": [names[3], names[0], names[1]], "drop": names[1]}
    prints = [json.dumps(whole.fingerprint())]
    for options, kept in ((few, [0, 3]), ({"match": names[1::2]}, [1, 3])):
        source = open_table(name, folder, X, y, weight, **options)
        assert source.feature_names == [names[j] for j in kept] and source.n_features == 2
        assert source.is_sparse == whole.is_sparse and source.dtype == whole.dtype
        chunk = source.read(2, 7)
        np.testing.assert_array_equal(dense(chunk), X[2:7, kept])
        np.testing.assert_array_equal(chunk.y, y[2:7])
        assert (chunk.weight is None) == (name in WITHOUT_WEIGHTS)
        prints.append(json.dumps(source.fingerprint()))
    assert len(set(prints)) == 3


def check_layout(name, folder):
    """What is known of the storage is JSON of documented names; a file has a size."""
    layout = open_table(name, folder, *position_table(12, 3)).layout()
    assert json.loads(json.dumps(layout)) == layout
    assert layout.keys() <= {"bytes", "chunks", "codec", "is_text", "density"}
    assert all(size > 0 for size in layout.get("chunks", []))
    assert layout.get("bytes", 1) > 0 and 0 < layout.get("density", 1) <= 1


def check_fingerprint_follows_the_data(name, folder):
    X, y, weight = position_table(9, 3)
    prints = []
    for i, table in enumerate((X, X, X + 1)):
        (folder / str(i)).mkdir()
        fingerprint = open_table(name, folder / str(i), table, y, weight).fingerprint()
        # The same file elsewhere and later differs by path and time only.
        prints.append({key: value for key, value in fingerprint.items() if key not in ("path", "files", "mtime_ns")})
    # HDF5 headers and zip archives hold times, map_blocks random names.
    if not name.startswith("hdf5") and name not in ("dask_sparse", "zarr_zip"):
        assert prints[0] == prints[1]
    assert prints[0] != prints[2]


CHECKS = {name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")}
