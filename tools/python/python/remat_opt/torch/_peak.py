"""The peak of memory while something runs in this process."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import weakref
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch.optim import optimizer

from ._container import free_in_container
from ._measure_child import Cuda, Heap

_SLACK = 32 << 10
"""Bytes above the least heap between two steps that count as the least: objects of Python, losses that a loop keeps."""


def peak_above(run: Callable[[], object], device: str) -> int:
    """Most bytes that a call takes above what is taken before it.

    On CUDA PyTorch's allocator counts. On a CPU that is the heap, where `remat_opt`'s meter is preloaded; otherwise the
    tensors that PyTorch allocates, without what libraries take inside of kernels.

    Args:
        run: Its result is dropped.
        device: `"cpu"`, or a CUDA device such as `"cuda:1"`.
    """
    if not has_meter(device):
        return _profiled(run)
    meter = _meter(device)
    meter.reset()
    before = meter.live()
    run()
    return max(0, meter.peak() - before)


def has_meter(device: str) -> bool:
    """Whether `peak_above` counts what libraries take inside of kernels, too."""
    return device != "cpu" or hasattr(ctypes.CDLL(None), "remat_heap_peak")


def can_mark(device: str) -> bool:
    """Whether `Marks` sees what PyTorch allocates."""
    return has_meter(device) or _counts()


def _meter(device: str) -> Cuda | Heap:
    return Heap() if device == "cpu" else Cuda(torch.device(device))


def _profiled(run: Callable[[], object]) -> int:
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True, acc_events=False) as profile:
        run()
    kineto = profile.profiler.kineto_results
    changes = sorted((one.start_ns(), one.nbytes()) for one in kineto.events() if one.name() == "[memory]")
    now = peak = 0
    for _, change in changes:
        now += change
        peak = max(peak, now)
    return peak


class Marks:
    """Bytes that are taken at marked moments of this process, above those at the first mark.

    On CUDA PyTorch's allocator counts, on a CPU the heap: `remat_opt`'s meter where it is preloaded, otherwise the C library.
    """

    def __init__(self, device: str) -> None:
        """
        Args:
            device: `"cpu"`, or a CUDA device such as `"cuda:1"`.

        Raises:
            RuntimeError: Nothing counts the heap here.
        """
        self._meter = _meter(device) if has_meter(device) else None
        self._live: list[int] = []
        self._peaks: list[int] = []
        if self._meter is None and not _counts():
            raise RuntimeError("the C library does not count the heap (it does from glibc 2.33 on, without another allocator)")
        self.mark()

    @property
    def has_peaks(self) -> bool:
        """Whether peaks between marks are seen."""
        return self._meter is not None

    def mark(self) -> None:
        """Sets a mark."""
        if self._meter is None:
            self._live.append(_heap())
            return
        peak = self._meter.next_peak()
        if self._live:
            self._peaks.append(peak)
        self._live.append(self._meter.live())

    def found(self) -> tuple[list[int], list[int]]:
        """Bytes at each mark, and the most between each mark and the next one; where peaks are not seen, the larger of what
        is there at both."""
        first = self._live[0]
        live = [one - first for one in self._live]
        if self._meter is None:
            return live, [max(one, other) for one, other in itertools.pairwise(live)]
        return live, [one - first for one in self._peaks]


class Lead(NamedTuple):
    """What the code of a step has taken when its first graph begins."""

    live: int = 0
    """Bytes that it has left."""
    peak: int = 0
    """Most bytes until then."""

    def least(self, other: Lead) -> Lead:
        """The less of both: what ran once between two steps (an evaluation, another model) is no part of a step."""
        return Lead(min(self.live, other.live), min(self.peak, other.peak))

    def without(self, size: int) -> Lead:
        """The rest of what counts in another place.

        Args:
            size: Bytes.
        """
        return Lead(max(0, self.live - size), max(0, self.peak - size))


class Ground:
    """The heap between two steps. A step begins where it is least after the last update of an optimizer: what the step before
    has left is gone, and what the next one takes is not there yet. Seen where `remat_opt`'s meter is preloaded."""

    def __init__(self) -> None:
        self._heap = Heap()
        self._heap.watch(_SLACK)
        self._is_updated = False
        """Whether an optimizer has run since the last step."""
        self._last: int | None = None
        """Bytes without gradients where the last step has begun, if that is known."""
        ground = weakref.ref(self)

        def updated(*_: object) -> None:
            if (found := ground()) is None:
                hook.remove()
            else:
                found._is_updated = True
                found.end_of_step()

        hook = optimizer.register_optimizer_step_post_hook(updated)

    @staticmethod
    def can_see() -> bool:
        """Whether the meter is there."""
        return hasattr(ctypes.CDLL(None), "remat_heap_least")

    def end_of_step(self) -> None:
        """Says that all of a step has run, as far as is known."""
        self._heap.watch(_SLACK)

    def forget(self) -> None:
        """Says that more has come since the last step has begun than steps take."""
        self._last = None

    @property
    def follows(self) -> bool:
        """Whether no optimizer has run since the last step: both may be parts of one, as those of an adversarial example."""
        return not self._is_updated

    def first_graph(self, there: int) -> Lead | None:
        """What a step has taken, as its first graph is called; `None` where that is not known.

        Args:
            there: Bytes of gradients and gathered parameters that are there.
        """
        least = self._heap.least()
        is_known = self._is_updated or self._last is not None
        if self.follows and self._last is not None:
            least = min(least, self._last + there)
        found = Lead(self._heap.live() - least, self._heap.peak_since_least() - least)
        self._last, self._is_updated = least - there, False
        return None if not is_known else found if max(found) > _SLACK else Lead()


class _Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    )


def _heap() -> int:
    """Bytes of the heap that are taken."""
    function = ctypes.CDLL(None).mallinfo2
    function.restype = _Mallinfo
    found = function()
    return int(found.uordblks + found.hblkhd)


@functools.cache
def _counts() -> bool:
    """Whether `_heap` sees what PyTorch allocates."""
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        return False
    before, size = _heap(), 1 << 20
    made = torch.empty(size, dtype=torch.uint8)
    after = _heap()
    del made
    return after - before >= size


def free_bytes(device: str) -> int:
    """Bytes that are free: of a CUDA device with what PyTorch's allocator holds and does not use, of a CPU within the limit
    of the container.

    Args:
        device: `"cpu"`, or a CUDA device such as `"cuda:1"`.
    """
    if device != "cpu":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + max(0, unused)
    free, inside = _free_of_machine(), free_in_container()
    return free if inside is None else min(free, inside)


def _free_of_machine() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
