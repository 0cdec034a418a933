"""Gradients of compiled graphs compared with those of the model as it is."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Run = Callable[..., Any]
"""A graph as a function of its inputs."""

_TOLERANCE = {torch.float64: 1e-6, torch.float32: 2e-3, torch.float16: 5e-2, torch.bfloat16: 1e-1}
"""Relative error of a gradient in the Euclidean norm that another order of sums may bring about, by type."""
_OF_ALL = 0.05
"""The share of the tolerance that counts relative to the norm of all gradients: some gradients are rounding errors
around zero, such as that of a bias before a normalization."""


@dataclass(frozen=True)
class Gradients:
    """What a graph gives for some inputs: its results, then the gradients of those inputs that need one."""

    values: tuple[torch.Tensor | None, ...]

    def same_bits(self, other: Gradients) -> bool:
        """Whether all values are equal, `nan` where it is `nan`."""
        return len(self.values) == len(other.values) and all(
            _equal(one, two) for one, two in zip(self.values, other.values)
        )

    def error(self, other: Gradients) -> float:
        """The largest error of a value, where 1 is what another order of sums may bring about; infinite where one has
        a gradient that the other has not."""
        if len(self.values) != len(other.values):
            return float("inf")
        norms = [0.0 if one is None else _norm(one) for one in other.values]
        largest = max((norm for norm in norms if norm == norm and norm != float("inf")), default=0.0)
        return max(
            (_error(one, two, norm, largest) for one, two, norm in zip(self.values, other.values, norms)), default=0.0
        )


class Trial:
    """One set of inputs, with which several forms of a graph can run. What they mutate are copies, and the state of
    random numbers stays as it was."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        self.inputs = inputs
        self._devices = sorted(
            {one.device.index for one in inputs if isinstance(one, torch.Tensor) and one.device.type == "cuda"}
        )

    def gradients(self, run: Run) -> Gradients:
        """Results and gradients, on the CPU. Gradients of results that are no scalars are made up, always the same."""
        arguments = [_argument(one) for one in self.inputs]
        leaves = [one for one in arguments if isinstance(one, torch.Tensor) and one.requires_grad]
        with torch.random.fork_rng(devices=self._devices), torch.enable_grad():
            given = run(*arguments)
            del arguments
            outputs = [one for one in _flat(given) if isinstance(one, torch.Tensor)]
            roots = [one for one in outputs if one.requires_grad]
            values = [one.detach().cpu().clone() for one in outputs]
            seeds = [_tangent(one) for one in roots]
            del given, outputs
            found = torch.autograd.grad(roots, leaves, seeds, allow_unused=True) if roots and leaves else ()
        return Gradients((*values, *(None if one is None else one.detach().cpu() for one in found)))

    def step(self, run: Run) -> None:
        """One forward and backward, whose results are dropped."""
        self._forward_and_backward(run, [_argument(one) for one in self.inputs])

    def prepared(self, run: Run) -> Callable[[], None]:
        """`step` with its copies of the inputs made beforehand."""
        arguments = [_argument(one) for one in self.inputs]
        return lambda: self._forward_and_backward(run, arguments)

    def _forward_and_backward(self, run: Run, arguments: list[Any]) -> None:
        leaves = [one for one in arguments if isinstance(one, torch.Tensor) and one.requires_grad]
        with torch.random.fork_rng(devices=self._devices), torch.enable_grad():
            given = run(*arguments)
            roots = [one for one in _flat(given) if isinstance(one, torch.Tensor) and one.requires_grad]
            seeds = [torch.ones_like(one) for one in roots]
            del given
            torch.autograd.grad(roots, leaves, seeds, allow_unused=True)


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


def _error(one: torch.Tensor | None, two: torch.Tensor | None, norm: float, largest: float) -> float:
    if one is None or two is None:
        return 0.0 if one is two else float("inf")
    if _equal(one, two):
        return 0.0
    if one.shape != two.shape or one.dtype != two.dtype:
        return float("inf")
    tolerance = _TOLERANCE.get(two.dtype, 0.0)
    allowed = tolerance * (norm + _OF_ALL * largest)
    difference = _norm(one.double() - two.double())
    if difference != difference:
        return float("inf")
    return difference / allowed if allowed else float("inf")
