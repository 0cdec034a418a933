"""A plan as a graph: nodes in its order, with a clone for each further run."""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from ._effects import is_getitem, is_training_batch_norm, results, without_statistics
from ._graph import CUT, TrainingGraph

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


def emit(source: TrainingGraph, plan: Mapping[str, Any]) -> Emitted:
    """The graph of a plan. The original graph stays as it is.

    Clones have traced values with storages of their own, since compilers tell aliases by these.

    Args:
        source: The graph that the plan was made for.
        plan: Its steps are obeyed; values die where nothing later reads them.

    Raises:
        PlanMismatch: The plan leaves out an op.
    """
    emitter = _Emitter(source)
    at_cut: dict[fx.Node, fx.Node] = {}
    forward: set[fx.Node] = set()
    for step in plan["steps"]:
        if step["op"] not in ("compute", "recompute"):
            continue
        if step["node"] == CUT:
            at_cut, forward = dict(emitter.current), set(emitter.graph.nodes)
        else:
            emitter.run(source.nodes[step["node"]])
    if missing := [name for name, node in source.nodes.items() if node not in emitter.runs]:
        raise PlanMismatch(f"the plan does not run {missing[0]!r}")
    return Emitted(emitter.graph, at_cut, emitter.current, forward, emitter.origin)


def original(name: str) -> str:
    """The name of the node in the traced graph that a node of a plan's graph runs again."""
    return re.sub(r"_remat\d+$", "", name)


def drop_unused(graph: fx.Graph) -> None:
    """Removes parts of results that nobody reads: an interpreter would hold them to the end."""
    for node in reversed(graph.nodes):
        if is_getitem(node) and not node.users:
            graph.erase_node(node)


class _Emitter:
    def __init__(self, source: TrainingGraph) -> None:
        self.source = source
        self.graph = fx.Graph()
        self.current: dict[fx.Node, fx.Node] = {}
        self.origin: dict[fx.Node, fx.Node] = {}
        self.runs: dict[fx.Node, int] = {}
        self.parts: dict[fx.Node, list[fx.Node]] = defaultdict(list)
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
        copy = self.graph.node_copy(node, self.current.__getitem__)
        copy.meta = dict(node.meta)
        self.origin[copy] = node
        # Of itself a copy takes a name that is free so far, which may be that of another node.
        copy.name = f"{node.name}_remat{number}" if number else node.name
        if number:
            if is_training_batch_norm(node):
                copy.target, copy.args = without_statistics(copy)
            trace_again(copy)
        self._parts(node, copy, number)

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
            self.current[part] = picked
            self.origin[picked] = part
        first = number == 0 or several
        if first or not any(self.source.is_kept(node, index) for index, _ in results(node)):
            self.current[node] = copy


def trace_again(node: fx.Node) -> None:
    """Gives a node a traced value of its own."""

    def value(one: Any) -> Any:
        return one.meta["val"] if isinstance(one, fx.Node) else one

    args, kwargs = pytree.tree_map(value, (node.args, node.kwargs), is_leaf=lambda one: isinstance(one, fx.Node))
    leaves = pytree.tree_leaves((args, kwargs, node.meta.get("val")))
    mode = next((one.fake_mode for one in leaves if isinstance(one, FakeTensor)), None)
    if mode is not None:
        with mode, torch.no_grad():
            node.meta["val"] = node.target(*args, **kwargs)
