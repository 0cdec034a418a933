"""A convolutional network for inference, with constant weights."""

import numpy as np
from network import Network

from matrix.hourglass import hourglass
from matrix.registry import model

SIZE = 160
CHANNELS = 16


@model
def cnn_residual_infer():
    """Conv, BatchNormalization, Relu and residual Add with pooling at the turn: at the highest level the runtime lays the
    channels out in blocks and folds all of it into the convolutions. Weights are packed before the first run."""
    net = Network("cnn_residual_infer")
    net.input("image", [1, 3, SIZE, SIZE])

    def conv(x, name, c_in=CHANNELS, c_out=CHANNELS, kernel=3, stride=1):
        w = net.weight(f"{name}.w", (c_out, c_in, kernel, kernel), c_in * kernel * kernel)
        return net.op("Conv", [x, w], f"{name}.z", pads=[kernel // 2] * 4, strides=[stride] * 2)

    def normalized(x, name, channels=CHANNELS, **shape):
        statistics = [("scale", 1.0), ("shift", 0.1), ("mean", 0.2), ("variance", 1.5)]
        names = [net.constant(f"{name}.{s}", np.full(channels, v, np.float32)) for s, v in statistics]
        return net.op("BatchNormalization", [conv(x, name, c_out=channels, **shape), *names], f"{name}.norm")

    def block(x, name):
        first = net.op("Relu", [normalized(x, f"{name}.a")], f"{name}.a.y")
        total = net.op("Add", [normalized(first, f"{name}.b", kernel=1), x], f"{name}.sum")
        return net.op("Relu", [total], f"{name}.y")

    def down(i, y):
        return block(y, f"down{i}")

    def up(i, y, skip):
        return block(net.op("Add", [y, skip], f"up{i}.joined"), f"up{i}")

    stem = net.op("Relu", [normalized("image", "stem", c_in=3)], "stem.y")
    y = hourglass(6, down, lambda i, y, skip: up(i, turn(net, y, conv) if i == 5 else y, skip), stem)
    net.output(head(net, y), [1, 10])
    return net


def turn(net, y, conv):
    """Half the resolution and back."""
    net.op("MaxPool", [y], "turn.pooled", kernel_shape=[2, 2], strides=[2, 2])
    net.op("Relu", [conv("turn.pooled", "turn", c_out=2 * CHANNELS)], "turn.y")
    net.op("AveragePool", ["turn.y"], "turn.smooth", kernel_shape=[3, 3], pads=[1] * 4)
    w = net.weight("turn.up.w", (2 * CHANNELS, CHANNELS, 2, 2), 2 * CHANNELS)
    return net.op("ConvTranspose", ["turn.smooth", w], "turn.up", strides=[2, 2])


def head(net, y):
    """Ten classes."""
    net.op("GlobalAveragePool", [y], "head.mean")
    net.op("Flatten", ["head.mean"], "head.flat")
    bias = net.constant("head.b", np.zeros(10, np.float32))
    net.op("Gemm", ["head.flat", net.weight("head.w", (CHANNELS, 10), CHANNELS), bias], "head.z")
    return net.op("Softmax", ["head.z"], "classes", axis=-1)
