#!/usr/bin/env python3
"""Models whose facts lie in this folder: kernels with workspace, half precision, quantized, recurrent.

    make_models.py FOLDER        then  LD_PRELOAD=heap_peak.so facts.py FOLDER/NAME.onnx all default > NAME.all.default.json

Each is saved after the runtime's EXTENDED optimizations.
"""
import os, sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper as h, numpy_helper

RANDOM = np.random.default_rng(0)


def weight(*shape, dtype=np.float32):
    return (RANDOM.standard_normal(shape) * 0.05).astype(dtype)


def ints(*values):
    return np.array(values, np.int64)


def node(op, inputs, outputs, **attributes):
    """Names are parted by spaces; `-` leaves an operand out."""
    return h.make_node(op, [n.replace("-", "") for n in inputs.split()], outputs.split(), **attributes)


def save(folder, name, nodes, inputs, outputs, weights):
    value = lambda v: h.make_tensor_value_info(*v)
    held = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = h.make_graph(nodes, name, [value(v) for v in inputs], [value(v) for v in outputs], held)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = os.path.join(folder, name + ".onnx")
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def transformer(folder, name, dtype, code):
    """Three layers; attention and Gelu in single operators."""
    nodes, w, x = [], {}, "x"
    w["heads"], w["flat"], w["scale"] = ints(4, 128, 4, 64), ints(4, 128, 256), np.array(0.125, dtype)
    w["half"], w["root"], w["one"] = np.array(0.5, dtype), np.array(2**0.5, dtype), np.array(1, dtype)
    w["s"], w["t"] = np.ones(256, dtype), np.zeros(256, dtype)
    for l in range(3):
        for k, shape in {"q": (256, 256), "k": (256, 256), "v": (256, 256), "o": (256, 256), "a": (256, 1024), "b": (1024, 256), "c": (1024,)}.items():
            w[f"{k}{l}"] = weight(*shape, dtype=dtype)
        nodes.append(node("LayerNormalization", f"{x} s t", f"n{l}", axis=-1))
        for k in "qkv":
            nodes.append(node("MatMul", f"n{l} {k}{l}", f"m{k}{l}"))
            nodes.append(node("Reshape", f"m{k}{l} heads", f"r{k}{l}"))
            nodes.append(node("Transpose", f"r{k}{l}", f"h{k}{l}", perm=[0, 2, 3, 1] if k == "k" else [0, 2, 1, 3]))
        nodes += [
            node("MatMul", f"hq{l} hk{l}", f"w{l}"), node("Mul", f"w{l} scale", f"ws{l}"), node("Softmax", f"ws{l}", f"p{l}"),
            node("MatMul", f"p{l} hv{l}", f"y{l}"), node("Transpose", f"y{l}", f"yt{l}", perm=[0, 2, 1, 3]),
            node("Reshape", f"yt{l} flat", f"yr{l}"), node("MatMul", f"yr{l} o{l}", f"ao{l}"), node("Add", f"ao{l} {x}", f"z{l}"),
            node("LayerNormalization", f"z{l} s t", f"nn{l}", axis=-1), node("MatMul", f"nn{l} a{l}", f"fa{l}"),
            node("Add", f"fa{l} c{l}", f"fb{l}"), node("Div", f"fb{l} root", f"g1{l}"), node("Erf", f"g1{l}", f"g2{l}"),
            node("Add", f"g2{l} one", f"g3{l}"), node("Mul", f"fb{l} g3{l}", f"g4{l}"), node("Mul", f"g4{l} half", f"g5{l}"),
            node("MatMul", f"g5{l} b{l}", f"f2{l}"), node("Add", f"f2{l} z{l}", f"x{l}"),
        ]
        x = f"x{l}"
    nodes.append(node("Identity", x, "y"))
    save(folder, name, nodes, [("x", code, [4, 128, 256])], [("y", code, [4, 128, 256])], w)


def recurrent(folder):
    nodes = [
        node("LSTM", "x w r", "a", hidden_size=128, direction="bidirectional"), node("Transpose", "a", "b", perm=[0, 2, 1, 3]),
        node("Reshape", "b shape", "c"), node("GRU", "c w2 r2", "d", hidden_size=64), node("Squeeze", "d axis", "y"),
    ]
    w = {"w": weight(2, 512, 64), "r": weight(2, 512, 128), "shape": ints(64, 8, 256), "w2": weight(1, 192, 256), "r2": weight(1, 192, 64), "axis": ints(1)}
    save(folder, "recurrent", nodes, [("x", 1, [64, 8, 64])], [("y", 1, [64, 8, 64])], w)


def quantized(folder):
    nodes, x = [], "x"
    w = {"s": np.array(0.02, np.float32), "z": np.array(128, np.uint8), "zi": np.array(0, np.int8)}
    for l in range(4):
        w[f"w{l}"] = RANDOM.integers(-100, 100, (16, 16, 3, 3)).astype(np.int8)
        nodes += [
            node("QuantizeLinear", f"{x} s z", f"q{l}"), node("DequantizeLinear", f"q{l} s z", f"d{l}"),
            node("DequantizeLinear", f"w{l} s zi", f"dw{l}"), node("Conv", f"d{l} dw{l}", f"c{l}", pads=[1] * 4), node("Relu", f"c{l}", f"x{l}"),
        ]
        x = f"x{l}"
    nodes += [node("QuantizeLinear", f"{x} s z", "qe"), node("DequantizeLinear", "qe s z", "y")]
    save(folder, "quantized", nodes, [("x", 1, [2, 16, 64, 64])], [("y", 1, [2, 16, 64, 64])], w)


def workspaces(folder):
    nodes = [
        node("Softmax", "x", "a", axis=1), node("CumSum", "a one", "b"), node("TopK", "b k", "v i"), node("Resize", "image - scales", "r", mode="linear"),
        node("Pad", "r pads", "p", mode="reflect"), node("ReduceMean", "p plane", "m", keepdims=0), node("Einsum", "b b", "e", equation="bij,bkj->bik"),
        node("ScatterElements", "b order v", "s", axis=2), node("Where", "condition s b", "w"), node("GatherElements", "w order", "g", axis=2),
        node("InstanceNormalization", "image ones zeros", "n"), node("HardSwish", "n", "h"), node("ReduceSum", "h plane", "t", keepdims=0),
        node("Add", "t m", "y2"), node("ReduceSum", "e last", "y1", keepdims=0), node("ReduceSum", "g last", "y3", keepdims=0),
    ]
    order = np.argsort(RANDOM.standard_normal((8, 64, 64)), axis=2).astype(np.int64)
    w = {
        "one": np.array(1, np.int64), "k": ints(64), "scales": np.array([1, 1, 2, 2], np.float32), "pads": ints(0, 0, 2, 2, 0, 0, 2, 2),
        "plane": ints(2, 3), "order": order, "ones": np.ones(16, np.float32), "zeros": np.zeros(16, np.float32), "last": ints(2),
    }
    inputs = [("x", 1, [8, 64, 256]), ("image", 1, [2, 16, 64, 64]), ("condition", 9, [8, 64, 256])]
    save(folder, "workspaces", nodes, inputs, [("y1", 1, [8, 64]), ("y2", 1, [2, 16]), ("y3", 1, [8, 64])], w)


if __name__ == "__main__":
    ort.set_default_logger_severity(3)
    transformer(sys.argv[1], "transformer", np.float32, 1)
    transformer(sys.argv[1], "transformer_half", np.float16, 10)
    for make in (recurrent, quantized, workspaces):
        make(sys.argv[1])
