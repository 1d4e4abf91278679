"""The command line as a whole: help, version, unknown verbs, what a process returns and what it loads."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import fields

import pytest

import linadd as package
from linadd.cli import VERBS
from linadd.cli.training_options import PYTHON_ONLY, option_flag
from linadd.options import Options
from tests.cli.conftest import rows_and_labels, write_h5

COMMAND = [sys.executable, "-m", "linadd"]


def test_help_lists_every_verb(linadd):
    run = linadd("--help")
    assert run.status == 0
    assert set(re.findall(r"^  ([a-z]+)  ", run.out.partition("Commands:")[2], re.MULTILINE)) == set(VERBS)


def test_without_a_verb_there_is_the_help_and_2(linadd):
    assert linadd() == (2, linadd("--help").out, "")


def test_version(linadd):
    assert linadd("--version") == (0, f"linadd {package.__version__}\n", "")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_json_and_quiet(verb, linadd):
    run = linadd(verb, "--help")
    assert run.status == 0 and run.err == ""
    assert "  --json  " in run.out and "  --quiet  " in run.out
    assert "..." not in linadd("--help").out.partition(f"  {verb}  ")[2].splitlines()[0]


def test_the_help_of_train_is_the_declaration_of_the_options(linadd):
    text = " ".join(linadd("train", "--help").out.split())
    for entry in fields(Options):
        flag = option_flag(entry.name)
        if entry.name in PYTHON_ONLY:
            assert f"{flag} " not in text
            continue
        meaning = f"{entry.metadata['help'][0].upper()}{entry.metadata['help'][1:]}."
        at = text.index(f" {flag} ")
        described = text[at : text.index(meaning, at) + len(meaning) + 60]
        assert len(described) < 400, f"{flag} is described elsewhere"
        if entry.metadata["choices"]:
            assert "|".join(str(choice) for choice in entry.metadata["choices"] if choice is not None) in described
        elif isinstance(entry.default, float):
            assert f"[default: {entry.default}]" in described


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_an_unknown_verb_is_one_line_and_2(flags, linadd):
    run = linadd("fit", *flags)
    message = "No such command 'fit'. See `linadd --help`."
    assert (run.status, run.err) == (2, f"error: {message}\n")
    expected = {"type": "UsageError", "message": message, "file": None, "row": None, "column": None}
    assert run.out == "" if not flags else run.record == {"error": expected}


def test_missing_arguments_are_named(linadd):
    assert linadd("train").err == "error: Missing argument 'FILE'. See `linadd train --help`.\n"
    assert linadd("export", "m").err == "error: Missing argument 'OUT'. See `linadd export --help`.\n"


def test_a_process_ends_with_the_status_and_training_does_not_load_scikit_learn(data, tmp_path):
    code = (
        "import sys; from linadd.cli import main; status = main(sys.argv[1:]);"
        "print('sklearn' in sys.modules); sys.exit(status)"
    )
    arguments = ["train", str(data / "train.h5"), str(tmp_path / "m"), "--tol", "1e-9", "--max-epochs", "1", "--quiet"]
    run = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert run.returncode == 3, run.stderr
    assert run.stdout.splitlines()[-1] == "False"


def test_a_reader_that_leaves_early_is_no_error(model):
    with subprocess.Popen([*COMMAND, "inspect", model], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is not there")
def test_a_full_disk_under_stdout_is_one_line(model):
    with open("/dev/full", "w") as full:
        run = subprocess.run([*COMMAND, "inspect", model], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (run.returncode, run.stderr) == (1, "error: standard output: No space left on device.\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is not there")
def test_a_full_disk_under_a_help_text_is_one_line():
    with open("/dev/full", "w") as full:
        run = subprocess.run([*COMMAND, "train", "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (run.returncode, run.stderr) == (1, "error: standard output: No space left on device.\n")


@pytest.mark.parametrize("closed", [1, 2])
def test_a_closed_output_is_no_error(closed, tmp_path):
    data, model = tmp_path / "a.csv", tmp_path / "m.safetensors"
    data.write_text("a,y\n" + "0,0\n1,1\n" * 9)
    with open(os.devnull, "w") as null:
        streams = {"stdout": null, "stderr": null, "preexec_fn": lambda: os.close(closed)}
        assert subprocess.run([*COMMAND, "train", data, model], **streams).returncode == 0
    assert model.exists()


def test_letters_that_the_terminal_lacks_are_escaped(three_classes):
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    run = subprocess.run([*COMMAND, "inspect", three_classes], capture_output=True, text=True, env=environment)
    assert (run.returncode, run.stderr) == (0, "")
    assert "3: high, low, mid \\u2014 \\xe9" in run.stdout


def test_ctrl_c_while_a_verb_is_loaded_is_an_error_object(linadd, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("linadd.cli.build", interrupt)
    run = linadd("train", "--json")
    error = {"type": "Interrupted", "message": "interrupted.", "file": None, "row": None, "column": None}
    assert (run.status, run.err, run.record) == (130, "error: interrupted.\n", {"error": error})


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """A command that trains for hours, out of core, and says so a line an epoch."""
    folder = tmp_path_factory.mktemp("endless")
    X, y = rows_and_labels(20_000)
    write_h5(folder / "rows.h5", X=X, y=y)
    limits = ["--solver", "dual-cd", "--memory-limit", "60kB", "--tol", "1e-12", "--max-epochs", "1000000"]
    return [*COMMAND, "train", str(folder / "rows.h5"), *limits], folder / "m.safetensors"


def start_training(command, path):
    """The process, once its first epoch is over."""
    run = subprocess.Popen([*command, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not run.stderr.readline().startswith("pass "):
        assert run.poll() is None
    return run


def test_ctrl_c_once_writes_the_model_and_ends_with_3(endless):  # users.md C40
    command, path = endless
    run = start_training(command, path)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate()
    assert run.returncode == 3, err
    assert "Stopping after this block; Ctrl-C again aborts." in err.splitlines()
    assert ", interrupted" in out.splitlines()[1] and path.exists()
    assert "warning" not in err and "Traceback" not in err


def test_ctrl_c_twice_ends_with_130_and_leaves_no_model(endless, tmp_path):
    command, _ = endless
    run = start_training(command, tmp_path / "m.safetensors")
    run.send_signal(signal.SIGINT)
    while not run.stderr.readline().startswith("Stopping"):
        assert run.poll() is None
    run.send_signal(signal.SIGINT)
    _, err = run.communicate()
    # The block may be over before the second signal comes; then the first one counts.
    assert run.returncode in (130, 3)
    if run.returncode == 130:
        assert err.splitlines()[-1] == "error: interrupted." and not list(tmp_path.iterdir())
