"""`linadd doctor`: what it prints, in both forms, and how it ends."""

import h5py
import numpy as np
import pytest

from tests.cli.conftest import rows_and_labels, write_h5, write_libsvm


@pytest.fixture
def bad(tmp_path):
    """A file with NaN, a constant column, and labels in dataset `label`."""
    X, y = rows_and_labels()
    X = np.insert(X, 3, 2.0, axis=1)
    X[4, 1] = np.nan
    return write_h5(tmp_path / "bad rows.h5", X=X, label=y)


def test_a_diagnosis_for_people(linadd, bad):
    run = linadd("doctor", bad, "--y", "label")
    assert (run.status, run.err) == (0, "")
    shares = [f"{share:.1%}" for share in np.bincount(rows_and_labels()[1]) / 300]
    assert run.out == (
        f"{bad}: HDF5, 300 rows of 4 features, float32, 4.8 kB\n"
        "looked at   all 300 rows\n"
        f"classes     2: 0 {shares[0]}, 1 {shares[1]}\n"
        "\n"
        "error    NaN in 1 column, 1 value: 2 (1). First in row 5.\n"
        "         -> linadd takes no NaN or infinity: fill these values or drop the rows.\n"
        "warning  A single value in 1 column: 4.\n"
        "         -> A constant contributes nothing. Leave it out: "
        f"linadd train '{bad}' MODEL --y label --drop 4\n"
        "\n"
        "1 error, 1 warning, 0 notes: training refuses these data.\n"
    )


def test_a_diagnosis_for_scripts(linadd, bad):
    record = linadd("doctor", bad, "--y", "label", "--json").record
    assert record["findings"][0] == {
        "severity": "error", "kind": "missing-values", "what": "NaN in 1 column, 1 value: 2 (1).",
        "where": {"columns": [2], "rows": [5]},
        "remedy": "linadd takes no NaN or infinity: fill these values or drop the rows.",
    }  # fmt: skip
    counts = np.bincount(rows_and_labels()[1]).tolist()
    assert record["classes"] == [{"label": 0, "n_rows": counts[0]}, {"label": 1, "n_rows": counts[1]}]
    expected = {"format": "HDF5", "n_rows": 300, "n_features": 4, "dtype": "float32", "layout": {"bytes": 4800}}
    assert (expected | {"rows_seen": 300, "is_exact": True, "file": str(bad), "warnings": []}).items() <= record.items()


def test_healthy_data(linadd, tmp_path):
    X, y = rows_and_labels()
    path = tmp_path / "rows.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(100, 3), compression="gzip")
        file["y"] = y.astype(float)
    run = linadd("doctor", path)
    lines = run.out.splitlines()
    assert lines[0].startswith(f"{path}: HDF5, 300 rows of 3 features, float32, chunks of 100 x 3, gzip, ")
    assert lines[-1] == "0 errors, 0 warnings, 0 notes: training takes these data."
    assert lines[2].startswith("classes     2: 0 ") and len(lines) == 5


def test_a_sample_and_all_rows(linadd, data, monkeypatch):
    monkeypatch.setattr("linadd.doctor.profile.SAMPLE_ROWS", 256)
    run = linadd("doctor", data / "train.h5")
    assert run.out.splitlines()[1] == "looked at   256 rows spread over the file; --full reads them all"
    assert linadd("doctor", data / "train.h5", "--full").out.splitlines()[1] == "looked at   all 300 rows"


def test_commands_repeat_how_the_file_is_read(linadd, tmp_path):
    X, y = rows_and_labels()
    path = write_h5(tmp_path / "rows.h5", A=np.full((300, 2), 5.0), b=y, part=np.arange(300) % 2)
    with h5py.File(path, "r+") as file:
        file["A"][:, 1] = X[:, 0]
    options = ["--x", "A", "--y", "b", "--where", "part=1", "--memory-limit", "1MB"]
    (finding,) = linadd("doctor", path, *options, "--json").record["findings"]
    assert finding["remedy"] == (
        f"A constant contributes nothing. Leave it out: linadd train {path} MODEL --x A --y b --where part=1 --drop 1"
    )


def test_many_classes_and_long_commands_are_shortened(linadd, tmp_path):
    X, _ = rows_and_labels()
    names = [f"a long name of column {j}" for j in range(60)]
    path = write_h5(tmp_path / "rows.h5", X=np.hstack([X, np.zeros((300, 57))]), y=np.arange(300) % 12)
    with h5py.File(path, "r+") as file:
        file["X"].attrs["feature_names"] = names
    text = linadd("doctor", path).out
    assert "classes     12: 0 8.3%, " in text and "9 8.3% and 2 more\n" in text
    remedy = next(line for line in text.splitlines() if "--drop" in line)
    assert remedy.endswith(",... (whole in --json)") and len(remedy) < 440
    assert ",".join(names[3:]) in linadd("doctor", path, "--json").record["findings"][0]["remedy"]


def test_text_labels_and_sparse_text(linadd, tmp_path):
    X, y = rows_and_labels(60)
    path = write_libsvm(tmp_path / "rows.libsvm", X, y)
    record = linadd("doctor", path, "--json").record
    assert record["layout"] == {"bytes": path.stat().st_size, "is_text": True, "density": 1.0}
    assert [each["label"] for each in record["classes"]] == [0, 1]
    path = write_h5(tmp_path / "rows.h5", X=X, y=np.array(["no", "yes"])[y])
    assert [each["label"] for each in linadd("doctor", path, "--json").record["classes"]] == ["no", "yes"]


def test_what_cannot_be_read_is_one_line(linadd, tmp_path):
    path = tmp_path / "rows.h5"
    path.write_bytes(b"no HDF5")
    run = linadd("doctor", path)
    assert run.status == 1 and run.out == "" and run.err.startswith(f"error: {path}: is no whole HDF5 file (")
    run = linadd("doctor", path, "--where", "a")
    assert (run.status, run.err) == (2, "error: --where a: is not NAME=V1,V2.\n")
