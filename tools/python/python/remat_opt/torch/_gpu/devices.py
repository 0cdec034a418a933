"""CUDA devices that are not there: what is known of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import torch

from ...errors import UsageError
from .._budget import parse

_MIB = 1 << 20


@dataclass(frozen=True)
class Gpu:
    """A device, as far as memory and time depend on it. Sizes are in bytes."""

    name: str
    total: int
    """Its memory, as the driver states it."""
    context: int
    """What is taken before the first tensor: context, loaded kernels, what the driver keeps."""
    source: str
    """Where the figures are from."""
    capability: tuple[int, int] = (9, 0)
    """Its compute capability."""
    rates: tuple[int, int, int] = (67_000, 989_000, 3_350)
    """Floating-point operations per nanosecond in single precision, those of tensor cores in half precision, and bytes per
    nanosecond of its memory, by the data sheet."""

    @property
    def free(self) -> int:
        """What tensors can have."""
        return self.total - self.context

    @property
    def matmul(self) -> int:
        """The workspace that PyTorch gives each thread's cuBLAS (`CUBLAS_WORKSPACE_CONFIG` unset)."""
        # `:4096:2:16:8` before compute capability 9, 32 MiB from there on (`aten/src/ATen/cuda/CUDABlas.cpp`).
        return 32 * _MIB if self.capability >= (9, 0) else 2 * 4096 * 1024 + 8 * 16 * 1024


_GB = 1000**3
_CONTEXT = 600 * _MIB
_SHEET = "memory by the data sheet, context assumed"

_KNOWN = {
    one.name: one
    for one in (
        Gpu("h200", 150_109_880_320, 552_402_944, "as measured with PyTorch 2.11, CUDA 13.0", (9, 0), (67_000, 989_000, 4_800)),
        Gpu("h100", 80 * _GB, _CONTEXT, _SHEET, (9, 0), (67_000, 989_000, 3_350)),
        Gpu("a100", 40 * _GB, _CONTEXT, _SHEET, (8, 0), (19_500, 312_000, 1_555)),
        Gpu("a10", 24 * _GB, _CONTEXT, _SHEET, (8, 6), (31_200, 125_000, 600)),
        Gpu("l4", 24 * _GB, _CONTEXT, _SHEET, (8, 9), (30_300, 121_000, 300)),
        Gpu("t4", 16 * _GB, _CONTEXT, _SHEET, (7, 5), (8_100, 65_000, 320)),
        Gpu("v100", 16 * _GB, _CONTEXT, _SHEET, (7, 0), (15_700, 125_000, 900)),
        Gpu("rtx-3090", 24 * _GB, _CONTEXT, _SHEET, (8, 6), (35_600, 71_000, 936)),
        Gpu("rtx-4090", 24 * _GB, _CONTEXT, _SHEET, (8, 9), (82_600, 165_000, 1_008)),
    )
}


def smallest(total: int) -> Gpu | None:
    """The known device with the least memory that has `total` bytes; nothing where none has."""
    return min((one for one in _KNOWN.values() if one.total >= total), key=lambda one: one.total, default=None)


def device(text: str) -> Gpu:
    """The device that a text names: `"h100"`, `"h100 94GB"`, `"cuda 24GiB"`; `"cuda:0"` for one that is there.

    Raises:
        UsageError: It names none, says no size, or is of a kind that is not simulated.
    """
    name, _, size = text.strip().partition(" ")
    name = name.lower()
    kind = re.fullmatch(r"([a-z]+)(?::(\d+))?", name)
    if name in _KNOWN:
        found = _KNOWN[name]
    elif kind is not None and kind[1] == "cuda":
        found = _there(int(kind[2] or 0)) if not size else Gpu(name, 0, _CONTEXT, "context assumed")
    elif kind is not None and kind[1] in ("mps", "xpu", "hpu", "xla", "cpu"):
        raise UsageError(f"`{text}`: the allocator of `{kind[1]}` is not simulated, that of CUDA devices is")
    else:
        raise UsageError(f"`{text}` is no device: give one of {', '.join(_KNOWN)}, or `cuda 24GiB`")
    if not size:
        return found
    total = parse(size).total
    if total is None or not found.context < total < 1 << 50:
        raise UsageError(f"`{text}`: `{size}` is no memory of a device")
    return replace(found, total=total, source=f"{found.source}; memory as given")


def _there(index: int) -> Gpu:
    if not torch.cuda.is_available() or index >= torch.cuda.device_count():
        raise UsageError(f"there is no `cuda:{index}` here: say how much memory it has (`cuda:{index} 24GiB`)")
    free, total = torch.cuda.mem_get_info(index)
    reserved = torch.cuda.memory_reserved(index)
    capability = torch.cuda.get_device_capability(index)
    return Gpu(f"cuda:{index}", total, total - free - reserved, "as it is now", capability)
