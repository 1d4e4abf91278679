"""`--compat`: the objective, defaults and letters of LIBLINEAR's and libspline's own `train`.

Each program is a set of options that it implies, defaults of its own, and letters given after `--`. A letter beats the
defaults; a long option that differs from what the program implies, or from a letter, is a contradiction.
"""

from linadd.cli.training_options import option_flag
from linadd.errors import ConfigError

__all__ = ["PROGRAMS", "compat_options"]

PROGRAMS = ("liblinear", "libspline")
MAX_EPOCHS = 1000  # of both programs
SOLVERS = ("auto", "dual-cd", "liblinear")  # with the violation as stopping rule

LIBLINEAR_LOSSES = {
    "0": "logistic", "7": "logistic", "1": "squared_hinge", "2": "squared_hinge", "3": "hinge",
}  # fmt: skip
LIBLINEAR_TOL = {"0": 0.01, "2": 0.01, "1": 0.1, "3": 0.1, "7": 0.1}
LIBSPLINE_ENCODERS = {"0": "bspline", "1": "fourier", "2": "hermite"}
LIBSPLINE_DEGREES = {"bspline": "degree", "fourier": "n_harmonics", "hermite": "n_terms"}
LETTERS = {"liblinear": "-s -c -e -B -wi -q", "libspline": "-t -d -r -n -c -e -B -wi"}


def compat_options(program, letters, given):
    """Options of `train` under --compat.

    Parameters
    ----------
    program : {"liblinear", "libspline"}
        Whose objective, stopping rule and defaults to use.
    letters : list of str
        What stands after `--`, such as ["-s", "3", "-c", "10", "-w1", "2"].
    given : dict
        Options given by their long names.

    Returns
    -------
    options : dict
        For `Options`.
    is_quiet : bool
        The letter -q.

    Raises
    ------
    ConfigError
        An unknown program, letter or value; a contradiction.
    """
    if program not in PROGRAMS:
        raise ConfigError(f"--compat: {program!r} is not one of {', '.join(PROGRAMS)}.")
    values, class_weight, is_quiet = read_letters(program, letters)
    rule = liblinear_rule if program == "liblinear" else libspline_rule
    implied, defaults = rule(values)
    if "c" in values:
        implied["C"] = number(values, "c")
    if "e" in values:
        implied["tol"] = number(values, "e")
    if class_weight:
        implied["class_weight"] = class_weight
    if given.get("solver", "auto") not in SOLVERS:
        raise ConfigError(
            f"--solver: {given['solver']} contradicts --compat {program}, whose stopping rule it does not have. Choose "
            f"from {', '.join(SOLVERS)}."
        )
    for name, value in given.items():
        if name in implied and implied[name] != value:
            raise ConfigError(
                f"{option_flag(name)}: {value!r} contradicts --compat {program}, whose rules and letters make it "
                f"{implied[name]!r}. Leave out one of them."
            )
    return {"max_epochs": MAX_EPOCHS, **defaults, **given, **implied}, is_quiet


def read_letters(program, letters):
    """(value of each letter, factor of each class, whether -q stands among them)."""
    values, class_weight, tokens = {}, {}, list(letters)
    known = {token[1] for token in LETTERS[program].split()}
    while tokens:
        token = tokens.pop(0)
        letter = token[1:2]
        if token in ("-v", "-C") and program == "liblinear":
            raise ConfigError(f"{token}: linadd train neither validates nor searches. Train on parts with --where.")
        is_weight = token.startswith("-w") and len(token) > 2
        if not (is_weight or (token.startswith("-") and len(token) == 2 and letter in known - {"w"})):
            raise ConfigError(f"{token}: is no letter of --compat {program}. There are {LETTERS[program]}.")
        if letter == "q":
            values["q"] = None
            continue
        if not tokens:
            raise ConfigError(f"{token}: needs a value.")
        if is_weight:
            label = number({token: token[2:]}, token, int)
            class_weight[label] = number({token: tokens.pop(0)}, token)
        else:
            values[letter] = tokens.pop(0)
    return values, class_weight, "q" in values


def number(values, letter, kind=float):
    """The value of a letter as a number."""
    try:
        return kind(values[letter])
    except ValueError:
        raise ConfigError(f"-{letter.lstrip('-')}: {values[letter]!r} is not a number.") from None


def choice(values, letter, choices, default):
    """What the value of a letter stands for."""
    value = values.get(letter, default)
    if value not in choices:
        raise ConfigError(f"-{letter}: {value!r} is not one of {', '.join(sorted(choices))}.")
    return choices[value]


def intercept_rule(values, default):
    """Options for the letter -B: a penalised feature of that value, or none where it is not positive."""
    scale = number(values, "B") if "B" in values else default
    return {"intercept": "penalised", "intercept_scale": scale} if scale > 0 else {"intercept": "none"}


def liblinear_rule(values):
    """What `liblinear-train` implies, and its defaults: -s 1 -c 1 -B -1, and -e by the solver."""
    implied = {
        "encoder": "identity", "scale": "none", "center": False, "clamp": False, "stop_on": "violation",
        **intercept_rule(values, -1.0),
    }  # fmt: skip
    loss = choice(values, "s", LIBLINEAR_LOSSES, "1")
    if "s" in values:
        implied["loss"] = loss
    return implied, {"loss": loss, "tol": LIBLINEAR_TOL[values.get("s", "1")]}


def libspline_rule(values):
    """What libspline's `train` implies, and its defaults: -t 0 -d 1 -r 1 -n 10 -c 1 -e 0.1 -B 1."""
    implied = {
        "scale": "libspline", "knots": "uniform", "center": False, "loss": "hinge", "stop_on": "violation",
        **intercept_rule(values, 1.0),
    }  # fmt: skip
    implied["encoder"] = encoder = choice(values, "t", LIBSPLINE_ENCODERS, "0")
    defaults = {LIBSPLINE_DEGREES[encoder]: 1, "penalty_order": 1, "tol": 0.1}
    for letter, name in (("d", LIBSPLINE_DEGREES[encoder]), ("r", "penalty_order"), ("n", "n_bins")):
        if letter in values:
            implied[name] = number(values, letter, int)
    return implied, defaults
