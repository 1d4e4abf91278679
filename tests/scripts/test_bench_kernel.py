"""scripts/bench_kernel.py runs on toy sizes; its figures are not looked at."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "bench_kernel.py"


def test_quick():
    done = subprocess.run([sys.executable, SCRIPT, "--quick"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for row in ("| validation 59 | ", "| CalibratedClassifierCV(SVC(C=10)) | ",
                "| SparseGPClassifier(adaptive 2, n_basis=10)", "| ImportVectorMachine | "):
        assert row in done.stdout
