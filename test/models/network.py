"""A model under construction, for the scripts that write models."""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Network:
    """Nodes in the order of execution, with what they read and what is returned.

    A node and its result have one name. The values of weights come from a fixed seed, so the files are the same on every run
    and machine.
    """

    producer = "test/models"

    def __init__(self, name, opset=17, ir_version=8):
        self.name = name
        self.ir_version = ir_version
        self.opsets = {"": opset}
        self.nodes = []
        self.inputs = []
        self.outputs = []
        self.weights = []
        self.functions = []
        self.facts = {}
        self.random = np.random.default_rng(20)

    def op(self, kind, inputs, output, **attributes):
        """Adds a node of one result and returns its name."""
        return self.several(kind, inputs, [output], output, **attributes)[0]

    def several(self, kind, inputs, outputs, name, **attributes):
        """Adds a node of several results and returns their names."""
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=name, **attributes))
        if attributes.get("domain"):
            self.opsets.setdefault(attributes["domain"], 1)
        return outputs

    def split(self, value, sizes, outputs, axis):
        lengths = self.constant(f"{value}.sizes", np.array(sizes, np.int64))
        return self.several("Split", [value, lengths], outputs, f"{value}.split", axis=axis)

    def constant(self, name, value):
        """Adds an initializer, unless one of this name is there."""
        if all(weight.name != name for weight in self.weights):
            self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, name, shape, fan_in):
        """Random weights that keep the variance of what passes a rectifier."""
        values = self.random.standard_normal(shape) * np.sqrt(2 / fan_in)
        return self.constant(name, values.astype(np.float32))

    def input(self, name, shape, element=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def output(self, name, shape, element=TensorProto.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, element, shape))
        return name

    def needs_dims(self, **dims):
        """States what has to be given with `--dim`, in the metadata of the model."""
        self.facts["test.dims"] = " ".join(f"{name}={number}" for name, number in dims.items())

    def graph(self):
        return helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)

    def proto(self):
        """The model."""
        model = helper.make_model(
            self.graph(),
            opset_imports=[helper.make_opsetid(domain, version) for domain, version in self.opsets.items()],
            functions=self.functions,
            producer_name=self.producer,
            ir_version=self.ir_version,
        )
        helper.set_model_props(model, self.facts)
        return model

    def save(self, folder):
        """Writes the model, checked, as `NAME.onnx` into the folder and says so."""
        path = pathlib.Path(folder) / f"{self.name}.onnx"
        model = self.proto()
        onnx.checker.check_model(model, full_check=True)
        path.write_bytes(model.SerializeToString(deterministic=True))
        print(f"{path}: {len(self.nodes)} nodes, {path.stat().st_size} bytes")
