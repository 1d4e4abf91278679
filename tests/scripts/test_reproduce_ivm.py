"""scripts/reproduce_ivm.py runs on a small drawn mixture, prints its tables and draws its pictures."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "reproduce_ivm.py"


def test_quick(tmp_path):
    done = subprocess.run([sys.executable, SCRIPT, "--quick", "--out", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for row in ("| IVM newton, lambda e^-2 | ", "| SVM of scikit-learn, C = ", "| e^4 | ", "| e^-4 | ",
                "2 fresh training sets: test error 0.", "| IVM softmax | ", "| IVM baseline | "):
        assert row in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ivm_boundaries.png", "ivm_path.png"]
