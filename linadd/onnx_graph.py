"""An ONNX graph that grows node by node, and its file: what the exports of all model classes share."""

import itertools

import numpy as np

from linadd.errors import ConfigError

__all__ = ["OPSET", "Graph"]

OPSET = 17
IR_VERSION = 8  # of onnx 1.12, the first with that opset
LARGEST_FILE = 2**31 - 1  # bytes of a protobuf message


class Graph:
    """Nodes and constants as they are added; the methods that add one return the name of its value.

    `body` opens the graph of a loop's body: it reads the values of this one, and shares its constants and names.

    Parameters
    ----------
    dtype : dtype
        Of float constants that do not say their own.
    outer : Graph, optional
        Of whose loop this is the body.

    Raises
    ------
    ConfigError
        The package onnx is not installed.
    """

    def __init__(self, dtype=np.float64, outer=None):
        try:
            import onnx
        except ImportError:
            raise ConfigError("export: ONNX files need the package onnx. Run: pip install 'linadd[onnx]'.") from None
        self.onnx, self.dtype, self.nodes = onnx, np.dtype(dtype), []
        self.constants, self.names = (outer.constants, outer.names) if outer else ([], itertools.count())

    def body(self):
        """A graph of its own nodes inside this one."""
        return Graph(self.dtype, outer=self)

    def new_name(self):
        """A name that no other value has."""
        return f"v{next(self.names)}"

    def constant(self, value, dtype=None):
        """A constant: floats in the dtype of the graph or their own, integers as int64, truth values and text."""
        value = np.asarray(value)
        if value.dtype.kind == "f":
            value = value.astype(dtype or self.dtype)
        elif value.dtype.kind in "iu":
            value = value.astype(np.int64)
        elif value.dtype.kind == "U":
            value = value.astype(object)
        self.constants.append(self.onnx.numpy_helper.from_array(value, self.new_name()))
        return self.constants[-1].name

    def node(self, kind, *inputs, name=None, **attributes):
        """A node of the standard operator set; its inputs are names of values."""
        name = name or self.new_name()
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def cast(self, value, dtype):
        """The value in another dtype."""
        return self.node("Cast", value, to=self.type_of(dtype))

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

    def type_of(self, dtype):
        """ONNX's code of a dtype."""
        dtype = np.dtype(object) if np.dtype(dtype).kind == "U" else np.dtype(dtype)
        return self.onnx.helper.np_dtype_to_tensor_dtype(dtype)

    def save(self, path, name, inputs, outputs, metadata=None):
        """Write the graph, checked by the package onnx.

        Parameters
        ----------
        path : path-like
            Target.
        name : str
            Of the graph.
        inputs, outputs : dict of str to (dtype, shape)
            Values that go in and out; a shape may have names of lengths.
        metadata : dict of str to str, optional
            Kept in the file.

        Raises
        ------
        ConfigError
            The file would be larger than ONNX can be.
        """
        helper = self.onnx.helper
        ends = [
            [helper.make_tensor_value_info(key, self.type_of(dtype), shape) for key, (dtype, shape) in values.items()]
            for values in (inputs, outputs)
        ]
        graph = helper.make_graph(self.nodes, name, *ends, self.constants)
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="linadd")
        helper.set_model_props(model, metadata or {})
        n_bytes = model.ByteSize()
        if n_bytes > LARGEST_FILE:
            raise ConfigError(f"{path}: an ONNX file holds up to 2 GB, this one takes {n_bytes:,} bytes. Export *.npz.")
        self.onnx.checker.check_model(model)
        with open(path, "wb") as file:
            file.write(model.SerializeToString())
