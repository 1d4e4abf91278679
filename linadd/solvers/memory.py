"""The account of the memory limit, for what grows with the data."""

import logging
import tempfile
from contextlib import contextmanager

import numpy as np

log = logging.getLogger(__name__)


class Memory:
    """The account of the memory limit: what is held is taken from it; arrays that no longer fit go to a file.

    Parameters
    ----------
    limit : int
        Bytes that linadd may allocate.
    """

    def __init__(self, limit):
        self.left = limit

    def take(self, n_bytes):
        """Note an allocation made elsewhere."""
        self.left = max(self.left - n_bytes, 0)

    def zeros(self, name, shape, dtype):
        """An array of zeros that grows with n_rows: in memory, or in the temporary folder; `name` is for the log."""
        n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if n_bytes <= self.left:
            self.left -= n_bytes
            return np.zeros(shape, dtype)
        log.info("%s: %.1f MB do not fit the memory limit and go to a temporary file.", name, n_bytes / 1e6)
        with tempfile.TemporaryFile(prefix="linadd-") as file:
            file.truncate(n_bytes)
            return np.memmap(file, dtype, "r+", shape=shape)

    @contextmanager
    def scope(self, unused=0):
        """Give back at its end what is taken within; of what was taken before, `unused` bytes are free meanwhile."""
        before = self.left
        self.left += unused
        try:
            yield
        finally:
            self.left = before

    def release(self, array):
        """Give back what `zeros` has taken for an array."""
        if not isinstance(array, np.memmap):
            self.left += array.nbytes
