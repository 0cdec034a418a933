"""What a node of an FX graph does besides computing its results: what it draws, writes and communicates."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch
from torch import fx
from torch._functorch import compile_utils
from torch._ops import HigherOrderOperator, OpOverload

from ..errors import ModelError, UsageError

_aten = torch.ops.aten

_COLLECTIVES = frozenset({"_c10d_functional", "c10d_functional", "_c10d_functional_autograd", "c10d", "symm_mem"})
"""Namespaces whose ops communicate: every process of a group runs them once and in the same order."""

_ASSERTIONS = frozenset({"aten::_assert_async", "aten::_assert_scalar", "aten::_assert_tensor_metadata"})
"""Ops that hold values, sizes or types against what the model says of them."""

_OWN = _COLLECTIVES | {
    *("aten", "prims", "prim", "inductor", "inductor_prims", "rngprims", "debugprims", "remat_opt"),
    *("quantized", "quantized_decomposed", "_quantized", "mkldnn", "mkldnn_prepacked", "mkl", "onednn", "xnnpack"),
}
"""Namespaces of ops whose schemas and tags say all that they do."""
_OWN_MODULES = frozenset({"torch", "_operator", "operator", "math", "builtins"})
"""Where functions of Python come from that do nothing but compute."""

_DEVICES = ("cpu", "cuda", "meta")
"""Where tensors may lie whose memory is planned."""

_RECOMPUTABLE = "remat_recomputable"
"""The note at a node of another package that it may run again."""


class UnsupportedGraph(ModelError):
    """A graph that cannot be planned; `.op` is the node that forbids it, and the message says why."""

    def __init__(self, node: str | None, reason: str) -> None:
        where = f"node `{node}`: " if node else ""
        super().__init__(f"{where}{reason}", "input", node)
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.op, self.reason)


def is_getitem(node: fx.Node) -> bool:
    """Whether a node picks one of the results of a node that has several."""
    return (
        node.op == "call_function"
        and node.target is operator.getitem
        and isinstance(node.args[0], fx.Node)
        and isinstance(node.args[0].meta.get("val"), (tuple, list))
    )


def results(node: fx.Node) -> Iterator[tuple[int | None, torch.Tensor]]:
    """The tensors that a node gives, each with its position where the node gives several."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        yield None, value
    elif isinstance(value, (tuple, list)):
        for index, one in enumerate(value):
            if isinstance(one, torch.Tensor):
                yield index, one


def argument(node: fx.Node, name: str) -> Any:
    """The argument of a call of an ATen op by its name in the schema; its default where the call leaves it out."""
    for index, one in enumerate(_overload(node)._schema.arguments):
        if one.name == name:
            return node.kwargs.get(name, node.args[index] if index < len(node.args) else one.default_value)
    raise KeyError(name)


def is_random(node: fx.Node) -> bool:
    """Whether a node draws random numbers: what it gives depends on how many were drawn before."""
    target = node.target
    if not isinstance(target, OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    if any(one.name == "dropout_p" for one in target._schema.arguments):
        return bool(argument(node, "dropout_p") != 0)  # Attention without dropout draws nothing.
    return True


def is_collective(node: fx.Node) -> bool:
    """Whether a node communicates with other processes."""
    return getattr(node.target, "namespace", None) in _COLLECTIVES


def is_assertion(node: fx.Node) -> bool:
    """Whether a node gives nothing and only raises where its arguments are not as they have to be."""
    return isinstance(node.target, OpOverload) and node.target._schema.name in _ASSERTIONS


def is_foreign(node: fx.Node) -> bool:
    """Whether a node is an op of another package: what it does besides giving results, nothing says."""
    if node.op != "call_function" or is_getitem(node):
        return False
    if isinstance(node.target, OpOverload):
        return node.target.namespace not in _OWN
    return (getattr(node.target, "__module__", None) or "").split(".")[0] not in _OWN_MODULES


def op_name(node: fx.Node) -> str:
    """The name of an op as its package defines it, such as `my::mask`."""
    return str(node.target._schema.name) if isinstance(node.target, OpOverload) else str(node.target)


def names_of(recomputable: Collection[str]) -> tuple[str, ...]:
    """The names of ops or packages that may run again, sorted.

    Raises:
        UsageError: They are no collection of names.
    """
    if isinstance(recomputable, str) or not all(isinstance(one, str) and one for one in recomputable):
        raise UsageError(f'recomputable is a collection of names, such as ["my::mask"], not {recomputable!r}')
    return tuple(sorted(set(recomputable)))


def allow(graph: fx.Graph, recomputable: Collection[str]) -> list[str]:
    """Notes at ops of other packages that they may run again.

    Args:
        graph: Its nodes get the note.
        recomputable: Names of ops (`my::mask`), or of packages (`my`).

    Returns:
        The names of the ops of other packages that run once all the same, sorted.
    """
    once: set[str] = set()
    for node in graph.nodes:
        if is_foreign(node):
            name = op_name(node)
            node.meta[_RECOMPUTABLE] = name in recomputable or name.partition("::")[0] in recomputable
            once |= set() if node.meta[_RECOMPUTABLE] else {name}
    return sorted(once)


def draws(node: fx.Node) -> bool:
    """Whether what a node gives may depend on how often it and others have run before: it draws random numbers, or is
    an op of another package, of which nothing is known."""
    return is_random(node) or (is_foreign(node) and not node.meta.get(_RECOMPUTABLE, False))


def without_repetitions(graph: fx.Graph) -> fx.Graph:
    """A copy of a graph where equal calls are one. Ops of other packages stay as many as there are."""
    apart = "remat_apart"
    for number, node in enumerate(graph.nodes):
        if is_foreign(node):
            node.kwargs = {**node.kwargs, apart: number}
    same = compile_utils.fx_graph_cse(graph)
    for one in (graph, same):
        for node in one.nodes:
            if apart in node.kwargs:
                node.kwargs = {name: value for name, value in node.kwargs.items() if name != apart}
    return same


def is_once(node: fx.Node) -> bool:
    """Whether a node has to run exactly once, in its order among all such nodes."""
    if draws(node) or is_collective(node):
        return True
    if isinstance(node.target, OpOverload) and node.target._schema.is_mutable:
        return True
    return node.target in fx.node._side_effectful_functions


def written(node: fx.Node) -> Iterator[fx.Node]:
    """The arguments that a node overwrites in place."""
    if not isinstance(node.target, OpOverload) or not node.target._schema.is_mutable:
        return
    for index, one in enumerate(node.target._schema.arguments):
        if one.alias_info is None or not one.alias_info.is_write:
            continue
        value = node.kwargs.get(one.name, node.args[index] if index < len(node.args) else None)
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, fx.Node):
                yield item


def is_training_batch_norm(node: fx.Node) -> bool:
    """Whether a node is a batch norm that gives new running statistics.

    Its results do not depend on the old ones, so a second run does without them (`without_statistics`).
    """
    return node.target is _aten._native_batch_norm_legit_functional.default and node.args[5] is True


def without_statistics(node: fx.Node) -> tuple[OpOverload, tuple[Any, ...]]:
    """Op and arguments that compute the first three results of a batch norm again, bit for bit."""
    x, weight, bias, _, _, training, momentum, epsilon = node.args
    return _aten._native_batch_norm_legit.no_stats, (x, weight, bias, training, momentum, epsilon)


STATISTICS = (3, 4)
"""The results of a training batch norm that are new running statistics, and its arguments that are the old ones."""


def read_once(node: fx.Node, keys: Callable[[fx.Node], set[int]]) -> set[int]:
    """The memory that only the first run of a node reads: the running statistics of a training batch norm, unless it
    reads the same memory as something else, too.

    Args:
        node: A call.
        keys: Memory of an argument.
    """
    if not is_training_batch_norm(node):
        return set()
    old = [node.args[index] for index in STATISTICS]
    others = [one for index, one in enumerate(node.args) if index not in STATISTICS and isinstance(one, fx.Node)]
    return set().union(*map(keys, old)) - set().union(*map(keys, others))


def refuse_unsupported(graph: fx.Graph) -> None:
    """Looks for what no plan can be made for.

    Raises:
        UnsupportedGraph: The graph has symbolic shapes, ops on graphs (`torch.cond`, flex attention), calls of
            modules or methods, tensors that are not dense, or tensors on several devices or on other
            ones than CPU and CUDA.
    """
    first: torch.device | None = None
    for node in graph.nodes:
        if isinstance(node.target, HigherOrderOperator):
            raise UnsupportedGraph(node.name, f"`{node.target}` runs a graph inside the graph")
        if node.op in ("call_module", "call_method"):
            raise UnsupportedGraph(node.name, f"`{node.op}` is no op; the graph has to be traced down to ATen ops")
        value = node.meta.get("val")
        for one in value if isinstance(value, (tuple, list)) else (value,):
            _refuse_value(node, one)
            place = one.device if isinstance(one, torch.Tensor) and one.device.type == "cuda" else None
            if place is not None and first is not None and place != first:
                raise UnsupportedGraph(node.name, f"it lies on {place} and others on {first}: a plan is for one device")
            first = first or place


def _refuse_value(node: fx.Node, value: Any) -> None:
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise UnsupportedGraph(node.name, "a number is known only when the graph runs (dynamic shapes)")
    if not isinstance(value, torch.Tensor):
        return
    if value.device.type not in _DEVICES:
        raise UnsupportedGraph(node.name, f"it lies on `{value.device.type}`: plans are for a CPU and for CUDA devices")
    if value.layout != torch.strided:
        raise UnsupportedGraph(node.name, f"a tensor of layout {value.layout} has no storage of its own")
    if any(isinstance(size, torch.SymInt) for size in (*value.shape, *value.stride())):
        raise UnsupportedGraph(node.name, "a shape is known only when the graph runs (dynamic shapes)")


def _overload(node: fx.Node) -> OpOverload:
    assert isinstance(node.target, OpOverload)
    return node.target
