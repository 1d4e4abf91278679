"""Texts of variable length in HDF5 files, read so that damage to them cannot hang the process.

libhdf5 keeps them in global heaps and walks through each by the sizes of its objects: forever, where a damaged one does
not lead on (h5py#2088; it was 2 % of the mutants of a small file, and the only hang or crash among thousands). So what
holds such texts is opened a second time by a file object that checks each heap on its way to libhdf5. The texts of a
virtual dataset, which may lie in other files, are read unchecked.

Format: HDF5 File Format Specification 3.0, III.E, "Global Heap".
"""

import io
import os
import struct
from contextlib import contextmanager

import h5py

__all__ = ["read_attribute", "read_dataset"]

HEAP = b"GCOL"
# Of an object, also that of free space, which has index 0 and counts these bytes in its size. Sizes have 8 bytes in
# every file but those of programs that ask for others.
OBJECT = struct.Struct("<H6xQ")
HEADER = struct.Struct("<8xQ")


def read_attribute(holder, key):
    """Value of the attribute `key` of an open group or dataset, as h5py gives it; OSError if a text is damaged."""
    if h5py.h5a.open(holder.id, key.encode()).dtype.kind != "O":
        return holder.attrs[key]
    with checked(holder) as twin:
        return twin.attrs[key]


def read_dataset(dataset, selection):
    """`dataset[selection]` of an open dataset; OSError if a text is damaged."""
    if dataset.dtype.kind != "O" or dataset.is_virtual:
        return dataset[selection]
    with checked(dataset) as twin:
        return twin[selection]


@contextmanager
def checked(entry):
    """Give the twin of an open group or dataset in its file opened once more, with the heaps checked."""
    with CheckedFile(entry.file.filename) as file, h5py.File(file, "r") as twin:
        yield twin[entry.name]


class CheckedFile(io.FileIO):
    """A file that raises OSError when libhdf5 reads a global heap from it that it would not come to the end of.

    libhdf5 reads each heap by itself: its first 4096 bytes, then what is missing.
    """

    def readinto(self, buffer):
        """Fill the buffer from the present position on; returns the number of bytes."""
        start = self.tell()
        n_bytes = super().readinto(buffer)
        head = memoryview(buffer)[:n_bytes][: HEADER.size]
        if len(head) == HEADER.size and head[:4] == HEAP:
            size = HEADER.unpack(head)[0]
            self.seek(start)
            if start + size > os.fstat(self.fileno()).st_size or not is_whole(self.read(size)):
                raise OSError("a text of variable length is damaged")
        return n_bytes


def is_whole(heap):
    """Whether the objects of a global heap (bytes) lead from its header to its end."""
    at, end = HEADER.size, len(heap) - OBJECT.size
    while at <= end:
        index, size = OBJECT.unpack_from(heap, at)
        step = OBJECT.size + -(-size // 8) * 8 if index else size
        if not 0 < step <= len(heap) - at:
            return False
        at += step
    return True
