"""Files that appear whole or not at all: written under a temporary name beside the target, synced, then renamed.

Every file that linadd leaves behind (converted data, models, predictions, exports) goes through here, so that a full
disk, a kill or Ctrl-C never leaves half a file under the name that the user asked for.
"""

import contextlib
import os
import secrets
import shutil
from pathlib import Path

from linadd.errors import DataError

__all__ = ["atomic_folder", "atomic_path", "check_writable"]


def check_writable(path):
    """Refuse a target that `atomic_path` could not write; called before long work begins.

    Tries what the write will do: a file is made beside the target and removed, because permission bits alone do not
    tell a read-only mount or a quota.

    Raises
    ------
    DataError
        The folder is missing or refuses a file, or the target is a folder, a device or write-protected.
    """
    with writing(path):
        create_beside(resolve_target(path)).unlink()


@contextlib.contextmanager
def atomic_path(path):
    """Give a temporary path to write to; on leaving, sync it and rename it to `path`; on any exception remove it.

    The temporary file exists (empty), lies in the target's folder and keeps its suffix. A link is followed. An existing
    target is replaced in one step and its permission bits are kept.

    Yields
    ------
    pathlib.Path
        The temporary path; every handle on it must be closed before the block is left.

    Raises
    ------
    DataError
        As `check_writable`; and for an OSError inside the block (a full disk, say), naming `path` and the reason.
    """
    with writing(path), replacing(resolve_target(path)) as temporary:
        yield temporary


@contextlib.contextmanager
def replacing(target):
    """`atomic_path` for a target that is resolved, whose OSErrors stay what they are."""
    temporary = create_beside(target)
    try:
        yield temporary
        put_in_place(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def put_in_place(path, target):
    """Sync a file and rename it to a target beside it, whose permission bits it takes if there is one."""
    if target.exists():
        path.chmod(target.stat().st_mode & 0o7777)
    sync(path)
    os.replace(path, target)
    sync(target.parent)


@contextlib.contextmanager
def atomic_folder(path):
    """Give a path of the same name in a temporary folder beside it, for a file and others that belong to it.

    On leaving, every file of the folder is synced and renamed into the target's folder, `path` itself last; on any
    exception nothing of it is left.

    Yields
    ------
    pathlib.Path
        Where to write; the folder is empty.

    Raises
    ------
    DataError
        As `atomic_path`.
    """
    with writing(path):
        target = resolve_target(path)
        folder = target.with_name(f".linadd-{secrets.token_hex(6)}")
        folder.mkdir()
        try:
            yield folder / target.name
            for file in sorted(folder.iterdir(), key=lambda file: (file.name == target.name, file.name)):
                final = resolve_target(target.with_name(file.name))
                if final.exists():
                    file.chmod(final.stat().st_mode & 0o7777)
                sync(file)
                os.replace(file, final)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        sync(target.parent)


def resolve_target(path):
    """The path that a rename must replace, links followed; DataError if it is not a place for a regular file."""
    if not os.fspath(path):
        raise DataError("the name '' of the file to write is empty. Give it a name.")
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise DataError("is a folder. Give the name of a file in it.", source=path)
    if target.exists() and not target.is_file():
        raise DataError("is not a regular file. Give another name.", source=path)
    if target.exists() and not os.access(target, os.W_OK):
        raise DataError("exists and is write-protected. Give another name or `chmod u+w` it.", source=path)
    if not target.parent.is_dir():
        raise DataError(f"the folder {str(target.parent)!r} does not exist. Create it first.", source=path)
    return target


def create_beside(target):
    """Make an empty file of an unused name in the target's folder, with the permission bits of the user's umask."""
    temporary = target.with_name(f".linadd-{secrets.token_hex(6)}{target.suffix}")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    return temporary


@contextlib.contextmanager
def writing(path):
    """Turn an OSError into one line that names the target."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"cannot be written ({reason}). Free space there or give another path.", source=path) from error


def sync(path):
    """Flush a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
