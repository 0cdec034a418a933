"""A training graph as a rematerialization problem.

A graph is either the joint graph of forward and backward, which later run as two functions, or a whole step that runs
as one. The rules:

- Tensors that share memory are one storage. Placeholders and constants are external: the caller holds them.
- What the graph returns is kept. In a joint graph that goes for what the forward returns from then on, and for
  tangents, which autograd holds while the backward runs.
- An op `__cut__` of a joint graph reads what the forward returns and defines the tangents. Every plan is a legal
  split: what crosses the cut is what the forward saves.
- Ops that draw random numbers or communicate run once, and in their order. So do ops of other packages, which may draw
  random numbers of their own, unless they are allowed to run again.
- Ops that write in place run once, as does the cut, where inputs are overwritten after the forward. What reads the
  memory before never runs after them (anti-dependences), what reads it afterwards never runs before.
- A training batch norm may run again when its running statistics were overwritten, since a second run does without
  them. Input, weight and bias it reads in every run.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from .._problem import Problem
from ._effects import (
    STATISTICS,
    UnsupportedGraph,
    draws,
    is_collective,
    is_getitem,
    is_once,
    is_training_batch_norm,
    read_once,
    refuse_unsupported,
    results,
    written,
)
from ._storages import Storages, device_of, storage_bytes

OUTSIDE = "remat_outside"
"""The note at an input that its memory is not that which is planned."""
CUT = "__cut__"
"""Name of the op between forward and backward."""


@dataclass(frozen=True)
class Cost:
    """What one run of an op takes."""

    duration: int = 0
    """Nanoseconds."""
    workspace: int = 0
    """Bytes on top of arguments and results while it runs."""


@dataclass(frozen=True)
class Cut:
    """The border between the forward and the backward of a joint graph."""

    outputs: Sequence[Any]
    """What the forward returns: nodes, and constants among them."""
    tangents: Sequence[fx.Node]
    """The placeholders that only the backward has."""
    pinned: Sequence[fx.Node] = ()
    """Further nodes that have to run in the forward."""
    overwritten: Sequence[fx.Node] = ()
    """Inputs that get another value between the two: what the forward returns for them."""


@dataclass
class _Order:
    """What has to run before, for ops with effects."""

    random: int | None = None
    collective: int | None = None
    writer: dict[int, int] = field(default_factory=dict)
    """Token of the last op that wrote a storage."""
    readers: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Ops that may read a storage only before the next one that writes it."""
    first_reads: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Tokens of ops whose first run alone reads a storage."""


def empty_document(name: str) -> dict[str, Any]:
    """A problem without ops (`remat-opt explain problem`)."""
    return {
        "name": name,
        "accounting": "runtime",
        "order": "free",
        "ops": [],
        "tensors": [],
        "storages": [],
        "anti_dependences": [],
    }


class TrainingGraph:
    """A graph with its problem.

    Attributes:
        graph: The graph as it was traced; it is not changed.
        document: The problem (`remat-opt explain problem`); `problem()` gives it for `remat_opt.solve`.
        nodes: Node of each op, by its name in the problem.
        tensors: Position of each tensor in the problem, by node and position among the node's results.
        external_bytes: Memory of placeholders (without tangents) and constants.
    """

    def __init__(
        self,
        graph: fx.Graph,
        outputs: Iterable[Any],
        costs: Mapping[fx.Node, Cost],
        *,
        cut: Cut | None = None,
        name: str = "torch",
    ) -> None:
        """Reads a graph.

        Args:
            graph: ATen ops with traced values (`meta["val"]`), without dead code.
            outputs: What the graph returns, of a joint graph what the backward returns; others than nodes are ignored.
            costs: What ops take; ops that are not among them take nothing. Views never take anything.
            cut: For a joint graph.
            name: Of the problem.

        Raises:
            UnsupportedGraph: No plan can be made; the message names the node and the reason.
        """
        refuse_unsupported(graph)
        self.graph = graph
        self.cut = cut
        self.nodes: dict[str, fx.Node] = {}
        self.tensors: dict[tuple[fx.Node, int | None], int] = {}
        self._storages = Storages(graph)
        self._ids: dict[int, int] = {}
        self._makers: dict[int, fx.Node] = {}
        self._costs = costs
        self._replaced = {key for one in (cut.overwritten if cut else ()) for key in self._storages.keys(one)}
        self._mutated = {key for node in graph.nodes for one in written(node) for key in self._storages.keys(one)}
        self._mutated |= self._replaced
        self._returned = {one for one in outputs if isinstance(one, fx.Node)}
        kept = self._returned | {one for one in (cut.outputs if cut else ()) if isinstance(one, fx.Node)}
        self._kept = {key for one in kept for key in self._storages.keys(one)}
        self.document = empty_document(name)
        self._add_external()
        self._add_ops()
        self.external_bytes = sum(s["bytes"] for s in self.document["storages"] if s["role"] == "external")

    def problem(self) -> Problem:
        """The problem for `remat_opt.solve`."""
        return Problem(self.document)

    def with_workspace(self, op: str, size: int) -> TrainingGraph:
        """The same graph, where an op takes other bytes besides its arguments and results."""
        ops = [one | {"workspace": size} if one["name"] == op else one for one in self.document["ops"]]
        other = copy.copy(self)
        other.document = self.document | {"ops": ops}
        return other

    def digest(self) -> str:
        """A hash of the problem."""
        return hashlib.sha256(json.dumps(self.document, sort_keys=True).encode()).hexdigest()

    def is_kept(self, node: fx.Node, index: int | None) -> bool:
        """Whether a result stays from the first run of its node on, so that a later run does not give it anew."""
        tensor = self.tensors.get((node, index))
        if tensor is None:
            return False
        storage = self.document["storages"][self.document["tensors"][tensor]["storage"]]
        return bool(storage["role"] != "transient")

    @property
    def device(self) -> str:
        """The CUDA device of its values, such as `"cuda:1"`, or `"cpu"`."""
        return device_of(self.graph)

    def bytes_of(self, nodes: Iterable[fx.Node]) -> int:
        """Bytes of what nodes compute, each memory once."""
        own = {
            self.storage_key(value): storage_bytes(value)
            for node in nodes
            if node.op != "placeholder"
            for _, value in results(node)
        }
        return sum(own.values())

    @property
    def written_storages(self) -> set[int]:
        """Positions of the storages in the problem that an op overwrites in place."""
        return {self._ids[key] for key in self._mutated if key in self._ids}

    def tensors_at_once(self, order: Iterable[str] | None = None) -> int:
        """Most tensors that live at once, views among them, and one more for each gradient, whose parameter autograd holds
        something of.

        Args:
            order: Names of the ops as they run, some of them several times; that of the trace, each once, without one.
        """
        parts = defaultdict(list)
        for node in self.graph.nodes:
            if is_getitem(node):
                parts[node.args[0]].append(node)
        names = (one["name"] for one in self.document["ops"]) if order is None else order
        runs = [self.nodes[name] for name in names if name in self.nodes]
        made: list[int] = []
        last: list[int] = []
        current: dict[fx.Node, int] = {}
        for index, node in enumerate(runs):
            for one in node.all_input_nodes:
                if one in current:
                    last[current[one]] = index
            for one in (node, *parts[node]):
                is_kept = one in current and one in self._returned
                if isinstance(one.meta.get("val"), torch.Tensor) and not is_kept:
                    current[one] = len(made)
                    made.append(index)
                    last.append(len(runs) if one in self._returned else index)
        begin, end = Counter(made), Counter(last)
        live = itertools.accumulate(begin[index] - end[index - 1] for index in range(len(runs)))
        return max(live, default=0) + len(self._returned)

    def is_view(self, node: fx.Node) -> bool:
        """Whether a node gives nothing but memory of its arguments."""
        return self._storages.is_view(node)

    def storage_key(self, value: torch.Tensor) -> int:
        """A number for the memory of a traced value."""
        return self._storages.key(value)

    def _add_external(self) -> None:
        tangents = set(self.cut.tangents) if self.cut else set()
        for node in self.graph.nodes:
            if node.op in ("placeholder", "get_attr") and node not in tangents:
                for index, value in results(node):
                    self._makers.setdefault(self._storages.key(value), node)
                    self._add_tensor(node, index, value, None, "external")

    def _add_ops(self) -> None:
        calls = [node for node in self.graph.nodes if node.op == "call_function" and not is_getitem(node)]
        order = _Order()
        cut_token = None
        if self.cut:
            forward = self._forward(self.cut, calls)
            for node in calls:
                if node in forward:
                    self._add_op(node, order, None)
            cut_token = self._add_cut(self.cut, order)
            calls = [node for node in calls if node not in forward]
        for node in calls:
            self._add_op(node, order, cut_token)

    def _forward(self, cut: Cut, calls: Sequence[fx.Node]) -> set[fx.Node]:
        """The nodes that stand before the cut in the reference order: what the forward returns, what has effects, and
        what reads memory before the forward overwrites it."""
        late = _dependents(self.graph, cut.tangents)
        pinned = [node for node in calls if node not in late and is_once(node)]
        overwritten = {key for node in pinned for one in written(node) for key in self._storages.keys(one)}
        overwritten |= self._replaced
        for node in calls:
            if any(key in overwritten for one in node.all_input_nodes for key in self._storages.keys(one)):
                if node not in late:
                    pinned.append(node)
                elif not self._only_reads_later(node, pinned) or self._reads_replaced(node):
                    raise UnsupportedGraph(node.name, "the backward reads memory that the forward has overwritten")
        return ancestors([*cut.outputs, *cut.pinned, *pinned])

    def _reads_replaced(self, node: fx.Node) -> bool:
        return any(key in self._replaced for one in node.all_input_nodes for key in self._storages.keys(one))

    def _only_reads_later(self, node: fx.Node, writers: Iterable[fx.Node]) -> bool:
        """Whether a node of the backward stands after every op that writes what it reads."""
        mine = {key for one in node.all_input_nodes for key in self._storages.keys(one)}
        return all(
            writer < node
            for writer in writers
            if any(key in mine for one in written(writer) for key in self._storages.keys(one))
        )

    def _add_cut(self, cut: Cut, order: _Order) -> int:
        op = len(self.document["ops"])
        reads = {t for one in cut.outputs if isinstance(one, fx.Node) for t in self._read(one) if self._is_made(t)}
        reads |= {t for t, tensor in enumerate(self.document["tensors"]) if tensor["name"].endswith("!")}
        for key in sorted(self._replaced, key=self._ids.__getitem__):
            self._before_write(key, op, reads, order)
        record: dict[str, Any] = {"name": CUT, "duration": 0, "reads": sorted(reads), "recomputable": False}
        self.document["ops"].append(record)
        record["defines"] = [
            self._add_tensor(one, index, value, op, "live-out") for one in cut.tangents for index, value in results(one)
        ]
        self._makers |= {self._storages.key(value): one for one in cut.tangents for _, value in results(one)}
        token = self._add_token(CUT, op)
        record["defines"].append(token)
        return token

    def _add_op(self, node: fx.Node, order: _Order, cut_token: int | None) -> None:
        op = len(self.document["ops"])
        view = self._storages.is_view(node)
        once = is_once(node)
        cost = Cost() if view and not once else self._costs.get(node, Cost())
        reads = {t for one in node.all_input_nodes for t in self._read(one)}
        record: dict[str, Any] = {"name": node.name, "duration": cost.duration, "workspace": cost.workspace}
        self.document["ops"].append(record)
        self.nodes[node.name] = node
        is_first_read = self._order_memory(node, op, reads, order)
        if draws(node):
            reads |= {order.random} - {None}
        if is_collective(node):
            reads |= {order.collective} - {None}
        if once and cut_token is not None:
            reads.add(cut_token)
        makes_mutated = not view and any(key in self._mutated for key in self._storages.keys(node))
        if once or makes_mutated:
            record["recomputable"] = False
        record["reads"] = sorted(reads)
        record["defines"] = [self._add_result(node, index, value, op) for index, value in results(node)]
        if once or is_first_read:
            record["defines"].append(self._done(node, op, order))

    def _order_memory(self, node: fx.Node, op: int, reads: set[int], order: _Order) -> bool:
        """Puts an op among those that read and write the same memory; whether its first run alone has to stand before
        a later write."""
        writes = {key for one in written(node) for key in self._storages.keys(one)}
        touched = {key for one in node.all_input_nodes for key in self._storages.keys(one)} & self._mutated
        first = read_once(node, self._storages.keys) & touched
        for key in sorted(touched, key=self._ids.__getitem__):
            reads |= {order.writer[key]} if key in order.writer else set()
            if key in writes:
                self._before_write(key, op, reads, order)
            elif key not in first:
                order.readers[key].append(op)
        return bool(first)

    def _before_write(self, key: int, op: int, reads: set[int], order: _Order) -> None:
        """Puts what reads memory before an op that overwrites it."""
        pairs = ({"before": before, "after": op} for before in order.readers.pop(key, ()))
        self.document["anti_dependences"].extend(pairs)
        reads |= set(order.first_reads.pop(key, ()))

    def _done(self, node: fx.Node, op: int, order: _Order) -> int:
        token = self._add_token(node.name, op)
        if draws(node):
            order.random = token
        if is_collective(node):
            order.collective = token
        for one in written(node):
            order.writer |= dict.fromkeys(self._storages.keys(one), token)
        for key in read_once(node, self._storages.keys) & self._mutated:
            order.first_reads[key].append(token)
        return token

    def _add_result(self, node: fx.Node, index: int | None, value: torch.Tensor, op: int) -> int:
        key = self._storages.key(value)
        touched = {one for argument in node.all_input_nodes for one in self._storages.keys(argument)}
        if self._makers.setdefault(key, node) is not node and key not in touched:
            raise UnsupportedGraph(node.name, "it gives memory of a tensor that is not among its arguments")
        statistics = is_training_batch_norm(node) and index in STATISTICS
        return self._add_tensor(node, index, value, op, "live-out" if statistics or key in self._kept else "transient")

    def _add_tensor(self, node: fx.Node, index: int | None, value: torch.Tensor, op: int | None, role: str) -> int:
        tensor, key = len(self.document["tensors"]), self._storages.key(value)
        if key not in self._ids:
            self._ids[key] = len(self.document["storages"])
            size = 0 if node.meta.get(OUTSIDE) else storage_bytes(value)
            self.document["storages"].append({"root": tensor, "bytes": size, "role": role})
        record: dict[str, Any] = {"name": node.name if index is None else f"{node.name}#{index}"}
        record["storage"] = self._ids[key]
        if op is not None:
            record["producer"] = op
        self.document["tensors"].append(record)
        self.tensors[node, index] = tensor
        return tensor

    def _add_token(self, name: str, op: int) -> int:
        """A tensor of no bytes: whoever reads it runs after the op."""
        tensor = len(self.document["tensors"])
        self.document["tensors"].append(
            {"name": f"{name}!", "producer": op, "storage": len(self.document["storages"])}
        )
        self.document["storages"].append({"root": tensor, "bytes": 0, "role": "live-out"})
        return tensor

    def _read(self, node: fx.Node) -> list[int]:
        """The tensors that an op reads which has a node among its arguments."""
        if is_getitem(node):
            tensor = self.tensors.get((node.args[0], node.args[1]))
            return [] if tensor is None else [tensor]
        return [self.tensors[node, index] for index, _ in results(node)]

    def _is_made(self, tensor: int) -> bool:
        return "producer" in self.document["tensors"][tensor]


def ancestors(nodes: Iterable[Any]) -> set[fx.Node]:
    """Nodes with all that they are computed from."""
    seen: set[fx.Node] = set()
    todo = [one for one in nodes if isinstance(one, fx.Node)]
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo.extend(node.all_input_nodes)
    return seen


def _dependents(graph: fx.Graph, nodes: Iterable[fx.Node]) -> set[fx.Node]:
    """Nodes with all that is computed from them."""
    seen = set(nodes)
    for node in graph.nodes:
        if any(one in seen for one in node.all_input_nodes):
            seen.add(node)
    return seen
