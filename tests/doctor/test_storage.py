"""Findings about storage and memory."""

import h5py
import numpy as np
import pytest
import scipy.sparse

from linadd.doctor import diagnose
from linadd.doctor.storage import smallest_type

N_ROWS = 600
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N_ROWS, 3))
Y = RNG.integers(0, 2, N_ROWS)


@pytest.fixture(autouse=True)
def every_file_is_large(monkeypatch):
    monkeypatch.setattr("linadd.doctor.storage.LARGE_BYTES", 1000)


def findings(data, **options):
    """The findings by kind."""
    return {finding.kind: finding for finding in diagnose(data, **options).findings}


def write(path, rows, **layout):
    """A file of rows and labels."""
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=rows, **layout)
        file["y"] = Y
    return path


def test_a_slow_codec(tmp_path):
    path = write(tmp_path / "a.h5", X, compression="gzip", chunks=(100, 3))
    found = findings(path)["slow-codec"]
    assert found.what == "the rows are packed by gzip, which unpacks several times slower than lz4."
    target = tmp_path / "a_rows.h5"
    assert (found.severity, found.remedy) == ("info", f"Rewrite them once: linadd convert {path} {target} --codec lz4")
    assert findings(write(path, X)) == {}


def test_text(tmp_path):
    path = tmp_path / "a.libsvm"
    lines = [f"{y} " + " ".join(f"{j}:{x}" for j, x in enumerate(row, 1)) for y, row in zip(Y, X, strict=True)]
    path.write_text("\n".join(lines))
    found = findings(path)
    assert found.keys() == {"text", "dense-rows"}
    assert found["text"].what == "the rows are text, which is parsed anew in every pass over the file."
    assert found["text"].remedy == f"Rewrite them once: linadd convert {path} {tmp_path / 'a.h5'}"
    assert found["dense-rows"].what == "100% of the values are not 0, in a format for few of them."
    assert found["dense-rows"].remedy == f"A table is read faster: linadd convert {path} {tmp_path / 'a.h5'}"


def test_a_wide_type(tmp_path):
    path = write(tmp_path / "a.h5", X.astype(np.float32).astype(np.float64))
    found = findings(path)["wide-type"]
    assert found.what == "float64 is stored where float32 holds every value looked at: 2 times the bytes."
    assert found.remedy == f"Rewrite them: linadd convert {path} {tmp_path / 'a_rows.h5'} --dtype float32"


@pytest.mark.parametrize(
    ("values", "dtype", "smallest"),
    [
        ([0, 255], "float64", "uint8"),
        ([-1, 127], "int64", "int8"),
        ([0, 256], "int32", "uint16"),
        ([-1, 300], "float32", "int16"),
        ([0.5, 2.0**100], "float64", "float32"),
        ([0.1, 1], "float64", None),
        ([0.5, 1e300], "float64", None),
        ([0, 1], "uint8", None),
        ([0, 70_000], "int32", None),
    ],
)
def test_the_smallest_type(values, dtype, smallest):
    values = np.array([values], dtype)
    assert smallest_type(values, values.dtype) == smallest
    assert smallest_type(scipy.sparse.csr_array(values), values.dtype) == smallest


def test_mostly_zeros(tmp_path):
    rows = np.where(RNG.random(X.shape) < 0.02, X, 0)
    found = findings(write(tmp_path / "a.h5", rows))["sparse-rows"]
    share = np.count_nonzero(rows) / rows.size
    assert found.what == f"{share:.1%} of the values are not 0, in a format that stores them all."
    assert found.remedy == "--rows sparse trains on the others only, at a fraction of the memory."


def test_rows_beyond_the_memory_limit():
    found = findings(X, y=Y, memory_limit=14_000)["out-of-core"]
    assert found.what == "the rows take 7,200 bytes in training, more than half of the limit of 14,000."
    assert found.remedy == "They are read anew in every pass; --memory-limit 1MB keeps them in memory."
    assert "out-of-core" not in findings(X, y=Y, memory_limit=14_400)
