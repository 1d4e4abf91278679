"""The row operations of the solvers, from naive to fast: time a feature value, one thread.

    python scripts/bench_rows.py [--rows 4000] [--features 656] [--repeats 7] [--json]

Linear splines, D_1, 10 bins. Every rung's answer is compared with the naive one before its time is taken; times are
thread times, and each is printed beside that of a plain float32 dot product over the same values in the same run.
"""

import argparse
import json

import numba
import numpy as np
from measuring import machine, timed

from linadd import penalty
from linadd._simd import N_LANES, aligned_zeros
from linadd.census import CensusTaker
from linadd.chunks import Chunk
from linadd.encoders import make_encoder, rows
from linadd.encoders.centring import CodeMoments

compiled = numba.njit(error_model="numpy")  # not cached: a script is another module when it is imported


@compiled
def naive_score(u, coef):
    """Score of one row (coordinates u), coef (n_features, n_basis), one output."""
    total = 0.0
    for j in range(u.shape[0]):
        k = min(int(u[j]), coef.shape[1] - 2)
        t = u[j] - k
        total += (1.0 - t) * coef[j, k] + t * coef[j, k + 1]
    return total


@compiled
def naive_scores(U, coef, out):
    for i in range(U.shape[0]):
        out[i] = naive_score(U[i], coef)


@compiled
def naive_lanes(U, coef, out):
    """Sixteen outputs, coef (n_features, n_basis, 16), as plain loops."""
    for i in range(U.shape[0]):
        for o in range(out.shape[1]):
            total = 0.0
            for j in range(U.shape[1]):
                k = min(int(U[i, j]), coef.shape[1] - 2)
                t = U[i, j] - k
                total += (1.0 - t) * coef[j, k, o] + t * coef[j, k + 1, o]
            out[i, o] = total


@compiled
def naive_updates(U, table, scale_squared, step, coef):
    """v_j += step s_j^2 L phi(x_j), by the prefix and suffix sums of the method's paper."""
    n_basis = coef.shape[1]
    code = np.zeros(n_basis)
    for i in range(U.shape[0]):
        for j in range(U.shape[1]):
            k = min(int(U[i, j]), n_basis - 2)
            t = U[i, j] - k
            code[:] = 0.0
            code[k], code[k + 1] = 1.0 - t, t
            for b in range(n_basis - 2, -1, -1):
                code[b] += code[b + 1]
            for b in range(1, n_basis):
                code[b] += code[b - 1]
            for b in range(n_basis):
                coef[j, b] += step * scale_squared[j] * code[b]


@compiled
def ramp_updates(U, scale_squared, step, coef):
    """The closed form min(i, u + 1) in place of the sums."""
    for i in range(U.shape[0]):
        for j in range(U.shape[1]):
            factor = np.float32(step * scale_squared[j])
            top = np.float32(U[i, j] + 1.0)
            for b in range(coef.shape[1]):
                coef[j, b] += factor * min(np.float32(b + 1), top)


@compiled
def fast_scores(basis, positions, scratch, coef, out):
    for i in range(positions.shape[0]):
        rows.encode_row(basis, positions[i], scratch)
        out[i] = rows.decide_one(basis, scratch, coef)


@compiled
def fast_lanes(basis, positions, scratch, coef, out):
    for i in range(positions.shape[0]):
        rows.encode_row(basis, positions[i], scratch)
        rows.decide_lanes(basis, scratch, coef, out[i])


@compiled
def fast_updates(basis, positions, scratch, scale_squared, step, coef):
    for i in range(positions.shape[0]):
        rows.encode_row(basis, positions[i], scratch)
        rows.update_one(basis, scratch, scale_squared, step, coef)


@compiled
def encodings(basis, positions, scratch):
    for i in range(positions.shape[0]):
        rows.encode_row(basis, positions[i], scratch)


def nanoseconds(function, n_values, repeats):
    """Thread time a value, of each repeat, after one call that compiles."""
    function()
    return [seconds / n_values * 1e9 for seconds in timed(function, repeats)[1]]


def problem(n_rows, n_features):
    """A fitted encoder, its centre, coordinates and positions of uniform random rows."""
    X = np.random.default_rng(0).random((n_rows, n_features), np.float32)
    taker = CensusTaker("random", n_features)
    taker.update(Chunk(X, None, None, 0, "random"))
    encoder = make_encoder("bspline", degree=1, n_bins=10, knots="uniform").fit(taker.finish())
    positions = np.empty(X.shape, rows.positions_dtype(encoder))
    rows.locate(encoder, X, positions)
    moments = CodeMoments(encoder)
    moments.add(*moments.group([(0, positions, np.ones(n_rows))]))
    return X, encoder, moments.centre(True, True), positions / 2.0**encoder.bits, positions


def ladder(n_rows, n_features, repeats):
    """{operation: {rung: times}} with the answers checked."""
    X, encoder, centre, U, positions = problem(n_rows, n_features)
    random, basis, scratch = np.random.default_rng(1), encoder.basis, rows.make_scratch(encoder)
    scale_squared, step = centre.space.scale_squared, np.float32(1e-3)
    plain = random.standard_normal((n_features, encoder.n_basis))
    one = aligned_zeros(rows.coef_shape(encoder, 1))
    one[:, : encoder.n_basis, 0] = plain
    lanes = aligned_zeros(rows.coef_shape(encoder, N_LANES))
    lanes[...] = plain[:, :, None] * np.arange(1, N_LANES + 1)
    flat, flat_lanes = one.reshape(-1), lanes.reshape(-1)
    expected, scores, many = np.empty(n_rows), np.empty(n_rows, np.float32), np.empty((n_rows, N_LANES), np.float32)
    naive_scores(U, plain, expected)
    fast_scores(basis, positions, scratch, flat, scores)
    np.testing.assert_allclose(scores, expected, atol=1e-3)  # float32 sums of n_features terms of size 1
    fast_lanes(basis, positions, scratch, flat_lanes, many)
    np.testing.assert_allclose(many, expected[:, None] * np.arange(1, N_LANES + 1), atol=2e-2)
    table = penalty.update_table(encoder.n_basis, 1)
    by_sums, by_ramp, by_table = np.zeros_like(plain), np.zeros(plain.shape, np.float32), aligned_zeros(one.shape)
    naive_updates(U, table, scale_squared, step, by_sums)
    ramp_updates(U, scale_squared, step, by_ramp)
    fast_updates(basis, positions, scratch, scale_squared, step, by_table.reshape(-1))
    np.testing.assert_allclose(by_ramp, by_sums, rtol=1e-3)  # float32 sums over n_rows steps
    np.testing.assert_allclose(by_table[:, : encoder.n_basis, 0], by_sums, rtol=1e-3)

    def times_of(function, *arguments):
        return nanoseconds(lambda: function(*arguments), X.size, repeats)

    wide = np.empty((n_rows, N_LANES))
    return {
        "float32 dot product": {"numpy": times_of(np.dot, X, np.ones(n_features, np.float32))},
        "encode": {"fast": times_of(encodings, basis, positions, scratch)},
        "score, 1 output": {
            "naive": times_of(naive_scores, U, plain, expected),
            "fast": times_of(fast_scores, basis, positions, scratch, flat, scores),
        },
        "score, 16 outputs": {
            "naive": times_of(naive_lanes, U, lanes.astype(np.float64), wide),
            "fast": times_of(fast_lanes, basis, positions, scratch, flat_lanes, many),
        },
        "update, 1 output": {
            "naive": times_of(naive_updates, U, table, scale_squared, step, by_sums),
            "closed form": times_of(ramp_updates, U, scale_squared, step, by_ramp),
            "fast": times_of(fast_updates, basis, positions, scratch, scale_squared, step, by_table.reshape(-1)),
        },
    }


def main(arguments=None):
    """Run the ladder and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--features", type=int, default=656)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    figures = ladder(options.rows, options.features, options.repeats)
    if options.json:
        print(json.dumps(figures))
        return
    print(f"{machine()}; "
          f"{options.rows} x {options.features}, thread time a value, median (range) of {options.repeats}")  # fmt: skip
    dot = np.median(figures["float32 dot product"]["numpy"])
    encode = np.median(figures["encode"]["fast"])
    for operation, rungs in figures.items():
        for rung, times in rungs.items():
            alone = f", {np.median(times) - encode:.2f} ns without encoding" if rung == "fast" else ""
            print(f"{operation:20} {rung:12} {np.median(times):7.2f} ns ({min(times):.2f}-{max(times):.2f}), "
                  f"{np.median(times) / dot:.1f} times the dot product{alone}")  # fmt: skip


if __name__ == "__main__":
    main()
