"""Laws of the shared histogram steps, and what is written and refused."""

import os

import common
import h5py
import numpy as np
import pytest

from linadd.errors import ConfigError, DataError


def test_a_grid_drops_incomplete_blocks_evenly_and_then_shifts():
    assert common.place_grid(0, 4, (11, 9)) == common.Grid(0, "unshifted", 4, 1, 0, 2, 2)
    assert common.place_grid(1, 7, (28, 28), "shift_y") == common.Grid(1, "shift_y", 7, 4, 0, 3, 4)
    assert common.place_grid(1, 4, (11, 9), "shift_x") == common.Grid(1, "shift_x", 4, 1, 2, 2, 1)


def test_names_count_orientation_fastest_then_columns_then_rows():
    grids = [common.place_grid(0, 2, (2, 4)), common.place_grid(1, 1, (2, 2), "shift_y")]
    names = common.feature_names(grids, 2)
    assert names[:3] == [
        "level0.unshifted.row0.col0.angle0",
        "level0.unshifted.row0.col0.angle1",
        "level0.unshifted.row0.col1.angle0",
    ]
    assert names[4:] == [f"level1.shift_y.row0.col{col}.angle{angle}" for col in (0, 1) for angle in (0, 1)]


def plane_of(angle, n_orientations, signed):
    """The histogram of one pixel with a gradient of length 2 at an angle in degrees."""
    gradient = 2 * np.sin(np.radians(angle)), 2 * np.cos(np.radians(angle))
    planes = common.orientation_planes(*(np.full((1, 1, 1), g) for g in gradient), n_orientations, signed)
    return planes[0, 0, :, 0]


@pytest.mark.parametrize("signed, start, n_orientations", [(True, -180, 12), (False, 0, 8)])
def test_an_angle_at_a_centre_fills_one_bin_and_between_two_is_shared(signed, start, n_orientations):
    width = (360 if signed else 180) / n_orientations
    eye = 2 * np.eye(n_orientations)
    for i in range(n_orientations):
        centre = start + (i + 0.5) * width
        np.testing.assert_allclose(plane_of(centre, n_orientations, signed), eye[i], atol=1e-14)
        expected = 0.75 * eye[i] + 0.25 * eye[(i + 1) % n_orientations]
        np.testing.assert_allclose(plane_of(centre + width / 4, n_orientations, signed), expected, atol=1e-14)
        opposite = plane_of(centre + 180, n_orientations, signed)
        np.testing.assert_allclose(opposite, np.roll(eye[i], n_orientations // 2 * signed), atol=1e-14)


@pytest.mark.parametrize("signed", [True, False])
def test_both_ends_of_the_range_are_one_angle(signed):
    zeros = np.array([0.0, -0.0]).reshape(1, 1, 2)
    for gradient_x in (1.0, -1.0):
        planes = common.orientation_planes(zeros, np.full_like(zeros, gradient_x), 8, signed)
        np.testing.assert_array_equal(planes[..., 0], planes[..., 1])


def test_orientations_sum_to_the_magnitude_and_blocks_to_the_image():
    gradient_y, gradient_x = np.random.default_rng(0).normal(size=(2, 6, 4, 5))
    planes = common.orientation_planes(gradient_y, gradient_x, 7, signed=True)
    magnitude = np.hypot(gradient_y, gradient_x)
    np.testing.assert_allclose(planes.sum(axis=2), magnitude, rtol=1e-14)
    histograms = common.block_histograms(planes, [common.place_grid(0, 2, (6, 4))])
    assert histograms.shape == (5, 3 * 2 * 7) and histograms.flags.c_contiguous
    np.testing.assert_allclose(histograms.sum(axis=1), magnitude.sum(axis=(0, 1)), rtol=1e-14)


def test_blocks_are_row_major():
    planes = np.arange(2 * 4 * 2.0).reshape(2, 4, 2, 1)
    histograms = common.block_histograms(planes, [common.place_grid(0, 2, (2, 4)), common.place_grid(1, 1, (2, 4))])
    expected = [planes[:, :2, i].sum() for i in (0, 1)] + [planes[:, 2:, i].sum() for i in (0, 1)]
    np.testing.assert_array_equal(histograms[0], expected + list(range(16)))


def columns(n_images=5, shape=(2, 3), seed=0):
    """Random images with labels."""
    rng = np.random.default_rng(seed)
    return {
        "pixels": rng.integers(256, size=(n_images, *shape), dtype=np.uint8),
        "y": rng.integers(2, size=n_images, dtype=np.uint8),
    }


def repeat_pixels(pixels, n_features):
    """Features that are the pixels over and over."""
    return np.tile(pixels.reshape(len(pixels), -1), (1, n_features // 6)) / 255


@pytest.mark.parametrize("n_features, chunk_rows", [(6, 900), (6000, 43)])
def test_a_group_holds_features_pixels_and_names_of_any_number(tmp_path, n_features, chunk_rows):
    # 6000 names are past the 64 kB that an attribute in compact storage can hold.
    groups = {"train": columns(900), "test": columns(7, seed=1)}
    names = [f"feature{j}" for j in range(n_features)]
    target = tmp_path / "out.h5"
    batches = []

    def compute(pixels):
        batches.append(len(pixels))
        return repeat_pixels(pixels, n_features)

    common.write_groups(target, groups, compute, names)
    with h5py.File(target) as file:
        for name, group in groups.items():
            X = file[name]["X"]
            assert list(X.attrs["feature_names"]) == names
            assert X.dtype == np.float32 and X.chunks == (min(chunk_rows, len(group["y"])), n_features)
            np.testing.assert_array_equal(X, np.float32(repeat_pixels(group["pixels"], n_features)))
            np.testing.assert_array_equal(file[name]["pixels"], group["pixels"].reshape(-1, 6))
            assert file[name]["pixels"].dtype == np.uint8 and list(file[name]["pixels"].attrs["image_shape"]) == [2, 3]
            np.testing.assert_array_equal(file[name]["y"], group["y"])
    assert max(batches) * n_features * 4 <= 2**20


def test_a_failure_leaves_the_old_file(tmp_path):
    target = tmp_path / "out.h5"
    target.write_bytes(b"old")

    def fail(pixels):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        common.write_groups(target, {"train": columns()}, fail, ["a"])
    assert target.read_bytes() == b"old" and os.listdir(tmp_path) == ["out.h5"]


def test_flat_pixels_become_images():
    flat = {"pixels": np.arange(12, dtype=np.uint8).reshape(2, 6), "y": np.zeros(2, np.uint8)}
    images = common.as_images("f", "train", flat, (2, 3))
    assert images["pixels"].shape == (2, 2, 3) and images["pixels"][1, 0, 2] == 8 and images["y"] is flat["y"]


@pytest.mark.parametrize(
    "change, found",
    [
        ({"pixels": np.zeros((5, 7), np.uint8)}, "pixels uint8 (5, 7), y uint8 (5,)"),
        ({"pixels": np.zeros((5, 6))}, "pixels float64 (5, 6), y uint8 (5,)"),
        ({"y": np.zeros(4, np.uint8)}, "pixels uint8 (5, 2, 3), y uint8 (4,)"),
        ({"y": np.zeros(5, np.int64)}, "pixels uint8 (5, 2, 3), y int64 (5,)"),
        ({"part": np.zeros(6, np.uint8)}, "pixels uint8 (5, 2, 3), y uint8 (5,), part uint8 (6,)"),
        ({"pixels": np.zeros((0, 6), np.uint8), "y": np.zeros(0, np.uint8)}, "pixels uint8 (0, 6), y uint8 (0,)"),
    ],
)
def test_arrays_that_are_not_images_are_refused(change, found):
    with pytest.raises(DataError) as error:
        common.as_images("f.npz", "train", columns() | change, (2, 3))
    assert str(error.value) == (
        f"f.npz: train has {found}. Give n > 0 images of 2 x 3 bytes and n bytes of each other."
    )


def test_an_archive_gives_its_arrays_in_the_asked_order(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, y=[1], X=[2], z=[3])
    assert [array[0] for array in common.read_npz(path, ["X", "y"])] == [2, 1]


def test_messages_of_an_archive(tmp_path):
    def refused(path):
        with pytest.raises(DataError) as error:
            common.read_npz(path, ["X", "y"])
        return str(error.value).removeprefix(f"{path}: ")

    give = "Give the folder of the official files, or the .npz file made of them."
    assert refused(tmp_path / "absent.npz") == f"does not exist. {give}"
    text = tmp_path / "a.txt"
    text.write_text("text")
    assert refused(text) == f"is neither a folder nor an .npz file. {give}"
    path = tmp_path / "a.npz"
    np.savez(path, y=[1])
    assert refused(path) == "has no array 'X', only y."
    np.savez(path, X=np.zeros(100), y=[1])
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    assert refused(path) == "cannot be read (Bad CRC-32 for file 'X.npy'). Fetch it again."
    np.savez(path, X=np.array([None]), y=[1])
    assert refused(path) == ("cannot be read (Object arrays cannot be loaded when allow_pickle=False). Fetch it again.")


def test_other_images_than_the_official_ones_are_refused():
    common.check_official("f", "train", (5, "abc"), (5, "abc"))
    remedy = "Fetch the data again, or use --unchecked to take other data of this form."
    for found, what in [
        ((4, "abc"), "rows: 4 where the official set has 5"),
        ((5, "abd"), "checksum: abd where the official set has abc"),
    ]:
        with pytest.raises(DataError) as error:
            common.check_official("f", "train", found, (5, "abc"))
        assert str(error.value) == f"f: train, {what}. {remedy}"


def test_run_prints_the_summary_or_one_line(tmp_path, capsys):
    target = tmp_path / "out.h5"
    assert common.run(lambda source, target, extra: f"{source} {extra}", "a", target, extra=1) == 0
    assert capsys.readouterr() == ("a 1\n", "")

    def fail(source, target, error):
        raise error

    assert common.run(fail, "a", target, error=DataError("is bad.", source="a")) == 1
    assert capsys.readouterr() == ("", "a: is bad.\n")
    assert common.run(fail, "a", target, error=ConfigError("x: cannot be.")) == 2
    assert capsys.readouterr() == ("", "x: cannot be.\n")
    assert common.run(fail, "a", tmp_path / "no" / "out.h5", error=None) == 1
    assert capsys.readouterr().err == (
        f"{tmp_path}/no/out.h5: the folder '{tmp_path}/no' does not exist. Create it first.\n"
    )
