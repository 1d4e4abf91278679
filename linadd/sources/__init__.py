"""The list of sources, and `open_source`, which picks one by object, suffix or content.

To add a format: a file with its `Source` beside this one, and its class in the list.
"""

import copy
import os
import time
from dataclasses import replace

from linadd.errors import ConfigError, DataError
from linadd.sources.arrays import ArraySource, SparseSource
from linadd.sources.base import ReadOptions, Source, reading
from linadd.sources.columns import last_number, select_columns
from linadd.sources.dask_arrays import DaskSource
from linadd.sources.delimited import DelimitedSource
from linadd.sources.files import FilesSource
from linadd.sources.frames import FrameSource
from linadd.sources.hdf5 import HDF5Source
from linadd.sources.libsvm import LibsvmSource
from linadd.sources.mat import MatSource
from linadd.sources.npy import NpySource, NpzSource
from linadd.sources.parquet import ParquetSource
from linadd.sources.paths import are_paths, find_files
from linadd.sources.text import COMPRESSED, read_head
from linadd.sources.where import WhereSource
from linadd.sources.zarr_arrays import ZarrArraySource, ZarrSource

__all__ = ["SOURCES", "Source", "open_source"]

# Data in memory, the first that accepts it.
ARRAY_SOURCES = [SparseSource, DaskSource, FrameSource, ZarrArraySource, ArraySource]
# Formats of files, in the order in which their content is tried when the suffix is unknown.
TEXT_SOURCES = [LibsvmSource, DelimitedSource]  # compressed too
FILE_SOURCES = [HDF5Source, MatSource, NpySource, NpzSource, ZarrSource, ParquetSource, *TEXT_SOURCES]
# Suffix -> class of the source.
SOURCES = {suffix: source for source in FILE_SOURCES for suffix in source.suffixes}


def open_source(
    data,
    y=None,
    *,
    group=None,
    x="X",
    y_name="y",
    weights=None,
    where=None,
    chunk_rows=None,
    index_base="auto",
    n_features=None,
    features=None,
    drop=None,
    match=None,
    like=None,
    cache=True,
):
    """Open data of any kind that linadd reads as a `Source` of rows.

    Parameters
    ----------
    data : str, path-like or list of them, array_like, scipy sparse, dask or zarr array, pandas or polars frame, Source
        A path may end in `::group`; the longest existing file name before a `::` wins. A list of paths, or a pattern
        (`part-*.h5`), is one data set: the rows of one file after the other, those of a pattern in the order of their
        names, part-2 before part-10. A Source is returned as it is.
    y : array_like, shape (n_rows,), or str, optional
        Labels, for data in memory, for `.npy` files and for several files; of a frame also the name of a column.
    group : str, optional
        Group of an HDF5 file or a Zarr store; the same as `::group`.
    x, y_name : str
        Names of the features and the labels in a file; in tables (CSV, Parquet) all columns are features but those of
        `y_name`, `weights` and `where`. A file without the default `y` has no labels.
    weights : str or array_like, optional
        Name (for files and columns of frames) or array (for data in memory) of sample weights.
    where : dict of str to list, optional
        Keep the rows whose array NAME, beside X, or column NAME has one of the values: `{"part": ["1", "2"]}`.
    chunk_rows : int, optional
        Rows of a reader chunk; by default about 8 MB, in whole chunks of the file. Results do not depend on it.
    index_base : {"auto", 0, 1}
        First feature index of libsvm text; "auto" is that of `like`, else 1. An index 0 is then an error that names
        this option.
    n_features : int, optional
        Features that the source must have; libsvm text of fewer is padded with zeros.
    features, drop : str or list of str, optional
        Columns to read, and of these (or of all) those to leave out: names, several in a text separated by commas, or
        patterns of the shell (`pixel*`); where columns have no names their numbers from 1, or ranges (`3-10`). They
        keep the order of the data.
    match : list of str, optional
        Names of the features of a model: data with names are put into their order, and columns that are not among them
        are left out. Columns of data without names count by position.
    like : dict, optional
        Fingerprint of the data of a model (`model.fingerprint`): with `index_base` "auto", libsvm text counts from the
        first index that it did there.
    cache : bool
        Keep the census of a large file for the next run, and use the one that is kept (`census_cache.py`).

    Returns
    -------
    Source

    Raises
    ------
    DataError
        Data that cannot be read, or not as asked; one line with the file and what to do.
    ConfigError
        An option that has no meaning for this kind of data.
    """
    if chunk_rows is not None and not (isinstance(chunk_rows, int) and chunk_rows >= 1):
        raise ConfigError(f"chunk_rows is {chunk_rows!r}. Give a whole number of rows, at least 1.")
    if where is not None and not isinstance(where, dict):
        raise ConfigError(f"where is {where!r}. Give a dict of lists of values, as {{'part': ['1', '2']}}.")
    columns = [names_of(*each) for each in (("features", features), ("drop", drop), ("match", match))]
    y_or_name, where_names = y_name if y is None else y, tuple(where or ())
    options = ReadOptions(group, x, y_or_name, weights, index_base, n_features, *columns, like, where_names)
    opened_ns = time.time_ns()
    if isinstance(data, Source):
        opened_ns = data.opened_ns
        options.refuse(data.origin, "an open source", "group", "x", "y", "weights", "index_base")
        source = select_columns(copy.copy(data), options)
    elif are_paths(data):
        source = open_files(data, options)
    else:
        options.refuse("array", "data in memory", "group", "x", "index_base", *([] if y is not None else ["y"]))
        array_source = next(candidate for candidate in ARRAY_SOURCES if candidate.accepts(data))
        if array_source.selects_columns:
            source = array_source(data, y, weights, options)
        else:
            source = select_columns(array_source(data, y, weights), options)
    if n_features is not None and source.n_features != n_features:
        message = f"has {source.n_features} features; {n_features} are needed. Give data of the same columns."
        raise DataError(message, source=source.origin)
    if where:
        source = WhereSource(source, where)
    source.chunk_rows = chunk_rows or source.chunk_rows
    source.opened_ns = opened_ns if cache else None
    return source


def open_files(data, options):
    """The source of the files that `data` names; columns are chosen in each."""
    files = find_files(data, options.group)
    given = {"y": options.y, "weights": options.weights}
    if len(files) > 1:  # arrays belong to all rows
        given = {name: value for name, value in given.items() if not isinstance(value, (str, os.PathLike, bool))}
        options = replace(options, **dict.fromkeys(given))
    # Columns beyond the last that libsvm text holds are zero, also where a model's names are numbers of columns.
    last = last_number(options.match)
    is_chosen = last or options.features is not None or options.drop is not None
    own = replace(options, n_features=None) if is_chosen else options
    parts = [open_file(path, replace(own, group=group)) for path, group in files]
    width = max(last, *(part.n_features for part in parts))
    for part in parts:
        if part.can_pad and part.n_features < width:
            part.pad(width)
    parts = [part if part.selects_columns else select_columns(part, options) for part in parts]
    if len(parts) == 1:
        return parts[0]
    name = os.fspath(data if isinstance(data, (str, os.PathLike)) else data[0])
    more = "" if isinstance(data, (str, os.PathLike)) else f" and {len(parts) - 1} more"
    return FilesSource(parts, name + more, **given)


def open_file(path, options):
    """The source of one file, with all columns unless it selects them itself."""
    if os.path.isdir(path):
        if not ZarrSource.is_store(path):
            remedy = "Give a file, or a pattern of files in quotes."
            raise DataError(f"is a folder, and no Zarr store. {remedy}", source=path)
        return ZarrSource(path, options)
    if not os.path.isfile(path):
        remedy = "Rows are read more than once: write them to a file first."
        raise DataError(f"is a pipe or a device. {remedy}", source=path)
    (stem, suffix), candidates = os.path.splitext(path), FILE_SOURCES
    if suffix.lower() in COMPRESSED:
        suffix, candidates = os.path.splitext(stem)[1], TEXT_SOURCES
    with reading(path):
        head = read_head(path, 4096)
    source = SOURCES.get(suffix.lower())
    if source not in candidates or HDF5Source.matches(head):  # MATLAB's .mat may be HDF5
        source = next((each for each in candidates if each.matches(head)), None)
    if source is None:
        known = ", ".join([*SOURCES, *COMPRESSED])
        message = f"the format is unknown: neither its suffix {suffix!r} nor its content is one of {known}."
        raise DataError(f"{message} Convert it to one of them.", source=path)
    return source(path, options)


def names_of(option, names):
    """A tuple of names from a text or a list of them; None for None."""
    if names is None or isinstance(names, str):
        return None if names is None else (names,)
    try:
        return tuple(map(str, names))
    except TypeError:
        raise ConfigError(f"{option} is {names!r}. Give a list of names.") from None
