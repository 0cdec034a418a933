"""Networks whose inputs offer little to hold on to: none is a vector of floats.

What must be known at run time only has to be read off some input; these have integers, images, matrices or doubles alone.
"""

import numpy as np
from network import Network
from onnx import TensorProto

from matrix.hourglass import hourglass
from matrix.registry import model

DEPTH = 12


def elementwise(net, y, weight):
    """Down by `tanh(w y)`, up by `sigmoid(y - skip)`; `weight(i)` names what a level multiplies with."""

    def down(i, y):
        net.op("Mul", [y, weight(i)], f"down{i}.product")
        return net.op("Tanh", [f"down{i}.product"], f"down{i}")

    def up(i, y, skip):
        net.op("Sub", [y, skip], f"up{i}.difference")
        return net.op("Sigmoid", [f"up{i}.difference"], f"up{i}")

    return hourglass(DEPTH, down, up, y)


@model
def integers_only():
    """The one input are token numbers."""
    net = Network("integers_only")
    net.input("tokens", [64, 128], TensorProto.INT64)
    table = net.weight("table", [32, 64], 2)
    y = net.op("Gather", [table, "tokens"], "embedded")
    y = elementwise(net, y, lambda i: net.weight(f"w{i}", [64], 2))
    net.output(y, [64, 128, 64])
    return net


@model
def images_only():
    """Every input has rank 4, kernels included."""
    net = Network("images_only")
    channels = 16
    shape = [1, channels, 160, 160]
    net.input("image", shape)

    def down(i, y):
        net.op("Conv", [y, net.input(f"kernel{i}", [channels, channels, 1, 1])], f"down{i}.z")
        return net.op("Sigmoid", [f"down{i}.z"], f"down{i}")

    def up(i, y, skip):
        net.op("Mul", [y, skip], f"up{i}.gated")
        return net.op("Tanh", [f"up{i}.gated"], f"up{i}")

    net.output(hourglass(DEPTH, down, up, "image"), shape)
    return net


@model
def matrices_only():
    """Every input is a matrix, biases included."""
    net = Network("matrices_only")
    net.input("x", [1024, 512])
    net.output(elementwise(net, "x", lambda i: net.input(f"w{i}", [1, 512])), [1024, 512])
    return net


@model
def doubles_only():
    """Every input is of doubles."""
    net = Network("doubles_only")
    net.input("x", [1024, 256], TensorProto.DOUBLE)
    weight = lambda i: net.constant(f"w{i}", np.array(1 - 0.05 * i))
    net.output(elementwise(net, "x", weight), [1024, 256], TensorProto.DOUBLE)
    return net
