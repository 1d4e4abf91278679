"""The commands and the lines of Python in docs/export.md run."""

import re
from pathlib import Path

import numpy as np

from linadd.cli import main
from linadd.models import load_model
from tests.checks.check_export import skip_without_programs
from tests.cli.conftest import rows_and_labels, write_h5

TEXT = (Path(__file__).parents[2] / "docs/export.md").read_text("utf-8")
LIBLINEAR = "solver_type L2R_LR\nnr_class 2\nlabel 1 0\nnr_feature 3\nbias 1\nw\n0.1 \n0.2 \n0.3 \n-0.4 \n"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_the_commands_and_the_lines_run(tmp_path, monkeypatch):
    for kind in ("onnx", "c", "liblinear"):
        skip_without_programs(kind)
    monkeypatch.chdir(tmp_path)
    X, y = rows_and_labels()
    write_h5("rows.h5", X=X, y=y)
    Path("a.model").write_text(LIBLINEAR)
    assert main(["train", "rows.h5", "m.safetensors", "--quiet"]) == 0
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) == 7
    for command in commands:
        assert main([*command.split()[1:], "--quiet"]) == 0, command
    names = {"X": X}
    for block in blocks("python"):
        exec(block, names)
    model = load_model("m.safetensors")
    np.testing.assert_array_equal(names["labels"], model.predict(X))
    np.testing.assert_array_equal(names["scores"], model.decision_function(X))
