"""Graphs as Dynamo gives them: copies, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator

from torch import fx
from torch._higher_order_ops.wrap import tag_activation_checkpoint


def copy_of(gm: fx.GraphModule) -> fx.GraphModule:
    """A graph that a compiler may change, with the same parameters."""
    graph = fx.Graph()
    output = graph.graph_copy(gm.graph, {}, return_output_node=True)
    assert isinstance(output, tuple)
    graph.output(output[0]).meta = dict(output[1].meta)
    same = fx.GraphModule(gm, graph)
    same.meta = dict(gm.meta)
    return same


def without_checkpoints(gm: fx.GraphModule) -> fx.GraphModule:
    """A graph of Dynamo whose checkpointed parts are run as if they were not. PyTorch leaves it to compilers that such a
    part draws the same random numbers when it runs again: the graph called as it is draws others."""
    same = copy_of(gm)
    for node in list(same.graph.nodes):
        if node.op == "call_function" and node.target is tag_activation_checkpoint:
            part, *arguments = node.args
            setattr(same, part.target, without_checkpoints(getattr(gm, part.target)))
            _, keywords = tag_activation_checkpoint.divide_kwargs(node.kwargs)
            with same.graph.inserting_before(node):
                node.replace_all_uses_with(same.graph.call_module(part.target, tuple(arguments), keywords))
            same.graph.erase_node(node)
    same.recompile()
    return same


def communicates(gm: fx.GraphModule) -> bool:
    """Whether processes may wait for each other inside of a graph of Dynamo."""
    targets = (node.target for node in _nodes(gm))
    return any(word in f"{getattr(one, '__module__', '')} {one}" for one in targets for word in ("c10d", "distributed"))


def _nodes(gm: fx.GraphModule) -> Iterator[fx.Node]:
    """Nodes of a graph of Dynamo and of the graphs within it."""
    for one in gm.modules():
        if isinstance(one, fx.GraphModule):
            yield from one.graph.nodes
