"""MNIST handwritten digits (28 x 28 pixels): 2,172 gradient histogram features, written as native HDF5.

    python data_prep/mnist.py SRC DST.h5

SRC is a folder with the four official IDX files (plain or .gz), or `mnist.npz`. DST.h5 gets groups `train` (60,000
digits) and `test` (10,000), each with `X` (float32), `pixels` (uint8) and `y` (0 to 9), in the official order.

Source: Y. LeCun, C. Cortes and C. J. C. Burges, "The MNIST database of handwritten digits", 1998. Licence: commonly
stated as CC BY-SA 3.0.

Features: gradients by 5 x 5 derivatives of a Gaussian; 12 signed orientations; blocks of 14, 7 and 4 pixels on an
unshifted grid and on two grids shifted by half a block, each divided by the gradient energy of the image and multiplied
by 1, 2, 4.
"""

import gzip
import hashlib
import math
import struct
import sys
import zlib

import numpy as np
from common import (
    ImageSet,
    argument_parser,
    block_histograms,
    one_line,
    orientation_planes,
    place_grid,
    read_npz,
    run,
    write_images,
)
from scipy import ndimage

from linadd.errors import DataError

SHAPE = (28, 28)
N_ORIENTATIONS = 12
GRIDS = [
    place_grid(level, block, SHAPE, shift)
    for level, block in enumerate((14, 7, 4))
    for shift in ("unshifted", "shift_y", "shift_x")
]
ENERGY_FLOOR = 1e-10  # grey levels in [0, 1]: an image without edges gets features of 0
SMOOTHING = np.array([[0.0069, 0.0101, 0.0115, 0.0101, 0.0069], [0.0684, 0.1012, 0.1152, 0.1012, 0.0684]])
VERTICAL_FILTER = np.concatenate([SMOOTHING, np.zeros((1, 5)), -SMOOTHING[::-1]])

PREFIXES = {"train": "train", "test": "t10k"}
# Number of images and md5 of the official files uncompressed, images and labels one after the other.
OFFICIAL = {
    "train": (60_000, "6bbc9ace898e44ae57da46a324031adb a25bea736e30d166cdddb491f175f624"),
    "test": (10_000, "2646ac647ad5339dbf082846283269ea 27ae3e4e09519cfbb04c329615203637"),
}


def gradients(images):
    """Convolve with the 5 x 5 filters, taking the outside as black; positive where the grey level rises.

    Parameters
    ----------
    images : float array, shape (height, width, n_images)

    Returns
    -------
    gradient_y, gradient_x : arrays of the same shape
        Downwards and to the right.
    """
    filters = VERTICAL_FILTER[:, :, None], VERTICAL_FILTER.T[:, :, None]
    return tuple(ndimage.convolve(images, weights, mode="constant") for weights in filters)


def features(pixels):
    """The 2,172 features of digits.

    Parameters
    ----------
    pixels : uint8 array, shape (n_images, 28, 28)
        Grey levels 0 to 255.

    Returns
    -------
    float64 array, shape (n_images, 2172)
        Level coarse to fine; grid unshifted, shifted in y, shifted in x; blocks row-major; orientation fastest.
    """
    images = np.moveaxis(pixels, 0, -1) / 255.0
    histograms = block_histograms(orientation_planes(*gradients(images), N_ORIENTATIONS, signed=True), GRIDS)
    # The first grid tiles the image, and the orientations of a block sum to its magnitudes.
    energy = histograms[:, : GRIDS[0].n_blocks * N_ORIENTATIONS].sum(axis=1, keepdims=True)
    weight = np.concatenate([np.full(grid.n_blocks * N_ORIENTATIONS, 2.0**grid.level) for grid in GRIDS])
    return histograms * (weight / (energy + ENERGY_FLOOR))


def read_idx(path):
    """Read an IDX file of bytes, plain or compressed by gzip.

    Returns
    -------
    uint8 array
        Of the shape that the file's header states.

    Raises
    ------
    DataError
        The file cannot be read, is not IDX with bytes, or its length does not fit its header.
    """
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot be read ({one_line(error)}).", source=path) from error
    # Header: two zero bytes, 8 for unsigned bytes, the number of dimensions, then their sizes as big-endian uint32.
    n_dimensions = content[3] if len(content) >= 4 else 0
    start = 4 + 4 * n_dimensions
    if content[:3] != b"\0\0\x08" or not n_dimensions or len(content) < start:
        raise DataError(f"is not an IDX file of bytes: it begins with {content[:4].hex()!r}.", source=path)
    shape = struct.unpack_from(f">{n_dimensions}I", content, 4)
    if len(content) - start != math.prod(shape):
        raise DataError(f"holds {len(content) - start} values where its header says {shape}.", source=path)
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def read_folder(source):
    """Read the four official files; returns {"train": (images, labels), "test": ...}, DataError if one is absent."""
    kinds = "images-idx3-ubyte", "labels-idx1-ubyte"
    return {
        name: [read_idx(find_idx(source, f"{prefix}-{kind}")) for kind in kinds] for name, prefix in PREFIXES.items()
    }


def find_idx(source, name):
    """The path of an official file, plain or .gz; some downloads have a dot before "idx".

    Parameters
    ----------
    source : pathlib.Path
        The folder.
    name : str
        The official name.

    Raises
    ------
    DataError
        There is none.
    """
    candidates = [source / (stem + suffix) for stem in (name, name.replace("-idx", ".idx")) for suffix in ("", ".gz")]
    for path in candidates:
        if path.exists():
            return path
    raise DataError(f"has no file {name} or {name}.gz. Give the folder of the four official files.", source=source)


def read_archive(source):
    """Read `mnist.npz`; returns what `read_folder` does."""
    return {name: read_npz(source, [f"X_{name}", f"y_{name}"]) for name in PREFIXES}


def digest(pixels, y):
    """md5 of the IDX files that hold these images and labels.

    Parameters
    ----------
    pixels : uint8 array, shape (n_images, 28, 28)
    y : uint8 array, shape (n_images,)

    Returns
    -------
    str
        Two checksums with a space between.
    """
    sums = []
    for array in (pixels, y):
        header = struct.pack(f">4B{array.ndim}i", 0, 0, 8, array.ndim, *array.shape)
        sums.append(hashlib.md5(header + array.tobytes()).hexdigest())
    return " ".join(sums)


def prepare(source, target, unchecked=False):
    """Read the digits, check them against the official set, and write their features.

    Parameters
    ----------
    source, target : pathlib.Path
        Folder or .npz file; HDF5 file to write.
    unchecked : bool
        Take other images of this size too (Fashion-MNIST, a part of MNIST).

    Returns
    -------
    str
        A summary in one line.

    Raises
    ------
    DataError
        The images cannot be read or are not the official ones, or the target cannot be written.
    """
    read = (read_folder if source.is_dir() else read_archive)(source)
    groups = {name: {"pixels": pixels, "y": y} for name, (pixels, y) in read.items()}
    images = ImageSet(SHAPE, GRIDS, N_ORIENTATIONS, OFFICIAL, digest)
    return write_images(source, target, groups, images, features, unchecked)


def main(arguments=None):
    """Command line; returns the exit code."""
    return run(prepare, **vars(argument_parser(__doc__).parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
