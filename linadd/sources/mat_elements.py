"""The elements of MATLAB files of version 5, checked before scipy reads them.

scipy takes the type of an element for a place in a table (`read_numeric` in its `_mio5_utils.pyx`): a damaged one ends
the process. A file is a header of 128 bytes and variables, each an element: type and size, then its content, which for
a matrix is elements again: flags, dimensions, name, and what it holds. A packed element holds one other.

Format: MathWorks, MAT-File Format (R2023b), "Level 5 MAT-File Format".
"""

import math
import os
import struct
import zlib
from typing import NamedTuple

from linadd.errors import DataError

__all__ = ["check_elements", "no_text"]

HEADER_BYTES = 128
INT8, INT32, UINT32, MATRIX, PACKED, UTF8 = 1, 5, 6, 14, 15, 16
NUMBERS = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18}  # types of elements of numbers and of characters
CELL, CHARACTERS, SPARSE = 1, 4, 5  # classes of matrices
CLASSES = {CELL, CHARACTERS, SPARSE, *range(6, 16)}  # the last are of numbers; others are not read
READ_BYTES = 1 << 20


class Matrix(NamedTuple):
    """What the elements of a matrix say of it; of a class that is not read, the class only."""

    kind: int
    is_complex: int = 0
    shape: tuple = ()
    name: str = ""
    parts: tuple = ()  # type, first byte and size of each element behind the name


def check_elements(path, name):
    """Raise ValueError if a variable of a file of version 5 has not the elements that scipy will look for.

    Parameters
    ----------
    path : str
        The file; nothing is checked in one of version 4.
    name : str
        The variable: of numbers, sparse, of characters or of cells. All that are packed are checked by their checksums,
        as their names are packed too.

    Raises
    ------
    DataError
        A cell that holds no text.
    """
    with open(path, "rb") as file:
        head = file.read(HEADER_BYTES)
        if head[126:] not in (b"IM", b"MI"):
            return
        order = "<" if head[126:] == b"IM" else ">"
        for kind, start, size in elements(file, order, HEADER_BYTES, os.fstat(file.fileno()).st_size):
            if kind == PACKED:
                check_packed(file, start, size)
            elif kind == MATRIX and size:
                matrix = read_matrix(file, order, start, size)
                if matrix.name == name:
                    check_matrix(matrix)
                    cells = matrix.parts if matrix.kind == CELL else ()
                    for row, (_, start_of_cell, length) in enumerate(cells, 1):
                        cell = read_matrix(file, order, start_of_cell, length) if length else Matrix(0)
                        if cell.kind != CHARACTERS:
                            raise no_text(path, name, row)
                        check_matrix(cell)


def no_text(path, name, cell):
    """The error for a cell, from 1, that holds no text."""
    return DataError(f"variable {name!r} holds no text in cell {cell}. Give a matrix, or texts only.", source=path)


def elements(file, order, start, stop):
    """Yield type, first byte and size of each element of a part of a file."""
    while start < stop:
        file.seek(start)
        tag = file.read(8)
        if len(tag) < 8:
            raise ValueError("an element is cut short")
        kind, size = struct.unpack(f"{order}2I", tag)
        if kind >> 16:  # up to four bytes, in the tag itself
            kind, size, start, following = kind & 0xFFFF, kind >> 16, start + 4, start + 8
        else:
            start += 8
            following = start + (size if kind == PACKED else -(-size // 8) * 8)
        if start + size > stop:
            raise ValueError("an element is longer than what holds it")
        yield kind, start, size
        start = following


def check_packed(file, start, size):
    """Unpack an element, keeping nothing, up to its checksum."""
    file.seek(start)
    unpacker = zlib.decompressobj()
    while size and not unpacker.eof:
        data = file.read(min(size, READ_BYTES))
        size -= len(data)
        while data and not unpacker.eof:
            unpacker.decompress(data, READ_BYTES)
            data = unpacker.unconsumed_tail
    if not unpacker.eof:
        raise ValueError("a packed variable is cut short")


def read_matrix(file, order, start, size):
    """The Matrix whose elements are a part of the file."""
    parts = elements(file, order, start, start + size)
    (flags,) = struct.unpack(f"{order}I4x", content(file, next(parts, None), {UINT32}))
    kind = flags & 0xFF
    if kind not in CLASSES:
        return Matrix(kind)
    dimensions = content(file, next(parts, None), {INT32, UINT32})
    shape = struct.unpack(f"{order}{len(dimensions) // 4}i", dimensions)
    name = content(file, next(parts, None), {INT8, UTF8}).decode("latin1")
    return Matrix(kind, flags >> 11 & 1, shape, name, tuple(parts))


def check_matrix(matrix):
    """Raise ValueError if a matrix has not the elements that belong to its class and shape."""
    kind, is_complex, shape, _, parts = matrix
    n_parts = math.prod(shape) if kind == CELL else (3 if kind == SPARSE else 1) + is_complex
    allowed = {MATRIX} if kind == CELL else NUMBERS
    if len(parts) != n_parts or not all(part[0] in allowed for part in parts) or min(shape, default=-1) < 0:
        raise ValueError("a variable does not hold what its header says")
    if kind == CHARACTERS and math.prod(shape) > max(parts[0][2], 1):
        raise ValueError("a variable holds fewer characters than its header says")


def content(file, element, kinds):
    """The bytes of an element of one of the types; ValueError for another, or None."""
    if element is None or element[0] not in kinds:
        raise ValueError("a variable has no header")
    file.seek(element[1])
    return file.read(element[2])
