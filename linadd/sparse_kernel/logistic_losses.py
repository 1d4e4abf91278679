"""Compiled sums of logistic losses over rows, for many candidate models at once."""

import math

import numpy as np

from linadd._jit import compiled_sums

__all__ = ["logistic_losses", "softmax_losses"]

# A product of this many factors in (1, 2] stays below 2^512: one logarithm is enough for all of them.
GROUP = 512


@compiled_sums
def add_logistic_losses(F, decay, target, out):
    """out[k] += sum_i log(1 + exp(F[i, k])) - target[i] F[i, k], with decay = exp(-|F|).

    log(1 + e^f) = max(f, 0) + log(1 + e^-|f|); the last terms are multiplied up before their logarithm is taken.
    """
    n_rows, n_models = F.shape
    product = np.empty(n_models)
    for start in range(0, n_rows, GROUP):
        product[:] = 1.0
        for i in range(start, min(start + GROUP, n_rows)):
            for k in range(n_models):
                out[k] += max(F[i, k], 0.0) - target[i] * F[i, k]
                product[k] *= 1.0 + decay[i, k]
        for k in range(n_models):
            out[k] += math.log(product[k])


@compiled_sums
def add_softmax_losses(F, targets, has_reference, out):
    """out[k] += sum_i log(sum_c exp F[c, i, k]) - sum_c targets[c, i] F[c, i, k]; a reference is a class of F = 0."""
    n_outputs, n_rows, n_models = F.shape
    for i in range(n_rows):
        for k in range(n_models):
            top = 0.0 if has_reference else F[0, i, k]
            chosen = 0.0
            for c in range(n_outputs):
                top = max(top, F[c, i, k])
                chosen += targets[c, i] * F[c, i, k]
            total = math.exp(-top) if has_reference else 0.0
            for c in range(n_outputs):
                total += math.exp(F[c, i, k] - top)
            out[k] += top + math.log(total) - chosen


def logistic_losses(F, decay, target):
    """sum_i log(1 + exp(F_ik)) - target_i F_ik for every model k: float64 (n_models,).

    Parameters
    ----------
    F : float64 array (n_rows, n_models), C-contiguous
    decay : float64 array of the same shape
        exp(-|F|).
    target : float64 array (n_rows,)
        0 or 1.
    """
    out = np.zeros(F.shape[1])
    add_logistic_losses(F, decay, np.ascontiguousarray(target), out)
    return out


def softmax_losses(F, targets, has_reference):
    """-sum_i log P(y_i) for every model k: float64 (n_models,).

    Parameters
    ----------
    F : float64 array (n_outputs, n_rows, n_models), C-contiguous
    targets : float64 array (n_outputs, n_rows)
        One-hot; a row of the reference class is all 0.
    has_reference : bool
        Whether there is one more class with F = 0.
    """
    out = np.zeros(F.shape[2])
    add_softmax_losses(F, np.ascontiguousarray(targets), has_reference, out)
    return out
