"""The bandwidth search of a Rodeo density classifier as an ONNX graph: `rodeo_export.log_density`, step by step.

A Loop takes the rows one at a time, and for each class another runs the rounds of the search: the memory is that of one
row, n_features x n_points doubles.
"""

import numpy as np

__all__ = ["add_density_outputs"]


def add_density_outputs(graph, outputs, X):
    """Add the nodes `scores` and `probabilities`, (n_rows, n_classes).

    Parameters
    ----------
    graph : onnx_graph.Graph
    outputs : list of dict
        The records of `rodeo_export`.
    X : str
        Name of the scaled rows (n_rows, n_features).
    """
    body, i = graph.body(), graph.new_name()
    row = body.node("Gather", X, i)
    joint = body.node("Concat", *(log_density(body, output, row) for output in outputs), axis=0)
    n_rows = graph.node("Gather", graph.node("Shape", X), graph.constant(0))
    (joint,) = graph.loop(n_rows, body, i, body.node("Equal", i, i), result=(joint, len(outputs)))
    best = graph.node("ReduceMax", joint, axes=[1], keepdims=1)
    joint = graph.node("Where", graph.node("IsInf", best), graph.constant(0.0), joint)
    log_priors = graph.constant(np.array([output["log_prior"] for output in outputs]))
    graph.node("Softmax", graph.node("Add", joint, log_priors, name="scores"), axis=1, name="probabilities")


def log_density(graph, output, row):
    """Log density of a class at a row (n_features,), an array of one."""
    points, bandwidths = np.asarray(output["points"]), np.asarray(output["bandwidths"])
    n_points, n_used = points.shape
    query = graph.node("Gather", row, graph.constant(np.asarray(output["columns"])[:, None]))
    differences = graph.node("Sub", query, graph.constant(points.T))
    squares = graph.node("Mul", differences, differences)  # (n_used, n_points)
    log_weight = graph.node("Mul", graph.sum(squares, 0), graph.constant(-0.5 / bandwidths[0] ** 2))
    n_shrinks = graph.constant(np.zeros(n_used, dtype=np.int64))
    if n_points > 1 and len(bandwidths) > 1:
        log_weight, n_shrinks = search(graph, output, squares, log_weight, n_shrinks)
    top, weight = relative_weights(graph, log_weight)
    log_sum = graph.node("Add", top, graph.node("Log", graph.row_sum(weight)))
    log_volume = graph.row_sum(graph.node("Gather", graph.constant(np.log(bandwidths)), n_shrinks))
    constant = graph.constant(np.log(n_points) + 0.5 * n_used * np.log(2.0 * np.pi))
    return graph.node("Sub", graph.node("Sub", log_sum, log_volume), constant)


def relative_weights(graph, log_weight):
    """The largest log weight (the least double where all are -inf), an array of one, and the weights over it."""
    top = graph.node("Max", graph.node("ReduceMax", log_weight), graph.constant(np.finfo(float).min))
    return top, graph.node("Exp", graph.node("Sub", log_weight, top))


def search(graph, output, squares, log_weight, n_shrinks):
    """Log weights (n_points,) and how often each bandwidth shrank (n_used,), from those before the search to the last.

    In round k, from 0, a feature is active if it shrank k times; a round in which none shrinks is the last.
    """
    types, precisions = graph.onnx.TensorProto, 1.0 / np.asarray(output["bandwidths"]) ** 2
    body, k, before, n_before = graph.body(), graph.new_name(), graph.new_name(), graph.new_name()
    precision = body.node("Gather", body.constant(precisions), k)
    _, weight = relative_weights(body, before)
    z = body.node("Mul", body.node("Sub", body.node("Mul", squares, precision), body.constant(1.0)), weight)
    significant = is_significant(body, z, len(output["points"]), output["threshold"])
    shrinks = body.node("And", body.node("Equal", n_before, k), significant)
    as_column = body.node("Unsqueeze", shrinks, body.constant(np.array([1])))
    falling = body.sum(body.node("Where", as_column, squares, body.constant(0.0)), 0)
    change = body.node("Gather", body.constant(-0.5 * np.diff(precisions)), k)
    count = body.node("Cast", shrinks, to=types.INT64)
    go_on = body.node("Greater", body.node("ReduceMax", count, keepdims=0), body.constant(0))
    after = body.node("Add", before, body.node("Mul", falling, change))
    n_after = body.node("Add", n_before, count)
    return graph.loop(graph.constant(len(precisions) - 1), body, k, go_on,
                      [(log_weight, before, after, types.DOUBLE), (n_shrinks, n_before, n_after, types.INT64)])


def is_significant(graph, z, n_points, threshold):
    """Whether the mean of every row of z exceeds `threshold` of its standard errors, bool (n_used,)."""
    first, second = graph.sum(z, 1), graph.sum(graph.node("Mul", z, z), 1)
    mean = graph.node("Div", first, graph.constant(float(n_points)))
    scatter = graph.node("Max", graph.node("Sub", second, graph.node("Mul", first, mean)), graph.constant(0.0))
    allowed = graph.node("Mul", scatter, graph.constant(threshold**2 / (n_points * (n_points - 1.0))))
    return graph.node("Greater", graph.node("Mul", mean, mean), allowed)
