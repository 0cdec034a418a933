"""Gradients of a traced step clipped by their norm, as `torch.nn.utils.clip_grad_norm_` does it."""

from __future__ import annotations

import types
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import make_fx

from ._trace import Trace

_aten = torch.ops.aten


def clip_gradients(traced: Trace, max_norm: float) -> fx.Node:
    """Appends what clips the gradients of a graph, and puts the clipped ones in their place.

    The ops are those that PyTorch's own function runs, tensor by tensor, on gradients in the layout of their parameters
    as autograd leaves them: sums have the same order. Nothing is overwritten, so gradients may be computed again after
    the norm.

    Returns:
        The norm of all gradients before.
    """
    if not traced.gradients:
        raise AssertionError("a traced step has gradients")
    gradients = [_laid_out(traced, name) for name in traced.gradients]

    def clip(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        held: list[Any] = [types.SimpleNamespace(grad=one) for one in values]
        norm = torch.nn.utils.clip_grad_norm_(held, max_norm, foreach=False)
        return (norm, *(one.grad for one in held))

    clipping = make_fx(torch.func.functionalize(clip))(*(one.meta["val"] for one in gradients)).graph
    given = iter(gradients)
    copies: dict[fx.Node, fx.Node] = {}
    for node in clipping.nodes:
        if node.op == "placeholder":
            copies[node] = next(given)
        elif node.op == "call_function" and node.target is not _aten.copy_.default:
            copies[node] = traced.graph.node_copy(node, copies.__getitem__)
            copies[node].meta = dict(node.meta)
    (output,) = clipping.find_nodes(op="output")
    norm, *clipped = (copies[one] for one in output.args[0])
    traced.gradients = dict(zip(traced.gradients, clipped, strict=True))
    return norm


def _laid_out(traced: Trace, name: str) -> fx.Node:
    """The gradient of a parameter in the layout of the parameter."""
    gradient, parameter = traced.gradients[name], traced.parameters[name].meta["val"]
    value: FakeTensor = gradient.meta["val"]
    strides = [
        [stride for stride, size in zip(one.stride(), one.shape, strict=True) if size > 1] for one in (value, parameter)
    ]
    if strides[0] == strides[1]:
        return gradient
    with value.fake_mode:
        empty = torch.empty_strided(parameter.shape, parameter.stride(), dtype=value.dtype, device=value.device)
    layout = traced.graph.call_function(
        _aten.empty_strided.default,
        (list(parameter.shape), list(parameter.stride())),
        {"dtype": value.dtype, "device": value.device},
    )
    layout.meta["val"] = empty
    made = traced.graph.call_function(_aten.copy.default, (layout, gradient))
    with value.fake_mode:
        made.meta["val"] = _aten.copy.default(empty, value)
    return made
