"""The export for LIBLINEAR: its own predict gives the model's labels; encoded rows of a source; labels of any type."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from linadd.encoders.exact import encode
from linadd.errors import ConfigError, DataError
from linadd.export import export_model, liblinear
from linadd.export.tables import model_arrays
from linadd.sources import open_source
from tests.export.toy import ENCODER_OPTIONS, edge_rows, toy_model

liblinearutil = pytest.importorskip("liblinear.liblinearutil")


def predicted(path, rows):
    """(accuracy in percent, labels, true labels) by LIBLINEAR itself."""
    labels, codes = liblinearutil.svm_read_problem(str(path.with_suffix(rows)))
    found, (accuracy, _, _), _ = liblinearutil.predict(labels, codes, liblinearutil.load_model(str(path)), "-q")
    return accuracy, found, labels


@pytest.mark.parametrize("policy", ["clamp", "linear"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_liblinear_gives_the_labels_of_the_model(n_outputs, policy, tmp_path):
    model = replace(toy_model(n_outputs=n_outputs), range_policy=policy)
    X = edge_rows(model.encoder)
    path = tmp_path / "m.model"
    export_model(model, path, "liblinear", rows=open_source(X, y=model.predict(X)))
    assert predicted(path, ".check.libsvm")[0] == 100.0
    accuracy, found, _ = predicted(path, ".rows.libsvm")
    assert accuracy == 100.0 and found == model.predict(X).tolist()
    scores = np.loadtxt(tmp_path / "m.check.scores", ndmin=2).reshape(32, n_outputs)
    np.testing.assert_array_equal(scores, model_arrays(model)["check_scores"])


def test_labels_that_are_no_integers_are_numbered(tmp_path):
    model = toy_model(n_outputs=3, labels="text")
    X = edge_rows(model.encoder)
    export_model(model, tmp_path / "m.model", "liblinear", rows=open_source(X, y=model.predict(X)))
    accuracy, found, _ = predicted(tmp_path / "m.model", ".rows.libsvm")
    assert accuracy == 100.0 and set(found) <= {0, 1, 2}
    export_model(model, tmp_path / "n.model", "liblinear", rows=open_source(X, y=np.full(len(X), "unknown")))
    assert set(predicted(tmp_path / "n.model", ".rows.libsvm")[2]) == {-1}
    export_model(model, tmp_path / "n.model", "liblinear", rows=open_source(X))
    assert set(predicted(tmp_path / "n.model", ".rows.libsvm")[2]) == {0}


@pytest.mark.parametrize(("name", "options"), ENCODER_OPTIONS, ids=str)
def test_rows_are_encoded_as_for_training(name, options):
    """phi^d, whose inner products are the kernel that LIBLINEAR would train with."""
    model = toy_model(name, options)
    X = edge_rows(model.encoder)
    arrays = model_arrays(model)
    expected = encode(model.encoder, X, penalised=True).toarray()
    np.testing.assert_allclose(liblinear.encoded(arrays, X), expected, rtol=1e-12, atol=1e-12)
    assert liblinear.weights(arrays).shape == (expected.shape[1], 1)


def test_a_source_is_encoded_in_pieces(tmp_path, monkeypatch):
    model = toy_model()
    X = edge_rows(model.encoder)
    export_model(model, tmp_path / "a.model", "liblinear", rows=open_source(X))
    monkeypatch.setattr(liblinear, "PIECE_BYTES", 1)
    export_model(model, tmp_path / "b.model", "liblinear", rows=open_source(X))
    assert (tmp_path / "a.rows.libsvm").read_bytes() == (tmp_path / "b.rows.libsvm").read_bytes()


def test_rows_that_cannot_be_encoded_are_named(tmp_path):
    model = replace(toy_model(), range_policy="clamp,4=error")
    X = np.tile(np.clip(np.zeros(4), *model.ranges.T), (3, 1))
    cases = [(X[:, :3], "array: has 3 features, the model has 4. Give data of the same columns.")]
    X[2, 3] = 9.0
    cases.append((X, "array, row 3, column 4: the value 9.0 is outside the training range "))
    for rows, message in cases:
        with pytest.raises(DataError) as caught:
            export_model(model, tmp_path / "m.model", "liblinear", rows=open_source(rows))
        assert str(caught.value).startswith(message)
    assert not list(tmp_path.iterdir())


def test_the_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "liblinear", None)
    with pytest.raises(ConfigError) as caught:
        export_model(toy_model(), tmp_path / "m.model", "liblinear")
    assert str(caught.value) == (
        "export: files for LIBLINEAR are checked by the package liblinear-official. Run: pip install "
        "'linadd[baseline]'."
    )
