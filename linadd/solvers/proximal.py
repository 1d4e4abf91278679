"""Proximal points of w, for large C, where the dual steps alone would take hundreds of passes.

An epoch of dual-cd works on P(w) + kappa/2 |w - c|^2 in place of P [Rockafellar1976]: it raises

    D_c(a) = sum_i conjugate(a_i) - share/2 |sum_i a_i y_i z_i + kappa c|^2,    share = 1 / (1 + kappa)
    w      = share (sum_i a_i y_i z_i + kappa c)

so that a dual step s moves w by share s z_i against the squared norm share |z_i|^2: it goes up to 1 + kappa times as
far. Between epochs the centre moves to w. At rest w = c = sum_i a_i y_i z_i, the optimum of P. Until then the
certificate finds the duals' own point sum_i a_i y_i z_i = w + kappa (w - c), and exactly 1/2 kappa^2 |w - c|^2 of its
gap are the distance of the two points: nearly all of it where kappa is too large, nearly nothing where it is too small.
So each epoch steers that part.

With one sweep an epoch duals approach their best for this centre at a rate of (1 + kappa) / M, M = C loss'' |z|^2, and
the centre moves on at one of 1 / (1 + kappa). Where kappa^2 = M the two are about equal, and the passes grow with the
root of M and not with M itself; far above, the centre is the slow one. Momentum of the centre [Lin2015] was tried: it
gains nothing and, where one sweep is too little for an epoch, never comes to rest.
"""

import numpy as np

from linadd.losses import loss_curvature
from linadd.solvers.stopping import squared_norms

GAP_PART = 0.1  # of the estimated gap, that the distance of the two points is steered to
MOST_CHANGE = 2.0  # of kappa from one epoch to the next, either way
MOST_KAPPA = 2.0  # times the one of equal rates
KINK = 2.0  # what stands for loss'' of the hinge: that of the squared hinge


class Proximal:
    """The centre of each output's proximal term.

    Parameters
    ----------
    problem : Problem
        For norms and costs.
    shape : tuple
        Of the coefficients, (n_groups, n_features, basis, lanes).
    is_on : bool
        Else kappa stays 0, and w the point of the duals.

    Attributes
    ----------
    kappa : float64 array, shape (n_outputs,)
        Strength of the proximal term in this epoch.
    """

    def __init__(self, problem, shape, is_on):
        self.problem = problem
        self.centre = np.zeros(shape, np.float32)
        curvature = loss_curvature(problem.loss.code, 0.0) if problem.loss.is_smooth else KINK
        condition = curvature * problem.cost * problem.centre.mean_norm
        self.most = MOST_KAPPA * np.sqrt(condition)
        # Below 1 the first steps are nearly right by themselves.
        self.kappa = self.next_kappa = np.minimum(1.0, condition) ** 2 * is_on

    @property
    def share(self):
        """1 / (1 + kappa), float64 (n_outputs,)."""
        return 1.0 / (1.0 + self.kappa)

    def lanes(self, values):
        """Values of the outputs (n_outputs,) as factors of coefficients; 0 for lanes without an output."""
        n_groups, lanes = self.centre.shape[0], self.centre.shape[3]
        padded = np.zeros(n_groups * lanes)
        padded[: len(values)] = values
        return padded.reshape(n_groups, 1, 1, lanes)

    def dual_coef(self, coef):
        """v of sum_i a_i y_i z_i, float64 of the shape of `coef`, the v of w."""
        return coef + self.lanes(self.kappa) * (coef - self.centre.astype(np.float64))

    def steer(self, difference, gap):
        """Set the next kappa by the part of an estimated gap P - D (n_outputs,) that the two points' difference is."""
        part = 0.5 * squared_norms(self.problem, self.problem.encoder_coef(difference))
        aim = GAP_PART * np.maximum(gap, 0.0)
        factor = np.sqrt(np.divide(aim, part, out=np.ones_like(part), where=part > 0))
        self.next_kappa = np.minimum(self.kappa * np.clip(factor, 1 / MOST_CHANGE, MOST_CHANGE), self.most)

    def move(self, coef):
        """Move the centre to w, take the next kappa, and change coef, in place, to the w of the same duals."""
        own, self.kappa = self.dual_coef(coef), self.next_kappa
        self.centre[...] = coef
        coef[...] = self.lanes(self.share) * (own + self.lanes(self.kappa) * self.centre)

    def rest(self):
        """Begin at a w that is the point of its duals."""
        self.kappa = np.zeros_like(self.kappa)
