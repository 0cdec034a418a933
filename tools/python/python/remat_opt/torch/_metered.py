"""Processes whose heap is counted."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterator

from .. import _native
from .._files import Folder


@contextlib.contextmanager
def metered() -> Iterator[dict[str, str]]:
    """The environment for a process whose heap is to be counted, and for those that it starts.

    Raises:
        OSError: The meter cannot be written, or there is none for this system.
    """
    with Folder() as place:
        meter = pathlib.Path(place) / "libremat_heap_meter.so"
        meter.write_bytes(_native.heap_meter())
        others = os.environ.get("LD_PRELOAD", "")
        yield {**os.environ, "LD_PRELOAD": f"{meter}:{others}" if others else str(meter)}
