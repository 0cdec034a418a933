"""Joint graphs into forward and backward, as a plan says."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import torch
from torch import fx
from torch._functorch import compile_utils
from torch._functorch import partitioners as stock
from torch.utils import _pytree as pytree
from torch.utils._ordered_set import OrderedSet

from .. import _native
from ._budget import Budget, Memory, objects_around, parse
from ._dropout import split_dropout
from ._effects import UnsupportedGraph, is_once, refuse_unsupported
from ._emit import Emitted, drop_unused, emit
from ._graph import Cut, TrainingGraph, ancestors
from ._measure import Costs, measure
from ._plans import Search, plan_within
from ._report import Report, record
from ._storages import storage_bytes
from ._versions import PartitionerBase, call_known, must_be_in_forward

_log = logging.getLogger("remat_opt")

_FUSED_SHARE = 0.1
"""What an op costs that Inductor fuses: its neighbours read and write most of its operands anyway."""


@dataclass(frozen=True)
class Settings:
    """How graphs are split."""

    budget: Budget
    search: Search = field(default_factory=Search)
    form: Literal["exact", "tags"] = "exact"
    """`exact`: both graphs have the order and the clones of the plan. `tags`: the plan decides what is saved, and
    PyTorch's partitioner and scheduler do the rest."""
    fused: bool = False
    """Whether a compiler fuses cheap ops."""
    reserve: int = 0
    """Bytes below the budget to plan for, since a compiler's steps took so much more than planned."""
    strict: bool = False
    """Whether failures are raised; otherwise PyTorch's partitioner takes over, with a warning."""


class Partitioner(PartitionerBase):  # type: ignore[misc]
    """Splits a joint graph so that forward and backward stay within a budget together.

    It has the signature of `torch._functorch.partitioners.min_cut_rematerialization_partition`, and is a
    `CustomPartitionerFn` of Inductor where the version has that.
    """

    def __init__(self, settings: Settings, inner: str) -> None:
        self.settings = settings
        self.inner = inner
        self.last: Report | None = None
        """The report of the last graph that was split."""
        self.is_lowest = False
        """Whether its plan has the lowest peak that was found, so that a lower budget changes nothing."""

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings, "inner": self.inner, "last": None, "is_lowest": False}

    def uuid(self) -> str:
        """What the results depend on besides the graph; part of the key of Inductor's caches."""
        options = json.dumps(asdict(self.settings), sort_keys=True)
        return hashlib.sha256(f"remat-opt {_native.VERSION} {self.inner} {options}".encode()).hexdigest()

    def with_reserve(self, reserve: int) -> Partitioner:
        """A partitioner that plans for less."""
        return Partitioner(replace(self.settings, reserve=reserve), self.inner)

    def __call__(
        self, gm: fx.GraphModule, joint_inputs: Sequence[object], **keywords: Any
    ) -> tuple[fx.GraphModule, fx.GraphModule]:
        """Forward and backward of a joint graph."""
        report = self.last = record(Report(inner=self.inner, graph=_graph_name(), rounds=1))
        start = time.perf_counter()
        try:
            return self._split(gm, joint_inputs, keywords, report)
        except Exception as error:  # Training goes on whatever fails here.
            if self.settings.strict:
                raise
            report.fallback = f"{type(error).__name__}: {error}"
            report.promised_bytes = None
            _log.warning("graph %s is not planned, PyTorch's partitioner takes over: %s", report.graph, error)
            for node in gm.graph.nodes:
                if node.meta.pop("remat_tagged", False):
                    del node.meta["recompute"], node.meta["ac_graph_id"]
            return call_known(stock.min_cut_rematerialization_partition, gm, joint_inputs, **keywords)
        finally:
            report.seconds = time.perf_counter() - start

    def _split(
        self, gm: fx.GraphModule, joint_inputs: Sequence[object], keywords: dict[str, Any], report: Report
    ) -> tuple[fx.GraphModule, fx.GraphModule]:
        refuse_unsupported(gm.graph)
        split_dropout(gm.graph)
        _clean(gm)
        joint = _Joint(gm, keywords["num_fwd_outputs"])
        costs = measure(gm.graph)
        report.note_costs(costs.measured, costs.estimated)
        if self.settings.fused:
            _lower_fused(costs)
        graph = TrainingGraph(gm.graph, joint.backward, costs.by_node, cut=joint.cut, name="torch")
        plan = self._plan(graph, report)
        emitted = emit(graph, plan)
        outputs = joint.outputs(emitted)
        saved = _saved(emitted, outputs[len(joint.cut.outputs) :])
        own = {graph.storage_key(node.meta["val"]): node for node in saved if node.op != "placeholder"}
        report.saved_bytes = sum(storage_bytes(node.meta["val"]) for node in own.values())
        if self.settings.form == "tags":
            _tag(gm.graph, joint.cut, {emitted.origin[node] for node in saved})
            return call_known(stock.min_cut_rematerialization_partition, gm, joint_inputs, **keywords)
        return joint.extract(emitted, outputs, saved, keywords.get("static_lifetime_input_indices"))

    def _plan(self, graph: TrainingGraph, report: Report) -> dict[str, Any]:
        budget = self.settings.budget.of_plan(graph.external_bytes)
        if isinstance(budget, int):
            budget = max(1, budget - objects_around(budget))
        if self.settings.reserve:
            budget = max(1, self._bytes(graph, budget) - self.settings.reserve)
        plan, is_kept = plan_within(graph, budget, self.settings.search)
        self.is_lowest = budget == "min" or not is_kept
        report.ops = len(graph.document["ops"]) - 1
        report.external_bytes = graph.external_bytes
        report.budget_bytes = self.settings.budget.total
        report.baseline_bytes = graph.external_bytes + int(plan["baseline_peak_bytes"])
        report.promised_bytes = graph.external_bytes + plan.peak_bytes + objects_around(plan.peak_bytes)
        report.recomputes = len(plan.recomputes)
        report.overhead = plan.duration / max(1, int(plan["baseline_duration"])) - 1
        report.is_optimal = plan.is_optimal
        if not is_kept and not self.settings.reserve:
            report.notes.append("no plan keeps the budget; this is the one with the lowest peak that was found")
            _log.warning(
                "graph %s: no plan keeps %s bytes, the lowest peak found is %d bytes",
                report.graph,
                self.settings.budget.total or budget,
                report.promised_bytes,
            )
        return plan

    def _bytes(self, graph: TrainingGraph, budget: int | str) -> int:
        """A share in bytes: what the plan for it takes."""
        if isinstance(budget, int):
            return budget
        return plan_within(graph, budget, self.settings.search)[0].peak_bytes


def partitioner(memory: Memory, *, time_limit: float = 10.0, threads: int | None = None, seed: int = 0) -> Partitioner:
    """A partitioner for `torch._inductor.config.custom_partitioner_fn` (PyTorch 2.9 and later).

    Gradients are not checked and peaks are not measured here: `backend` does both.

    Args:
        memory: As of `backend`.
        time_limit: Seconds to search for a plan.
        threads: Threads to search with.
        seed: Of the random choices.
    """
    search = Search(time_limit=time_limit, threads=threads, seed=seed)
    return Partitioner(Settings(parse(memory), search, form="tags", fused=True), "inductor")


class _Joint:
    """The parts of a joint graph."""

    def __init__(self, gm: fx.GraphModule, forward_outputs: int) -> None:
        self.gm = gm
        self.output = next(iter(gm.graph.find_nodes(op="output")))
        self.flat = pytree.arg_tree_leaves(*self.output.args)
        self.backward = self.flat[forward_outputs:]
        tangents = [node for node in gm.graph.find_nodes(op="placeholder") if stock._is_tangent(node)]
        reached = ancestors(self.backward)
        if not any(node in reached for node in tangents):
            raise UnsupportedGraph(None, "no gradient depends on what the forward gives: there is nothing to plan")
        pinned = [node for node in gm.graph.nodes if node.op == "call_function" and must_be_in_forward(node)]
        self.cut = Cut(self.flat[:forward_outputs], tangents, pinned)

    def outputs(self, emitted: Emitted) -> list[Any]:
        """What the joint graph returns, as nodes of the new one: the forward's as they are at the cut."""
        number = len(self.cut.outputs)
        before = [emitted.at_cut[one] if isinstance(one, fx.Node) else one for one in self.cut.outputs]
        return before + [emitted.at_end[one] if isinstance(one, fx.Node) else one for one in self.flat[number:]]

    def extract(
        self, emitted: Emitted, outputs: list[Any], saved: list[fx.Node], static: Sequence[int] | None
    ) -> tuple[fx.GraphModule, fx.GraphModule]:
        """Both halves as graphs of their own, by PyTorch's own means."""
        output = emitted.graph.output(pytree.tree_unflatten(outputs, pytree.tree_structure(self.output.args[0])))
        output.meta = self.output.meta
        drop_unused(emitted.graph)
        emitted.graph.lint()
        joint = fx.GraphModule(self.gm, emitted.graph)
        primals = [node for node in emitted.graph.find_nodes(op="placeholder") if stock._is_primal(node)]
        fixed = dict.fromkeys(primals[index] for index in static or () if index < len(primals))
        halves: tuple[fx.GraphModule, fx.GraphModule] = call_known(
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


def _clean(gm: fx.GraphModule) -> None:
    """Removes what is computed twice or for nothing."""
    gm.graph.eliminate_dead_code()
    if torch._functorch.config.cse:
        gm.graph = compile_utils.fx_graph_cse(gm.graph)
    gm.graph.lint()
    gm.recompile()


def _saved(emitted: Emitted, backward: Sequence[Any]) -> list[fx.Node]:
    """The values before the cut that the backward reads."""
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


def _tag(graph: fx.Graph, cut: Cut, saved: set[fx.Node]) -> None:
    """Says for each node of the forward whether it is saved, in the words of selective checkpointing."""
    from torch.utils.checkpoint import CheckpointPolicy

    forward = ancestors([*cut.outputs, *cut.pinned])
    for node in graph.nodes:
        if node.op == "call_function" and node in forward:
            keeps = node in saved or is_once(node)
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE if keeps else CheckpointPolicy.MUST_RECOMPUTE
            node.meta["ac_graph_id"] = 0
            node.meta["remat_tagged"] = True


def _lower_fused(costs: Costs) -> None:
    """Counts for what Inductor fuses only the share that is left of it."""
    fusible = stock.get_default_op_list().fusible_ops
    for node, cost in costs.by_node.items():
        if getattr(node.target, "overloadpacket", node.target) in fusible:
            costs.by_node[node] = replace(cost, duration=int(cost.duration * _FUSED_SHARE))


def _graph_name() -> str:
    from torch._guards import CompileContext

    return str(CompileContext.current_compile_id() or "")
