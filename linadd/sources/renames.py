"""A source under other names: of its columns (`--rename OLD=NEW`) and of its labels (`--label OLD=NEW`)."""

from dataclasses import replace

import numpy as np

from linadd.errors import ConfigError, DataError
from linadd.sources.base import WrappedSource
from linadd.sources.columns import known_names

__all__ = ["RenamedSource", "split_column_pair", "split_label_pairs"]


class RenamedSource(WrappedSource):
    """The rows of a source with other names of columns and other labels.

    All new names are given at once, so that two can be exchanged. Labels that have no new one stay as they are; the new
    ones may make classes one. Names of classes are left out with the labels that they were for.

    Parameters
    ----------
    source : Source
        The rows.
    columns : dict of str to str
        Column -> new name. Columns without names are called by their numbers from 1, and keep them if not renamed.
    labels : dict
        Label -> new label; the new ones are all numbers or all text. Keys are compared as numbers with labels that are
        numbers, else as text.

    Attributes
    ----------
    unmet : set
        Keys of `labels` that no row had so far.

    Raises
    ------
    ConfigError
        Keys that are no numbers for labels that are; new labels of both kinds.
    DataError
        A column that there is not, or twice; a new name that is empty or another column's; a source without labels;
        later a label of another kind than the new ones that is not among the keys, with its row.
    """

    def __init__(self, source, columns, labels):
        super().__init__(source)
        self.columns, self.labels, self.unmet = dict(columns), dict(labels), set(labels)
        if columns:
            self.feature_names = renamed(source, self.columns)
        if labels:
            source.require_labels()
            self.class_names = None
            self.is_new_text = isinstance(next(iter(labels.values())), str)
            if any(isinstance(label, str) != self.is_new_text for label in labels.values()):
                new = ", ".join(map(repr, labels.values()))
                raise ConfigError(f"{self.origin}: the new labels {new} are numbers and text. Give one kind.")

    def _read_many(self, ranges):
        chunks = self.source.read_many(ranges)
        return [replace(chunk, y=self._relabelled(chunk)) for chunk in chunks] if self.labels else chunks

    def _relabelled(self, chunk):
        """The labels of a chunk under their new names."""
        is_text = chunk.y.dtype.kind == "U"
        keys = {self._key(key, is_text): key for key in self.labels}
        values, inverse = np.unique(chunk.y, return_inverse=True)
        new = []
        for value in values.tolist():
            key = keys.get(value)
            self.unmet.discard(key)
            if value not in keys and is_text != self.is_new_text:
                kinds = ("numbers", "text")
                row = chunk.row_number(int(np.argmax(chunk.y == value)))
                message = f"label {value!r} has no new one, and those that are given are {kinds[self.is_new_text]}."
                raise DataError(f"{message} Give it one too.", source=self.origin, row=row)
            new.append(self.labels[key] if value in keys else value)
        if self.is_new_text:
            return np.array(new, str)[inverse]
        is_integral = all(isinstance(label, int) for label in self.labels.values())
        return np.array(new, np.int64 if is_integral and chunk.y.dtype.kind != "f" else np.float64)[inverse]

    def _key(self, key, is_text):
        """An old label in the type of the labels."""
        if is_text:
            return str(key)
        try:
            return float(key)
        except ValueError:
            message = f"{self.origin}: --label {key}={self.labels[key]}: the labels are numbers. Give numbers."
            raise ConfigError(message) from None

    def fingerprint(self):
        """Of the source, with the new names."""
        named = [[str(old), str(new)] for old, new in self.labels.items()]
        return self.source.fingerprint() | {"rename": self.columns, "labels": named}

    def selectors(self):
        """As of the source."""
        return self.source.selectors()

    def read_selector(self, name, start, stop):
        """As of the source."""
        return self.source.read_selector(name, start, stop)


def names_or_numbers(source):
    """The names of a source's columns, or their numbers from 1 as text."""
    return source.feature_names or [str(j + 1) for j in range(source.n_features)]


def renamed(source, columns):
    """The names of a source's columns after the change."""
    there = names_or_numbers(source)
    for old, new in columns.items():
        if there.count(old) != 1:
            state = "has two columns" if old in there else "has no column"
            known = "Give each its own name." if old in there else known_names([old], there)
            raise DataError(f"{state} {old!r} to be renamed. {known}", source=source.origin)
        if not new:
            raise DataError(f"the new name of column {old!r} is empty. Give one.", source=source.origin)
    names = [columns.get(name, name) for name in there]
    for old, new in columns.items():
        if names.count(new) > 1:
            message = f"column {old!r} cannot become {new!r}: another column has that name. Rename or drop that too."
            raise DataError(message, source=source.origin)
    return names


def split_column_pair(pair, source):
    """(OLD, NEW) of a text OLD=NEW; of several signs that one counts before which the longest name of a column stands.

    Parameters
    ----------
    pair : str
        What --rename gave.
    source : Source
        The rows, whose columns are asked for.

    Raises
    ------
    ConfigError
        A text without the sign.
    """
    there = set(names_or_numbers(source))
    cuts = [place for place, sign in enumerate(pair) if sign == "="]
    if not cuts:
        raise ConfigError(f"--rename {pair}: is not OLD=NEW.")
    cut = next((place for place in reversed(cuts) if pair[:place] in there), cuts[0])
    return pair[:cut], pair[cut + 1 :]


def split_label_pairs(pairs):
    """The dict of labels for `RenamedSource` from texts OLD=NEW, where the last sign counts.

    Parameters
    ----------
    pairs : list of str
        The new labels become numbers if all of them look like numbers.

    Raises
    ------
    ConfigError
        A text of another form; a label twice.
    """
    texts = {}
    for pair in pairs:
        old, sign, new = pair.rpartition("=")
        if not (old and sign and new):
            raise ConfigError(f"--label {pair}: is not OLD=NEW.")
        if old in texts:
            raise ConfigError(f"--label {pair}: gives {old!r} a second new label. Give it one.")
        texts[old] = new
    try:
        numbers = {old: float(new) for old, new in texts.items()}
    except ValueError:
        return texts
    if not np.isfinite(list(numbers.values())).all():
        return texts
    return {old: int(number) if number.is_integer() else number for old, number in numbers.items()}
