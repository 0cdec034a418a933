"""A CUDA device that is not there, for programs that ask for one: its tensors lie on PyTorch's `meta` device.

Inside, `cuda` is found, tensors that are put there say that they lie there, and nothing of them is computed. Where a
program asks for a number of such a tensor it gets 0, and the line is noted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch.utils.checkpoint
from torch.utils._pytree import tree_map

from .devices import Gpu
from .dry_run import own_line
from .kernels import AsOnCuda

_Tensor = torch.Tensor
_NUMBERS: dict[Any, Callable[[torch.Tensor], Any]] = {
    _Tensor.item: lambda one: one.new_zeros((), device="cpu").item(),
    _Tensor.__bool__: lambda one: False,
    _Tensor.__int__: lambda one: 0,
    _Tensor.__index__: lambda one: 0,
    _Tensor.__float__: lambda one: 0.0,
    _Tensor.tolist: lambda one: _zeros(one).tolist(),
    _Tensor.numpy: lambda one: _zeros(one).numpy(),
    _Tensor.__array__: lambda one: _zeros(one).numpy(),
    _Tensor.__contains__: lambda one: False,
    _Tensor.cpu: lambda one: _zeros(one),
    torch.equal: lambda one: True,
    torch.allclose: lambda one: True,
}
"""What reads numbers, and what it gets."""
_UNCHANGED = (_Tensor.pin_memory, _Tensor.record_stream, _Tensor.is_pinned)
_DEVICE, _IS_CUDA, _IS_META = (getattr(_Tensor, name).__get__ for name in ("device", "is_cuda", "is_meta"))


class SimulatedDevice(AsOnCuda):
    """Has functions take the kernels of CUDA, and puts on `meta` what is meant for `cuda`."""

    def __init__(self) -> None:
        super().__init__(None)
        self.asked: dict[str, None] = {}
        """Lines that asked for numbers, in order."""
        self.observe: Callable[[Any, Any, Any, Any], None] | None = None
        """Told of every call: function, arguments, keywords, result."""

    @property
    def precision(self) -> torch.dtype | None:
        """That of `torch.autocast("cuda")`, where it is on."""
        return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        first = args[0] if args else None
        if isinstance(first, torch.Tensor):
            if func == _DEVICE:
                return torch.device("cuda", 0) if first.device.type == "meta" else first.device
            if func in (_IS_CUDA, _IS_META):
                return (first.device.type == "meta") is (func == _IS_CUDA)
            if func in _UNCHANGED:
                return False if func is _Tensor.is_pinned else first
            if first.device.type == "meta" and (func in _NUMBERS or _goes_to_cpu(func, args, kwargs)):
                self.asked[own_line()] = None
                return _NUMBERS.get(func, _zeros)(first)
        if func is _Tensor.cuda:
            func, args, kwargs = _Tensor.to, (first, "meta"), {}
        args, kwargs = _redirected(func, args, kwargs or {})
        result = super().__torch_function__(func, types, args, kwargs)
        if self.observe is not None:
            self.observe(func, args, kwargs, result)
        return result


def _zeros(tensor: torch.Tensor) -> torch.Tensor:
    return torch.zeros(tensor.shape, dtype=tensor.dtype)


def _names_cuda(value: Any) -> bool:
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and re.fullmatch(r"cuda(:\d+)?", value) is not None


def _goes_to_cpu(func: Any, args: Any, kwargs: Any) -> bool:
    if func is not _Tensor.to:
        return False
    wanted = [*args[1:], (kwargs or {}).get("device")]
    return any(one == "cpu" if isinstance(one, str) else isinstance(one, torch.device) and one.type == "cpu" for one in wanted)


def _redirected(func: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """`meta` for `cuda` in what a function is called with."""

    def moved(value: Any) -> Any:
        return torch.device("meta") if isinstance(value, torch.device) and value.type == "cuda" else value

    args, kwargs = tree_map(moved, (tuple(args), kwargs))
    device = kwargs.get("device")
    if _names_cuda(device) or (isinstance(device, int) and not isinstance(device, bool)):
        kwargs["device"] = torch.device("meta")
    if func is _Tensor.to:
        args = tuple("meta" if place and (_names_cuda(one) or type(one) is int) else one for place, one in enumerate(args))
    if kwargs.get("generator") is not None and _is_meta(kwargs.get("device"), args):
        kwargs["generator"] = None
    kwargs.pop("pin_memory", None)
    return args, kwargs


def _is_meta(device: Any, args: Any) -> bool:
    first = args[0] if args else None
    there = first.device if isinstance(first, torch.Tensor) else None
    return any(isinstance(one, torch.device) and one.type == "meta" for one in (device, there))


class _Nothing:
    """Streams, events and their like: every call is allowed and does nothing."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _none

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: object) -> None: ...

    def elapsed_time(self, _: object) -> float:
        """No time passes."""
        return 0.0


def _none(*_: Any, **__: Any) -> None: ...


class _Generator(torch.Generator):
    """Of a CUDA device, too: its numbers are never drawn."""

    def __new__(cls, device: Any = "cpu") -> Any:
        return super().__new__(cls, "cpu" if _names_cuda(device) else device)


@contextmanager
def simulated(gpu: Gpu, device: SimulatedDevice) -> Iterator[None]:
    """Inside, there is one CUDA device, `gpu`, and everything runs as on it, without numbers."""
    was_swapped = torch.__future__.get_swap_module_params_on_conversion()
    # An optimizer that was made before `model.cuda()` has the parameters that are there after it.
    torch.__future__.set_swap_module_params_on_conversion(True)
    cuda = _cuda(gpu)
    try:
        with ExitStack() as stack:
            for name, value in cuda.items():
                stack.enter_context(mock.patch.object(torch.cuda, name, value, create=False))
            for module, name, value in _elsewhere():
                stack.enter_context(mock.patch.object(module, name, value))
            # It would compare devices as this process and as the program sees them.
            checks = torch.utils.checkpoint._allowed_determinism_checks_to_fns
            stack.enter_context(mock.patch.dict(checks, default=lambda one: (one.shape, one.dtype)))
            stack.enter_context(device)
            # `torch.set_default_device` ends with the program.
            stack.callback(torch.set_default_device, None)
            yield
    finally:
        torch.__future__.set_swap_module_params_on_conversion(was_swapped)


def _cuda(gpu: Gpu) -> dict[str, Any]:
    """What `torch.cuda` says of the device; what it lacks in this version is left out."""
    major, minor = gpu.capability
    properties = SimpleNamespace(
        name=gpu.name, total_memory=gpu.total, major=major, minor=minor, multi_processor_count=100, is_integrated=0
    )
    zero = "memory_allocated memory_reserved max_memory_allocated max_memory_reserved memory_cached max_memory_cached current_device"
    nothing = (
        "synchronize empty_cache set_device reset_peak_memory_stats reset_max_memory_allocated init _lazy_init ipc_collect "
        "reset_accumulated_memory_stats manual_seed manual_seed_all seed seed_all set_rng_state set_rng_state_all set_stream "
        "set_per_process_memory_fraction"
    )
    found: dict[str, Any] = dict.fromkeys(zero.split(), lambda *_, **__: 0)
    found |= dict.fromkeys(nothing.split(), _none)
    found |= dict.fromkeys(("Stream", "Event", "stream", "device", "device_of", "current_stream", "default_stream"), _Nothing)
    found |= {
        "is_available": lambda: True,
        "is_initialized": lambda: False,
        "device_count": lambda: 1,
        "is_bf16_supported": lambda *_, **__: True,
        "is_current_stream_capturing": lambda: False,
        "get_device_name": lambda *_: gpu.name,
        "get_device_capability": lambda *_: gpu.capability,
        "get_device_properties": lambda *_: properties,
        "mem_get_info": lambda *_: (gpu.free, gpu.total),
        "get_rng_state": lambda *_: torch.zeros(16, dtype=torch.uint8),
        "memory_stats": lambda *_: {},
        "memory_summary": lambda *_, **__: "",
    }
    return {name: value for name, value in found.items() if hasattr(torch.cuda, name)}


def _elsewhere() -> Iterator[tuple[Any, str, Any]]:
    """What else would look for the device, or compile for it."""
    loads, scaler, sets = torch.load, torch.amp.GradScaler, torch.set_default_device

    def load(*args: Any, map_location: Any = None, **keywords: Any) -> Any:
        return loads(*args, map_location="cpu" if map_location is None or _names_cuda(map_location) else map_location, **keywords)

    class Scaler(scaler):  # type: ignore[misc,valid-type]
        """Scales by nothing: it takes a few bytes, and would look at numbers."""

        def __init__(self, *_: Any, **__: Any) -> None:
            super().__init__("cpu", enabled=False)

    def compiled(model: Any = None, **_: Any) -> Any:
        return (lambda one: one) if model is None else model

    accelerator = getattr(torch, "accelerator", None)
    there = {"is_available": lambda: True, "device_count": lambda: 1, "current_device_index": lambda: 0, "current_stream": _Nothing}
    there |= dict.fromkeys(("synchronize", "set_device_index", "set_stream", "empty_cache"), _none)
    there |= {"current_accelerator": lambda *_, **__: torch.device("cuda")}
    yield from ((accelerator, name, value) for name, value in there.items() if hasattr(accelerator, name))
    yield torch, "load", load
    yield torch, "set_default_device", lambda one: sets("meta" if _names_cuda(one) else one)
    yield torch, "compile", compiled
    yield torch.nn.Module, "compile", _none
    yield torch, "Generator", _Generator
    yield torch.amp, "GradScaler", Scaler
    yield torch.cuda.amp, "GradScaler", Scaler
