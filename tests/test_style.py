"""The linter is part of the suite."""

import subprocess
import sys
from pathlib import Path


def test_ruff_finds_nothing():
    root = Path(__file__).parent.parent
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "."]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
