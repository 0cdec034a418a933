"""Forward and backward of a model as one functional graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch
from torch import fx
from torch.utils import _pytree as pytree

from ..errors import ModelError
from ._dropout import split_dropout
from ._effects import UnsupportedGraph, refuse_unsupported, without_repetitions
from ._gpu.estimate import without_numbers

_aten = torch.ops.aten


@dataclass
class Trace:
    """A graph of forward and backward, without an output node.

    It writes nothing in place: new contents of buffers are results.
    """

    graph: fx.Graph
    root: fx.GraphModule
    """Holds the constants of the graph."""
    loss: fx.Node
    tangent: fx.Node
    """The gradient of the loss, a placeholder."""
    parameters: dict[str, fx.Node] = field(default_factory=dict)
    """Placeholders by name, each parameter once."""
    buffers: dict[str, fx.Node] = field(default_factory=dict)
    inputs: list[fx.Node] = field(default_factory=list)
    """Placeholders of the tensors among the arguments of the model."""
    gradients: dict[str, fx.Node] = field(default_factory=dict)
    """By name of the parameter; those that the loss does not depend on are missing."""
    new_buffers: dict[str, Any] = field(default_factory=dict)
    """What a step leaves in buffers that it changes, by name."""

    def fix_tangent(self) -> None:
        """Makes the gradient of the loss 1 in the graph, as `loss.backward()` does."""
        value = self.tangent.meta["val"]
        with self.graph.inserting_before(self.tangent):
            one = self.graph.call_function(
                _aten.full.default,
                (list(value.shape), 1.0),
                {"dtype": value.dtype, "device": value.device, "pin_memory": False},
            )
        one.meta = dict(self.tangent.meta)
        one.name = "loss_gradient"
        self.tangent.replace_all_uses_with(one)
        self.graph.erase_node(self.tangent)
        self.tangent = one
        # The constant stands after the forward, where it is first read.
        first = next((node for node in self.graph.nodes if node in one.users), None)
        if first is not None:
            first.prepend(one)


class _Captured(Exception):
    """Carries the joint graph out of the tracer, which would run it otherwise."""

    def __init__(self, joint: fx.GraphModule, outputs: int) -> None:
        super().__init__("the graph was captured")
        self.joint = joint
        self.outputs = outputs


def tensors_of(args: Sequence[Any]) -> list[torch.Tensor]:
    """The tensors among the arguments of a model, in the order of its graph's inputs."""
    return [one for one in pytree.tree_leaves(tuple(args)) if isinstance(one, torch.Tensor)]


def trace(model: torch.nn.Module, args: Sequence[Any]) -> Trace:
    """Traces `model(*args)`, which gives the loss, and its gradients. Nothing runs, and no random number is drawn.

    Args:
        model: In the mode in which it is to train. Its parameters and buffers may be shared between modules.
        args: With tensors of the shapes to come; other values become part of the graph.

    Raises:
        ModelError: The model gives no loss, or no parameter gets a gradient.
        UnsupportedGraph: The model does what no plan can be made for.
    """
    from torch._functorch.aot_autograd import aot_function
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    _refuse_overlaps(parameters)
    leaves, spec = pytree.tree_flatten(tuple(args))
    places = [index for index, one in enumerate(leaves) if isinstance(one, torch.Tensor)]

    def forward(*flat: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = iter(flat)
        own = {name: next(given) for name in parameters}
        # The graph is functional: what a module leaves in the copy of a buffer is a result.
        own |= {name: next(given).clone() for name in buffers}
        values = list(leaves)
        for index in places:
            values[index] = next(given)
        loss = torch.func.functional_call(model, own, pytree.tree_unflatten(values, spec))
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.requires_grad:
            wanted = "one number that depends on parameters"
            raise ModelError(f"the model has to give the loss, {wanted}, not {_shown(loss)}")
        return (loss, *(own[name] for name in buffers))

    flat = [*parameters.values(), *buffers.values(), *(leaves[index].detach() for index in places)]
    if any(one.device.type == "meta" for one in flat):
        flat = _on_cpu(flat)
    function = aot_function(forward, fw_compiler=_never, bw_compiler=_never, partition_fn=_capture)
    try:
        with torch.enable_grad():
            function(*flat)
    except _Captured as captured:
        return _read(captured, list(parameters), list(buffers))
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        raise UnsupportedGraph(str(error.func), "what it gives depends on the values of tensors") from error
    raise UnsupportedGraph(None, "the model was not traced as one graph of forward and backward")


def _on_cpu(values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors without numbers that say they lie on a CPU. On `meta` PyTorch traces some ops without their backward
    (`nll_loss`, 2.15)."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return [without_numbers(one, "cpu") for one in values]


def _capture(joint: fx.GraphModule, _inputs: Any, *, num_fwd_outputs: int, **_options: Any) -> NoReturn:
    raise _Captured(joint, num_fwd_outputs)


def _never(graph: fx.GraphModule, _inputs: Any) -> NoReturn:
    raise UnsupportedGraph(None, "no gradient is asked for: no parameter of the model requires one")


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}{'' if value.requires_grad else ' without gradient'}"
    return f"a {type(value).__name__}"


def _refuse_overlaps(parameters: dict[str, torch.nn.Parameter]) -> None:
    """Parameters that share memory without being the same cannot be updated one by one."""
    from torch._subclasses.fake_tensor import FakeTensor

    seen: dict[int, str] = {}
    for name, parameter in parameters.items():
        if isinstance(parameter, FakeTensor):
            continue  # It lies nowhere.
        key = parameter.untyped_storage().data_ptr()
        if key and key in seen:
            raise UnsupportedGraph(name, f"the parameter lies in the memory of `{seen[key]}`")
        seen[key] = name


def _read(captured: _Captured, parameters: list[str], buffers: list[str]) -> Trace:
    captured.joint.graph.eliminate_dead_code()
    refuse_unsupported(captured.joint.graph)
    split_dropout(captured.joint.graph)
    graph = without_repetitions(captured.joint.graph)
    output = next(iter(graph.find_nodes(op="output")))
    forward, backward = (list(part) for part in _parts(output, captured.outputs))
    if len(forward) != 1 + len(buffers):
        raise UnsupportedGraph(None, "the model overwrites a parameter or an argument in its forward")
    placeholders = graph.find_nodes(op="placeholder")
    inputs = len(backward)
    traced = Trace(graph, captured.joint, forward[0], placeholders[inputs])
    if len(placeholders) != inputs + 1:
        raise UnsupportedGraph(None, "the loss is not the only result that gradients flow into")
    traced.parameters = dict(zip(parameters, placeholders, strict=False))
    traced.buffers = dict(zip(buffers, placeholders[len(parameters) :], strict=False))
    traced.inputs = placeholders[len(parameters) + len(buffers) : inputs]
    traced.gradients = {
        name: node for name, node in zip(parameters, backward, strict=False) if isinstance(node, fx.Node)
    }
    new = dict(zip(buffers, forward[1:], strict=True))
    _drop_copies(traced, new)
    graph.eliminate_dead_code()
    graph.erase_node(output)
    return traced


def _parts(output: fx.Node, count: int) -> tuple[Sequence[Any], Sequence[Any]]:
    given = list(pytree.arg_tree_leaves(*output.args))
    return given[:count], given[count:]


def _drop_copies(traced: Trace, new: dict[str, Any]) -> None:
    """Lets ops read buffers themselves instead of the copies that were made for tracing."""
    for name, placeholder in traced.buffers.items():
        copies = [node for node in placeholder.users if node.target is _aten.clone.default]
        for copy in copies:
            copy.replace_all_uses_with(placeholder)
            traced.graph.erase_node(copy)
        if new[name] not in copies and new[name] is not placeholder:
            traced.new_buffers[name] = new[name]
