"""Deep perceptrons in training: a chain of layers whose activations all wait for their gradients.

Weights are inputs, so that nothing but the signature tells the runtime about them. Variants differ in what a runtime sees of
the same network: fixed or named batch, full or half precision.
"""

import numpy as np
from network import Network
from onnx import TensorProto, helper

from matrix.registry import model

WIDTH = 64


def train(name, layers, batch, element=TensorProto.FLOAT):
    """Forward and backward through `layers` layers `y = tanh(x w + b)`; the loss is the mean square of the last `y`."""
    step = Network(name)
    dtype = helper.tensor_dtype_to_np_dtype(element)
    for constant, number in (("one", 1), ("two", 2)):
        step.constant(constant, np.array(number, dtype))
    y = [step.input("x", [batch, WIDTH], element)]
    for i in range(layers):
        w = step.input(f"w{i}", [WIDTH, WIDTH], element)
        b = step.input(f"b{i}", [WIDTH], element)
        step.op("Gemm", [y[-1], w, b], f"z{i}")
        y.append(step.op("Tanh", [f"z{i}"], f"y{i}"))
    step.op("Mul", [y[-1], y[-1]], "squares")
    step.op("ReduceMean", ["squares"], "loss", keepdims=0)
    step.output("loss", [], element)
    dy = step.op("Mul", [y[-1], "two"], "dloss")
    for i in reversed(range(layers)):
        dy = backward(step, i, y, dy, element)
    return step


def backward(step, i, y, dy, element):
    """The gradients of layer `i`, and of what it read."""
    step.op("Mul", [y[i + 1], y[i + 1]], f"y{i}.squared")
    step.op("Sub", ["one", f"y{i}.squared"], f"slope{i}")
    dz = step.op("Mul", [dy, f"slope{i}"], f"dz{i}")
    step.output(step.op("Gemm", [y[i], dz], f"dw{i}", transA=1), [WIDTH, WIDTH], element)
    rows = step.constant("rows", np.array([0]))
    step.output(step.op("ReduceSum", [dz, rows], f"db{i}", keepdims=0), [WIDTH], element)
    return step.op("Gemm", [dz, f"w{i}"], f"dx{i}", transB=1) if i > 0 else None


@model
def mlp_deep_train():
    """32 layers."""
    return train("mlp_deep_train", layers=32, batch=8192)


@model
def mlp_named_batch_train():
    """The batch has a name instead of a size."""
    step = train("mlp_named_batch_train", layers=16, batch="batch")
    step.needs_dims(batch=8192)
    return step


@model
def mlp_half_train():
    """Half precision, for which the CPU has few kernels: the runtime puts casts around the others."""
    return train("mlp_half_train", layers=16, batch=8192, element=TensorProto.FLOAT16)
