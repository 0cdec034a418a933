"""Plans as tags of selective checkpointing, for programs that have passes of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection

from torch import fx

from ._budget import Memory, parse
from ._effects import allow, is_once, names_of
from ._free import resolved
from ._graph import TrainingGraph, ancestors
from ._measure import measure
from ._plans import Search, plan_within
from ._report import Report, record


def tag(
    gm: fx.GraphModule,
    memory: Memory,
    is_backward: Callable[[fx.Node], bool],
    *,
    time_limit: float = 10.0,
    step_limit: int | None = None,
    threads: int | None = None,
    seed: int = 0,
    recomputable: Collection[str] = (),
) -> Report:
    """Says for each op of the forward of a training step whether the backward may compute it again.

    Sets `node.meta["recompute"]` to a `CheckpointPolicy`: `MUST_RECOMPUTE` for what a plan within `memory` runs again,
    `MUST_SAVE` for everything else. Programs that compile whole steps, such as torchtitan's graph trainer, take it from
    there. What they make of the tags has another order than the plan, so its peak is no promise: measure it.

    Args:
        gm: A step as one functional graph of ATen ops with traced values: forward, loss and backward.
        memory: As of `backend`.
        is_backward: Whether a node belongs to the backward.
        time_limit: Seconds to search for a plan.
        step_limit: Most steps of the search for each plan; with one thread and the same seed, every search of the
            same graph gives the same plan, unless `time_limit` ends it before.
        threads: Threads to search with.
        seed: Of the random choices.
        recomputable: As of `backend`.

    Returns:
        What the plan takes; also among `reports()`.

    Raises:
        RematError: There is no plan.
        UnsupportedGraph: The graph cannot be planned; the message names the node.
        UsageError: Arguments that make no sense.
    """
    from torch.utils.checkpoint import CheckpointPolicy

    asked = parse(memory)
    once = allow(gm.graph, names_of(recomputable))
    (output,) = gm.graph.find_nodes(op="output")
    needed = ancestors(output.all_input_nodes)
    costs = measure(gm.graph)
    graph = TrainingGraph(gm.graph, output.all_input_nodes, costs.by_node, name="step")
    search = Search(time_limit=time_limit, step_limit=step_limit, threads=threads, seed=seed)
    gradients = graph.bytes_of(output.all_input_nodes)
    budget = resolved(asked, graph.device, graph.external_bytes, gradients)
    plan, is_kept = plan_within(graph, budget.of_plan(graph.external_bytes), search)
    again = {graph.nodes[name] for name in plan.recomputes if name in graph.nodes}
    for node in gm.graph.nodes:
        if node.op == "call_function" and node in needed and not is_backward(node):
            source = graph.nodes.get(node.name) or next(iter(node.all_input_nodes), node)
            is_again = source in again and not is_once(source)
            node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE if is_again else CheckpointPolicy.MUST_SAVE
    report = record(Report(graph="step", inner="tags", ops=len(graph.nodes), budget_bytes=budget.total))
    report.external_bytes = graph.external_bytes
    report.baseline_bytes = graph.external_bytes + int(plan["baseline_peak_bytes"])
    report.recomputes = len(plan.recomputes)
    report.overhead = plan.duration / max(1, int(plan["baseline_duration"])) - 1
    report.note_once(once)
    report.note_costs(costs.measured, costs.estimated)
    report.notes.append(f"the plan takes {graph.external_bytes + plan.peak_bytes} bytes; what runs has another order")
    if not is_kept:
        report.notes.append("no plan keeps the budget; this is the one with the lowest peak that was found")
    return report
