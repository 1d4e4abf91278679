"""Scores of candidate import vectors by one Newton step, for all candidates at once (design page 4.3).

With K_S, W = P (1 - P) and G = K_S' W K_S + lam K_SS at the present coefficients, the step on S + {l} has

    c = K_S' W k_l + lam K_Sl,    e = k_l' W k_l + lam K_ll,    r = k_l' (W f + y - P),    a0 = G^-1 K_S' (W f + y - P)
    d = G^-1 c,    t = (r - c' a0) / (e - c' d),    coefficients (a0 - d t, t)

and its score is the exact objective H there. Several outputs take their steps side by side and share one objective.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from linadd.sparse_kernel.kernel_base import row_slices
from linadd.sparse_kernel.linear_algebra import jittered_cholesky

__all__ = ["CandidateBlock", "Step", "one_step_candidates"]

# A candidate whose column depends on the chosen ones to this relative accuracy adds nothing.
SCHUR_MARGIN = 1e-10
# Rows are worked off in blocks whose temporary arrays stay in a core's cache.
CACHE_BYTES = 2**20


@dataclass
class Step:
    """A Newton step on the problem enlarged by k training rows: what `ImportState.add` needs to take it."""

    indices: list
    columns: np.ndarray  # K(X, rows)', (k, n)
    new_coef: np.ndarray  # coefficients of the new vectors, (n_outputs, k)
    old_coef: np.ndarray  # those of the others after the step, (n_outputs, q)
    border: np.ndarray  # G between the others and the new vectors, (n_outputs, q, k)
    corner: np.ndarray  # G of the new vectors, (n_outputs, k, k)


def one_step_candidates(state, candidates):
    """Yield the candidates' scores as `CandidateBlock`s of bounded size.

    Parameters
    ----------
    state : ImportState
    candidates : int64 array (n_candidates,)
    """
    P = state.likelihood.probabilities(state.F)
    W = P * (1.0 - P)
    response = W * state.F + (state.likelihood.targets - P)
    factors = [jittered_cholesky(state.newton_block(P, c, c)) for c in range(len(P))]
    if len(P) == 1:
        state.factor = factors[0]
    start = np.stack([solved(factor, state.K1 @ r) for factor, r in zip(factors, response, strict=True)])
    for block in row_slices(len(candidates), len(state.kernel_diag) * (1 + len(P))):
        yield CandidateBlock(state, candidates[block], W, response, factors, start)


def solved(factor, right):
    """G^-1 right from the Cholesky factor of G; for no import vectors, the empty array."""
    return cho_solve((factor, True), right) if len(factor) else right


class CandidateBlock:
    """Some candidates, their scores, and the steps to them.

    Attributes
    ----------
    objectives : float64 array (m,)
        H after one Newton step with each candidate; infinite where it depends on the import vectors.
    """

    def __init__(self, state, candidates, W, response, factors, start):
        self.state, self.candidates, self.W, self.start = state, candidates, W, start
        n_outputs, m = len(W), len(candidates)
        self.gram = state.gram(candidates)
        self.K_S = state.K1[:, candidates].copy()
        self.K_S[: state.n_fixed] = 0.0
        self.pieces = row_slices(len(self.gram), m * (1 + n_outputs), CACHE_BYTES)
        self.border = np.zeros((n_outputs, state.size, m))
        self.corner, self.response = np.zeros((n_outputs, m)), np.zeros((n_outputs, m))
        for rows in self.pieces:
            for c in range(n_outputs):
                weighted = self.gram[rows] * W[c, rows, None]
                self.border[c] += state.K1[:, rows] @ weighted
                self.corner[c] += np.einsum("ij,ij->j", self.gram[rows], weighted)
                self.response[c] += response[c, rows] @ self.gram[rows]
        self.border += state.reg_lambda * self.K_S
        self.corner += state.reg_lambda * state.kernel_diag[candidates]
        self.direction = np.stack([solved(factor, b) for factor, b in zip(factors, self.border, strict=True)])
        self.response -= np.einsum("cq,cqm->cm", start, self.border)
        self.objectives = self._scores()

    def _scores(self):
        schur = self.corner - np.sum(self.border * self.direction, axis=1)
        self.usable = np.all(schur > SCHUR_MARGIN * self.corner, axis=0)
        new = np.where(self.usable, self.response, 0.0) / np.where(self.usable, schur, 1.0)
        old = self.start[:, :, None] - self.direction * new[:, None]
        state, losses = self.state, np.zeros(len(self.candidates))
        for rows in self.pieces:
            F = np.empty((len(new), rows.stop - rows.start, len(losses)))
            for c in range(len(new)):
                np.matmul(state.K1[:, rows].T, old[c], out=F[c])
                F[c] += self.gram[rows] * new[c]
            losses += state.likelihood.losses(F, rows)
        penalty = np.einsum("cqm,qk,ckm->m", old, state.penalty, old, optimize=True)
        penalty += np.sum(new * (2 * np.sum(self.K_S * old, axis=1) + new * state.kernel_diag[self.candidates]), axis=0)
        return np.where(self.usable, losses + 0.5 * state.reg_lambda * penalty, np.inf)

    def step_to(self, chosen):
        """The `Step` to the candidates at the given positions of the block, taken together."""
        border, direction = self.border[:, :, chosen], self.direction[:, :, chosen]
        corner = self._corner(chosen)
        schur = corner - np.einsum("cqk,cql->ckl", border, direction)
        new = np.linalg.solve(schur, self.response[:, chosen, None])[:, :, 0]
        old = self.start - np.einsum("cqk,ck->cq", direction, new)
        indices = [int(index) for index in self.candidates[chosen]]
        return Step(indices, self.gram[:, chosen].T.copy(), new, old, border, corner)

    def _corner(self, chosen):
        """G of the candidates at the given positions among themselves, (n_outputs, k, k)."""
        penalty = self.state.reg_lambda * self.gram[np.ix_(self.candidates[chosen], chosen)]
        corner = np.repeat(penalty[None], len(self.W), axis=0)
        for rows in self.pieces:
            gram = self.gram[rows][:, chosen]
            for c in range(len(corner)):
                root = gram * np.sqrt(self.W[c, rows, None])  # a product with itself takes half the time
                corner[c] += root.T @ root
        return corner

    def best_group(self, size):
        """Positions of up to `size` candidates, greedily by the quadratic model of H around the present coefficients.

        The first is the one of least score. Every choice reduces the model by (r - c' a0)^2 / (2 (e - c' d)), summed
        over outputs, and is then eliminated from the others, as a pivot of a Cholesky factorisation: what depends on
        the choices so far, they themselves included, is left with a Schur complement of 0 and never chosen.
        """
        chosen = [int(np.argmin(self.objectives))]
        if size == 1:
            return chosen
        schur = self._corner(np.arange(len(self.candidates)))
        schur -= np.einsum("cqk,cql->ckl", self.border, self.direction, optimize=True)
        response, usable = self.response.copy(), self.usable.copy()
        while True:
            pivot = chosen[-1]
            row = schur[:, pivot] / np.sqrt(schur[:, pivot, pivot, None])
            response -= row * (response[:, pivot] / np.sqrt(schur[:, pivot, pivot]))[:, None]
            schur -= row[:, :, None] * row[:, None]
            rest = np.diagonal(schur, axis1=1, axis2=2)
            usable &= np.all(rest > SCHUR_MARGIN * self.corner, axis=0)
            if len(chosen) == size or not usable.any():
                return chosen
            gain = np.sum(response**2 / np.where(usable, rest, 1.0), axis=0)
            chosen.append(int(np.argmax(np.where(usable, gain, -1.0))))
