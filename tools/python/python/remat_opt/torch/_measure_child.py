"""Runs calls of ATen ops on made-up arguments and measures them: the part of `_measure` that a process of its own runs.

As a program, it reads `{"threads": N, "calls": [...]}` from each line of its standard input and prints one line of JSON
for each call: `[nanoseconds, workspace in bytes]`, or the reason why the call cannot run. The heap is counted by a meter
that has to be preloaded.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch

_SHORT = 20_000_000
"""Nanoseconds after which a call is not repeated any more."""
_REPEATS, _MOST = 3, 9
"""Runs that are timed at once, and about how many at most, after one that fills the caches of the libraries."""


class Heap:
    """The heap of this process, counted by the preloaded meter."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        for name in ("live", "peak", "mark", "least", "peak_since_least"):
            getattr(self._library, f"remat_heap_{name}").restype = ctypes.c_int64

    def reset(self) -> None:
        """Begins a new peak."""
        self._library.remat_heap_reset()

    def live(self) -> int:
        """Bytes that are taken now."""
        return int(self._library.remat_heap_live())

    def peak(self) -> int:
        """Most bytes since `reset`."""
        return int(self._library.remat_heap_peak())

    def next_peak(self) -> int:
        """Most bytes since the last call, whatever `reset` does in between."""
        return int(self._library.remat_heap_mark())

    def watch(self, slack: int) -> None:
        """Begins a watched time.

        Args:
            slack: Bytes above the least that count as the least.
        """
        self._library.remat_heap_watch(ctypes.c_int64(slack))

    def least(self) -> int:
        """Fewest bytes of the watched time."""
        return int(self._library.remat_heap_least())

    def peak_since_least(self) -> int:
        """Most bytes since the heap was last as small as the least of the watched time."""
        return int(self._library.remat_heap_peak_since_least())

    def mark(self) -> int:
        """Now, in nanoseconds; of its processor time where one thread computes: others do not disturb that."""
        return time.thread_time_ns() if torch.get_num_threads() == 1 else time.perf_counter_ns()

    def elapsed(self, marks: Sequence[tuple[int, int]]) -> list[int]:
        """Nanoseconds between pairs of marks."""
        return [end - start for start, end in marks]


class Cuda:
    """The memory of a CUDA device, as PyTorch's allocator counts it."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def reset(self) -> None:
        """Begins a new peak."""
        torch.cuda.reset_peak_memory_stats(self._device)

    def live(self) -> int:
        """Bytes that are taken now."""
        return int(torch.cuda.memory_allocated(self._device))

    def peak(self) -> int:
        """Most bytes since `reset`."""
        return int(torch.cuda.max_memory_allocated(self._device))

    def next_peak(self) -> int:
        """Most bytes since the last call or `reset`."""
        peak = self.peak()
        self.reset()
        return peak

    def mark(self) -> torch.cuda.Event:
        """A point in the work of the device."""
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        return event

    def elapsed(self, marks: Sequence[tuple[torch.cuda.Event, torch.cuda.Event]]) -> list[int]:
        """Nanoseconds between pairs of marks; the device is waited for once."""
        torch.cuda.synchronize(self._device)
        return [int(1e6 * start.elapsed_time(end)) for start, end in marks]


def measure_call(call: dict[str, Any], meter: Heap | Cuda) -> tuple[int, int]:
    """Least time and most workspace of several runs.

    Args:
        call: `{"op": "aten.mm.default", "args": [...], "kwargs": {...}}`, encoded as by `_measure.encode`.
        meter: Counts memory.

    Returns:
        Nanoseconds, and bytes that a run takes besides its arguments and results.
    """
    if call["op"].startswith("prims."):
        importlib.import_module("torch._inductor.inductor_prims")  # Some are defined there.
    function: Any = torch.ops
    for part in call["op"].split("."):
        function = getattr(function, part)
    args = [decode(one) for one in call["args"]]
    kwargs = {name: decode(one) for name, one in call["kwargs"].items()}
    function(*args, **kwargs)
    times: list[int] = []
    workspace = 0
    while not times or (len(times) < _MOST and sum(times) < _SHORT):
        marks: list[Any] = []
        for _ in range(_REPEATS):
            before = meter.live()
            meter.reset()
            start = meter.mark()
            result = function(*args, **kwargs)
            marks.append((start, meter.mark()))
            workspace = max(workspace, meter.peak() - max(meter.live(), before))
            del result
        times += meter.elapsed(marks)
    return min(times), workspace


def decode(value: Any) -> Any:
    """An argument: numbers as they are, tensors made up. Integers are zeros, which are valid as indices."""
    if isinstance(value, list):
        return [decode(one) for one in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        shape, stride, dtype, device = content
        return _tensor(shape, stride, getattr(torch, dtype), device)
    return torch.device(content) if kind == "device" else getattr(torch, content)


def _tensor(shape: list[int], stride: list[int], dtype: torch.dtype, device: str) -> torch.Tensor:
    value = torch.empty_strided(shape, stride, dtype=dtype, device=device)
    if 0 in stride and value.numel() > 1:  # A broadcast tensor: its memory is written once.
        value.as_strided((value.untyped_storage().nbytes() // value.element_size(),), (1,)).fill_(1)
        return value
    return value.uniform_(0.1, 1.0) if dtype.is_floating_point else value.zero_()


def main() -> None:
    """Answers all requests."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What libraries print is no answer.
    meter = Heap()
    for line in sys.stdin:
        request = json.loads(line)
        torch.set_num_threads(request["threads"])
        with torch.no_grad():
            for call in request["calls"]:
                try:
                    answer: Any = measure_call(call, meter)
                except Exception as error:  # Whatever an op throws is the reason why it is not measured.
                    answer = f"{type(error).__name__}: {error}"[:500]
                print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
