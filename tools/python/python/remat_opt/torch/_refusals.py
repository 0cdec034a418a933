"""What a planned step would leave out without a word, and what it is therefore refused for."""

from __future__ import annotations

import torch
from torch.nn.modules import module as _modules
from torch.optim import optimizer as _optimizers
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ..errors import UsageError

_WRAPPERS = {
    "DataParallel": "it copies the model to several devices",
    "DistributedDataParallel": "its hooks add up the gradients of several processes",
    "FullyShardedDataParallel": "its hooks gather and scatter parameters",
    "FSDPModule": "its hooks gather and scatter parameters",
    "ReplicateModule": "its hooks add up the gradients of several processes",
}
"""Classes of PyTorch around models, and why they cannot be planned."""


def refuse_lost(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
    """Looks for hooks that would not run in a planned step, and for modules that need them.

    Hooks of a module's forward are traced with it, as are those of buffers and of results.

    Raises:
        UsageError: There is one; the message names what has it.
    """
    for name, module in model.named_modules():
        where = f"module `{name}`" if name else "the model"
        for kind in type(module).__mro__:
            if kind.__name__ in _WRAPPERS and kind.__module__.startswith("torch."):
                reason = _WRAPPERS[kind.__name__]
                raise UsageError(f"{where} is a {kind.__name__}, which cannot be part of a planned step: {reason}")
        if module._backward_hooks or module._backward_pre_hooks:
            raise UsageError(f"hooks of the backward of {where} would not run in a planned step")
    if _modules._global_backward_hooks or _modules._global_backward_pre_hooks:
        raise UsageError("hooks of the backward of all modules would not run in a planned step")
    for name, parameter in model.named_parameters():
        if is_traceable_wrapper_subclass(parameter):
            wrapper = type(parameter).__name__
            raise UsageError(f"parameter `{name}` is a {wrapper}, which has no memory of its own to plan")
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise UsageError(f"hooks of parameter `{name}` would not run in a planned step")
    if optimizer is None:
        return
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        raise UsageError("hooks of the optimizer's step would not run in a planned step")
    if _optimizers._global_optimizer_pre_hooks or _optimizers._global_optimizer_post_hooks:
        raise UsageError("hooks of the steps of all optimizers would not run in a planned step")
