"""Functions of the model and calls of them."""

import numpy as np
import onnx
from onnx import helper

from feature_models.feature import FLOAT, feature


def function(name, inputs, outputs, nodes, attributes=(), domains=()):
    imports = [helper.make_opsetid("", 20), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_function("test.functions", name, inputs, outputs, nodes, imports, list(attributes))


@feature
def function_calls(f):
    """A function of the model, with an attribute, called by another function and several times."""
    scale = helper.make_node("Constant", [], ["scale"])
    scale.attribute.append(
        onnx.AttributeProto(name="value_float", type=onnx.AttributeProto.FLOAT, ref_attr_name="alpha")
    )
    nodes = [
        scale,
        helper.make_node("Mul", ["v", "scale"], ["scaled"]),
        helper.make_node("Sigmoid", ["scaled"], ["s"]),
        helper.make_node("Mul", ["v", "s"], ["y"]),
    ]
    twice = [
        helper.make_node("Swish", ["v"], ["once"], domain="test.functions", alpha=1.5),
        helper.make_node("Swish", ["once"], ["y"], domain="test.functions", alpha=0.5),
    ]
    f.functions = [
        function("Swish", ["v"], ["y"], nodes, ["alpha"]),
        function("Twice", ["v"], ["y"], twice, domains=["test.functions"]),
    ]
    f.op("Swish", ["x"], "first", domain="test.functions", alpha=2.0)
    f.op("Twice", ["first"], "skip", domain="test.functions")
    mean = f.pressure("skip")
    f.op("Swish", ["skip"], "last", domain="test.functions", alpha=0.25)
    f.output(f.finish("last", mean))
    f.state(recomputed=["skip"])


@feature
def function_random(f):
    """A call of a function that draws random numbers is never repeated, what follows from it is."""
    draw = [helper.make_node("RandomUniformLike", ["v"], ["noise"], seed=3.0, dtype=FLOAT)]
    draw.append(helper.make_node("Add", ["v", "noise"], ["y"]))
    f.functions = [function("Blur", ["v"], ["y"], draw)]
    f.constant("first", [0], np.int64)
    f.op("Gather", ["x", "first"], "row", axis=0)
    f.op("Blur", ["row"], "drawn", domain="test.functions")
    f.op("Concat", ["drawn"] * 4, "tall", axis=0)
    f.op("Exp", ["tall"], "skip")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["tall", "skip"], never=["drawn"])
