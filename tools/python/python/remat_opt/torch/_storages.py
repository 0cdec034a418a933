"""Which tensors of a graph share memory, and how much of it there is."""

from __future__ import annotations

import functools
import os

import torch
from torch import fx
from torch._ops import OpOverload

from .. import _native
from ._effects import is_getitem, results

_UNDECLARED_VIEWS = frozenset({"aten::_unsafe_view", "_c10d_functional::wait_tensor"})
"""Ops that return their argument's memory although their schema does not say so."""

_PAGE = 64
"""What PyTorch's allocator on a CPU rounds sizes up to."""


class Storages:
    """The memory behind the traced values of a graph.

    Tracing tells storages apart that are one at run time: what is picked from the results of a node, and views that
    were traced on a copy. So tensors are joined by the storages of their traced values, by `getitem`, and by the alias
    annotations of schemas.
    """

    def __init__(self, graph: fx.Graph) -> None:
        self._same: dict[int, int] = {}
        for node in graph.nodes:
            self._join_views(node)

    def key(self, value: torch.Tensor) -> int:
        """A number for the memory of a traced value; the same for all tensors that share it."""
        key: int = value.untyped_storage()._cdata
        while key in self._same:
            key = self._same[key]
        return key

    def keys(self, node: fx.Node) -> set[int]:
        """The memory of all results of a node."""
        return {self.key(value) for _, value in results(node)}

    def is_view(self, node: fx.Node) -> bool:
        """Whether a node gives nothing but memory of its arguments."""
        mine = self.keys(node)
        return bool(mine) and mine <= {key for one in node.all_input_nodes for key in self.keys(one)}

    def _join(self, value: object, base: object) -> None:
        if isinstance(value, torch.Tensor) and isinstance(base, torch.Tensor):
            one, other = self.key(value), self.key(base)
            if one != other:
                self._same[one] = other

    def _join_views(self, node: fx.Node) -> None:
        if is_getitem(node):
            self._join(node.meta.get("val"), node.args[0].meta["val"][node.args[1]])
            return
        if node.op != "call_function" or not isinstance(node.target, OpOverload):
            return
        if node.target._schema.name in _UNDECLARED_VIEWS:
            self._join(node.meta.get("val"), node.all_input_nodes[0].meta.get("val"))
            return
        if node.target._can_decompose():
            return  # Whether `reshape` gives a view depends on strides, which the traced value has obeyed.
        self._join_declared(node, node.target._schema)

    def _join_declared(self, node: fx.Node, schema: torch.FunctionSchema) -> None:
        """Joins results with the arguments that they are views of, as the schema says."""
        sources: dict[str, object] = {}
        for index, one in enumerate(schema.arguments):
            if one.alias_info is not None:
                value = node.kwargs.get(one.name, node.args[index] if index < len(node.args) else None)
                sources |= dict.fromkeys(one.alias_info.before_set, value)
        given = node.meta.get("val")
        for index, one in enumerate(schema.returns):
            if one.alias_info is None:
                continue
            # A list of views (`split`) names no set of its own.
            letters = one.alias_info.before_set or set(sources)
            base = next((sources[letter] for letter in sorted(letters) if letter in sources), None)
            if isinstance(base, fx.Node):
                mine = given if len(schema.returns) == 1 else given[index]
                for part in mine if isinstance(mine, (tuple, list)) else (mine,):
                    self._join(part, base.meta.get("val"))


def device_of(graph: fx.Graph) -> str:
    """The CUDA device of a graph's tensors, such as `"cuda:1"`, or `"cpu"`."""
    places = (value.device for node in graph.nodes for _, value in results(node))
    return next((str(one) for one in places if one.type == "cuda"), "cpu")


def storage_bytes(value: torch.Tensor) -> int:
    """Bytes of the memory of a value, as PyTorch's allocator of its device takes them."""
    size = int(value.untyped_storage().nbytes())
    if value.device.type == "cuda":
        return _cuda_bytes(size)
    return -(-size // _PAGE) * _PAGE if value.device.type == "cpu" else size


@functools.lru_cache(maxsize=4096)
def _cuda_bytes(size: int) -> int:
    """The block that a request for some bytes gets, with the settings in the environment (512 bytes, or a part of a power of
    two)."""
    settings = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""
    try:
        return int(_native.rounded_allocation(settings, size))
    except ValueError:  # Settings that nobody simulates.
        return int(_native.rounded_allocation("", size))
