"""Branches and loops between large tensors."""

import numpy as np
from network import Network
from onnx import TensorProto, helper

from matrix.hourglass import hourglass
from matrix.registry import model

SHAPE = [512, 1024]


def value(name, shape=(), element=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, element, list(shape))


def chain(prefix, kinds, first):
    """Nodes one after another, each reading the last."""
    nodes = []
    for i, kind in enumerate(kinds):
        nodes.append(helper.make_node(kind, [first], [f"{prefix}{i}"], name=f"{prefix}{i}"))
        first = f"{prefix}{i}"
    return nodes


def branch(name, kinds, captured):
    """A branch over what it captures."""
    nodes = chain(f"{name}.", kinds, captured)
    return helper.make_graph(nodes, name, [], [value(nodes[-1].output[0], SHAPE)])


def loop_body(name, captured):
    """Carries one large tensor, and reads another that it captures."""
    nodes = [
        helper.make_node("Identity", [f"{name}.go"], [f"{name}.go_on"], name=f"{name}.go_on"),
        helper.make_node("Mul", [f"{name}.state", captured], [f"{name}.product"], name=f"{name}.product"),
        helper.make_node("Tanh", [f"{name}.product"], [f"{name}.next"], name=f"{name}.next"),
    ]
    inputs = [
        value(f"{name}.turn", element=TensorProto.INT64),
        value(f"{name}.go", element=TensorProto.BOOL),
        value(f"{name}.state", SHAPE),
    ]
    outputs = [value(f"{name}.go_on", element=TensorProto.BOOL), value(f"{name}.next", SHAPE)]
    return helper.make_graph(nodes, name, inputs, outputs)


@model
def control_flow():
    """Cheap levels going down; at the turn a loop and a branch, both of which capture levels; a branch again on the way up."""
    net = Network("control_flow")
    net.input("x", SHAPE)
    net.constant("turns", np.array(3))
    net.constant("zero", np.array(0, np.float32))
    net.constant("yes", np.array(True))

    def choose(name, y, captured):
        net.op("ReduceMean", [y], f"{name}.mean", keepdims=0)
        net.op("Greater", [f"{name}.mean", "zero"], f"{name}.positive")
        return net.op(
            "If",
            [f"{name}.positive"],
            name,
            then_branch=branch(f"{name}.then", ["Exp", "Sigmoid"], captured),
            else_branch=branch(f"{name}.else", ["Neg", "Tanh"], captured),
        )

    def down(i, y):
        net.op("Mul", [y, net.input(f"w{i}", SHAPE[1:])], f"down{i}.scaled")
        return net.op("Tanh", [f"down{i}.scaled"], f"down{i}")

    def up(i, y, skip):
        if i == 10:
            net.op("Loop", ["turns", "yes", y], "loop", body=loop_body("loop.body", "down8"))
            y = choose("choice", "loop", "down7")
        if i == 4:
            y = choose("late_choice", y, skip)
        net.op("Sub", [skip, y], f"up{i}.difference")
        return net.op("Sigmoid", [f"up{i}.difference"], f"up{i}")

    net.output(hourglass(14, down, up, "x"), SHAPE)
    return net
