"""libsvm (svmlight) text, plain or packed by gzip, bzip2 or xz, as native HDF5.

    python data_prep/libsvm.py SRC DST.h5 [--n-features N] [--index-base 0] [--dtype float32]

DST.h5 gets `X` (dense; float64, as the text is read, unless --dtype is given) and `y`. Files named like those of the
table below are checked against it, and a test file gets the width of its training file; others are taken as they are,
with N features if that is given. `linadd convert` does the same without the checks.

Source: the LIBSVM data page (C.-C. Chang and C.-J. Lin, https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/). Its
sets come from many places: a9a from the UCI census data (CC BY 4.0), w8a from J. Platt's web pages, ijcnn1 from the
IJCNN 2001 challenge. Licence: that of each set; not stated for w8a and ijcnn1.
"""

import hashlib
import sys

import numpy as np
from common import argument_parser, check_official, run

from linadd.sources import open_source
from linadd.sources.convert import convert

PACKED = (".bz2", ".gz", ".xz")
# Name of a file without the packing -> features of the set, and (rows, checksum of the content) of the file.
PUBLISHED = {
    "a9a": (123, (32_561, "829b7a374bfb70b1c42117c8a8b787a9b1e321c5045ca3fa973a58f7eee15e28")),
    "a9a.t": (123, (16_281, "4d547a582a48e6db2e4e8910514b196b74cbe82f36269a7c59cb94814664d1c2")),
    "ijcnn1": (22, (49_990, "a0a7f23d523afc905713f886dd8d293205338b82aae2557b1380871bf679032f")),
    "ijcnn1.t": (22, (91_701, "768dfd416366dafa7c870155b126ae5c8e4f9d235261431ee5a77920ec5c01af")),
    "w8a": (300, (49_749, "0066015d79d143447cf6309f845f4452df47fc41ab572341a92eb0fdb5fc5f25")),
}
PUBLISHED |= {"ijcnn1.trn": PUBLISHED["ijcnn1"], "ijcnn1.tst": PUBLISHED["ijcnn1.t"]}  # names of another copy


def digest(source):
    """sha256 of labels, lengths of rows, indices and values: not of line ends, spaces, digits or packing.

    Parameters
    ----------
    source : Source
        Sparse rows with labels; read once, by chunks.

    Returns
    -------
    str
    """
    sums = [hashlib.sha256() for _ in range(4)]
    for chunk in source.chunks():
        parts = (chunk.y, np.diff(chunk.X.indptr), chunk.X.indices, chunk.X.data)
        for each, values, dtype in zip(sums, parts, ("<f8", "<i8", "<i8", "<f8"), strict=True):
            each.update(values.astype(dtype).tobytes())
    return hashlib.sha256(b"".join(each.digest() for each in sums)).hexdigest()


def prepare(source, target, unchecked=False, n_features=None, index_base=1, dtype=None):
    """Check a file of the table, and write its rows.

    Parameters
    ----------
    source, target : pathlib.Path
        libsvm text; HDF5 file to write, which appears whole or not at all.
    unchecked : bool
        Take a file that bears a name of the table without being it.
    n_features : int, optional
        Width to pad to; by default that of the table, else of the longest row.
    index_base : {0, 1}
        First feature index.
    dtype : str, optional
        Type of X.

    Returns
    -------
    str
        A summary in one line.

    Raises
    ------
    DataError
        As `open_source` and `convert`; or the file is not the published one.
    """
    name = source.stem if source.suffix in PACKED else source.name
    published = None if unchecked else PUBLISHED.get(name)
    if published and n_features is None:
        n_features = published[0]
    with open_source(source, index_base=index_base, n_features=n_features) as rows:
        if published:
            check_official(source, name, (rows.n_rows, digest(rows)), published[1])
        record = convert(rows, target, dtype=dtype, codec="none")
    size = f"{record['bytes'] / 1e6:.1f} MB"
    return f"{target}: {record['n_rows']} rows, {record['n_features']} features, {record['dtype']}, {size}"


def main(arguments=None):
    """Command line; returns the exit code."""
    parser = argument_parser(__doc__)
    parser.add_argument("--n-features", type=int, help="features that the rows may have")
    parser.add_argument("--index-base", type=int, choices=[0, 1], default=1, help="first feature index; default: 1")
    parser.add_argument("--dtype", help="type of X, such as float32; default: float64")
    return run(prepare, **vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
