"""Optimizers of PyTorch as updates in a graph.

The ops and numbers of a step are those that the optimizer itself runs, on a parameter of two elements that has the
options and the number of steps of the real one. So rules of learning rates, and whatever else changes options between
steps, need no words of their own. The state is the optimizer's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import optim
from torch.utils import _pytree as pytree

from ..errors import UsageError
from ._mapped import Mapped
from ._update import MOST_STATES, Recorder, Update

_SUPPORTED: tuple[type[optim.Optimizer], ...] = (optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad)
"""Elementwise in parameter, gradient and state."""

_COUNTER = "step"
"""State with the number of steps; only numbers are computed from it."""

_REFUSED = {
    "fused": "its kernels round in another way than the ops of a graph",
    "capturable": "its numbers are tensors",
    "differentiable": "a planned step is not differentiable itself",
}


class Updates:
    """The updates of the parameters of one optimizer."""

    def __init__(self, optimizer: optim.Optimizer, mapped: Mapped | None = None) -> None:
        """
        Args:
            optimizer: Its state is read and written.
            mapped: Where the state lies, if not in memory.

        Raises:
            UsageError: The optimizer is none that is known to be elementwise, or has an option that cannot be kept to.
        """
        if type(optimizer) not in _SUPPORTED:
            names = ", ".join(one.__name__ for one in _SUPPORTED)
            raise UsageError(f"{type(optimizer).__name__} cannot be part of a planned step; {names} can")
        self.optimizer = optimizer
        self.mapped = mapped
        self.blank: dict[int, torch.Tensor] = {}
        """State by `id` of its parameter that was made for a first step, which has not been made yet."""
        self._groups: dict[int, int] = {}
        self._find_groups()

    def has(self, parameter: torch.nn.Parameter) -> bool:
        """Whether the optimizer updates a parameter."""
        if id(parameter) not in self._groups:
            self._find_groups()  # One may have been added.
        return id(parameter) in self._groups

    def state(self, parameter: torch.nn.Parameter) -> list[torch.Tensor]:
        """The tensors of a parameter's state, in the order in which updates take them; made where there are none yet,
        as the first step of the optimizer would."""
        state = self.optimizer.state[parameter]
        names = self._names(parameter)
        for name in names:
            if state.get(name) is None:
                state[name] = self._first(parameter)
            elif self.mapped is not None:
                state[name] = self.mapped.take(state[name])
        if _has_counter(self.optimizer) and _COUNTER not in state:
            state[_COUNTER] = torch.tensor(0.0, dtype=_counter_dtype())
        return [state[name] for name in names]

    def record(self, parameters: Sequence[torch.nn.Parameter]) -> list[Update]:
        """What the next step does to parameters that have their state."""
        known: dict[Any, Update] = {}
        found = []
        for parameter in parameters:
            state = self.optimizer.state[parameter]
            steps = float(state[_COUNTER]) if _COUNTER in state else 0.0
            is_first = self._is_blank(parameter)
            key = (self._groups[id(parameter)], parameter.dtype, steps, is_first)
            if key not in known:
                known[key] = self._record(parameter, steps, is_first)
            found.append(known[key])
        return found

    def advance(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Counts a step that was made."""
        for parameter in parameters:
            state = self.optimizer.state[parameter]
            if _COUNTER in state:
                state[_COUNTER] += 1
        self.blank = {}

    def drop_blank(self) -> None:
        """Takes away state that only planned steps begin with; the optimizer makes its own in its first step."""
        for parameter, state in self.optimizer.state.items():
            if self._is_blank(parameter):
                del state["momentum_buffer"]
        self.blank = {}

    def _find_groups(self) -> None:
        for index, group in enumerate(self.optimizer.param_groups):
            self._groups |= {id(parameter): index for parameter in group["params"]}

    def _group(self, parameter: torch.nn.Parameter) -> dict[str, Any]:
        group: dict[str, Any] = self.optimizer.param_groups[self._groups[id(parameter)]]
        for option, reason in _REFUSED.items():
            if group.get(option):
                name = type(self.optimizer).__name__
                raise UsageError(f"{name}({option}=True) cannot be part of a planned step: {reason}")
        for option, value in group.items():
            if option != "params" and any(isinstance(one, torch.Tensor) for one in pytree.tree_leaves(value)):
                name = type(self.optimizer).__name__
                raise UsageError(f"{name} with a tensor as `{option}` cannot be part of a planned step: give a number")
        if parameter.is_complex():
            raise UsageError("parameters of complex numbers cannot be updated in a planned step")
        return group

    def _names(self, parameter: torch.nn.Parameter) -> list[str]:
        group = self._group(parameter)
        # From PyTorch 2.7 on AdamW is an Adam.
        if isinstance(self.optimizer, (optim.Adam, optim.AdamW)):
            return ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * bool(group["amsgrad"])
        if isinstance(self.optimizer, optim.SGD):
            return ["momentum_buffer"] * (group["momentum"] != 0)
        if isinstance(self.optimizer, optim.RMSprop):
            more = ["momentum_buffer"] * (group["momentum"] > 0) + ["grad_avg"] * bool(group["centered"])
            return ["square_avg", *more]
        return ["sum"]

    def _first(self, parameter: torch.nn.Parameter) -> torch.Tensor:
        is_blank = isinstance(self.optimizer, optim.SGD)
        # The first step takes the gradient itself, and -0.0 is the number that every gradient can be added to.
        number = -0.0 if is_blank else 0.0
        made = torch.full_like(parameter, number, memory_format=torch.preserve_format, requires_grad=False)
        if self.mapped is not None:
            made = self.mapped.take(made)
        if is_blank:
            self.blank[id(parameter)] = made
        return made

    def _is_blank(self, parameter: torch.nn.Parameter) -> bool:
        made = self.blank.get(id(parameter))
        return made is not None and self.optimizer.state[parameter].get("momentum_buffer") is made

    def _record(self, parameter: torch.nn.Parameter, steps: float, is_first: bool) -> Update:
        # Two elements: a tensor of one may be taken for a number.
        small = torch.nn.Parameter(torch.ones(2, dtype=parameter.dtype))
        small.grad = torch.ones_like(small)
        states = [torch.ones(2, dtype=one.dtype) for one in self.state(parameter)]
        assert len(states) <= MOST_STATES
        kind = type(self.optimizer)
        group = {name: value for name, value in self._group(parameter).items() if name != "params"}
        shadow = kind([small], lr=1.0)
        shadow.param_groups[0].update(group, foreach=_is_foreach(parameter, group))
        if is_first:
            shadow.param_groups[0]["dampening"] = 0
        state: dict[str, Any] = dict(zip(self._names(parameter), states, strict=True))
        counters = []
        if _has_counter(self.optimizer):
            state[_COUNTER] = torch.tensor(steps, dtype=_counter_dtype())
            counters.append(state[_COUNTER])
        shadow.state[small] = state
        recorder = Recorder([small, small.grad, *states], counters, kind.__name__)
        with torch.no_grad(), recorder:
            shadow.step()
        return recorder.update()


def _is_foreach(parameter: torch.nn.Parameter, group: Mapping[str, Any]) -> bool:
    """Whether the optimizer updates a parameter by ops on lists: where its group says so, or by itself on CUDA."""
    return bool(group["foreach"]) if group.get("foreach") is not None else parameter.device.type == "cuda"


def _has_counter(optimizer: optim.Optimizer) -> bool:
    return not isinstance(optimizer, optim.SGD)


def _counter_dtype() -> torch.dtype:
    return torch.float64 if torch.get_default_dtype() == torch.float64 else torch.float32
