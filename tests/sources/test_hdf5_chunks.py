"""Packed chunks: whatever is written passes, and damage that would crash a filter is an error."""

import h5py
import hdf5plugin
import numpy as np
import pytest

from linadd.sources import open_source
from linadd.sources.hdf5_chunks import ChunkCheck, is_bitshuffled
from tests.checks.check_source import refusal

LAYOUTS = {
    "lz4": hdf5plugin.Bitshuffle(cname="lz4"),
    "zstd": hdf5plugin.Bitshuffle(cname="zstd"),
    "unpacked": hdf5plugin.Bitshuffle(cname="none"),
    "small blocks": hdf5plugin.Bitshuffle(nelems=16),
    "checked": dict(hdf5plugin.Bitshuffle()) | {"fletcher32": True},
    "fletcher32": {"fletcher32": True},
}


def write(path, dtype="f4", shape=(1003, 7), chunk=(200, 3), transposed=False, **layout):
    """A file of one packed dataset, a part of which is never written; returns the table."""
    table = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    table[600:] = 0
    with h5py.File(path, "w", userblock_size=512) as file:
        X = file.create_dataset("X", shape[::-1] if transposed else shape, dtype, chunks=chunk, **layout)
        X[...] = 0
        X[(slice(None), slice(600)) if transposed else slice(600)] = table[:600].T if transposed else table[:600]
        if transposed:
            X.attrs["MATLAB_class"] = np.bytes_("single")
    return table


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_whole_chunks_pass(tmp_path, layout, dtype):
    for chunk in ((200, 3), (1, 7), (3, 1), (1003, 7)):
        table = write(tmp_path / "a.h5", dtype, chunk=chunk, **LAYOUTS[layout])
        source = open_source(tmp_path / "a.h5")
        for start, stop in ((0, 1003), (150, 450), (1002, 1003)):
            np.testing.assert_array_equal(source.read(start, stop).X, table[start:stop])


def test_matlab_and_chunks_that_were_never_written(tmp_path):
    table = write(tmp_path / "a.h5", chunk=(2, 300), transposed=True, **LAYOUTS["lz4"])
    np.testing.assert_array_equal(open_source(tmp_path / "a.h5").read(250, 700).X, table[250:700])
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset("X", (100, 4), "f4", chunks=(10, 2), **LAYOUTS["lz4"])
    assert not open_source(tmp_path / "b.h5").read(0, 100).X.any()


def test_each_chunk_is_checked_once(tmp_path, monkeypatch):
    write(tmp_path / "a.h5", **LAYOUTS["lz4"])
    checked, is_whole = [], ChunkCheck.is_whole

    def note(self, dataset, start, content):
        checked.append(tuple(map(int, start)))
        return is_whole(self, dataset, start, content)

    monkeypatch.setattr(ChunkCheck, "is_whole", note)
    source = open_source(tmp_path / "a.h5")
    for start, stop in ((250, 350), (0, 300), (250, 350)):
        source.read(start, stop)
    assert checked == [(200, 0), (200, 3), (200, 6), (0, 0), (0, 3), (0, 6)]


@pytest.mark.parametrize(("layout", "place"), [("lz4", 5), ("lz4", 11), ("lz4", 13), ("zstd", 13), ("checked", 13)])
def test_wrong_sizes_in_a_chunk_are_one_line(tmp_path, layout, place):
    path = tmp_path / "a.h5"
    table = write(path, **LAYOUTS[layout])
    with h5py.File(path) as file:
        offset = file["X"].id.get_chunk_info_by_coord((200, 3)).byte_offset
    content = bytearray(path.read_bytes())
    content[offset + place] ^= 0x41
    path.write_bytes(content)
    source = open_source(path)
    np.testing.assert_array_equal(source.read(0, 200).X, table[:200])
    assert refusal(source.read, 0, 201) == (
        f"{path}: rows 1 to 201 cannot be read (a packed chunk is damaged). "
        "The file is damaged or of a kind unknown to h5py."
    )


def test_a_chunk_too_short_for_its_checksum(tmp_path):
    path = tmp_path / "a.h5"
    write(path, shape=(6, 2), chunk=(6, 2), fletcher32=True)
    content = bytearray(path.read_bytes())
    entry = content.index((6 * 2 * 4 + 4).to_bytes(4, "little") + bytes(4), 512 + 800)
    content[entry] = 2
    path.write_bytes(content)
    with h5py.File(path) as file:
        assert file["X"].id.get_chunk_info(0).size == 2
    assert "its header cannot be read (a packed chunk is damaged)" in refusal(open_source, path)


def test_a_shape_beyond_all_memory_is_one_line(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", (2**55, 8), "u1", chunks=(1, 8), **LAYOUTS["lz4"])
    assert refusal(open_source, path).startswith(f"{path}: its header cannot be read (Unable to allocate ")


def test_sizes_lead_to_the_end():
    def chunk(n_bytes, block_bytes, *sizes, rest=0):
        blocks = b"".join(size.to_bytes(4, "big") + bytes(size) for size in sizes)
        return np.frombuffer(n_bytes.to_bytes(8, "big") + block_bytes.to_bytes(4, "big") + blocks + bytes(rest), "u1")

    assert is_bitshuffled(chunk(80, 32, 5, 7, rest=16), 20, 4)  # blocks of 8, 8 values, and 4 left
    assert is_bitshuffled(chunk(12, 32, rest=12), 3, 4)
    for wrong in (
        chunk(80, 32, 5, 7, rest=17), chunk(80, 32, 5, rest=16), chunk(84, 32, 5, 7, rest=16), chunk(80, 0, rest=80),
        chunk(80, 30, 5, 7, rest=16), chunk(80, 16, 5, 7, rest=16), chunk(80, 32, 5, 7, rest=16)[:11],
        chunk(80, 32, 5, 7)[:24],
    ):  # fmt: skip
        assert not is_bitshuffled(wrong, 20, 4)
