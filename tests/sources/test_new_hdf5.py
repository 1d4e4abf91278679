"""HDF5 files that are whole or absent, also when the disk fills up."""

import os
import resource
import signal

import h5py
import numpy as np
import pytest

from linadd.sources.new_hdf5 import new_hdf5
from tests.checks.check_source import refusal


def fill(path, n_rows=1000):
    """Write the table 0, 1, 2, ... in batches of 100 rows of 8 kB."""
    with new_hdf5(path, cache_bytes=1 << 20) as (file, reserve):
        X = file.create_dataset("X", (n_rows, 1000), "f8", chunks=(10, 1000))
        for start in range(0, n_rows, 100):
            reserve(100 * 8000)
            X[start : start + 100] = np.arange(start, start + 100)[:, None]


def test_the_file_is_whole_and_no_longer_than_it_must(tmp_path):
    fill(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["X"][:, 7], np.arange(1000))
    assert 8_000_000 < os.path.getsize(tmp_path / "a.h5") < 8_100_000
    assert os.listdir(tmp_path) == ["a.h5"]


def test_attributes_of_any_length(tmp_path):
    names = [f"feature number {j}" for j in range(10_000)]
    with new_hdf5(tmp_path / "a.h5") as (file, _):
        file.attrs["feature_names"] = names
    with h5py.File(tmp_path / "a.h5") as file:
        assert file.attrs["feature_names"].tolist() == names


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(tmp_path, failure):
    with pytest.raises(failure), new_hdf5(tmp_path / "a.h5") as (file, _):
        file["X"] = [1.0]
        raise failure
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("limit", [1000, 6_000_000, 9_000_000])
def test_a_full_disk_is_one_line_and_no_crash(tmp_path, limit):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        message = refusal(fill, tmp_path / "a.h5")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    path = tmp_path / "a.h5"
    assert message == f"{path}: cannot be written (File too large). Free space there or give another path."
    assert os.listdir(tmp_path) == []
