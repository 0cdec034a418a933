"""How much may move to a second memory, and how fast that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .. import _native
from ..errors import UsageError
from . import _cache
from ._budget import parse
from ._moving import transfer_rates

_LATENCY_NS = 20_000
"""Time of a transfer before its first byte: a call, and a thread or a stream that begins."""
_DIGITS = 2
"""How many digits of a measured rate count, so that plans stay the same from run to run."""


@dataclass(frozen=True)
class Offload:
    """A second memory, to which values move and come back from: pinned memory of the host for a CUDA device, a file for a
    CPU.

    What moves, and when, is planned together with what is computed again, after time and room of the second memory.
    """

    memory: int | str | None = None
    """The room there, in bytes, such as `"8GiB"`; `None` for as much as is wanted."""
    folder: str | None = None
    """Of a CPU: where the file lies, which has no name and goes with the process. `/var/tmp` without one."""
    bytes_per_s: int | None = None
    """Of transfers in either direction; measured where it is `None`."""
    state: bool = False
    """Of `TrainStep` on a CPU: whether the optimizer's state lies there all the time."""

    def __post_init__(self) -> None:
        if self.memory is not None and parse(self.memory).total is None:
            raise UsageError(f"room in a second memory is bytes, such as '8GiB', not {self.memory!r}")
        if self.bytes_per_s is not None and self.bytes_per_s < 1:
            raise UsageError(f"a transfer has at least 1 byte per second, not {self.bytes_per_s}")

    def paging(self, device: str) -> dict[str, Any]:
        """The second memory of a problem (`remat-opt explain problem`).

        Args:
            device: Of the values.

        Raises:
            UsageError: There is none on this system.
            OSError: The folder cannot have the file.
        """
        out, back = self._rates(device)
        capacity = None if self.memory is None else parse(self.memory).total
        paging = {
            "mode": "dma",
            "page_out": {"latency_ns": _LATENCY_NS, "bytes_per_s": out},
            "page_in": {"latency_ns": _LATENCY_NS, "bytes_per_s": back},
        }
        return paging if capacity is None else paging | {"capacity": capacity}

    def _rates(self, device: str) -> tuple[int, int]:
        if self.bytes_per_s is not None:
            return self.bytes_per_s, self.bytes_per_s
        is_cuda = torch.device(device).type == "cuda"
        if not is_cuda and not hasattr(_native, "Pages"):
            raise UsageError("the second memory of a CPU is for Linux only")
        name = torch.cuda.get_device_name(device) if is_cuda else "cpu"
        key = _cache.key_of([_native.VERSION, name, None if is_cuda else self.folder])
        known = _cache.load("rates", key)
        if known is None:
            known = [_rounded(rate) for rate in transfer_rates(device, self.folder)]
            _cache.store("rates", key, known)
        return int(known[0]), int(known[1])


def offload_of(value: Offload | bool | int | str | None) -> Offload | None:
    """What an argument says: nothing moves, or as much as is wanted, or so many bytes, or a whole description.

    Raises:
        UsageError: It says nothing of these.
    """
    if value is None or value is False:
        return None
    if value is True:
        return Offload()
    if isinstance(value, Offload):
        return value
    if isinstance(value, (int, str)):
        return Offload(memory=value)
    raise UsageError(f"offload is True, bytes such as '8GiB', or an Offload, not {value!r}")


def _rounded(rate: int) -> int:
    keep = 10 ** max(0, len(str(rate)) - _DIGITS)
    return max(1, rate // keep * keep)
