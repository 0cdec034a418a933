"""What the two halves of a training graph take, where ops run as they stand in them and nothing is fused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import fx
from torch.utils import _pytree as pytree

from ._effects import results
from ._emit import original
from ._moving import is_outside
from ._split import Halves
from ._storages import Storages, storage_bytes


@dataclass(frozen=True)
class Workspace:
    """Bytes that nodes take besides arguments and results, by their names in the joint graph."""

    plain: Mapping[str, int]
    channels_last: Mapping[str, int]
    """Of convolutions whose arguments have their channels last."""

    def of(self, name: str, is_channels_last: bool) -> int:
        """Bytes of a node."""
        name = original(name)
        if is_channels_last and name in self.channels_last:
            return self.channels_last[name]
        return self.plain.get(name, 0)


@dataclass(frozen=True)
class Footprint:
    """What a call of a graph takes, in bytes above parameters, inputs and whatever else is there."""

    forward: int
    """Most while the forward runs."""
    backward: int
    """Most while the backward runs, above `saved` and what autograd passes to it."""
    saved: int
    """What the forward leaves for the backward alone."""
    shown: Mapping[int, int]
    """Results of the forward, by their position, that it saves as well."""
    results: int = 0
    """Results of the forward that it does not save, where they are known to lie there while the backward runs."""

    @property
    def kept(self) -> int:
        """What the forward leaves."""
        return self.saved + sum(self.shown.values()) + self.results

    @property
    def peak(self) -> int:
        """Most of a call whose backward follows its forward."""
        return max(self.forward, self.kept + self.backward)

    def scaled(self, factor: float) -> Footprint:
        """The same with another peak; what the forward leaves stays.

        Args:
            factor: How many times higher both halves come.
        """
        backward = int((self.kept + self.backward) * factor) - self.kept
        return replace(self, forward=int(self.forward * factor), backward=backward)


def footprint(halves: Halves, forward_outputs: int, workspace: Workspace) -> Footprint:
    """What both halves take.

    Args:
        halves: Forward and backward.
        forward_outputs: How many results of the forward are not saved tensors.
        workspace: Of all nodes.
    """
    forward, backward = halves
    given = pytree.arg_tree_leaves(*next(iter(forward.graph.find_nodes(op="output"))).args)
    storages = Storages(forward.graph)
    inputs = {key for node in forward.graph.nodes if node.op in ("placeholder", "get_attr") for key in storages.keys(node)}
    places: dict[int, int] = {}
    for index, one in enumerate(given[:forward_outputs]):
        for key in storages.keys(one) - inputs if isinstance(one, fx.Node) else ():
            places.setdefault(key, index)
    own: dict[int, int] = {}
    shown: dict[int, int] = {}
    names = set()
    for one in given[forward_outputs:]:
        for _, value in _inside(one) if isinstance(one, fx.Node) else ():
            key = storages.key(value)
            if key in places:
                shown[places[key]] = storage_bytes(value)
            elif key not in inputs:
                own[key] = storage_bytes(value)
                names.add(one.name)
    saved = sum(own.values())
    return Footprint(
        forward=live_values(forward, set(), workspace),
        backward=live_values(backward, names, workspace) - saved,
        saved=saved,
        shown=shown,
    )


def live_peak(halves: Halves, forward_outputs: int, workspace: Workspace) -> int:
    """Most bytes of the live values of both halves above parameters and inputs.

    Args:
        halves: Forward and backward.
        forward_outputs: How many results of the forward are not saved tensors.
        workspace: Of all nodes.
    """
    forward, backward = halves
    given = pytree.arg_tree_leaves(*next(iter(forward.graph.find_nodes(op="output"))).args)
    saved = {one.name for one in given[forward_outputs:] if isinstance(one, fx.Node) and one.op != "placeholder"}
    return max(live_values(forward, set(), workspace), live_values(backward, saved, workspace))


def live_values(gm: fx.GraphModule, owned: set[str], workspace: Workspace) -> int:
    """Most bytes of live values of a graph.

    Args:
        gm: One half.
        owned: Inputs that die after their last use; others stay and do not count.
        workspace: Of all nodes.
    """
    storages = Storages(gm.graph)
    sizes: dict[int, int] = {}
    last: dict[int, int] = {}
    external: set[int] = set()
    nodes = list(gm.graph.nodes)
    for index, node in enumerate(nodes):
        for one in (node, *node.all_input_nodes):
            for _, value in results(one):
                key = storages.key(value)
                sizes.setdefault(key, storage_bytes(value))
                last[key] = index
                if one.op in ("placeholder", "get_attr") and one.name not in owned:
                    external.add(key)
    ends: dict[int, list[int]] = {}
    for key, index in last.items():
        ends.setdefault(index, []).append(key)
    live, highest, there = 0, 0, set(external)
    for index, node in enumerate(nodes):
        for _, value in _inside(node):
            if (key := storages.key(value)) not in there:
                there.add(key)
                live += sizes[key]
        highest = max(highest, live + workspace.of(node.name, True))
        live -= sum(sizes[key] for key in ends.get(index, ()) if key in there and key not in external)
    return highest


def _inside(node: fx.Node) -> Iterator[tuple[int | None, torch.Tensor]]:
    """The tensors of a node that lie in the memory which is planned."""
    return iter(()) if is_outside(node.target) else results(node)
