"""Quantized networks: with scales known beforehand, as quantized ops or as pairs around float ops, and with scales found at
run time."""

import numpy as np
from network import Network

from matrix.hourglass import hourglass
from matrix.registry import model

CHANNELS = 16
IMAGE = [1, CHANNELS, 160, 160]


class Quantized(Network):
    """A network with one scale for all activations and one for all weights."""

    def __init__(self, name):
        super().__init__(name)
        for side, scale, zero in (("a", 0.02, np.uint8(128)), ("w", 0.01, np.int8(0))):
            self.constant(f"{side}.scale", np.array(scale, np.float32))
            self.constant(f"{side}.zero", np.array(zero))

    def kernel(self, name):
        values = self.random.integers(-100, 100, (CHANNELS, CHANNELS, 1, 1)) / CHANNELS**0.5
        return self.constant(name, values.astype(np.int8))

    def quantize(self, x, name):
        return self.op("QuantizeLinear", [x, "a.scale", "a.zero"], name)

    def dequantize(self, x, name, side="a"):
        return self.op("DequantizeLinear", [x, f"{side}.scale", f"{side}.zero"], name)


@model
def quantized_ops_infer():
    """QLinearConv between tensors of bytes; the levels are joined in floats, which are four times as large."""
    net = Quantized("quantized_ops_infer")
    net.input("image", IMAGE)

    def down(i, y):
        operands = [y, "a.scale", "a.zero", net.kernel(f"w{i}"), "w.scale", "w.zero", "a.scale", "a.zero"]
        return net.op("QLinearConv", operands, f"down{i}")

    def up(i, y, skip):
        left, right = net.dequantize(y, f"up{i}.y"), net.dequantize(skip, f"up{i}.skip")
        net.op("Sub", [left, right], f"up{i}.difference")
        net.op("Tanh", [f"up{i}.difference"], f"up{i}.bent")
        return net.quantize(f"up{i}.bent", f"up{i}")

    y = hourglass(32, down, up, net.quantize("image", "image.bytes"))
    net.output(net.dequantize(y, "y"), IMAGE)
    return net


@model
def quantized_pairs_infer():
    """QuantizeLinear and DequantizeLinear around float ops; the runtime makes quantized ops of them."""
    net = Quantized("quantized_pairs_infer")
    net.input("image", IMAGE)

    def through_bytes(x, name):
        return net.dequantize(net.quantize(x, f"{name}.bytes"), name)

    def down(i, y):
        w = net.dequantize(net.kernel(f"w{i}.bytes"), f"w{i}", side="w")
        return through_bytes(net.op("Conv", [y, w], f"down{i}.z"), f"down{i}")

    def up(i, y, skip):
        total = net.op("Add", [y, skip], f"up{i}.sum")
        joined = through_bytes(total, f"up{i}.joined")
        return through_bytes(net.op("Sigmoid", [joined], f"up{i}.bent"), f"up{i}")

    y = hourglass(20, down, up, through_bytes("image", "image.rounded"))
    net.output(y, IMAGE)
    return net


@model
def quantized_at_run_time():
    """DynamicQuantizeLinear and MatMulInteger, as dynamic quantization writes them."""
    net = Quantized("quantized_at_run_time")
    rows, width = 8192, 64
    net.input("x", [rows, width])

    def down(i, y):
        w = net.constant(f"w{i}", net.random.integers(-60, 60, (width, width)).astype(np.int8))
        found = [f"down{i}.{part}" for part in ("bytes", "scale", "zero")]
        net.several("DynamicQuantizeLinear", [y], found, f"down{i}.quantized")
        net.op("MatMulInteger", [found[0], w, found[2], "w.zero"], f"down{i}.sums")
        net.op("Cast", [f"down{i}.sums"], f"down{i}.floats", to=1)
        net.op("Mul", [found[1], "w.scale"], f"down{i}.step")
        net.op("Mul", [f"down{i}.floats", f"down{i}.step"], f"down{i}.z")
        return net.op("Tanh", [f"down{i}.z"], f"down{i}")

    def up(i, y, skip):
        net.op("Sub", [y, skip], f"up{i}.difference")
        return net.op("Tanh", [f"up{i}.difference"], f"up{i}")

    net.output(hourglass(12, down, up, "x"), [rows, width])
    return net
