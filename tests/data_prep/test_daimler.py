"""The pedestrians' features against their slow twin and hand-made images; PGM files; folders; the command."""

import math
import os
import shutil
from pathlib import Path

import daimler
import h5py
import numpy as np
import pytest

from linadd.errors import DataError
from tests.data_prep.loops import loop_features

DATA = Path(__file__).parents[2] / "../shared/data/dc_pedestrian.npz"


def difference(image, y, x):
    """Gradient at one pixel: central differences, the edge replicated."""
    height, width = image.shape
    gradient_y = image[min(y + 1, height - 1), x] - image[max(y - 1, 0), x]
    return gradient_y, image[y, min(x + 1, width - 1)] - image[y, max(x - 1, 0)]


def twin(image, normalise):
    """The 656 features of one image, pixel by pixel."""
    grids = [(18, 0, 0, 1), (9, 0, 0, 2), (3, 0, 0, 4)]
    return loop_features(image, difference, (8, 0, math.pi), grids, 0.01, 18 if normalise == "block" else None)


def images(n_images, seed=0):
    """Random images."""
    return np.random.default_rng(seed).integers(256, size=(n_images, 36, 18), dtype=np.uint8)


def test_sizes():
    assert [grid.n_blocks for grid in daimler.GRIDS] == [2, 8, 72]
    assert daimler.features(images(2)).shape == (2, 656)


@pytest.mark.parametrize("normalise", ["image", "block"])
def test_features_equal_the_slow_twin(normalise):
    pixels = images(3)
    pixels[1, :18] = 7  # a block without edges
    pixels[2] //= 64
    expected = [twin(image / 255, normalise) for image in pixels]
    # Sums of up to 648 doubles in another order.
    np.testing.assert_allclose(daimler.features(pixels, normalise), expected, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("normalise", ["image", "block"])
def test_features_have_the_same_bits_for_any_batch(normalise):
    pixels = images(23)
    whole = daimler.features(pixels, normalise)
    for size in (1, 2, 9):
        batches = [daimler.features(pixels[start : start + size], normalise) for start in range(0, 23, size)]
        np.testing.assert_array_equal(np.concatenate(batches), whole)


def test_blocks_are_normalised_each_by_itself():
    pixels = images(1)
    changed = pixels.copy()
    changed[:, 20:] //= 3  # rows 18 and 19 stay, and with them the gradients of rows 0 to 18
    upper = np.repeat(daimler.BLOCK_OF_CELL == 0, 8)
    first, second = (daimler.features(p, "block")[0] for p in (pixels, changed))
    np.testing.assert_array_equal(first[upper], second[upper])
    assert (first[~upper] != second[~upper]).any()
    first, second = (daimler.features(p, "image")[0] for p in (pixels, changed))
    assert (first < second)[upper & (first > 0)].all()  # less energy in all to divide by


@pytest.mark.parametrize("turned, bins", [(False, (7, 0)), (True, (3, 4))])
@pytest.mark.parametrize("low, high", [(10, 200), (200, 10)])
def test_a_single_edge_fills_the_two_bins_beside_its_direction(turned, bins, low, high):
    # An upright edge has a horizontal gradient, at angle 0 between bins 7 and 0 whatever its sign; a level one, pi/2.
    image = np.full((36, 18), low, np.uint8)
    if turned:
        image[20:] = high
    else:
        image[:, 9:] = high
    histograms = daimler.features(image[None]).reshape(82, 8)
    half = np.zeros(8)
    half[list(bins)] = 0.5
    for histogram in histograms:
        np.testing.assert_allclose(histogram, histogram.sum() * half, atol=1e-15)
    # The edge is seen by the two pixels beside it: which cells of 3 pixels hold them?
    rows, cols = np.nonzero(histograms[10:].sum(axis=1).reshape(12, 6))
    assert set(rows) == ({6} if turned else set(range(12))) and set(cols) == (set(range(6)) if turned else {2, 3})


def pgm(image, header="P5\n{} {}\n255\n"):
    """Bytes of a PGM file."""
    return header.format(image.shape[1], image.shape[0]).encode() + image.tobytes()


@pytest.mark.parametrize(
    "header",
    ["P5\n{} {}\n255\n", "P5 {} {} 255 ", "P5\r\n# made by hand 1 2\n{}\n# again\n{}\t255\n", "P5\n{} {}\n16\n"],
)
def test_pgm_headers(tmp_path, header):
    image = np.random.default_rng(0).integers(9, 14, size=(3, 5), dtype=np.uint8)  # all of them white space as text
    path = tmp_path / "a.pgm"
    path.write_bytes(pgm(image, header))
    np.testing.assert_array_equal(daimler.read_pgm(path), image)


def test_messages_of_a_pgm_file(tmp_path):
    path = tmp_path / "a.pgm"

    def refused(content):
        path.write_bytes(content)
        with pytest.raises(DataError) as error:
            daimler.read_pgm(path)
        return str(error.value).removeprefix(f"{path}: ")

    image = np.zeros((3, 5), np.uint8)
    assert refused(b"P2\n1 1\n255\n0") == "is not a binary PGM image (P5)."
    assert refused(b"P5\n5 3\n") == "is not a binary PGM image (P5)."
    assert refused(pgm(image, "P5\n{} {}\n65535\n")) == "its maximal grey level is 65535. Only 1 to 255 can be read."
    assert refused(pgm(image)[:-1]) == "holds 14 pixels where its header says 5 x 3."
    with pytest.raises(DataError) as error:
        daimler.read_pgm(tmp_path / "absent.pgm")
    assert str(error.value) == f"{tmp_path}/absent.pgm: cannot be read (No such file or directory)."


@pytest.fixture
def parts(tmp_path):
    """The official layout with 3 pedestrians and 2 others a folder; returns its folder and its arrays."""
    pixels = images(25).reshape(5, 5, 36, 18)
    for folder, group in zip(("1", "2", "3", "T1", "T2"), pixels, strict=True):
        for i, image in enumerate(group):
            path = tmp_path / "dc" / folder / ("ped_examples" if i < 3 else "non-ped_examples") / f"img_{i:05}.pgm"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pgm(image))
    arrays = {
        name: {
            "pixels": pixels[folders].reshape(-1, 648),
            "y": np.tile(np.uint8([1, 1, 1, 0, 0]), n_folders),
            "part": np.repeat(np.arange(1, n_folders + 1, dtype=np.uint8), 5),
        }
        for name, folders, n_folders in (("train", slice(0, 3), 3), ("test", slice(3, 5), 2))
    }
    return tmp_path / "dc", arrays


@pytest.mark.parametrize("normalise", ["image", "block"])
def test_the_folders_and_an_archive_give_the_same_file(tmp_path, parts, capsys, normalise):
    folder, arrays = parts
    archive = tmp_path / "dc.npz"
    keys = {"pixels": "X", "y": "y", "part": "part"}
    np.savez(archive, **{f"{keys[key]}_{name}": a for name, group in arrays.items() for key, a in group.items()})
    target = tmp_path / "dc.h5"
    for source in (folder, archive):
        assert daimler.main([str(source), str(target), "--unchecked", "--normalise", normalise]) == 0
        size = target.stat().st_size / 1e6
        assert capsys.readouterr().out == f"{target}: train 15, test 10 images, 656 features, {size:.1f} MB\n"
        with h5py.File(target) as file:
            assert sorted(file) == ["test", "train"]
            for name, group in arrays.items():
                assert sorted(file[name]) == ["X", "part", "pixels", "y"]
                for key, values in group.items():
                    np.testing.assert_array_equal(file[name][key], values)
                expected = daimler.features(group["pixels"].reshape(-1, 36, 18), normalise)
                np.testing.assert_array_equal(file[name]["X"], expected.astype(np.float32))
                names = file[name]["X"].attrs["feature_names"]
                assert (len(names), names[655]) == (656, "level2.unshifted.row11.col5.angle7")


def test_image_normalisation_is_the_default(tmp_path, parts):
    assert daimler.main([str(parts[0]), str(tmp_path / "dc.h5"), "--unchecked"]) == 0
    with h5py.File(tmp_path / "dc.h5") as file:
        expected = daimler.features(parts[1]["test"]["pixels"].reshape(-1, 36, 18), "image")
        np.testing.assert_array_equal(file["test/X"], expected.astype(np.float32))


def test_bad_folders_are_one_line_and_leave_no_file(tmp_path, parts, capsys):
    folder, _ = parts

    def refused(*options):
        assert daimler.main([str(folder), str(tmp_path / "out.h5"), *options]) == 1
        assert "out.h5" not in os.listdir(tmp_path)
        return capsys.readouterr().err.removeprefix(f"{folder}")

    assert refused() == (
        ": train, rows: 15 where the official set has 29400. Fetch the data again, or use --unchecked to take other "
        "data of this form.\n"
    )
    other = folder / "T2/non-ped_examples/img_00004.pgm"
    other.write_bytes(pgm(np.zeros((18, 36), np.uint8)))
    assert refused("--unchecked") == "/T2/non-ped_examples/img_00004.pgm: is 36 x 18 pixels, not 18 x 36.\n"
    shutil.rmtree(folder / "2/ped_examples")
    assert refused("--unchecked") == (
        ": has no .pgm file in 2/ped_examples. Give the folder that holds 1, 2, 3, T1 and T2.\n"
    )


def test_the_digest_sees_each_image_but_not_their_order(parts):
    group = parts[1]["train"]
    digest = daimler.digest(**group)
    order = np.random.default_rng(0).permutation(15)
    assert daimler.digest(**{key: values[order] for key, values in group.items()}) == digest
    for key in group:
        changed = {k: v.copy() for k, v in group.items()}
        changed[key].flat[7] ^= 1
        assert daimler.digest(**changed) != digest


@pytest.mark.skipif(not DATA.exists(), reason="../shared/data/dc_pedestrian.npz is absent")
def test_the_real_images_are_the_official_ones():
    for name, group in daimler.read_archive(DATA).items():
        assert (len(group["y"]), daimler.digest(**group)) == daimler.OFFICIAL[name]
        image = group["pixels"][0].reshape(36, 18)
        expected = twin(image / 255, "image")
        np.testing.assert_allclose(daimler.features(image[None])[0], expected, rtol=1e-11, atol=1e-15)
