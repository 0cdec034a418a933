"""The first step of a plan compared with the step that eager PyTorch makes from the same state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ._budget import objects_around
from ._check import Gradients
from ._peak import free_bytes
from ._report import Report
from ._state import State, devices_of

Step = Callable[[], torch.Tensor]
"""Makes a step from the state as it is, and gives the loss."""

_CLOSE = 1.0
"""The largest error of `Gradients.error` that passes where other bits are explained."""
_NO_MEMORY = ("out of memory", "allocate memory", "not enough memory")
"""What errors of allocators say."""


@dataclass(frozen=True)
class Forms:
    """One step in several forms, which all begin at the state of the model."""

    planned: Step
    eager: Step
    traced: Step
    """The traced graph in its own order."""
    planned_gradients: Callable[[], Gradients]
    """Loss, buffers and gradients of the planned step, which is made."""
    eager_gradients: Callable[[], Gradients]


def first_step(
    model: torch.nn.Module, state: State, forms: Forms, report: Report, *, strict: bool = False
) -> torch.Tensor:
    """Makes a planned step and the same one in eager PyTorch, and compares hashes of all that they leave: loss,
    parameters, buffers, state of the optimizer, gradients, random numbers.

    The model is left as one step leaves it: the planned one, or the eager one where they differ. Other bits are
    tolerated where eager PyTorch has others in each run, or where the traced graph has them in its own order, too; then
    gradients are compared up to rounding.

    Args:
        model: What is trained.
        state: What its steps change.
        forms: The step.
        report: Gets `gradients`, notes, and `fallback` where the planned step is not to be used.
        strict: Whether that raises.

    Returns:
        The loss.

    Raises:
        RuntimeError: The planned step is not to be used, and `strict`.
        Exception: What eager PyTorch raises. The state is that of before in either case.
    """
    report.fallback = None
    needed = report.baseline_bytes - report.external_bytes + state.size()
    needed += objects_around(needed)
    report.check_bytes = report.external_bytes + needed
    if needed > (free := free_bytes("cuda" if devices_of(model) else "cpu")):
        return _unchecked(forms, report, f"that takes {needed} bytes besides the model, and {free} are free")
    saved = state.save()
    expected = None
    try:
        expected = state.digests(loss := forms.eager())
    except Exception as error:
        saved.restore()
        if not _is_memory(error):
            raise
    if expected is None:  # Not in the handler, where the error holds the memory of the step that failed.
        del saved
        return _unchecked(forms, report, "it does not fit into memory")
    if (name := saved.overwritten()) is not None:
        report.fallback = f"the model overwrites `{name}`, which the optimizer does not update"
        if strict:
            raise RuntimeError(report.fallback)
        return loss
    saved.restore()
    reason = None
    try:
        found = state.digests(loss := forms.planned())
        if found == expected:
            report.gradients = "same bits"
            return loss
        reason = f"{_difference(found, expected)} has not the bits of eager PyTorch"
        if _is_explained(state, saved.restore, forms, found, expected, report):
            saved.restore()
            return forms.planned()
        report.gradients = "wrong"
    except Exception as error:  # Training goes on whatever fails here.
        reason = f"{reason or 'the planned step failed'}: {type(error).__name__}: {error}"
    report.fallback = reason
    saved.restore()
    if strict:
        raise RuntimeError(reason)
    del saved
    return forms.eager()


def _unchecked(forms: Forms, report: Report, reason: str) -> torch.Tensor:
    report.check_bytes = None
    report.notes.append(f"the step was not compared with eager PyTorch: {reason}")
    return forms.planned()


def _is_memory(error: Exception) -> bool:
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(one in str(error).lower() for one in _NO_MEMORY)


def _difference(found: dict[str, str], expected: dict[str, str]) -> str:
    """The first name under which the two have something else."""
    return next(name for name in (*expected, *found) if found.get(name) != expected.get(name))


def _is_explained(
    state: State,
    restore: Callable[[], None],
    forms: Forms,
    found: dict[str, str],
    expected: dict[str, str],
    report: Report,
) -> bool:
    """Whether bits differ without a plan, too, and gradients are right up to rounding."""
    restore()
    if state.digests(forms.eager()) != expected:
        note = "the model as it is gives other bits in each run"
    else:
        restore()
        if state.digests(forms.traced()) != found:
            return False
        note = "the bits are those of the graph that PyTorch traces, not those of the model"
    restore()
    theirs = forms.eager_gradients()
    restore()
    report.gradient_error = forms.planned_gradients().error(theirs)
    if report.gradient_error > _CLOSE:
        return False
    report.gradients = "close"
    report.notes.append(note)
    return True
