"""A training step as one graph: forward, backward, updates of parameters and of buffers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from ._clip import clip_gradients
from ._gpu.devices import Gpu
from ._effects import allow
from ._graph import OUTSIDE, Cost, Cut, TrainingGraph
from ._measure import Costs, estimate, estimates, measure
from ._optimizer import Updates
from ._storages import storage_bytes
from ._trace import Trace, trace
from ._update import MOST_STATES, UPDATE, Update, workspace

_aten = torch.ops.aten

_NS_PER_BYTE = 0.125
"""Time of an update: it only has to be there, since updates run once in every plan."""


@dataclass
class WholeStep:
    """A step as a graph, and what its inputs and results are."""

    source: TrainingGraph
    traced: Trace
    costs: Costs
    updated: list[str] = field(default_factory=list)
    """Names of the parameters that the graph updates; their states and numbers are its last inputs, in this order."""
    programs: list[str] = field(default_factory=list)
    """What is done to each of them."""
    gradients: list[str] = field(default_factory=list)
    """Names of the parameters whose gradients the graph returns, behind the loss."""
    once: list[str] = field(default_factory=list)
    """Names of the ops of other packages that run once."""
    norm: fx.Node | None = None
    """The norm of all gradients, where they are clipped; the graph returns it last."""
    folder: str | None = None
    """Where a CPU's second memory lies, if values move there."""

    @property
    def outputs(self) -> list[fx.Node]:
        """What the graph returns."""
        gradients = [self.traced.gradients[name] for name in self.gradients]
        return [self.traced.loss, *gradients, *([] if self.norm is None else [self.norm])]

    def in_traced_order(self) -> fx.GraphModule:
        """The step without a plan."""
        graph = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {}
        graph.graph_copy(self.traced.graph, copies)
        graph.output(tuple(copies[one] for one in self.outputs))
        return fx.GraphModule(self.traced.root, graph)


def whole_step(
    model: torch.nn.Module,
    args: Sequence[Any],
    updates: Updates | None,
    *,
    cut: bool = False,
    scaled: bool = False,
    clip_grad_norm: float | None = None,
    name: str = "step",
    estimated: bool = False,
    gpu: Gpu | None = None,
    recomputable: Collection[str] = (),
) -> WholeStep:
    """Traces and measures a step.

    Args:
        model: `model(*args)` gives the loss.
        args: As those to come.
        updates: Of the optimizer whose work is part of the step; without it, the step gives gradients.
        cut: Whether forward and backward run as two functions: nothing of the one runs in the other.
        scaled: Whether the gradient of the loss is an input of the graph, behind the arguments, instead of 1.
        clip_grad_norm: What the norm of all gradients is clipped to, before parameters are updated.
        name: Of the problem.
        estimated: Whether durations are estimates, the same on every machine. Workspace is measured all the same.
        gpu: A device that is not there, for which time and workspace are estimated; nothing is measured.
        recomputable: Ops of other packages, and packages, that may run again.

    Raises:
        ModelError: The model gives no loss, or a part of the step cannot be planned.
        UsageError: The optimizer cannot be part of a step.
    """
    traced = trace(model, args)
    once = allow(traced.graph, recomputable)
    if not cut and not scaled:
        traced.fix_tangent()
    norm = None if clip_grad_norm is None else clip_gradients(traced, clip_grad_norm)
    costs = measure(traced.graph) if gpu is None else estimates(traced.graph, gpu)
    if estimated and gpu is None:
        costs.by_node = {
            node: replace(cost, duration=estimate(node).duration) for node, cost in costs.by_node.items()
        }
    step = WholeStep(None, traced, costs, norm=norm, once=once)  # type: ignore[arg-type]
    if updates is None:
        step.gradients = list(traced.gradients)
    else:
        _add_updates(step, model, updates, costs)
    _add_buffers(traced)
    output = traced.graph.output((*step.outputs,))
    traced.graph.eliminate_dead_code()
    traced.graph.erase_node(output)
    traced.graph.lint()
    border = Cut([traced.loss], [traced.tangent]) if cut else None
    outputs = step.outputs[1:] if cut else step.outputs
    step.source = TrainingGraph(traced.graph, outputs, costs.by_node, cut=border, name=name)
    return step


def _add_updates(step: WholeStep, model: torch.nn.Module, updates: Updates, costs: Costs) -> None:
    """Appends the update of every parameter that has a gradient and belongs to the optimizer."""
    graph, traced = step.traced.graph, step.traced
    own = dict(model.named_parameters())
    step.updated = [name for name in traced.gradients if updates.has(own[name])]
    states = [updates.state(own[name]) for name in step.updated]
    found: list[Update] = updates.record([own[name] for name in step.updated])
    for name, state, update in zip(step.updated, states, found, strict=True):
        parameter = traced.parameters[name]
        inputs = [
            _input(graph, f"state_{index}_of_{parameter.name}", one, parameter) for index, one in enumerate(state)
        ]
        for node, one in zip(inputs, state, strict=True):
            node.meta[OUTSIDE] = updates.mapped is not None and updates.mapped.has(one)
        numbers = torch.tensor(update.scalars, dtype=torch.float64)
        scalars = _input(graph, f"numbers_of_{parameter.name}", numbers, parameter)
        padding = [None] * (MOST_STATES - len(inputs))
        node = graph.call_function(
            UPDATE, (parameter, traced.gradients[name], *inputs, *padding, scalars, update.program)
        )
        node._rename(f"update_{name.replace('.', '_')}")
        node.meta["val"] = None
        size = storage_bytes(parameter.meta["val"])
        moved = (2 + len(inputs)) * size
        costs.by_node[node] = Cost(int(moved * _NS_PER_BYTE) + 1, workspace(update.program, len(inputs), size))
        step.programs.append(update.program)


def _add_buffers(traced: Trace) -> None:
    """Appends the change of every buffer."""
    for name, value in traced.new_buffers.items():
        buffer = traced.buffers[name]
        node = traced.graph.call_function(_aten.copy_.default, (buffer, value))
        node.meta["val"] = buffer.meta["val"]


def _input(graph: fx.Graph, name: str, value: torch.Tensor, like: fx.Node) -> fx.Node:
    """A further input of a graph, behind the others."""
    *_, last = (node for node in graph.nodes if node.op == "placeholder")
    with graph.inserting_after(last):
        node = graph.placeholder(name)
    fake: FakeTensor = like.meta["val"]
    with fake.fake_mode:
        node.meta["val"] = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    return node
