"""When the transfers of a plan begin and end, in the order of its steps, so that its budget is kept however long they take.

A plan states times by which transfers and runs overlap. Where a bus is slower than that, what is on its way out would stay
in memory. So every wait is decided here, by bytes alone: a run, and a transfer back, waits for transfers out, the oldest
first, until it has room with all that is still on its way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ._graph import CUT, TrainingGraph


@dataclass(frozen=True)
class Action:
    """A step of a planned graph."""

    kind: Literal["run", "out", "left", "dropped", "coming", "back"]
    """`run` runs an op. `out` begins to move a storage out and `left` waits for that; of one that was moved before, the
    memory is `dropped`. `coming` begins to move it back and `back` waits for that."""
    op: str = ""
    """The name of the op that runs."""
    storage: int = -1
    """The position of the storage that moves."""


@dataclass(frozen=True)
class Transfers:
    """A plan with its waits."""

    actions: list[Action]
    peak_bytes: int
    """Most bytes in memory, whatever transfers take."""
    moved_bytes: int
    """Bytes that move out, and back at least once."""


def transfers(graph: TrainingGraph, plan: Mapping[str, Any]) -> Transfers:
    """The steps of a plan with waits for transfers.

    Args:
        graph: What the plan is for.
        plan: Its peak is what memory is held to.
    """
    schedule = _Schedule(graph, plan)
    for position, step in enumerate(plan["steps"]):
        schedule.take(position, step)
    return Transfers(schedule.actions, schedule.peak, schedule.moved)


def has_transfers(plan: Mapping[str, Any]) -> bool:
    """Whether something moves in a plan."""
    return any(step["op"] in ("page_out", "page_in") for step in plan["steps"])


def taken_by(graph: TrainingGraph, plan: Mapping[str, Any]) -> tuple[int, int]:
    """Most bytes in memory of a plan, whatever its transfers take, and the bytes that they move out."""
    if not has_transfers(plan):
        return int(plan["peak_bytes"]), 0
    found = transfers(graph, plan)
    return max(int(plan["peak_bytes"]), found.peak_bytes), found.moved_bytes


class _Schedule:
    def __init__(self, graph: TrainingGraph, plan: Mapping[str, Any]) -> None:
        document = graph.document
        self.limit = int(plan["peak_bytes"])
        self.room: int | None = document.get("paging", {}).get("capacity")
        """Bytes of the second memory."""
        self.actions: list[Action] = []
        self.peak = self.moved = 0
        self._ops = {one["name"]: one for one in document["ops"]}
        self._tensors = document["tensors"]
        self._storages = document["storages"]
        self._roots = {self._tensors[one["root"]]["name"]: index for index, one in enumerate(self._storages)}
        self._written = graph.written_storages
        self._made: dict[str, list[int]] = {}
        """Storages with the op whose runs make them."""
        for index, one in enumerate(self._storages):
            if (producer := self._tensors[one["root"]].get("producer")) is not None:
                self._made.setdefault(document["ops"][producer]["name"], []).append(index)
        self._live: dict[int, int] = {}
        """Bytes of what is in memory, on its way there, or on its way out."""
        self._leaving: dict[int, None] = {}
        """Storages on their way out, the oldest first."""
        self._coming: set[int] = set()
        self._late: dict[int, None] = {}
        """Storages whose way back waits for room."""
        self._copies: dict[int, int] = {}
        """Bytes of the copies in the second memory, by storage."""
        self._exits: dict[int, list[tuple[int, bool]]] = {}
        """By storage the steps after which it is not in memory, the last one first, and whether that moves it out."""
        for position, step in reversed([*enumerate(plan["steps"])]):
            if step["op"] in ("free", "page_out"):
                exits = self._exits.setdefault(self._roots[step["tensor"]], [])
                exits.append((position, step["op"] == "page_out"))
        self._position = 0

    def take(self, position: int, step: Mapping[str, Any]) -> None:
        self._position = position
        if step["op"] in ("compute", "recompute"):
            self._run(step["node"])
            return
        storage = self._roots[step["tensor"]]
        if step["op"] == "free":
            self._settle(storage)
            self._live.pop(storage, None)
            self._copies.pop(storage, None)
        elif step["op"] == "page_out":
            self._out(storage)
        else:
            self._in(storage)

    def _run(self, name: str) -> None:
        op = self._ops[name]
        if name == CUT:
            # Code between both halves sees what the plan says is there, and nothing that is on its way.
            for storage in [*self._leaving]:
                self._left(storage)
            for storage in [*self._late, *sorted(self._coming)]:
                self._settle(storage)
        for storage in sorted({self._tensors[one]["storage"] for one in op["reads"]}):
            self._settle(storage)
        made = {one: self._bytes(one) for one in self._made.get(name, ())}
        need = sum(made.values()) + op.get("workspace", 0)
        self._make_room(need)
        for storage in [*self._late]:
            if self._total() + need + self._bytes(storage) <= self.limit:
                self._begin(storage)
        self.peak = max(self.peak, self._total() + need)
        self._live |= made
        for storage in made:
            self._came_back(storage)
        self.actions.append(Action("run", op=name))

    def _out(self, storage: int) -> None:
        self._settle(storage)
        if storage in self._copies:
            del self._live[storage]
            self.actions.append(Action("dropped", storage=storage))
            return
        size = int(self._storages[storage]["bytes"])
        for other in [*sorted(self._coming), *self._late]:
            if self.room is None or sum(self._copies.values()) + size <= self.room:
                break
            # In the plan it is back, and its copy gone.
            if not self._leaves_again(other):
                self._settle(other)
        self._copies[storage] = size
        self._leaving[storage] = None
        self.moved += self._bytes(storage)
        self.actions.append(Action("out", storage=storage))

    def _in(self, storage: int) -> None:
        if storage in self._leaving:
            self._left(storage)
        self._make_room(self._bytes(storage))
        if self._total() + self._bytes(storage) <= self.limit:
            self._begin(storage)
        else:
            self._late[storage] = None

    def _settle(self, storage: int) -> None:
        """Waits until a storage is in memory, where it is on its way."""
        if storage in self._late:
            self._make_room(self._bytes(storage))
            self._begin(storage)
        if storage in self._coming:
            self._coming.remove(storage)
            self._came_back(storage)
            self.actions.append(Action("back", storage=storage))

    def _came_back(self, storage: int) -> None:
        """Its copy stays only if it is what the storage leaves memory for once more."""
        if not self._leaves_again(storage):
            self._copies.pop(storage, None)

    def _leaves_again(self, storage: int) -> bool:
        exits = self._exits.get(storage, [])
        while exits and exits[-1][0] < self._position:
            exits.pop()
        return bool(exits) and exits[-1][1] and storage not in self._written

    def _begin(self, storage: int) -> None:
        self._late.pop(storage, None)
        self._coming.add(storage)
        self._live[storage] = self._bytes(storage)
        self.peak = max(self.peak, self._total())
        self.actions.append(Action("coming", storage=storage))

    def _left(self, storage: int) -> None:
        del self._leaving[storage]
        del self._live[storage]
        self.actions.append(Action("left", storage=storage))

    def _make_room(self, need: int) -> None:
        while self._leaving and self._total() + need > self.limit:
            self._left(next(iter(self._leaving)))

    def _total(self) -> int:
        return sum(self._live.values())

    def _bytes(self, storage: int) -> int:
        one = self._storages[storage]
        return 0 if one["role"] == "external" else int(one["bytes"])
