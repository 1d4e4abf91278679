"""Text files for the sources that parse them: whole lines by the block, compressed text unpacked to random access."""

import bz2
import gzip
import logging
import lzma
import os
import shutil
import tempfile
import weakref
import zlib

import numpy as np

from linadd.errors import DataError

__all__ = ["COMPRESSED", "PlainText", "line_blocks", "read_head"]

logger = logging.getLogger(__name__)

# Suffix -> what opens it; all of them raise these errors on damage.
COMPRESSED = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
UNPACKING_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)

BLOCK_BYTES = 1 << 20


class PlainText:
    """The plain text of a file: the file itself, or a temporary one that a compressed file is unpacked to.

    The temporary file is removed by `remove`, with this object, or at exit. A pickled copy uses it while it is there,
    and else unpacks anew.

    Parameters
    ----------
    path : str
        The file; `.bz2`, `.gz` and `.xz` are unpacked, which is logged.

    Raises
    ------
    DataError
        A compressed file that is damaged, or no space for its text.

    Attributes
    ----------
    path : str
        Where the plain text is.
    stamp : tuple of int
        Size and time of change at opening.
    """

    def __init__(self, path):
        self.origin = path
        opener = COMPRESSED.get(os.path.splitext(path)[1].lower())
        self.path = path if opener is None else self._unpack(path, opener)
        self.stamp = self._current_stamp()

    def _unpack(self, path, opener):
        handle, text_path = tempfile.mkstemp(prefix="linadd-", suffix=".txt")
        self._remove = weakref.finalize(self, remove_file, text_path)
        logger.info("%s: unpacking to the temporary file %s", path, text_path)
        with os.fdopen(handle, "wb") as target:
            try:
                with opener(path) as file:
                    shutil.copyfileobj(file, target, BLOCK_BYTES)
                    target.flush()
            except UNPACKING_ERRORS as error:
                reason = getattr(error, "strerror", None) or error
                where = tempfile.gettempdir()
                message = f"cannot be unpacked to {where} ({reason}). Check the file and the space there."
                raise DataError(message, source=path) from error
        return text_path

    def _current_stamp(self):
        status = os.stat(self.path)
        return status.st_size, status.st_mtime_ns

    def has_changed(self):
        """Whether the file is another one than at opening, by size and time."""
        return self._current_stamp() != self.stamp

    def remove(self):
        """Remove the temporary file, if there is one."""
        if hasattr(self, "_remove"):
            self._remove()

    def __getstate__(self):
        return {"origin": self.origin, "path": self.path, "stamp": self.stamp}

    def __setstate__(self, state):
        if os.path.exists(state["path"]):
            self.__dict__ |= state
        else:
            self.__init__(state["origin"])


def read_head(path, n_bytes):
    """The first bytes of a file, unpacked.

    Parameters
    ----------
    path : str
        The file; `.bz2`, `.gz` and `.xz` are unpacked.
    n_bytes : int
        How many; fewer where the file ends before.

    Raises
    ------
    DataError
        A compressed file that is damaged.
    """
    opener = COMPRESSED.get(os.path.splitext(path)[1].lower())
    if opener is None:
        with open(path, "rb") as file:
            return file.read(n_bytes)
    try:
        with opener(path) as file:
            return file.read(n_bytes)
    except UNPACKING_ERRORS as error:
        raise DataError(f"cannot be unpacked ({error}). Check the file.", source=path) from error


def remove_file(path):
    """Remove a file that may be gone already."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        logger.debug("%s: was removed by someone else", path)


def line_blocks(path, start=0, stop=None, block_bytes=BLOCK_BYTES):
    """Yield the whole lines of a part of a text file in blocks of bounded size.

    Parameters
    ----------
    path : str
        The file.
    start, stop : int
        Bytes to read, from the beginning of a line; `stop` None reads to the end of the file.
    block_bytes : int
        Bytes read at a time; a longer line makes a longer block.

    Yields
    ------
    text : array, uint8, read-only
        Whole lines, each with its newline, which is added to a last line that has none.
    offset : int
        Position of the block's first byte in the file.
    """
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        left = (os.path.getsize(path) if stop is None else stop) - start
        rest, size = b"", block_bytes
        while left > 0:
            data = file.read(min(size, left))
            left = left - len(data) if data else 0
            text = rest + data
            if not left and text and not text.endswith(b"\n"):
                text += b"\n"
            whole = text.rfind(b"\n") + 1
            if whole:
                yield np.frombuffer(text, np.uint8, whole), start
            # A line longer than the block doubles it, so that the copying stays proportional to the length.
            rest, start, size = text[whole:], start + whole, block_bytes if whole else 2 * size
