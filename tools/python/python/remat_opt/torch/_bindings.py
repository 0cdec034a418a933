"""Calls of ops through PyTorch's bindings of Python.

`torch.ops.aten.view.default(x, [2, 3])` matches its arguments with a schema in every call, which takes 1 to 5 µs more
than `x.view([2, 3])`. Most nodes of a training graph are views and small ops, so a step of thousands of ops is several
percent faster with bindings. Which overload a binding calls depends on the types of its arguments, so each kind of
call is made once on tensors without data: it is replaced where exactly the same op gets exactly the same arguments.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

Call = tuple[str, Any]
"""Kind and target of a node: a method of tensors by its name, or a function."""

_PLAIN = {torch.ops.aten._unsafe_view.default: torch.ops.aten.view.default}
"""Ops that give the same values in the same memory as another one, and have no binding of their own."""

_known: dict[Any, Call | None] = {}
"""The binding of each kind of call that was tried; `None` where there is none."""


def bind(graph: fx.Graph) -> None:
    """Replaces calls of ops by calls of bindings that do the same. What the graph computes stays as it is.

    Args:
        graph: ATen ops with traced values.
    """
    for node in graph.nodes:
        if node.op == "call_function" and isinstance(node.target, OpOverload):
            binding = _binding(node)
            if binding is not None:
                node.op, node.target = binding


class _Recorder(TorchDispatchMode):
    """Notes the ops that reach the dispatcher, and their arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Sequence[Any], Mapping[str, Any]]] = []

    def __torch_dispatch__(self, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def _binding(node: fx.Node) -> Call | None:
    """What does what the op of a node does; `None` where nothing is known to."""
    if node.target.namespace != "aten" or not node.args or not _is_tensor(node.args[0]):
        return None  # Without a tensor, modes such as `torch.device` would change what a binding does.
    if node.target in _PLAIN and any(one.op == "output" for one in node.users):
        return None  # Autograd would take what the graph returns for a view, and forbid to overwrite it.
    kind = (node.target, _kind(node.args), tuple((name, _kind(one)) for name, one in node.kwargs.items()))
    if kind not in _known:
        op = _PLAIN.get(node.target, node.target)
        _known[kind] = next((one for one in _candidates(op) if _calls(one, op, node)), None)
    return _known[kind]


def _candidates(op: OpOverload) -> list[Call]:
    """The method and the functions that have the name of an op and are no code of Python, the fastest first."""
    name = op._schema.name.partition("::")[2]
    found: list[Call] = []
    if isinstance(getattr(torch.Tensor, name, None), types.MethodDescriptorType):
        found.append(("call_method", name))
    functions = (getattr(place, name, None) for place in (torch, torch._C._nn))
    found += [("call_function", one) for one in functions if isinstance(one, types.BuiltinFunctionType)]
    return found


def _kind(value: Any) -> Any:
    """What the choice of an overload depends on."""
    if isinstance(value, fx.Node):
        traced = value.meta.get("val")
        if not isinstance(traced, torch.Tensor):
            return type(traced)
        return traced.dtype, traced.dim() == 0
    if isinstance(value, (list, tuple)):
        return tuple(_kind(one) for one in value)
    return type(value)


def _calls(call: Call, wanted: OpOverload, node: fx.Node) -> bool:
    """Whether a call with the arguments of a node, without data, reaches the dispatcher as an op with these arguments,
    and as nothing else."""
    kind, target = call
    recorder = _Recorder()
    try:
        with _disable_current_modes(), torch.no_grad():
            args, kwargs = fx.node.map_aggregate((node.args, node.kwargs), _empty)
            with recorder:
                function = getattr(args[0], target) if kind == "call_method" else target
                function(*(args[1:] if kind == "call_method" else args), **kwargs)
        ((op, given, named),) = recorder.calls
    except Exception:  # Whatever a binding throws: it is none of this op.
        return False
    return op is wanted and _equal(_by_name(op, given, named), _by_name(op, args, kwargs))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, fx.Node) and isinstance(value.meta.get("val"), torch.Tensor)


def _empty(value: Any) -> Any:
    """A tensor without data in place of a node."""
    if not isinstance(value, fx.Node):
        return value
    like: torch.Tensor = value.meta["val"]
    return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device="meta")


def _by_name(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """All arguments of a call in the order of the schema, those that it leaves out among them."""
    return [
        args[index] if index < len(args) else kwargs.get(one.name, one.default_value)
        for index, one in enumerate(op._schema.arguments)
    ]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)):
        is_list = isinstance(other, (list, tuple)) and len(one) == len(other)
        return is_list and all(_equal(*pair) for pair in zip(one, other))
    if isinstance(one, torch.Tensor):
        return one is other
    return type(one) is type(other) and bool(one == other)
