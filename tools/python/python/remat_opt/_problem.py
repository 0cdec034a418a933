"""Rematerialization as an optimization problem: graphs in, plans out."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _command as command
from ._command import Seconds, Share, Size
from ._files import Folder, json_file, path_of
from ._plan import Plan
from ._progress import ProgressCallback
from .errors import UsageError

if TYPE_CHECKING:
    import networkx


class Problem:
    """A graph of ops, each with a duration and one result of some bytes; an edge leads from the op that makes a
    result to one that reads it.

    Built from a networkx graph (`from_networkx`), from an object in node-link form or in the form of a saved problem
    (`remat-opt explain problem`), which has several results, views and workspace, or from the file of one (`load`).
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Takes an object in node-link form or that of a saved problem; it is checked when it is solved."""
        self.document: dict[str, Any] = dict(document)

    @classmethod
    def from_networkx(
        cls, graph: networkx.DiGraph, *, size: str = "cost_ram", duration: str = "cost_cpu", name: str | None = None
    ) -> Problem:
        """The problem of a `networkx.DiGraph`, whose nodes stand in the order in which they were added: the reference
        order, where that follows the edges.

        Args:
            graph: Without cycles.
            size: Attribute of a node: bytes of its result, an integer.
            duration: Attribute of a node: time of one run, an integer in any unit.
            name: Name of the problem; that of the graph, unless given.

        Raises:
            UsageError: It is not directed, or a node lacks an attribute.
        """
        if not graph.is_directed():
            raise UsageError("edges lead from producer to consumer: a directed graph is needed")
        ids = {node: str(node) for node in graph.nodes}
        if len(set(ids.values())) != len(ids):
            raise UsageError("two nodes have the same name as text")
        nodes = []
        for node, attributes in graph.nodes(data=True):
            missing = [key for key in (size, duration) if key not in attributes]
            if missing:
                raise UsageError(f"node {node!r} has no attribute {missing[0]!r}", op=ids[node])
            rest = {key: attributes[key] for key in ("backward",) if key in attributes}
            nodes.append(
                {
                    "id": ids[node],
                    "cost_ram": _number(attributes[size]),
                    "cost_cpu": _number(attributes[duration]),
                    **rest,
                }
            )
        links = [{"source": ids[source], "target": ids[target]} for source, target in graph.edges()]
        about = {"name": name or str(graph.graph.get("name", "") or "graph")}
        return cls({"directed": True, "multigraph": False, "graph": about, "nodes": nodes, "links": links})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Problem:
        """A node-link graph or a saved problem (`.json`)."""
        document: dict[str, Any] = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        return cls(document)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it as a file that the command line takes."""
        json_file(self.document, pathlib.Path(path))

    def __repr__(self) -> str:
        ops = self.document.get("nodes", self.document.get("ops", ()))
        return f"<Problem of {len(ops)} ops>"

    def _file(self, folder: pathlib.Path) -> pathlib.Path:
        return json_file(self.document, folder / "input.json")


def solve(
    problem: Problem | networkx.DiGraph | Mapping[str, Any] | str | os.PathLike[str],
    budget: str | int | float = "min",
    *,
    solver: str = "auto",
    order: Literal["free", "fixed"] | None = None,
    accounting: Literal["runtime", "paper"] | None = None,
    max_overhead: Share | None = None,
    max_computes: int | None = None,
    time_limit: Seconds = 10.0,
    step_limit: int | None = None,
    threads: int | None = None,
    memory_limit: Size | None = None,
    seed: int = 0,
    options: Sequence[str] = (),
    progress: ProgressCallback | None = None,
) -> Plan:
    """The shortest plan of a graph whose peak stays within a budget.

    Args:
        problem: A `Problem`, a `networkx.DiGraph` with the attributes `cost_ram` and `cost_cpu`, an object in
            node-link form, or the path of a graph or model.
        budget: The peak to stay within: a share of that of running every op once (`"80%"`, `0.8`), bytes, `"min"`,
            `"auto"` or `"none"`.
        solver: A solver of `docs/solvers`: `"search"`, `"exact"` (with the extra `proofs`), `"moccasin"`,
            `"chen:greedy"` and others.
        order: Whether first runs may change their order (`"free"`); graphs keep theirs, unless told.
        accounting: Which bytes count: `"paper"` (outputs die, as in the papers; the default of graphs) or `"runtime"`
            (outputs stay).
        max_overhead: Time that may be added, as a share.
        max_computes: How often one op may run.
        time_limit: Seconds to search.
        step_limit: Most steps of the search; with one thread and the same seed, every call gives the same plan.
        threads: Threads to search with.
        memory_limit: Most bytes that this process may take.
        seed: Of the random choices.
        options: Further options, as on the command line: `["--paging", "sync"]`.
        progress: Called now and then with a `Progress`; where it returns `False`, the best plan until then is the
            result.

    Returns:
        The plan: `steps`, `peak_bytes`, `duration` (in the unit of the graph) and `certificate`. The checker has
        replayed it.

    Raises:
        InfeasibleError: It is proved that no plan keeps the budget; `.op` names the op that forbids it,
            `.details["need_bytes"]` what it needs.
        LimitError: A limit was reached before a plan was found.
        ModelError: It is no graph, or has a cycle.
    """
    with Folder() as folder:
        place = pathlib.Path(folder)
        plan = place / "plan.json"
        arguments: command.Line = [
            *(_input(problem, place), "-o", plan),
            *command.options(
                budget=command.budget(budget),
                solver=solver,
                order=order,
                accounting=accounting,
                max_computes=max_computes,
            ),
            *command.options(
                time_limit=command.seconds(time_limit),
                step_limit=step_limit,
                threads=threads,
                memory_limit=memory_limit,
            ),
            *command.options(max_overhead=None if max_overhead is None else command.share(max_overhead), seed=seed),
            *options,
        ]
        command.call(arguments, progress)
        return Plan(json.loads(plan.read_text(encoding="utf-8")))


def _number(value: Any) -> Any:
    """A number of numpy as one of Python."""
    return value.item() if hasattr(value, "item") else value


def _input(problem: Any, folder: pathlib.Path) -> pathlib.Path:
    if isinstance(problem, (str, os.PathLike)):
        return path_of(problem)
    if isinstance(problem, Problem):
        return problem._file(folder)
    if isinstance(problem, Mapping):
        return Problem(problem)._file(folder)
    if not hasattr(problem, "is_directed"):
        raise UsageError(
            f"a problem is a Problem, a networkx.DiGraph, an object or a path, not {type(problem).__name__}"
        )
    return Problem.from_networkx(problem)._file(folder)
