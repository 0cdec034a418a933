"""A plan as a graph: nodes in its order, with a clone for each further run."""

from __future__ import annotations

import contextlib
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree

from . import _moving
from ._effects import is_getitem, is_once, is_training_batch_norm, results, without_statistics
from ._graph import CUT, TrainingGraph
from ._moving import traced
from ._places import Places
from ._transfers import Action, has_transfers, transfers


@dataclass(frozen=True)
class Emitted:
    """A graph in the order of a plan, without an output node."""

    graph: fx.Graph
    at_cut: dict[fx.Node, fx.Node]
    """What stands for each original node when the forward returns; empty without a cut."""
    at_end: dict[fx.Node, fx.Node]
    """What stands for each original node at the end."""
    forward: set[fx.Node]
    """The nodes before the cut."""
    origin: dict[fx.Node, fx.Node]
    """The original node of each node."""


class PlanMismatch(RuntimeError):
    """A plan that does not run every op of the graph it is said to be for."""


def emit(source: TrainingGraph, plan: Mapping[str, Any], folder: str | None = None) -> Emitted:
    """The graph of a plan. The original graph stays as it is.

    Clones have traced values with storages of their own, since compilers tell aliases by these.

    Args:
        source: The graph that the plan was made for.
        plan: Its steps are obeyed; values die where nothing later reads them.
        folder: Where a CPU's second memory lies.

    Raises:
        PlanMismatch: The plan leaves out an op.
    """
    emitter = _Emitter(source, folder)
    at_cut: dict[fx.Node, fx.Node] = {}
    forward: set[fx.Node] = set()
    for action in _actions(source, plan):
        if action.kind != "run":
            emitter.move(action)
        elif action.op == CUT:
            at_cut, forward = dict(emitter.current), set(emitter.graph.nodes)
        else:
            emitter.run(source.nodes[action.op])
    if missing := [name for name, node in source.nodes.items() if node not in emitter.runs]:
        raise PlanMismatch(f"the plan does not run {missing[0]!r}")
    return Emitted(emitter.graph, at_cut, emitter.current, forward, emitter.origin)


def _actions(source: TrainingGraph, plan: Mapping[str, Any]) -> list[Action]:
    """The steps of a plan; those in which something moves have to name its peak."""
    if has_transfers(plan):
        return transfers(source, plan).actions
    return [Action("run", step["node"]) for step in plan["steps"] if step["op"] in ("compute", "recompute")]


def original(name: str) -> str:
    """The name of the node in the traced graph that a node of a plan's graph runs again."""
    return re.sub(r"_remat\d+$", "", name)


def drop_unused(graph: fx.Graph) -> None:
    """Removes parts of results that nobody reads: an interpreter would hold them to the end."""
    for node in reversed(graph.nodes):
        if is_getitem(node) and not node.users:
            graph.erase_node(node)


class _Emitter:
    def __init__(self, source: TrainingGraph, folder: str | None) -> None:
        self.source = source
        self.folder = folder
        self.graph = fx.Graph()
        self.current: dict[fx.Node, fx.Node] = {}
        self.origin: dict[fx.Node, fx.Node] = {}
        self.runs: dict[fx.Node, int] = {}
        self.parts: dict[fx.Node, list[fx.Node]] = defaultdict(list)
        self.places = Places(source)
        self.pages: dict[int, fx.Node] = {}
        """What stands for a storage in the second memory."""
        self.coming: dict[int, fx.Node] = {}
        """What stands for it on its way back."""
        for node in source.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                copy = self.graph.node_copy(node)
                copy.name, copy.meta = node.name, node.meta
                self.current[node] = copy
                self.origin[copy] = node
            elif is_getitem(node):
                self.parts[node.args[0]].append(node)

    def run(self, node: fx.Node) -> None:
        """Appends a run of a node."""
        number = self.runs[node] = self.runs.get(node, -1) + 1
        copy = self.graph.node_copy(node, self.value)
        copy.meta = dict(node.meta)
        self.origin[copy] = node
        # Of itself a copy takes a name that is free so far, which may be that of another node.
        copy.name = f"{node.name}_remat{number}" if number else node.name
        if number:
            if is_training_batch_norm(node):
                copy.target, copy.args = without_statistics(copy)
            trace_again(copy)
        self._parts(node, copy, number)

    def value(self, node: fx.Node) -> fx.Node:
        """What stands for a node now; made from its memory where that came back."""
        if (storage := self.places.away.pop(node, None)) is not None:
            self._take_back(node, storage)
        return self.current[node]

    def move(self, action: Action) -> None:
        """Appends a step of a transfer."""
        places, storage = self.places, action.storage
        if action.kind in ("out", "dropped"):
            places.leaves(storage, self.current)
        latest = places.latest[storage]
        size = int(latest.meta["val"].untyped_storage().nbytes())
        if action.kind == "out":
            self.pages[storage] = self._call(size, _moving.page_out, latest, self.folder)
        elif action.kind == "left":
            self.pages[storage] = self._call(size, _moving.page_left, self.pages[storage], latest)
        elif action.kind == "coming":
            self.coming[storage] = self._call(size, _moving.page_coming, self.pages[storage], self.source.device)
        elif action.kind == "back":
            places.latest[storage] = places.memory[storage] = self._call(size, _moving.page_in, self.coming.pop(storage))

    def _take_back(self, node: fx.Node, storage: int) -> None:
        if (memory := self.places.memory.get(storage)) is None:
            raise PlanMismatch(f"the plan reads {node.name!r}, which has moved out")
        source = node.args[0] if is_getitem(node) else node
        if self.source.is_view(source) and not is_once(source):
            self.run(source)
            return
        value = node.meta["val"]
        view = (value.dtype, tuple(value.shape), tuple(value.stride()), int(value.storage_offset()))
        self._becomes(node, self._call(0, _moving.page_view, memory, *view))

    def _becomes(self, node: fx.Node, copy: fx.Node) -> None:
        """From now on a copy stands for a node."""
        self.current[node] = copy
        self.places.arrives(node, copy)

    def _call(self, size: int, function: Callable[..., torch.Tensor], *arguments: Any) -> fx.Node:
        """Appends a call of what moves values."""
        node = self.graph.call_function(function, arguments)
        given = [one.meta["val"] if isinstance(one, fx.Node) else one for one in arguments]
        with _mode_of(given) or contextlib.nullcontext(), torch.no_grad():
            node.meta["val"] = traced(function, given, size)
        return node

    def _parts(self, node: fx.Node, copy: fx.Node, number: int) -> None:
        several = isinstance(node.meta.get("val"), (tuple, list))
        for part in self.parts[node]:
            index = part.args[1]
            if number and self.source.is_kept(node, index):
                continue
            picked = self.graph.create_node("call_function", operator.getitem, (copy, index))
            picked.name = f"{part.name}_remat{number}" if number else part.name
            picked.meta = dict(part.meta)
            if number:
                picked.meta["val"] = copy.meta["val"][index]
            self._becomes(part, picked)
            self.origin[picked] = part
        first = number == 0 or several
        if first or not any(self.source.is_kept(node, index) for index, _ in results(node)):
            self._becomes(node, copy)


def trace_again(node: fx.Node) -> None:
    """Gives a node a traced value of its own."""

    def value(one: Any) -> Any:
        return one.meta["val"] if isinstance(one, fx.Node) else one

    args, kwargs = pytree.tree_map(value, (node.args, node.kwargs), is_leaf=lambda one: isinstance(one, fx.Node))
    mode = _mode_of(args, kwargs, node.meta.get("val"))
    if mode is not None:
        with mode, torch.no_grad():
            node.meta["val"] = node.target(*args, **kwargs)


def _mode_of(*values: Any) -> FakeTensorMode | None:
    """The mode that values were traced in."""
    return next((one.fake_mode for one in pytree.tree_leaves(values) if isinstance(one, FakeTensor)), None)
