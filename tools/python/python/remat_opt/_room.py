"""Room for runs: the bytes that those of this process may take together. A run enters when there is room for what it
takes by the plan, and leaves when its outputs are out of the block."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Iterator


class Room:
    """What runs take now. Those that wait enter in the order in which they came."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken = 0
        self._queue: collections.deque[object] = collections.deque()

    @contextlib.contextmanager
    def held(self, need: int, limit: int) -> Iterator[int]:
        """Holds `need` bytes, no more than `limit`, once no more than `limit` are held with them. Gives the nanoseconds
        that it waited."""
        ticket = object()
        start = time.monotonic_ns()
        with self._changed:
            self._queue.append(ticket)
            try:
                has_waited = not self._may_enter(ticket, need, limit)
                self._changed.wait_for(lambda: self._may_enter(ticket, need, limit))
                self._taken += need
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()
        try:
            yield time.monotonic_ns() - start if has_waited else 0
        finally:
            with self._changed:
                self._taken -= need
                self._changed.notify_all()

    def _may_enter(self, ticket: object, need: int, limit: int) -> bool:
        return self._queue[0] is ticket and self._taken + need <= limit


ROOM = Room()
"""That of the process: limits are those of all its sessions together."""
