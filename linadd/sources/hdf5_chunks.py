"""Packed chunks of HDF5 files, checked before filters unpack them that would read beyond a damaged one.

Fletcher32 (libhdf5 2.0) takes the checksum from before the start of a chunk that is too short for it. Bitshuffle (the
codec of linadd's own files) trusts the sizes in a chunk: in front stand, big-endian, the bytes that it unpacks to (8
bytes) and those of a block before packing (4), then the blocks, each behind its size (4), and the values that are left
of a multiple of eight, as they are.
"""

import math
import mmap

import numpy as np

from linadd._jit import compiled

__all__ = ["ChunkCheck"]

FLETCHER32, BITSHUFFLE = 3, 32008
PACKED = {2, 3}  # bitshuffle's options for LZ4 and Zstd; without them it writes no sizes
CHECKSUM_BYTES = 4


class ChunkCheck:
    """Checks each chunk of a dataset before it is first read; those of checksums all at once, by the index of the file.

    Parameters
    ----------
    dataset : h5py.Dataset
        Open, in chunks; is not kept.

    Raises
    ------
    OSError
        A chunk that is too short for its checksum.
    """

    def __init__(self, dataset):
        properties = dataset.id.get_create_plist()
        filters = (properties.get_filter(i) for i in range(properties.get_nfilters()))
        options = {code: values for code, _, values, _ in filters}
        self.n_checksum = CHECKSUM_BYTES if FLETCHER32 in options else 0
        self.is_shuffled = not PACKED.isdisjoint(options.get(BITSHUFFLE, ())[4:5])
        # One by one they are found by place, which in a damaged index may differ from where reading finds them.
        if self.n_checksum and dataset.id.chunk_iter(lambda chunk: chunk.size < CHECKSUM_BYTES or None):
            raise OSError("a packed chunk is damaged")
        if self.is_shuffled:
            self.chunk, self.itemsize = dataset.chunks, dataset.dtype.itemsize
            counts = [-(-size // step) for size, step in zip(dataset.shape, self.chunk, strict=True)]
            self.is_checked = np.zeros(counts, bool)

    def __call__(self, dataset, selection):
        """Raise OSError if a chunk of the open dataset that a selection (slices) touches would crash a filter."""
        if not self.is_shuffled:
            return
        spans = zip(selection, self.chunk, strict=True)
        places = tuple(slice(one.start // step, -(-one.stop // step)) for one, step in spans)
        if self.is_checked[places].all():
            return
        with open(dataset.file.filename, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for place in np.argwhere(~self.is_checked[places]) + [one.start for one in places]:
                if not self.is_whole(dataset, tuple(place * self.chunk), content):
                    raise OSError("a packed chunk is damaged")
                self.is_checked[tuple(place)] = True

    def is_whole(self, dataset, start, content):
        """Whether the sizes in the chunk that begins at an index are possible ones; `content` is the file's."""
        chunk = dataset.id.get_chunk_info_by_coord(start)
        if chunk.byte_offset is None or chunk.filter_mask:  # never written, or not packed
            return True
        n_bytes = chunk.size - self.n_checksum
        if n_bytes < 0 or chunk.byte_offset + chunk.size > len(content):
            return False
        packed = np.frombuffer(content, np.uint8, n_bytes, chunk.byte_offset)
        return bool(is_bitshuffled(packed, math.prod(self.chunk), self.itemsize))


@compiled
def is_bitshuffled(packed, n_values, itemsize):
    """Whether the sizes in a chunk (uint8) lead through all its blocks to its end."""
    if len(packed) < 12 or number_at(packed, 0, 8) != n_values * itemsize:
        return False
    block_bytes = number_at(packed, 8, 4)
    block = block_bytes // itemsize
    if block_bytes % itemsize or block == 0 or block % 8:
        return False
    at = 12
    for _ in range(n_values // block + (n_values % block >= 8)):
        if at + 4 > len(packed):
            return False
        at += 4 + number_at(packed, at, 4)
    return at + n_values % 8 * itemsize == len(packed)


@compiled
def number_at(packed, start, n_bytes):
    """The big-endian number at a place."""
    number = 0
    for i in range(start, start + n_bytes):
        number = number * 256 + np.int64(packed[i])
    return number
