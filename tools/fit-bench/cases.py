"""Tasks, and what each system is asked in them: models that scripts of this repository build, with weights from fixed seeds.

Another model of a task is a line of `CASES`; one of another form is a function here.
"""

import dataclasses
import pathlib
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]

TASKS = {
    "order": "The same ops, each once: another order, other settings, simpler graphs. What the process grows by.",
    "order + recompute": "Results may be dropped and computed again.",
    "+ offsets": "Every buffer may have its place in one block.",
    "+ tiles": "Large ops may also run in parts.",
    "any shape": "One file or session for several sizes of the batch; the largest growth over all of them counts.",
    "whole process": "The largest resident set from the first instruction to the last: interpreter, code, weights, runs.",
}
"""Names of tasks, and what they allow."""

KINDS = {
    "onnx": "an ONNX model, beside ONNX Runtime with nothing set",
    "torch": "a training step of PyTorch, forward and backward, beside eager execution",
    "buffers": "the buffers of a model in the order of its file, beside the most that is live at one time",
}
"""What a system gets, and what it is compared with."""

REFERENCE = {"onnx": ("onnxruntime", "default"), "torch": ("torch_eager", "eager")}
"""System and setting that a kind is compared with: its bytes, its time and its bits."""

ALIGNMENT = 64
"""Offsets of buffers are multiples of it, in bytes."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A model of a task."""

    task: str
    kind: str
    name: str
    dims: tuple[tuple[str, int], ...] = ()
    """Sizes of the open dimension, one for each run of a round, smallest first."""


CASES = [
    *(Case("order", "onnx", name) for name in ("mlp_tiny_train", "unet_tiny_train", "transformer_train")),
    *(Case("order + recompute", "onnx", name) for name in ("unet_tiny_train", "transformer_train")),
    Case("order + recompute", "torch", "gpt-tiny"),
    *(Case("+ offsets", "onnx", name) for name in ("unet_tiny_train", "transformer_train")),
    *(Case("+ offsets", "buffers", name) for name in ("unet_tiny_train", "transformer_train", "mixer_long_skips")),
    *(Case("+ tiles", "onnx", name) for name in ("cnn_residual_infer", "pyramid_infer")),
    Case("any shape", "onnx", "mlp_named_batch_train", tuple(("batch", size) for size in (512, 2048, 8192))),
    Case("whole process", "onnx", "stack_infer"),
]


def network(name):
    """The network of a name, built anew.

    Raises:
        KeyError: There is none of this name.
    """
    sys.path[:0] = [str(ROOT / "test" / "models")]
    try:
        import generate
        from matrix import BUILDERS
    finally:
        del sys.path[0]
    builders = [generate.mlp_tiny_train, generate.unet_tiny_train, pyramid_infer, stack_infer, *BUILDERS]
    return {build.__name__: build for build in builders}[name]()


def pyramid_infer(size=256, channels=24):
    """Convolutions of an image whose resolution falls: the first ones are the peak."""
    from network import Network

    net = Network("pyramid_infer")
    y, inside = net.input("image", [1, 3, size, size]), 3
    for level in range(4):
        for part in "ab":
            outside = channels << level
            w = net.weight(f"{level}{part}.w", (outside, inside, 3, 3), inside * 9)
            z = net.op("Conv", [y, w], f"{level}{part}.z", pads=[1] * 4, strides=[1 + (part == "b")] * 2)
            y, inside = net.op("Relu", [z], f"{level}{part}.y"), outside
    net.op("GlobalAveragePool", [y], "mean")
    net.output("mean", [1, inside, 1, 1])
    return net


def stack_infer(width=1536, layers=8, rows=16):
    """Matrices one after the other: weights are nearly all that there is."""
    from network import Network

    net = Network("stack_infer")
    y = net.input("x", [rows, width])
    for layer in range(layers):
        w = net.weight(f"{layer}.w", (width, width), width)
        y = net.op("Relu", [net.op("MatMul", [y, w], f"{layer}.z")], f"{layer}.y")
    net.output(y, [rows, width])
    return net


def write(case, folder):
    """Writes the model of a case of kind `onnx`, and its inputs for each size. Returns the path of the model."""
    import numpy as np
    import onnx

    net = network(case.name)
    path = pathlib.Path(folder) / f"{net.name}.onnx"
    path.write_bytes(net.proto().SerializeToString(deterministic=True))
    for at, dims in enumerate(case.dims or [None]):
        feed = {}
        for value in net.inputs:
            tensor = value.type.tensor_type
            shape = [dim.dim_value or dict([dims])[dim.dim_param] for dim in tensor.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            random = np.random.default_rng(zlib.crc32(value.name.encode()))
            scale = max(1, shape[0]) ** -0.5 if len(shape) == 2 else 1.0
            is_float = np.issubdtype(dtype, np.floating)
            numbers = random.standard_normal(shape) * scale if is_float else random.integers(0, 4, shape)
            feed[value.name] = numbers.astype(dtype)
        np.savez(pathlib.Path(folder) / f"feed{at}.npz", **feed)
    return path


def buffers(case):
    """The buffers of a model in the order of its file, `(lower, upper, size)`: each result from its node to the last one
    that reads it. Sizes are those that the `onnx` package infers, weights and inputs apart."""
    import numpy as np
    import onnx

    graph = onnx.shape_inference.infer_shapes(network(case.name).proto(), strict_mode=True).graph
    sizes = {}
    for value in [*graph.value_info, *graph.output]:
        tensor = value.type.tensor_type
        count = int(np.prod([dim.dim_value for dim in tensor.shape.dim], dtype=np.int64))
        sizes[value.name] = count * onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
    last = {value.name: len(graph.node) for value in graph.output}
    for at, node in enumerate(graph.node):
        for name in node.input:
            last[name] = max(last.get(name, 0), at + 1)
    made = [(at, name) for at, node in enumerate(graph.node) for name in node.output if name]
    return [(at, max(at + 1, last.get(name, 0)), sizes[name]) for at, name in made if sizes[name]]


def step(case):
    """The module of a case of kind `torch`, and its inputs."""
    sys.path[:0] = [str(ROOT / "test" / "torch")]
    import models

    return models.make(case.name)
