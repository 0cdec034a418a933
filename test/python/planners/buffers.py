"""Buffers that are placed in one block, and what is true of every placement."""

from __future__ import annotations

import csv
import dataclasses
import math
import pathlib


@dataclasses.dataclass(frozen=True)
class Buffer:
    """`size` bytes that are needed from time `begin` on until before `end`."""

    size: int
    begin: int
    end: int


def read(path: pathlib.Path) -> list[Buffer]:
    """The buffers of a file in MiniMalloc's format, without gaps and alignments (`docs/placement.md`)."""
    with path.open(newline="", encoding="utf-8") as file:
        return [Buffer(int(row["size"]), int(row["lower"]), int(row["upper"])) for row in csv.DictReader(file)]


@dataclasses.dataclass(frozen=True)
class Graph:
    """What ops make and read, by numbers."""

    buffers: list[Buffer]
    """What is made, in the order in which it is made; needed from its op to its last reader, what stays to the last op."""
    reads: list[set[int]]
    """What each op reads."""
    stays: set[int]
    """The outputs."""

    def ordered(self, order: list[int]) -> Graph:
        """The same where the ops run in another order."""
        place = {op: at for at, op in enumerate(order)}
        assert sorted(order) == list(range(len(self.reads)))
        buffers = []
        for at, buffer in enumerate(self.buffers):
            begin = place[buffer.begin]
            readers = [place[op] for op, names in enumerate(self.reads) if at in names]
            assert all(reader > begin for reader in readers)
            last = len(order) - 1 if at in self.stays else max([begin, *readers])
            buffers.append(Buffer(buffer.size, begin, last + 1))
        return Graph(buffers, [self.reads[op] for op in order], self.stays)


def of_model(path: pathlib.Path) -> Graph:
    """The nodes of an ONNX model in their order and what they make, in multiples of 16 bytes; nothing runs in place, weights and inputs of the model are
    left out."""
    import onnx

    model = onnx.shape_inference.infer_shapes(onnx.load(path), strict_mode=True, data_prop=True)
    kinds = {info.name: info.type.tensor_type for info in (*model.graph.value_info, *model.graph.output)}
    number: dict[str, int] = {}
    buffers, reads = [], []
    for step, node in enumerate(model.graph.node):
        reads.append({number[name] for name in node.input if name in number})
        for name in filter(None, node.output):
            item = onnx.helper.tensor_dtype_to_np_dtype(kinds[name].elem_type).itemsize
            size = item * math.prod(dim.dim_value for dim in kinds[name].shape.dim)
            number[name] = len(buffers)
            buffers.append(Buffer(-(-size // 16) * 16, step, step + 1))
    stays = {number[output.name] for output in model.graph.output if output.name in number}
    return Graph(buffers, reads, stays).ordered(list(range(len(reads))))


def load(buffers: list[Buffer]) -> int:
    """The largest sum of sizes that are needed at one time: no placement is lower."""
    ends = sorted(end for b in buffers for end in ((b.begin, 1, b.size), (b.end, 0, -b.size)))
    now = most = 0
    for _, _, change in ends:
        now += change
        most = max(most, now)
    return most


def height(buffers: list[Buffer], offsets: list[int]) -> int:
    """The end of the buffer that ends last; an `AssertionError` where two share a byte at one time."""
    assert len(offsets) == len(buffers)
    active: list[int] = []
    for at in sorted(range(len(buffers)), key=lambda at: buffers[at].begin):
        active = [other for other in active if buffers[other].end > buffers[at].begin]
        for other in active:
            apart = offsets[other] + buffers[other].size <= offsets[at]
            assert apart or offsets[at] + buffers[at].size <= offsets[other], (buffers[at], buffers[other])
        active.append(at)
    assert min(offsets, default=0) >= 0
    return max((offset + b.size for offset, b in zip(offsets, buffers, strict=True)), default=0)
