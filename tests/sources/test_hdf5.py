"""HDF5 as people have it: layouts, codecs, names, locks and damage."""

import subprocess
import sys
import warnings

import dask
import h5py
import hdf5plugin
import numpy as np
import pytest

from linadd.errors import ConfigError, DataWarning
from linadd.solvers.plan import make_plan
from linadd.sources import hdf5, layout, open_source, row_copy
from linadd.sources.hdf5 import HDF5Source
from tests.checks.check_source import position_table, refusal

X, Y, WEIGHT = position_table(40, 3, "float32")


def write(path, x="X", **datasets):
    """A file with the table as dataset `x`, and others; returns the path."""
    with h5py.File(path, "w") as file:
        file[x] = X
        for name, data in datasets.items():
            file[name] = data
    return path


@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"chunks": True},
        {"chunks": (7, 2), "compression": "gzip", "shuffle": True, "fletcher32": True},
        {"chunks": (40, 1), "compression": "lzf"},
        {"chunks": (8, 3), "compression": "szip"},
        {"chunks": (7, 2), "scaleoffset": 1},
        {"chunks": (7, 3)} | dict(hdf5plugin.Blosc2()),
        {"chunks": (7, 3)} | dict(hdf5plugin.Bitshuffle(cname="zstd")),
        {"chunks": (7, 3)} | dict(hdf5plugin.LZ4()),
    ],
)
def test_layouts_and_codecs(tmp_path, layout):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=X, **layout)
    source = open_source(tmp_path / "a.h5", chunk_rows=11)
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in source.chunks()]), X)


def test_nbit(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        packed = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        packed.set_chunk((7, 3))
        packed.set_filter(h5py.h5z.FILTER_NBIT)
        space = h5py.h5s.create_simple(X.shape)
        h5py.h5d.create(file.id, b"X", h5py.h5t.STD_I32BE, space, packed).write(space, space, X.astype("i4"))
    np.testing.assert_array_equal(open_source(tmp_path / "a.h5").read(5, 20).X, X[5:20])


def test_plugins_are_loaded_when_a_filter_needs_them(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(7, 3), **hdf5plugin.Zstd())
    code = (
        "import sys, linadd.sources as s; assert 'hdf5plugin' not in sys.modules;"
        f"print(s.open_source({str(tmp_path / 'a.h5')!r}).read(1, 2).X.tolist())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[[4.0, 5.0, 6.0]]\n"


@pytest.mark.parametrize(
    "dtype", ["bool", "float16", ">f4", ">f8", ">i2", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"]
)
def test_numeric_types(tmp_path, dtype):
    table = np.array([[0, 1], [1, 0]]).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"] = table
        file.create_dataset("enum", data=[[1, 2]], dtype=h5py.enum_dtype({"a": 1, "b": 2}))
    delivered = {"bool": "uint8", "float16": "float32"}.get(dtype, np.dtype(dtype).newbyteorder("="))
    chunk = open_source(tmp_path / "a.h5").read(0, 2)
    assert chunk.X.dtype == delivered
    np.testing.assert_array_equal(chunk.X, table)
    assert open_source(tmp_path / "a.h5", x="enum").read(0, 1).X.tolist() == [[1, 2]]


def test_reader_chunks_are_whole_chunks_of_the_file(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", (10**6, 100), "f4", chunks=(300, 100))
        file.create_dataset("tall", (10**6, 100), "f4", chunks=(50_000, 100))
        file.create_dataset("whole", (10**6, 100), "f4")
    assert open_source(tmp_path / "a.h5").chunk_rows == 69 * 300
    assert open_source(tmp_path / "a.h5", x="tall").chunk_rows == 50_000
    assert open_source(tmp_path / "a.h5", x="whole").chunk_rows == 20_971


def test_names_of_columns_and_classes(tmp_path):
    path = write(tmp_path / "a.h5", y=Y)
    with h5py.File(path, "a") as file:
        file.attrs["feature_names"] = ["a", "b", "é"]
        file["y"].attrs["class_names"] = np.array([b"u", b"v", b"w"])
    source = open_source(path)
    assert source.feature_names == ["a", "b", "é"] and source.class_names == ["u", "v", "w"]
    assert source.column_name(2) == "é"
    with h5py.File(path, "a") as file:
        file["X"].attrs["feature_names"] = ["a", "b"]
    message = f"{path}: feature_names has 2 names for 3 columns. Correct or delete it."
    assert refusal(open_source, path) == message
    other = write(tmp_path / "b.h5", feature_names=["p", "q", "r"])
    assert open_source(other).feature_names == ["p", "q", "r"]


def test_weights(tmp_path, caplog):
    path = write(tmp_path / "a.h5", y=Y, weight=WEIGHT, other=WEIGHT + 1)
    with caplog.at_level("INFO", logger="linadd.sources.hdf5"):
        assert open_source(path).read(4, 5).weight == WEIGHT[4]
        open_source(path, weights="weight")
    assert caplog.messages == [f"{path}: dataset 'weight' holds sample weights; weights=False leaves them out"]
    assert open_source(path, weights="other").read(4, 5).weight == WEIGHT[4] + 1
    assert not open_source(path, weights=False).has_weights
    message = f"{path}: weights is an array; for HDF5 it must be the name of a dataset."
    assert refusal(open_source, path, weights=WEIGHT, error=ConfigError) == message


def test_missing_names_list_the_ones_that_exist(tmp_path):
    path = write(tmp_path / "a.h5", x="train/pixels", **{"train/label": Y, "note": "text"})
    there = "'note' () object, 'train/label' (40,) int64, 'train/pixels' (40, 3) float32"
    assert refusal(open_source, path) == (
        f"{path}: dataset 'X' does not exist. There are {there}. Name one with --x or as FILE::group."
    )
    assert refusal(open_source, path, x="train") == (
        f"{path}: dataset 'train' is a group. There are {there}. Name one with --x or as FILE::group."
    )
    assert refusal(open_source, f"{path}::test") == f"{path}: group 'test' does not exist. There are {there}."
    assert refusal(open_source, f"{path}::note") == (
        f"{path}: group 'note' is a dataset; name that with --x. There are {there}."
    )
    assert refusal(open_source, f"{path}::train", x="pixels", y_name="y2") == (
        f"{path}::train: dataset 'y2' does not exist. There are 'label' (40,) int64, 'pixels' (40, 3) float32. "
        "Name one with --y or as FILE::group."
    )
    many = write(tmp_path / "b.h5", x="d", **{f"e{i:02}": [1] for i in range(20)})
    listed = "'d' (40, 3) float32, " + ", ".join(f"'e{i:02}' (1,) int64" for i in range(9)) + " and more"
    assert refusal(open_source, many) == (
        f"{many}: dataset 'X' does not exist. There are {listed}. Name one with --x or as FILE::group."
    )
    with h5py.File(tmp_path / "c.h5", "w"):
        pass
    assert refusal(open_source, tmp_path / "c.h5") == (
        f"{tmp_path}/c.h5: dataset 'X' does not exist. There are no datasets. Name one with --x or as FILE::group."
    )


def test_tables_that_are_refused(tmp_path):
    path = write(
        tmp_path / "a.h5",
        flat=X[:, 0],
        text=["a", "b"],
        fields=np.zeros((2, 2), [("a", "f4")]),
        nothing=h5py.Empty("f4"),
        none=X[:0],
        z=X.astype(complex),
        y=Y[:-1],
    )
    for name, shape in (("flat", (40,)), ("nothing", ())):
        message = f"{path}: dataset {name!r} has shape {shape}; a table of rows and features is needed. Reshape it"
        assert refusal(open_source, path, x=name).startswith(message)
    assert refusal(open_source, path, x="none") == (
        f"{path}: dataset 'none' has shape (0, 3): no rows. Give data that have some."
    )
    numbers = "features must be real numbers."
    for name, dtype in (("text", "object"), ("z", "complex128"), ("fields", "[('a', '<f4')]")):
        assert refusal(open_source, path, x=name).startswith(f"{path}: dataset {name!r} has dtype {dtype}; {numbers}")
    assert refusal(open_source, path) == (
        f"{path}: dataset 'X' has 40 rows and dataset 'y' has 39 entries. Both must describe the same rows."
    )
    with h5py.File(path, "a") as file:
        file.create_dataset("reference", (40,), h5py.ref_dtype)
    message = f"{path}: labels have dtype object; they must be numbers or text."
    assert refusal(open_source, path, y_name="reference") == message


def test_links(tmp_path):
    path = write(tmp_path / "a.h5", y=Y)
    with h5py.File(tmp_path / "links.h5", "w") as file:
        file["X"] = h5py.ExternalLink("a.h5", "X")
        file["y"] = h5py.SoftLink("/z")
        file["z"] = Y
    source = open_source(tmp_path / "links.h5")
    np.testing.assert_array_equal(source.read(3, 9).X, X[3:9])
    assert source.has_labels
    path.unlink()
    assert refusal(open_source, tmp_path / "links.h5") == (
        f"{tmp_path}/links.h5: dataset 'X' is a link to 'a.h5', which cannot be opened. Put it there."
    )
    with h5py.File(tmp_path / "links.h5", "r+") as file:
        del file["X"]
        file["X"] = h5py.SoftLink("/gone/X")
    assert refusal(open_source, tmp_path / "links.h5") == (
        f"{tmp_path}/links.h5: dataset 'X' is a link to '/gone/X', which cannot be opened. Put it there."
    )


def test_virtual_datasets(tmp_path):
    layout = h5py.VirtualLayout((80, 3), "f4")
    for i in range(2):
        write(tmp_path / f"{i}.h5")
        layout[40 * i : 40 * i + 40] = h5py.VirtualSource(f"{i}.h5", "X", (40, 3))
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
    np.testing.assert_array_equal(open_source(tmp_path / "all.h5").read(30, 50).X, np.vstack([X[30:], X[:10]]))
    (tmp_path / "1.h5").unlink()
    assert refusal(open_source, tmp_path / "all.h5") == (
        f"{tmp_path}/all.h5: dataset 'X' is virtual and needs '1.h5', which does not exist beside it."
    )


def test_a_missing_filter_is_named(tmp_path, monkeypatch):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(7, 3), **hdf5plugin.Zstd())
    monkeypatch.setattr(h5py.h5z, "filter_avail", lambda code: False)
    with h5py.File(tmp_path / "a.h5") as file:
        label = file["X"].id.get_create_plist().get_filter(0)[3].decode()
    assert refusal(open_source, tmp_path / "a.h5") == (
        f"{tmp_path}/a.h5: dataset 'X' is packed with filter 32015 ({label}), which is not installed. "
        "Put its plugin on HDF5_PLUGIN_PATH, or unpack elsewhere: h5repack -f NONE SRC DST"
    )


@pytest.mark.parametrize("mode", ["w", "a"])
def test_a_file_that_is_being_written_is_one_line(tmp_path, mode):  # users.md C26
    path = write(tmp_path / "a.h5")
    code = (
        f"import h5py, sys; file = h5py.File({str(path)!r}, {mode!r}); file['Z'] = [[1.0]]; file.flush();"
        "print('written', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        writer.stdout.readline()
        message = f"{path}: is open for writing in another program, which has locked it. Close it there first."
        assert refusal(open_source, path) == message
        writer.communicate()
    assert open_source(path, x="Z").n_rows == 1


def test_a_reader_leaves_the_file_to_its_writer(tmp_path):
    path = write(tmp_path / "a.h5")
    source = open_source(path)
    chunks = source.chunks()
    next(chunks)
    with h5py.File(path, "a") as file:
        file["X"][0, 0] = 7
    chunks.close()
    assert source.read(0, 1).X[0, 0] == 7


def test_damaged_files_are_one_line(tmp_path):
    whole = write(tmp_path / "a.h5").read_bytes()
    path = tmp_path / "bad.h5"
    broken = "damaged, cut short or not closed by its writer. Write it again."
    for content, reason in ((b"", "file signature not found"), (whole[:1000], "truncated file")):
        path.write_bytes(content)
        message = refusal(open_source, path)
        assert message.startswith(f"{path}: is no whole HDF5 file ({reason}") and message.endswith(f"): {broken}")
        assert "\n" not in message
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(10, 3), compression="gzip")
        offset = file["X"].id.get_chunk_info(1).byte_offset
    content = bytearray(path.read_bytes())
    content[offset : offset + 20] = bytes(20)
    path.write_bytes(content)
    source = open_source(path)
    np.testing.assert_array_equal(source.read(0, 10).X, X[:10])
    assert refusal(source.read, 5, 15) == (
        f"{path}: rows 6 to 15 cannot be read (filter returned failure during read). "
        "The file is damaged or of a kind unknown to h5py."
    )


def test_a_damaged_dataset_is_not_taken_for_none(tmp_path):
    path = write(tmp_path / "a.h5", y=Y)
    with h5py.File(path) as file:
        header = h5py.h5o.get_info(file["y"].id).addr
    content = bytearray(path.read_bytes())
    content[header] = 77
    path.write_bytes(content)
    assert refusal(open_source, path) == (
        f"{path}: its header cannot be read (bad object header version number). "
        "The file is damaged or of a kind unknown to h5py."
    )


def test_layouts_that_are_slow_by_rows_warn_once_with_the_command(tmp_path):  # users.md C28
    path = tmp_path / "wide table.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("columns", (20_000, 300), "u1", chunks=(20_000, 1))
        file.create_dataset("tall", (20_000, 300), "u1", chunks=(20_000, 300), compression="gzip")
        file.create_dataset("plain", (20_000, 300), "u1", chunks=(20_000, 300))
        file.create_dataset("rows", (20_000, 300), "u1", chunks=(500, 300), compression="gzip")
        file.create_dataset("small", (5_000, 3), "u1", chunks=(5_000, 1))
        file.create_dataset("few", (1_000, 20_000), "u1", chunks=(1_000, 10))
        file.create_dataset("matlab", (300, 20_000), "u1").attrs["MATLAB_class"] = np.bytes_("uint8")
    command = f"Rewrite it once: linadd convert '{path}' '{tmp_path}/wide table_rows.h5' --x"
    for name, chunks in (("columns", "chunks of 20000 x 1"), ("tall", "chunks of 20000 x 300"), ("matlab", "columns")):
        with pytest.warns(DataWarning) as caught:
            source = open_source(path, x=name)
            source.read(0, 100)
        assert [str(warning.message) for warning in caught] == [
            f"{path}: dataset {name!r} is stored in {chunks}, which is slow to read by rows. {command} {name}"
        ]
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("plain", "rows", "small", "few"):
            open_source(path, x=name)


def chunk_reads(shape, chunk, reads):
    """How often each chunk of a file is unpacked by reads of (start, stop) rows and columns."""
    counts = np.zeros([-(-size // step) for size, step in zip(shape, chunk, strict=True)], int)
    for spans in reads:
        touched = [slice(start // step, -(-stop // step)) for (start, stop), step in zip(spans, chunk, strict=True)]
        counts[tuple(touched)] += 1
    return counts


# Name -> rows, chunk of rows and columns, filters.
SLOW = {
    "columns": (6000, (6000, 1), {"compression": "gzip"}),
    "tall": (9000, (5000, 5), {"compression": "gzip"}),
    "squares": (9000, (4500, 2), {}),
    "matlab": (9000, None, {}),
    "matlab_chunks": (9000, (5000, 2), {}),
}


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("panel_bytes", [1, 100_000, 1 << 20])
def test_each_chunk_of_a_slow_layout_is_unpacked_about_once(tmp_path, monkeypatch, name, panel_bytes):
    """users.md C27, C28: whatever the order, in the first of three passes; the others read the copy."""
    n_rows, chunk, filters = SLOW[name]
    table = np.arange(5 * n_rows, dtype="f4").reshape(n_rows, 5)
    order = -1 if name.startswith("matlab") else 1
    with h5py.File(tmp_path / "a.h5", "w") as file:
        X = file.create_dataset("X", data=table.T if order < 0 else table, chunks=chunk and chunk[::order], **filters)
        file["y"] = np.arange(n_rows)
        if order < 0:
            X.attrs["MATLAB_class"] = np.bytes_("single")
    reads, block = [], HDF5Source._block

    def note(self, X, rows, columns=None):
        reads.append((rows, columns or (0, 5)))
        return block(self, X, rows, columns)

    monkeypatch.setattr(HDF5Source, "_block", note)
    for module in (hdf5, layout):
        monkeypatch.setattr(module, "PANEL_BYTES", panel_bytes if chunk else 100_000)
    monkeypatch.setattr(row_copy, "LEAST_BYTES", 0)
    with open_source(tmp_path / "a.h5") as source:
        for seed in range(3):
            for start in 100 * np.random.default_rng(seed).permutation(n_rows // 100):
                piece = source.read(int(start), int(start) + 100)
                np.testing.assert_array_equal(piece.X, table[start : start + 100])
                assert piece.y.tolist() == list(range(start, start + 100))
    # Runs of a column count as chunks: the panel of 100,000 bytes has 5000 rows.
    assert chunk_reads((n_rows, 5), chunk or (5000, 5), reads).max() <= 4


def test_each_chunk_is_read_once_an_epoch(tmp_path):  # users.md C27
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", (200_000, 50), "u1", chunks=(500, 50))
    source = open_source(tmp_path / "a.h5")
    plan = make_plan(source.n_rows, source.n_features, memory_limit=20 << 20)
    assert not plan.fits
    for epoch in range(2):
        bounds = [plan.chunk_bounds(int(chunk)) for block in plan.blocks(epoch) for chunk in block]
        assert bounds != sorted(bounds)
        assert all(source.read(*pair).n_rows == 500 for pair in bounds[::10])
        assert (chunk_reads((200_000, 50), (500, 50), [(pair, (0, 50)) for pair in bounds]) == 1).all()


def test_whole_chunks_are_streamed_without_a_copy(tmp_path, monkeypatch):  # users.md C27
    monkeypatch.setattr(row_copy, "LEAST_BYTES", 0)
    monkeypatch.setattr(row_copy, "RowCopy", pytest.fail)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", (12_000, 50), "f4", chunks=(5000, 1))
    source = open_source(tmp_path / "a.h5")
    assert source.chunk_rows == 40_000
    for _ in range(3):
        assert sum(chunk.n_rows for chunk in source.chunks()) == 12_000


def test_handles_are_never_pickled(tmp_path):  # users.md C25
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"] = np.arange(8.0).reshape(4, 2)
    source = open_source(tmp_path / "a.h5")
    parts = [dask.delayed(source.read)(start, start + 2) for start in (0, 2)]
    chunks = dask.compute(*parts, scheduler="processes", num_workers=2)
    assert np.concatenate([chunk.X for chunk in chunks]).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_virtual_datasets_beyond_32_bits(tmp_path):  # users.md C06
    cells = 2**31 + 10
    layout = h5py.VirtualLayout((cells // 2, 2), "u1", maxshape=None)
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file["X"] = [[7, 8], [9, 10]]
    layout[-2:] = h5py.VirtualSource(tmp_path / "part.h5", "X", (2, 2))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
    source = open_source(tmp_path / "a.h5")
    assert source.n_rows * source.n_features == cells
    assert source.read(source.n_rows - 3, source.n_rows).X.tolist() == [[0, 0], [7, 8], [9, 10]]


def test_rows_beyond_four_billion_cells(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        big = file.create_dataset("X", (2**31 + 10, 3), "u1", chunks=(1 << 16, 3))
        big[2**31 + 8] = [7, 8, 9]
    source = open_source(tmp_path / "a.h5")
    assert source.n_rows == 2**31 + 10
    assert source.read(2**31 + 7, 2**31 + 10).X.tolist() == [[0, 0, 0], [7, 8, 9], [0, 0, 0]]
    chunk = next(source.chunks(2**31 + 8))
    assert chunk.first_row == 2**31 + 8 and chunk.X[0].tolist() == [7, 8, 9]


@pytest.mark.parametrize(
    ("stored", "layout"),
    [
        ({}, {}),
        ({"chunks": (7, 2)}, {"chunks": [7, 2]}),
        ({"chunks": (7, 3), "compression": "gzip", "shuffle": True}, {"chunks": [7, 3], "codec": "gzip"}),
        ({"chunks": (7, 3)} | dict(hdf5plugin.LZ4()), {"chunks": [7, 3], "codec": "lz4"}),
        ({"chunks": (7, 3)} | dict(hdf5plugin.Bitshuffle()), {"chunks": [7, 3], "codec": "bitshuffle"}),
    ],
)
def test_the_layout_is_told(tmp_path, stored, layout):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        size = file.create_dataset("X", data=X, **stored).id.get_storage_size()
    assert open_source(tmp_path / "a.h5").layout() == layout | {"bytes": size}


def test_the_layout_of_a_matlab_file_is_that_of_its_rows(tmp_path):
    with h5py.File(tmp_path / "a.mat.h5", "w") as file:
        file.create_dataset("X", data=X.T, chunks=(3, 8)).attrs["MATLAB_class"] = b"single"
    assert open_source(tmp_path / "a.mat.h5").layout()["chunks"] == [8, 3]
