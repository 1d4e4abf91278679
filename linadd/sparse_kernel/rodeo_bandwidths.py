"""Local bandwidths by the greedy search of the density Rodeo: the constants, and the compiled search.

The density of one class at x, with a bandwidth h_j for every variable, is

    p(x; h) = (1/m) sum_i w_i,    w_i = prod_j N(x_j; x_ij, h_j^2)

and its derivative in h_j is the mean over i of Z_ji = ((x_j - x_ij)^2 / h_j^2 - 1) / h_j * w_i. All bandwidths start
at h0 and shrink by the factor beta as long as |Z_j| > s_j sqrt(2 log(m c_m)), s_j the standard error of that mean; the
first failure freezes h_j for good [liu2007, chen2019]. So all variables still active share one bandwidth, the round's.
"""

import itertools
import math

import numpy as np

from linadd._jit import compiled, compiled_sums, run_threads

__all__ = ["bandwidth_steps", "local_bandwidths", "search_threshold"]

LOG_2_PI = math.log(2.0 * math.pi)


def bandwidth_steps(n_points, c0, beta, min_bandwidth):
    """The bandwidths a variable can have: h0 = c0 / log log max(m, 16), then factors of beta down to the minimum.

    Parameters
    ----------
    n_points : int
        Number m of points that vote.
    c0, beta, min_bandwidth : float
        Constants of the search.

    Returns
    -------
    array, shape (n_steps,), float64
        Falling; the first entry is h0 even where h0 is below `min_bandwidth`.
    """
    h0 = c0 / math.log(math.log(max(n_points, 16)))
    most = max(math.log(min_bandwidth / h0) / math.log(beta), 0.0)
    steps = h0 * beta ** np.arange(math.ceil(most) + 1.0)
    return steps[: max(np.count_nonzero(steps >= min_bandwidth), 1)]


def search_threshold(n_points, threshold_constant="log"):
    """The factor sqrt(2 log(m c_m)) of the significance test.

    Parameters
    ----------
    n_points : int
        Number m of points that vote, at least 1.
    threshold_constant : {"log"} or float
        c_m; "log" is max(log m, 1).
    """
    constant = max(math.log(n_points), 1.0) if threshold_constant == "log" else float(threshold_constant)
    return math.sqrt(2.0 * math.log(max(n_points * constant, 1.0)))


@compiled_sums
def search_query(query, points, left_out, steps, threshold, scratch, n_shrinks):
    """Log density at one query (n_features,), and `n_shrinks` (n_features,): how often each bandwidth shrank.

    `points` is (n_features, n_points); `left_out` the index of a point that has no vote, or -1; `scratch`
    (n_features + 3, n_points) and `n_shrinks` are overwritten. Only the ratio of Z_j to s_j counts, so the weights are
    exp(log w_i - max log w) without the factors 1 / h_j, and log w_i changes by the sum over the variables that shrink.
    """
    n_features, n_points = points.shape
    log_weight, weight, falling = scratch[n_features], scratch[n_features + 1], scratch[n_features + 2]
    n_votes = n_points - (left_out >= 0)
    falling[:] = 0.0
    for j in range(n_features):
        squares, column, value = scratch[j], points[j], query[j]
        for i in range(n_points):
            squares[i] = (value - column[i]) ** 2
            falling[i] += squares[i]
    precision = 1.0 / steps[0] ** 2
    for i in range(n_points):
        log_weight[i] = -0.5 * precision * falling[i]
    if left_out >= 0:
        log_weight[left_out] = -np.inf
    n_shrinks[:] = 0
    n_active = n_features
    for step in range(steps.shape[0]):
        top = np.max(log_weight)
        if top == -np.inf:
            return -np.inf
        total = 0.0
        for i in range(n_points):
            weight[i] = math.exp(log_weight[i] - top)
            total += weight[i]
        if step == steps.shape[0] - 1 or n_active == 0 or n_votes < 2:
            break
        precision = 1.0 / steps[step] ** 2
        falling[:] = 0.0
        n_active = 0
        for j in range(n_features):
            if n_shrinks[j] < step:
                continue
            squares = scratch[j]
            first, second = 0.0, 0.0
            for i in range(n_points):
                z = (squares[i] * precision - 1.0) * weight[i]
                first += z
                second += z * z
            mean = first / n_votes
            squared_error = max(second - first * mean, 0.0) / (n_votes - 1.0) / n_votes
            if mean * mean > threshold * threshold * squared_error:
                n_shrinks[j] = step + 1
                n_active += 1
                for i in range(n_points):
                    falling[i] += squares[i]
        change = 0.5 * (1.0 / steps[step + 1] ** 2 - precision)
        if n_active > 0:
            for i in range(n_points):
                log_weight[i] -= change * falling[i]
    log_density = top + math.log(total / n_votes) - 0.5 * n_features * LOG_2_PI
    for j in range(n_features):
        log_density -= math.log(steps[n_shrinks[j]])
    return log_density


@compiled
def search_queries(queries, points, left_out, steps, threshold, scratch, n_shrinks, log_density):
    """`search_query` for every row of `queries`; `left_out`, `n_shrinks` and `log_density` have a row each."""
    for q in range(queries.shape[0]):
        log_density[q] = search_query(queries[q], points, left_out[q], steps, threshold, scratch, n_shrinks[q])


def local_bandwidths(queries, points, left_out=None, *, beta=0.9, c0=1.0, threshold_constant="log", min_bandwidth=1e-3,
                     n_threads=1):
    """Bandwidths and log density of one class at every query (Algorithm 1 of [chen2019]).

    Parameters
    ----------
    queries : array, shape (n_queries, n_features), float64
        Where the density is wanted, in the units of the bandwidths.
    points : array, shape (n_points, n_features), float64
        The sample of the class.
    left_out : array, shape (n_queries,), int64, optional
        For each query the index of the point without a vote: the query itself, for bandwidths at training points.
    beta, c0, threshold_constant, min_bandwidth : see `RodeoDensityClassifier`
    n_threads : int
        Threads over blocks of queries; the result does not depend on it.

    Returns
    -------
    bandwidths : array, shape (n_queries, n_features), float64
    log_density : array, shape (n_queries,), float64
        -inf where no point votes or all are too far for float64.
    """
    queries = np.ascontiguousarray(queries, dtype=np.float64)
    columns = np.array(points.T, dtype=np.float64, order="C")
    n_features, n_points = columns.shape
    n_votes = max(n_points - (left_out is not None), 1)
    steps = bandwidth_steps(n_votes, c0, beta, min_bandwidth)
    threshold = search_threshold(n_votes, threshold_constant)
    n_shrinks = np.empty((len(queries), n_features), dtype=np.int64)
    log_density = np.empty(len(queries))
    left_out = np.full(len(queries), -1) if left_out is None else np.asarray(left_out, dtype=np.int64)

    def search_block(block):
        scratch = np.empty((n_features + 3, n_points))
        with np.errstate(over="ignore", invalid="ignore"):  # as compiled code does: a square may be infinite
            search_queries(queries[block], columns, left_out[block], steps, threshold, scratch, n_shrinks[block],
                           log_density[block])

    bounds = np.linspace(0, len(queries), n_threads + 1).astype(int)
    run_threads(search_block, [(slice(a, b),) for a, b in itertools.pairwise(bounds)], n_threads)
    return steps[n_shrinks], log_density
