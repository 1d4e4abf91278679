"""DaimlerChrysler pedestrians (18 x 36 pixels): 656 gradient histogram features, written as native HDF5.

    python data_prep/daimler.py SRC DST.h5 [--normalise image|block]

SRC is the folder of the official download, with folders 1, 2, 3 (training), T1, T2 (test), each holding ped_examples
and non-ped_examples of .pgm files, or `dc_pedestrian.npz`. DST.h5 gets groups `train` (29,400 images) and `test`
(19,600), each with `X` (float32), `pixels` (uint8), `y` (1 pedestrian, 0 not) and `part` (1, 2, 3, or 1, 2 for T1, T2).

Source: S. Munder and D. M. Gavrila, "An experimental study on pedestrian classification", IEEE Trans. PAMI 28(11),
2006; the base set of the Daimler pedestrian classification benchmark. Licence: non-commercial research use only; do not
redistribute the images, nor DST.h5, which contains them.

Features: gradients by central differences, edges replicated; 8 unsigned orientations; cells of 18, 9 and 3 pixels, each
divided by the gradient energy of the image (or of its 18 x 18 block) and multiplied by 1, 2, 4.
"""

import hashlib
import re
import sys
from functools import partial

import numpy as np
from common import (
    ImageSet,
    argument_parser,
    block_histograms,
    orientation_planes,
    place_grid,
    read_npz,
    run,
    write_images,
)

from linadd.errors import DataError

SHAPE = (36, 18)
N_ORIENTATIONS = 8
GRIDS = [place_grid(level, block, SHAPE) for level, block in enumerate((18, 9, 3))]
# For each cell, the block of level 0 that holds it: they lie one above the other.
BLOCK_OF_CELL = np.concatenate(
    [np.repeat(np.arange(grid.n_rows) * grid.block // GRIDS[0].block, grid.n_cols) for grid in GRIDS]
)
ENERGY_FLOOR = 0.01  # grey levels in [0, 1]: an image without edges gets features of 0

FOLDERS = {"train": ("1", "2", "3"), "test": ("T1", "T2")}
CLASS_FOLDERS = (("ped_examples", 1), ("non-ped_examples", 0))
# sha256 of the sorted (part, y, pixels) of all images, computed from dc_pedestrian.npz: it depends neither on the
# container nor on the order of the files.
OFFICIAL = {
    "train": (29_400, "7d75c3d0148d0d2e05b559f23e55603eebaf85ea2ceee30cb13940308ef2c9ac"),
    "test": (19_600, "583f974915d4cfc80185e14de8b7811ba01d4c99223f72433324391c24161493"),
}


def gradients(images):
    """Central differences, not halved, with the edge replicated.

    Parameters
    ----------
    images : float array, shape (height, width, n_images)

    Returns
    -------
    gradient_y, gradient_x : arrays of the same shape
    """
    padded = np.pad(images, ((1, 1), (1, 1), (0, 0)), mode="edge")
    return padded[2:, 1:-1] - padded[:-2, 1:-1], padded[1:-1, 2:] - padded[1:-1, :-2]


def features(pixels, normalise="image"):
    """The 656 features of pedestrian windows.

    Parameters
    ----------
    pixels : uint8 array, shape (n_images, 36, 18)
        Grey levels 0 to 255.
    normalise : {"image", "block"}
        Divide each cell by the gradient energy (sum of magnitudes + 0.01) of the whole image, or of the 18 x 18 block
        that it lies in.

    Returns
    -------
    float64 array, shape (n_images, 656)
        Level coarse to fine, cells row-major, orientation fastest.
    """
    images = np.moveaxis(pixels, 0, -1) / 255.0
    histograms = block_histograms(orientation_planes(*gradients(images), N_ORIENTATIONS, signed=False), GRIDS)
    histograms = histograms.reshape(len(pixels), -1, N_ORIENTATIONS)
    # The blocks of level 0 tile the image, and the orientations of a block sum to its magnitudes.
    energy = histograms[:, : GRIDS[0].n_blocks].sum(axis=2)
    if normalise == "image":
        energy = np.broadcast_to(energy.sum(axis=1, keepdims=True), energy.shape)
    weight = np.concatenate([np.full(grid.n_blocks, 2.0**grid.level) for grid in GRIDS])
    histograms *= (weight / (energy[:, BLOCK_OF_CELL] + ENERGY_FLOOR))[:, :, None]
    return histograms.reshape(len(pixels), -1)


def read_pgm(path):
    """Read a binary PGM file (P5, up to 255 grey levels).

    Returns
    -------
    uint8 array, shape (height, width)
        As stored, not rescaled by the header's maximal grey level.

    Raises
    ------
    DataError
        The file cannot be read, is of another kind, or its length does not fit its size.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror}).", source=path) from error
    # Magic number, width, height, maximum; between them white space or comments; one white-space byte ends the header.
    gap = rb"(?:\s|#[^\n]*\n)+"
    header = re.match(rb"P5" + 3 * (gap + rb"(\d+)") + rb"\s", content)
    if header is None:
        raise DataError("is not a binary PGM image (P5).", source=path)
    width, height, maximum = map(int, header.groups())
    body = content[header.end() :]
    if not 0 < maximum < 256:
        raise DataError(f"its maximal grey level is {maximum}. Only 1 to 255 can be read.", source=path)
    if len(body) != width * height:
        raise DataError(f"holds {len(body)} pixels where its header says {width} x {height}.", source=path)
    return np.frombuffer(body, np.uint8).reshape(height, width)


def read_folders(source):
    """Read the official layout: parts in order, pedestrians first, files by name.

    Returns
    -------
    dict of groups, as `write_images` takes them

    Raises
    ------
    DataError
        A folder is absent or empty, or a file is not an image of 18 x 36 pixels.
    """
    groups = {}
    for name, folders in FOLDERS.items():
        pixels, y, part = [], [], []
        for number, folder in enumerate(folders, start=1):
            for class_folder, label in CLASS_FOLDERS:
                paths = sorted((source / folder / class_folder).glob("*.pgm"))
                if not paths:
                    raise DataError(
                        f"has no .pgm file in {folder}/{class_folder}. Give the folder that holds 1, 2, 3, T1 and T2.",
                        source=source,
                    )
                for path in paths:
                    image = read_pgm(path)
                    if image.shape != SHAPE:
                        raise DataError(f"is {image.shape[1]} x {image.shape[0]} pixels, not 18 x 36.", source=path)
                    pixels.append(image)
                y += [label] * len(paths)
                part += [number] * len(paths)
        groups[name] = {"pixels": np.stack(pixels), "y": np.uint8(y), "part": np.uint8(part)}
    return groups


def read_archive(source):
    """Read `dc_pedestrian.npz`; returns what `read_folders` does."""
    columns = {"pixels": "X", "y": "y", "part": "part"}
    return {
        name: dict(zip(columns, read_npz(source, [f"{key}_{name}" for key in columns.values()]), strict=True))
        for name in FOLDERS
    }


def digest(pixels, y, part):
    """sha256 of the images with part and label, whatever their order.

    Parameters
    ----------
    pixels : uint8 array, shape (n_images, ...)
    y, part : uint8 arrays, shape (n_images,)

    Returns
    -------
    str
    """
    rows = np.column_stack([part, y, pixels.reshape(len(y), -1)])
    return hashlib.sha256(b"".join(sorted(row.tobytes() for row in rows))).hexdigest()


def prepare(source, target, normalise="image", unchecked=False):
    """Read the images, check them against the official set, and write their features.

    Parameters
    ----------
    source, target : pathlib.Path
        Folder or .npz file; HDF5 file to write.
    normalise : {"image", "block"}
        See `features`.
    unchecked : bool
        Take any number of other images of this size too.

    Returns
    -------
    str
        A summary in one line.

    Raises
    ------
    DataError
        The images cannot be read or are not the official ones, or the target cannot be written.
    """
    groups = (read_folders if source.is_dir() else read_archive)(source)
    images = ImageSet(SHAPE, GRIDS, N_ORIENTATIONS, OFFICIAL, digest)
    return write_images(source, target, groups, images, partial(features, normalise=normalise), unchecked)


def main(arguments=None):
    """Command line; returns the exit code."""
    parser = argument_parser(__doc__)
    parser.add_argument("--normalise", choices=["image", "block"], default="image", help="default: image")
    return run(prepare, **vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
