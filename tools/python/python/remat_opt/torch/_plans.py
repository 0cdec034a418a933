"""Plans of training graphs, kept in the user's cache folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from .. import _native
from .._plan import Plan
from .._problem import solve
from ..errors import InfeasibleError, LimitError
from . import _cache
from ._graph import TrainingGraph

MOVES = "paging"
"""The solver of problems in which values may move."""
_LARGE = 1000
"""From how many ops on the lowest peak is looked for under budgets, too."""
_OVERHEAD = 50_000
"""What `"auto"` allows to recompute, in millionths of the time of all ops: as on the command line."""
_RUNGS, _STEP = 4, 0.85
"""How many budgets, each a share of the lowest peak so far; together they have the time of one search."""


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

    What was found for other budgets of the same graph is known, and counts: a budget that a known plan keeps is answered
    by the shortest of these, so never by a longer plan than a tighter one was, and one that none keeps by the lowest peak
    that is known. Of a large graph the lowest peak is looked for under one budget below the other, too, since a search
    for it may end above what a budget would have led to.

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
        plan = self.solve(goal)
        longest = longest_of(int(plan["baseline_duration"])) if goal == "auto" else None
        for _ in range(_RUNGS if len(self._graph.nodes) >= _LARGE else 0):
            try:
                plan = self.solve(int(self.lowest(longest).peak_bytes * _STEP), 1 / _RUNGS)
            except (InfeasibleError, LimitError):
                break
            if longest is not None and plan.duration > longest:
                break
        return self.lowest(longest)

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
