#!/usr/bin/env python3
"""Writes the models of this folder: one training step each, forward and backward, written out by hand.

    python test/models/generate.py [FOLDER]

Needs `onnx` and `numpy`. The files are the same on every run and machine: weights come from a fixed seed, names from the
position in the network. See README.md for what the models are.
"""

import pathlib
import sys

import numpy as np
from network import Network


class Step(Network):
    """A training step under construction: `x` and `target` go in, the loss and the gradient of every weight come out."""

    producer = "generate.py"

    def __init__(self, name):
        super().__init__(name)
        self.gradients = []

    def silu(self, layer, z):
        """y = z * sigmoid(z): two cheap results, each as large as the expensive `z` they follow from."""
        self.op("Sigmoid", [z], f"{layer}.s")
        return self.op("Mul", [z, f"{layer}.s"], f"{layer}.y")

    def silu_gradient(self, layer, dy):
        """dz = dy * (s + y * (1 - s))"""
        self.op("Sub", ["one", f"{layer}.s"], f"{layer}.1-s")
        self.op("Mul", [f"{layer}.y", f"{layer}.1-s"], f"{layer}.y(1-s)")
        self.op("Add", [f"{layer}.s", f"{layer}.y(1-s)"], f"{layer}.slope")
        return self.op("Mul", [dy, f"{layer}.slope"], f"{layer}.dz")

    def weight_gradient(self, layer, image, kernel, **attributes):
        """Convolves with batch and channels exchanged, so that the sum runs over the batch."""
        self.op("Transpose", [image], f"{layer}.image_t", perm=[1, 0, 2, 3])
        self.op("Transpose", [kernel], f"{layer}.kernel_t", perm=[1, 0, 2, 3])
        self.op("Conv", [f"{layer}.image_t", f"{layer}.kernel_t"], f"{layer}.dw_t", **attributes)
        self.gradients.append(self.op("Transpose", [f"{layer}.dw_t"], f"{layer}.dw", perm=[1, 0, 2, 3]))

    def squared_error(self, prediction, count):
        self.op("Sub", [prediction, "target"], "error")
        self.op("Mul", ["error", "error"], "error.squared")
        self.op("ReduceMean", ["error.squared"], "loss", keepdims=0)
        self.constant("2/n", np.array(2 / count, np.float32))
        return self.op("Mul", ["error", "2/n"], "error.d")

    def finish(self, x, target):
        """States the signature, given the shapes of what goes in."""
        shapes = {weight.name: list(weight.dims) for weight in self.weights}
        self.input("x", x)
        self.input("target", target)
        self.output("loss", [])
        for gradient in self.gradients:
            self.output(gradient, shapes[gradient.replace(".dw", ".w")])
        return self


def unet_tiny_train(batch=16, size=32):
    """Two resolutions and one skip connection that lives from the first convolutions to the end of the backward pass."""
    step = Step("unet_tiny_train")
    same = {"pads": [1, 1, 1, 1]}
    half = {"strides": [2, 2]}
    step.constant("one", np.array(1, np.float32))
    forward = [("enc1", 3, 16, 3, same), ("enc2", 16, 16, 3, same), ("down", 16, 32, 2, half), ("mid", 32, 32, 3, same)]
    y = "x"
    inputs = {}
    for layer, c_in, c_out, k, attributes in forward:
        inputs[layer] = y
        w = step.weight(f"{layer}.w", (c_out, c_in, k, k), c_in * k * k)
        y = step.silu(layer, step.op("Conv", [y, w], f"{layer}.z", **attributes))
    w = step.weight("up.w", (32, 16, 2, 2), 32)
    up = step.op("ConvTranspose", [y, w], "up.y", **half)
    joined = step.op("Concat", [up, "enc2.y"], "skip.y", axis=1)
    w = step.weight("dec.w", (16, 32, 3, 3), 32 * 9)
    y = step.silu("dec", step.op("Conv", [joined, w], "dec.z", **same))
    w = step.weight("head.w", (1, 16, 1, 1), 16)
    prediction = step.op("Conv", [y, w], "head.y")

    dy = step.squared_error(prediction, batch * size * size)
    step.weight_gradient("head", "dec.y", dy)
    dy = step.op("ConvTranspose", [dy, "head.w"], "head.dx")
    dz = step.silu_gradient("dec", dy)
    step.weight_gradient("dec", "skip.y", dz, **same)
    dy = step.op("ConvTranspose", [dz, "dec.w"], "dec.dx", **same)
    step.split(dy, [16, 16], ["up.dy", "skip.dy"], axis=1)
    step.weight_gradient("up", "up.dy", "mid.y", dilations=[2, 2])
    dy = step.op("Conv", ["up.dy", "up.w"], "up.dx", **half)
    for layer, _, _, _, attributes in reversed(forward):
        if layer == "enc2":
            dy = step.op("Add", [dy, "skip.dy"], "enc2.dy")
        dz = step.silu_gradient(layer, dy)
        step.weight_gradient(layer, inputs[layer], dz, **({"dilations": [2, 2]} if layer == "down" else same))
        if layer != "enc1":
            dy = step.op("ConvTranspose", [dz, f"{layer}.w"], f"{layer}.dx", **attributes)
    return step.finish([batch, 3, size, size], [batch, 1, size, size])


def mlp_tiny_train(batch=4096, width=64, layers=6):
    """A chain of equal layers: every activation waits for its gradient."""
    step = Step("mlp_tiny_train")
    step.constant("one", np.array(1, np.float32))
    y = "x"
    inputs = []
    for i in range(layers):
        inputs.append(y)
        w = step.weight(f"l{i}.w", (width, width), width)
        y = step.silu(f"l{i}", step.op("MatMul", [y, w], f"l{i}.z"))
    dy = step.squared_error(y, batch * width)
    for i in reversed(range(layers)):
        dz = step.silu_gradient(f"l{i}", dy)
        step.gradients.append(step.op("Gemm", [inputs[i], dz], f"l{i}.dw", transA=1))
        if i > 0:
            dy = step.op("Gemm", [dz, f"l{i}.w"], f"l{i}.dx", transB=1)
    return step.finish([batch, width], [batch, width])


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    unet_tiny_train().save(target)
    mlp_tiny_train().save(target)
