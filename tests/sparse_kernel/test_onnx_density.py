"""The bandwidth search as an ONNX graph: models of few rows, rows far away, and rows in any parts."""

import numpy as np
import pytest

from linadd.sparse_kernel.export import score_onnx, score_tables
from linadd.sparse_kernel.onnx_graph import write_onnx
from linadd.sparse_kernel.rodeo_bandwidths import bandwidth_steps

pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
NEAR = RNG.random((7, 3))


def tables(classes, points, columns=(0, 1, 2), **changes):
    """Tables of a class for each array of points, with the estimator's constants and other priors than uniform."""
    outputs = [{"columns": np.array(columns), "points": each[:, list(columns)], "threshold": 3.0,
                "bandwidths": bandwidth_steps(len(each), 1.0, 0.9, 1e-3), "log_prior": np.log(share)} | changes
               for each, share in zip(points, (0.25, 0.75), strict=True)]
    return {"classes": classes, "estimator": "rodeo", "link": "density", "outputs": outputs, "offset": np.zeros(3),
            "factor": np.ones(3), "clip": False, "check_scores": np.zeros((1, 2))}


def narrow(n_points):
    """Points with one coordinate that all bandwidths shrink for, and two of noise."""
    points = RNG.random((n_points, 3))
    points[:, 1] = 0.5 + 0.01 * RNG.normal(size=n_points)
    return points


CASES = {
    "usual": tables([0, 1], [narrow(40), narrow(60)]),
    "one row a class": tables([0, 1], [narrow(1), narrow(2)]),
    "one bandwidth": tables([0, 1], [narrow(40), narrow(60)], bandwidths=np.array([0.3])),
    "one feature": tables([0, 1], [narrow(40), narrow(60)], columns=(1,)),
    "equal rows": tables([0, 1], [np.full((9, 3), 0.5), narrow(40)]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_the_graph_scores_as_the_tables_do(case, tmp_path):
    """Also rows whose density is 0 for one class (1e3) or all (1e200, where squares overflow)."""
    path, rows = tmp_path / "model.onnx", np.vstack([NEAR, 1e3 + NEAR[:1], 1e200 * NEAR[:1], [[0.5, 1e200, 0.5]]])
    write_onnx(CASES[case], path)
    for found, expected in zip(score_onnx(path, rows), score_tables(CASES[case], rows), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_rows_in_any_parts_give_the_same_bits(tmp_path):
    path = tmp_path / "model.onnx"
    write_onnx(CASES["usual"], path)
    whole = score_onnx(path, NEAR)
    for start, stop in ((0, 0), (0, 1), (1, 7)):
        for part, all_rows in zip(score_onnx(path, NEAR[start:stop]), whole, strict=True):
            np.testing.assert_array_equal(part, all_rows[start:stop])
