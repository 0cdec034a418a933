"""What a training step changes: saved, put back, and told apart by hashes."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import pickle
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ._optimizer import Updates

_CHUNK = 1 << 24
"""Bytes that are hashed at once: tensors of other devices are copied in parts of this size."""


@dataclass(frozen=True)
class _Held:
    """A tensor and a copy of its contents."""

    tensor: torch.Tensor
    contents: torch.Tensor

    def restore(self) -> None:
        with torch.no_grad():
            self.tensor.copy_(self.contents)


class State:
    """All that a step of a model may change: parameters, buffers, state of the optimizer, gradients that add up, and
    random number generators."""

    def __init__(self, model: torch.nn.Module, updates: Updates | None) -> None:
        """
        Args:
            model: Its parameters and buffers are looked up when they are needed, since modules may replace them.
            updates: Of the optimizer whose work is part of the step; without it, steps change `.grad` instead of
                parameters.
        """
        self._model = model
        self._updates = updates

    def save(self) -> Saved:
        """A copy of the state as it is now."""
        return Saved(self._model, self._updates)

    def size(self) -> int:
        """Bytes that `save` takes."""
        return sum(one.nbytes for one in self._tensors().values())

    def digests(self, loss: torch.Tensor) -> dict[str, str]:
        """Hashes of the state and of the loss that a step gave, by a name for messages."""
        found = {"the loss": digest(loss)}
        found |= {name: digest(one) for name, one in self._tensors().items()}
        if self._updates is not None:
            for name, parameter in self._model.named_parameters():
                for entry, value in self._updates.optimizer.state.get(parameter, {}).items():
                    if not isinstance(value, torch.Tensor):
                        found[f"state `{entry}` of `{name}`"] = repr(value)
        for name, get, _ in _generators(devices_of(self._model)):
            drawn = get()
            content = digest(drawn) if isinstance(drawn, torch.Tensor) else pickle.dumps(drawn).hex()
            found[f"the state of {name}"] = content
        return found

    def _tensors(self) -> dict[str, torch.Tensor]:
        own, updates = dict(self._model.named_parameters()), self._updates
        found: dict[str, torch.Tensor] = {f"buffer `{name}`": one for name, one in self._model.named_buffers()}
        for name, one in own.items():
            if updates is None and one.grad is not None:
                found[f"gradient of `{name}`"] = one.grad
            if updates is not None and one.requires_grad and updates.has(one):
                found[f"parameter `{name}`"] = one
                state = updates.optimizer.state.get(one, {})
                found |= {f"state `{key}` of `{name}`": of for key, of in state.items() if isinstance(of, torch.Tensor)}
        return found


class Saved:
    """A copy of the state of a model, made when it is constructed. Parameters that no step updates are not copied."""

    def __init__(self, model: torch.nn.Module, updates: Updates | None) -> None:
        self._model = model
        self._updates = updates
        parameters = dict(model.named_parameters())
        # A module may put another tensor in the place of its buffer.
        self._buffers = [
            (module, name, one)
            for module in model.modules()
            for name, one in module._buffers.items()
            if one is not None
        ]
        self._gradients = [(one, one.grad) for one in parameters.values()]
        held: list[torch.Tensor] = [one for *_, one in self._buffers]
        updated: list[torch.nn.Parameter] = []
        self._states: list[tuple[dict[str, Any], dict[str, Any]]] = []
        if updates is None:
            held += [one for _, one in self._gradients if one is not None]
        else:
            updated = [one for one in parameters.values() if one.requires_grad and updates.has(one)]
            self._blank = dict(updates.blank)
            self._states = [(state, dict(state)) for state in updates.optimizer.state.values()]
            entries = (updates.optimizer.state.get(one, {}).values() for one in updated)
            held += [*updated, *(one for values in entries for one in values if isinstance(one, torch.Tensor))]
        self._held = _copies(held)
        self._versions = {
            name: _version(one) for name, one in parameters.items() if not any(one is other for other in updated)
        }
        self._drawn = [(put, get()) for _, get, put in _generators(devices_of(model))]

    def restore(self) -> None:
        """Puts everything back, bit for bit, into the same tensors."""
        for one in self._held:
            one.restore()
        for module, name, buffer in self._buffers:
            module._buffers[name] = buffer
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        if self._updates is not None:
            self._updates.blank = dict(self._blank)
            for state, entries in self._states:
                state.clear()
                state.update(entries)
            known = {id(state) for state, _ in self._states}
            states = self._updates.optimizer.state
            for parameter in [one for one, state in states.items() if id(state) not in known]:
                del states[parameter]
        for put, drawn in self._drawn:
            put(drawn)

    def overwritten(self) -> str | None:
        """The name of a parameter that was changed although no step updates it; it has no copy."""
        now = dict(self._model.named_parameters())
        return next((name for name, version in self._versions.items() if _version(now[name]) != version), None)


def devices_of(model: torch.nn.Module) -> list[torch.device]:
    """The CUDA devices of a model's parameters and buffers."""
    found = {one.device for one in (*model.parameters(), *model.buffers())}
    return sorted((one for one in found if one.type == "cuda"), key=lambda one: one.index)


@contextlib.contextmanager
def kept_random(devices: Sequence[torch.device]) -> Iterator[None]:
    """While it is open, random numbers may be drawn: afterwards all generators are as they were."""
    drawn = [(put, get()) for _, get, put in _generators(devices)]
    try:
        yield
    finally:
        for put, state in drawn:
            put(state)


def digest(tensor: torch.Tensor) -> str:
    """A hash of shape, type and bits."""
    content = hashlib.blake2b(f"{tensor.dtype}{tuple(tensor.shape)}".encode(), digest_size=16)
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    for part in flat.split(max(1, _CHUNK // tensor.element_size())):
        here = part.cpu()
        if here.numel():
            content.update((ctypes.c_char * here.nbytes).from_address(here.data_ptr()))
    return content.hexdigest()


def _copies(tensors: Iterable[torch.Tensor]) -> list[_Held]:
    """Copies of all tensors, each once. Nothing can write into a tensor where one number stands for several."""
    distinct = {id(one): one for one in tensors}.values()
    writable = [one for one in distinct if not _repeats(one)]
    return [_Held(one, one.detach().clone(memory_format=torch.preserve_format)) for one in writable]


def _repeats(tensor: torch.Tensor) -> bool:
    return any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape, strict=True))


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _generators(
    devices: Sequence[torch.device],
) -> list[tuple[str, Callable[[], Any], Callable[[Any], object]]]:
    """Random number generators that models draw from: a name, what gives their state, what sets it."""
    found: list[tuple[str, Callable[[], Any], Callable[[Any], object]]] = [
        ("PyTorch's random numbers", torch.get_rng_state, torch.set_rng_state),
        ("Python's `random`", random.getstate, random.setstate),
    ]
    if (numpy := sys.modules.get("numpy")) is not None:
        found.append(("NumPy's random numbers", numpy.random.get_state, numpy.random.set_state))
    for device in devices:

        def get(device: torch.device = device) -> torch.Tensor:
            return torch.cuda.get_rng_state(device)

        def put(state: torch.Tensor, device: torch.device = device) -> None:
            torch.cuda.set_rng_state(state, device)

        found.append((f"the random numbers of {device}", get, put))
    return found
