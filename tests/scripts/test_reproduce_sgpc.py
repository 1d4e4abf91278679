"""scripts/reproduce_sgpc.py runs its whole protocol on generated sets, continues, and draws its figure."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "reproduce_sgpc.py"


def run(*arguments):
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_quick_protocol_is_continued_where_it_stopped(tmp_path):
    results, figure = tmp_path / "results.jsonl", tmp_path / "figure.png"
    text = run("--quick", "--outer", "2", "--results", results, "--figure", figure)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert len(lines) == 2 * 2 * 2 * 6
    assert text.count("| ring | 4 | 2 |") == 2 and text.count("Friedman test") == 2
    assert figure.stat().st_size > 5000
    results.write_text("".join(json.dumps(line) + "\n" for line in lines[5:]))
    again = run("--quick", "--outer", "2", "--results", results)
    repeated = [json.loads(line) for line in results.read_text().splitlines()]
    without_time = [{**line, "seconds": 0} for line in lines]
    assert sorted(({**line, "seconds": 0} for line in repeated), key=str) == sorted(without_time, key=str)
    assert again.splitlines()[:10] == text.splitlines()[:10]


def test_data_are_asked_for(tmp_path):
    done = subprocess.run([sys.executable, SCRIPT, "--results", tmp_path / "r"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.endswith("error: --data is needed: the folder of the IDA sets, or --quick\n")
