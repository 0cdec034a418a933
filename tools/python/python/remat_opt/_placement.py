"""Offsets of buffers in one block of memory."""

from __future__ import annotations

import csv
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from . import _command as command
from ._command import Seconds, Size
from ._files import Folder
from ._progress import ProgressCallback
from ._report import Report
from .errors import UsageError

Buffer = Union[tuple[int, int, int], Mapping[str, Any]]
"""`(lower, upper, size)`, or an object with these names and, if wanted, `id`, `alignment`, `gaps`, `offset` and
`hint` (`docs/placement.md`): needed from step `lower` until before step
`upper`, `size` in bytes."""

_COLUMNS = ("id", "lower", "upper", "size", "alignment", "gaps", "offset", "hint")


class Placement(Report):
    """Where buffers lie, and the report of how they were placed (`remat-place/1`)."""

    offsets: list[int]
    """Offset of each buffer, in the order in which they came."""
    blocks: list[int]
    """Number of the block of each buffer, from 0; all 0 where there is one."""

    def __init__(self, report: dict[str, Any], offsets: Sequence[int] = (), blocks: Sequence[int] = ()) -> None:
        super().__init__(report)
        self.offsets, self.blocks = list(offsets), list(blocks)

    @property
    def height(self) -> int:
        """The end of the buffer that ends last, in bytes."""
        return int(self["certificate"]["height"])

    @property
    def load(self) -> int:
        """The largest sum of sizes that are needed at one time: no block is lower."""
        return int(self["load_bytes"])

    @property
    def is_optimal(self) -> bool:
        """Whether it is proved that no block is lower; of given capacities, that all buffers fit."""
        return bool(self["certificate"]["status"] == "OPTIMAL")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self), self.offsets, self.blocks)


def place(
    buffers: Iterable[Buffer],
    capacity: Size | Sequence[Size] | None = None,
    *,
    time_limit: Seconds = 10.0,
    step_limit: int | None = None,
    seed: int = 0,
    options: Sequence[str] = (),
    progress: ProgressCallback | None = None,
) -> Placement:
    """Gives buffers their offsets in one block of memory, as low as possible, with a proof where one is found.

    Args:
        buffers: `(lower, upper, size)` of each, or objects with these names.
        capacity: Find a placement in a block of this size instead; of several sizes, in several blocks.
        time_limit: Seconds to search; one pass over the buffers is always made.
        step_limit: How often a buffer may be tried at an offset; with the same seed, every call gives the same
            placement.
        seed: Of the random choices.
        options: Further options of `remat-opt place`.
        progress: Called now and then with a `Progress`.

    Raises:
        InfeasibleError: It is proved that the blocks do not hold the buffers.
        LimitError: A limit was reached before a placement or a proof.
        ModelError: A buffer makes no sense; the message names its line (the first buffer is line 2).
    """
    with Folder() as folder:
        source, placed = pathlib.Path(folder, "buffers.csv"), pathlib.Path(folder, "placed.csv")
        _write(source, buffers)
        sizes = capacity if isinstance(capacity, (str, int, type(None))) else command.several(capacity)
        arguments: command.Line = [
            *("place", source, "-o", placed),
            *command.options(capacity=sizes, time_limit=command.seconds(time_limit), step_limit=step_limit, seed=seed),
            *options,
        ]
        report = command.call(arguments, progress)
        with placed.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return Placement(report, [int(row["offset"]) for row in rows], [int(row.get("block") or 0) for row in rows])


def _write(path: pathlib.Path, buffers: Iterable[Buffer]) -> None:
    rows: list[dict[str, Any]] = []
    for index, buffer in enumerate(buffers):
        row = (
            dict(buffer) if isinstance(buffer, Mapping) else dict(zip(("lower", "upper", "size"), buffer, strict=True))
        )
        if unknown := set(row) - set(_COLUMNS):
            raise UsageError(f"buffer {index} has {sorted(unknown)[0]!r}, which is none of {', '.join(_COLUMNS)}")
        rows.append({"id": index, **row})
    used = [column for column in _COLUMNS if column in _COLUMNS[:4] or any(column in row for row in rows)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, used, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
