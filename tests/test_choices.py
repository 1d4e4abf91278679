"""The names that the command line offers are those of the lists that hold the things."""

import inspect
import subprocess
import sys

import pytest

from linadd import choices
from linadd.calibration import CALIBRATIONS
from linadd.encoders import ENCODERS
from linadd.export import EXPORTERS
from linadd.losses import LOSSES
from linadd.solvers import SOLVERS


def test_names_are_those_of_the_lists():
    names = {
        "CALIBRATIONS": CALIBRATIONS, "ENCODERS": ENCODERS, "EXPORTS": EXPORTERS, "LOSSES": LOSSES, "SOLVERS": SOLVERS,
    }  # fmt: skip
    for name, table in names.items():
        assert list(getattr(choices, name)) == list(table)
    assert [name for name, loss in LOSSES.items() if loss.has_probabilities] == list(choices.PROBABILITY_LOSSES)
    assert set(choices.AUTO_SOLVERS) < set(SOLVERS)


@pytest.mark.parametrize("name", ENCODERS)
def test_options_of_an_encoder_are_the_arguments_of_its_class(name):
    assert set(choices.ENCODERS[name]) == set(inspect.signature(ENCODERS[name]).parameters)


def test_options_load_nothing_heavy():
    code = "import sys, linadd.options; print(*{'numpy', 'numba', 'scipy', 'dask', 'h5py', 'sklearn'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "\n"
