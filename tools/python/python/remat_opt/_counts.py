"""What the library that follows plans of memory counted."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnxruntime


@dataclasses.dataclass(frozen=True)
class SessionMemory:
    """The memory of a session that follows a plan, as the library counted it. Sizes are in bytes; `None` stands for
    what the library that lies beside the model does not count yet."""

    # In the order of `AllocationCounts`, which only ever grows at its end.
    runs: int
    """Runs that began as the plan does."""
    placed: int
    """Buffers that got their planned place in the block."""
    planned_outside: int
    """Buffers that stay outside of the block by plan."""
    missed: int
    """Buffers that no plan foresees; `malloc` gave them."""
    refused: int
    """Buffers whose planned place was taken; `malloc` gave them."""
    at_load: int
    """Buffers that were allocated while the session loaded."""
    blocks: int
    """Blocks now: one for each run at one time, and one for each run whose outputs are held."""
    block_bytes: int
    """The largest block that the plan may need."""
    most_blocks: int
    """Most blocks at one time."""
    outside_bytes: int
    """What runs have outside of blocks now."""
    most_outside_bytes: int
    """Most of that at one time."""
    used_bytes: int | None = None
    """What blocks take of the memory now, at most."""
    most_used_bytes: int | None = None
    """Most of that at one time."""
    shapes: int | None = None
    """Shapes whose places are known."""
    waits: int | None = None
    """Allocations that waited for other runs to make room."""
    waiting_nanoseconds: int | None = None
    """How long they waited, together."""
    refused_runs: int | None = None
    """Runs that the limit ended."""
    limit_bytes: int | None = None
    """The limit of the process; 0 without one."""
    reserved_bytes: int | None = None
    """What counts against it now."""
    most_reserved_bytes: int | None = None
    """Most of that at one time."""
    returned_bytes: int | None = None
    """What loading had left in the heap, and the first run returned."""
    weights_asked_bytes: int | None = None
    """Weights that were asked for ahead, together."""
    weights_dropped_bytes: int | None = None
    """Weights that were dropped, together."""
    shared_bytes: int | None = None
    """What is in memory of the block that the session shares with others."""
    paged_out_bytes: int | None = None
    """What runs wrote to the second memory. This and what follows is of the process."""
    paged_in_bytes: int | None = None
    """What runs read from it."""
    second_memory_bytes: int | None = None
    """What it holds now."""
    most_second_memory_bytes: int | None = None
    """Most of that at one time."""


_NAMES = [field.name for field in dataclasses.fields(SessionMemory)]


class Library:
    """A library that follows plans, loaded: each file of it counts for itself."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._registered = 0
        self._stats = ctypes.CDLL(path).remat_arena_stats
        self._stats.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_size_t]
        self._stats.restype = ctypes.c_size_t

    def register(self, options: onnxruntime.SessionOptions, block_bytes: int) -> Counts | None:
        """Registers the library in options that name a plan with such a block, and gives what it will count of their
        session; `None` where it leaves the session alone, as it does in an ONNX Runtime before 1.23."""
        with self._lock:
            before = self._count()
            options.register_custom_ops_library(self._path)
            new = list(range(before, self._count()))
        # Others may register it at the same time, without this lock.
        if len(new) > 1:
            new = [at for at in new if (counts := self.read(at)) is not None and counts.block_bytes == block_bytes]
        found = new[0] if new else None
        return None if found is None else Counts(self, found)

    def read(self, at: int) -> SessionMemory | None:
        """What it counted of the sessions of the options that were registered as number `at`."""
        figures = (ctypes.c_uint64 * len(_NAMES))()
        written = self._stats(at, figures, ctypes.sizeof(figures))
        known = min(written // ctypes.sizeof(ctypes.c_uint64), len(_NAMES))
        return SessionMemory(**dict(zip(_NAMES[:known], figures[:known], strict=True))) if known else None

    def _count(self) -> int:
        """How many options were registered."""
        while self.read(self._registered) is not None:
            self._registered += 1
        return self._registered


@dataclasses.dataclass(frozen=True)
class Counts:
    """Where the counts of one session are."""

    library: Library
    at: int

    def read(self) -> SessionMemory | None:
        """As they are now."""
        return self.library.read(self.at)


@functools.cache
def _library(path: str) -> Library:
    return Library(path)


def library(path: os.PathLike[str]) -> Library:
    """The library of this file, one for the process."""
    return _library(os.path.realpath(path))
