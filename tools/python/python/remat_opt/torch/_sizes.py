"""Graphs of Dynamo with dynamic shapes, as a graph of fixed shapes for each size that comes.

A last batch that is smaller makes Dynamo compile a graph for all sizes, which from then on serves the full batches,
too. No plan is for all sizes, so each size has one of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from ._check import Run
from ._report import Report, record

_log = logging.getLogger("remat_opt")

_EXAMPLE = "example_value"
"""Where Dynamo notes the traced value of a node."""


def is_dynamic(value: Any) -> bool:
    """Whether an example of an input stands for several sizes."""
    if isinstance(value, torch.SymInt):
        return True
    if not isinstance(value, torch.Tensor):
        return False
    return any(isinstance(one, torch.SymInt) for one in (*value.shape, *value.stride(), value.storage_offset()))


def not_fixed(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> str | None:
    """Why the sizes of a graph are not known when it is called."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    if any(isinstance(one, (torch.SymFloat, torch.SymBool)) for one in example_inputs):
        return "an input is a number that may be another one in each call (dynamic shapes)"
    for node in gm.graph.nodes:
        for one in pytree.tree_leaves(node.meta.get(_EXAMPLE)):
            if isinstance(one, (torch.SymInt, torch.Tensor)) and free_unbacked_symbols(one):
                return f"a shape at `{node.name}` depends on the values of tensors (dynamic shapes)"
    return None


class Sizes:
    """A graph with dynamic shapes as a function: each size is compiled when it first comes, up to a number of them."""

    def __init__(
        self,
        gm: fx.GraphModule,
        example_inputs: Sequence[Any],
        compile: Callable[[fx.GraphModule, Sequence[Any], str], Run],
        reports: list[Report],
        *,
        name: str,
        inner: str,
        most: int,
        strict: bool,
    ) -> None:
        """
        Args:
            gm: A graph of Dynamo; it is not changed.
            example_inputs: Some of which are dynamic.
            compile: Compiles a graph of fixed shapes for some inputs under a name, and gives the report of it as `report`.
            reports: Get one for each size, as `compile` adds them.
            name: Of the graph, for reports.
            inner: What compiles, for reports.
            most: Sizes that are compiled; for others the graph runs as it is.
            strict: Whether failures are raised.
        """
        self._gm = gm
        self._compile = compile
        self._reports = reports
        self._name, self._inner, self._most, self._strict = name, inner, most, strict
        self._dynamic = [index for index, one in enumerate(example_inputs) if is_dynamic(one)]
        self._numbers = [index for index in self._dynamic if isinstance(example_inputs[index], torch.SymInt)]
        self._runs: dict[Hashable, Run] = {}
        self._rest: Report | None = None
        """The report of all sizes that are not compiled."""

    def __call__(self, *inputs: Any) -> Any:
        key = tuple(_size(inputs[index]) for index in self._dynamic)
        run = self._runs.get(key)
        if run is None and len(self._runs) < self._most:
            run = self._runs[key] = self._made(inputs)
        if run is None:
            return self._as_it_is(*inputs)
        return run(*inputs)

    def _made(self, inputs: Sequence[Any]) -> Run:
        """What runs for the sizes of some inputs."""
        numbers = {index: int(inputs[index]) for index in self._numbers}
        name = f"{self._name} with sizes {', '.join(map(str, numbers.values()))}"
        given = [one for index, one in enumerate(inputs) if index not in numbers]
        try:
            run = self._compile(fixed(self._gm, numbers), given, name)
        except Exception as error:  # Training goes on whatever fails here.
            if self._strict:
                raise
            report = self._unplanned(name, f"{type(error).__name__}: {error}")

            def as_it_is(*rest: Any) -> Any:
                report.calls += 1
                return self._gm(*rest)

            return as_it_is
        run.report.graph = name  # type: ignore[attr-defined]
        return lambda *rest: run(*(one for index, one in enumerate(rest) if index not in numbers))

    def _as_it_is(self, *inputs: Any) -> Any:
        if self._rest is None:
            reason = f"{self._most} sizes have plans, and further ones run as the model is (`sizes=`)"
            self._rest = self._unplanned(f"{self._name} with other sizes", reason)
        self._rest.calls += 1
        return self._gm(*inputs)

    def _unplanned(self, name: str, reason: str) -> Report:
        if self._strict:
            raise RuntimeError(reason)
        report = record(Report(graph=name, inner=self._inner, fallback=reason))
        self._reports.append(report)
        _log.warning("graph %s is not planned: %s", name, reason)
        return report


def fixed(gm: fx.GraphModule, numbers: dict[int, int]) -> fx.GraphModule:
    """A copy of a graph with numbers in place of some inputs.

    Args:
        gm: A graph of Dynamo.
        numbers: By position of the input.
    """
    graph = fx.Graph()
    copies: dict[fx.Node, Any] = {}
    position = 0
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            position += 1
            if position - 1 in numbers:
                copies[node] = numbers[position - 1]
                continue
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), copies.__getitem__)
        copy = copies[node] = graph.create_node(node.op, node.target, args, kwargs, node.name)
        # What was traced is about all sizes.
        copy.meta = {name: value for name, value in node.meta.items() if name != _EXAMPLE}
    same = fx.GraphModule(gm, graph)
    same.meta = dict(gm.meta)
    return same


def _size(value: Any) -> Hashable:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.stride(), value.storage_offset()
    return int(value)
