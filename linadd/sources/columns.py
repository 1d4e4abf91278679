"""Which columns a source delivers: those that `features` and `drop` choose, or those of a model, matched by name.

`choose_columns` decides for every source. One that reads columns one by one (`selects_columns`) calls it while opening;
every other is wrapped by `select_columns`.
"""

import difflib
import fnmatch
import logging
import re
import shlex
from dataclasses import replace

import numpy as np
import scipy.sparse

from linadd.chunks import csr_rows
from linadd.errors import DataError
from linadd.sources.base import ReadOptions, WrappedSource

__all__ = ["choose_columns", "drop_flags", "last_number", "match_columns", "select_columns"]

logger = logging.getLogger(__name__)

SHOWN_NAMES = 5
RANGE = re.compile(r"(\d+)-(\d+)")


def drop_flags(names):
    """The options of the command line that leave out columns of these names, quoted for the shell."""
    given = names if any("," in name for name in names) else [",".join(names)]
    return " ".join(f"--drop {shlex.quote(each)}" for each in given)


def match_columns(source, names):
    """The columns of a model, taken from an open source by their names.

    Parameters
    ----------
    source : Source
        The rows.
    names : list of str, or None
        The model's feature names; None where it has none.

    Returns
    -------
    Source
        The source itself where its columns are right as they stand, or one of the two has no names: then they count by
        position, and their number is for the caller to check.

    Raises
    ------
    DataError
        As `choose_columns`.
    """
    return select_columns(source, ReadOptions(match=None if names is None else tuple(names)))


def select_columns(source, options):
    """The source with the columns that the options choose; itself where that is all of them in their order.

    Parameters
    ----------
    source : Source
        The rows.
    options : ReadOptions
        `features`, `drop` and `match`.

    Raises
    ------
    DataError
        As `choose_columns`.
    """
    order, names = choose_columns(options, source.feature_names, source.n_features, source.origin)
    return source if order is None else ColumnSource(source, order, names)


def choose_columns(options, names, n_features, origin, taken=None):
    """Places of the columns that a source delivers, and their names.

    Each value of `features` and `drop` is a column's name, or several separated by commas; names may be patterns of the
    shell (`pixel*`). A name that several columns have means them all. Columns without names are called by their numbers
    from 1, or by ranges of them, 3-10. What is left of `features` without `drop` keeps the order of the data; then the
    columns that `match` needs are taken from it, in the order of `match`. Data without names have nothing to match,
    unless `match` consists of numbers and they are wider.

    Parameters
    ----------
    options : ReadOptions
        `features`, `drop` and `match`.
    names : list of str, or None
        The names of all columns, where they have any.
    n_features : int
        How many columns there are.
    origin : str
        The source, for messages.
    taken : dict of str to str, optional
        Other columns of the table, by what they hold ("the labels"), for messages.

    Returns
    -------
    order : int64 array, shape (n_kept,), or None
        Places from 0, in the order in which the columns are delivered; None for all as they stand.
    names : list of str, or None
        Their names; numbers where columns without names were chosen.

    Raises
    ------
    DataError
        A name that no column has (the nearest ones are named); no column left; names needed by `match` that are
        missing, or are two columns'.
    """
    is_chosen, match = options.features is not None or options.drop is not None, options.match
    # Names of a model that are numbers stand for columns of data without names, from which some were chosen.
    is_numbered = last_number(match) > 0 and (is_chosen or last_number(match) > len(match) < n_features)
    is_matched = match is not None and (names is not None or is_numbered)
    if not (is_chosen or (is_matched and names != list(match))):
        return None, names
    numbers = None if names is not None else range(1, n_features + 1)
    names = list(map(str, numbers)) if names is None else list(names)
    places = {}
    for j, name in enumerate(names):
        places.setdefault(name, []).append(j)

    def find(values, option):
        found = np.zeros(n_features, bool)
        for value in values:
            for name in [value] if value in places else value.split(","):
                found[find_column(name, places, numbers, origin, option, taken or {})] = True
        return found

    kept = np.ones(n_features, bool) if options.features is None else find(options.features, "features")
    if options.drop is not None:
        kept &= ~find(options.drop, "drop")
    if not kept.any():
        message = f"no column is left of {listing(names)} by --features (features=) and --drop (drop=). Keep some."
        raise DataError(message, source=origin)
    order = np.flatnonzero(kept)
    if is_matched:
        order = order[matching([names[j] for j in order], match, places, origin)]
    return order, [names[j] for j in order]


def find_column(name, places, numbers, origin, option, taken):
    """Places of the columns that a name, a range of numbers or a pattern means; DataError if it means none."""
    if name in places:
        return places[name]
    span = RANGE.fullmatch(name) if numbers else None
    if span and int(span[1]) in numbers and int(span[2]) in numbers and int(span[1]) <= int(span[2]):
        return range(int(span[1]) - 1, int(span[2]))
    if any(sign in name for sign in "*?["):
        found = [j for each in places if fnmatch.fnmatchcase(each, name) for j in places[each]]
        if found:
            return found
    flag = f"--{option} ({option}=)"
    if name in taken and option == "drop":
        return []  # as it is no feature anyway
    if name in taken:
        raise DataError(f"column {name!r} holds {taken[name]} and is no feature. Take it off {flag}.", source=origin)
    state = f"has no column {name!r}, which {flag} names"
    if numbers:
        message = f"{state}. Its columns have no names: give their numbers, 1 to {len(numbers)}."
        raise DataError(message, source=origin)
    raise DataError(f"{state}. {known_names([name], list(places))}", source=origin)


def matching(there, needed, places, origin):
    """Index into the names `there` of each needed name; DataError where one is missing or stands for two columns."""
    if there == list(needed):
        return np.arange(len(there))
    index = {name: j for j, name in enumerate(there)}
    missing = [name for name in needed if name not in index]
    left_out = [name for name in missing if name in places]
    if left_out:
        message = f"the model needs {listing(left_out)}, which --features (features=) or --drop (drop=) leaves out."
        raise DataError(f"{message} Keep what it needs.", source=origin)
    if missing:
        noun = "column" if len(missing) == 1 else "columns"
        message = f"has no {noun} {listing(missing)}, which the model needs. {known_names(missing, there)}"
        raise DataError(message, source=origin)
    for names, owner in ((there, "has two columns"), (needed, "is for a model of two columns")):
        last = {name: j for j, name in enumerate(names)}
        double = next((name for j, name in enumerate(names) if last[name] != j and name in needed), None)
        if double is not None:
            message = f"{owner} named {double!r}, and its columns are not the model's in their order."
            raise DataError(f"{message} Give each column its own name.", source=origin)
    extra = sorted(index.keys() - set(needed), key=index.get)
    if extra:
        logger.info("%s: columns are matched by the model's names; it does not know %s", origin, listing(extra))
    else:
        logger.info("%s: the columns are in another order than needed; they are matched by name", origin)
    return np.array([index[name] for name in needed], np.int64)


def last_number(names):
    """The greatest of names that are rising numbers from 1 on; 0 for others and for None."""
    if not names or not all(name.isdecimal() for name in names):
        return 0
    numbers = [int(name) for name in names]
    is_rising = all(low < high for low, high in zip([0, *numbers], numbers, strict=False))
    return numbers[-1] if is_rising and list(map(str, numbers)) == list(names) else 0


def known_names(wanted, there):
    """What a message says of the names that there are: the nearest to those that are wanted, or the first."""
    near = {each: None for name in wanted for each in difflib.get_close_matches(name, there)}
    return f"The nearest: {listing(list(near))}." if near else f"Its columns: {listing(there)}."


def listing(names):
    """The first names, quoted, and how many more there are."""
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(map(repr, names[:SHOWN_NAMES])) + more


class ColumnSource(WrappedSource):
    """Some columns of a source, in any order.

    Parameters
    ----------
    source : Source
        The rows.
    order : int64 array, shape (n_features,)
        Column of the source that becomes column j.
    names : list of str
        Name of column j.
    """

    def __init__(self, source, order, names):
        super().__init__(source)
        self.order, self.n_features, self.feature_names = order, len(order), names

    def _read_many(self, ranges):
        return [replace(chunk, X=self._ordered(chunk.X)) for chunk in self.source.read_many(ranges)]

    def _ordered(self, X):
        """The columns of X, C-contiguous or with sorted indices."""
        if not scipy.sparse.issparse(X):
            return np.take(X, self.order, axis=1)
        X = scipy.sparse.csr_array(X[:, self.order])
        X.sort_indices()
        return csr_rows(X.data, X.indices, X.indptr, X.shape)

    def fingerprint(self):
        """Of the source, with the order."""
        return self.source.fingerprint() | {"columns": self.order.tolist()}

    def selectors(self):
        """As of the source."""
        return self.source.selectors()

    def read_selector(self, name, start, stop):
        """As of the source."""
        return self.source.read_selector(name, start, stop)
