"""The tables of `export.py` as an ONNX graph in double precision: X -> scores, probabilities.

For RBF, ARD, linear, polynomial and intersection kernels, their sums and products; for densities, whose search is a
loop, see `onnx_density.py`. onnxruntime has no Erf in double precision, so Phi(-a) = exp(-a^2/2) q(t) / (1 + a),
t = (a - 4)/(a + 4), with a polynomial q of degree 22: the relative error is below 1e-14 for every a >= 0.
"""

import itertools

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
from linadd.sparse_kernel.onnx_density import add_density_outputs

__all__ = ["write_onnx"]

OPSET = 17


class Graph:
    """Nodes and constants as they are added; every method returns the name of a value.

    `body` opens the graph of a loop's body: it reads the values of this one, and shares its constants and names.
    """

    def __init__(self, onnx, outer=None):
        self.onnx, self.nodes = onnx, []
        self.constants, self.names = (outer.constants, outer.names) if outer else ([], itertools.count())

    def body(self):
        """A graph of its own nodes inside this one."""
        return Graph(self.onnx, outer=self)

    def new_name(self):
        """A name that no other value has."""
        return f"v{next(self.names)}"

    def constant(self, value):
        """A double (or int64) constant."""
        value = np.asarray(value)
        value = value.astype(np.int64 if value.dtype.kind == "i" else np.float64)
        self.constants.append(self.onnx.numpy_helper.from_array(value, self.new_name()))
        return self.constants[-1].name

    def node(self, kind, *inputs, name=None, **attributes):
        """A node of the standard operator set."""
        name = name or self.new_name()
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def row_sum(self, value):
        """Sum over the last axis, kept as a column."""
        return self.node("ReduceSum", value, self.constant(np.array([-1])), keepdims=1)

    def sum(self, value, axis):
        """Sum over an axis, which goes."""
        return self.node("ReduceSum", value, self.constant(np.array([axis])), keepdims=0)

    def product(self, value, array):
        """value @ array."""
        return self.node("MatMul", value, self.constant(array))


    def loop(self, n_most, body, run, go_on, state=(), result=None):
        """Run a body at most `n_most` times; returns the names of its state at the end and of the results.

        Parameters
        ----------
        n_most : str
            A value of this graph, int64.
        body : Graph
            Made by `body`.
        run, go_on : str
            In the body: the number of the run, from 0, and whether to run again.
        state : list of (str, str, str, int)
            Of vectors: value at the start; names in the body before and after a run; element type.
        result : (str, int), optional
            Vector of doubles of every run, and its length: the rows of one matrix.
        """
        types, helper = self.onnx.TensorProto, self.onnx.helper
        inputs = [(run, types.INT64, []), (self.new_name(), types.BOOL, [])]
        inputs += [(before, kind, [None]) for _, before, _, kind in state]
        outputs = [(go_on, types.BOOL, []), *((after, kind, [None]) for _, _, after, kind in state)]
        if result is not None:
            outputs.append((result[0], types.DOUBLE, [result[1]]))
        ends = [self.new_name() for _ in outputs[1:]]
        content = helper.make_graph(body.nodes, self.new_name(), *(
            [helper.make_tensor_value_info(*each) for each in side] for side in (inputs, outputs)))
        # "" stands for the condition of the first run: none.
        values = [n_most, "", *(start for start, _, _, _ in state)]
        self.nodes.append(helper.make_node("Loop", values, ends, body=content))
        return ends


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
    if tables["link"] == "density":
        add_density_outputs(graph, tables["outputs"], X)
    else:
        add_outputs(graph, tables["link"], *output_columns(graph, tables, X))
    double, make = onnx.TensorProto.DOUBLE, onnx.helper.make_tensor_value_info
    scores_shape = ["n"] if np.ndim(tables["check_scores"]) == 1 else ["n", len(tables["classes"])]
    outputs = [make("scores", double, scores_shape),
               make("probabilities", double, ["n", len(tables["classes"])])]
    inputs = [make("X", double, ["n", len(tables["offset"])])]
    made = onnx.helper.make_graph(graph.nodes, tables["estimator"], inputs, outputs, graph.constants)
    model = onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model)
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
