"""Laws of every loss in the list: what a solver relies on, for any margin, dual variable, norm and cost.

Each check takes a row of LOSSES. Derivatives are compared with central differences: their error is the third
derivative (below 1) times h^2 / 6, and rounding, eps times the value over h.
"""

import numpy as np

from linadd import losses

COSTS = (0.01, 0.7, 1.0, 30.0)
FAR = (1e9, 1e300)
rng = np.random.default_rng(0)
MARGINS = np.sort(np.concatenate([rng.uniform(-6, 6, 60), [0.0], rng.uniform(-300, 300, 10)]))
GRID = np.concatenate([np.geomspace(1e-12, 1, 40), np.linspace(0.02, 0.98, 33)])
SMOOTH = MARGINS[np.abs(MARGINS - 1.0) > 1e-4]  # the losses may have a kink at 1


def difference(function, x, h):
    """Central difference of a scalar function."""
    return (function(x + h) - function(x - h)) / (2 * h)


def inner_duals(loss, cost):
    """Dual variables inside the box."""
    return np.array([1e-3, 0.1, 0.4, 0.9, 0.999]) * (cost if loss.is_bounded else 5 * cost)


def all_duals(loss, cost):
    """Dual variables with their bounds."""
    return np.concatenate([[0.0], inner_duals(loss, cost), [cost] if loss.is_bounded else []])


def dual_objective(loss, new, dual, margin, norm, cost):
    """D along one dual variable, up to a constant: the margin moves by norm times the step."""
    step = new - dual
    return losses.conjugate(loss.code, new, cost) - margin * step - 0.5 * norm * step * step


def check_derivatives(loss):
    """Slope and curvature equal central differences of value and slope."""
    for m in SMOOTH:
        slope, curvature = losses.loss_slope(loss.code, m), losses.loss_curvature(loss.code, m)
        value = losses.loss_value(loss.code, m)
        assert abs(slope - difference(lambda x: losses.loss_value(loss.code, x), m, 1e-5)) < 1e-9 * (1 + value)
        rough = difference(lambda x: losses.loss_slope(loss.code, x), m, 1e-5)
        assert abs(curvature - rough) < 1e-9 * (1 + abs(slope))


def check_shape(loss):
    """A loss is convex, not negative, never rises with the margin, and punishes the wrong side more than the right."""
    values = np.array([losses.loss_value(loss.code, m) for m in MARGINS])
    slopes = np.array([losses.loss_slope(loss.code, m) for m in MARGINS])
    assert (values >= 0).all() and (slopes <= 0).all() and (np.diff(slopes) >= 0).all()
    # Convex: above each of its tangents; rounding of the largest terms.
    tangents = values[:, None] + slopes[:, None] * (MARGINS - MARGINS[:, None])
    assert (values >= tangents - 1e-11 * (1 + np.abs(tangents))).all()
    assert losses.loss_value(loss.code, -1.0) > losses.loss_value(loss.code, 1.0) >= 0.0
    assert all(losses.loss_curvature(loss.code, m) >= 0 for m in MARGINS)


def check_smoothness_claim(loss):
    """`is_smooth`: the slope has no jump at the only place where it might."""
    jump = losses.loss_slope(loss.code, 1 + 1e-9) - losses.loss_slope(loss.code, 1 - 1e-9)
    assert (jump < 1e-6) == loss.is_smooth


def check_conjugate_pair(loss):
    """Fenchel: C loss(m) >= conjugate(a) - a m, equal at a = -C loss'(m)."""
    for cost in COSTS:
        for m in MARGINS:
            primal = cost * losses.loss_value(loss.code, m)
            for a in all_duals(loss, cost):
                assert primal >= losses.conjugate(loss.code, a, cost) - a * m - 1e-12 * (1 + cost) * (1 + m * m)
            best = -cost * losses.loss_slope(loss.code, m)
            touching = losses.conjugate(loss.code, best, cost) - best * m
            assert abs(primal - touching) <= 1e-12 * (1 + cost) * (1 + m * m)
            assert 0 <= best <= losses.dual_upper(loss.code, cost)


def check_conjugate_derivatives(loss):
    """Slope and curvature of the conjugate equal central differences inside the box, and it is concave."""
    for cost in COSTS:
        for a in inner_duals(loss, cost):
            h = 1e-5 * min(a, cost - a if loss.is_bounded else a)
            slope, curvature = (f(loss.code, a, cost) for f in (losses.conjugate_slope, losses.conjugate_curvature))
            # h is relative to the distance from the bound, where the logistic conjugate bends without limit.
            rough = difference(lambda x: losses.conjugate(loss.code, x, cost), a, h)  # noqa: B023 - called at once
            assert abs(slope - rough) < 1e-5 * (1 + abs(slope))
            rough = difference(lambda x: losses.conjugate_slope(loss.code, x, cost), a, h)  # noqa: B023
            assert abs(curvature - rough) <= 1e-5 * abs(curvature)
            assert curvature <= 0


def check_box(loss):
    """`is_bounded`: duals end at C, or nowhere; the conjugate vanishes at 0."""
    for cost in COSTS:
        assert losses.dual_upper(loss.code, cost) == (cost if loss.is_bounded else np.inf)
        assert losses.conjugate(loss.code, 0.0, cost) == 0.0
        assert np.isfinite([losses.conjugate(loss.code, a, cost) for a in all_duals(loss, cost)]).all()


def check_dual_step(loss):
    """The step reaches the greatest value of D along its variable, against a search over a fine grid."""
    for cost in COSTS:
        for margin in (-30.0, -2.0, 0.3, 1.0, 4.0, 40.0):
            for norm in (0.0, 1e-3, 1.0, 50.0, 1e5):
                for dual in all_duals(loss, cost):
                    new = losses.dual_step(loss.code, dual, margin, norm, cost)
                    assert 0.0 <= new <= losses.dual_upper(loss.code, cost)
                    reach = cost if loss.is_bounded else 2 * max(dual, new, cost)
                    grid = np.concatenate([[0.0], GRID * reach, [dual]])
                    best = max(dual_objective(loss, a, dual, margin, norm, cost) for a in grid)
                    reached = dual_objective(loss, new, dual, margin, norm, cost)
                    assert reached >= best - 1e-10 * max(1.0, abs(best), norm * dual * dual)
                    # From there nothing is left to do; Newton ends at 1e-9 of the margin.
                    again = losses.dual_step(loss.code, new, margin + norm * (new - dual), norm, cost)
                    assert abs(again - new) <= 1e-7 * max(cost, new)


def check_far_margins(loss):
    """Finite, and with the right limits, for margins that only a diverging run or a wild value can bring."""
    for far in FAR:
        assert losses.loss_value(loss.code, far) == losses.loss_slope(loss.code, far) == 0.0
        assert losses.loss_curvature(loss.code, far) == 0.0
        assert losses.loss_slope(loss.code, -far) < -0.5
        assert np.isfinite(losses.loss_curvature(loss.code, -far))
        for cost in COSTS:
            for dual in all_duals(loss, cost):
                assert losses.dual_step(loss.code, dual, far, 1.0, cost) <= dual
                assert dual <= losses.dual_step(loss.code, dual, -far, 1.0, cost) < np.inf
    assert losses.loss_value(loss.code, -1e9) >= 1e9
    assert np.isfinite(losses.loss_value(loss.code, -1e9))


def check_projected_gradient(loss):
    """Inside the box the gradient of -D; at a bound only what points inwards; 0 where the step does not move."""
    for cost in COSTS:
        for margin in (-30.0, -2.0, 0.3, 1.0, 4.0, 40.0):
            for dual in inner_duals(loss, cost):
                gradient = losses.projected_gradient(loss.code, dual, margin, cost)
                assert gradient == margin - losses.conjugate_slope(loss.code, dual, cost)
                step = losses.dual_step(loss.code, dual, margin, 1.0, cost) - dual
                assert step * gradient <= 0 and (abs(gradient) < 1e-9) == (abs(step) < 1e-9 * cost)
            assert losses.projected_gradient(loss.code, 0.0, margin, cost) <= 0.0
            if loss.is_bounded:
                assert losses.projected_gradient(loss.code, cost, margin, cost) >= 0.0


def check_rounded_bound(loss):
    """A dual that float32 rounded to either side of C counts as C: no violation that no step can remove."""
    if not loss.is_bounded:
        return
    for cost in (0.01, 0.1, 0.7, 1.0, 3e-7, 1e5):
        for dual in (np.float64(np.float32(cost)), cost):
            assert losses.projected_gradient(loss.code, dual, -40.0, cost) == 0.0
            assert 0.0 < losses.projected_gradient(loss.code, dual, 40.0, cost) < 100.0
            assert np.isfinite(losses.conjugate_slope(loss.code, dual, cost))
            assert -np.inf < losses.conjugate_curvature(loss.code, dual, cost) <= 0.0
            assert np.isfinite(losses.conjugate(loss.code, dual, cost))


def check_zero_cost(loss):
    """A row of cost 0 keeps its dual variable at 0 and adds nothing to the dual objective."""
    for margin in (-5.0, 1.0, 5.0):
        for norm in (0.0, 1.0):
            assert losses.dual_step(loss.code, 0.0, margin, norm, 0.0) == 0.0
    assert losses.conjugate(loss.code, 0.0, 0.0) == 0.0


CHECKS = [value for name, value in list(globals().items()) if name.startswith("check_")]
