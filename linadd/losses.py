"""Loss functions of the margin m = y f(x), and all that the solvers need of them, as scalar compiled functions.

With C the cost of a row and a its dual variable, P sums C loss(m) and D sums conjugate(a) - |w|^2 / 2:

    hinge           loss max(0, 1 - m)          conjugate a                                            0 <= a <= C
    squared hinge   loss max(0, 1 - m)^2        conjugate a - a^2 / (4 C)                              0 <= a
    logistic        loss ln(1 + exp(-m))        conjugate -a ln(a/C) - (C - a) ln(1 - a/C)             0 < a < C

The dual steps are those of Hsieh et al. (hinge, squared hinge) and of Yu, Huang and Lin (logistic) [Hsieh2008; Yu2011].
A loss is one row of LOSSES and one branch in each dispatcher. For the logistic loss a = 0 stands for "not seen yet".

Solvers store duals in float32, so C - a is known to half an ulp of C: a dual that close to C stands at its bound, and
slopes of the logistic conjugate are taken no closer. A row of cost 0 has a = 0 and no slope.
"""

from typing import NamedTuple

import numpy as np

from linadd._jit import compiled

HINGE, SQUARED_HINGE, LOGISTIC = 0, 1, 2
DUAL_ROUNDING = 2.0**-24  # half an ulp of float32, relative


class Loss(NamedTuple):
    """What the rest of the program knows of a loss."""

    code: int  # branch in the dispatchers
    is_smooth: bool  # has a derivative everywhere
    is_bounded: bool  # the dual variable is at most C
    is_shrinkable: bool  # dual variables reach their bounds
    has_probabilities: bool  # 1 / (1 + exp(-f)) estimates P(y = +1)


LOSSES = {
    "hinge": Loss(HINGE, False, True, True, False),
    "squared_hinge": Loss(SQUARED_HINGE, True, False, True, False),
    "logistic": Loss(LOGISTIC, True, True, False, True),
}


@compiled
def log1p_exp(x):
    """ln(1 + exp(x)) without overflow."""
    return max(x, 0.0) + np.log1p(np.exp(-abs(x)))


@compiled
def sigmoid(x):
    """1 / (1 + exp(-x)) without overflow."""
    z = np.exp(-abs(x))
    return (1.0 if x >= 0 else z) / (1.0 + z)


@compiled
def loss_value(code, margin):
    """Loss at a margin."""
    if code == HINGE:
        return max(0.0, 1.0 - margin)
    if code == SQUARED_HINGE:
        return max(0.0, 1.0 - margin) ** 2
    return log1p_exp(-margin)


@compiled
def loss_slope(code, margin):
    """Derivative of the loss with respect to the margin, never positive; at the hinge's kink the one-sided 0."""
    if code == HINGE:
        return -1.0 if margin < 1.0 else 0.0
    if code == SQUARED_HINGE:
        return -2.0 * max(0.0, 1.0 - margin)
    return -sigmoid(-margin)


@compiled
def loss_curvature(code, margin):
    """Second derivative with respect to the margin, where it exists."""
    if code == HINGE:
        return 0.0
    if code == SQUARED_HINGE:
        return 2.0 if margin < 1.0 else 0.0
    p = sigmoid(margin)
    return p * (1.0 - p)


@compiled
def conjugate(code, dual, cost):
    """A row's term of the dual objective."""
    if code == HINGE or dual <= 0.0:
        return dual
    if code == SQUARED_HINGE:
        return dual - dual * dual / (4.0 * cost)
    rest = max(cost - dual, 0.0)
    entropy = dual * np.log(dual / cost)
    return -entropy - rest * np.log(rest / cost) if rest > 0.0 else -entropy


@compiled
def conjugate_slope(code, dual, cost):
    """Derivative of `conjugate` with respect to the dual variable; infinite at the logistic loss's 0."""
    if code == HINGE:
        return 1.0
    if code == SQUARED_HINGE:
        return 1.0 - dual / (2.0 * cost)
    return np.log(max(cost - dual, cost * DUAL_ROUNDING) / dual)


@compiled
def conjugate_curvature(code, dual, cost):
    """Second derivative of `conjugate`, never positive."""
    if code == HINGE:
        return 0.0
    if code == SQUARED_HINGE:
        return -0.5 / cost
    return -cost / (dual * max(cost - dual, cost * DUAL_ROUNDING))


@compiled
def dual_upper(code, cost):
    """Greatest value of a dual variable."""
    return np.inf if code == SQUARED_HINGE else cost


@compiled
def dual_step(code, dual, margin, norm, cost):
    """The dual variable that maximises D along itself, from its present value, margin and squared row norm.

    A row of norm 0 without curvature of its own (hinge) moves to the bound that its gradient points to.
    """
    if code == LOGISTIC:
        return logistic_step(dual, margin, norm, cost)
    gradient = margin - 1.0
    if code == SQUARED_HINGE:
        return max(dual - (2.0 * cost * gradient + dual) / (2.0 * cost * norm + 1.0), 0.0)
    if norm <= 0.0:
        return cost if gradient < 0.0 else (0.0 if gradient > 0.0 else dual)
    return min(max(dual - gradient / norm, 0.0), cost)


@compiled
def logistic_step(dual, margin, norm, cost):
    """Newton on the margin m: the root of m0 + norm (cost sigmoid(-m) - dual) - m, safeguarded by its bracket.

    The function falls with a slope between -1 - norm cost / 4 and -1, so the root lies between m0 - norm dual and
    m0 + norm (cost - dual); in m neither end of the dual's range loses digits.
    """
    low, high = margin - norm * dual, margin + norm * (cost - dual)
    m = min(max(margin, low), high)
    step = high - low
    for _ in range(100):
        p = sigmoid(-m)
        value = margin + norm * (cost * p - dual) - m
        if value > 0.0:
            low = m
        else:
            high = m
        newton = value / (1.0 + norm * cost * p * (1.0 - p))
        # Where the curve is flat on both sides of the root Newton may go to and fro: it must halve its last step.
        is_safe = abs(newton) <= 0.5 * abs(step) and low <= m + newton <= high
        step = newton if is_safe else 0.5 * (low + high) - m
        m += step
        if abs(step) <= 1e-9 * (1.0 + abs(m)):
            break
    return cost * sigmoid(-m)


@compiled
def projected_gradient(code, dual, margin, cost):
    """Gradient of the dual minimisation, 0 where it points out of the box; its size is a row's violation."""
    gradient = margin - conjugate_slope(code, dual, cost)
    if dual <= 0.0:
        return min(gradient, 0.0)
    if dual >= dual_upper(code, cost) * (1.0 - 2.0 * DUAL_ROUNDING):
        return max(gradient, 0.0)
    return gradient
