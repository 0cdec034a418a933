"""Chains with long skips."""

import numpy as np
from network import Network

from matrix.hourglass import hourglass
from matrix.registry import model


@model
def elementwise_long_skips():
    """Nothing but cheap ops between large tensors, of all the kinds that may or may not run in place."""
    net = Network("elementwise_long_skips")
    shape, depth = [512, 1024], 18
    net.input("x", shape)
    net.constant("half", np.array(0.5, np.float32))
    kinds = ["Tanh", "Sigmoid", "Softplus", "Erf", "Relu", "Softmax"]

    def down(i, y):
        scale = net.input(f"scale{i}", shape[1:])
        net.op("Mul", [y, scale], f"down{i}.scaled")
        net.op(kinds[i % len(kinds)], [f"down{i}.scaled"], f"down{i}.bent")
        return net.op("Add", [f"down{i}.bent", "half"], f"down{i}")

    def up(i, y, skip):
        net.op("Sub", [skip, y], f"up{i}.difference")
        return net.op("Tanh", [f"up{i}.difference"], f"up{i}")

    net.output(hourglass(depth, down, up, "x"), shape)
    return net


def layer_norm(net, x, name, width):
    """As exporters write it out; the runtime makes one node of it, unless something else reads `NAME.hat` or
    `NAME.deviation`, as a backward pass does."""
    gain, bias = net.input(f"{name}.gain", [width]), net.input(f"{name}.bias", [width])
    net.constant("epsilon", np.array(1e-5, np.float32))
    net.constant("two", np.array(2, np.float32))
    net.op("ReduceMean", [x], f"{name}.mean", axes=[-1])
    net.op("Sub", [x, f"{name}.mean"], f"{name}.centred")
    net.op("Pow", [f"{name}.centred", "two"], f"{name}.squared")
    net.op("ReduceMean", [f"{name}.squared"], f"{name}.variance", axes=[-1])
    net.op("Add", [f"{name}.variance", "epsilon"], f"{name}.positive")
    net.op("Sqrt", [f"{name}.positive"], f"{name}.deviation")
    net.op("Div", [f"{name}.centred", f"{name}.deviation"], f"{name}.hat")
    net.op("Mul", [f"{name}.hat", gain], f"{name}.scaled")
    return net.op("Add", [f"{name}.scaled", bias], name)


def gelu(net, z, name):
    """As exporters write it out; the runtime makes one node of it."""
    for constant, number in (("root2", np.sqrt(2)), ("one", 1), ("half", 0.5)):
        net.constant(constant, np.array(number, np.float32))
    net.op("Div", [z, "root2"], f"{name}.z")
    net.op("Erf", [f"{name}.z"], f"{name}.erf")
    net.op("Add", [f"{name}.erf", "one"], f"{name}.1+erf")
    net.op("Mul", [z, f"{name}.1+erf"], f"{name}.double")
    return net.op("Mul", [f"{name}.double", "half"], name)


@model
def mixer_long_skips():
    """Blocks of LayerNormalization, MatMul and Gelu, which the runtime fuses, with a skip from each to its counterpart."""
    net = Network("mixer_long_skips")
    shape, depth = [4, 2048, 64], 8
    net.input("tokens", shape)

    def block(y, name):
        w = net.input(f"{name}.w", [64, 64])
        bias = net.input(f"{name}.b", [64])
        net.op("MatMul", [layer_norm(net, y, f"{name}.norm", 64), w], f"{name}.product")
        net.op("Add", [f"{name}.product", bias], f"{name}.z")
        return net.op("Add", [y, gelu(net, f"{name}.z", f"{name}.gelu")], f"{name}.y")

    def down(i, y):
        return block(y, f"down{i}")

    def up(i, y, skip):
        net.op("Concat", [y, skip], f"up{i}.joined", axis=-1)
        net.op("MatMul", [f"up{i}.joined", net.input(f"up{i}.join", [128, 64])], f"up{i}.mixed")
        return block(f"up{i}.mixed", f"up{i}")

    net.output(hourglass(depth, down, up, "tokens"), shape)
    return net
