"""The laws over the list of solvers."""

import pytest

from linadd.solvers import SOLVERS
from tests.checks.check_solver import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SOLVERS)
def test_law(name, check):
    if name == "liblinear":
        pytest.importorskip("liblinear", reason="the extra `baseline` (liblinear-official) is not installed")
    check(name)

