"""The tables of `export.py` as an ONNX graph in double precision: X -> scores, probabilities.

For RBF, ARD, linear, polynomial and intersection kernels, their sums and products. onnxruntime has no Erf in double
precision, so Phi(-a) = exp(-a^2/2) q(t) / (1 + a), t = (a - 4)/(a + 4), with a polynomial q of degree 22: the relative
error is below 1e-14 for every a >= 0.
"""

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import erfcx

from linadd.errors import ConfigError
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

__all__ = ["write_onnx"]

OPSET = 17


class Graph:
    """Nodes and constants as they are added; every method returns the name of a value."""

    def __init__(self, onnx):
        self.onnx, self.nodes, self.constants = onnx, [], []

    def constant(self, value):
        """A double (or int64) constant."""
        value = np.asarray(value)
        value = value.astype(np.int64 if value.dtype.kind == "i" else np.float64)
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(value, name))
        return name

    def node(self, kind, *inputs, name=None, **attributes):
        """A node of the standard operator set."""
        name = name or f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def row_sum(self, value):
        """Sum over the last axis, kept as a column."""
        return self.node("ReduceSum", value, self.constant(np.array([-1])), keepdims=1)

    def product(self, value, array):
        """value @ array."""
        return self.node("MatMul", value, self.constant(array))


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
    try:
        import onnx
    except ImportError:
        raise ConfigError("export: ONNX files need the package onnx. Run: pip install 'linadd[onnx]'.") from None
    graph = Graph(onnx)
    X = graph.node("Mul", graph.node("Sub", "X", graph.constant(tables["offset"])), graph.constant(tables["factor"]))
    if tables["clip"]:
        X = graph.node("Clip", X, graph.constant(0.0), graph.constant(1.0))
    add_outputs(graph, tables["link"], *output_columns(graph, tables, X))
    double, make = onnx.TensorProto.DOUBLE, onnx.helper.make_tensor_value_info
    binary = len(tables["classes"]) == 2
    outputs = [make("scores", double, ["n"] if binary else ["n", len(tables["classes"])]),
               make("probabilities", double, ["n", len(tables["classes"])])]
    inputs = [make("X", double, ["n", len(tables["offset"])])]
    made = onnx.helper.make_graph(graph.nodes, tables["estimator"], inputs, outputs, graph.constants)
    model = onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model)
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
