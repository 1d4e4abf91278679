"""HDF5 files that appear whole or not at all, and whose writing goes on after a kill, a full disk or Ctrl-C.

HDF5 changes its tables of contents in place: a file whose writer is killed can rarely be read. So HDF5 writes here by
way of a Python object, TARGET.part. What it appends goes to the part at once. What it changes below the last checkpoint
stays in memory, in pages, until the next one: that syncs the part, writes the pages with a record of the progress to
TARGET.part.log (a write-ahead log, itself replaced in one step), and only then puts them into the part. From any state
that a kill leaves, the log and the bytes below its checkpoint give the file of that checkpoint.
"""

import contextlib
import json
import logging
import os
from pathlib import Path

import h5py

from linadd.atomic import put_in_place, replacing, resolve_target, writing
from linadd.errors import DataError, LinaddError

__all__ = ["PartFile"]

logger = logging.getLogger(__name__)

LOG_FORMAT = "linadd part of an HDF5 file, 1"
PAGE_BYTES = 4096
# Bytes between two checkpoints, written or held in pages; a sync of so many takes about a second of a slow disk.
CHECKPOINT_BYTES = 256 << 20
CHECKPOINT_PAGES = 4096


class PartFile:
    """The file object of `h5py.File` for a target that is written in steps.

    A context: left before `finish` it removes what was written if the data are at fault (a LinaddError that no OSError
    caused) or there was no checkpoint; else (Ctrl-C, a full disk) it keeps the part of the last one.

    Parameters
    ----------
    path : str or path-like
        The target; a link is followed.
    key : str
        What is written: a part of another key is not gone on with. None: no part is.

    Attributes
    ----------
    state : dict
        JSON values of the last checkpoint; {} at the beginning.

    Raises
    ------
    DataError
        A target that cannot be written; a part that another process is writing, or a file of its name that is none.
    """

    def __init__(self, path, key):
        self.given, self.key, self.state = path, key, {}
        self.error, self.is_finished = None, False
        with writing(path):
            self.target = resolve_target(path)
            self.path, self.log = (Path(f"{self.target}{suffix}") for suffix in (".part", ".part.log"))
            if self.path.exists() and not self.log.exists():
                message = "stands in the place of the part of a file that is written. Remove or rename it."
                raise DataError(message, source=self.path)
            self.file = open(self.path, "r+b" if self.path.exists() else "x+b", buffering=0)  # noqa: SIM115
            try:
                self._begin()
            except BaseException:
                self.file.close()
                raise

    def _begin(self):
        """Go on from the log, or begin anew."""
        self._lock()
        record, pages = self._read_log() if self.log.exists() else ({}, b"")
        self.position = self.size = self.base = self.written = 0
        self.pages = {}
        if self.key is not None and record.get("key") == self.key:
            self._go_on(record, pages)
            return
        if record.get("state"):
            logger.info("%s: is of another source or of other options; begins anew", self.path)
        self.file.truncate(0)
        self._write_log()

    def _lock(self):
        """Keep other processes off the part, where the system has such locks."""
        try:
            import fcntl
        except ImportError:  # Windows
            return
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = os.path.samestat(os.fstat(self.file.fileno()), os.stat(self.path))
        except (BlockingIOError, FileNotFoundError):
            is_ours = False
        if not is_ours:
            raise DataError("is being written by another process. Wait for it, or stop it.", source=self.path)

    def _read_log(self):
        """(record, pages) of the last checkpoint."""
        head, _, pages = self.log.read_bytes().partition(b"\n")
        try:
            record = json.loads(head)
            is_log = record["format"] == LOG_FORMAT
        except (ValueError, TypeError, KeyError):
            is_log = False
        if not is_log:
            message = "stands in the place of the log of a file that is written. Remove or rename it."
            raise DataError(message, source=self.log)
        return record, pages

    def _go_on(self, record, pages):
        """Make the part the file of the last checkpoint."""
        self.base = record["base"]
        self.pages = {
            number: bytearray(pages[PAGE_BYTES * i : PAGE_BYTES * (i + 1)]) for i, number in enumerate(record["pages"])
        }
        self._apply()
        self.base = self.size = record["size"]
        self.state = record["state"]

    def _write_log(self):
        """Replace the log in one step."""
        numbers = sorted(self.pages)
        record = {
            "format": LOG_FORMAT, "key": self.key, "state": self.state, "base": self.base, "size": self.size,
            "pages": numbers,
        }  # fmt: skip
        with replacing(self.log) as temporary, open(temporary, "wb") as file:
            file.write(json.dumps(record).encode() + b"\n")
            for number in numbers:
                file.write(self.pages[number])

    def _apply(self):
        """Put the pages into the part, as far as they lie below the last checkpoint."""
        for number, page in self.pages.items():
            start = number * PAGE_BYTES
            write_at(self.file, page[: max(self.base - start, 0)], start)
        self.pages = {}

    @contextlib.contextmanager
    def hdf5(self, cache_bytes=4 << 20):
        """The file, open for writing; datasets and values of an earlier checkpoint are there.

        Parameters
        ----------
        cache_bytes : int
            Size of HDF5's chunk cache: a few chunks, so that a chunk that is filled in two steps is packed once.

        Yields
        ------
        h5py.File
            May hold attributes of any length.
        """
        # Up to format 1.6 an attribute may have 64 kB, too few for the names of 10,000 features.
        options = {"rdcc_nbytes": cache_bytes, "libver": ("v108", "v108")}
        with h5py.File(self, "r+" if self.size else "w", **options) as file:
            try:
                yield file
            except BaseException as error:
                self.error = self.error or error  # what closing writes is not kept
                raise

    @property
    def is_due(self):
        """Whether so much was written since the last checkpoint that it is time for one."""
        return self.written >= CHECKPOINT_BYTES or len(self.pages) >= CHECKPOINT_PAGES

    def checkpoint(self, state):
        """Make what was written lasting; the HDF5 file must have been flushed or closed.

        Parameters
        ----------
        state : dict
            JSON values that belong to it.

        Raises
        ------
        OSError
            Something could not be written, now or earlier.
        """
        self.check()
        os.fsync(self.file.fileno())
        self.state = state
        self._write_log()
        self._apply()
        self.file.truncate(self.size)
        self.base, self.written = self.size, 0

    def check(self):
        """Raise what a write of HDF5 met: it must not fail inside HDF5 (2.0), which then crashes the process."""
        if self.error is not None:
            raise self.error

    def finish(self):
        """Put the part of the last checkpoint in the target's place."""
        put_in_place(self.path, self.target)
        self.log.unlink()
        self.is_finished = True

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        is_of_data = isinstance(error, LinaddError) and not isinstance(error.__cause__, OSError)
        with self.file:
            if self.is_finished:
                return
            self.file.truncate(self.base)
        if self.state and self.key is not None and not is_of_data:
            logger.warning("%s: keeps what was written; the same command goes on from there", self.path)
        else:
            self.path.unlink()
            self.log.unlink()

    # What h5py asks of a file object.

    def seek(self, offset, whence=os.SEEK_SET):
        """Set the position; returns it."""
        self.position = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self.position, os.SEEK_END: self.size}[whence]
        return self.position

    def tell(self):
        """The position."""
        return self.position

    def read(self, size):
        """`size` bytes from the position on, zeros where there are none."""
        buffer = bytearray(size)
        self.readinto(buffer)
        return bytes(buffer)

    def readinto(self, buffer):
        """Fill a buffer from the position on, with zeros where there is nothing; returns its length."""
        view, start = memoryview(buffer).cast("B"), self.position
        found = read_at(self.file, view, start)
        view[found:] = bytes(len(view) - found)
        for number in range(start // PAGE_BYTES, min(start + len(view) - 1, self.base) // PAGE_BYTES + 1):
            if number in self.pages:
                first = number * PAGE_BYTES
                low, high = max(start, first), min(start + len(view), first + PAGE_BYTES, self.base)
                if low < high:
                    view[low - start : high - start] = self.pages[number][low - first : high - first]
        self.position += len(view)
        return len(view)

    def write(self, buffer):
        """Write at the position, or keep the error for `check`; returns the length."""
        view, start = memoryview(buffer).cast("B"), self.position
        self.position += len(view)
        self.size = max(self.size, self.position)
        if self.error is None:
            try:
                n_below = min(max(self.base - start, 0), len(view))
                self._hold(start, view[:n_below])
                write_at(self.file, view[n_below:], start + n_below)
                self.written += len(view)
            except BaseException as error:
                self.error = error
        return len(view)

    def _hold(self, start, view):
        """Change bytes below the last checkpoint in their pages."""
        done = 0
        while done < len(view):
            number, offset = divmod(start + done, PAGE_BYTES)
            if number not in self.pages:
                self.pages[number] = bytearray(PAGE_BYTES)
                read_at(self.file, memoryview(self.pages[number]), number * PAGE_BYTES)
            count = min(PAGE_BYTES - offset, len(view) - done)
            self.pages[number][offset : offset + count] = view[done : done + count]
            done += count

    def truncate(self, size):
        """Set the length of the file."""
        self.size = size
        return size

    def flush(self):
        """Nothing: `checkpoint` makes what was written lasting."""


def write_at(file, data, position):
    """Write all of a buffer at a position of an unbuffered file."""
    view, done = memoryview(data), 0
    file.seek(position)
    while done < len(view):
        done += file.write(view[done:])


def read_at(file, view, position):
    """Fill a buffer from a position on of an unbuffered file; returns how many bytes there were."""
    done = 0
    file.seek(position)
    while done < len(view):
        count = file.readinto(view[done:])
        if not count:
            break
        done += count
    return done
