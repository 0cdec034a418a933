"""Training steps of PyTorch as problems, for solvers and for research."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Literal

import torch

from .._problem import Problem
from ._effects import names_of
from ._optimizer import Updates
from ._whole import WholeStep, whole_step


def capture(
    model: torch.nn.Module,
    args: Sequence[Any],
    optimizer: torch.optim.Optimizer | None = None,
    *,
    cut: bool = False,
    durations: Literal["measured", "estimated"] = "measured",
    name: str = "step",
    recomputable: Collection[str] = (),
) -> Problem:
    """A training step as a problem: forward, loss, backward, and the updates of an optimizer. Nothing of it runs.

    Ops have the names of the traced graph, updates those of their parameters (`update_blocks_0_norm1_weight`), tensors
    that come from outside those of parameters and buffers. Durations are in nanoseconds, sizes in bytes as PyTorch's
    allocator takes them. `docs/training-graphs.md` says more.

    Args:
        model: `model(*args)` gives the loss.
        args: With the shapes of the step.
        optimizer: As of `TrainStep`. Without one, gradients stay to the end.
        cut: Whether forward and backward run as two functions, as in PyTorch: an op `__cut__` stands between them.
            With an optimizer, updates follow the cut.
        durations: `"measured"` on this machine, or `"estimated"` from FLOPs and bytes, the same on every machine.
            Workspace is measured in any case.
        name: Of the problem.
        recomputable: As of `TrainStep`.

    Raises:
        ModelError: The model gives no loss.
        UnsupportedGraph: A part of the step cannot be planned; `.op` names it.
        UsageError: The optimizer cannot be part of a step.
    """
    updates = None if optimizer is None else Updates(optimizer)
    names = names_of(recomputable)
    step = whole_step(
        model, args, updates, cut=cut, name=name, estimated=durations == "estimated", recomputable=names
    )
    _name_inputs(step)
    return step.source.problem()


def _name_inputs(step: WholeStep) -> None:
    """Gives tensors from outside the names that they have in the model."""
    known = {node.name: name for part in (step.traced.parameters, step.traced.buffers) for name, node in part.items()}
    parameters = {step.traced.parameters[name].name: name for name in step.updated}
    for index, node in enumerate(step.traced.inputs):
        known[node.name] = f"input {index}"
    for tensor in step.source.document["tensors"]:
        if "producer" in tensor:
            continue
        own = known.get(tensor["name"])
        match = re.fullmatch(r"(state_\d+|numbers)_of_(\w+)", tensor["name"])
        if own is None and match is not None:
            own = f"{match[1].replace('_', ' ')} of {parameters[match[2]]}"
        tensor["name"] = own or tensor["name"]
