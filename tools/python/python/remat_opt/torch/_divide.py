"""One budget for a step in which several graphs run, or one several times: a plan of each, chosen together.

What a graph saves lies there until its backward runs, while forward and backward of others run. So a graph has several
plans: with little or much that is saved, and with a low or a high peak. The moments of a measured step say which of them
meet, and the shortest choice whose peak keeps the budget at every moment is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ._live import Footprint
from ._plans import Search
from ._split import Split

_ALL = 20_000
"""Up to how many choices all are tried."""

Order = tuple[tuple[int, bool], ...]
"""The halves of a step: the number of each graph, and whether it is the backward."""


@dataclass(frozen=True)
class Option:
    """One plan of a graph."""

    plan: Mapping[str, Any] | Split
    """Behind Inductor a split."""
    takes: Footprint
    duration: int
    """Nanoseconds of all ops."""
    recomputes: int
    """Runs of ops besides the first ones."""
    is_rough: bool = False
    """Whether `takes` is the least that may be expected: `Plannable.exact` says more, and takes its time."""

    def is_same(self, other: Option) -> bool:
        """Whether both run the same ops in the same order."""
        mine, others = (one.plan.key if isinstance(one.plan, Split) else one.plan["steps"] for one in (self, other))
        return bool(mine == others)


class Plannable(Protocol):
    """A graph as it can be planned again."""

    @property
    def outputs(self) -> int:
        """How many results of the forward are not saved for the backward."""

    @property
    def device(self) -> str:
        """`"cpu"`, or a CUDA device such as `"cuda:1"`."""

    def gradient_bytes(self) -> int:
        """Bytes of what the backward returns."""

    def running(self) -> Option:
        """The plan that runs."""

    def options(self, search: Search) -> list[Option]:
        """Plans to choose from, the usual one first.

        Args:
            search: For all plans together.
        """

    def exact(self, option: Option) -> Option:
        """The same as one of `options` with what it is expected to take."""

    def seen(self, option: Option, forward: int, backward: int) -> Option:
        """The same with what a step has shown of it.

        Args:
            option: One that ran.
            forward: Most bytes of its forward, as `Footprint` has it.
            backward: The same of its backward.
        """

    def refined(
        self, graph: int, moments: Sequence[Moment], choice: Mapping[int, Option], limit: int, search: Search
    ) -> Option | None:
        """A plan for just the room that others leave, if there is one.

        Args:
            graph: The number of this graph.
            moments: Of all steps that were measured.
            choice: A plan for each graph, which keep the limit together.
            limit: Bytes above what a step begins with.
            search: How long, with how many threads.
        """


@dataclass(frozen=True)
class Moment:
    """A part of a step: a half of a graph, or what runs between two of them."""

    held: int
    """Bytes above what the step began with, besides those that graphs save and the running half takes; between halves the
    most."""
    waiting: Mapping[int, int]
    """How many calls of each graph have run their forward and not yet their backward; that of the running backward is
    among them."""
    shown: Mapping[int, Collection[int]]
    """Which results of graphs were saved as well in the measured step, so that `held` has them for certain."""
    runs: int | None = None
    """The running graph."""
    is_backward: bool = False

    def peak(self, choice: Mapping[int, Option]) -> int:
        """Most bytes with a plan for each graph."""
        found = self.held
        for graph, calls in self.waiting.items():
            takes = choice[graph].takes
            fresh = sum(size for place, size in takes.shown.items() if place not in self.shown.get(graph, ()))
            found += calls * (takes.saved + fresh)
        if self.runs is not None:
            takes = choice[self.runs].takes
            found += takes.backward if self.is_backward else takes.forward
        return found


def moments_of(
    order: Order,
    waiting: Sequence[Mapping[int, int]],
    live: Sequence[int],
    peaks: Sequence[int],
    choice: Mapping[int, Option],
    sums: int = 0,
) -> list[Moment]:
    """The moments of a measured step.

    Args:
        order: Its halves.
        waiting: For each half, the calls whose forward had run.
        live: Bytes at the beginning, before the first half, after it, and so on, and at the end.
        peaks: Most bytes after each of these, up to the next one.
        choice: The plans that ran.
        sums: Bytes that sums over processes may take at any time after the first backward, seen or not.
    """
    found = []
    hidden = 0
    for index, (graph, is_backward) in enumerate(order):
        calls = {one: number for one, number in waiting[index].items() if number > 0}
        shown = {one: tuple(choice[one].takes.shown) for one in calls}
        saved = sum(number * choice[one].takes.saved for one, number in calls.items())
        found.append(Moment(live[1 + 2 * index] - saved + hidden, calls, shown, graph, is_backward))
        # What runs before the half.
        found.append(Moment(peaks[2 * index] - saved + hidden, calls, shown))
        hidden = sums if is_backward else hidden
    # What runs after the last one.
    return [*found, *(Moment(one + hidden, {}, {}) for one in peaks[2 * len(order) :])]


def peak(moments: Sequence[Moment], choice: Mapping[int, Option]) -> int:
    """Most bytes of a step with a plan for each graph."""
    return max((one.peak(choice) for one in moments), default=0)


def duration(choice: Mapping[int, Option], calls: Mapping[int, int]) -> int:
    """Nanoseconds of a step with a plan for each graph.

    Args:
        choice: The plans.
        calls: How often each graph runs in a step.
    """
    return sum(calls.get(graph, 1) * one.duration for graph, one in choice.items())


def choose(
    moments: Sequence[Moment],
    menus: Mapping[int, Sequence[Option]],
    calls: Mapping[int, int],
    limit: int,
    longest: int | None = None,
) -> dict[int, Option]:
    """A plan for each graph: the shortest choice that keeps a limit, or that with the lowest peak where none is found.

    All choices are tried where they are few. Otherwise two are improved change by change: that of the lowest peaks, and the
    fastest one after what costs least was changed.

    Args:
        moments: Of all steps that were measured.
        menus: The plans of each graph.
        calls: How often each graph runs in a step.
        limit: Bytes above what a step begins with.
        longest: What the step may take in time, in nanoseconds: the lowest peak within it is asked for, whatever the limit.
    """
    graphs = sorted(menus)

    def rank(choice: Mapping[int, Option]) -> tuple[int, int]:
        most, time = peak(moments, choice), duration(choice, calls)
        return (max(0, most - limit), time) if longest is None else (max(0, time - longest), most)

    number = 1
    for graph in graphs:
        number *= len(menus[graph])
    if number <= _ALL:
        each = (dict(zip(graphs, several)) for several in itertools.product(*(menus[graph] for graph in graphs)))
        return min(each, key=rank)
    lowest = {graph: min(menus[graph], key=lambda one: one.takes.saved + one.takes.backward) for graph in graphs}
    starts = (lowest, _cheapest(moments, menus, calls, limit))
    return min((_improved(one, menus, rank) for one in starts), key=rank)


def _cheapest(
    moments: Sequence[Moment], menus: Mapping[int, Sequence[Option]], calls: Mapping[int, int], limit: int
) -> dict[int, Option]:
    """The fastest plans, changed one after another where that takes away most bytes above the limit for its time."""

    def excess(choice: Mapping[int, Option]) -> int:
        return sum(max(0, one.peak(choice) - limit) for one in moments)

    choice = {graph: min(menu, key=lambda one: one.duration) for graph, menu in menus.items()}
    left = excess(choice)
    while left:
        rated = []
        for graph, menu in menus.items():
            for place, one in enumerate(menu):
                less = left - excess(choice | {graph: one})
                added = calls.get(graph, 1) * (one.duration - choice[graph].duration)
                if less > 0:
                    rated.append((-less / max(1, added), graph, place))
        if not rated:
            break
        _, graph, place = min(rated)
        choice |= {graph: menus[graph][place]}
        left = excess(choice)
    return choice


def _improved(
    choice: dict[int, Option], menus: Mapping[int, Sequence[Option]], rank: Callable[[dict[int, Option]], Any]
) -> dict[int, Option]:
    """A choice after the best change of one graph, as long as there is one."""
    while True:
        changed = [choice | {graph: one} for graph, menu in menus.items() for one in menu if one is not choice[graph]]
        following = min(changed, key=rank, default=choice)
        if rank(following) >= rank(choice):
            return choice
        choice = following
