"""What the data scripts share: gradient histograms over grids of blocks, reading .npz, and writing native HDF5 groups.

The images' own facts (filter, block sizes, normalisation, checksums) stay in `mnist.py` and `daimler.py`. Images are
kept with the *image* as the last axis, (height, width, n_images): each step is then one vector operation over images,
and adds in an order that does not depend on how many there are, so features are equal to the bit for any batch size.
"""

import argparse
import sys
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from linadd.atomic import atomic_path, check_writable
from linadd.errors import ConfigError, DataError, LinaddError

__all__ = [
    "Grid",
    "ImageSet",
    "argument_parser",
    "as_images",
    "block_histograms",
    "check_official",
    "feature_names",
    "one_line",
    "orientation_planes",
    "place_grid",
    "read_npz",
    "run",
    "write_groups",
    "write_images",
]

CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class Grid:
    """One grid of square, non-overlapping blocks on an image.

    Attributes
    ----------
    level : int
        Position in the pyramid, 0 for the largest blocks.
    shift : str
        "unshifted", "shift_y" or "shift_x".
    block : int
        Side of a block in pixels.
    top, left : int
        First pixel row and column of the first block.
    n_rows, n_cols : int
        Number of whole blocks down and across.
    """

    level: int
    shift: str
    block: int
    top: int
    left: int
    n_rows: int
    n_cols: int

    @property
    def n_blocks(self):
        """Number of blocks."""
        return self.n_rows * self.n_cols


def place_grid(level, block, shape, shift="unshifted"):
    """Place a grid so that incomplete blocks are dropped evenly on both sides, then shift it by half a block.

    Parameters
    ----------
    level : int
        Position in the pyramid, 0 for the largest blocks.
    block : int
        Side of a block in pixels.
    shape : tuple (height, width)
        Size of the image in pixels.
    shift : {"unshifted", "shift_y", "shift_x"}
        The direction of a shift by block / 2 pixels, halves rounded up; blocks pushed over the edge are dropped.

    Returns
    -------
    Grid
    """
    half = (block + 1) // 2
    top = shape[0] % block // 2 + half * (shift == "shift_y")
    left = shape[1] % block // 2 + half * (shift == "shift_x")
    return Grid(level, shift, block, top, left, (shape[0] - top) // block, (shape[1] - left) // block)


def feature_names(grids, n_orientations):
    """Names such as "level1.shift_y.row0.col3.angle5", all counted from 0, in the order of `block_histograms`.

    Parameters
    ----------
    grids : list of Grid
        In the order of the features.
    n_orientations : int
        Bins of a histogram; bin i is centred (i + 1/2) bin widths from the start of the range.

    Returns
    -------
    list of str, one a feature
    """
    return [
        f"level{grid.level}.{grid.shift}.row{row}.col{col}.angle{angle}"
        for grid in grids
        for row in range(grid.n_rows)
        for col in range(grid.n_cols)
        for angle in range(n_orientations)
    ]


def orientation_planes(gradient_y, gradient_x, n_orientations, signed):
    """Split each pixel's gradient magnitude linearly between the two orientations nearest to its own, circularly.

    Parameters
    ----------
    gradient_y, gradient_x : float64 array, shape (height, width, n_images)
        Grey level per filter unit, downwards and to the right.
    n_orientations : int
        Number of equal bins, centred at (i + 1/2) widths from the start of the range.
    signed : bool
        Range (-pi, pi]; else [0, pi), where opposite gradients count as one.

    Returns
    -------
    float64 array, shape (height, width, n_orientations, n_images)
        Its sum over the orientations is the magnitude.
    """
    magnitude = np.hypot(gradient_y, gradient_x)
    angle = np.arctan2(gradient_y, gradient_x)
    # In units of a bin from the first centre. The remainder below makes the range's start, and its end, not matter:
    # unsigned angles in (-pi, 0) fall on those of the opposite gradient.
    position = (angle + np.pi) * (n_orientations / (2 * np.pi)) if signed else angle * (n_orientations / np.pi)
    position -= 0.5
    lower = np.floor(position)
    fraction = position - lower
    lower = lower.astype(np.int64)
    planes = np.zeros((*magnitude.shape[:2], n_orientations, magnitude.shape[2]))
    for bin_index, share in ((lower, 1 - fraction), (lower + 1, fraction)):
        np.put_along_axis(planes, (bin_index % n_orientations)[:, :, None], (magnitude * share)[:, :, None], axis=2)
    return planes


def block_histograms(planes, grids):
    """Sum orientation planes over the blocks of grids.

    Parameters
    ----------
    planes : float64 array, shape (height, width, n_orientations, n_images)
        From `orientation_planes`.
    grids : list of Grid
        In the order of the features.

    Returns
    -------
    float64 array, shape (n_images, n_blocks * n_orientations)
        C-contiguous; grids in order, blocks row-major, orientation fastest.
    """
    n_images = planes.shape[-1]
    parts = []
    for grid in grids:
        sums = strided_sum(planes, grid.top, grid.n_rows, grid.block)
        sums = strided_sum(sums.swapaxes(0, 1), grid.left, grid.n_cols, grid.block).swapaxes(0, 1)
        parts.append(sums.reshape(-1, n_images))
    return np.ascontiguousarray(np.concatenate(parts).T)


def strided_sum(array, first, count, width):
    """Sum runs along axis 0, adding in the order of the run (numpy's own sum changes its order with the shape).

    Parameters
    ----------
    array : array, shape (n, ...)
    first, count, width : int
        Index of the first run, number of runs, and their length.

    Returns
    -------
    array, shape (count, ...)
    """
    stop = first + count * width
    total = array[first:stop:width].copy()
    for offset in range(1, width):
        total += array[first + offset : stop : width]
    return total


def read_npz(path, names):
    """Read arrays from an .npz file, without pickle.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    names : list of str
        The arrays wanted.

    Returns
    -------
    list of arrays, in the order of `names`

    Raises
    ------
    DataError
        The file is absent, of another kind or damaged, or lacks an array.
    """
    if not zipfile.is_zipfile(path):
        what = "is neither a folder nor an .npz file" if path.exists() else "does not exist"
        raise DataError(f"{what}. Give the folder of the official files, or the .npz file made of them.", source=path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            present = archive.files
            arrays = {name: archive[name] for name in names if name in present}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"cannot be read ({one_line(error)}). Fetch it again.", source=path) from error
    for name in names:
        if name not in arrays:
            raise DataError(f"has no array {name!r}, only {', '.join(present)}.", source=path)
    return list(arrays.values())


def one_line(error):
    """The text of a foreign exception as one line without its final stop."""
    return " ".join(str(getattr(error, "strerror", None) or error).split()).rstrip(".")


def as_images(source, name, columns, shape):
    """Check that the arrays of a part fit together, and give its pixels the shape of images.

    Parameters
    ----------
    source : path
        Where they were read from.
    name : str
        The part of the data set.
    columns : dict of arrays
        `pixels`, (n_images, height, width) or (n_images, height * width), and others of n_images values; all uint8.
    shape : tuple (height, width)
        Size of an image in pixels.

    Returns
    -------
    dict of arrays
        The same, with `pixels` as a view of shape (n_images, height, width).

    Raises
    ------
    DataError
        Another dtype or shape, or no images.
    """
    pixels = columns["pixels"]
    n_images = len(columns["y"])
    shapes = [(n_images, *shape), (n_images, shape[0] * shape[1])]
    fits = n_images > 0 and pixels.shape in shapes
    fits = fits and all(values.dtype == np.uint8 and len(values) == n_images for values in columns.values())
    if not fits:
        found = ", ".join(f"{key} {values.dtype} {values.shape}" for key, values in columns.items())
        raise DataError(
            f"{name} has {found}. Give n > 0 images of {shape[0]} x {shape[1]} bytes and n bytes of each other.",
            source=source,
        )
    return columns | {"pixels": pixels.reshape(shapes[0])}


def write_groups(target, groups, compute, names):
    """Write images and their features as groups of a native HDF5 file, whole or not at all, a chunk at a time.

    X is stored plain in chunks of about 1 MB: any HDF5 program reads it, at 4 GB/s from memory. lz4 through hdf5plugin
    halved that rate to save 11 % (pedestrians) or 56 % (digits, whose margins are black) of the size; bitshuffle before
    lz4 saved 11 and 24 %, and before zstd 12 and 41 % at 0.3 GB/s.

    Parameters
    ----------
    target : path
        The file to write; replaced if it exists.
    groups : dict of dict of arrays
        For each group its `pixels`, uint8 (n_images, height, width), stored as (n_images, height * width) with the
        attribute `image_shape`, and further datasets with a row an image (`y`, `part`).
    compute : callable
        Maps pixels (n_images, height, width) to features (n_images, n_features), a pure function of each image.
    names : list of str
        Names of the features, kept as the attribute `feature_names` of X (not of the group, which holds `pixels`
        too). An attribute in the usual compact storage ends at 64 kB; `track_order` has HDF5 use dense storage, which
        has no such limit; `libver="latest"` would too, but with a file header that older programs do not know.

    Raises
    ------
    DataError
        The target cannot be written.
    """
    chunk_rows = max(1, CHUNK_BYTES // (4 * len(names)))
    with atomic_path(target) as temporary, h5py.File(temporary, "w") as file:
        for group_name, columns in groups.items():
            group = file.create_group(group_name)
            pixels = columns["pixels"]
            n_images = len(pixels)
            shape, chunks = (n_images, len(names)), (min(chunk_rows, n_images), len(names))
            X = group.create_dataset("X", shape, np.float32, chunks=chunks, track_order=True)
            X.attrs.create("feature_names", names, dtype=h5py.string_dtype())
            for start in range(0, n_images, chunk_rows):
                X[start : start + chunk_rows] = compute(pixels[start : start + chunk_rows])
            for name, values in columns.items():
                group.create_dataset(name, data=values.reshape(n_images, -1) if name == "pixels" else values)
            group["pixels"].attrs["image_shape"] = pixels.shape[1:]


@dataclass(frozen=True)
class ImageSet:
    """The facts of a published set of images.

    Parameters
    ----------
    shape : tuple (height, width)
        Of an image, in pixels.
    grids : list of Grid
    n_orientations : int
    official : dict
        Group -> (number of images, `digest` of them), as published.
    digest : callable
        Checksum of a group's columns, given by name.
    """

    shape: tuple
    grids: list
    n_orientations: int
    official: dict
    digest: Callable


def write_images(source, target, groups, images, features, unchecked):
    """Check the groups of an image set, against the official ones if asked to, and write them with their features.

    Parameters
    ----------
    source, target : pathlib.Path
        Where they were read from; HDF5 file to write.
    groups : dict of dict of arrays
        Columns of each group, as `as_images` takes them.
    images : ImageSet
    features : callable
        As `compute` of `write_groups`.
    unchecked : bool

    Returns
    -------
    str
        A summary in one line.

    Raises
    ------
    DataError
        The images are of another form or not the official ones, or the target cannot be written.
    """
    groups = {name: as_images(source, name, columns, images.shape) for name, columns in groups.items()}
    for name, columns in groups.items() if not unchecked else ():
        check_official(source, name, (len(columns["y"]), images.digest(**columns)), images.official[name])
    names = feature_names(images.grids, images.n_orientations)
    write_groups(target, groups, features, names)
    counts = ", ".join(f"{group} {len(columns['y'])}" for group, columns in groups.items())
    return f"{target}: {counts} images, {len(names)} features, {target.stat().st_size / 1e6:.1f} MB"


def check_official(source, name, found, official):
    """Refuse data that are not those published.

    Parameters
    ----------
    source : path
        Where they were read from.
    name : str
        The part of the data set.
    found, official : tuple (n_rows, checksum of their content)
        As read, and as published.

    Raises
    ------
    DataError
        Number or checksum differ.
    """
    for what, value, published in zip(("rows", "checksum"), found, official, strict=True):
        if value != published:
            raise DataError(
                f"{name}, {what}: {value} where the official set has {published}. Fetch the data again, or use "
                "--unchecked to take other data of this form.",
                source=source,
            )


def argument_parser(documentation):
    """A parser of SRC, DST and --unchecked, with a script's docstring as its help."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="SRC", type=Path)
    parser.add_argument("target", metavar="DST.h5", type=Path)
    parser.add_argument("--unchecked", action="store_true", help="accept other data than the official ones")
    return parser


def run(prepare, source, target, **options):
    """Call `prepare(source, target, **options)`, print the line that it returns, and give the exit code.

    Parameters
    ----------
    prepare : callable
        Writes `target` and returns its summary.
    source, target : pathlib.Path
        Whether `target` can be written is tried before anything is read.
    **options
        Passed on.

    Returns
    -------
    int
        0; after one line on stderr, 1 for bad data or 2 for a bad option.
    """
    try:
        check_writable(target)
        print(prepare(source, target, **options))
    except LinaddError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    return 0
