"""The recipes for the image sets run on small images of the same form, from the source and from the prepared file."""

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def run(folder, script, *arguments):
    """(exit code, stdout, stderr) of a script, run in `folder`."""
    command = [sys.executable, ROOT / script, *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def striped(shape, labels, rng):
    """Noise with a bright stripe, level for odd labels and upright for even ones, whose place is drawn."""
    images = rng.integers(60, size=(len(labels), *shape), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        place = rng.integers(4, min(shape) - 6)
        view = image if label % 2 else image.T
        view[place : place + 2] += np.uint8(150)
    return images


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """An archive in the form of mnist.npz with two classes, 120 and 40 images."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("digits") / "digits.npz"
    arrays = {}
    for name, n_images in (("train", 120), ("test", 40)):
        y = np.arange(n_images, dtype=np.uint8) % 2
        arrays |= {f"X_{name}": striped((28, 28), y, rng).reshape(n_images, 784), f"y_{name}": y}
    np.savez(path, **arrays)
    return path


@pytest.fixture(scope="module")
def pedestrians(tmp_path_factory):
    """An archive in the form of dc_pedestrian.npz, 40 images a part."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("pedestrians") / "pedestrians.npz"
    arrays = {}
    for name, n_parts in (("train", 3), ("test", 2)):
        y = np.arange(40 * n_parts, dtype=np.uint8) % 2
        part = np.repeat(np.arange(1, n_parts + 1, dtype=np.uint8), 40)
        arrays |= {f"X_{name}": striped((36, 18), y, rng).reshape(-1, 648), f"y_{name}": y, f"part_{name}": part}
    np.savez(path, **arrays)
    return path


@pytest.fixture(scope="module")
def prepared(pedestrians):
    """The pedestrians' HDF5 file."""
    target = pedestrians.with_suffix(".h5")
    assert run(ROOT, "data_prep/daimler.py", pedestrians, target, "--unchecked")[0] == 0
    return target


def test_digits_are_prepared_trained_and_tested(digits, tmp_path):
    kept = tmp_path / "kept.h5"
    source = ["--data", digits, "--unchecked", "--prepared", kept]
    code, out, err = run(tmp_path, "scripts/train_mnist.py", *source, "--json")
    figures = json.loads(out)
    assert code == 0 and f"{kept}: train 120, test 40 images, 2172 features" in err
    assert sorted(figures) == ["converged", "error", "gap", "passes", "seconds"]
    assert figures["error"] < 0.1 and figures["converged"] and 0 <= figures["gap"] <= 1e-2
    # Once more from the file that was kept, which is not prepared again.
    code, out, err = run(tmp_path, "scripts/train_mnist.py", *source)
    assert code == 0 and "2172 features" not in err
    assert out.startswith(f"test error {figures['error']:.2%}; relative gap {figures['gap']:.1e} after ")


def test_pedestrians_give_six_accuracies_of_parts(prepared, tmp_path):
    code, out, _ = run(tmp_path, "scripts/train_daimler.py", "--data", prepared, "--json")
    figures = json.loads(out)
    assert code == 0 and figures["converged"] and 0 <= figures["gap"] <= 1e-3
    assert figures["pairs"] == [f"{train} -> T{test}" for train in ("1+2", "1+3", "2+3") for test in (1, 2)]
    assert len(figures["accuracies"]) == 6 and min(figures["accuracies"]) > 0.8
    assert figures["passes"] >= 1 and figures["seconds"] > 0


def test_each_pair_uses_its_own_parts(prepared, tmp_path):
    # Parts 1 and 2 get 20 images each, part 3 the other 80, with labels turned round in part 3 and in T2: a fit with
    # part 3, or with all, is right on T2 alone, and that of 1 + 2 on T1 alone.
    turned = tmp_path / "turned.h5"
    turned.write_bytes(prepared.read_bytes())
    with h5py.File(turned, "r+") as file:
        file["train/part"][:] = np.repeat(np.uint8([1, 2, 3]), [20, 20, 80])
        for group, part in (("train", 3), ("test", 2)):
            y = file[group]["y"][:]
            y[file[group]["part"][:] == part] ^= 1
            file[group]["y"][:] = y
    figures = json.loads(run(tmp_path, "scripts/train_daimler.py", "--data", turned, "--json")[1])
    accuracies = figures["accuracies"]
    assert [accuracy > 0.6 for accuracy in accuracies] == [True, False, False, True, False, True]
    assert [accuracy < 0.4 for accuracy in accuracies] == [False, True, True, False, True, False]
    mean = sum(accuracies) / 6
    variance = sum((accuracy - mean) ** 2 for accuracy in accuracies) / 6
    assert figures["mean_accuracy"] == pytest.approx(mean)
    assert figures["standard_deviation"] == pytest.approx(variance**0.5)


def test_a_gap_above_the_tolerance_is_exit_code_3(prepared, tmp_path):
    options = ["--tol", "1e-9", "--max-epochs", "1", "-C", "100"]
    code, out, err = run(tmp_path, "scripts/train_daimler.py", "--data", prepared, *options)
    lines = out.splitlines()
    assert code == 3 and len(lines) == 8
    assert lines[0].startswith("1+2 -> T1  ") and lines[5].startswith("2+3 -> T2  ")
    assert lines[6].startswith("mean accuracy ") and ", 1 passes at most, " in lines[7]
    assert {line.split(" at a ")[0] for line in err.splitlines()} == {"stopped after 1 pass"}


def test_bad_data_and_options_are_one_line(prepared, digits, tmp_path):
    assert run(tmp_path, "scripts/train_mnist.py", "--data", "absent.npz") == (
        1,
        "",
        "absent.npz: does not exist. Give the folder of the official files, or the .npz file made of them.\n",
    )
    code, out, err = run(tmp_path, "scripts/train_mnist.py", "--data", digits)
    assert (code, out) == (1, "") and err == (
        f"{digits}: train, rows: 120 where the official set has 60000. Fetch the data again, or use --unchecked to "
        "take other data of this form.\n"
    )
    bad = run(tmp_path, "scripts/train_daimler.py", "--data", prepared, "--degree", "9")
    assert bad == (2, "", "degree: 9 is not one of 0, 1, 2, 3.\n")
    empty = tmp_path / "empty.h5"
    h5py.File(empty, "w").close()
    code, out, err = run(tmp_path, "scripts/train_daimler.py", "--data", empty)
    assert (code, out) == (1, "") and err.startswith(f"{empty}: group 'train' does not exist.") and err.count("\n") == 1
