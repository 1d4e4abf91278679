"""Every exception and warning of linadd, in the form *where*: *what is wrong, with the value*. *What to do.*"""

__all__ = ["ConfigError", "ConvergenceWarning", "DataError", "DataWarning", "FileRow", "FormatError", "LinaddError"]


class LinaddError(Exception):
    """Base of every error that linadd raises on purpose; its text is one line that a user can act on."""


class ConfigError(LinaddError, ValueError):
    """An option, or a combination of options, that cannot work (the command line exits with 2)."""


class FormatError(LinaddError, ValueError):
    """A model file that is damaged, unknown or newer than this version.

    Parameters
    ----------
    message : str
        What is wrong, and what to do.
    source : str, optional
        The file.
    """

    def __init__(self, message, *, source=None):
        self.message, self.source = message, source
        super().__init__(message if source is None else f"{source}: {message}")


class DataError(LinaddError, ValueError):
    """Data that cannot be read or learned from (the command line exits with 1).

    Parameters
    ----------
    message : str
        What is wrong, with the value, and what to do.
    source : str, optional
        The file or object the data came from.
    row : int, optional
        Row as the user's file counts, from 1; a FileRow brings its own `source`.
    column : int or str, optional
        Column as the user's file counts, from 1, or its name.
    """

    def __init__(self, message, *, source=None, row=None, column=None):
        source = getattr(row, "origin", source)
        self.message, self.source, self.row, self.column = message, source, row, column
        where = [str(source)] if source is not None else []
        if row is not None:
            where.append(f"row {row}")
        if column is not None:
            where.append(f"column {column!r}" if isinstance(column, str) else f"column {column}")
        super().__init__(f"{', '.join(where)}: {message}" if where else message)


class FileRow(int):
    """A row's number, from 1, in one of the files that a source joins.

    Parameters
    ----------
    number : int
        The number.
    origin : str
        The file, for messages.
    """

    def __new__(cls, number, origin):
        row = super().__new__(cls, number)
        row.origin = origin
        return row

    def __reduce__(self):
        return FileRow, (int(self), self.origin)


class ConvergenceWarning(UserWarning):
    """The solver stopped before its declared rule was met; the text gives gap, tolerance and the option to change."""


class DataWarning(UserWarning):
    """The data can be used, but something about it will surprise: constant features, slow layout, sorted labels."""
