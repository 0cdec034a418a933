"""The peak of memory while something runs in this process."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
from collections.abc import Callable
import torch

from ._container import free_in_container
from ._measure_child import Cuda, Heap


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
        if self._live:
            self._peaks.append(self._meter.peak())
        self._meter.reset()
        self._live.append(self._meter.live())

    def found(self) -> tuple[list[int], list[int]]:
        """Bytes at each mark, and the most between each mark and the next one; where peaks are not seen, the larger of what
        is there at both."""
        first = self._live[0]
        live = [one - first for one in self._live]
        if self._meter is None:
            return live, [max(one, other) for one, other in itertools.pairwise(live)]
        return live, [one - first for one in self._peaks]


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
