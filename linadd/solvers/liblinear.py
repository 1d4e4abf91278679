"""LIBLINEAR on the explicit embedding, in memory: the baseline, and the check on our own solvers.

    minimise  1/2 |w|^2 + C sum_i loss(y_i (w . s phi^d(x_i) + b)),    then v = s D_d^-1 w

Squared hinge and logistic loss with a free intercept are solved in the primal (-s 2, -s 0 with -R), all others in the
dual (-s 3, -s 1, -s 7). The embedding phi^d is dense within each feature, so it must fit the memory limit.
"""

import ctypes
import threading
import warnings
from concurrent.futures import Future, wait
from functools import partial

import numpy as np
import scipy.sparse

from linadd import penalty
from linadd.encoders.exact import encode
from linadd.errors import ConfigError, ConvergenceWarning
from linadd.losses import HINGE, LOGISTIC, SQUARED_HINGE
from linadd.solvers.base import SolverResult
from linadd.solvers.stopping import certify_primal

PRIMAL = {SQUARED_HINGE: 2, LOGISTIC: 0}
DUAL = {HINGE: 3, SQUARED_HINGE: 1, LOGISTIC: 7}
BYTES_PER_ENTRY = 28  # a CSR entry (12) and LIBLINEAR's node (16)
SECONDS_BETWEEN_LOOKS = 0.1


def check(problem, run):
    """Raise ConfigError, with the reason, for what LIBLINEAR cannot do."""
    if problem.intercept == "free" and problem.loss.code not in PRIMAL:
        raise ConfigError(
            "solver liblinear: hinge loss is solved in the dual, where LIBLINEAR's intercept is always penalised. "
            "Use --intercept penalised, or the solver dual-cd."
        )
    if problem.intercept != "free" and problem.centre.mean_code.any():
        raise ConfigError(
            f"solver liblinear: with the intercept {problem.intercept!r} a centred embedding is another problem than "
            "LIBLINEAR's. Use --no-center."
        )
    if (problem.costs != 1).any():
        raise ConfigError("solver liblinear: sample weights and class weights are not supported. Use dual-cd.")
    encoder = problem.encoder
    per_feature = encoder.n_basis if encoder.is_local and encoder.penalty_order else encoder.n_local
    needed = len(problem.targets) * encoder.n_features * per_feature * BYTES_PER_ENTRY
    if needed > run.memory.left:
        raise ConfigError(
            f"solver liblinear: the explicit embedding needs {needed / 1e6:,.0f} MB, above what is left of the memory "
            f"limit, {run.memory.left / 1e6:,.0f} MB. Raise --memory-limit, or use dual-cd, which never builds it."
        )


def embed(problem):
    """All rows as a float64 CSR matrix of s phi^d."""
    parts = [encode(problem.encoder, chunk.dense(), penalised=True) for chunk in problem.source.chunks()]
    scale = np.repeat(problem.centre.scale, problem.encoder.n_basis)
    return (scipy.sparse.vstack(parts, format="csr") @ scipy.sparse.diags_array(scale)).tocsr().astype(np.float64)


class Messages:
    """What LIBLINEAR prints: in no other way it tells that it stopped before its tolerance.

    Parameters
    ----------
    parameter : liblinearutil.parameter
        Told to print here.
    """

    def __init__(self, parameter):
        self.parts = []
        # ctypes keeps no reference to a callback: it lives as long as this object.
        self.callback = parameter.print_func = type(parameter.print_func)(self.parts.append)

    @property
    def warning(self):
        """The first warning, or None."""
        lines = b"".join(self.parts).decode(errors="replace").splitlines()
        return next((line.removeprefix("WARNING: ") for line in lines if line.startswith("WARNING: ")), None)


def call_until_stopped(function, should_stop):
    """What `function` returns; KeyboardInterrupt as soon as a stop is asked for.

    Python hears of Ctrl-C between two of its own steps only, and all of LIBLINEAR's run is one: it goes to a thread
    that can be left behind.
    """
    outcome = Future()

    def work():
        try:
            outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    while not wait([outcome], timeout=SECONDS_BETWEEN_LOOKS).done:
        if should_stop():
            raise KeyboardInterrupt
    return outcome.result()


def solve(problem, run):
    """Train by LIBLINEAR.

    Parameters
    ----------
    problem : Problem
        What is minimised.
    run : Run
        `tol` is LIBLINEAR's own tolerance -e; `options` holds certify.

    Returns
    -------
    SolverResult
        With a certificate only if `certify` asks for the two more reads.

    Raises
    ------
    ConfigError
        For what LIBLINEAR cannot do, and where the package liblinear-official is missing.
    KeyboardInterrupt
        Where a stop is asked for: LIBLINEAR has no model until it ends.

    Warns
    -----
    ConvergenceWarning
        Where LIBLINEAR stopped before its tolerance.
    """
    try:
        from liblinear import liblinearutil
    except ImportError:
        raise ConfigError(
            "solver liblinear: needs the package liblinear-official. Install it by pip install 'linadd[baseline]'."
        ) from None
    check(problem, run)
    encoder, code, is_free = problem.encoder, problem.loss.code, problem.intercept == "free"
    command = f"-s {(PRIMAL if is_free else DUAL)[code]} -c {{cost:.17g}} -e {run.tol:.17g} -q"
    scale = {"free": 1.0, "penalised": problem.intercept_scale, "none": -1.0}[problem.intercept]
    command += f" -B {scale:.17g}" + (" -R" if is_free else "")
    embedding = scipy.sparse.csr_matrix(embed(problem))
    coef = np.zeros((encoder.n_features, encoder.n_basis, problem.n_outputs), np.float32)
    intercept = np.zeros(problem.n_outputs)
    order = encoder.penalty_order if encoder.is_local else 0
    ctypes.CDLL(None).srand(run.plan.seed)  # LIBLINEAR permutes rows by rand() of the C library
    stopped_by = None
    for o, positive in enumerate(problem.positive):
        signs = np.where(problem.targets == positive, 1.0, -1.0)
        parameter = liblinearutil.parameter(command.format(cost=problem.cost[o]))
        messages = Messages(parameter)
        task = partial(liblinearutil.train, liblinearutil.problem(signs, embedding), parameter)
        model = call_until_stopped(task, run.should_stop)
        stopped_by = stopped_by or messages.warning
        w, intercept[o] = model.get_decfun()  # of +1, which LIBLINEAR puts first
        w = np.reshape(w, (encoder.n_features, encoder.n_basis))
        coef[:, :, o] = problem.centre.scale[:, None] * penalty.from_penalised(w, order)
    reads, certificate = 1, None
    if run.options["certify"]:
        certificate, intercept = certify_primal(problem, run.memory, coef, intercept, run.n_threads)
        reads += 2
    if stopped_by is not None:
        warnings.warn(
            f"solver liblinear: stopped before its tolerance {run.tol:g}: {stopped_by}. Raise tol, lower C, or use "
            "dual-cd.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return SolverResult(coef, intercept, stopped_by is None, 1, reads, [], certificate)
