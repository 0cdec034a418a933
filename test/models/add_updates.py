#!/usr/bin/env python3
"""Puts the optimizer into a training step: each gradient that is an output updates its parameter in place.

    python test/models/add_updates.py STEP.onnx OUT.onnx

Needs `onnx`. A gradient belongs to the parameter of its shape that is read earliest and has none yet, where gradients are taken
from the last one that is made to the first: backward passes run against the order of forward passes. Updates are `SGDOptimizer` of
ONNX Runtime's domain, which stock builds of the runtime do not have: the file is for planning, not for running.
"""

import sys

import onnx
from onnx import TensorProto, helper


def shape(value):
    return tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)


def updates(graph):
    """Pairs of gradient and parameter."""
    shapes = {value.name: shape(value) for value in graph.input}
    shapes |= {weight.name: tuple(weight.dims) for weight in graph.initializer}
    read, made = {}, {}
    for place, node in enumerate(graph.node):
        for name in node.input:
            read.setdefault(name, place)
        made |= dict.fromkeys(node.output, place)
    left = sorted((name for name, dims in shapes.items() if dims and name in read), key=read.get)
    pairs = []
    for value in sorted(graph.output, key=lambda value: -made[value.name]):
        parameter = next((name for name in left if shapes[name] == shape(value)), None)
        if parameter is not None:
            left.remove(parameter)
            pairs.append((value.name, parameter))
    return pairs


def main(source, target):
    model = onnx.load(source)
    graph = model.graph
    pairs = updates(graph)
    gradients = {gradient for gradient, _ in pairs}
    outputs = [value for value in graph.output if value.name not in gradients]
    del graph.output[:]
    graph.output.extend(outputs)
    graph.input.append(helper.make_tensor_value_info("rate", TensorProto.FLOAT, [1]))
    for gradient, parameter in pairs:
        operands, result = ["rate", parameter, gradient], f"{parameter}.new"
        node = helper.make_node("SGDOptimizer", operands, [result], f"{parameter}.update", domain="com.microsoft")
        graph.node.append(node)
    if all(opset.domain != "com.microsoft" for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
