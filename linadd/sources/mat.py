"""MATLAB's `.mat` files up to version 7 (v4, v5), by scipy; version 7.3 is HDF5, and read as such, in place."""

import struct
import warnings
import zlib
from contextlib import contextmanager

import numpy as np
import scipy.sparse

from linadd.errors import DataError, LinaddError
from linadd.sources.base import reading
from linadd.sources.loaded import LoadedSource
from linadd.sources.mat_elements import check_elements, no_text

__all__ = ["NUMBERS", "TEXTS", "MatSource", "check_class"]

# What scipy raises on a file that is damaged or not its own.
SCIPY_ERRORS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    NotImplementedError,
    EOFError,
    zlib.error,
    struct.error,
)
NUMBERS = {"single", "double", "logical"} | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
TEXTS = {"char", "cell"}


class MatSource(LoadedSource):
    """Rows of a matrix in a MATLAB file of version 4 to 7; see LoadedSource for parameters and errors.

    Matrices may be sparse; labels are a column of numbers, a matrix of characters (a row each, without the blanks at
    its end) or a cell array of texts.
    """

    kind = "MATLAB"
    item = "variable"
    suffixes = (".mat",)

    @staticmethod
    def matches(head):
        """Whether the first bytes are those of MATLAB's version 5 to 7, or the header of a matrix of version 4."""
        if head[126:128] in (b"IM", b"MI"):
            return head[124:126] in (b"\x00\x01", b"\x01\x00")
        if len(head) < 20:
            return False
        order = "<" if struct.unpack("<i", head[:4])[0] in range(5000) else ">"
        kind, _, _, is_complex, length = struct.unpack(f"{order}5i", head[:20])
        digits = [kind // 10**i % 10 for i in range(4)]
        is_kind = 0 <= kind < 5000 and digits[0] <= 2 and digits[1] <= 5 and not digits[2]
        return is_kind and is_complex in (0, 1) and 0 < length <= 64 and head[19 + length : 20 + length] == b"\0"

    def _list(self):
        from scipy.io import whosmat

        with opening(self.path):
            return {name: (shape, kind) for name, shape, kind in whosmat(self.path)}

    def _load(self, name):
        kind = self.there[name][1]
        check_class(kind, name, self.path, NUMBERS | TEXTS | {"sparse"})
        from scipy.io import loadmat

        with opening(self.path):
            check_elements(self.path, name)
            values = loadmat(self.path, variable_names=[name])[name]
            if scipy.sparse.issparse(values):
                values.check_format()
        if kind == "char":
            return np.char.rstrip(values)
        return values if kind != "cell" else self._texts(name, values)

    def _texts(self, name, cells):
        """The texts of a cell array."""
        cells = [np.asarray(cell) for cell in cells.reshape(-1)]
        row = next((row for row, cell in enumerate(cells) if cell.dtype.kind != "U" or cell.size > 1), None)
        if row is not None:
            raise no_text(self.path, name, row + 1)
        return np.array([cell.item() if cell.size else "" for cell in cells], str)


def check_class(kind, name, origin, allowed):
    """Raise DataError for a variable whose class, as MATLAB calls it, is none of the allowed ones."""
    if kind in allowed:
        return
    remedies = {
        "struct": "Save its fields as variables: save -struct.",
        "sparse": "Save it with -v7, or as full(X).",
        "empty": "Give data that have some.",
    } | dict.fromkeys(TEXTS, "Encode it as numbers first.")
    remedy = remedies.get(kind, "Save its content as one: table2array(T) of a table, cellstr(s) of strings.")
    needed = "a matrix or a column of texts" if allowed & TEXTS else "a matrix"
    raise DataError(f"variable {name!r} is {kind}; {needed} is needed. {remedy}", source=origin)


@contextmanager
def opening(path):
    """Turn what scipy raises on a damaged or foreign file into one line."""
    from scipy.io.matlab import MatReadError

    try:
        with reading(path), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a name that stands twice; the last one counts, as in MATLAB
            try:
                yield
            except OSError as error:
                if error.errno is not None:
                    raise
                raise ValueError(error) from error  # scipy's own, of a file that ends too early
    except LinaddError:
        raise
    except (MatReadError, *SCIPY_ERRORS) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        message = f"is no whole MATLAB file ({reason}): damaged, cut short or of another format. Save it again."
        raise DataError(message, source=path) from error
