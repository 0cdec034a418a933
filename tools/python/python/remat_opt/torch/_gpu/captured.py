"""A step that a program makes, as a module: a call of a model, and what the program makes of its result up to the loss."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...errors import ModelError


@dataclass(frozen=True)
class _Result:
    """The tensor that is leaf `leaf` of what call `call` gave; call -1 is that of the model."""

    call: int
    leaf: int


@dataclass(frozen=True)
class _Given:
    """A tensor from elsewhere: an input."""

    index: int


@dataclass
class _Call:
    func: Callable[..., Any]
    args: Any
    kwargs: Any


class Tape:
    """What is called between a model's call and the backward of its loss. It holds no tensor, so that none lives longer.

    `reason` says why there is no step of one model, where there is none.
    """

    def __init__(self) -> None:
        self.reason: str | None = "the script calls no model before its first `backward`"
        self.model: torch.nn.Module | None = None
        self.precision: torch.dtype | None = None
        self.inputs: list[torch.Tensor] = []
        """Tensors without numbers, on `meta`: those that the model is called with, then others."""
        self._spec: Any = None
        self._arguments: list[Any] = []
        self._calls: list[_Call] = []
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], _Result | _Given]] = {}
        self._loss: _Result | None = None
        self._is_ended = False

    def begin(self, model: torch.nn.Module, args: Any, kwargs: Any, result: Any, precision: torch.dtype | None) -> None:
        """A model was called, outside of any other."""
        leaves = [one for one in pytree.tree_leaves(result) if isinstance(one, torch.Tensor)]
        if self._is_ended or not any(one.requires_grad for one in leaves):
            return
        if self.model is not None:
            self.reason = f"several models are called: `{type(self.model).__name__}`, `{type(model).__name__}`"
            self._is_ended = True
            return
        self.model, self.precision, self.reason = model, precision, None
        flat, self._spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
        self._arguments = [self._taken(one) for one in flat]
        self._results(-1, result)

    def add(self, func: Callable[..., Any], args: Any, kwargs: Any, result: Any) -> None:
        """A function was called outside of any model."""
        if self._is_ended or self.model is None:
            return
        if not any(isinstance(one, torch.Tensor) for one in pytree.tree_leaves(result)):
            return
        if not any(self._is_result(one) for one in pytree.tree_leaves((args, kwargs))):
            return
        self._calls.append(_Call(func, *pytree.tree_map(self._taken, (args, kwargs))))
        self._results(len(self._calls) - 1, result)

    def end(self, tensors: Any) -> None:
        """What is differentiated."""
        if self._is_ended or self.model is None:
            return
        self._is_ended = True
        leaves = pytree.tree_leaves(tensors)
        found = self._known_as(leaves[0]) if len(leaves) == 1 else None
        if not isinstance(found, _Result):
            self.reason = "what is differentiated is not one number that was made of the model's result"
            return
        self._loss = found
        self._known = {}

    def module(self) -> CapturedStep:
        """The step; its inputs are `inputs`.

        Raises:
            ModelError: There is none.
        """
        if self.reason is not None or self.model is None or self._loss is None:
            raise ModelError(f"{self.reason}: give `--entry FILE:FUNCTION` for what needs one model and its loss")
        return CapturedStep(self.model, self._spec, self._arguments, self._calls, self._loss)

    def _results(self, call: int, result: Any) -> None:
        for leaf, one in enumerate(pytree.tree_leaves(result)):
            if isinstance(one, torch.Tensor):
                self._known[id(one)] = (weakref.ref(one), _Result(call, leaf))

    def _known_as(self, value: Any) -> _Result | _Given | None:
        known = self._known.get(id(value))
        return known[1] if known is not None and known[0]() is value else None

    def _is_result(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and isinstance(self._known_as(value), _Result)

    def _taken(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if isinstance(value, torch.nn.Parameter):
            self.reason = "the loss reads a parameter beside the model"
        known = self._known_as(value)
        if known is None:
            with torch._C.DisableTorchFunction():
                made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
            known = _Given(len(self.inputs))
            self.inputs.append(made)
            self._known[id(value)] = (weakref.ref(value), known)
        return known


class CapturedStep(torch.nn.Module):
    """`module(*inputs)` is the loss."""

    def __init__(
        self,
        model: torch.nn.Module,
        spec: Any,
        arguments: Sequence[Any],
        calls: Sequence[_Call],
        loss: _Result,
    ) -> None:
        super().__init__()
        self.model = model
        self._spec, self._arguments, self._calls, self._loss = spec, arguments, calls, loss
        self.train(model.training)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """The loss of the inputs."""
        made: dict[int, list[Any]] = {}

        def value(one: Any) -> Any:
            if isinstance(one, _Given):
                return inputs[one.index]
            return made[one.call][one.leaf] if isinstance(one, _Result) else one

        args, kwargs = pytree.tree_unflatten([value(one) for one in self._arguments], self._spec)
        made[-1] = pytree.tree_leaves(self.model(*args, **kwargs))
        for index, call in enumerate(self._calls):
            given, named = pytree.tree_map(value, (call.args, call.kwargs), is_leaf=lambda one: isinstance(one, (_Given, _Result)))
            made[index] = pytree.tree_leaves(call.func(*given, **named))
        loss: torch.Tensor = made[self._loss.call][self._loss.leaf]
        return loss
