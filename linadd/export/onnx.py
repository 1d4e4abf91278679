"""Export `onnx`: a graph of core operators, from X to label, scores and, where the model has them, probabilities.

    X               (n, n_features), of the dtype of the export; any number of rows
    label           (n,): integers, numbers or text, as the classes are
    scores          (n, n_outputs): one column for two classes, positive for the second; else one a class
    probabilities   (n, n_classes)

Coordinates and values of dense bases are computed in double precision whatever the dtype, because a time stamp minus
its origin has no digits left in single precision; tables, local values of phi and sums are of the dtype. A row with a
value that is not finite has NaN as its scores. Opset and limits: `onnx_graph.py`; names of the arrays: `tables.py`. The
metadata holds the check rows and scores as JSON.
"""

import json

import numpy as np

from linadd.errors import ConfigError
from linadd.onnx_graph import Graph

__all__ = ["score", "write"]


def write(arrays, path, dtype="float64"):
    """Write the graph.

    Parameters
    ----------
    arrays : dict of str to array
        From `tables.model_arrays`.
    path : path-like
        Target.
    dtype : {"float64", "float32"}
        Of X, scores, probabilities and tables.

    Raises
    ------
    ConfigError
        The model refuses values outside the range, which a graph cannot; the package onnx is not installed; the file
        would be too large.
    """
    if "is_strict" in arrays:
        raise ConfigError(
            "export: ONNX cannot refuse a row, as the range policy 'error' asks. Export with --range clamp, or *.json."
        )
    graph = Graph(dtype)
    n_features, _, n_outputs = arrays["coef"].shape
    X = graph.cast("X", np.float64)
    spoiled = graph.node("Sub", X, X)  # 0, or NaN where X is not finite
    x = graph.node("Where", graph.node("Equal", spoiled, double(graph, 0.0)), X, double(graph, 0.0))
    parts = [graph.cast(graph.row_sum(spoiled), dtype), graph.constant(arrays["intercept"])]
    if "lower_slope" in arrays:
        parts.append(graph.cast(beyond(graph, arrays, x), dtype))
    parts.append(inner(graph, arrays, coordinates(graph, arrays, x)))
    total = parts[0]
    for k, part in enumerate(parts[1:], 2):
        total = graph.node("Add", total, part, name="scores" if k == len(parts) else None)
    outputs = {
        "label": (label(graph, arrays["classes"], total), ["n"]),
        "scores": (dtype, ["n", n_outputs]),
    }
    if "link" in arrays or "calibration" in arrays:
        probabilities(graph, arrays, total)
        outputs["probabilities"] = (dtype, ["n", len(arrays["classes"])])
    checks = {name: json.dumps(arrays[name].tolist()) for name in ("check_rows", "check_scores")}
    graph.save(path, "linadd", {"X": (dtype, ["n", n_features])}, outputs, checks)


def score(path, X, dtype="float64"):
    """Scores of rows by onnxruntime.

    Parameters
    ----------
    path : path-like
        The file.
    X : float64 array, shape (n_rows, n_features)
        Feature values; rounded to the dtype.
    dtype : {"float64", "float32"}
        Of the graph.

    Returns
    -------
    float64 array, shape (n_rows, n_outputs)

    Raises
    ------
    ConfigError
        The package onnxruntime is not installed.
    """
    try:
        import onnxruntime
    except ImportError:
        raise ConfigError(
            "export: ONNX files are checked by the package onnxruntime. Run: pip install 'linadd[onnx]'."
        ) from None
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["scores"], {"X": X.astype(dtype)})[0].astype(np.float64)


def double(graph, value):
    """A constant in double precision."""
    return graph.constant(value, np.float64)


def clamp(graph, value, lower, upper):
    """A value in double precision between two constants."""
    return graph.node("Max", graph.node("Min", value, double(graph, upper)), double(graph, lower))


def beyond(graph, arrays, x):
    """What straight lines add beyond the ranges, (n, n_outputs), in double precision."""
    sums = []
    for name, slope, kind in (("lower", "lower_slope", "Min"), ("upper", "upper_slope", "Max")):
        excess = graph.node(kind, graph.node("Sub", x, double(graph, arrays[name])), double(graph, 0.0))
        sums.append(graph.node("MatMul", excess, double(graph, arrays[slope])))
    return graph.node("Add", *sums)


def coordinates(graph, arrays, x):
    """u of every value, (n, n_features), in double precision."""
    if np.isfinite(arrays["lower"]).any():
        x = clamp(graph, x, arrays["lower"], arrays["upper"])
    u = graph.node("Mul", graph.node("Sub", x, double(graph, arrays["origin"])), double(graph, arrays["inverse"]))
    if "edges" not in arrays:
        return u
    has_knots = ~np.isnan(arrays["edges"][:, 0])
    own, uniform = np.flatnonzero(has_knots), np.flatnonzero(~has_knots)
    columns = [
        graph.node("Gather", u, graph.constant(uniform), axis=1),
        knot_coordinates(graph, arrays, own, graph.node("Gather", x, graph.constant(own), axis=1)),
    ]
    order = np.argsort(np.concatenate([uniform, own]))
    return graph.node("Gather", graph.node("Concat", *columns, axis=1), graph.constant(order), axis=1)


def knot_coordinates(graph, arrays, own, x):
    """u of the features `own`, whose bins lie between their edges; in the very steps of `score.knot_coordinate`."""
    edges = arrays["edges"][own]
    n_edges = edges.shape[1]
    wide = graph.node("Unsqueeze", x, graph.constant(np.array([2])))
    is_passed = graph.node("GreaterOrEqual", wide, double(graph, np.where(np.isnan(edges), np.inf, edges)))
    count = graph.sum(graph.cast(is_passed, np.int64), 2)
    place = graph.node("Add", count, graph.constant(np.arange(len(own)) * n_edges - 1))

    def at_edge(table):
        return graph.node("Gather", double(graph, table.ravel()), place)

    # Of the interval that starts at each edge: width, 1 for the last edge and behind; and the edge before, none at 0.
    width = np.diff(edges, axis=1, append=np.nan)
    width = np.where(np.isnan(width), 1.0, width)
    before = np.concatenate([np.full((len(own), 1), np.nan), edges[:, :-1]], axis=1)
    k = graph.node("Sub", graph.cast(count, np.float64), double(graph, 1.0))
    share = graph.node("Div", graph.node("Sub", x, at_edge(edges)), at_edge(width))
    is_spike = graph.node("Equal", at_edge(before), x)
    middle = graph.node("Sub", k, double(graph, 0.5))
    return graph.node("Where", is_spike, middle, graph.node("Add", k, share))


def inner(graph, arrays, u):
    """sum_j coef_j . phi(u_j), (n, n_outputs)."""
    return local_sum(graph, arrays, u) if "degree" in arrays else dense_sum(graph, arrays, u)


def local_sum(graph, arrays, u):
    """Of a B-spline: the coefficients of degree + 1 neighbours are gathered for every value."""
    n_features, n_basis, n_outputs = arrays["coef"].shape
    k = graph.node("Min", graph.node("Floor", u), double(graph, arrays["n_bins"] - 1.0))
    t = graph.cast(graph.node("Sub", u, k), graph.dtype)
    index = graph.node("Add", graph.cast(k, np.int64), graph.constant(np.arange(n_features) * n_basis))
    coef, terms = graph.constant(arrays["coef"].reshape(-1, n_outputs)), []
    for m, value in enumerate(local_values(graph, int(arrays["degree"]), t)):
        place = graph.node("Add", index, graph.constant(m))
        gathered = graph.node("Gather", coef, place)
        wide = graph.node("Unsqueeze", value, graph.constant(np.array([2])))
        terms.append(graph.node("Mul", gathered, wide))
    total = graph.node("Sum", *terms)
    return graph.sum(total, 1)


def local_values(graph, degree, t):
    """The degree + 1 values at fraction t, by the Cox-de Boor recurrence on equal bins [deBoor1978]."""
    one = graph.constant(1.0)
    values = [graph.node("Add", graph.node("Mul", t, graph.constant(0.0)), one)]
    for r in range(1, degree + 1):
        lifted = []
        for m in range(r + 1):
            terms = []
            if m > 0:  # (t + r - m) / r of the left neighbour
                rising = graph.node("Mul", graph.node("Add", t, graph.constant(float(r - m))), graph.constant(1.0 / r))
                terms.append(graph.node("Mul", rising, values[m - 1]))
            if m < r:  # (m + 1 - t) / r of the right one
                falling = graph.node("Mul", graph.node("Sub", graph.constant(m + 1.0), t), graph.constant(1.0 / r))
                terms.append(graph.node("Mul", falling, values[m]))
            lifted.append(terms[0] if len(terms) == 1 else graph.node("Add", *terms))
        values = lifted
    return values


def dense_sum(graph, arrays, u):
    """Of the other encoders: all values of phi times their coefficients."""
    n_features, n_basis, n_outputs = arrays["coef"].shape
    wide = graph.node("Unsqueeze", u, graph.constant(np.array([2])))
    phi, order = DENSE[str(arrays["encoder"])](graph, wide, n_basis)
    coef = (arrays["coef"].astype(np.float64) * arrays["weights"][:, None])[:, order]
    shape = graph.constant(np.array([0, n_features * n_basis]))
    flat = graph.node("Reshape", graph.cast(phi, graph.dtype), shape)
    return graph.product(flat, coef.reshape(-1, n_outputs))


def fourier(graph, u, n_basis):
    """Sines, then cosines as sines of an angle a quarter ahead; and where they stand in phi."""
    k = np.arange(1, n_basis // 2 + 1)
    angle = graph.node("Mul", u, double(graph, np.pi * np.tile(k, 2)))
    angle = graph.node("Add", angle, double(graph, np.repeat([0.0, np.pi / 2], len(k))))
    return graph.node("Sin", angle), np.concatenate([2 * k - 2, 2 * k - 1])


def hermite(graph, u, n_basis):
    """He_1 = u, He_2 = u^2 - 1, He_(k+1) = u He_k - k He_(k-1)."""
    values = [double(graph, 1.0), u]
    for k in range(1, n_basis):
        left = graph.node("Mul", u, values[k])
        values.append(graph.node("Sub", left, graph.node("Mul", values[k - 1], double(graph, float(k)))))
    return graph.node("Concat", *values[1:], axis=2), np.arange(n_basis)


def identity(graph, u, n_basis):
    """u itself."""
    return u, np.arange(1)


DENSE = {"fourier": fourier, "hermite": hermite, "identity": identity}


def label(graph, classes, scores):
    """Add the node `label`; returns its dtype."""
    if len(classes) == 2:
        is_second = graph.node("Greater", scores, graph.constant(0.0))
        index = graph.node("Squeeze", graph.cast(is_second, np.int64), graph.constant(np.array([1])))
    else:
        index = graph.node("ArgMax", scores, axis=1, keepdims=0)
    classes = classes.astype(np.int64) if classes.dtype.kind in "iu" else classes
    table = graph.constant(classes, classes.dtype)
    graph.node("Gather", table, index, name="label")
    return classes.dtype


def probabilities(graph, arrays, scores):
    """Add the node `probabilities`: of the logistic loss, or calibrated (`calibration.py`)."""
    if "calibration_starts" in arrays:
        shares(graph, [polygon(graph, arrays, scores, o) for o in range(arrays["coef"].shape[2])])
        return
    if "calibration_slope" in arrays:
        slope, offset = (graph.constant(arrays[f"calibration_{name}"]) for name in ("slope", "offset"))
        scores = graph.node("Neg", graph.node("Add", graph.node("Mul", scores, slope), offset))
    if arrays["coef"].shape[2] == 1:
        scores = graph.node("Concat", graph.node("Neg", scores), scores, axis=1)
    # softmax of log 1 / (1 + exp(-score)): finite where the shares themselves would be 0 / 0
    zero, one = graph.constant(0.0), graph.constant(1.0)
    decay = graph.node("Exp", graph.node("Neg", graph.node("Abs", scores)))
    log_sigmoid = graph.node("Sub", graph.node("Min", scores, zero), graph.node("Log", graph.node("Add", one, decay)))
    graph.node("Softmax", log_sigmoid, axis=1, name="probabilities")


def polygon(graph, arrays, scores, o):
    """Probability of output o, (n, 1), linear between the points of its isotonic calibration."""
    start, stop = arrays["calibration_starts"][o : o + 2]
    x, p = (arrays[f"calibration_{name}"][start:stop] for name in ("scores", "probabilities"))
    x, p = np.append(x, x[-1] + 1.0), np.append(p, p[-1])  # so that every point has one behind it
    score = graph.node("Gather", scores, graph.constant(np.array([o])), axis=1)
    clipped = graph.node("Max", graph.node("Min", score, graph.constant(x[-2])), graph.constant(x[0]))
    count = graph.sum(graph.cast(graph.node("GreaterOrEqual", clipped, graph.constant(x)), np.int64), 1)
    place = graph.node("Unsqueeze", graph.node("Sub", count, graph.constant(1)), graph.constant(np.array([1])))
    start_x, start_p, rise = (
        graph.node("Gather", graph.constant(table), place) for table in (x[:-1], p[:-1], np.diff(p) / np.diff(x))
    )
    return graph.node("Add", start_p, graph.node("Mul", graph.node("Sub", clipped, start_x), rise))


def shares(graph, columns):
    """Add the node `probabilities`: of one column its complement too, else each by their sum, alike where that is 0."""
    one = graph.constant(1.0)
    if len(columns) == 1:
        graph.node("Concat", graph.node("Sub", one, columns[0]), columns[0], axis=1, name="probabilities")
        return
    parts = graph.node("Concat", *columns, axis=1)
    total = graph.row_sum(parts)
    is_known = graph.node("Greater", total, graph.constant(0.0))
    safe = graph.node("Where", is_known, total, one)
    equal = graph.constant(1.0 / len(columns))
    graph.node("Where", is_known, graph.node("Div", parts, safe), equal, name="probabilities")
