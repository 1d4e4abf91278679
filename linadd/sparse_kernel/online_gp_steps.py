"""One example of the sparse online Gaussian process: site out, moments, site in, basis kept within its budget.

The posterior of f at any x is mean alpha' k and variance k(x, x) + k' C k with k = K(basis, x); Q is the inverse of
G = K(basis, basis). Site i is a Gaussian of precision lambda_i and mean a_i in p_i' f_basis. Sections 7.1 to 7.3 of the
design page "sparse kernel classifiers" [csato2002] state the updates; here they are arranged so that an example costs
four products of a matrix and a vector and one pass that writes C:

- Whether a full basis would drop the new vector again is known before it is added: growing and then removing the same
  vector is exactly the projected update, so that is done instead, and no other site changes.
- A vector that takes another's place changes every p_i by p_ij v. The pairs (j, v) of the last swaps are kept, and a
  site catches up when it is next touched, or all do when the list is full: a row of P then stays in the nearest cache
  while dozens of swaps are applied to it.
- The score by KL divergence needs S = (I + C G)^-1 C, which is -sum_i lambda_i p_i p_i': a sum that is kept up to date.
"""

from typing import NamedTuple

import numpy as np

from linadd._jit import compiled, compiled_sums
from linadd.sparse_kernel.online_gp_likelihoods import derivatives

__all__ = ["MEAN_SCORE", "SCORES", "Posterior", "Settings", "Sites", "Swaps", "catch_up_sites", "process_rows"]

MEAN_SCORE, KL_SCORE = range(2)
SCORES = {"mean": MEAN_SCORE, "kl": KL_SCORE}
LEAST_CURVATURE = 1e-14
LEAST_SLACK = 1e-12


class Posterior(NamedTuple):
    """alpha (m,), C, Q, G and the sum of lambda_i p_i p_i' (m, m), with m = budget + 1, of which `size` (1,) are used.

    `owner` (m,), int64, is the site whose row a basis vector is.
    """

    alpha: np.ndarray
    C: np.ndarray
    Q: np.ndarray
    G: np.ndarray
    site_gram: np.ndarray
    owner: np.ndarray
    size: np.ndarray


class Sites(NamedTuple):
    """Precision and mean (n_sites,), P (n_sites, m), and how many of the listed swaps each row of P has seen."""

    precision: np.ndarray
    mean: np.ndarray
    projection: np.ndarray
    n_swaps_seen: np.ndarray


class Swaps(NamedTuple):
    """The last swaps: slot j (n_kept,), v (n_kept, m), and their `count` (1,)."""

    slot: np.ndarray
    vector: np.ndarray
    count: np.ndarray


class Settings(NamedTuple):
    """Constants of a fit: codes of likelihood and score, and numbers."""

    likelihood: int
    score: int
    bias: float
    slope: float
    novelty_tol: float
    is_frozen: bool


@compiled_sums
def matrix_vector(matrix, vector, size, out):
    """out = matrix @ vector on the first `size` entries."""
    for a in range(size):
        total = 0.0
        row = matrix[a]
        for b in range(size):
            total += row[b] * vector[b]
        out[a] = total


@compiled_sums
def dot(a, b, size):
    """Inner product of the first `size` entries."""
    total = 0.0
    for e in range(size):
        total += a[e] * b[e]
    return total


@compiled_sums
def add_outer(matrix, factor, vector, size):
    """matrix += factor * outer(vector, vector) on the first `size` entries."""
    for a in range(size):
        scaled = factor * vector[a]
        row = matrix[a]
        for b in range(size):
            row[b] += scaled * vector[b]


@compiled_sums
def catch_up(sites, i, swaps, size):
    """Apply the swaps that row i of P has not seen: p += p_j v."""
    row = sites.projection[i]
    for step in range(sites.n_swaps_seen[i], swaps.count[0]):
        factor = row[swaps.slot[step]]
        vector = swaps.vector[step]
        for e in range(size):
            row[e] += factor * vector[e]
    sites.n_swaps_seen[i] = swaps.count[0]


@compiled
def catch_up_sites(sites, swaps, size):
    """Bring every row of P up to date and empty the list of swaps.

    Parameters
    ----------
    sites : Sites
    swaps : Swaps
    size : int
        Basis vectors in use.
    """
    for i in range(sites.precision.shape[0]):
        if sites.precision[i] != 0.0:
            catch_up(sites, i, swaps, size)
        sites.n_swaps_seen[i] = 0
    swaps.count[0] = 0


@compiled
def removal_score(score, alpha, c, q, s):
    """How little is lost by dropping a vector: alpha^2 / (q + c), or the KL divergence of the posteriors."""
    mean_part = alpha * alpha / (q + c)
    if score == MEAN_SCORE:
        return mean_part
    return 0.5 * (mean_part - s / q + np.log1p(c / q))


@compiled
def worst_vector(posterior, settings, out, step):
    """Slot of the lowest score once the new vector is in; `size` if that is the new vector itself.

    `out` is (h, v, v (mu - a), p, lambda) of the site that goes, `step` (C~ k, ehat, gamma, q, r, lambda) of the new
    one.
    """
    h, v, shift, p, old_precision = out
    ck, ehat, gamma, q, r, precision = step
    size = posterior.size[0]
    worst = size
    lowest = removal_score(settings.score, q, r, 1.0 / gamma, -precision)
    for j in range(size):
        alpha = posterior.alpha[j] + shift * h[j] + q * ck[j]
        c = posterior.C[j, j] + v * h[j] * h[j] + r * ck[j] * ck[j]
        s = old_precision * p[j] * p[j] - posterior.site_gram[j, j]
        score = removal_score(settings.score, alpha, c, posterior.Q[j, j] + ehat[j] * ehat[j] / gamma, s)
        if score < lowest:
            worst, lowest = j, score
    return worst


@compiled_sums
def take_out(posterior, j, swaps, scratch):
    """Drop vector j of size + 1 and move the last one into its slot; add the swap to the list. Section 7.3."""
    alpha, C, Q, G, site_gram, owner, size = posterior
    last = size[0]
    q, c, coefficient = Q[j, j], C[j, j], alpha[j]
    q_column, both = scratch[0], scratch[1]
    for e in range(last + 1):
        q_column[e] = Q[e, j]
        both[e] = Q[e, j] + C[e, j]
    for e in range(last + 1):
        alpha[e] -= coefficient / (c + q) * both[e]
    add_outer(C, 1.0 / q, q_column, last + 1)
    add_outer(C, -1.0 / (q + c), both, last + 1)
    add_outer(Q, -1.0 / q, q_column, last + 1)
    for matrix in (C, Q, G):
        for e in range(last + 1):
            matrix[j, e] = matrix[last, e]
        for e in range(last + 1):
            matrix[e, j] = matrix[e, last]
        matrix[j, j] = matrix[last, last]
    alpha[j], owner[j] = alpha[last], owner[last]
    vector = swaps.vector[swaps.count[0]]
    for e in range(last):
        vector[e] = -q_column[e] / q
    vector[j] = -q_column[last] / q - 1.0
    swaps.slot[swaps.count[0]] = j
    swaps.count[0] += 1
    column = scratch[2]
    column[:last] = site_gram[:last, j]
    corner = site_gram[j, j]
    for a in range(last):
        for b in range(last):
            site_gram[a, b] += vector[a] * column[b] + column[a] * vector[b] + corner * vector[a] * vector[b]


@compiled
def put_in(posterior, k, variance, i, step):
    """Append the row of site i to the basis, C and alpha with q and r and s = (C~ k, 1); `size` stays as it is."""
    ck, ehat, gamma, q, r, _ = step
    alpha, C, Q, G, _, owner, size = posterior
    last = size[0]
    for e in range(last):
        alpha[e] += q * ck[e]
        Q[e, last] = Q[last, e] = -ehat[e] / gamma
        C[e, last] = C[last, e] = r * ck[e]
        G[e, last] = G[last, e] = k[e]
    add_outer(Q, 1.0 / gamma, ehat, last)
    add_outer(C, r, ck, last)
    alpha[last], Q[last, last], C[last, last], G[last, last], owner[last] = q, 1.0 / gamma, r, variance, i


@compiled
def old_site(posterior, sites, i, scratch):
    """(h, v, v (mu - a), p, lambda) of site i, zeros where it has none; v = -1 marks one that cannot be taken out."""
    gp, h, p = scratch[0], scratch[1], scratch[2]
    size, precision = posterior.size[0], sites.precision[i]
    h[:size] = 0.0
    p[:size] = 0.0
    if precision == 0.0:
        return h, 0.0, 0.0, p, 0.0
    p[:size] = sites.projection[i, :size]
    matrix_vector(posterior.G, p, size, gp)
    matrix_vector(posterior.C, gp, size, h)
    for e in range(size):
        h[e] += p[e]
    slack = 1.0 / precision - dot(gp, h, size)
    if slack <= LEAST_SLACK / precision:
        return h, -1.0, 0.0, p, precision
    return h, 1.0 / slack, (dot(posterior.alpha, gp, size) - sites.mean[i]) / slack, p, precision


@compiled
def process_row(i, y, k, variance, posterior, sites, swaps, settings, scratch):
    """Refine site i with label y, k = K(basis, x), variance = k(x, x); the slot its row took in the basis, or -1."""
    size = posterior.size[0]
    catch_up(sites, i, swaps, size)
    out = old_site(posterior, sites, i, scratch)
    h, v, shift, p, old_precision = out
    if v < 0.0:
        return -1
    ck, ehat = scratch[3], scratch[4]
    matrix_vector(posterior.C, k, size, ck)
    matrix_vector(posterior.Q, k, size, ehat)
    hk = dot(h, k, size)
    mean = dot(posterior.alpha, k, size) + shift * hk
    for e in range(size):
        ck[e] += v * hk * h[e]
    total = variance + dot(k, ck, size)
    gamma = max(variance - dot(k, ehat, size), 0.0)
    for e in range(size):
        if posterior.owner[e] == i:
            ehat[:size] = 0.0
            ehat[e] = 1.0
            gamma = 0.0
    q, r = derivatives(settings.likelihood, y, mean, total, settings.bias, settings.slope)
    if not r <= -LEAST_CURVATURE:
        return -1
    precision = -1.0 / (1.0 / r + total)
    sites.precision[i], sites.mean[i] = precision, mean - q / r
    step = (ck, ehat, gamma, q, r, precision)
    slot = -1
    if not settings.is_frozen and gamma > settings.novelty_tol * variance:
        slot = worst_vector(posterior, settings, out, step) if size == posterior.alpha.shape[0] - 1 else size
        if slot == posterior.alpha.shape[0] - 1:
            slot = -1
    for e in range(size):
        posterior.alpha[e] += shift * h[e]
    if old_precision != 0.0:
        add_outer(posterior.C, v, h, size)
    if settings.score != MEAN_SCORE:
        add_outer(posterior.site_gram, -old_precision, p, size)
    if slot >= 0:
        put_in(posterior, k, variance, i, step)
        settle(posterior, i, slot, precision, sites, swaps, scratch[5:])
        return slot
    eta = 1.0 / (1.0 + gamma * r)
    sites.projection[i, :size] = ehat[:size]
    if settings.score != MEAN_SCORE:
        add_outer(posterior.site_gram, precision, ehat, size)
    for e in range(size):
        ck[e] += ehat[e]
        posterior.alpha[e] += q * eta * ck[e]
    add_outer(posterior.C, r * eta, ck, size)
    return -1


@compiled
def settle(posterior, i, slot, precision, sites, swaps, scratch):
    """Give the vector that was put in its slot, a free one or that of a vector to take out, and site i its row of P."""
    size = posterior.size[0]
    if slot < size:
        take_out(posterior, slot, swaps, scratch)
    else:
        posterior.size[0] = size + 1
        posterior.site_gram[size, : size + 1] = 0.0
        posterior.site_gram[: size + 1, size] = 0.0
    posterior.site_gram[slot, slot] += precision
    sites.projection[i, :] = 0.0
    sites.projection[i, slot] = 1.0
    sites.n_swaps_seen[i] = swaps.count[0]


@compiled
def process_rows(rows, y, cross, gram, posterior, sites, swaps, settings, scratch):
    """`process_row` for a block of rows; everything but rows, y, gram and settings is changed in place.

    Parameters
    ----------
    rows : int64 array (n_block,)
        Their sites.
    y : float64 array (n_block,)
    cross : float64 array (n_block, m)
        K(block, basis), kept up to date as the basis changes.
    gram : float64 array (n_block, n_block)
        K(block, block).
    posterior, sites, swaps, settings : Posterior, Sites, Swaps, Settings
    scratch : float64 array (8, m)
    """
    for t in range(rows.shape[0]):
        slot = process_row(rows[t], y[t], cross[t], gram[t, t], posterior, sites, swaps, settings, scratch)
        if slot >= 0:
            cross[:, slot] = gram[:, t]
            if swaps.count[0] == swaps.slot.shape[0]:
                catch_up_sites(sites, swaps, posterior.size[0])
