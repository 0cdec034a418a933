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
from ._together import Together

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
    gradient_bytes: int = 0
    """Bytes of all gradients, where an optimizer is part of the step: its parameters change, and no gradient is left."""


def first_step(
    model: torch.nn.Module, state: State, forms: Forms, report: Report, *, strict: bool = False
) -> torch.Tensor:
    """Makes a planned step and the same one in eager PyTorch, and compares hashes of all that they leave: loss,
    parameters, buffers, state of the optimizer, gradients, random numbers. Where an optimizer is part of the step, gradients
    are compared before: at a rate of learning of 0, or a gradient of 0, the step leaves no trace of a parameter that
    was read after its update.

    The model is left as one step leaves it: the planned one, or the eager one where they differ. Other bits are
    tolerated where eager PyTorch has others in each run, or where the traced graph has them in its own order, too; then
    gradients are compared up to rounding. Processes that train together decide together whether plans are used, and
    other bits are not tolerated.

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
        Exception: What eager PyTorch raises. The state is that of before in either case, but for parameters that the
            model overwrites itself.
    """
    report.fallback, together = None, Together()
    needed = report.baseline_bytes - report.external_bytes + state.size()
    planned = (report.promised_bytes or 0) - report.external_bytes + state.size() + 3 * forms.gradient_bytes
    needed = max(needed, planned if forms.gradient_bytes else 0)
    needed += objects_around(needed, report.tensors)
    report.check_bytes = report.external_bytes + needed
    free = min(map(free_bytes, [str(one) for one in devices_of(model)] or ["cpu"]))
    reason = f"that takes {needed} bytes besides the model, and {free} are free" if needed > free else None
    if (reason := together.reason(reason)) is not None:
        return _not_compared(forms, report, reason, together, strict)
    saved, failed = state.save(), None
    expected: dict[str, str] = {}
    try:
        expected = state.digests(loss := forms.eager())
    except Exception as error:
        if not _is_memory(error):
            failed = error
        reason = "it does not fit into memory"
    # Not in the handler, where the error holds the memory of the step that failed.
    if failed is not None or (reason := together.reason(reason)) is not None:
        saved.restore()
        if failed is not None:
            together.reason(f"{type(failed).__name__}: {failed}")
            raise failed
        del saved
        return _not_compared(forms, report, reason or "", together, strict)
    if (name := saved.overwritten()) is not None:
        reason = f"the model overwrites `{name}`, which the optimizer does not update"
    if (reason := together.reason(reason)) is not None:
        report.fallback = reason
        if strict:
            saved.restore()
            raise RuntimeError(reason)
        return loss
    saved.restore()
    try:
        loss, report.gradients, reason = _planned(state, saved.restore, forms, expected, report, together.is_alone)
    except Exception as error:  # Training goes on whatever fails here.
        reason = f"the planned step failed: {type(error).__name__}: {error}"
    if (reason := together.reason(reason)) is None:
        return loss
    report.fallback = reason
    saved.restore()
    del saved
    if strict:
        raise RuntimeError(reason)
    return forms.eager()


def _planned(
    state: State,
    restore: Callable[[], None],
    forms: Forms,
    expected: dict[str, str],
    report: Report,
    is_alone: bool,
) -> tuple[torch.Tensor, str, str | None]:
    """Makes the planned step. Its loss, how it compares with hashes of eager PyTorch, and why it is not to be used."""
    if forms.gradient_bytes:
        theirs = forms.eager_gradients()
        restore()
        error = forms.planned_gradients().error(theirs)
        restore()
        del theirs
        if not error <= _CLOSE:
            report.gradient_error = error
            reason = f"a gradient differs bitwise from eager PyTorch ({error:.2g} times the tolerance)"
            return torch.empty(()), "wrong", reason
    found = state.digests(loss := forms.planned())
    if found == expected:
        return loss, "same bits", None
    reason = f"{_difference(found, expected)} differs bitwise from eager PyTorch"
    if is_alone and _is_explained(state, restore, forms, found, expected, report):
        restore()
        return forms.planned(), "close", None
    return loss, "wrong", reason


def _not_compared(forms: Forms, report: Report, reason: str, together: Together, strict: bool) -> torch.Tensor:
    """Makes a step that cannot be compared: as planned, but where it is not known what other processes do."""
    report.check_bytes = None
    if not together.is_broken:
        report.notes.append(f"the step was not compared with eager PyTorch: {reason}")
        return forms.planned()
    report.fallback = reason
    if strict:
        raise RuntimeError(reason)
    return forms.eager()


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
        note = "the original model differs bitwise from run to run"
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
    report.notes.append(note)
    return True
