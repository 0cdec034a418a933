"""Plans for programs that have passes of their own: as tags of selective checkpointing, or as the order of their graph."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from torch import fx

from .._plan import Plan
from ._budget import Memory, objects_around, parse
from ._effects import allow, is_once, names_of
from ._emit import drop_unused, emit
from ._free import resolved
from ._graph import TrainingGraph, ancestors
from ._measure import measure
from ._partition import NOT_KEPT
from ._plans import Search, plan_in_all
from ._report import Report, record


def tag(
    gm: fx.GraphModule,
    memory: Memory,
    is_backward: Callable[[fx.Node], bool],
    **search: Any,
) -> Report:
    """Says for each op of the forward of a training step whether the backward may compute it again.

    Sets `node.meta["recompute"]` to a `CheckpointPolicy`: `MUST_RECOMPUTE` for what a plan within `memory` runs again,
    `MUST_SAVE` for everything else. Programs that compile whole steps, such as torchtitan's graph trainer, take it from
    there. What they make of the tags has another order than the plan, so its peak is no promise: measure it.

    Args:
        gm: A step as one functional graph of ATen ops with traced values: forward, loss and backward.
        memory: As of `backend`.
        is_backward: Whether a node belongs to the backward.
        search: `time_limit`, `step_limit`, `threads`, `seed` and `recomputable` as of `backend`.

    Returns:
        What the plan takes; also among `reports()`.

    Raises:
        RematError: There is no plan.
        UnsupportedGraph: The graph cannot be planned; the message names the node.
        UsageError: Arguments that make no sense.
    """
    from torch.utils.checkpoint import CheckpointPolicy

    graph, plan, report = _planned(gm, memory, **search)
    needed = ancestors(_output(gm).all_input_nodes)
    again = {graph.nodes[name] for name in plan.recomputes if name in graph.nodes}
    for node in gm.graph.nodes:
        if node.op == "call_function" and node in needed and not is_backward(node):
            source = graph.nodes.get(node.name) or next(iter(node.all_input_nodes), node)
            is_again = source in again and not is_once(source)
            node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE if is_again else CheckpointPolicy.MUST_SAVE
    report.notes.append(f"the plan takes {graph.external_bytes + plan.peak_bytes} bytes; what runs has another order")
    return report


def reorder(gm: fx.GraphModule, memory: Memory, **search: Any) -> Report:
    """Puts the ops of a training step into the order of a plan, some of them several times.

    The promise holds where the graph runs op by op as it stands then, and values are dropped after their last use (as the
    code of a `GraphModule` does). Passes that reorder it again break it: measure.

    Args:
        gm: A step as one functional graph of ATen ops with traced values: forward, loss and backward. Its graph is
            replaced; nodes keep their names and what is in their `meta`, those that run again have it, too.
        memory: As of `backend`.
        search: As of `tag`.

    Returns:
        What the plan takes; also among `reports()`.

    Raises:
        RematError: There is no plan.
        UnsupportedGraph: The graph cannot be planned; the message names the node.
        UsageError: Arguments that make no sense.
    """
    graph, plan, report = _planned(gm, memory, **search)
    emitted, output = emit(graph, plan), _output(gm)
    emitted.graph.output(fx.node.map_arg(output.args[0], emitted.at_end.__getitem__)).meta = output.meta
    emitted.graph.set_codegen(gm.graph._codegen)
    drop_unused(emitted.graph)
    emitted.graph.lint()
    gm.graph = emitted.graph
    gm.recompile()
    report.promised_bytes = graph.external_bytes + plan.peak_bytes + objects_around(plan.peak_bytes, report.tensors)
    return report


def _planned(
    gm: fx.GraphModule, memory: Memory, recomputable: Collection[str] = (), **search: Any
) -> tuple[TrainingGraph, Plan, Report]:
    """A step as a problem, the plan for a budget, and a report of it."""
    asked = parse(memory)
    once = allow(gm.graph, names_of(recomputable))
    outputs = _output(gm).all_input_nodes
    costs = measure(gm.graph)
    graph = TrainingGraph(gm.graph, outputs, costs.by_node, name="step")
    budget = resolved(asked, graph.device, graph.external_bytes, graph.bytes_of(outputs))
    plan, is_kept, tensors = plan_in_all(graph, budget.of_plan(graph.external_bytes), Search(**search))
    report = record(Report(graph="step", inner="passes", ops=len(graph.nodes), budget_bytes=budget.total))
    report.tensors = tensors
    report.external_bytes = graph.external_bytes
    report.baseline_bytes = graph.external_bytes + int(plan["baseline_peak_bytes"])
    report.recomputes = len(plan.recomputes)
    report.overhead = plan.duration / max(1, int(plan["baseline_duration"])) - 1
    report.note_once(once)
    report.note_costs(costs.measured, costs.estimated)
    if not is_kept:
        report.notes.append(NOT_KEPT)
    return graph, plan, report


def _output(gm: fx.GraphModule) -> fx.Node:
    return next(iter(gm.graph.find_nodes(op="output")))
