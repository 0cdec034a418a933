"""A training step as PyTorch runs it, without a plan."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ._optimizer import Updates


class Eager:
    """Steps of a model by `loss.backward(); optimizer.step()`. They read and write what planned steps do: `.grad` stays
    as it is where an optimizer is part of the step."""

    def __init__(
        self,
        model: torch.nn.Module,
        updates: Updates | None,
        clip_grad_norm: float | None = None,
        scaler: torch.amp.GradScaler | None = None,
    ) -> None:
        """The arguments are those of `TrainStep`."""
        self._model = model
        self._updates = updates
        self._clip_grad_norm = clip_grad_norm
        self._scaler = scaler
        self.norm: torch.Tensor | None = None
        """The norm of the gradients of the last step, where they are clipped."""

    def step(self, args: Sequence[Any]) -> torch.Tensor:
        """Makes a step and gives the loss, without gradient."""
        if self._updates is None:
            return self._backward(args)
        self._updates.drop_blank()
        with self._own_gradients():
            loss = self._backward(args)
            self._clip()
            with torch._C._DisableAutocast():
                self._updates.optimizer.step()
        return loss

    def gradients(self, args: Sequence[Any]) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The loss, and gradients by name of the parameter; nothing is updated but buffers."""
        with self._own_gradients():
            loss = self._backward(args)
            self._clip()
            found = {name: one.grad for name, one in self._model.named_parameters() if one.grad is not None}
        return loss, found

    def _backward(self, args: Sequence[Any]) -> torch.Tensor:
        def detached(one: Any) -> Any:
            return one.detach() if isinstance(one, torch.Tensor) else one

        # Parameters that autocast has converted are those before the last step.
        torch.clear_autocast_cache()
        with torch.enable_grad():
            loss: torch.Tensor = self._model(*pytree.tree_map(detached, tuple(args)))
            torch.clear_autocast_cache()
            with torch._C._DisableAutocast():
                (loss if self._scaler is None else self._scaler.scale(loss)).backward()
        return loss.detach()

    def _clip(self) -> None:
        if self._clip_grad_norm is not None:
            self.norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._clip_grad_norm)

    @contextlib.contextmanager
    def _own_gradients(self) -> Iterator[None]:
        """While it is open, no parameter has a gradient of before."""
        groups = [] if self._updates is None else self._updates.optimizer.param_groups
        parameters = [*self._model.parameters(), *(one for group in groups for one in group["params"])]
        held = [(one, one.grad) for one in {id(one): one for one in parameters}.values()]
        try:
            for one, _ in held:
                one.grad = None
            yield
        finally:
            for one, gradient in held:
                one.grad = gradient
