"""The peak of memory while something runs in this process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

import torch

from ._measure_child import Cuda, Heap


def peak_above(run: Callable[[], object], device: str) -> int:
    """Most bytes that a call takes above what is taken before it.

    On CUDA PyTorch's allocator counts. On a CPU that is the heap, where `remat_opt`'s meter is preloaded; otherwise the
    tensors that PyTorch allocates, without what libraries take inside of kernels.

    Args:
        run: Its result is dropped.
        device: `"cpu"` or `"cuda"`.
    """
    if not has_meter(device):
        return _profiled(run)
    meter = Cuda() if device == "cuda" else Heap()
    meter.reset()
    before = meter.live()
    run()
    return max(0, meter.peak() - before)


def has_meter(device: str) -> bool:
    """Whether `peak_above` counts what libraries take inside of kernels, too."""
    return device == "cuda" or hasattr(ctypes.CDLL(None), "remat_heap_peak")


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


def free_bytes(device: str) -> int:
    """Bytes that are free.

    Args:
        device: `"cpu"` or `"cuda"`.
    """
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
