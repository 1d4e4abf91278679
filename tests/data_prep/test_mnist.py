"""The digits' features against their slow twin and hand-made images; IDX files; the command."""

import gzip
import hashlib
import math
import os
import subprocess
import sys
from pathlib import Path

import common
import h5py
import mnist
import numpy as np
import pytest

from linadd.errors import DataError
from tests.data_prep.loops import loop_features

ROOT = Path(__file__).parents[2]
DATA = ROOT / "../shared/data/mnist.npz"
ROWS = [[0.0069, 0.0101, 0.0115, 0.0101, 0.0069], [0.0684, 0.1012, 0.1152, 0.1012, 0.0684]]


def filtered(image, y, x):
    """Gradient at one pixel: the 5 x 5 filter as a convolution with zeros outside."""
    padded = np.pad(image, 4)
    window = padded[y + 2 : y + 7, x + 2 : x + 7]
    gradients = []
    for view in (window, window.T):
        below = sum(
            w * v for row, values in zip(ROWS, view[:2:-1], strict=True) for w, v in zip(row, values, strict=True)
        )
        above = sum(w * v for row, values in zip(ROWS, view[:2], strict=True) for w, v in zip(row, values, strict=True))
        gradients.append(below - above)
    return gradients


def twin(image):
    """The 2,172 features of one image, pixel by pixel."""
    grids = [
        (block, half * (shift == 1), half * (shift == 2), weight)
        for block, half, weight in ((14, 7, 1), (7, 4, 2), (4, 2, 4))
        for shift in (0, 1, 2)
    ]
    return loop_features(image, filtered, (12, -math.pi, 2 * math.pi), grids, 1e-10)


def images(n_images, seed=0):
    """Random images, a third of the pixels black."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(256, size=(n_images, 28, 28), dtype=np.uint8)
    return np.where(rng.random(pixels.shape) < 1 / 3, 0, pixels).astype(np.uint8)


def test_sizes():
    assert [grid.n_blocks for grid in mnist.GRIDS] == [4, 2, 2, 16, 12, 12, 49, 42, 42]
    assert sum(grid.n_blocks for grid in mnist.GRIDS) == 181
    assert mnist.features(images(2)).shape == (2, 2172)


def test_features_equal_the_slow_twin():
    pixels = images(2)
    pixels[1, :, :20] = 0
    # Sums of up to 784 doubles in another order.
    np.testing.assert_allclose(mnist.features(pixels), [twin(image / 255) for image in pixels], rtol=1e-11, atol=1e-15)


def test_features_have_the_same_bits_for_any_batch():
    pixels = images(23)
    whole = mnist.features(pixels)
    for size in (1, 2, 9):
        np.testing.assert_array_equal(
            np.concatenate([mnist.features(pixels[start : start + size]) for start in range(0, 23, size)]), whole
        )


def test_each_unshifted_level_sums_to_its_weight():
    sums = np.add.reduceat(mnist.features(images(3)), [12 * n for n in (0, 4, 8, 24, 48, 97)], axis=1)
    np.testing.assert_allclose(sums[:, [0, 2, 4]], [[1, 2, 4]] * 3, rtol=1e-9)


def test_an_image_without_edges_has_finite_features():
    np.testing.assert_array_equal(mnist.features(np.zeros((1, 28, 28), np.uint8)), np.zeros((1, 2172)))


@pytest.mark.parametrize("turns, bins", [(0, (5, 6)), (1, (2, 3)), (2, (11, 0)), (3, (8, 9))])
def test_a_single_edge_fills_the_two_bins_beside_its_direction(turns, bins):
    # Dark left, bright right: the gradient points right (angle 0), between the centres of bins 5 and 6. Turned
    # counter-clockwise by quarters it points up (-pi/2: image rows count downwards), left, down.
    image = np.zeros((28, 28), np.uint8)
    image[:, 14:] = 200
    histograms = mnist.features(np.rot90(image, turns)[None]).reshape(181, 12)
    # Block (2, 2) of the 7 pixel grid shifted by 4 across the edge lies away from the border, where zero padding
    # makes further edges.
    names = [f"level1.{shift}.row1.col1.angle{i}" for shift in ("shift_x", "shift_y") for i in range(12)]
    every = common.feature_names(mnist.GRIDS, 12)
    block = histograms[every.index(names[12 * (turns % 2)]) // 12]
    assert block[list(bins)] == pytest.approx([block.sum() / 2] * 2) and block.sum() > 0


def write_idx(path, array):
    """Write an IDX file of bytes, compressed if the name ends so."""
    content = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes() + array.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.fixture
def parts():
    """A small train and test part."""
    return {"train": (images(5), np.arange(5, dtype=np.uint8)), "t10k": (images(3, seed=1), np.zeros(3, np.uint8))}


@pytest.mark.parametrize(
    "images_name, labels_name",
    [("images-idx3-ubyte", "labels-idx1-ubyte.gz"), ("images.idx3-ubyte.gz", "labels.idx1-ubyte")],
)
def test_a_folder_and_an_archive_give_the_same_file(tmp_path, parts, capsys, images_name, labels_name):
    folder = tmp_path / "idx"
    folder.mkdir()
    for prefix, (pixels, y) in parts.items():
        write_idx(folder / f"{prefix}-{images_name}", pixels)
        write_idx(folder / f"{prefix}-{labels_name}", y)
    archive = tmp_path / "mnist.npz"
    arrays = {"train": parts["train"], "test": parts["t10k"]}
    np.savez(
        archive,
        **{f"X_{name}": pixels.reshape(-1, 784) for name, (pixels, _) in arrays.items()},
        **{f"y_{name}": y for name, (_, y) in arrays.items()},
    )
    target = tmp_path / "mnist.h5"
    for source in (folder, archive):
        assert mnist.main([str(source), str(target), "--unchecked"]) == 0
        assert capsys.readouterr().out == (
            f"{target}: train 5, test 3 images, 2172 features, {target.stat().st_size / 1e6:.1f} MB\n"
        )
        with h5py.File(target) as file:
            assert sorted(file) == ["test", "train"]
            for name, (pixels, y) in arrays.items():
                group = file[name]
                assert sorted(group) == ["X", "pixels", "y"]
                np.testing.assert_array_equal(group["X"], mnist.features(pixels).astype(np.float32))
                np.testing.assert_array_equal(group["pixels"], pixels.reshape(-1, 784))
                np.testing.assert_array_equal(group["y"], y)
                names = group["X"].attrs["feature_names"]
                assert (len(names), names[2171]) == (2172, "level2.shift_x.row6.col5.angle11")


def test_messages_of_an_idx_file(tmp_path):
    def refused(name, content):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError) as error:
            mnist.read_idx(path)
        return str(error.value).removeprefix(f"{path}: ")

    assert refused("a", b"") == "is not an IDX file of bytes: it begins with ''."
    assert refused("a", b"\0\0\x0d\1" + bytes(8)) == "is not an IDX file of bytes: it begins with '00000d01'."
    assert refused("a", b"\0\0\x08\2" + bytes(7)) == "is not an IDX file of bytes: it begins with '00000802'."
    assert refused("a", b"\0\0\x08\1\0\0\0\5abcd") == "holds 4 values where its header says (5,)."
    assert refused("a", b"\0\0\x08\1\0\0\0\5abcdef") == "holds 6 values where its header says (5,)."
    compressed = gzip.compress(b"\0\0\x08\1\0\0\0\5abcde")
    assert refused("a.gz", compressed[:-9]) == (
        "cannot be read (Compressed file ended before the end-of-stream marker was reached)."
    )
    assert refused("a.gz", b"text") == "cannot be read (Not a gzipped file (b'te'))."


def test_bad_sources_are_one_line_and_leave_no_file(tmp_path, parts, capsys):
    def refused(*options):
        assert mnist.main([str(tmp_path), str(tmp_path / "out.h5"), *options]) == 1
        assert "out.h5" not in os.listdir(tmp_path)
        return capsys.readouterr().err.removeprefix(f"{tmp_path}: ")

    assert refused() == (
        "has no file train-images-idx3-ubyte or train-images-idx3-ubyte.gz. "
        "Give the folder of the four official files.\n"
    )
    for prefix, (pixels, y) in parts.items():
        write_idx(tmp_path / f"{prefix}-images-idx3-ubyte", pixels)
        write_idx(tmp_path / f"{prefix}-labels-idx1-ubyte", y)
    assert refused() == (
        "train, rows: 5 where the official set has 60000. Fetch the data again, or use --unchecked to take other "
        "data of this form.\n"
    )
    write_idx(tmp_path / "train-images-idx3-ubyte", parts["train"][0][:, 1:])
    assert refused("--unchecked") == (
        "train has pixels uint8 (5, 27, 28), y uint8 (5,). Give n > 0 images of 28 x 28 bytes and n bytes of each "
        "other.\n"
    )


def test_the_digest_is_that_of_the_official_files(tmp_path):
    pixels, y = images(4), np.arange(4, dtype=np.uint8)
    for name, array in (("a", pixels), ("b", y)):
        write_idx(tmp_path / name, array)
    sums = [hashlib.md5((tmp_path / name).read_bytes()).hexdigest() for name in ("a", "b")]
    assert mnist.digest(pixels, y) == " ".join(sums)


@pytest.mark.skipif(not DATA.exists(), reason="../shared/data/mnist.npz is absent")
def test_the_real_digits_are_the_official_ones():
    for name, (pixels, y) in mnist.read_archive(DATA).items():
        assert (len(y), mnist.digest(pixels.reshape(-1, 28, 28), y)) == mnist.OFFICIAL[name]
        np.testing.assert_allclose(
            mnist.features(pixels[:1].reshape(1, 28, 28))[0],
            twin(pixels[0].reshape(28, 28) / 255),
            rtol=1e-11,
            atol=1e-15,
        )


def test_the_script_runs_from_any_folder(tmp_path):
    command = [sys.executable, str(ROOT / "data_prep/mnist.py"), "absent", "out.h5"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == (
        "absent: does not exist. Give the folder of the official files, or the .npz file made of them.\n"
    )
