"""A training step without its numbers: every tensor that it would make on a CUDA device, in order, and where it goes.

The step runs on PyTorch's `meta` device. What CUDA does otherwise is put in: kernels of attention and dropout, autocast,
workspace of matrix products and convolutions, buffers of reductions. What kernels take besides, by algorithms that they
choose on the device, is not known.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .devices import Gpu

_FOLDERS = [os.path.dirname(torch.__file__), os.path.dirname(os.path.dirname(__file__))]
_PACKAGES = ("<", *(f"{one}{os.sep}" for folder in _FOLDERS for one in (folder, os.path.realpath(folder))))
"""What frames of PyTorch, of this package and of generated code begin with."""
KINDS = ("parameters", "inputs", "gradients", "optimizer", "activations", "backward", "workspace")
"""What tensors are."""
_CONVOLUTION_BESIDES = 16
"""Bytes that a convolution's workspace has besides its operands in another layout."""


@dataclass(frozen=True)
class Allocation:
    """A block of memory that the step asks for."""

    bytes: int
    kind: str
    """`parameters`, `inputs`, `gradients`, `optimizer`, `activations`, `backward` or `workspace`."""
    op: str
    line: str
    """The line of the model that asks for it, `file:line`; empty where there is none."""


@dataclass
class DryRun:
    """What a program asks of the allocator: allocations by number, and when they come and go."""

    allocations: dict[int, Allocation] = field(default_factory=dict)
    events: list[int] = field(default_factory=list)
    """The number of an allocation that comes; negative: that goes."""
    marks: list[tuple[str, int]] = field(default_factory=list)
    """Where phases end: their names, and how many events there were."""

    def requests(self) -> list[tuple[int, int]]:
        """For the simulated allocator."""
        return [(abs(at), self.allocations[at].bytes if at > 0 else -1) for at in self.events]

    def live_after(self, event: int) -> dict[str, int]:
        """Bytes by kind after an event."""
        live: dict[str, int] = {}
        for at in self.events[: event + 1]:
            one = self.allocations[abs(at)]
            live[one.kind] = live.get(one.kind, 0) + (one.bytes if at > 0 else -one.bytes)
        return {kind: size for kind, size in live.items() if size}


class Recorder(TorchDispatchMode):
    """Notes storages as they come and go."""

    def __init__(self, gpu: Gpu) -> None:
        super().__init__()
        self.run = DryRun()
        self.phase = "parameters"
        self.running: str | None = None
        """The op that runs; where an op has failed, that one."""
        self._gpu = gpu
        self._known: dict[int, int] = {}
        self._lines: dict[int, str] = {}
        self._with_matmul: set[str] = set()

    def mark(self, name: str) -> None:
        """A phase ends."""
        self.run.marks.append((name, len(self.run.events)))

    def track(self, tensor: torch.Tensor, kind: str, op: str = "", line: str = "") -> None:
        """Notes the storage of a tensor, if it is new."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known or tensor.device.type != "meta" or storage.nbytes() == 0:
            return
        number = self._comes(Allocation(storage.nbytes(), kind, op, line))
        self._known[key] = number

        def goes(known: dict[int, int] = self._known, events: list[int] = self.run.events) -> None:
            del known[key]
            events.append(-number)

        weakref.finalize(storage, goes).atexit = False

    def rename(self, tensors: Iterable[torch.Tensor], kind: str) -> None:
        """Says what tensors are that were made meanwhile."""
        for tensor in tensors:
            self._change(tensor, kind=kind)

    def name_all(self, tensors: Mapping[str, torch.Tensor], kind: str) -> None:
        """The same, and what they are called."""
        for name, tensor in tensors.items():
            self._change(tensor, kind=kind, op=name, line="")

    def _change(self, tensor: torch.Tensor, **what: str) -> None:
        number = self._known.get(tensor.untyped_storage()._cdata)
        if number is not None:
            self.run.allocations[number] = replace(self.run.allocations[number], **what)  # type: ignore[arg-type]

    def rename_all(self, old: str, new: str, but: Collection[torch.Tensor]) -> None:
        """Says what all tensors of a kind are, apart from some."""
        kept = {self._known.get(one.untyped_storage()._cdata) for one in but}
        for number in self._known.values():
            if number not in kept and self.run.allocations[number].kind == old:
                self.run.allocations[number] = replace(self.run.allocations[number], kind=new)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # A program may be told that tensors lie elsewhere.
        with torch._C.DisableTorchFunction():
            return self._run(func, args, kwargs)

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        op = str(func.overloadpacket).replace(".", "::", 1)
        line = self._line()
        if func.overloadpacket in (torch.ops.aten._softmax, torch.ops.aten._log_softmax) and args[2]:
            # PyTorch knows this kernel of `float16` alone, where nothing runs.
            result = torch.empty_like(args[0], dtype=torch.float32)
        else:
            self.running = op
            result = func(*args, **(kwargs or {}))
            self.running = None
        results = [one for one in tree_leaves(result) if isinstance(one, torch.Tensor)]
        for one in results:
            self.track(one, self._kind(), op, line)
        operands = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor) and one.device.type == "meta"]
        for size in self._workspaces(func, args, operands, results):
            self._temporary(size, op, line)
        return result

    def _comes(self, allocation: Allocation) -> int:
        number = len(self.run.allocations) + 1
        self.run.allocations[number] = allocation
        self.run.events.append(number)
        return number

    def _temporary(self, size: int, op: str, line: str) -> None:
        if size > 0:
            self.run.events.append(-self._comes(Allocation(size, "workspace", op, line)))

    def _kind(self) -> str:
        return {"forward": "activations", "optimizer": "optimizer"}.get(self.phase, self.phase)

    def _line(self) -> str:
        """The line of the model that runs, or ran when what is differentiated now was made."""
        if self.phase == "backward":
            node = torch._C._current_autograd_node()
            return "" if node is None else self._lines.get(node._sequence_nr(), "")
        if self.phase != "forward":
            return ""
        line = own_line()
        # Autograd made the node before it called this.
        self._lines[torch.autograd._get_sequence_nr() - 1] = line
        return line

    def _workspaces(
        self, func: Any, args: Sequence[Any], operands: Sequence[torch.Tensor], results: Sequence[torch.Tensor]
    ) -> Iterator[int]:
        packet = func.overloadpacket
        aten = torch.ops.aten
        if packet in (aten.mm, aten.addmm, aten.bmm, aten.baddbmm):
            thread = "backward" if self.phase == "backward" else "main"
            if thread not in self._with_matmul:
                # It stays, for each thread that multiplies matrices: autograd has its own.
                self._with_matmul.add(thread)
                self._comes(Allocation(self._gpu.matmul, "workspace", "cuBLAS", ""))
                if thread == "main":
                    self._comes(Allocation(1 << 20, "workspace", "cuBLASLt", ""))
        yield from workspaces(packet, args, operands, results)


def workspaces(packet: Any, args: Sequence[Any], operands: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> Iterator[int]:
    """Bytes that a kernel of CUDA takes while it runs, one number for each block.

    Args:
        packet: The op.
        args: What it is called with.
        operands: The tensors among these.
        results: The tensors that it gives.
    """
    aten = torch.ops.aten
    if packet is aten.convolution:
        yield _convolution(operands[0], operands[1], results[0])
    elif packet is aten.convolution_backward:
        gradient, given, weight = operands[:3]
        if args[-1][0]:
            yield _convolution(gradient, weight, given)
        if args[-1][1]:
            yield _convolution(gradient, given, weight)
    elif packet is aten.sum and operands and results:
        # Columns are summed in parts; the parts are as many as the device runs at a time, at most some 16 MB.
        rows = operands[0].numel() // max(1, results[0].numel())
        if rows >= 512 and results[0].numel() > 1 and len(args) > 1 and operands[0].dim() - 1 not in _axes(args[1], operands[0]):
            yield min(2 * operands[0].numel() * 4, 16 << 20)


def _axes(axes: Any, tensor: torch.Tensor) -> set[int]:
    given = range(tensor.dim()) if axes is None else axes
    return {axis % max(1, tensor.dim()) for axis in given}


def _convolution(*tensors: torch.Tensor) -> int:
    """Kernels for tensor cores take copies in another layout of what they read and write."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors) + _CONVOLUTION_BESIDES


def own_line() -> str:
    """The innermost frame that is neither PyTorch's nor ours: `file:line`."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(_PACKAGES):
            return f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
