"""Zarr stores: names, types, layouts, what is missing or damaged, and arrays that the caller has opened."""

import json
import shutil
import sys
import warnings

import numcodecs
import numpy as np
import pytest
import zarr

from linadd.errors import ConfigError, DataWarning
from linadd.sources import open_source, row_copy
from linadd.sources.zarr_arrays import ZarrArraySource, ZarrSource
from tests.checks.check_source import fill_zarr, position_table, refusal

X, Y, WEIGHT = position_table(20, 4, "float32")
METADATA = {2: "X/.zarray", 3: "X/zarr.json"}


@pytest.fixture(params=[2, 3])
def store(request, tmp_path):
    """(path, version) of a store."""
    fill_zarr(zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=request.param), X, Y, WEIGHT)
    return tmp_path / "a.zarr", request.param


def change_metadata(path, version, **entries):
    """Overwrite entries of the metadata of X."""
    file = path / METADATA[version]
    file.write_text(json.dumps(json.loads(file.read_text()) | entries))


def test_names_of_columns_and_classes(store):
    path, _ = store
    group = zarr.open_group(path)
    group.attrs["feature_names"] = ["r", "g", "b", "é"]
    group["y"].attrs["class_names"] = ["no", "yes", "maybe"]
    source = open_source(path)
    assert source.feature_names == ["r", "g", "b", "é"] and source.class_names == ["no", "yes", "maybe"]
    assert source.layout()["chunks"] == [4, 3] and source.layout()["codec"] in ("blosc", "zstd")
    group["X"].attrs["feature_names"] = ["x"]
    assert refusal(open_source, path) == f"{path}: feature_names has 1 names for 4 columns. Correct or delete it."
    del group["X"].attrs["feature_names"], group.attrs["feature_names"]
    group.create_array("feature_names", data=np.array(list("abcd"), np.dtypes.StringDType()))
    assert open_source(path).feature_names == list("abcd")


def test_groups_and_names(store):
    path, version = store
    fill_zarr(zarr.open_group(path, path="deep/er", zarr_format=version), X[:5], Y[:5], WEIGHT[:5])
    source = open_source(f"{path}::deep/er", weights=False)
    assert source.n_rows == 5 and not source.has_weights and source.origin == f"{path}::deep/er"
    assert open_source(path, x="deep/er/X", y_name="deep/er/y", weights="deep/er/weight").n_rows == 5
    assert open_source(path / "deep" / "er").n_rows == 5
    assert source.selectors() == ["weight", "y"]
    assert open_source(path, where={"y": [2]}).n_rows == 6
    there = "'X' (20, 4) float32, 'deep/er/X' (5, 4) float32, 'deep/er/weight' (5,) float64, 'deep/er/y' (5,) int64"
    there += ", 'weight' (20,) float64, 'y' (20,) int64"
    assert refusal(open_source, path, group="no") == f"{path}: group 'no' does not exist. There are {there}."
    remedy = "as FILE::group."
    message = f"{path}: array 'Z' does not exist. There are {there}. Name one with --x or {remedy}"
    assert refusal(open_source, path, x="Z") == message
    message = f"{path}: array 'deep' is a group. There are {there}. Name one with --y or {remedy}"
    assert refusal(open_source, path, y_name="deep") == message
    message = f"{path}: y is an array; for Zarr it must be the name of one in the store."
    assert refusal(open_source, path, [1, 2], error=ConfigError) == message
    assert refusal(open_source, path, x="y") == (
        f"{path}: array 'y' has shape (20,); a table of rows and features is needed. Reshape it: reshape(-1, 1) if it "
        "holds one feature, reshape(1, -1) if it holds one row."
    )
    message = f"{path}: array 'X' has 20 rows and array 'deep/er/y' has 5 entries. Both must describe the same rows."
    assert refusal(open_source, path, y_name="deep/er/y") == message
    message = f"{path}: has no labels. Name their array with --y (y_name=): the store has 'weight', 'y'."
    assert refusal(open_source(path, y_name=None).require_labels) == message


def test_a_store_that_is_an_array_has_features_only(store):
    path, _ = store
    source = open_source(path / "X")
    np.testing.assert_array_equal(source.read(0, 20).X, X)
    assert not source.has_labels and not source.has_weights
    assert refusal(source.require_labels).endswith("Name their array with --y (y_name=): the store has none for it.")
    assert refusal(open_source, path, group="X", x="Z").startswith(f"{path}::X: array 'Z' does not exist.")


def test_shapes_of_entries_and_types_as_stored(tmp_path):
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    for dtype in (">f4", ">i8", "f2", "bool", "u1"):
        table = (X % 2).astype(dtype)
        group.create_array(f"X{dtype}", data=table, chunks=(6, 4))
        source = open_source(tmp_path / "a.zarr", x=f"X{dtype}")
        read = source.read(3, 15).X
        assert read.dtype == source.dtype and read.dtype.isnative
        np.testing.assert_array_equal(read, table[3:15].astype(source.dtype))
    for name, y in (("tall", Y[:, None]), ("wide", Y[None])):
        group.create_array(name, data=y, chunks=(1, 1))
        assert open_source(tmp_path / "a.zarr", x="Xu1", y_name=name).read(3, 7).y.tolist() == Y[3:7].tolist()
    group.create_array("scalar", data=np.float32(1))
    assert refusal(open_source, tmp_path / "a.zarr", x="scalar").endswith("Reshape it: reshape(n_rows, n_features).")
    group.create_array("complex", data=X.astype("c8"))
    message = f"{tmp_path}/a.zarr: array 'complex' has dtype complex64; features must be real numbers. "
    assert refusal(open_source, tmp_path / "a.zarr", x="complex").startswith(message)


def test_shards_are_read_by_their_chunks(tmp_path):
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    group.create_array("X", data=X, chunks=(2, 4), shards=(8, 4), compressors=zarr.codecs.BloscCodec())
    source = open_source(tmp_path / "a.zarr")
    np.testing.assert_array_equal(source.read(1, 19).X, X[1:19])
    assert source.layout()["chunks"] == [2, 4]


def test_chunks_that_are_not_there_hold_the_fill_value(store):
    path, version = store
    (path / ("X/1.0" if version == 2 else "X/c/1/0")).unlink()
    expected = X.copy()
    expected[4:8, :3] = 0
    np.testing.assert_array_equal(open_source(path).read(0, 20).X, expected)


def test_what_is_damaged_is_one_line(store):
    path, version = store
    source = open_source(path)
    change_metadata(path, version, shape=[-1, 4])
    remedy = "The store is damaged or of a kind unknown to zarr: write it again."
    reason = "Expected all values to be non-negative. Got [-1, 4] instead."
    assert refusal(open_source, path) == f"{path}: its metadata cannot be read ({reason}). {remedy}"
    assert refusal(source.read, 2, 5) == f"{path}: rows 3 to 5 cannot be read ({reason}). {remedy}"
    shutil.rmtree(path / "X")
    assert refusal(open_source, path).startswith(f"{path}: array 'X' does not exist. There are 'weight' (20,)")
    shutil.rmtree(path)
    assert refusal(source.read, 2, 5).startswith(f"{path}: rows 3 to 5 cannot be read (")


def test_a_codec_that_is_not_installed_is_named(store):
    path, version = store
    if version == 2:
        change_metadata(path, 2, compressor={"id": "squash", "level": 3})
    else:
        bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
        change_metadata(path, 3, codecs=[bytes_codec, {"name": "squash", "configuration": {}}])
    assert refusal(open_source, path) == (
        f"{path}: array 'X' is packed with the codec 'squash', which is not installed. Install the package that has "
        "it, or write the store with another."
    )


def test_declared_rows_cost_nothing(store):
    path, version = store
    change_metadata(path, version, shape=[10**12, 4])
    source = open_source(path, y_name=None, weights=False)
    assert source.n_rows == 10**12 and not source.read(10**11, 10**11 + 3).X.any()


@pytest.mark.parametrize("version", [2, 3])
def test_a_blosc_chunk_that_is_cut_short_is_named(tmp_path, version):
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=version)
    codec = numcodecs.Blosc() if version == 2 else zarr.codecs.BloscCodec()
    for name, array in (("X", X), ("y", Y)):
        group.create_array(name, data=array, chunks=(4, 4)[: array.ndim], compressors=codec)
    for name, keys in (("X", ("2.0", "c/2/0")), ("y", ("2", "c/2"))):
        chunk = tmp_path / "a.zarr" / name / keys[version - 2]
        content = chunk.read_bytes()
        chunk.write_bytes(content[:-3])
        source = open_source(tmp_path / "a.zarr")
        assert source.read(0, 8).n_rows == 8
        remedy = "The store is damaged or of a kind unknown to zarr: write it again."
        message = f"{tmp_path}/a.zarr: the chunk '{chunk}' is cut short or damaged. {remedy}"
        assert refusal(source.read, 6, 9) == message
        chunk.write_bytes(content)


def test_slow_layouts_warn_and_are_copied_to_rows(tmp_path, monkeypatch):
    table = np.arange(40_000 * 50, dtype="f4").reshape(-1, 50)
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    group.create_array("X", data=table, chunks=(40_000, 1), compressors=None)
    group.create_array("rows", data=table, chunks=(1000, 50))
    path = tmp_path / "a.zarr"
    command = f"linadd convert {path} {tmp_path}/a_rows.h5"
    with pytest.warns(DataWarning) as caught:
        source = open_source(path)
    assert [str(warning.message) for warning in caught] == [
        f"{path}: array 'X' is stored in chunks of 40000 x 1, which is slow to read by rows. Rewrite it once: {command}"
    ]
    assert caught[0].filename == __file__
    monkeypatch.setattr(row_copy, "LEAST_BYTES", 0)
    reads, values = [], ZarrSource._values
    monkeypatch.setattr(ZarrSource, "_values", lambda *given: reads.append(given[2:]) or values(*given))
    with source:
        for start in np.random.default_rng(0).permutation(40)[:10] * 1000:
            np.testing.assert_array_equal(source.read(int(start), int(start) + 1000).X, table[start : start + 1000])
    assert len(reads) == 2  # once in vain, once for the copy
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_source(path, x="rows").chunk_rows % 1000 == 0


def test_folders_zip_files_and_their_fingerprints(store, tmp_path):
    path, _ = store
    first = open_source(path).fingerprint()
    shutil.copytree(path, tmp_path / "other")
    assert type(open_source(tmp_path / "other")) is ZarrSource
    other = open_source(tmp_path / "other").fingerprint()
    assert other["digest"] == first["digest"] and other["size"] == first["size"]
    zarr.open_group(path)["X"][19, 3] = -1
    assert open_source(path).fingerprint()["digest"] != first["digest"]
    archive = shutil.make_archive(tmp_path / "zipped", "zip", path)
    assert type(open_source(archive)) is ZarrSource and open_source(archive).read(0, 3).X.shape == (3, 4)
    assert open_source(archive).files() == [archive]
    assert open_source(path).files() == sorted(str(file) for file in path.rglob("*") if file.is_file())
    (tmp_path / "b.zip").write_bytes(b"PK nothing")
    assert refusal(open_source, tmp_path / "b.zip") == (
        f"{tmp_path}/b.zip: its metadata cannot be read (File is not a zip file). The store is damaged or of a kind "
        "unknown to zarr: write it again."
    )


def test_arrays_that_are_open(store):
    array = zarr.open_group(store[0])["X"]
    source = open_source(array, Y, weights=WEIGHT)
    assert type(source) is ZarrArraySource and source.chunk_rows % 4 == 0
    np.testing.assert_array_equal(source.read(3, 9).X, X[3:9])
    assert source.read(3, 9).y.tolist() == Y[3:9].tolist()


def test_without_the_package_one_line_says_what_to_install(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    message = f"{store[0]}: reading Zarr takes the package zarr, version 3. Install it: pip install 'linadd[zarr]'"
    assert refusal(open_source, store[0]) == message
