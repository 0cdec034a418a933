"""Budgets: what `memory=` means."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from .._command import share
from ..errors import UsageError

_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(?:([kmgt])(i?))?b?", re.IGNORECASE)
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}
_SHARE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*%")
_PART = re.compile(r"\d*\.\d*")
_FORMS = 'bytes (`"2GiB"`, `2 << 30`), a share (`"60%"`, `0.6`), `"auto"`, `"fit"` or `"min"`'
_LARGEST = (1 << 63) - 1

_OBJECTS, _LEAST_OBJECTS = 16 << 10, 64 << 10
"""Bytes of objects whatever the graph, and what is counted at least: what a loop does around a small graph is in it."""
_OBJECTS_SHARE = 500
_OBJECT = 400
"""Bytes of objects for each tensor that lives at once: 180 to 380 in steps of nine networks."""

Memory = int | float | str
"""Bytes (`2 << 30`, `"2GiB"`, `"1.5GB"`), a share (`0.6`, `"0.6"`, `"60%"`), `"auto"`, `"fit"` or `"min"`."""


@dataclass(frozen=True)
class Budget:
    """A budget of a training step: bytes of all that it holds, a share of what the step takes without a plan besides
    parameters and inputs, or what is free when the step is planned."""

    total: int | None
    """Bytes, parameters and inputs among them."""
    share: str | None
    """What the solver takes as it is: `"60%"`, `"auto"`, `"min"`. With neither, what is free."""

    @property
    def is_free(self) -> bool:
        """Whether it is what is free, which `_free.resolved` finds out."""
        return self.total is None and self.share is None

    @property
    def is_auto(self) -> bool:
        """Whether it is the lowest peak that costs little time."""
        return self.share == "auto"

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
            baseline: What the step takes above them without a plan.
        """
        if self.total is not None:
            return max(1, self.total - external)
        assert self.share is not None
        return int(baseline * float(self.share[:-1]) / 100) if self.share.endswith("%") else 0


def parse(memory: Memory) -> Budget:
    """Reads what `memory=` says.

    Raises:
        UsageError: It is none of what `Memory` names; the message says what to write.
    """
    if isinstance(memory, bool) or not isinstance(memory, (int, float, str)):
        raise UsageError(f"memory is {_FORMS}, not of type {type(memory).__name__}")
    if isinstance(memory, int):
        return _total(memory, memory)
    if isinstance(memory, float):
        return _share(memory, memory)
    text = memory.strip()
    word = text.lower()
    if word == "fit":
        return Budget(None, None)
    if word in ("auto", "min"):
        return Budget(None, word)
    if match := _SHARE.fullmatch(text):
        return _share(float(match[1]) / 100, memory)
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(f"memory={memory!r} is no budget: write {_FORMS}{_hint(word)}")
    if _PART.fullmatch(text):
        # As a number of the configuration files that give texts only.
        return _share(float(text), memory)
    whole, _, part = match[1].partition(".")
    factor = (1024 if match[3] else 1000) ** _POWERS[match[2].lower()] if match[2] else 1
    return _total(int(whole + part) * factor // 10 ** len(part), memory)


def _total(total: int, memory: Memory) -> Budget:
    if total <= 0:
        raise UsageError(f'memory={memory!r} leaves no room: write `"min"` for the lowest peak that is found')
    if total > _LARGEST:
        raise UsageError(f'memory={memory!r} is more than any device has: write `"100%"` for no recomputation')
    return Budget(total, None)


def _share(part: float, memory: Memory) -> Budget:
    """A share, exact to a millionth.

    Args:
        part: Of 1.
        memory: What was given, for errors.
    """
    text = share(part) if math.isfinite(part) else ""
    if not text or part > 1:
        hint = f'; a size has a unit (`"{part:g}GB"`), a number of bytes has no point' if 1 < part < 1000 else ""
        raise UsageError(f"memory={memory!r} is a share above 100 %: write `1.0` for no recomputation{hint}")
    if part < 0 or text == "0%":
        raise UsageError(f'memory={memory!r} leaves no room: write `"min"` for the lowest peak that is found')
    return Budget(None, text)


def _hint(word: str) -> str:
    """What may have been meant."""
    if word == "none":
        return '; without recomputation, a step takes `"100%"`'
    if word.startswith("-"):
        return "; it cannot be negative"
    if re.fullmatch(r"[kmgt]i?b?", word):
        return "; the number before the unit is missing"
    return ""


def objects_around(peak: int, tensors: int) -> int:
    """What a plan does not see: bytes of the objects of Python and PyTorch around its tensors, and what the allocator
    rounds up. Measured steps stay below, those of loops with thousands of small ops and of networks with many small
    parameters among them.

    Args:
        peak: Bytes of the plan.
        tensors: As `TrainingGraph.tensors_at_once` counts them.
    """
    return max(_LEAST_OBJECTS, _OBJECTS + _OBJECT * tensors) + peak // _OBJECTS_SHARE
