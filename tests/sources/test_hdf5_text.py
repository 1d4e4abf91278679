"""Texts of variable length: whatever h5py writes is read, and damage to a heap of them is an error."""

import struct

import h5py
import numpy as np
import pytest

from linadd.sources import open_source
from linadd.sources.hdf5_text import is_whole, read_attribute, read_dataset
from tests.checks.check_source import refusal

TEXTS = np.array(["", "a", "é", "x" * 5000, "b" * 70_000] * 400, object)


def test_texts_of_any_length_are_read(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a/texts"] = TEXTS
        file["a"].attrs["few"] = TEXTS[:3]
        file["a"].attrs["plain"] = np.array([b"u", b"v"])
        file["number"] = 3
    with h5py.File(tmp_path / "a.h5") as file:
        assert [text.decode() for text in read_dataset(file["a/texts"], slice(5, None))] == TEXTS[5:].tolist()
        assert read_dataset(file["number"], ()) == 3
        assert read_attribute(file["a"], "few").tolist() == TEXTS[:3].tolist()
        assert read_attribute(file["a"], "plain").tolist() == [b"u", b"v"]


def test_texts_behind_links(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["deep/y"] = np.array(["u", "v"], object)
    layout = h5py.VirtualLayout((2,), h5py.string_dtype())
    layout[:] = h5py.VirtualSource("a.h5", "deep/y", (2,))
    with h5py.File(tmp_path / "links.h5", "w") as file:
        file["X"] = [[1], [2]]
        file["y"] = h5py.ExternalLink("a.h5", "deep/y")
        file.create_virtual_dataset("virtual", layout)
    for name in ("y", "virtual"):
        assert open_source(tmp_path / "links.h5", y_name=name).read(0, 2).y.tolist() == ["u", "v"]


@pytest.mark.parametrize("place", ["labels", "names"])
def test_a_damaged_heap_is_one_line(tmp_path, place):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["X"] = [[1], [2]]
        if place == "labels":
            file["y"] = np.array(["u", "v"], object)
        else:
            file.attrs["feature_names"] = ["u"]
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL")
    content[heap + 16 : heap + 64] = bytes(48)  # libhdf5 would take it for free space without an end
    path.write_bytes(content)
    assert refusal(open_source, path) == (
        f"{path}: its header cannot be read (a text of variable length is damaged). "
        "The file is damaged or of a kind unknown to h5py."
    )
    content[heap + 8 : heap + 16] = struct.pack("<Q", 1 << 60)
    path.write_bytes(content)
    assert "(a text of variable length is damaged)" in refusal(open_source, path)


def heap(*objects):
    """The bytes of a heap of (index, size) objects, each with its 16 bytes of header."""
    body = b"".join(struct.pack("<HHIQ", index, 1, 0, size) + bytes(content) for index, size, content in objects)
    return struct.pack("<4sIQ", b"GCOL", 1, 16 + len(body)) + body


def test_a_heap_is_whole_if_its_objects_lead_to_its_end():
    whole = heap((1, 3, 8), (2, 8, 8), (0, 48, 32))
    assert is_whole(whole) and is_whole(whole + bytes(8)) and is_whole(heap((1, 3, 8)))
    for size in (0, 49, 2**64 - 8):
        assert not is_whole(heap((1, 3, 8), (0, size, 32)))
    for size in (9, 2**64 - 16, 2**64 - 17, 2**64 - 32):  # where 64 bits wrap round
        assert not is_whole(heap((1, size, 8)))
