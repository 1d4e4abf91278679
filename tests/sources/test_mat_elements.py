"""The elements of MATLAB's files are checked before scipy, which a wrong type of element crashes, reads them."""

import struct

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from linadd.errors import DataError
from linadd.sources.mat_elements import check_elements

CELLS = np.array([["a"], ["bc"], ["d" * 9]], object)
VARIABLES = {
    "X": np.arange(12.0).reshape(3, 4),
    "S": scipy.sparse.csc_matrix(np.eye(3)),
    "Z": scipy.sparse.csc_matrix(np.eye(3) * 1j),
    "z": np.ones((2, 2)) * 1j,
    "t": np.array(["ab", "c"]),
    "c": CELLS,
    "e": np.zeros((0, 3)),
    "long_name_of_a_struct": {"a": 1},
}


def element(kind, content, order="<"):
    """An element with its tag, filled up to eight bytes."""
    return struct.pack(f"{order}2I", kind, len(content)) + content + bytes(-len(content) % 8)


def matrix(kind, shape, name, *parts, order="<"):
    """A matrix of a class."""
    flags = element(6, struct.pack(f"{order}2I", kind, 0), order)
    dimensions = element(5, struct.pack(f"{order}{len(shape)}i", *shape), order)
    return element(14, flags + dimensions + element(1, name, order) + b"".join(parts), order)


def write(path, *variables, mark=b"IM"):
    """A file of variables; returns its path."""
    path.write_bytes(
        b"MATLAB 5.0".ljust(124) + (b"\0\x01" if mark == b"IM" else b"\x01\0") + mark + b"".join(variables)
    )
    return path


@pytest.mark.parametrize("is_packed", [False, True])
def test_whole_variables_pass(tmp_path, is_packed):
    scipy.io.savemat(tmp_path / "a.mat", VARIABLES, do_compression=is_packed)
    for name in VARIABLES:
        check_elements(tmp_path / "a.mat", name)


def test_either_byte_order_and_version_4(tmp_path):
    numbers = element(9, struct.pack(">d", 1.5), ">")
    path = write(tmp_path / "a.mat", matrix(6, (1, 1), b"X", numbers, order=">"), mark=b"MI")
    assert scipy.io.loadmat(path)["X"] == 1.5
    check_elements(path, "X")
    scipy.io.savemat(path, {"X": np.eye(2)}, format="4")
    check_elements(path, "X")


NUMBERS = element(9, bytes(8))
NO_CONTENT = "a variable does not hold what its header says"


DAMAGE = {  # the first four crash scipy: types without a place in its table, or the next variable taken for the content
    "type 0": (matrix(6, (1, 1), b"X", element(0, bytes(8))), NO_CONTENT),
    "type 200": (matrix(6, (1, 1), b"X", element(200, bytes(8))), NO_CONTENT),
    "matrix for numbers": (matrix(6, (1, 1), b"X", element(14, bytes(8))), NO_CONTENT),
    "no numbers": (matrix(6, (1, 1), b"X"), NO_CONTENT),
    "sparse without values": (matrix(5, (1, 1), b"X", NUMBERS, NUMBERS), NO_CONTENT),
    "one cell of two": (matrix(1, (2, 1), b"X", matrix(4, (1, 1), b"", element(4, b"a\0"))), NO_CONTENT),
    "numbers for cells": (matrix(1, (1, 1), b"X", NUMBERS), NO_CONTENT),
    "size below 0": (matrix(6, (-1, 1), b"X", NUMBERS), NO_CONTENT),
    "few characters": (
        matrix(4, (1, 9), b"X", element(4, b"a\0b\0")), "a variable holds fewer characters than its header says"
    ),
    "no flags": (element(14, NUMBERS), "a variable has no header"),
    "flags only": (element(14, element(6, struct.pack("<2I", 6, 0))), "a variable has no header"),
    "too long": (struct.pack("<2I", 14, 999), "an element is longer than what holds it"),
    "half a tag": (b"abc", "an element is cut short"),
    "half packed": (struct.pack("<2I", 15, 6) + b"x\x9c\x03\0\0\0", "a packed variable is cut short"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found(tmp_path, damage):
    variable, message = DAMAGE[damage]
    path = write(tmp_path / "a.mat", variable)
    with pytest.raises(ValueError) as caught:
        check_elements(path, "X")
    assert str(caught.value) == message


def test_cells_of_other_things(tmp_path):
    number = matrix(6, (1, 1), b"", NUMBERS)
    for cell in (number, matrix(2, (1, 1), b""), element(14, b"")):
        path = write(tmp_path / "a.mat", matrix(1, (1, 1), b"X", cell))
        with pytest.raises(DataError) as caught:
            check_elements(path, "X")
        assert str(caught.value) == f"{path}: variable 'X' holds no text in cell 1. Give a matrix, or texts only."
    check_elements(path, "another")
