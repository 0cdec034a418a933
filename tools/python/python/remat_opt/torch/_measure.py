"""Time and workspace of the ops of a graph.

Every distinct call (op, shapes, strides, types, other arguments) is measured once. On a CPU that happens in a process
of its own where the heap is counted, with as many threads as this process uses; on CUDA in this process. Results are
kept in memory and in the user's cache folder. What cannot be measured is estimated from its FLOPs and bytes.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

from . import _cache, _measure_child
from ._gpu.devices import Gpu
from ._gpu.dry_run import workspaces
from ._effects import is_assertion, is_collective, is_getitem, results
from ._graph import Cost
from ._metered import metered
from ._state import kept_random
from ._storages import Storages, device_of, storage_bytes

_CHILD_SECONDS = 600
ASSUMED_RATE = 8.0
"""Bytes that ops which cannot be measured are assumed to read and write in a nanosecond."""
_FLOPS_PER_NS, _CALL_NS = 20.0, 5_000
"""What else such ops that cannot be measured are assumed to reach; only relations between ops matter."""

_REACHED = 0.5
"""Share of the rates of a data sheet that kernels are assumed to reach."""

_CONVOLUTIONS = (torch.ops.aten.convolution, torch.ops.aten.convolution_backward)

_known: dict[str, dict[str, list[int]]] = {}
"""Measured costs by environment and call."""


@dataclass
class Costs:
    """What the ops of a graph take, and where the figures come from."""

    by_node: dict[fx.Node, Cost] = field(default_factory=dict)
    measured: int = 0
    """How many distinct calls were measured, now or earlier."""
    estimated: dict[str, str] = field(default_factory=dict)
    """Why calls were estimated instead, by the first node of each."""


class _Opaque(Exception):
    """An argument that cannot be made up from a description."""


def measure(graph: fx.Graph) -> Costs:
    """Measures the calls of a graph that do more than give views or check something.

    Nothing of the graph runs in this process, except on CUDA. The process that measures holds the arguments and results
    of one op at a time.

    Args:
        graph: ATen ops with traced values.

    Returns:
        Costs of all calls; estimates where an op cannot run on made-up arguments, is no op of PyTorch or of a package
        that is imported with it, or where no process can be started.
    """
    storages, costs = Storages(graph), Costs()
    calls: dict[str, dict[str, Any]] = {}
    nodes: dict[str, list[fx.Node]] = {}
    for node in graph.nodes:
        if node.op != "call_function" or is_getitem(node):
            continue
        if is_assertion(node) or (storages.is_view(node) and not node.target._schema.is_mutable):
            costs.by_node[node] = Cost()
            continue
        try:
            call = describe(node)
        except _Opaque as reason:
            costs.by_node[node], costs.estimated[node.name] = estimate(node), str(reason)
            continue
        key = _cache.key_of(call)
        calls[key] = call
        nodes.setdefault(key, []).append(node)
    found = _measured(calls, device_of(graph))
    for key, several in nodes.items():
        cost = found[key]
        if isinstance(cost, str):
            costs.estimated[several[0].name] = cost
            costs.by_node |= {node: estimate(node) for node in several}
        else:
            costs.measured += 1
            costs.by_node |= dict.fromkeys(several, Cost(*cost))
    return costs


def channels_last_workspace(graph: fx.Graph) -> dict[fx.Node, int]:
    """Bytes that convolutions take on top of arguments and results where all of these have their channels last, which
    is how Inductor runs them on a CPU.

    Args:
        graph: ATen ops with traced values.
    """
    calls: dict[str, dict[str, Any]] = {}
    nodes: dict[fx.Node, str] = {}
    for node in graph.nodes:
        if getattr(node.target, "overloadpacket", None) in _CONVOLUTIONS:
            call = describe(node, _channels_last)
            nodes[node] = key = _cache.key_of(call)
            calls[key] = call
    found = _measured(calls, device_of(graph)) if calls else {}
    return {node: found[key][1] for node, key in nodes.items() if not isinstance(found[key], str)}


def _channels_last(value: torch.Tensor) -> torch.Tensor:
    return value.contiguous(memory_format=torch.channels_last) if value.dim() == 4 else value


def describe(node: fx.Node, form: Callable[[torch.Tensor], torch.Tensor] = lambda one: one) -> dict[str, Any]:
    """A call as an object that JSON takes.

    Args:
        node: The call.
        form: Gives arguments that are traced tensors another layout.
    """
    if not isinstance(node.target, OpOverload):
        raise _Opaque(f"`{node.target}` is no op of the dispatcher")
    if is_collective(node):
        raise _Opaque("it communicates with other processes")

    def value(one: Any) -> Any:
        if not isinstance(one, fx.Node):
            return one
        return form(one.meta["val"]) if isinstance(one.meta["val"], torch.Tensor) else one.meta["val"]

    return {
        "op": str(node.target),
        "args": [encode(one) for one in fx.node.map_aggregate(node.args, value)],
        "kwargs": {name: encode(value(one)) for name, one in node.kwargs.items()},
    }


def encode(value: Any) -> Any:
    """An argument as an object that JSON takes; `_measure_child.decode` makes one up from it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [encode(one) for one in value]
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return {"tensor": [list(value.shape), list(value.stride()), dtype, value.device.type]}
    if isinstance(value, torch.device):
        return {"device": value.type}
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return {"name": str(value).removeprefix("torch.")}
    raise _Opaque(f"an argument is a {type(value).__name__}")


def estimate(node: fx.Node) -> Cost:
    """What a call takes on a machine of common speed; no workspace is known."""
    moved = sum(storage_bytes(value) for one in (node, *node.all_input_nodes) for _, value in results(one))
    flops = _flops(node, getattr(node.target, "overloadpacket", None), *_values(node))
    return Cost(int(max(flops / _FLOPS_PER_NS, moved / ASSUMED_RATE)) + _CALL_NS)


def _values(node: fx.Node) -> tuple[Any, Any]:
    """What a call is called with, traced."""

    def value(one: Any) -> Any:
        return one.meta.get("val") if isinstance(one, fx.Node) else one

    args, kwargs = pytree.tree_map(value, (node.args, node.kwargs), is_leaf=lambda one: isinstance(one, fx.Node))
    return args, kwargs


def _flops(node: fx.Node, packet: Any, args: Any, kwargs: Any) -> int:
    from torch.utils.flop_counter import flop_registry

    counter = flop_registry.get(packet)
    if counter is None:
        return 0
    try:
        return int(counter(*args, **kwargs, out_val=node.meta.get("val")))
    except Exception:  # The counters of PyTorch do not know all forms of a call.
        return 0


def estimates(graph: fx.Graph, gpu: Gpu) -> Costs:
    """What the calls of a graph would take on a device that is not there: time by its data sheet, workspace as in
    `_gpu.dry_run`.

    Args:
        graph: ATen ops with traced values.
        gpu: The device.
    """
    storages, costs = Storages(graph), Costs()
    for node in graph.nodes:
        if node.op != "call_function" or is_getitem(node):
            continue
        if is_assertion(node) or (storages.is_view(node) and not node.target._schema.is_mutable):
            costs.by_node[node] = Cost()
            continue
        args, kwargs = _values(node)
        operands = [one for one in pytree.tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        given = [value for _, value in results(node)]
        packet = getattr(node.target, "overloadpacket", None)
        moved = sum(storage_bytes(one) for one in (*given, *operands))
        single, half, memory = gpu.rates
        is_half = any(one.dtype in (torch.bfloat16, torch.float16) for one in operands)
        rate = _REACHED * (half if is_half else single)
        time = max(_flops(node, packet, args, kwargs) / rate, moved / (_REACHED * memory))
        costs.by_node[node] = Cost(int(time) + _CALL_NS, sum(workspaces(packet, args, operands, given)))
        costs.estimated[node.name] = f"{gpu.name} is not there"
    return costs


def _measured(calls: Mapping[str, dict[str, Any]], device: str) -> dict[str, Any]:
    """Costs by key; a text where there are none."""
    environment = _environment(device)
    known = _known.setdefault(environment, {})
    if not known:
        known |= _cache.load("costs", environment) or {}
    missing = {key: call for key, call in calls.items() if key not in known}
    failed: dict[str, str] = {}
    if missing:
        answers = _in_child(list(missing.values())) if device == "cpu" else _here(missing.values(), torch.device(device))
        for key, answer in zip(missing, answers):
            if isinstance(answer, str):
                failed[key] = answer
            else:
                known[key] = list(answer)
        _cache.store("costs", environment, (_cache.load("costs", environment) or {}) | known)
    return {key: failed.get(key) or known[key] for key in calls}


def _here(calls: Iterable[dict[str, Any]], device: torch.device) -> list[Any]:
    """Measures calls on a CUDA device."""
    from torch.utils._python_dispatch import _disable_current_modes

    answers: list[Any] = []
    meter = _measure_child.Cuda(device)
    with _disable_current_modes(), torch.no_grad(), torch.cuda.device(device), kept_random([device]):
        for call in calls:
            try:
                answers.append(list(_measure_child.measure_call(call, meter)))
            except Exception as error:  # Whatever an op throws is the reason why it is not measured.
                answers.append(f"{type(error).__name__}: {error}"[:500])
    return answers


def _in_child(calls: list[dict[str, Any]]) -> list[Any]:
    """Measures calls in a process whose heap is counted. One that dies loses the call at which it died."""
    answers: list[Any] = []
    try:
        with metered() as environment:
            while len(answers) < len(calls):
                lines = _child(calls[len(answers) :], environment)
                answers += lines
                if len(answers) < len(calls):
                    answers.append("the process that measures ended at this op")
    except (OSError, subprocess.SubprocessError) as error:
        answers += [f"no process measures: {error}"] * (len(calls) - len(answers))
    return answers


def _child(calls: list[dict[str, Any]], environment: Mapping[str, str]) -> list[Any]:
    path = os.pathsep.join(path for path in sys.path if path)
    process = subprocess.run(
        [sys.executable, _measure_child.__file__],
        input=json.dumps({"threads": torch.get_num_threads(), "calls": calls}),
        env={**environment, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=_CHILD_SECONDS,
    )
    if process.returncode != 0 and not process.stdout:
        last = process.stderr.strip().splitlines()[-1:]
        raise OSError(f"exit status {process.returncode}: {''.join(last)}")
    return [json.loads(line) for line in process.stdout.splitlines()]


@functools.cache
def _processor() -> str:
    """Name of the processor."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _environment(device: str) -> str:
    """What costs depend on besides the call."""
    settings = [torch.get_float32_matmul_precision(), torch.are_deterministic_algorithms_enabled()]
    if device == "cpu":
        return _cache.key_of([torch.__version__, _processor(), torch.get_num_threads(), *settings])
    cudnn = torch.backends.cudnn
    settings += [cudnn.version(), cudnn.enabled, cudnn.benchmark, cudnn.deterministic, torch._C._get_cudnn_allow_tf32()]
    driver = torch._C._cuda_getDriverVersion()
    return _cache.key_of([torch.__version__, torch.version.cuda, driver, torch.cuda.get_device_name(device), *settings])
