"""What differs between versions of PyTorch, from 2.6 on."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

import torch
from torch import fx
from torch._functorch import config as functorch_config
from torch._functorch import partitioners as stock
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensor

from ..errors import UsageError

try:  # 2.9 and later.
    from torch._inductor.custom_graph_pass import CustomPartitionerFn as PartitionerBase
except ImportError:

    class PartitionerBase:  # type: ignore[no-redef]
        """Stands for `CustomPartitionerFn`, which earlier versions do not have."""


_DONATED = "donated_buffer"
"""The setting of PyTorch by which Inductor writes over saved tensors."""


def has_partitioner_hook() -> bool:
    """Whether Inductor takes a partitioner in its configuration (2.9 and later)."""
    return hasattr(torch._inductor.config, "custom_partitioner_fn")


@contextlib.contextmanager
def inductor_partitions_with(partitioner: Any) -> Iterator[dict[str, Any]]:
    """While it is open, Inductor splits joint graphs with a partitioner.

    Yields:
        What belongs into `config_patches` of `compile_fx`. It is empty for versions before 2.9, where the partitioner
        takes the place of the one that `compile_fx` calls.
    """
    # A graph that comes from this cache would not pass the partitioner, and no report could be made.
    own: dict[str, Any] = {"enable_autograd_cache": False}
    if hasattr(functorch_config, _DONATED):
        own[_DONATED] = getattr(functorch_config, _DONATED)  # `keep_saved` may change it until the end.
    with functorch_config.patch(own):
        if has_partitioner_hook():
            yield {"custom_partitioner_fn": partitioner}
            return
        from torch._inductor import compile_fx

        with mock.patch.object(compile_fx, "min_cut_rematerialization_partition", partitioner):
            yield {}


def keep_saved() -> None:
    """Within `inductor_partitions_with`: the backward writes over no saved tensor. By itself Inductor may, after the last
    time that a saved tensor is read, although another one that is read later lies in the same memory: gradients are
    wrong then."""
    if hasattr(functorch_config, _DONATED):
        setattr(functorch_config, _DONATED, False)


@contextlib.contextmanager
def traced(graph: fx.Graph) -> Iterator[None]:
    """While it is open, PyTorch takes what is done to a graph for a part of its compilation, as it is while Dynamo compiles.

    Ops that may draw random numbers are dead code then, where nobody reads them: elsewhere the backward of a joint graph
    would run again all such ops whose arguments it has, attention without dropout among them.
    """
    if TracingContext.try_get() is not None:
        yield
        return
    values = (node.meta.get("val") for node in graph.nodes)
    with tracing(TracingContext(next((one.fake_mode for one in values if isinstance(one, FakeTensor)), None))):
        yield


def fusion_settings() -> dict[str, Any]:
    """Configuration that keeps Inductor from fusing ops where values would live so much longer that the peak rises
    (2.15; earlier versions have none)."""
    name = "fusion_memory_timeline_peak_memory_pct_threshold"
    return {name: 0.0} if hasattr(torch._inductor.config, name) else {}


def configuration(mode: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Configuration of Inductor, as `torch.compile` takes it.

    Args:
        mode: A name for several settings.
        options: Settings by name, with dashes or underscores.

    Raises:
        UsageError: Inductor has no such mode or setting.
    """
    found: dict[str, Any] = {}
    if mode is not None:
        known = torch._inductor.list_mode_options()
        if mode not in known:
            raise UsageError(f"torch.compile has no mode {mode!r}, but {', '.join(sorted(known))}")
        found |= known[mode]
    settings = torch._inductor.config.get_config_copy()
    for name, value in options.items():
        own = name.replace("-", "_")
        if own not in settings:
            raise UsageError(f"Inductor has no option {name!r}: torch._inductor.list_options() names those that it has")
        found[own] = value
    return found


def call_known(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Calls a function of PyTorch with those of the keywords that its version has."""
    parameters = inspect.signature(function).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return function(*args, **keywords)
    return function(*args, **{name: value for name, value in keywords.items() if name in parameters})


def must_be_in_forward(node: fx.Node) -> bool:
    """Whether tracing has tied a node to the forward; before 2.9 only its tag says so."""
    if hasattr(stock, "_must_be_in_forward"):
        return bool(stock._must_be_in_forward(node))
    return node.meta.get("partitioner_tag") == "must_be_in_forward"


def is_resumed() -> bool:
    """Whether the graph that Dynamo compiles just now goes on after another one of the same function."""
    frame = sys._getframe()
    while frame is not None:
        translator = getattr(frame.f_locals.get("self"), "root_tx", None)
        if translator is not None:
            return str(translator.f_code.co_name).startswith("torch_dynamo_resume_in")
        frame = frame.f_back  # type: ignore[assignment]
    return False


def overwritten(graph: fx.Graph) -> list[fx.Node]:
    """The inputs of a joint graph that the caller overwrites with results of the forward, where the version says which
    (2.9 and later)."""
    output = next(iter(graph.find_nodes(op="output")))
    changes = [getattr(one, "mutated_input", None) for one in output.meta.get("desc", ())]
    inputs = {one.meta["desc"]: one for one in graph.find_nodes(op="placeholder") if "desc" in one.meta}
    return [inputs[one] for one in changes if one in inputs]
