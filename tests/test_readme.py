"""README.md and docs/json.md say what is so: their commands run, and the objects have the names they list."""

import json
import re
import shlex
from pathlib import Path

import pytest

from linadd.cli import VERBS, main
from linadd.cli.demo import Tour
from linadd.cli.terminal import Terminal

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
SCHEMA = (ROOT / "docs" / "json.md").read_text("utf-8")


def blocks(language):
    """The code of the README's blocks in a language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """A folder with `demo/digits.h5`, as `linadd demo` leaves it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    Tour(Terminal(is_quiet=True), "demo").write_digits()
    return tmp_path


def test_the_commands_run(digits):
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) == 9
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "linadd"
        assert main([*arguments, "--quiet"] if "--" not in arguments else arguments) == 0, command
    names = {"digits.safetensors", "labels.csv", "digits.npz", "compat.safetensors", "demo", "rows.h5"}
    assert {path.name for path in digits.iterdir()} == names


@pytest.mark.filterwarnings("ignore::linadd.errors.DataWarning")  # pixels that are always 0
def test_the_python_lines_run(digits, capsys):
    (block,) = blocks("python")
    assert len(block.splitlines()) == 5
    exec(compile(block, "README.md", "exec"), {})
    assert (digits / "digits.safetensors").exists() and capsys.readouterr().out


def test_files_that_are_named_exist():
    names = re.findall(r"\]\(([^)#:]+)\)|`((?:scripts|data_prep|docs)/[\w./]+\.\w+)`", README)
    for name in {first or second for first, second in names}:
        assert (ROOT / name).exists(), name


def listed_names(section):
    """Names that docs/json.md lists for a verb, apart from those within objects."""
    text = SCHEMA.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    heads = re.findall(r"^- ((?:`\w+`(?:, )?)+)", text, re.MULTILINE)
    return {name for head in heads for name in re.findall(r"`(\w+)`", head)}


def test_every_verb_is_listed():
    assert re.findall(r"^## (\w+)$", SCHEMA, re.MULTILINE)[1:] == [
        "train", "search", "evaluate", "predict", "inspect", "plot", "export", "doctor", "estimate", "convert", "demo"
    ]  # fmt: skip
    assert set(re.findall(r"^## (\w+)$", SCHEMA, re.MULTILINE)[1:]) == set(VERBS)


def test_objects_have_the_names_that_are_listed(digits, capsys):
    commands = {
        "train": "demo/digits.h5::train m --max-epochs 3 --tol 1",
        "evaluate": "m demo/digits.h5::test",
        "predict": "m demo/digits.h5::test -o labels.npy",
        "inspect": "m",
        "plot": "m -o m.html",
        "export": "m m.json --to json",
        "estimate": "demo/digits.h5::test --max-epochs 3",
        "doctor": "demo/digits.h5::test",
        "convert": "demo/digits.h5::test test.h5",
    }
    for verb, arguments in commands.items():
        assert main([verb, *arguments.split(), "--json", "--quiet"]) == 0
        record = json.loads(capsys.readouterr().out)
        assert record.keys() == listed_names(verb) | {"warnings"}, verb
    assert main(["inspect", "absent", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"].keys() == listed_names("error")
