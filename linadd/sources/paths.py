"""Which files a text or a list of texts names: `FILE`, `FILE::group`, a pattern of the shell, or several of them."""

import difflib
import glob
import os
import re

from linadd.errors import ConfigError, DataError

__all__ = ["are_paths", "find_files", "missing_file"]


def are_paths(data):
    """Whether `data` is a path or a list or tuple of paths, and not an array."""
    names = data if isinstance(data, (list, tuple)) and data else [data]
    return all(isinstance(name, (str, os.PathLike)) for name in names)


def find_files(data, group=None):
    """The files that `data` names, in its order; those of one pattern by name, numbers in it by their value.

    Parameters
    ----------
    data : str or path-like, or list of them
        Each `FILE` or `FILE::group`, where FILE may be a pattern (`part-*.h5`; `**` stands for folders at any depth).
        The longest name of a file or pattern before a `::` wins; a file's own name comes before a pattern.
    group : str, optional
        The group in each of the files, if the names have none.

    Returns
    -------
    list of (str, str or None)
        Path and group of each.

    Raises
    ------
    DataError
        No such file, the nearest names being given; or a file that stands there twice, links followed.
    ConfigError
        A group that is given twice.
    """
    files = []
    for text in map(os.fspath, data if isinstance(data, (list, tuple)) else [data]):
        paths, own = split_group(text)
        if own is not None and group is not None:
            raise ConfigError(f"{text}: the group is given twice, as {own!r} and {group!r}. Give it once.")
        files += [(path, group if own is None else own) for path in paths]
    seen = {}
    for path, own in files:
        place = os.path.realpath(path), own
        if place in seen:
            raise DataError(f"is given twice, the first time as {seen[place]!r}. Give each file once.", source=path)
        seen[place] = path
    return files


def split_group(text):
    """(paths, group or None) of one `FILE::group`; the longest existing name before a `::` wins."""
    name, group = text, None
    while True:
        paths = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True), key=by_number)
        if paths:
            return paths, group
        name, mark, _ = name.rpartition("::")
        if not mark:
            raise DataError(missing_file(text), source=text)
        group = text[len(name) + 2 :] or None


def by_number(path):
    """Key that sorts part-2 before part-10."""
    return [int(piece) if piece.isdecimal() else piece for piece in re.split(r"(\d+)", path)], path


def missing_file(path):
    """What to say of a file that does not exist, or of a pattern that no file matches."""
    folder, name = os.path.split(path.split("::")[0])
    while glob.has_magic(folder):
        folder, name = os.path.split(folder)
    if not os.path.isdir(folder or "."):
        return f"the folder {folder!r} does not exist."
    names = sorted(os.listdir(folder or "."))
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.4) or names[:5]
    shown = "The folder is empty" if not names else "The folder has " + ", ".join(map(repr, near))
    state = "matches no file" if glob.has_magic(path) else "does not exist"
    return f"{state}. {shown}{f' and {len(names) - len(near)} more' if len(names) > len(near) else ''}."
