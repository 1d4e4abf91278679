"""The checks that all sources share: what is refused, in which words; how labels and weights become plain."""

import numpy as np
import pytest

from linadd.chunks import Chunk
from linadd.sources import open_source
from linadd.sources.base import (
    array_fingerprint,
    check_length,
    check_table,
    file_fingerprint,
    plain_labels,
    plain_weights,
    reading,
    rows_of_bytes,
)
from tests.checks.check_source import refusal


@pytest.mark.parametrize(
    ("stored", "delivered"),
    [("bool", "uint8"), ("float16", "float32"), (">f4", "float32"), (">i8", "int64"), ("uint16", "uint16")],
)
def test_delivered_dtypes(stored, delivered):
    dtype = check_table((2, 3), np.dtype(stored), "f")
    assert dtype == delivered and dtype.isnative


@pytest.mark.parametrize(
    ("dtype", "remedy"),
    [
        ("object", "Convert it, for instance with astype('float32')."),
        ("<U3", "Encode it as numbers first."),
        ("|S4", "Encode it as numbers first."),
        ("datetime64[s]", "Encode it as numbers first."),
        ("complex64", "Store the real and imaginary parts as separate features."),
        ([("a", "<f4")], "Store its fields as the columns of one numeric table."),
        ("longdouble", "Convert it to float64."),
    ],
)
def test_what_is_no_number_is_refused(dtype, remedy):
    dtype = np.dtype(dtype)
    message = f"f: X has dtype {dtype}; features must be real numbers. {remedy}"
    assert refusal(check_table, (2, 3), dtype, "f") == message


def test_what_is_no_table_is_refused():
    def message(shape):
        return refusal(check_table, shape, np.dtype(float), "f", "dataset 'A'")

    assert message((5,)) == (
        "f: dataset 'A' has shape (5,); a table of rows and features is needed. "
        "Reshape it: reshape(-1, 1) if it holds one feature, reshape(1, -1) if it holds one row."
    )
    assert message((2, 3, 4)) == (
        "f: dataset 'A' has shape (2, 3, 4); a table of rows and features is needed. "
        "Reshape it: reshape(n_rows, n_features)."
    )
    assert message((0, 3)) == "f: dataset 'A' has shape (0, 3): no rows. Give data that have some."
    assert message((3, 0)) == "f: dataset 'A' has shape (3, 0): no columns. Give data that have some."


def test_lengths():
    for shape in ((3,), (3, 1), (1, 3)):
        check_length(3, shape, "f")
    assert refusal(check_length, 3, (4,), "f") == (
        "f: X has 3 rows and y has 4 entries. Both must describe the same rows."
    )
    for shape in ((3, 2), (), (3, 1, 1)):
        assert refusal(check_length, 3, shape, "f", "w") == f"f: w has shape {shape}; one entry a row is needed."


def chunk_at(first_row):
    return Chunk(None, None, None, first_row, "f")


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        (np.array([1, 2], ">i2"), np.array([1, 2])),
        (np.array([True, False]), np.array([True, False])),
        (np.array([b"a", b"bc"]), np.array(["a", "bc"])),
        (np.array(["é".encode(), "b"], object), np.array(["é", "b"])),
        (np.array([1, 2.5, True], object), np.array([1, 2.5, 1])),
        (np.array(["a", "b"], np.dtypes.StringDType()), np.array(["a", "b"])),
    ],
)
def test_plain_labels(raw, plain):
    labels = plain_labels(raw, chunk_at(0))
    assert labels.dtype.kind == plain.dtype.kind and labels.dtype.isnative
    np.testing.assert_array_equal(labels, plain)


def test_labels_that_are_refused():
    mixed = "stands among others of another type. Use numbers only or text only."
    assert refusal(plain_labels, np.array([1, "a"], object), chunk_at(4)) == f"f, row 6: label 'a' {mixed}"
    assert refusal(plain_labels, np.array(["a", None], object), chunk_at(4)) == f"f, row 6: label None {mixed}"
    assert refusal(plain_labels, np.array([b"a", b"\xff"]), chunk_at(4)) == (
        "f, row 6: label b'\\xff' is not UTF-8 text. Store the labels as numbers or UTF-8."
    )
    for labels in (np.array([1j]), np.array([None]), np.array(["2020"], "datetime64[Y]")):
        message = f"f: labels have dtype {labels.dtype}; they must be numbers or text."
        assert refusal(plain_labels, labels, chunk_at(4)) == message


def test_weights():
    assert plain_weights(np.array([1, 0], np.int8), chunk_at(0)).dtype == np.float64
    for value, text in ((-1, "-1"), (np.nan, "nan"), (np.inf, "inf")):
        message = f"f, row 12: sample weight {text}; weights must be finite and not negative."
        assert refusal(plain_weights, np.array([1, value]), chunk_at(10)) == message
    message = "f: sample weights have dtype <U1; they must be numbers."
    assert refusal(plain_weights, np.array(["a"]), chunk_at(10)) == message


def test_chunks_are_about_eight_megabytes():
    assert [rows_of_bytes(n) for n in (8, 8688, 10**9)] == [1 << 20, 965, 1]


def test_an_unreadable_file_is_one_line(tmp_path):
    def read():
        with reading("f"):
            (tmp_path / "none").read_bytes()

    assert refusal(read) == "f: cannot be read (No such file or directory)."


def test_fingerprints_follow_the_content(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(100_000))
    before = file_fingerprint(str(path))
    assert before["path"] == str(path) and before["size"] == 100_000
    content = bytearray(100_000)
    content[-1] = 1
    path.write_bytes(content)
    assert file_fingerprint(str(path))["digest"] != before["digest"]
    X = np.zeros((1000, 2))
    before = array_fingerprint(X)
    X[-1, 1] = 1
    assert array_fingerprint(X) != before


@pytest.mark.parametrize("y", [np.zeros(10_000, int), np.array(["no", "yes"] * 5000)])
def test_a_single_label_changes_the_fingerprint(y, tmp_path):  # users.md C23
    np.save(tmp_path / "X.npy", np.zeros((len(y), 1)))
    before, files = y.copy(), [str(tmp_path / f"half{i}.npy") for i in (0, 1)]
    for path in files:
        np.save(path, np.zeros((len(y) // 2, 1)))
    y[6] = 1 if y.dtype.kind == "i" else "yes"
    for data in (np.zeros((len(y), 1)), tmp_path / "X.npy", files):
        assert open_source(data, before).fingerprint() == open_source(data, before).fingerprint()
        assert open_source(data, before).fingerprint() != open_source(data, y).fingerprint()
