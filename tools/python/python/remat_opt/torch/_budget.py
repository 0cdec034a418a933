"""Budgets: what `memory=` means."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import UsageError

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:([kKMGT])(i?))?B?\s*")
_POWERS = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4}

_OBJECTS = 64 << 10
_OBJECTS_SHARE = 500
_OBJECT = 96
"""Bytes of objects for each op of a graph: a live tensor takes 320 to 500, and a part of the results lives at once."""

Memory = int | float | str
"""Bytes (`2 << 30`, `"2GiB"`, `"1.5GB"`), a share (`0.6`, `"60%"`), or `"min"`."""


@dataclass(frozen=True)
class Budget:
    """A budget of a training step: bytes of all that it holds, or a share of what the plan without recomputation takes
    besides parameters and inputs."""

    total: int | None
    """Bytes, parameters and inputs among them."""
    share: str | None
    """What the solver takes as it is: `"60%"`, `"min"`."""

    def of_plan(self, external: int) -> int | str:
        """What the plan may take.

        Args:
            external: Bytes of parameters, buffers and inputs.
        """
        if self.total is None:
            assert self.share is not None
            return self.share
        return max(1, self.total - external)

    def of_candidates(self, external: int, baseline: int) -> int:
        """The budget in bytes above parameters and inputs; 0 for the lowest peak.

        Args:
            external: Bytes of parameters, buffers and inputs.
            baseline: What the step takes above them without recomputation.
        """
        if self.total is not None:
            return max(1, self.total - external)
        assert self.share is not None
        return 0 if self.share == "min" else int(baseline * float(self.share[:-1]) / 100)


def parse(memory: Memory) -> Budget:
    """Reads what `memory=` says.

    Raises:
        UsageError: It is no size, no share and not `"min"`.
    """
    if isinstance(memory, bool) or not isinstance(memory, (int, float, str)):
        raise UsageError(f"memory is a number of bytes, a text or a share, not {type(memory).__name__}")
    if isinstance(memory, int):
        if memory <= 0:
            raise UsageError(f"memory has to be positive, not {memory}")
        return Budget(memory, None)
    if isinstance(memory, float):
        return parse(f"{100 * memory:.4f}%")
    if memory == "min":
        return Budget(None, "min")
    if match := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", memory):
        if not 0 < float(match[1]) <= 100:
            raise UsageError(f"a share of memory lies above 0 % and at 100 % at most, not at {memory}")
        return Budget(None, f"{match[1]}%")
    match = _SIZE.fullmatch(memory)
    if match is None:
        raise UsageError(f"memory is a size (`2GiB`), a share (`60%`) or `min`, not {memory!r}")
    whole, _, part = match[1].partition(".")
    factor = (1024 if match[3] else 1000) ** _POWERS[match[2]] if match[2] else 1
    total = int(whole + part) * factor // 10 ** len(part)
    return parse(total)


def objects_around(peak: int, ops: int) -> int:
    """What a plan does not see: bytes of the objects of Python and PyTorch around its tensors, and what the allocator
    rounds up. Measured steps stay below, those of loops with thousands of small ops among them.

    Args:
        peak: Bytes of the plan.
        ops: Of the graph.
    """
    return _OBJECTS + peak // _OBJECTS_SHARE + _OBJECT * ops
