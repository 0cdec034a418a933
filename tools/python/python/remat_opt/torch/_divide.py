"""One budget for a step in which several graphs run, or one several times: a plan of each, chosen together.

What a graph saves lies there until its backward runs, while forward and backward of others run. So a graph has several
plans: with little or much that is saved, and with a low or a high peak. The moments of a measured step say which of them
meet, and the shortest choice whose peak keeps the budget at every moment is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx

from ._emit import emit
from ._graph import CUT, TrainingGraph
from ._live import Footprint, Workspace, footprint
from ._plans import Search, found_within
from ._split import Halves, Joint

_TARGETS = ((1.0, 0.6), (1.0, 0.35), (0.5, 1.0), (0.5, 0.5), (0.2, 1.0), (0.2, 0.4), (0.05, 1.0), (0.05, 0.3))
"""What plans of one graph are looked for: shares of what it saves, and of its peak, without recomputation."""
_ALL = 20_000
"""Up to how many choices all are tried."""

Order = tuple[tuple[int, bool], ...]
"""The halves of a step: the number of each graph, and whether it is the backward."""


@dataclass(frozen=True)
class Plannable:
    """A joint graph as it can be planned again."""

    joint: Joint
    graph: TrainingGraph
    workspace: Workspace
    static: Sequence[int] | None
    """Positions of the inputs that stay where they are."""
    plan: Mapping[str, Any]
    """The one that runs."""
    takes: Footprint
    """What that takes."""
    folder: str | None = None
    """Where a CPU's second memory lies."""

    def gradient_bytes(self) -> int:
        """Bytes of what the backward returns."""
        return self.graph.bytes_of(one for one in self.joint.backward if isinstance(one, fx.Node))

    def halves(self, plan: Mapping[str, Any]) -> Halves:
        """Forward and backward of a plan."""
        return self.joint.planned(emit(self.graph, plan, self.folder), self.static)

    def traced(self) -> dict[str, Any]:
        """The plan without recomputation, in the order of the trace."""
        return {"steps": [{"op": "compute", "node": one["name"]} for one in self.graph.document["ops"]]}

    def option(self, plan: Mapping[str, Any]) -> Option:
        """A plan with what it takes."""
        durations = {one["name"]: one["duration"] for one in self.graph.document["ops"]}
        runs = [one["node"] for one in plan["steps"] if one["op"] in ("compute", "recompute")]
        takes = self.takes
        if plan is not self.plan:
            takes = footprint(self.halves(plan), len(self.joint.cut.outputs), self.workspace)
        duration = plan.get("duration", sum(durations[name] for name in runs))
        return Option(plan, takes, duration, len(runs) - len(durations))


@dataclass(frozen=True)
class Option:
    """One plan of a graph."""

    plan: Mapping[str, Any]
    takes: Footprint
    duration: int
    """Nanoseconds of all ops."""
    recomputes: int
    """Runs of ops besides the first ones."""


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


def options(source: Plannable, search: Search) -> list[Option]:
    """Plans of a graph of which none is better than another in everything; the first one recomputes nothing.

    Args:
        source: The graph.
        search: For all plans together.
    """
    first = source.option(source.traced())
    found = [first]
    graph, part = source.graph, search.part(1 / (len(_TARGETS) + 1))
    if (whole := found_within(graph, "100%", part)) is None:
        return found
    found.append(source.option(whole))
    baseline = int(whole["baseline_peak_bytes"])
    passed = _passed(graph)
    for saved, share in _TARGETS:
        most = passed + int(saved * first.takes.saved)
        budget = max(most, int(share * baseline))
        limited = graph if saved == 1.0 else graph.with_workspace(CUT, budget - most)
        if (plan := found_within(limited, budget, part)) is not None:
            found.append(source.option(plan))
    if (plan := found_within(graph, "min", part)) is not None:
        found.append(source.option(plan))
    return [one for place, one in enumerate(found) if place == 0 or not _is_beaten(one, found[:place])]


def refined(
    plannable: Plannable, graph: int, moments: Sequence[Moment], choice: Mapping[int, Option], limit: int, search: Search
) -> Option | None:
    """A plan of one graph for just the room that the others leave, if one is found.

    Args:
        plannable: The graph.
        graph: Its number.
        moments: Of all steps that were measured.
        choice: A plan for each graph, which keep the limit together.
        limit: Bytes above what a step begins with.
        search: How long, with how many threads.
    """
    takes = choice[graph].takes
    saved = forward = backward = limit
    for one in moments:
        calls, left = one.waiting.get(graph, 0), limit - one.peak(choice)
        if one.runs == graph and not one.is_backward:
            forward = min(forward, left + takes.forward)
        if one.runs == graph and one.is_backward:
            # Of several calls that wait, one gives way to what its backward takes.
            backward = min(backward, left + takes.backward + calls * takes.saved)
            saved = min(saved, left // calls + takes.saved)
        elif calls:
            saved = min(saved, left // calls + takes.saved)
    calls = max((one.waiting.get(graph, 0) for one in moments if one.runs == graph and one.is_backward), default=1)
    passed = _passed(plannable.graph)
    budget = min(forward, backward - (calls - 1) * saved + passed)
    most = passed + saved
    limited = plannable.graph.with_workspace(CUT, budget - most) if budget > most else plannable.graph
    plan = found_within(limited, budget, search) if budget > 0 else None
    return None if plan is None else plannable.option(plan)


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


def _passed(graph: TrainingGraph) -> int:
    """Bytes that lie between forward and backward whatever is saved: what the one returns and the other is given."""
    assert graph.cut is not None
    document = graph.document
    (cut,) = (one for one in document["ops"] if one["name"] == CUT)
    tensors = (document["tensors"][index] for index in (*cut["reads"], *cut["defines"]))
    storages = {one["storage"] for one in tensors}
    return sum(document["storages"][one]["bytes"] for one in storages if document["storages"][one]["role"] != "external")


def _is_beaten(option: Option, others: Sequence[Option]) -> bool:
    def figures(one: Option) -> tuple[int, ...]:
        takes = one.takes
        return one.duration, takes.forward, takes.backward, takes.saved, sum(takes.shown.values())

    mine = figures(option)
    return any(all(a <= b for a, b in zip(figures(other), mine)) for other in others)
