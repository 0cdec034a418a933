"""What PyTorch's wrappers of models hold beside what graphs read, where several processes train together."""

from __future__ import annotations

from collections.abc import Callable

import torch

_THREADS = 2
"""Threads of a process group of gloo (`ProcessGroupGloo::Options`)."""
_PIECES, _PIECE = 2, 1 << 20
"""Pieces of a bucket that gloo holds at a time while it adds it up (a ring, `gloo/allreduce.cc`), and bytes of the largest."""


def _around() -> torch.nn.parallel.DistributedDataParallel | None:
    """The `DistributedDataParallel` whose forward runs."""
    if not torch.distributed.is_available():
        return None
    return torch.nn.parallel.DistributedDataParallel._get_active_ddp_module()


def bucket_bytes() -> int:
    """Bytes of the buckets in which the `DistributedDataParallel` whose forward runs adds up gradients: a copy of each, which
    stays from step to step."""
    if (wrapper := _around()) is None:
        return 0
    return sum(one.numel() * one.element_size() for one in wrapper._module_parameters if one.requires_grad)


def sum_bytes() -> int | None:
    """Most bytes that sums of gradients over processes take for themselves at a time; `None` where the forward that runs
    has none (it is within `no_sync`, for instance).

    Threads of gloo add up several buckets at a time while the backward runs. What NCCL takes is not PyTorch's memory.
    """
    wrapper = _around()
    if wrapper is None or not wrapper.require_backward_grad_sync:
        return None
    if torch.distributed.get_backend(wrapper.process_group) != "gloo":
        return 0
    sizes = [one.numel() * one.element_size() for one in wrapper._module_parameters if one.requires_grad]
    # A bucket is closed when it has reached the limit.
    largest = min(sum(sizes), wrapper.bucket_bytes_cap + max(sizes))
    pieces = _PIECES * torch.distributed.get_world_size(wrapper.process_group)
    return _THREADS * _PIECES * min(_PIECE, -(-largest // pieces))


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
