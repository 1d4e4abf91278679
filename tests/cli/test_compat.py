"""--compat: the letters, the contradictions, and the other programs' own solutions."""

from pathlib import Path

import numpy as np
import pytest

from linadd.cli.compat import compat_options
from linadd.errors import ConfigError
from linadd.models import load_model
from linadd.options import Options
from tests.cli.conftest import rows_and_labels, write_h5

REFERENCE = Path(__file__).parents[3] / "shared/reference/libspline_additive.npz"
LIBLINEAR = {
    "encoder": "identity", "scale": "none", "center": False, "clamp": False, "stop_on": "violation", "max_epochs": 1000,
}  # fmt: skip
LIBSPLINE = {
    "scale": "libspline", "knots": "uniform", "center": False, "loss": "hinge", "stop_on": "violation",
    "penalty_order": 1, "tol": 0.1, "max_epochs": 1000, "intercept": "penalised", "intercept_scale": 1.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("program", "letters", "given", "expected"),
    [
        ("liblinear", "", {}, {"loss": "squared_hinge", "tol": 0.1, "intercept": "none"}),
        ("liblinear", "-s 0", {}, {"loss": "logistic", "tol": 0.01, "intercept": "none"}),
        ("liblinear", "-s 2 -e 0.5", {}, {"loss": "squared_hinge", "tol": 0.5, "intercept": "none"}),
        ("liblinear", "-s 7 -B -1", {}, {"loss": "logistic", "tol": 0.1, "intercept": "none"}),
        (
            "liblinear",
            "-s 3 -c 10 -B 2 -w1 2 -w-1 0.5",
            {},
            {
                "loss": "hinge", "tol": 0.1, "C": 10.0, "intercept": "penalised", "intercept_scale": 2.0,
                "class_weight": {1: 2.0, -1: 0.5},
            },
        ),
        (
            "liblinear",
            "-c 2",
            {"C": 2.0, "loss": "hinge", "max_epochs": 5, "seed": 3},
            {"C": 2.0, "loss": "hinge", "max_epochs": 5, "seed": 3, "tol": 0.1, "intercept": "none"},
        ),
        ("libspline", "", {}, {"encoder": "bspline", "degree": 1}),
        ("libspline", "-t 1 -d 3 -r 2 -e 0.01 -n 7", {},
         {"encoder": "fourier", "n_harmonics": 3, "penalty_order": 2, "tol": 0.01, "n_bins": 7}),
        ("libspline", "-t 2 -B 0", {}, {"encoder": "hermite", "n_terms": 1, "intercept": "none"}),
    ],
)  # fmt: skip
def test_letters_become_options(program, letters, given, expected):
    options, is_quiet = compat_options(program, letters.split(), given)
    base = dict(LIBLINEAR if program == "liblinear" else LIBSPLINE)
    if expected.get("intercept") == "none":
        base.pop("intercept_scale", None)
    assert options == base | expected and not is_quiet
    Options(**options)


def test_q_is_quiet(linadd, data, tmp_path):
    out = tmp_path / "m.safetensors"
    run = linadd("train", data / "train.h5", out, "--compat", "liblinear", "--", "-s", "3", "-q")
    assert (run.status, run.err) == (0, "")


@pytest.mark.parametrize(
    ("program", "letters", "given", "message"),
    [
        ("liblinear", "-s 5", {}, "-s: '5' is not one of 0, 1, 2, 3, 7."),
        ("liblinear", "-c ten", {}, "-c: 'ten' is not a number."),
        ("liblinear", "-wx 2", {}, "-wx: 'x' is not a number."),
        ("liblinear", "-w1 x", {}, "-w1: 'x' is not a number."),
        ("liblinear", "-c", {}, "-c: needs a value."),
        ("liblinear", "-p 1", {}, "-p: is no letter of --compat liblinear. There are -s -c -e -B -wi -q."),
        ("libspline", "-q", {}, "-q: is no letter of --compat libspline. There are -t -d -r -n -c -e -B -wi."),
        ("liblinear", "train.h5", {}, "train.h5: is no letter of --compat liblinear. There are -s -c -e -B -wi -q."),
        ("liblinear", "-v 5", {}, "-v: linadd train neither validates nor searches. Train on parts with --where."),
        ("liblinear", "-C", {}, "-C: linadd train neither validates nor searches. Train on parts with --where."),
        (
            "liblinear",
            "-c 1",
            {"C": 2.0},
            "-C: 2.0 contradicts --compat liblinear, whose rules and letters make it 1.0. Leave out one of them.",
        ),
        (
            "libspline",
            "",
            {"center": True},
            "--center: True contradicts --compat libspline, whose rules and letters make it False. Leave out one of "
            "them.",
        ),
        (
            "liblinear",
            "",
            {"intercept": "free"},
            "--intercept: 'free' contradicts --compat liblinear, whose rules and letters make it 'none'. Leave out one "
            "of them.",
        ),
        (
            "libspline",
            "",
            {"solver": "sgd"},
            "--solver: sgd contradicts --compat libspline, whose stopping rule it does not have. Choose from auto, "
            "dual-cd, liblinear.",
        ),
    ],
)
def test_what_does_not_fit_is_named(program, letters, given, message):
    with pytest.raises(ConfigError) as caught:
        compat_options(program, letters.split(), given)
    assert str(caught.value) == message


@pytest.mark.parametrize("solver", ["-s 3", "-s 1", "-s 2", "-s 7", "-s 0"])
def test_liblinear_finds_the_same_scores(solver, linadd, tmp_path):
    liblinearutil = pytest.importorskip("liblinear.liblinearutil", reason="liblinear-official is not installed")
    X, y = rows_and_labels()
    path = write_h5(tmp_path / "train.h5", X=X, y=2 * y - 1)
    letters = f"{solver} -c 2 -B 1 -w1 3 -e 1e-5"
    out = tmp_path / "m.safetensors"
    run = linadd("train", path, out, "--compat", "liblinear", "--max-epochs", "20000", "--", *letters.split())
    assert run.status == 0
    theirs = liblinearutil.train(2 * y - 1, X.astype(np.float64), f"{letters} -q")
    _, _, decisions = liblinearutil.predict([], X.astype(np.float64), theirs, "-q")
    expected = np.array(decisions)[:, 0] * (1 if theirs.get_labels()[0] == 1 else -1)
    # Hinge solutions agree as far as the tolerances 1e-5 of the violation, and float32 coefficients, reach.
    assert load_model(out).decision_function(X)[:, 0] == pytest.approx(expected, abs=2e-3)


@pytest.mark.skipif(not REFERENCE.exists(), reason=f"{REFERENCE} is not there")
def test_libspline_has_the_same_optimum(linadd, tmp_path):
    with np.load(REFERENCE) as file:
        X, y, optimum = file["toy_X"], file["toy_y"], file["toy_bspline_degree1_order0_optimum"]
    path = write_h5(tmp_path / "toy.h5", X=X, y=y.ravel())
    letters = ["-c", "10", "-d", "1", "-r", "0", "-e", "0.01"]
    arguments = ("--compat", "libspline", "--max-epochs", "20000", "--json", "--", *letters)
    record = linadd("train", path, tmp_path / "m.safetensors", *arguments).record
    # A violation of 0.01 leaves the objective within some 6e-4; the solver's own tests go to 1e-4.
    assert record["objective"] == pytest.approx(optimum[0], rel=1e-3)
    assert record["dual_objective"] <= optimum[0] * (1 + 1e-6)
