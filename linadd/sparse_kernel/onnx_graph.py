"""The tables of `export.py` as an ONNX graph in double precision: X -> scores, probabilities.

For RBF, ARD, linear, polynomial and intersection kernels, their sums and products; for densities, whose search is a
loop, see `onnx_density.py`. onnxruntime has no Erf in double precision, so Phi(-a) = exp(-a^2/2) q(t) / (1 + a),
t = (a - 4)/(a + 4), with a polynomial q of degree 22: the relative error is below 1e-14 for every a >= 0.
"""

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import erfcx

from linadd.errors import ConfigError
from linadd.onnx_graph import Graph
from linadd.sparse_kernel.kernels import (
    ARD,
    RBF,
    Intersection,
    Linear,
    Polynomial,
    Product,
    Sum,
    kernel_from_description,
)
from linadd.sparse_kernel.onnx_density import add_density_outputs

__all__ = ["write_onnx"]

def gram(graph, kernel, X, basis):
    """Node of K(X, basis), (n_rows, d)."""
    if isinstance(kernel, Sum | Product):
        parts = [gram(graph, part, X, basis) for part in (kernel.left, kernel.right)]
        return graph.node("Add" if isinstance(kernel, Sum) else "Mul", *parts)
    variance = graph.constant(kernel.variance)
    if isinstance(kernel, RBF | ARD):
        scaled, z = graph.node("Div", X, graph.constant(kernel.lengths())), basis / kernel.lengths()
        inner = graph.product(scaled, z.T)
        half = graph.node("Mul", graph.row_sum(graph.node("Mul", scaled, scaled)), graph.constant(-0.5))
        exponent = graph.node("Add", graph.node("Add", inner, half), graph.constant(-0.5 * np.sum(z**2, axis=1)))
        clipped = graph.node("Min", exponent, graph.constant(0.0))
        return graph.node("Mul", graph.node("Exp", clipped), variance)
    if isinstance(kernel, Linear):
        return graph.node("Mul", graph.node("Add", graph.product(X, basis.T), graph.constant(kernel.offset)), variance)
    if isinstance(kernel, Polynomial):
        inner = graph.node("Add", graph.product(X, kernel.gamma * basis.T), graph.constant(kernel.offset))
        return graph.node("Mul", graph.node("Pow", inner, graph.constant(float(kernel.power))), variance)
    if isinstance(kernel, Intersection):
        wide = graph.node("Unsqueeze", X, graph.constant(np.array([1])))
        least = graph.node("Min", wide, graph.constant(basis[None]))
        total = graph.node("ReduceSum", least, graph.constant(np.array([-1])), keepdims=0)
        return graph.node("Mul", total, variance)
    raise ConfigError(f"export: ONNX cannot hold the kernel {kernel.name}. Export *.npz or *.json, or use another "
                      "kernel.")


def kernel_diag(graph, kernel, X):
    """Node of K(x, x), a column (n_rows, 1) or a constant."""
    if isinstance(kernel, Sum | Product):
        parts = [kernel_diag(graph, part, X) for part in (kernel.left, kernel.right)]
        return graph.node("Add" if isinstance(kernel, Sum) else "Mul", *parts)
    variance = graph.constant(kernel.variance)
    if isinstance(kernel, RBF | ARD):
        return variance
    if isinstance(kernel, Intersection):
        return graph.node("Mul", graph.row_sum(X), variance)
    products = graph.row_sum(graph.node("Mul", X, X))
    if isinstance(kernel, Linear):
        return graph.node("Mul", graph.node("Add", products, graph.constant(kernel.offset)), variance)
    inner = graph.node("Mul", products, graph.constant(kernel.gamma))
    inner = graph.node("Add", inner, graph.constant(kernel.offset))
    return graph.node("Mul", graph.node("Pow", inner, graph.constant(float(kernel.power))), variance)


def tail_polynomial():
    """Coefficients of q in the module's docstring, highest power first: its Chebyshev interpolant on [-1, 1)."""
    n_nodes = 400
    t = np.cos(np.pi * (np.arange(n_nodes) + 0.5) / n_nodes)
    a = 4.0 * (1.0 + t) / (1.0 - t)
    return chebyshev.cheb2poly(chebyshev.chebfit(t, 0.5 * erfcx(a * np.sqrt(0.5)) * (1.0 + a), 22))[::-1]


def phi(graph, z):
    """Node of Phi(z), by the tail of |z|."""
    a, four = graph.node("Abs", z), graph.constant(4.0)
    t = graph.node("Div", graph.node("Sub", a, four), graph.node("Add", a, four))
    first, *rest = tail_polynomial()
    q = graph.constant(first)
    for coefficient in rest:
        q = graph.node("Add", graph.node("Mul", q, t), graph.constant(coefficient))
    decay = graph.node("Exp", graph.node("Mul", graph.node("Mul", a, a), graph.constant(-0.5)))
    tail = graph.node("Div", graph.node("Mul", decay, q), graph.node("Add", a, graph.constant(1.0)))
    left = graph.node("Less", z, graph.constant(0.0))
    return graph.node("Where", left, tail, graph.node("Sub", graph.constant(1.0), tail))


def output_columns(graph, tables, X):
    """Columns of the scores, and for a probit model of z."""
    scores, z = [], []
    for output in tables["outputs"]:
        kernel, basis = kernel_from_description(output["kernel"]), np.asarray(output["basis"])
        K = gram(graph, kernel, X, basis)
        score = graph.product(K, np.asarray(output["coef"])[:, None])
        scores.append(graph.node("Add", score, graph.constant(output["intercept"])))
        if tables["link"] == "probit":
            explained = graph.product(K, np.asarray(output["half"]).T)
            explained = graph.row_sum(graph.node("Mul", explained, explained))
            variance = graph.node("Sub", kernel_diag(graph, kernel, X), explained)
            variance = graph.node("Max", variance, graph.constant(0.0))
            spread = graph.node("Sqrt", graph.node("Add", variance, graph.constant(output["noise"])))
            z.append(graph.node("Div", scores[-1], spread))
    return scores, z


def joined(graph, columns, name=None):
    """Columns side by side."""
    return graph.node("Concat", *columns, axis=1, name=name)


def add_outputs(graph, link, scores, z):
    """Add the nodes `scores` and `probabilities`."""
    def flat(column):
        graph.node("Squeeze", column, graph.constant(np.array([1])), name="scores")

    if link == "probit" and len(z) == 1:
        flat(scores[0])
        joined(graph, [phi(graph, graph.node("Neg", z[0])), phi(graph, z[0])], "probabilities")
    elif link == "probit":
        p = phi(graph, joined(graph, z, "scores"))
        graph.node("Div", p, graph.row_sum(p), name="probabilities")
    elif link == "positive-part":
        positive = graph.node("Max", joined(graph, scores, "scores"), graph.constant(0.0))
        total = graph.row_sum(positive)
        is_positive = graph.node("Greater", total, graph.constant(0.0))
        shares = graph.node("Div", positive, total)
        graph.node("Where", is_positive, shares, graph.constant(1.0 / len(scores)), name="probabilities")
    elif link == "logistic":
        flat(scores[0])
        joined(graph, [graph.node("Sigmoid", graph.node("Neg", scores[0])), graph.node("Sigmoid", scores[0])],
               "probabilities")
    else:
        if link == "softmax-reference":
            scores = [*scores, graph.node("Mul", scores[0], graph.constant(0.0))]
        graph.node("Softmax", joined(graph, scores, "scores"), axis=1, name="probabilities")


def write_onnx(tables, path):
    """Write the graph.

    Parameters
    ----------
    tables : dict
        From `export.kernel_tables`.
    path : path-like

    Raises
    ------
    ConfigError
        A kernel that the graph cannot hold, or the package onnx is not installed.
    """
    graph = Graph()
    X = graph.node("Mul", graph.node("Sub", "X", graph.constant(tables["offset"])), graph.constant(tables["factor"]))
    if tables["clip"]:
        X = graph.node("Clip", X, graph.constant(0.0), graph.constant(1.0))
    if tables["link"] == "density":
        add_density_outputs(graph, tables["outputs"], X)
    else:
        add_outputs(graph, tables["link"], *output_columns(graph, tables, X))
    n_classes = len(tables["classes"])
    outputs = {"scores": (np.float64, ["n"] if np.ndim(tables["check_scores"]) == 1 else ["n", n_classes]),
               "probabilities": (np.float64, ["n", n_classes])}
    graph.save(path, tables["estimator"], {"X": (np.float64, ["n", len(tables["offset"])])}, outputs)
