"""What training warns of, and what to do about it: constant features, a gap above the tolerance."""

import warnings

import numpy as np

from linadd.bounds import bound
from linadd.errors import ConvergenceWarning, DataWarning

__all__ = ["warn_of_convergence", "warn_of_data"]


def warn_of_data(census, encoder, stacklevel=4):
    """Say which features are constant.

    Parameters
    ----------
    census : Census
        Of the training rows.
    encoder : Encoder
        Fitted to it.
    stacklevel : int
        Frames between here and the user's call.
    """
    if len(encoder.constant):
        names = [str(census.column_name(j)) for j in encoder.constant[:5]]
        more = f" and {len(encoder.constant) - 5} more" if len(encoder.constant) > 5 else ""
        listed = ", ".join(names) + more
        message = f"{census.origin}: constant features contribute nothing: {listed}."
        warnings.warn(message, DataWarning, stacklevel=stacklevel)


def warn_of_convergence(model, options, census):
    """Say how far from the optimum the solver stopped, and what to change; nothing if its rule was met.

    Parameters
    ----------
    model : AdditiveModel
        As trained.
    options : Options
        What it was trained with.
    census : Census
        Of the training rows.
    """
    summary = model.summary
    if summary["converged"] or summary["interrupted"] or summary["gap"] is None:
        return
    worst = int(np.argmax(summary["gaps"]))
    where = f" (output {model.classes.tolist()[worst]!r})" if model.n_outputs > 1 else ""
    gap = f"a relative duality gap of {bound(summary['gap'])}{where}"
    if options.stop_on == "violation":
        reached = f"a violation above tol={options.tol:g}, and {gap}"
    else:
        reached = f"{gap}, above tol={options.tol:g}"
    passes = f"{summary['passes']} pass{'es' if summary['passes'] > 1 else ''}"
    on_codes = summary["gap_on_codes"]
    if on_codes is not None and on_codes <= options.tol:
        remedy = (
            f"precision={options.precision!r} is the likely cause: on the codes in memory the gap is {on_codes:.2g}. "
            "Use a finer precision, or accept it by a larger tol."
        )
    else:
        remedy = f"Raise max_epochs, lower C={options.C:g}, or accept it by a larger tol."
        remedy += scale_remedy(census, options)
    warnings.warn(
        f"stopped after {passes} at {reached}. {remedy}",
        ConvergenceWarning,
        stacklevel=4,
    )


def scale_remedy(census, options):
    """What to do where features are taken in their own units and these differ much; else nothing."""
    in_units = options.scale == "libspline" or (options.scale == "none" and options.encoder == "identity")
    span = census.maximum - census.minimum
    low, high = int(np.argmin(np.where(span > 0, span, np.inf))), int(np.argmax(span))
    if not in_units or span[high] < 100 * span[low]:
        return ""
    names = [census.column_name(j) for j in (low, high)]
    return (
        f" The features are on unlike scales, column {names[0]} spans {span[low]:.2g} and column {names[1]} "
        f"{span[high]:.2g}: scale='unit' makes them alike."
    )
