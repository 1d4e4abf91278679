"""scripts/reproduce_rodeo.py runs every experiment on toy sizes, and writes its tables and pictures."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "reproduce_rodeo.py"


def run(*arguments):
    """The script's standard output."""
    done = subprocess.run([sys.executable, SCRIPT, "--quick", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_simulated_experiments(tmp_path):
    text = run("example1", "example2", "example3", "waveform", "--out", tmp_path)
    for title in ("### Example 1 (1 trials)", "### Example 2 (1 trials; reported: Rodeo/LSPC best; worst)",
                  "### Example 3, 20 training rows a group (1 trials)", "### Waveform-40, c0 = 1.0 (1 trials)"):
        assert title in text
    assert text.count("| accuracy |") == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rodeo_example1.png", "rodeo_waveform.png"]


def test_real_data(tmp_path):
    if not (ROOT / "../shared/data/anuran_mfcc.npz").exists():
        pytest.skip("the shared data sets are not there")
    text = run("anuran", "digits", "--out", tmp_path)
    assert text.count("### Anuran calls, split ") == 4
    assert "### Digits 8x8 (1 trials)" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rodeo_anuran.png", "rodeo_digits.png"]
