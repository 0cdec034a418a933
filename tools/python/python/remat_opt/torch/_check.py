"""Gradients of compiled graphs compared with those of the model as it is."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ._state import kept_random

Run = Callable[..., Any]
"""A graph as a function of its inputs."""

_TOLERANCE = {torch.float64: 1e-6, torch.float32: 2e-3, torch.float16: 5e-2, torch.bfloat16: 1e-1}
"""Relative error of a gradient in the Euclidean norm that another order of sums may bring about, by type."""
_OF_ALL = 0.05
"""The share of the tolerance that counts relative to the largest gradient: some gradients are rounding errors
around zero, such as that of a bias before a normalization."""


@dataclass(frozen=True)
class Gradients:
    """What a graph gives for some inputs."""

    values: tuple[torch.Tensor, ...]
    """Its results, and inputs without a gradient as it left them, such as running statistics."""
    gradients: tuple[torch.Tensor | None, ...]
    """Those of the inputs that need one."""

    def same_bits(self, other: Gradients) -> bool:
        """Whether all is equal, `nan` where it is `nan`."""
        return self._has_form_of(other) and all(_equal(one, two) for one, two in zip(self._all(), other._all()))

    def error(self, other: Gradients) -> float:
        """The largest error of a value or gradient, where 1 is what another order of sums may bring about; infinite
        where one has a gradient that the other has not."""
        if not self._has_form_of(other):
            return float("inf")
        norms = [0.0 if one is None else _norm(one) for one in other.gradients]
        largest = max((norm for norm in norms if math.isfinite(norm)), default=0.0)
        errors = [_error(one, two, 0.0) for one, two in zip(self.values, other.values)]
        errors += [_error(one, two, largest) for one, two in zip(self.gradients, other.gradients)]
        return max(errors, default=0.0)

    def _has_form_of(self, other: Gradients) -> bool:
        return len(self.values) == len(other.values) and len(self.gradients) == len(other.gradients)

    def _all(self) -> tuple[torch.Tensor | None, ...]:
        return (*self.values, *self.gradients)


class Trial:
    """One set of inputs, with which several forms of a graph can run. What they mutate are copies, and the state of
    random numbers stays as it was."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        self.inputs = inputs
        self._devices = sorted(
            {one.device for one in inputs if isinstance(one, torch.Tensor) and one.device.type == "cuda"},
            key=lambda one: one.index,
        )

    def gradients(self, run: Run) -> Gradients:
        """Results and gradients, on the CPU. Gradients of results that are no scalars are made up, always the same."""
        arguments = [_argument(one) for one in self.inputs]
        tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
        leaves = [one for one in tensors if one.requires_grad]
        others = [one for one in tensors if not one.requires_grad]
        with kept_random(self._devices), torch.enable_grad():
            given = run(*arguments)
            outputs = [one for one in _flat(given) if isinstance(one, torch.Tensor)]
            roots = [one for one in outputs if one.requires_grad]
            values = [one.detach().cpu().clone() for one in (*outputs, *others)]
            seeds = [_tangent(one) for one in roots]
            del given, outputs
            found = self._backward(roots, leaves, seeds)
        return Gradients(tuple(values), tuple(None if one is None else one.detach().cpu() for one in found))

    def step(self, run: Run) -> None:
        """One forward and backward, whose results are dropped."""
        with self.prepared(run) as once:
            once()

    @contextlib.contextmanager
    def prepared(self, run: Run) -> Iterator[Callable[[], None]]:
        """`step` to be called while it is open, with all made beforehand that a step of training does not need."""
        arguments = [_argument(one) for one in self.inputs]
        with kept_random(self._devices):
            yield lambda: self._forward_and_backward(run, arguments)

    def _forward_and_backward(self, run: Run, arguments: list[Any]) -> None:
        leaves = [one for one in arguments if isinstance(one, torch.Tensor) and one.requires_grad]
        with torch.enable_grad():
            given = run(*arguments)
            roots = [one for one in _flat(given) if isinstance(one, torch.Tensor) and one.requires_grad]
            seeds = [torch.ones_like(one) for one in roots]
            del given
            self._backward(roots, leaves, seeds)

    def _backward(self, roots: list[Any], leaves: list[Any], seeds: list[Any]) -> tuple[torch.Tensor | None, ...]:
        """Gradients of the leaves. The backward runs without autocast, as it does in a training step."""
        if not roots or not leaves:
            return ()
        with contextlib.ExitStack() as stack:
            for kind in {one.device.type for one in leaves}:
                stack.enter_context(torch.autocast(kind, enabled=False))
            found: tuple[torch.Tensor | None, ...] = torch.autograd.grad(roots, leaves, seeds, allow_unused=True)
        return found


def _argument(value: Any) -> Any:
    """An input whose gradient can be asked for, and that may be overwritten."""
    if not isinstance(value, torch.Tensor):
        return copy.copy(value)
    if value.requires_grad:
        return value.detach().requires_grad_()
    return value.detach().clone(memory_format=torch.preserve_format)


def _tangent(output: torch.Tensor) -> torch.Tensor:
    if output.numel() == 1:
        return torch.ones_like(output)
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(output.shape, generator=generator, dtype=torch.float32)
    return torch.empty_like(output).copy_(values)


def _flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _equal(one: torch.Tensor | None, two: torch.Tensor | None) -> bool:
    if one is None or two is None:
        return one is two
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    return bool(((one == two) | ((one != one) & (two != two))).all())


def _norm(value: torch.Tensor) -> float:
    wide = value.detach().to(torch.complex128 if value.is_complex() else torch.float64)
    return float(torch.linalg.vector_norm(wide))


def _error(one: torch.Tensor | None, two: torch.Tensor | None, largest: float) -> float:
    if _equal(one, two):
        return 0.0
    if one is None or two is None or one.shape != two.shape or one.dtype != two.dtype:
        return float("inf")
    allowed = _TOLERANCE.get(two.dtype, 0.0) * (_norm(two) + _OF_ALL * largest)
    difference = _norm(one.double() - two.double())
    return difference / allowed if allowed and math.isfinite(difference) else float("inf")
