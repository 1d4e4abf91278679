"""scripts/reproduce_sparse_ep.py runs on toy sizes, and writes its tables and its picture."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "reproduce_sparse_ep.py"


def test_tables_and_picture(tmp_path):
    if not (ROOT / "../shared/data/usps.npz").exists():
        pytest.skip("the shared data sets are not there")
    command = [sys.executable, SCRIPT, "--quick", "banana", "usps", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "### banana: 100 training rows, 1 partitions" in done.stdout
    assert "| dense EP | 100 |" in done.stdout
    assert "### USPS: 300 training rows, ten classes" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["sparse_ep_budget.png"]
