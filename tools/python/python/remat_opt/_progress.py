"""How far a call is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """How far a call is, for its argument `progress`."""

    elapsed: float
    """Seconds since it began."""
    used: float
    """Seconds of the limit that are used."""
    limit: float | None
    """Seconds that there are; `None` without a limit."""
    doing: str
    """What is being done: `plan`, `measure 2/6`."""
    peak_bytes: int | None
    """Peak of the best plan so far, in bytes."""
    overhead_percent: float | None
    """Time that it adds to the model as it is, in per cent."""
    bound_percent: float | None
    """Time that every plan adds, as far as that is proved, in per cent."""
    has_result: bool
    """Whether a checked result is there if the call ends now; where it ends before, it raises `LimitError`."""


ProgressCallback = Callable[[Progress], object]
"""Called in the calling thread when something changed, at most twenty times a second. Where it returns `False`
itself, the call ends with the best that was found; what it raises ends
the call, too."""
