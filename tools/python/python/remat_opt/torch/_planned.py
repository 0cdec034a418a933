"""Graphs that run op by op, planned again for a part of a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx

from ._divide import Moment, Option
from ._emit import emit
from ._graph import CUT, TrainingGraph
from ._live import Footprint, Workspace, footprint
from ._plans import Search, found_within
from ._split import Halves, Joint

_TARGETS = ((1.0, 0.6), (1.0, 0.35), (0.5, 1.0), (0.5, 0.5), (0.2, 1.0), (0.2, 0.4), (0.05, 1.0), (0.05, 0.3))
"""What plans of one graph are looked for: shares of what it saves, and of its peak, without recomputation."""


@dataclass(frozen=True)
class Planned:
    """A `Plannable` whose options are plans of its own."""

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

    @property
    def outputs(self) -> int:
        return len(self.joint.cut.outputs)

    @property
    def device(self) -> str:
        return self.graph.device

    def gradient_bytes(self) -> int:
        return self.graph.bytes_of(one for one in self.joint.backward if isinstance(one, fx.Node))

    def halves(self, plan: Mapping[str, Any]) -> Halves:
        """Forward and backward of a plan."""
        return self.joint.planned(emit(self.graph, plan, self.folder), self.static)

    def traced(self) -> dict[str, Any]:
        """The plan without recomputation, in the order of the trace."""
        return {"steps": [{"op": "compute", "node": one["name"]} for one in self.graph.document["ops"]]}

    def running(self) -> Option:
        return self.option(self.plan)

    def option(self, plan: Mapping[str, Any]) -> Option:
        """A plan with what it takes."""
        durations = {one["name"]: one["duration"] for one in self.graph.document["ops"]}
        runs = [one["node"] for one in plan["steps"] if one["op"] in ("compute", "recompute")]
        takes = self.takes
        if plan is not self.plan:
            takes = footprint(self.halves(plan), self.outputs, self.workspace)
        duration = plan.get("duration", sum(durations[name] for name in runs))
        return Option(plan, takes, duration, len(runs) - len(durations))

    def options(self, search: Search) -> list[Option]:
        """Plans of the graph of which none is better than another in everything; the first one recomputes nothing."""
        first = self.option(self.traced())
        found = [first]
        graph, part = self.graph, search.part(1 / (len(_TARGETS) + 1))
        if (whole := found_within(graph, "100%", part)) is None:
            return found
        found.append(self.option(whole))
        baseline = int(whole["baseline_peak_bytes"])
        passed = _passed(graph)
        for saved, share in _TARGETS:
            most = passed + int(saved * first.takes.saved)
            budget = max(most, int(share * baseline))
            limited = graph if saved == 1.0 else graph.with_workspace(CUT, budget - most)
            if (plan := found_within(limited, budget, part)) is not None:
                found.append(self.option(plan))
        if (plan := found_within(graph, "min", part)) is not None:
            found.append(self.option(plan))
        return [one for place, one in enumerate(found) if place == 0 or not _is_beaten(one, found[:place])]

    def exact(self, option: Option) -> Option:
        return option

    def seen(self, option: Option, forward: int, backward: int) -> Option:
        return option

    def refined(
        self, graph: int, moments: Sequence[Moment], choice: Mapping[int, Option], limit: int, search: Search
    ) -> Option | None:
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
        passed = _passed(self.graph)
        budget = min(forward, backward - (calls - 1) * saved + passed)
        most = passed + saved
        limited = self.graph.with_workspace(CUT, budget - most) if budget > most else self.graph
        plan = found_within(limited, budget, search) if budget > 0 else None
        return None if plan is None else self.option(plan)


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
