"""What PyTorch's wrappers of models for several processes hold and do around the graphs of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

_THREADS = 2
"""Threads of a process group of gloo (`ProcessGroupGloo::Options`)."""
_PIECES, _PIECE = 2, 1 << 20
"""Pieces of a bucket that gloo holds at a time while it adds it up (a ring, `gloo/allreduce.cc`), and bytes of the largest."""

GATHERED = 'fully_shard gathers parameters around the graph, and others of the step share the budget: plan with inner="aot_eager"'
"""Why a graph is only a part of a step, and what plans such a step."""


@dataclass(frozen=True)
class Around:
    """What wrappers hold when a step begins, in bytes."""

    stays: int = 0
    """What is there from step to step: buckets in which `DistributedDataParallel` adds up gradients, a copy of each."""
    goes: int = 0
    """What is not: parameters that `fully_shard` has gathered, and shards of gradients of earlier steps."""
    gathered: int = 0
    """Those of `goes` that came since the step began: parameters."""
    sums: int | None = None
    """Most bytes that sums of gradients over processes take for themselves at any time of the backward; `None` where the
    gradients of the step are not added up (`no_sync`, for instance). What NCCL takes is not PyTorch's memory."""
    shards: Mapping[int, int] = field(default_factory=dict)
    """What this process holds of parameters that graphs are given whole, by the `id` of these."""


def around() -> Around:
    """What wrappers hold now, in the forward of a model."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return Around()
    wrapper = torch.nn.parallel.DistributedDataParallel._get_active_ddp_module()
    groups = [group for state in _states() for group in _groups(state)]
    parameters = [one for group in groups for one in group.fsdp_params]
    gathered = [one for one in parameters if getattr(one, "_unsharded_param", None) is not None]
    gradients = (one.sharded_param.grad for one in parameters)
    whole = sum(one._unsharded_param.untyped_storage().nbytes() for one in gathered)
    shards = sum(one.to_local().nbytes for one in gradients if one is not None)
    sums = None if wrapper is None else _sums(wrapper)
    return Around(
        stays=bucket_bytes(),
        goes=whole + shards,
        gathered=whole,
        sums=0 if sums is None and any(group.reduce_grads for group in groups) else sums,
        shards={id(one._unsharded_param): one._sharded_param_data.nbytes for one in gathered},
    )


def bucket_bytes() -> int:
    """Bytes of the buckets of the `DistributedDataParallel` whose forward runs."""
    if not torch.distributed.is_available():
        return 0
    wrapper = torch.nn.parallel.DistributedDataParallel._get_active_ddp_module()
    return 0 if wrapper is None else sum(_sizes(wrapper))


def is_gathered() -> bool:
    """Whether the forward of a model runs whose parameters `fully_shard` gathers."""
    return any(state._training_state.name == "FORWARD" for state in _states())


def after_backward(call: Callable[[], None]) -> None:
    """Calls something after all that autograd does in the backward that runs, wrappers' own last calls among it.

    Args:
        call: It is called at once where no backward of autograd runs.
    """
    queue = torch.autograd.Variable._execution_engine.queue_callback
    try:
        # What wrappers put into the queue before the backward ends comes after the first call, and before the second one.
        queue(lambda: queue(call))
    except RuntimeError:
        call()


def _states() -> Iterator[Any]:
    """What `fully_shard` knows of each module that it was called for."""
    if not torch.distributed.is_available():
        return
    from torch.distributed import _composable_state

    for one in list(_composable_state._module_state_mapping.values()):
        # Some versions keep weak references.
        state = one() if callable(one) else one
        if any(kind.__name__ == "FSDPState" for kind in type(state).__mro__):
            yield state


def _groups(state: Any) -> list[Any]:
    """Parameters that are gathered together; older versions have one such group for each module."""
    if (several := getattr(state, "_fsdp_param_groups", None)) is not None:
        return list(several)
    return [] if state._fsdp_param_group is None else [state._fsdp_param_group]


def _sizes(wrapper: torch.nn.parallel.DistributedDataParallel) -> list[int]:
    return [one.numel() * one.element_size() for one in wrapper._module_parameters if one.requires_grad]


def _sums(wrapper: torch.nn.parallel.DistributedDataParallel) -> int | None:
    """What threads of gloo take for the buckets that they add up while the backward runs."""
    if not wrapper.require_backward_grad_sync:
        return None
    if torch.distributed.get_backend(wrapper.process_group) != "gloo":
        return 0
    sizes = _sizes(wrapper)
    # A bucket is closed when it has reached the limit.
    largest = min(sum(sizes), wrapper.bucket_bytes_cap + max(sizes))
    pieces = _PIECES * torch.distributed.get_world_size(wrapper.process_group)
    return _THREADS * _PIECES * min(_PIECE, -(-largest // pieces))
