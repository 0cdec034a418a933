"""What the container of this process leaves free."""

from __future__ import annotations

import pathlib

_RECLAIMABLE = ("inactive_file", "total_inactive_file")
"""File pages in `memory.stat` that the kernel drops when memory runs short (version 2, version 1)."""


def free_in_container(root: pathlib.Path = pathlib.Path("/")) -> int | None:
    """Bytes that this process's control groups and those around them leave free; `None` where none has a limit.

    Args:
        root: Of the file system.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = []
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if not controllers:
            base, limit, usage = root / "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            base, limit, usage = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        group = base / place.strip("/")
        # Within a container the path of the host may be shown, of which only the end is there.
        for folder in (group, *(one for one in group.parents if one == base or base in one.parents)):
            most, taken = _number(folder / limit), _number(folder / usage)
            if most is not None and taken is not None:
                found.append(max(0, most - max(0, taken - _reclaimable(folder / "memory.stat"))))
    return min(found, default=None)


def _number(path: pathlib.Path) -> int | None:
    """The number in a file; `None` where there is no file or no number, such as `max`."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() and int(text) < 1 << 60 else None


def _reclaimable(path: pathlib.Path) -> int:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    fields = dict(line.split(" ", 1) for line in lines if " " in line)
    return max((int(fields[name]) for name in _RECLAIMABLE if name in fields), default=0)
