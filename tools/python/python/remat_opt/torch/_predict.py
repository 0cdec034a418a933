"""The peak of a split behind Inductor, predicted without generating code.

Inductor lowers both halves, fuses and orders them as it would to compile them, and stops there: what it fuses has no
buffer, what it copies into another layout has one. Live buffers, what the forward saves and the measured workspace of
kernels give the peak.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree
from torch.utils._ordered_set import OrderedSet

from ._live import Footprint, Workspace, footprint
from ._split import Halves

_log = logging.getLogger("remat_opt")

_PAGE = 64
"""What PyTorch's allocator on a CPU rounds sizes up to."""


def predict(halves: Halves, forward_outputs: int, workspace: Workspace) -> Footprint:
    """What the two halves take above parameters and inputs.

    Args:
        halves: Forward and backward, which Inductor changes.
        forward_outputs: How many results of the forward are not saved tensors.
        workspace: Of all nodes.
    """
    forward, backward = halves
    try:
        first = _schedule(forward, False, forward_outputs)
        second = _schedule(backward, True, 0)
        inputs = [node.name for node in backward.graph.find_nodes(op="placeholder")]
        results, held, shown = _left(first, forward_outputs, inputs)
        saved = sum(held.values())
        return Footprint(
            forward=first.peak({}, workspace),
            backward=second.peak(held, workspace) - saved,
            saved=saved,
            shown=shown,
            results=results,
        )
    except Exception as error:  # Whatever Inductor throws, it throws again where the split is compiled.
        _log.warning("a peak is predicted without Inductor's schedule: %s: %s", type(error).__name__, error)
        return footprint(halves, forward_outputs, workspace)


@dataclass
class _Step:
    """One kernel, or call of a library."""

    allocates: dict[str, int]
    """Buffers, by size."""
    reads: set[str]
    """Inputs of the graph and buffers."""
    origins: list[str]
    """Nodes that a call of a library stands for."""
    overwrites: dict[str, str]
    """By result, the operand over which it is written where both take the same bytes."""


@dataclass
class _Schedule:
    """What Inductor would run."""

    steps: list[_Step] = field(default_factory=list)
    outputs: list[str | None] = field(default_factory=list)
    """Buffers or inputs that the results lie in."""
    is_channels_last: bool = False
    """Whether convolutions are given their channels last."""

    def sizes(self) -> dict[str, int]:
        """Bytes of all buffers."""
        return {name: size for step in self.steps for name, size in step.allocates.items()}

    def peak(self, held: Mapping[str, int], workspace: Workspace) -> int:
        """Most bytes at a step.

        Args:
            held: Inputs that die after their last use, by size.
            workspace: Of all nodes.
        """
        sizes = {**held, **self.sizes()}
        kept = set(self.outputs)
        last: dict[str, int] = {}
        for index, step in enumerate(self.steps):
            last |= dict.fromkeys((*step.allocates, *(one for one in step.reads if one in sizes)), index)
        ends: dict[int, list[str]] = {}
        for name, index in last.items():
            if name not in kept:
                ends.setdefault(index, []).append(name)
        live = sum(held.values())
        highest = live
        for index, step in enumerate(self.steps):
            dead = ends.get(index, ())
            over = {one for result, one in step.overwrites.items() if one in dead and sizes[one] == sizes[result]}
            live += sum(step.allocates.values()) - sum(sizes[one] for one in over)
            highest = max(highest, live + max(
                (workspace.of(one, self.is_channels_last) for one in step.origins), default=0
            ))
            live -= sum(sizes[one] for one in dead if one not in over)
        return highest


class _Stop(Exception):
    """Ends a compilation when its schedule is known."""


class _Watcher:
    """Takes the schedule of a compilation, and ends it."""

    def __init__(self) -> None:
        self.schedule: _Schedule | None = None

    def __call__(self, nodes: list[Any]) -> list[Any]:
        from torch._inductor.memory import reorder_for_peak_memory
        from torch._inductor.virtualized import V

        scheduler, graph = V.graph.scheduler, V.graph
        outputs = OrderedSet(graph.get_output_names())
        if torch._inductor.config.reorder_for_peak_memory:
            inputs = OrderedSet(graph.graph_inputs)
            nodes = reorder_for_peak_memory(
                nodes, scheduler.name_to_buf, scheduler.name_to_fused_node, inputs, outputs
            )
        users, done, steps = _users(nodes), set(), []
        for node in nodes:
            steps.append(_step(node, outputs, users, done))
            done |= node.get_operation_names()
        self.schedule = _Schedule(steps, _output_names(graph), bool(graph.layout_opt))
        raise _Stop


def _output_names(graph: Any) -> list[str | None]:
    """The buffer or input of each result, `None` for numbers."""
    from torch._inductor import ir

    names = ("NoneAsConstantBuffer", "ShapeAsConstantBuffer")
    constants = tuple(getattr(ir, name) for name in names if hasattr(ir, name))
    return [None if isinstance(one, constants) else one.get_name() for one in graph.graph_outputs]


def _users(nodes: Iterable[Any]) -> dict[str, list[Any]]:
    """The ops that read each buffer or input, once for each way in which they read it."""
    users: dict[str, list[Any]] = {}
    for node in nodes:
        for op in node.get_nodes():
            for read in op.read_writes.reads:
                users.setdefault(read.name, []).append(op)
    return users


def _step(node: Any, outputs: set[str], users: Mapping[str, list[Any]], done: Set[str]) -> _Step:
    """A kernel or a call.

    Args:
        node: Of the scheduler.
        outputs: Buffers and inputs that the graph returns.
        users: As of `_users`.
        done: Ops of the steps before.
    """
    allocates: dict[str, int] = {}
    mine = set(node.get_nodes())
    for buffer in node.get_outputs():
        name, size = buffer.get_name(), buffer.mpi_buffer.size_alloc
        inside = len(mine) > 1 and name not in outputs and all(user.node in mine for user in buffer.users)
        if size and not inside:
            allocates |= _parts(buffer, size)
    reads = {dep.name for dep in node.read_writes.reads}
    origins = _called(node) if node.is_extern() else []
    overwrites = {} if node.is_extern() else _overwrites(node, outputs, users, done)
    return _Step(allocates, reads, origins, {result: one for result, one in overwrites.items() if result in allocates})


def _overwrites(
    node: Any, outputs: set[str], users: Mapping[str, list[Any]], done: Set[str]
) -> dict[str, str]:
    """What Inductor writes results of a kernel over: what no later op reads, if the kernel reads it as it writes the result
    (`SchedulerNode.decide_inplace_update`)."""
    found: dict[str, str] = {}
    if not torch._inductor.config.inplace_buffers:
        return found
    accesses: dict[str, set[Any]] = {}
    for access in (one for op in node.get_nodes() for one in op.read_writes.reads_and_writes()):
        accesses.setdefault(access.name, set()).add(access)
    for op in node.get_nodes():
        for result in (one.get_name() for one in op.get_outputs()):
            for read in op.read_writes.reads:
                names = ((user, user.get_name()) for user in users[read.name])
                left = [user for user, name in names if name not in op.ancestors and name not in done]
                is_one = len(accesses[read.name]) == 1
                if read.name not in outputs and left == [op] and is_one and op.can_inplace(read):
                    found[result] = read.name
                    break
    return found


def _called(node: Any) -> list[str]:
    """The nodes that a call of a library stands for."""
    if node.node is None:
        return []
    if (origin := node.node.get_origin_node()) is not None:
        return [origin.name]
    return [one.name for one in node.node.get_origins()]


def _parts(buffer: Any, size: int) -> dict[str, int]:
    """A buffer, or those that are picked from the results of a call with several."""
    if buffer.mpi_buffer.size_free or not buffer.users:
        return {buffer.get_name(): -(-size // _PAGE) * _PAGE}
    parts = {}
    for user in buffer.users:
        for one in user.node.get_outputs() if hasattr(user.node, "get_outputs") else ():
            if one.mpi_buffer.size_free:
                parts[one.get_name()] = -(-one.mpi_buffer.size_free // _PAGE) * _PAGE
    return parts


def _left(forward: _Schedule, visible: int, inputs: Sequence[str]) -> tuple[int, dict[str, int], dict[int, int]]:
    """What a forward leaves, each memory once.

    Args:
        forward: Its schedule.
        visible: How many results are not saved tensors.
        inputs: Of the backward: what is saved, and what autograd passes to it.

    Returns:
        Bytes of results that are not saved, of saved tensors by the inputs of the backward, and of results that are saved
        as well by their position.
    """
    sizes = forward.sizes()
    places: dict[str, int] = {}
    for place, name in enumerate(forward.outputs[:visible]):
        if name in sizes:
            places.setdefault(name, place)
    saved = forward.outputs[visible:]
    own: dict[str, str] = {}
    for name, given in zip(inputs, saved):
        if given in sizes and given not in places:
            own.setdefault(given, name)
    shown = {places[name]: sizes[name] for name in saved if name in places}
    results = sum(sizes[name] for name, place in places.items() if place not in shown)
    return results, {name: sizes[given] for given, name in own.items()}, shown


def _schedule(gm: fx.GraphModule, is_backward: bool, visible: int) -> _Schedule:
    """The schedule of one half."""
    from torch._inductor.compile_fx import compile_fx_inner

    inputs = [node.meta["val"] for node in gm.graph.find_nodes(op="placeholder")]
    output = next(iter(gm.graph.find_nodes(op="output")))
    results_ = pytree.arg_tree_leaves(*output.args)
    shown = range(len(results_) if is_backward else visible)
    output.meta["user_visible_output_idxs"] = [one for one in shown if isinstance(results_[one], fx.Node)]
    watcher = _Watcher()
    with _watched(watcher):
        try:
            compile_fx_inner(gm, inputs, is_backward=is_backward, static_input_idxs=(), graph_id=0)
        except Exception:
            if watcher.schedule is None:
                raise
    if watcher.schedule is None:
        raise RuntimeError("this version of Inductor does not show its schedule")
    return watcher.schedule


@contextlib.contextmanager
def _watched(watcher: _Watcher) -> Iterator[None]:
    with torch._inductor.config.patch(
        {"_post_fusion_custom_pass": watcher, "fx_graph_cache": False, "fx_graph_remote_cache": False}
    ):
        yield
