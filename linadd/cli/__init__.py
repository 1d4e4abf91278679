"""The command line: one verb a file; here the list of verbs, and `main`."""

import errno
import os
import sys

import typer

from linadd.cli.convert import convert
from linadd.cli.demo import demo
from linadd.cli.doctor import doctor
from linadd.cli.estimate import estimate
from linadd.cli.evaluate import evaluate
from linadd.cli.export import export
from linadd.cli.inspect import inspect
from linadd.cli.plot import plot
from linadd.cli.predict import predict
from linadd.cli.search import search
from linadd.cli.terminal import DONE, FAILED, INTERRUPTED, USAGE, Terminal
from linadd.cli.train import train

__all__ = ["VERBS", "main"]

# In the order of their use.
VERBS = {
    "demo": demo,
    "doctor": doctor,
    "convert": convert,
    "estimate": estimate,
    "train": train,
    "search": search,
    "evaluate": evaluate,
    "predict": predict,
    "inspect": inspect,
    "plot": plot,
    "export": export,
}
USAGE_ERROR = typer.BadParameter.__base__  # of the click that typer brings with it, or needs


def print_version(is_asked: bool):
    """Print the version and end."""
    if is_asked:
        from importlib.metadata import version

        print(f"linadd {version('linadd')}")
        raise typer.Exit(DONE)


def root(
    version: bool = typer.Option(False, "--version", is_eager=True, callback=print_version, help="Print the version."),
):
    """Additive classifiers on feature files larger than memory, with a certificate of their distance from the optimum.

    Results go to stdout, log and progress to stderr. `linadd VERB --help` tells of a verb.
    """


def build():
    """The parser."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback()(root)
    for name, function in VERBS.items():
        app.command(name)(function)
    return typer.main.get_command(app)


def main(arguments=None):
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of the process.

    Returns
    -------
    int
        Exit status: 0 done, 1 data or run failed, 2 usage, 3 stopped before tolerance, 130 interrupted.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    open_closed_streams()
    escape_unknown_letters()
    try:
        status = build().main(arguments or ["--help"], prog_name="linadd", standalone_mode=False)
        return status if arguments else USAGE
    except USAGE_ERROR as error:
        context = error.ctx
        asked = context.command_path if context is not None else "linadd"
        text = f"{error.format_message().rstrip('.')}. See `{asked} --help`."
        Terminal(is_json="--json" in arguments).print_error("UsageError", f"{text}{hint(arguments)}")
        return USAGE
    except OSError as error:  # the verbs catch their own: this is a help text that nobody can read
        if error.errno != errno.EPIPE:
            Terminal().print_error("OSError", f"standard output: {error.strerror}.")
        return FAILED
    except (KeyboardInterrupt, typer.Abort):  # while the modules of a verb were loaded
        Terminal(is_json="--json" in arguments).print_error("Interrupted", "interrupted.")
        return INTERRUPTED


def open_closed_streams():
    """Stand in for an output that the caller closed: its number must not go to a file that is opened later."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open until the process ends


def escape_unknown_letters():
    """Have the streams write \\xf6 for a letter that their encoding lacks, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict":
            stream.reconfigure(errors="backslashreplace")


def hint(arguments):
    """What to add where the letters of --compat were taken for options."""
    is_compat = any(argument.startswith("--compat") for argument in arguments)
    return " Letters of --compat stand after --." if is_compat and "--" not in arguments else ""
