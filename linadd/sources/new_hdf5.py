"""Writing HDF5 files whole or not at all, also on a disk that fills up."""

import os
from contextlib import contextmanager

import h5py

from linadd.atomic import atomic_path

__all__ = ["new_hdf5"]

# What HDF5 writes beside the data of a batch: its index of chunks, headers, attributes.
METADATA_BYTES = 4 << 20


@contextmanager
def new_hdf5(path, cache_bytes=4 << 20):
    """Give an HDF5 file to fill, which appears under `path` when the block is left without an exception.

    A write that fails inside HDF5 (2.0) leaves objects whose release crashes the process. So the disk space of a batch
    is claimed before HDF5 writes it: a full disk then fails here, and the file can still be closed and removed.

    Parameters
    ----------
    path : str or path-like
        The target; see `atomic_path`.
    cache_bytes : int
        Size of HDF5's chunk cache: a few chunks, so that a chunk that is filled in two steps is packed once.

    Yields
    ------
    file : h5py.File
        Open for writing; may hold attributes of any length.
    reserve : callable
        reserve(n_bytes) claims the space for the datasets made or the values written next, before they are; no more
        than so many bytes may be written until its next call.

    Raises
    ------
    DataError
        The target cannot be written, or the disk is full.
    """
    with atomic_path(path) as temporary:

        def reserve(n_bytes):
            end, need = temporary.stat().st_size, file.id.get_filesize() + n_bytes + cache_bytes + METADATA_BYTES
            if need > end and hasattr(os, "posix_fallocate"):  # not on macOS
                with open(temporary, "r+b") as handle:
                    os.posix_fallocate(handle.fileno(), end, need - end)

        # Up to format 1.6 an attribute may have 64 kB, too few for the names of 10,000 features.
        with h5py.File(temporary, "w", rdcc_nbytes=cache_bytes, libver=("v108", "v108")) as file:
            reserve(0)
            yield file, reserve
            file.flush()
            size = file.id.get_filesize()
        os.truncate(temporary, size)
