"""Offsets for TensorFlow Lite Micro: a model with a plan of its memory, which the interpreter follows instead of its own.

    from remat_opt import tflm

    model = tflm.plan(pathlib.Path("model.tflite").read_bytes())
    tflm.offsets(model)                  # of each tensor in the arena; None where the interpreter decides

The plan is the metadata `OfflineMemoryAllocation` of the model. Offsets speak about the part of the arena in which
tensors lie while the model runs; what kernels ask for besides is placed around them. Ops run in the order of the model.
The module needs the package `tflite-micro` or `ai-edge-litert` for the schema of models when one is planned, not
before.

Source: TensorFlow Lite Micro, `docs/memory_management.md`, "Offline planned tensor allocations", and
`micro_allocation_info.cc` for the lifetimes of tensors.
"""

from __future__ import annotations

import importlib
import math
import struct
from collections.abc import Sequence
from typing import Any

from ._command import Seconds
from ._placement import Placement, place
from .errors import ModelError, UsageError

__all__ = ["metadata", "offsets", "placement", "plan", "with_offsets"]

NAME = b"OfflineMemoryAllocation"
VERSION = 1
ALIGNMENT = 16
"""Bytes that every offset and every size in the arena is a multiple of: `MicroArenaBufferAlignment()`."""
ANYWHERE = -1
"""The offset of a tensor that the interpreter places itself."""
MOST = 2**31
"""Offsets are integers of 32 bits with a sign."""

_SCHEMAS = ("tflite_micro.tensorflow.lite.micro.python.schema_py_generated", "ai_edge_litert.schema_py_generated")
_BYTES = {
    **dict.fromkeys(("BOOL", "INT8", "UINT8"), 1),
    **dict.fromkeys(("INT16", "UINT16", "FLOAT16"), 2),
    **dict.fromkeys(("FLOAT32", "INT32", "UINT32"), 4),
    **dict.fromkeys(("FLOAT64", "INT64", "UINT64", "COMPLEX64"), 8),
    "COMPLEX128": 16,
}


def metadata(places: Sequence[int | None]) -> bytes:
    """The content of the metadata for a model with one subgraph: version, subgraph and number of tensors, then the
    offset of each tensor, -1 for `None`; integers of 32 bits, little-endian.

    Raises:
        UsageError: An offset is negative, no multiple of 16 or too large.
    """
    for at, offset in enumerate(places):
        if offset is not None and (not 0 <= offset < MOST or offset % ALIGNMENT):
            raise UsageError(f"tensor {at} cannot lie at byte {offset} of the arena")
    numbers = [ANYWHERE if offset is None else offset for offset in places]
    return struct.pack(f"<{3 + len(numbers)}i", VERSION, 0, len(numbers), *numbers)


def _parsed(content: bytes) -> list[int | None]:
    """The offsets in such a content."""
    if len(content) < 12 or len(content) % 4:
        raise ModelError(f"a plan of {len(content)} bytes is cut off")
    _, subgraph, count, *numbers = struct.unpack(f"<{len(content) // 4}i", content)
    if subgraph != 0 or count != len(numbers):
        raise ModelError(f"a plan of {count} tensors of subgraph {subgraph} has {len(numbers)} offsets")
    return [None if number == ANYWHERE else number for number in numbers]


def offsets(model: bytes) -> list[int | None] | None:
    """The offsets that a model holds, of each tensor in its order; `None` where it has no plan.

    Raises:
        ModelError: The plan is cut off, or one of another subgraph than the first.
    """
    opened = _opened(model)
    for entry in opened.metadata or ():
        if entry.name == NAME:
            return _parsed(bytes(opened.buffers[entry.buffer].data))
    return None


def placement(
    model: bytes, *, time_limit: Seconds = 10.0, step_limit: int | None = None, seed: int = 0
) -> tuple[list[int | None], Placement]:
    """Offsets of a model's tensors, `None` for those that take no place in the arena, and how low they lie.

    Args:
        model: The content of a file `.tflite` with one subgraph, all of whose shapes are known.
        time_limit: Seconds to search; one pass over the tensors is always made.
        step_limit: How often a tensor may be tried at an offset; with the same seed, every call gives the same
            offsets.
        seed: Of the random choices.

    Raises:
        ModelError: The model has several subgraphs, or a size that is not known, or weights behind its graph.
    """
    opened = _opened(model)
    found = _lifetimes(opened)
    buffers = [
        {"lower": lower, "upper": upper, "size": size, "alignment": ALIGNMENT} for lower, upper, size in found.values()
    ]
    placed = place(buffers, time_limit=time_limit, step_limit=step_limit, seed=seed)
    places: list[int | None] = [None] * len(opened.subgraphs[0].tensors)
    for tensor, offset in zip(found, placed.offsets, strict=True):
        places[tensor] = offset
    return places, placed


def plan(model: bytes, *, time_limit: Seconds = 10.0, step_limit: int | None = None, seed: int = 0) -> bytes:
    """The model with offsets for its tensors, in the place of those that it holds. Arguments and errors are those of
    [`placement`][remat_opt.tflm.placement]."""
    places, _ = placement(model, time_limit=time_limit, step_limit=step_limit, seed=seed)
    return with_offsets(model, places)


def with_offsets(model: bytes, places: Sequence[int | None]) -> bytes:
    """The model with these offsets of its tensors.

    Raises:
        UsageError: There are not as many as tensors, or one is not possible.
    """
    import flatbuffers

    schema, opened = _schema(), _opened(model)
    if len(places) != len(opened.subgraphs[0].tensors):
        raise UsageError(f"{len(places)} offsets for {len(opened.subgraphs[0].tensors)} tensors")
    content = schema.BufferT()
    content.data = list(metadata(places))
    entry = schema.MetadataT()
    entry.name, entry.buffer = NAME, len(opened.buffers)
    opened.buffers.append(content)
    opened.metadata = [other for other in opened.metadata or () if other.name != NAME] + [entry]
    builder = flatbuffers.Builder(len(model) + 4 * len(places) + 1024)
    builder.Finish(opened.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _schema() -> Any:
    for name in _SCHEMAS:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise UsageError("the schema of TensorFlow Lite is not there: install `tflite-micro` or `ai-edge-litert`")


def _opened(model: bytes) -> Any:
    if model[4:8] != b"TFL3":
        raise ModelError("these bytes are no model of TensorFlow Lite")
    opened = _schema().ModelT.InitFromPackedBuf(model, 0)
    if any(getattr(buffer, "offset", 0) for buffer in opened.buffers):
        raise ModelError("the model keeps weights behind its graph, which interpreters of this kind do not read")
    return opened


def _lifetimes(model: Any) -> dict[int, tuple[int, int, int]]:
    """First time, time after the last one and bytes of each tensor that the interpreter places: inputs are there before
    the first op, whose time is 1, and outputs until after the last one."""
    if len(model.subgraphs) != 1:
        raise ModelError(f"the model has {len(model.subgraphs)} subgraphs, a plan speaks about one")
    graph = model.subgraphs[0]
    count = len(graph.operators or ())
    first: dict[int, int] = dict.fromkeys(_numbers(graph.inputs), 0)
    last = dict(first)
    for time, op in enumerate(graph.operators or (), 1):
        for tensor in _numbers(op.inputs):
            last[tensor] = time
        for tensor in _numbers(op.outputs):
            first.setdefault(tensor, time)
            last[tensor] = time
    last.update(dict.fromkeys(_numbers(graph.outputs), count))
    found = {}
    for at, tensor in enumerate(graph.tensors):
        is_constant = model.buffers[tensor.buffer].data is not None and len(model.buffers[tensor.buffer].data) > 0
        if at in first and not is_constant and not tensor.isVariable:
            size = _bytes(tensor)
            if size > 0:
                found[at] = first[at], last.get(at, first[at]) + 1, -(-size // ALIGNMENT) * ALIGNMENT
    return found


def _numbers(numbers: Any) -> list[int]:
    """The tensors of a list, without those that are left out."""
    return [] if numbers is None else [int(number) for number in numbers if number >= 0]


def _bytes(tensor: Any) -> int:
    kinds = {number: name for name, number in vars(_schema().TensorType).items() if not name.startswith("_")}
    kind, shape = kinds.get(tensor.type), [] if tensor.shape is None else [int(extent) for extent in tensor.shape]
    if kind not in _BYTES or any(extent < 0 for extent in shape):
        raise ModelError(f"the size of tensor `{tensor.name.decode()}` is not known: {kind} {shape}")
    return _BYTES[kind] * math.prod(shape)
