"""Plans of training graphs, kept in the user's cache folder."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from .. import _native
from .._plan import Plan
from .._problem import solve
from ..errors import InfeasibleError, LimitError
from . import _cache
from ._budget import objects_around
from ._graph import TrainingGraph

MOVES = "paging"
"""The solver of problems in which values may move."""
_LARGE = 1000
"""From how many ops on the lowest peak is looked for under budgets, too."""
_OVERHEAD = 50_000
"""What `"auto"` allows to recompute, in millionths of the time of all ops: as on the command line."""
_FAR = ((1 / 8, 0.5), (1 / 3, 0.5))
"""Budgets that are hardly kept, as shares of the lowest peak so far, each with a share of the time of one search. In
graphs of thousands of ops a search comes down further for such a budget than for the lowest peak, and says how far."""
_NEAR = ((0.85, 0.25),) * 4
"""Budgets that may be kept, one after another; after one that leads no lower there is no other."""
_FALL = 1.5
"""What all budgets of a goal have together, as a share of the time of one search."""
_MOST_TENSORS = 3
"""How often a plan is looked for, where each has more tensors at once than the last one."""
_WORTH, _SLACK = 0.98, 1.02
"""Up to which share of the lowest peak so far it is worth asking for what a search came down to, and for how much more
than that: another search may not come down to the same byte."""


@dataclass(frozen=True)
class Search:
    """How plans are searched for."""

    time_limit: float = 10.0
    """Seconds for each plan."""
    step_limit: int | None = None
    """Most steps for each plan."""
    threads: int | None = None
    order: Literal["free", "fixed"] = "free"
    solver: str = "search"
    """A solver of `docs/solvers`. Those that prove leave threads behind, which would compete with training."""
    seed: int = 0

    def part(self, share: float) -> Search:
        """The same with a share of the time and of the steps."""
        steps = None if self.step_limit is None else max(1, int(self.step_limit * share))
        return replace(self, time_limit=self.time_limit * share, step_limit=steps)


def plan_within(graph: TrainingGraph, budget: int | str, search: Search) -> tuple[Plan, bool]:
    """The shortest plan whose peak stays within a budget; where none is found, one of the lowest peak.

    What was found for other budgets of the same graph is known, and counts: a budget that a known plan keeps is
    answered by the shortest of these, so never by a longer plan than a tighter one was, and one that none keeps by
    the lowest peak that is known. Of a large graph the lowest peak is looked for under lower and lower budgets, too,
    since a search for it may end above what a budget would have led to.

    Args:
        graph: What is planned.
        budget: Bytes without parameters and inputs, a share, `"min"`, or `"auto"`: the lowest peak whose plan takes
            5 % more time at most than every op once.
        search: How long, with how many threads.

    Returns:
        The plan, and whether it keeps the budget.

    Raises:
        RematError: There is no plan at all.
    """
    known = _Known(graph, search)
    if budget == "auto":
        return known.descend("auto"), True
    if budget != "min":
        try:
            least = known.solve(budget).peak_bytes
        except (InfeasibleError, LimitError):
            least = 0
            known.solve("min")
        if (found := known.shortest(max(least, known.bytes_of(budget)))) is not None:
            return found, True
    return known.descend("min"), budget == "min"


def plan_in_all(graph: TrainingGraph, budget: int | str, search: Search) -> tuple[Plan, bool, int]:
    """`plan_within`, where bytes are for the objects around tensors, too.

    Args:
        graph: What is planned.
        budget: As of `plan_within`.
        search: How long, with how many threads.

    Returns:
        The plan, whether it keeps the budget, and what `objects_around` is to be told of its tensors.

    Raises:
        RematError: There is no plan at all.
    """
    tensors = graph.tensors_at_once()
    for _ in range(_MOST_TENSORS):
        within = budget if isinstance(budget, str) else max(1, budget - objects_around(budget, tensors))
        plan, is_kept = plan_within(graph, within, search)
        before, tensors = tensors, max(tensors, graph.tensors_at_once(plan.order))
        if tensors == before or isinstance(budget, str):
            return plan, is_kept, tensors
    return plan, False, tensors


def longest_of(once: int) -> int:
    """The time that a plan of `"auto"` takes at most.

    Args:
        once: The time of every op once.
    """
    return once + once * _OVERHEAD // 1_000_000


def found_within(graph: TrainingGraph, budget: int | str, search: Search) -> Plan | None:
    """The shortest plan that one search finds within a budget, if it finds one.

    Args:
        graph: What is planned.
        budget: As of `plan_within`.
        search: How long, with how many threads.
    """
    try:
        return _cached(graph, budget, search)[0]
    except (InfeasibleError, LimitError):
        return None


class _Known:
    """The plans of one graph that were found so far, in this process and in earlier ones."""

    def __init__(self, graph: TrainingGraph, search: Search) -> None:
        self._graph, self._search = graph, search
        # What another order or solver would allow is no answer.
        self._key = _cache.key_of([_native.VERSION, graph.digest(), search.order, search.solver, "known"])
        self._found: dict[str, Plan] = {}
        """Those of this call, by key: there may be no cache."""

    def solve(self, budget: int | str, share: float = 1.0) -> Plan:
        """The plan for a budget, from the cache or searched for with a share of the time and of the steps."""
        plan, key = _cached(self._graph, budget, self._search.part(share))
        self._found[key] = plan
        entry = [plan.peak_bytes, plan.duration, key]
        if entry not in (entries := _cache.load("known", self._key) or []):
            _cache.store("known", self._key, [*entries, entry])
        return plan

    def bytes_of(self, budget: int | str) -> int:
        """A budget in bytes; a plan was found."""
        if isinstance(budget, int):
            return budget
        baseline = int(next(iter(self._found.values()))["baseline_peak_bytes"])
        return int(baseline * float(budget.removesuffix("%")) / 100)

    def shortest(self, limit: int) -> Plan | None:
        """The shortest plan that stays within a limit, of these the one with the lowest peak."""
        return self._best([(duration, peak, key) for peak, duration, key in self._entries() if peak <= limit])

    def lowest(self, longest: int | None = None) -> Plan:
        """The plan with the lowest peak, of these the shortest; one was found.

        Args:
            longest: What it may take in time, in nanoseconds; where none was found that keeps it, any.
        """
        entries = [(peak, duration, key) for peak, duration, key in self._entries()]
        short = [one for one in entries if longest is None or one[1] <= longest]
        plan = self._best(short or entries)
        assert plan is not None
        return plan

    def descend(self, goal: Literal["min", "auto"]) -> Plan:
        """Looks for the lowest peak, in any time or within what `"auto"` allows."""
        once = int(self.solve(goal)["baseline_duration"])
        longest = longest_of(once) if goal == "auto" else None
        if len(self._graph.nodes) >= _LARGE:
            done = _cache.key_of([self._key, goal, asdict(self._search)])
            if _cache.load("descents", done) is None:
                self._lower(goal, longest)
                _cache.store("descents", done, self.lowest(longest).peak_bytes)
        return self.lowest(longest)

    def _lower(self, goal: Literal["min", "auto"], longest: int | None) -> None:
        """Looks for lower peaks than the one that is known, under budgets below it."""
        left = _FALL
        for aim, share in _NEAR if goal == "auto" else _FAR + _NEAR:
            lowest = self.lowest(longest).peak_bytes
            reached = self._reached(int(lowest * aim), min(share, left))
            left -= share
            if goal == "min" and lowest * aim < reached < lowest * _WORTH and left > 0:
                # It came lower, without a plan that keeps its budget.
                again = min(2 * share, left)
                self._reached(int(reached * _SLACK), again)
                left -= again
            is_lower = self.lowest(longest).peak_bytes < lowest
            if left <= 0 or ((aim, share) in _NEAR and not is_lower):
                return

    def _reached(self, budget: int, share: float) -> float:
        """The lowest peak that a search for a budget came down to, whether that keeps the budget or not.

        Args:
            budget: Bytes.
            share: Of the time and of the steps.
        """
        try:
            return self.solve(budget, share).peak_bytes
        except (InfeasibleError, LimitError) as error:
            return error.details.get("lowest_peak_bytes") or math.inf

    def _entries(self) -> list[tuple[int, int, str]]:
        own = [(plan.peak_bytes, plan.duration, key) for key, plan in self._found.items()]
        return own + [(peak, duration, key) for peak, duration, key in _cache.load("known", self._key) or []]

    def _best(self, ranked: list[tuple[int, int, str]]) -> Plan | None:
        """The first plan that is still there, in order."""
        for *_, key in sorted(ranked):
            if key in self._found:
                return self._found[key]
            if (stored := _cache.load("plans", key)) is not None:
                return Plan(stored)
        return None


def _cached(graph: TrainingGraph, budget: int | str, search: Search) -> tuple[Plan, str]:
    """A plan, and its key in the cache."""
    key = _cache.key_of([_native.VERSION, graph.digest(), budget, asdict(search)])
    if (stored := _cache.load("plans", key)) is not None:
        return Plan(stored), key
    plan = solve(
        graph.problem(),
        budget,
        solver=search.solver,
        order=search.order,
        accounting="runtime",
        max_overhead=_OVERHEAD / 1_000_000 if budget == "auto" else None,
        time_limit=search.time_limit,
        step_limit=search.step_limit,
        threads=search.threads,
        seed=search.seed,
    )
    _cache.store("plans", key, plan)
    return plan, key
