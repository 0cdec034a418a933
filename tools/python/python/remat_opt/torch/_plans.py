"""Plans of training graphs, kept in the user's cache folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from .. import _native
from .._plan import Plan
from .._problem import solve
from ..errors import InfeasibleError, LimitError
from . import _cache
from ._graph import TrainingGraph


@dataclass(frozen=True)
class Search:
    """How plans are searched for."""

    time_limit: float = 10.0
    """Seconds for each plan."""
    threads: int | None = None
    order: Literal["free", "fixed"] = "free"
    solver: str = "search"
    """A solver of `docs/solvers`. Those that prove leave threads behind, which would compete with training."""
    seed: int = 0


def plan_within(graph: TrainingGraph, budget: int | str, search: Search) -> tuple[Plan, bool]:
    """The shortest plan whose peak stays within a budget; where none is found, one of the lowest peak.

    Args:
        graph: What is planned.
        budget: As of `remat_opt.solve`: bytes without parameters and inputs, or a share.
        search: How long, with how many threads.

    Returns:
        The plan, and whether it keeps the budget.

    Raises:
        RematError: There is no plan at all.
    """
    try:
        return _cached(graph, budget, search), True
    except (InfeasibleError, LimitError):
        if budget == "min":
            raise
        return _cached(graph, "min", search), False


def _cached(graph: TrainingGraph, budget: int | str, search: Search) -> Plan:
    key = _cache.key_of([_native.VERSION, graph.digest(), budget, asdict(search)])
    if (stored := _cache.load("plans", key)) is not None:
        return Plan(stored)
    plan = solve(
        graph.problem(),
        budget,
        solver=search.solver,
        order=search.order,
        accounting="runtime",
        time_limit=search.time_limit,
        threads=search.threads,
        seed=search.seed,
    )
    _cache.store("plans", key, plan)
    return plan
