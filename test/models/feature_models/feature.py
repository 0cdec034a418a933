"""A model under construction, and the list of all of them."""

import numpy as np
import onnx
from network import Network
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
SHAPE = [4, 256]
IMAGE = [1, 4, 16, 16]


def value(name, shape=SHAPE, element=FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def body(name, nodes, inputs, outputs, constants=()):
    """A subgraph."""
    return helper.make_graph(nodes, name, inputs, outputs, list(constants))


class Feature(Network):
    """A model under construction: nodes in the order of execution, and what tests should know of it."""

    producer = "generate_features.py"

    def __init__(self, name, shape=SHAPE):
        super().__init__(name, opset=20, ir_version=9)
        self.input("x", shape)
        self.sparse = []
        self.annotations = []
        self.outside = b""

    def op(self, kind, inputs, outputs, name=None, **attributes):
        """Adds a node, named like its first result unless `name` says otherwise; returns the first result."""
        outputs = [outputs] if isinstance(outputs, str) else outputs
        name = next(o for o in outputs if o) if name is None else name
        return self.several(kind, inputs, outputs, name, **attributes)[0]

    def constant(self, name, values, dtype=np.float32):
        self.weights.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def keep_outside(self, tensor):
        """Moves the values of a constant to a file beside the model."""
        self.outside = tensor.raw_data
        onnx.external_data_helper.set_external_data(tensor, f"{self.name}.bin", 0, len(self.outside))
        tensor.ClearField("raw_data")

    def output(self, name, shape=SHAPE, element=FLOAT):
        return super().output(name, shape, element)

    def pressure(self, tensor, name="pressure", copies=2):
        """Takes twice the memory of so many copies of `tensor` beside it, none of it overwritten, and leaves a number."""
        self.op("Concat", [tensor] * copies, f"{name}.wide", axis=0)
        self.op("Erf", [f"{name}.wide"], f"{name}.erf")
        return self.op("ReduceMean", [f"{name}.erf"], f"{name}.mean", keepdims=0)

    def finish(self, *tensors, name="y"):
        """Adds the tensors up; all of them broadcast."""
        self.op("Sum", list(tensors), name)
        return name

    def state(self, recomputed=(), never=(), dims=None, sizes=None):
        """What tests need to know: nodes that a tight plan recomputes, that no plan does; open dimensions and sizes."""
        facts = {"recomputed": " ".join(recomputed), "never": " ".join(never)}
        for key, given in (("dims", dims), ("sizes", sizes)):
            facts[key] = " ".join(f"{name}={number}" for name, number in (given or {}).items())
        self.facts = {f"test.{key}": text for key, text in facts.items() if text}

    def graph(self):
        graph = super().graph()
        graph.sparse_initializer.extend(self.sparse)
        graph.quantization_annotation.extend(self.annotations)
        return graph


FEATURES = []


def feature_of(shape):
    """Registers a function that fills a `Feature` whose input has this shape; its name is that of the model."""

    def register(build):
        FEATURES.append((build, shape))
        return build

    return register


feature = feature_of(SHAPE)
