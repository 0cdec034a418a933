"""Splits of a joint graph into forward and backward, as data: the names of what the forward saves, or of what runs in
which order.

The names are those of the joint graph after `clean`, which are the same whenever the same model is traced, so a split
that was found in one compilation serves in the next one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._functorch import config as functorch_config
from torch._functorch import partitioners as stock
from torch.utils import _pytree as pytree
from torch.utils._ordered_set import OrderedSet

from . import _cache
from ._effects import UnsupportedGraph, is_getitem, is_once, results, without_repetitions
from ._emit import Emitted, drop_unused, emit, original
from ._graph import Cut, TrainingGraph, ancestors
from ._storages import Storages
from ._versions import call_known, must_be_in_forward, overwritten, traced

Halves = tuple[fx.GraphModule, fx.GraphModule]
"""The forward and the backward."""


@dataclass(frozen=True)
class Split:
    """One way to split a joint graph."""

    name: str
    """Where it comes from, for reports."""
    saved: tuple[str, ...]
    """Nodes that the forward saves for the backward, besides inputs; sorted."""
    steps: tuple[str, ...] = ()
    """Ops in the order of a plan, some of them several times. Without it PyTorch's partitioner orders both halves."""
    duration: int = 0
    """Nanoseconds of both halves, as predicted: ops that Inductor fuses count what they compute, saved values what is
    written and read."""
    live: int = 0
    """Most bytes of values that live at once, where ops run as they stand in both halves."""
    knob: float | None = None
    """The value of PyTorch's `activation_memory_budget` that gives this split: both halves are PyTorch's own."""
    is_tight: bool = False
    """Whether Inductor fuses ops only where the peak of a half does not rise by it; otherwise as it is configured."""

    @property
    def key(self) -> str:
        """A hash of what is saved, of the order and of how Inductor fuses."""
        content = [*self.saved, "", *self.steps, "tight" if self.is_tight else ""]
        return hashlib.sha256("\n".join(content).encode()).hexdigest()[:16]


class Joint:
    """The parts of a joint graph."""

    def __init__(self, gm: fx.GraphModule, forward_outputs: int) -> None:
        """Reads a graph.

        Raises:
            UnsupportedGraph: It has no backward.
        """
        self.gm = gm
        self.output = next(iter(gm.graph.find_nodes(op="output")))
        self.flat = pytree.arg_tree_leaves(*self.output.args)
        self.backward = self.flat[forward_outputs:]
        tangents = [node for node in gm.graph.find_nodes(op="placeholder") if stock._is_tangent(node)]
        reached = ancestors(self.backward)
        if not any(node in reached for node in tangents):
            raise UnsupportedGraph(None, "no gradient depends on what the forward gives: there is nothing to plan")
        pinned = [node for node in gm.graph.nodes if node.op == "call_function" and must_be_in_forward(node)]
        self.cut = Cut(self.flat[:forward_outputs], tangents, pinned, overwritten(gm.graph))

    def outputs(self, emitted: Emitted) -> list[Any]:
        """What the joint graph returns, as nodes of the new one: the forward's as they are at the cut."""
        number = len(self.cut.outputs)
        before = [emitted.at_cut[one] if isinstance(one, fx.Node) else one for one in self.cut.outputs]
        return before + [emitted.at_end[one] if isinstance(one, fx.Node) else one for one in self.flat[number:]]

    def extract(
        self, emitted: Emitted, outputs: list[Any], saved: list[fx.Node], static: Sequence[int] | None
    ) -> Halves:
        """Both halves of a planned graph as graphs of their own, by PyTorch's own means."""
        output = emitted.graph.output(pytree.tree_unflatten(outputs, pytree.tree_structure(self.output.args[0])))
        output.meta = self.output.meta
        drop_unused(emitted.graph)
        emitted.graph.lint()
        joint = fx.GraphModule(self.gm, emitted.graph)
        primals = [node for node in emitted.graph.find_nodes(op="placeholder") if stock._is_primal(node)]
        fixed = dict.fromkeys(primals[index] for index in static or () if index < len(primals))
        with traced(emitted.graph):
            halves: Halves = call_known(
                stock._extract_fwd_bwd_modules,
                joint,
                [node for node in saved if node.users],
                saved_sym_nodes=[],
                num_fwd_outputs=len(self.cut.outputs),
                static_lifetime_input_nodes=OrderedSet(fixed),
            )
        for half in halves:
            drop_unused(half.graph)
            half.recompile()
        return halves

    def key(self) -> str:
        """A hash of ops, shapes and arguments."""
        return _cache.key_of([_line(node) for node in self.gm.graph.nodes])

    def halves(
        self, split: Split, graph: TrainingGraph, joint_inputs: Sequence[object], keywords: Mapping[str, Any]
    ) -> Halves:
        """Forward and backward of a split. Where it has no order, PyTorch's partitioner makes them: under the value that
        it was found with, or of a joint graph that is tagged.

        Args:
            split: One of this graph.
            graph: The same graph as a problem.
            joint_inputs: Of the partitioner.
            keywords: Of the partitioner.
        """
        if split.steps:
            plan = {"steps": [{"op": "compute", "node": name} for name in split.steps]}
            return self.planned(emit(graph, plan), keywords.get("static_lifetime_input_indices"))
        if split.knob is not None:
            with functorch_config.patch(activation_memory_budget=split.knob):
                return stock_halves(self.gm, joint_inputs, keywords)
        _tag(self.gm.graph, self.cut, split.saved)
        return stock_halves(self.gm, joint_inputs, keywords)

    def planned(self, emitted: Emitted, static: Sequence[int] | None) -> Halves:
        """Both halves of a planned graph."""
        outputs = self.outputs(emitted)
        return self.extract(emitted, outputs, saved_nodes(emitted, outputs[len(self.cut.outputs) :]), static)

    def copy(self) -> Joint:
        """The same, for a partitioner that changes it."""
        graph = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {}
        for node in self.gm.graph.nodes:
            copies[node] = graph.node_copy(node, copies.__getitem__)
            copies[node].name, copies[node].meta = node.name, dict(node.meta)
        return Joint(fx.GraphModule(self.gm, graph), len(self.cut.outputs))


def stock_halves(gm: fx.GraphModule, joint_inputs: Sequence[object], keywords: Mapping[str, Any]) -> Halves:
    """What PyTorch's own partitioner gives."""
    halves: Halves = call_known(stock.min_cut_rematerialization_partition, gm, joint_inputs, **keywords)
    return halves


def clean(gm: fx.GraphModule) -> None:
    """Removes what is computed twice or for nothing."""
    with traced(gm.graph):
        gm.graph.eliminate_dead_code()
    if torch._functorch.config.cse:
        gm.graph = without_repetitions(gm.graph)
    gm.graph.lint()
    gm.recompile()


def saved_nodes(emitted: Emitted, backward: Iterable[Any]) -> list[fx.Node]:
    """The values before the cut of a planned graph that its backward reads."""
    backward = list(backward)
    needed = ancestors(backward)
    late = {node for node in emitted.graph.nodes if node not in emitted.forward and node.op != "output"}
    crossing = {
        one: None
        for node in emitted.graph.nodes
        if node in late and (node in needed or is_once(node))
        for one in node.all_input_nodes
        if one not in late
    }
    crossing |= {one: None for one in backward if isinstance(one, fx.Node) and one not in late}
    return [
        node
        for node in emitted.graph.nodes
        if node in crossing and node.op != "get_attr" and not stock._is_tangent(node)
    ]


def saved_names(joint: Joint, halves: Halves) -> tuple[str, ...]:
    """What the forward saves besides inputs, by the inputs of the backward."""
    given = {node.name for node in joint.gm.graph.find_nodes(op="placeholder")}
    return tuple(sorted(node.name for node in halves[1].graph.find_nodes(op="placeholder") if node.name not in given))


def recomputes_of(halves: Halves) -> int:
    """Runs of ops besides the first ones."""
    calls = (node for half in halves for node in half.graph.nodes if node.op == "call_function" and not is_getitem(node))
    names = [original(node.name) for node in calls]
    return len(names) - len(set(names))


def shares_memory(forward: fx.GraphModule, saved: Iterable[fx.Node]) -> bool:
    """Whether two of the values that a forward saves are views of the same memory."""
    storages = Storages(forward.graph)
    keys = [storages.key(value) for node in dict.fromkeys(saved) for _, value in results(node)]
    return len(set(keys)) < len(keys)


def remove_tags(graph: fx.Graph) -> None:
    """Removes what `Joint.split` has said to PyTorch's partitioner."""
    for node in graph.nodes:
        if node.meta.pop("remat_tagged", False):
            node.meta.pop("recompute", None)
            node.meta.pop("ac_graph_id", None)


def _tag(graph: fx.Graph, cut: Cut, saved: Collection[str]) -> None:
    """Says for each node of the forward whether it is saved, in the words of selective checkpointing."""
    from torch.utils.checkpoint import CheckpointPolicy

    forward = ancestors([*cut.outputs, *cut.pinned])
    for node in graph.nodes:
        if node.op == "call_function" and node in forward:
            keeps = node.name in saved or is_once(node)
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE if keeps else CheckpointPolicy.MUST_RECOMPUTE
            node.meta["ac_graph_id"] = 0
            node.meta["remat_tagged"] = True


def _line(node: fx.Node) -> list[str]:
    values = [f"{value.dtype} {tuple(value.shape)} {value.stride()} {value.device}" for _, value in results(node)]
    return [node.op, node.name, str(node.target), str(node.args), str(node.kwargs), *values]
