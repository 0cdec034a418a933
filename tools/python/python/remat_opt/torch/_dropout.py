"""Dropout as two ops: one draws the mask, the other one applies it and may run again."""

from __future__ import annotations

import operator

import torch
from torch import fx

from ._effects import argument, is_getitem
from ._emit import trace_again

_aten = torch.ops.aten


def split_dropout(graph: fx.Graph) -> int:
    """Replaces `native_dropout` by the drawing of its mask and two products, as its kernel does it.

    The mask is drawn once; what it leaves is a product with the mask, which plans may compute again. The same numbers
    are drawn and the results have the same bits. That holds on the CPU, for `float32` and `float64`, and for inputs in
    their natural order, since numbers are drawn in the order of memory; others stay as they are.

    Returns:
        How many there were.
    """
    nodes = [node for node in graph.nodes if node.target is _aten.native_dropout.default and _is_plain(node)]
    for node in nodes:
        _split(graph, node)
    return len(nodes)


def _is_plain(node: fx.Node) -> bool:
    value = node.args[0].meta["val"]
    share = argument(node, "p")
    is_training = argument(node, "train") in (True, None)
    is_exact = value.device.type == "cpu" and value.dtype in (torch.float32, torch.float64) and value.is_contiguous()
    return is_training and 0 < share < 1 and is_exact and all(is_getitem(user) for user in node.users)


def _split(graph: fx.Graph, node: fx.Node) -> None:
    x, share = node.args[0], argument(node, "p")
    with graph.inserting_before(node):
        empty = graph.call_function(_aten.empty_like.default, (x,), {"dtype": torch.bool})
        mask = graph.call_function(_aten.bernoulli.p, (empty, 1 - share))
        chosen = graph.call_function(_aten.mul.Tensor, (x, mask))
        given = graph.call_function(_aten.mul.Tensor, (chosen, 1 / (1 - share)))
    for one in (empty, mask, chosen, given):
        one.meta = {name: value for name, value in node.meta.items() if name not in ("val", "tensor_meta")}
        trace_again(one)
    for user in list(node.users):
        assert user.target is operator.getitem
        user.replace_all_uses_with((given, mask)[user.args[1]])
        graph.erase_node(user)
    graph.erase_node(node)
