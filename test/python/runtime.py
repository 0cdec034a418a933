"""Runs a model in ONNX Runtime on inputs seeded by name, and returns the bits of its outputs."""

import dataclasses
import zlib

import numpy as np
import onnxruntime as ort

LEVELS = {
    "off": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
ORDERS = {"default": ort.ExecutionOrder.DEFAULT, "priority": ort.ExecutionOrder.PRIORITY_BASED}
TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(uint8)": np.uint8,
    "tensor(int8)": np.int8,
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """What of a session bears on memory and bits. Without arguments: all that the runtime does by itself."""

    level: str = "all"
    order: str = "default"
    arena: bool = True
    """The memory arena, and with it the memory pattern."""
    reuse: bool = True
    """Dead buffers are handed to later tensors of the same shape."""

    def __str__(self):
        switches = [name for name, on in (("arena", self.arena), ("reuse", self.reuse)) if not on]
        return " ".join([self.level, self.order] + [f"no {name}" for name in switches])


def session(path, settings):
    """A session on the CPU, one thread."""
    ort.set_default_logger_severity(3)
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS[settings.level]
    options.execution_order = ORDERS[settings.order]
    options.enable_mem_reuse = settings.reuse
    options.enable_cpu_mem_arena = settings.arena
    options.enable_mem_pattern = settings.arena
    options.intra_op_num_threads = 1
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def inputs(session, dims):
    feed = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else dims.get(d, 1) for d in i.shape]
        rng = np.random.default_rng(zlib.crc32(i.name.encode()))
        if np.issubdtype(TYPES[i.type], np.floating):
            values = rng.standard_normal(shape)
            if len(shape) == 1:
                values = 1.0 + 0.1 * values
            elif len(shape) in (2, 4) and shape[0] > 1:
                values /= max(1, int(np.prod(shape[1:]))) ** 0.5
        else:
            values = rng.integers(0, 4, shape)
        feed[i.name] = np.asarray(values).astype(TYPES[i.type])
    return feed


def plain(value):
    """What a tensor, or a list of tensors, is made of; NaNs compare by their bits."""
    if isinstance(value, list):
        return [plain(element) for element in value]
    return (str(value.dtype), value.shape, value.tobytes())


def bits(path, level, order="default", dims=None):
    """(name, type, shape, bytes) of every output. `dims` holds values of named dimensions, 1 where none is given."""
    runner = session(path, Settings(level=level, order=order))
    names = [o.name for o in runner.get_outputs()]
    values = runner.run(names, inputs(runner, dims or {}))
    return [(n, plain(v)) for n, v in zip(names, values, strict=True)]
