"""Tables of named columns: which of them are the labels, the weights and the features, and the type that holds these.

A column named by `--y`, `--weights` or `--where` is no feature; all others are, unless `features` and `drop` choose.
Without names, columns are called by their numbers from 1, those of the labels and weights counted too; these numbers
become the names of features that are not simply the first columns.
"""

import hashlib

import numpy as np

from linadd.errors import ConfigError, DataError
from linadd.sources.base import Source, check_table, dtype_remedy
from linadd.sources.columns import choose_columns, drop_flags, known_names, listing

__all__ = ["TableSource"]

FLAGS = {"y": "--y (y_name=)", "weights": "--weights (weights=)"}


class TableSource(Source):
    """Rows of a table that is read column by column.

    A subclass calls `_take_columns` while opening, and `_take_types` if its columns have types; it writes
    `read_selector` beside what every source has.

    Attributes
    ----------
    column_names : list of str
        Names of all columns of the table, or their numbers from 1.
    is_named : bool
        Whether they are names.
    columns : int64 array, shape (n_features,)
        Places of the features among them, from 0.
    label_place, weight_place : int or None
        Places of the labels and the sample weights.
    """

    selects_columns = True

    def _take_columns(self, names, n_columns, options, others=()):
        """Find labels, weights and features among all columns.

        Parameters
        ----------
        names : list of str, or None
            Names of all columns; None for a table without.
        n_columns : int
            How many there are.
        options : ReadOptions
            What was asked for.
        others : dict of str to str
            Columns that are no features whatever the options say, by what they hold.
        """
        self.is_named = names is not None
        self.column_names = list(map(str, range(1, n_columns + 1))) if names is None else names
        # A file without the default name has no labels, and a model's feature of that name is none.
        is_default = isinstance(options.y, str) and options.y == "y"
        is_absent = is_default and ("y" not in self.column_names or "y" in (options.match or ()))
        self.label_place = None if is_absent else self._place_of(options.y, "y")
        has_none = isinstance(options.weights, (bool, str)) and not options.weights
        self.weight_place = self._place_of(None if has_none else options.weights, "weights")
        taken = dict(others) | dict.fromkeys(options.where, "what selects rows (where)")
        for place, content in ((self.label_place, "the labels"), (self.weight_place, "the sample weights")):
            taken |= {} if place is None else {self.column_names[place]: content}
        rest = np.flatnonzero([name not in taken for name in self.column_names])
        if self.is_named:
            there = [names[j] for j in rest]
            order, self.feature_names = choose_columns(options, there, len(rest), self.origin, taken)
            self.columns = rest if order is None else rest[order]
        else:
            order, _ = choose_columns(options, None, n_columns, self.origin, taken)
            self.columns = rest if order is None else order[np.isin(order, rest)]
            if order is not None or not np.array_equal(rest, np.arange(len(rest))):
                self.feature_names = [self.column_names[j] for j in self.columns]
        self.n_features = len(self.columns)
        if not self.n_features:
            message = f"has no columns for features; its columns: {listing(self.column_names) or 'none'}."
            raise DataError(f"{message} Give data that have some.", source=self.origin)
        if self.label_place is not None and self.label_place == self.weight_place:
            message = f"{self.origin}: column {options.y!r} is named for labels and for weights. Name two columns."
            raise ConfigError(message)
        self.has_labels, self.has_weights = self.label_place is not None, self.weight_place is not None

    def _place_of(self, name, option):
        """Place of the column that an option names; None for None."""
        if name is None:
            return None
        if not isinstance(name, str):
            message = f"{self.origin}: {option} is an array; for {self.kind} it must be the name of a column."
            raise ConfigError(message)
        places = [j for j, each in enumerate(self.column_names) if each == name]
        if len(places) == 1:
            return places[0]
        if places:
            message = f"has {len(places)} columns named {name!r}, which {FLAGS[option]} names. Give each its own name."
            raise DataError(message, source=self.origin)
        known = known_names([name], self.column_names)
        if not self.is_named:
            known = f"Its columns have no names: give their numbers, 1 to {len(self.column_names)}."
        raise DataError(f"has no column {name!r}, which {FLAGS[option]} names. {known}", source=self.origin)

    def _take_types(self, types, n_rows):
        """Set the least type that holds every feature exactly where there is one, and the shape.

        Parameters
        ----------
        types : list of (numpy.dtype or None, object)
            Of each column of the table: the type of its numbers, None if it has none, and what a message calls it.
        n_rows : int
            Rows of the table.
        """
        textual = [self.column_names[place] for place in self.columns if types[place][0] is None]
        for place in self.columns:
            stored, shown = types[place]
            remedy = numbers_remedy(textual) if stored is None else dtype_remedy(stored)
            if remedy:
                message = f"has type {shown}; features must be real numbers. {remedy}"
                raise DataError(message, source=self.origin, column=self.column_names[place])
        self.stored = np.result_type(*(types[place][0] for place in self.columns))
        self.dtype = check_table((n_rows, self.n_features), self.stored, self.origin, "the table")
        self.n_rows = n_rows

    def selectors(self):
        """The columns, by name or number."""
        return self.column_names

    def label_remedy(self):
        """The columns that the labels could be in."""
        return f"Name their column with {FLAGS['y']}: there is {listing(self.column_names)}."

    def column_prints(self):
        """What of the table is read, for the fingerprint."""
        chosen = repr([self.column_names[place] for place in self.columns])
        named = [None if place is None else self.column_names[place] for place in (self.label_place, self.weight_place)]
        digest = hashlib.blake2b(chosen.encode(errors="replace"), digest_size=16).hexdigest()
        return {"columns": digest, "y": named[0], "weights": named[1]}


def numbers_remedy(names):
    """What to do with the columns of these names, which are features and hold no numbers."""
    what, left = ("it", "it") if len(names) == 1 else ("such columns", "them")
    flags = drop_flags(names) if all(name.isprintable() for name in names) else "--drop NAME"
    return f"Encode {what} as numbers, or leave {left} out (drop=): {flags}"
