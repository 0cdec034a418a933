"""What planned graphs call to move the memory of values to a second memory and back.

On a CUDA device that is pinned memory of the host, reached by a stream of its own; on a CPU a file without a name, which a
thread of the package writes. In either case a value is moved whole, with its storage, and comes back as bytes.
"""

from __future__ import annotations

import functools
import struct
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .. import _native

_TICKET = "<qqq"
"""What stands in the ticket of a page: the position of its folder in `_folders`, its number, its bytes."""

_FIELDS = 3

_folders: list[str | None] = []
"""Folders of second memories, in the order of their first use."""
_moving: dict[int, torch.cuda.Event] = {}
"""Transfers of devices that nobody has waited for, by the address of the bytes to which they go."""


class _Ticket(bytearray):
    """Who has a page. It goes with the tensor that has these bytes as its memory."""

    def __del__(self) -> None:
        place, number, _ = struct.unpack(_TICKET, self)
        _pages(_folders[place]).release(number)


@functools.lru_cache(maxsize=None)
def _pages(folder: str | None) -> _native.Pages:
    if folder not in _folders:
        _folders.append(folder)
    return _native.Pages(folder)


@functools.lru_cache(maxsize=None)
def _stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


def page_out(value: torch.Tensor, folder: str | None) -> torch.Tensor:
    """Begins to move the memory of a value out. The value has to stay until `page_left`.

    Args:
        value: Any view of it.
        folder: Of a CPU's second memory.

    Returns:
        What stands for it: on a CPU the ticket of a page, else its bytes in memory of the host.

    Raises:
        OSError: There can be no file in the folder.
    """
    storage = value.untyped_storage()
    if value.device.type == "cuda":
        host = torch.empty(storage.nbytes(), dtype=torch.uint8, pin_memory=True)
        _copy(host, _bytes(storage, value.device), value.device)
        return host
    pages = _pages(folder)
    number = pages.write(storage.data_ptr(), storage.nbytes())
    return torch.frombuffer(_Ticket(struct.pack(_TICKET, _folders.index(folder), number, storage.nbytes())), dtype=torch.int64)


def page_left(page: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Waits until a value has left memory.

    Args:
        page: Of `page_out`.
        value: Its operand.

    Raises:
        OSError: It could not be written, on a full disk for instance.
    """
    if value.device.type == "cuda":
        _wait(page, value.device)
    else:
        place, number, _ = page.tolist()
        _pages(_folders[place]).wait(number)
    return page


def page_coming(page: torch.Tensor, device: str) -> torch.Tensor:
    """Begins to move memory back, to `page_in`.

    Args:
        page: Of `page_out`.
        device: That of the value.
    """
    place = torch.device(device)
    if place.type == "cuda":
        memory = torch.empty(page.numel(), dtype=torch.uint8, device=place)
        _copy(memory, page, place)
        return memory
    folder, number, _ = page.tolist()
    _pages(_folders[folder]).announce(number)
    return page


def page_in(coming: torch.Tensor) -> torch.Tensor:
    """The bytes that were moved out, as a vector.

    Args:
        coming: Of `page_coming`.

    Raises:
        OSError: They cannot be read.
    """
    if coming.device.type == "cuda":
        _wait(coming, coming.device)
        return coming
    place, number, size = coming.tolist()
    memory = torch.empty(size, dtype=torch.uint8)
    _pages(_folders[place]).read(number, memory.data_ptr(), size)
    return memory


def page_view(
    memory: torch.Tensor, dtype: torch.dtype, size: Sequence[int], stride: Sequence[int], offset: int
) -> torch.Tensor:
    """A value in memory that came back.

    Args:
        memory: Of `page_in`.
        dtype: Of the value.
        size: Of the value.
        stride: Of the value.
        offset: Where it begins, in elements.
    """
    return torch.empty(0, dtype=dtype, device=memory.device).set_(memory.untyped_storage(), offset, size, stride)


def is_outside(target: Any) -> bool:
    """Whether calls of a function give what lies in the second memory."""
    return target is page_out or target is page_left


def traced(function: Any, arguments: Sequence[Any], size: int) -> torch.Tensor:
    """What a call of one of these functions gives, where values are traced and nothing moves.

    Args:
        function: One of them.
        arguments: Traced values, and others.
        size: Of the memory that moves, in bytes.
    """
    first: torch.Tensor = arguments[0]
    is_ticket = first.dtype == torch.int64
    if function is page_out:
        on_device = first.device.type == "cuda"
        return torch.empty(size, dtype=torch.uint8) if on_device else torch.empty(_FIELDS, dtype=torch.int64)
    if function is page_coming and not is_ticket:
        return torch.empty(size, dtype=torch.uint8, device=arguments[1])
    if function is page_in and is_ticket:
        return torch.empty(size, dtype=torch.uint8)
    made: torch.Tensor = function(*arguments) if function is page_view else first
    return made


def transfer_rates(device: str, folder: str | None, size: int = 32 << 20) -> tuple[int, int]:
    """Bytes per second of the way out and of the way back, measured by one transfer.

    Args:
        device: Of the values.
        folder: Of a CPU's second memory.
        size: Of the transfer.
    """
    out = back = 0.0
    with _disable_current_modes():  # Graphs are planned while PyTorch traces.
        value = torch.zeros(size, dtype=torch.uint8, device=device)
        for _ in range(2):  # The first one takes what has to be made once: memory of the host, the file.
            page, out = _timed(lambda: page_left(page_out(value, folder), value), device)
            _, back = _timed(lambda one=page: page_in(page_coming(one, device)), device)
    return int(size / out), int(size / back)


def _timed(run: Any, device: str) -> tuple[Any, float]:
    is_cuda = torch.device(device).type == "cuda"
    if is_cuda:
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    made = run()
    if is_cuda:
        torch.cuda.synchronize(device)
    return made, time.perf_counter() - start


def _bytes(storage: torch.UntypedStorage, device: torch.device) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=device).set_(storage, 0, (storage.nbytes(),), (1,))


def _copy(to: torch.Tensor, source: torch.Tensor, device: torch.device) -> None:
    """Begins a transfer behind all that the device has to do already."""
    stream = _stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        to.copy_(source, non_blocking=True)
    _moving[to.data_ptr()] = stream.record_event()


def _wait(to: torch.Tensor, device: torch.device) -> None:
    """Has what the device does from now on wait for a transfer."""
    event = _moving.pop(to.data_ptr(), None)
    if event is not None:
        torch.cuda.current_stream(device).wait_event(event)
