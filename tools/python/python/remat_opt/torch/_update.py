"""The update of one parameter as one op, `remat_opt::update`.

What an optimizer of PyTorch does to a parameter is recorded as a program: a list of ATen ops, which only the numbers
of a step (learning rate, bias corrections) are missing from. The op runs the program, so a graph has one node for each
parameter, whose numbers are an input of the graph.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from ._effects import UnsupportedGraph

MOST_STATES = 3
"""How many tensors of state a parameter may have."""

_TENSOR, _SCALAR = "tensor", "scalar"
_GRADIENT = 1
"""Position of the gradient among the values of a program; the parameter stands before it, states behind."""


@dataclass(frozen=True)
class Update:
    """What an optimizer does to one parameter in one step."""

    program: str
    """The ops, as JSON; the same in every step unless the options of the optimizer change."""
    scalars: tuple[float, ...]
    """The numbers of this step."""


class Recorder(TorchDispatchMode):
    """Records the ops of an update while they run."""

    def __init__(self, tensors: Sequence[torch.Tensor], counters: Sequence[torch.Tensor], name: str) -> None:
        """
        Args:
            tensors: Parameter, gradient, and state, which the ops read and write.
            counters: State that only numbers are computed from.
            name: Of the optimizer, for messages.
        """
        super().__init__()
        self._held = list(tensors)
        self._index = {id(one): index for index, one in enumerate(tensors)}
        self._counters = list(counters)
        self._name = name
        self._ops: list[Any] = []
        self._scalars: list[float] = []

    def update(self) -> Update:
        """What was recorded."""
        return Update(json.dumps(self._ops), tuple(self._scalars))

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        result = func(*args, **kwargs)
        if func.namespace == "profiler":
            return result
        read = [one for value in (*args, *kwargs.values()) for one in _each(value) if isinstance(one, torch.Tensor)]
        if func is torch.ops.aten.lift_fresh.default or (read and all(self._is_counter(one) for one in read)):
            if isinstance(result, torch.Tensor) and not self._is_counter(result):
                self._counters.append(result)
            return result
        given = result
        if func._schema.name.startswith("aten::_foreach_"):
            # Of lists of one tensor each; what overwrites its first argument gives nothing.
            (result,) = args[0] if result is None else result
        if not isinstance(result, torch.Tensor):
            raise UnsupportedGraph(None, f"{self._name}: `{func}` gives {type(result).__name__}, which is no tensor")
        schema = func._schema.arguments
        numbers = {one.name for one in schema if str(one.type) in ("number", "float", "Tensor", "List[number]")}
        # Calls leave out what is the default, which a number may be in one step and not in the next.
        kwargs |= {
            one.name: one.default_value
            for one in schema[len(args) :]
            if one.name not in kwargs and str(one.type) == "number" and one.has_default_value()
        }
        positional = [
            self._encoded(func, value, one.name in numbers) for value, one in zip(args, schema, strict=False)
        ]
        named = {name: self._encoded(func, value, name in numbers) for name, value in kwargs.items()}
        if result is self._held[_GRADIENT]:
            raise UnsupportedGraph(None, f"{self._name}: `{func}` overwrites the gradient")
        if id(result) not in self._index:
            self._index[id(result)] = len(self._held)
            self._held.append(result)
        self._ops.append([str(func), positional, named, self._index[id(result)]])
        return given

    def _is_counter(self, tensor: torch.Tensor) -> bool:
        return any(one is tensor for one in self._counters)

    def _encoded(self, func: OpOverload, value: Any, is_number: bool) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self._index:
                raise UnsupportedGraph(None, f"{self._name}: `{func}` reads a tensor that is no state of the parameter")
            return {_TENSOR: self._index[id(value)]}
        if isinstance(value, (list, tuple)):
            return [self._encoded(func, one, is_number) for one in value]
        if is_number and isinstance(value, (int, float)) and not isinstance(value, bool):
            self._scalars.append(float(value))
            return {_SCALAR: len(self._scalars) - 1}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise UnsupportedGraph(None, f"{self._name}: `{func}` takes {value!r}, which an update in a graph cannot have")


@dataclass(frozen=True)
class _Op:
    call: Callable[..., torch.Tensor]
    args: list[Any]
    kwargs: dict[str, Any]
    result: int
    dead: tuple[int, ...]
    """Values that nothing later reads."""


@functools.lru_cache(maxsize=None)
def _ops(program: str) -> tuple[int, tuple[_Op, ...]]:
    """How many values a program has, and its ops."""
    found: list[_Op] = []
    later: set[int] = set()
    values = 0
    for name, args, kwargs, result in reversed(json.loads(program)):
        given = (one for value in (*args, *kwargs.values()) for one in _each(value))
        read = {one[_TENSOR] for one in given if isinstance(one, dict) and _TENSOR in one}
        found.append(_Op(_overload(name), args, kwargs, result, tuple((read | {result}) - later)))
        later |= read | {result}
        values = max(values, *later)
    return values + 1, tuple(reversed(found))


def workspace(program: str, states: int, size: int) -> int:
    """Bytes that a program takes besides parameter, gradient and state.

    Args:
        program: Elementwise ops, each of which gives a tensor like the parameter, or overwrites one.
        states: How many tensors of state there are.
        size: Bytes of the parameter.
    """
    held: set[int] = set()
    most = 0
    for op in _ops(program)[1]:
        if op.result >= 2 + states:
            held.add(op.result)
        most = max(most, len(held))
        held -= set(op.dead)
    return most * size


def _each(value: Any) -> Sequence[Any]:
    """The elements of a list, or the value itself."""
    return value if isinstance(value, (list, tuple)) else (value,)


def _overload(name: str) -> OpOverload:
    namespace, packet, overload = name.split(".")
    found: OpOverload = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    return found


def _update(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    first: torch.Tensor | None,
    second: torch.Tensor | None,
    third: torch.Tensor | None,
    scalars: torch.Tensor,
    program: str,
) -> None:
    count, ops = _ops(program)
    states = (one for one in (first, second, third) if one is not None)
    tensors: list[torch.Tensor | None] = [parameter, gradient, *states]
    tensors += [None] * (count - len(tensors))
    numbers = scalars.tolist()

    def value(one: Any) -> Any:
        if isinstance(one, list):
            return [value(each) for each in one]
        if isinstance(one, dict):
            return tensors[one[_TENSOR]] if _TENSOR in one else numbers[one[_SCALAR]]
        return one

    for op in ops:
        args, kwargs = [value(one) for one in op.args], {name: value(one) for name, one in op.kwargs.items()}
        given = op.call(*args, **kwargs)
        if given is not None:  # Ops on lists that overwrite give nothing.
            tensors[op.result] = given[0] if isinstance(given, (list, tuple)) else given
        del args, kwargs, given
        for index in op.dead:
            tensors[index] = None


_library = torch.library.Library("remat_opt", "FRAGMENT")
_library.define(
    "update(Tensor(a!) parameter, Tensor gradient, Tensor(b!)? first, Tensor(c!)? second, Tensor(d!)? third, "
    "Tensor scalars, str program) -> ()"
)
_library.impl("update", _update, "CompositeExplicitAutograd")
_library.impl("update", lambda *_: None, "Meta")

UPDATE = torch.ops.remat_opt.update.default
"""`update(parameter, gradient, first, second, third, scalars, program)`: overwrites the parameter and its state."""
