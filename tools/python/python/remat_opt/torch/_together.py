"""Decisions that processes make together: where one of them cannot use its plan, none of them does."""

from __future__ import annotations

import itertools
import time
from datetime import timedelta

import torch

LIMIT = 300.0
"""Seconds that a process waits for the others."""

_numbers = itertools.count()
"""Processes plan the same graphs in the same order, so numbers name them."""
_silent: list[str] = []
"""What was said when a process did not answer: nobody waits for it again."""


def processes() -> int:
    """How many processes train together."""
    distributed = torch.distributed
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


class Together:
    """What all processes decide about one plan, through the store of the default group; no collective runs."""

    def __init__(self) -> None:
        self._number = next(_numbers) if processes() > 1 else 0
        self._decisions = 0

    @property
    def is_alone(self) -> bool:
        """Whether there is only this process."""
        return processes() < 2

    @property
    def is_broken(self) -> bool:
        """Whether a process did not answer."""
        return not self.is_alone and bool(_silent)

    def reason(self, own: str | None) -> str | None:
        """Why no process uses its plan.

        Every process calls it equally often. It waits until all have, and not longer than `LIMIT`.

        Args:
            own: Why this process does not, `None` where it may.

        Returns:
            `own`, or else the reason of the first other process that has one, or that one did not answer; `None` where
            all may use their plans.
        """
        if self.is_alone:
            return own
        from torch.distributed import distributed_c10d

        store, rank = distributed_c10d._get_default_store(), torch.distributed.get_rank()
        key = f"remat_opt/{self._number}/{self._decisions}"
        self._decisions += 1
        store.set(f"{key}/{rank}", own or "-")
        end = time.monotonic() + LIMIT
        found = own
        for other in range(processes()):
            if other == rank or _silent:
                continue
            try:
                store.wait([f"{key}/{other}"], timedelta(seconds=max(0.001, end - time.monotonic())))
                theirs = store.get(f"{key}/{other}").decode()
            except RuntimeError:  # `DistStoreError`, and others of the connection.
                _silent.append(f"process {other} did not answer within {LIMIT:.0f} s")
                break
            if theirs != "-" and found is None:
                found = f"process {other}: {theirs}"
        return found or next(iter(_silent), None)
