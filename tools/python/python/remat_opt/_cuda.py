"""Planned memory for sessions with the CUDA provider: three functions that it calls in the place of its arena."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _counts, _native
from .errors import ModelError, UsageError

if TYPE_CHECKING:
    import onnxruntime

PROVIDER = "CUDAExecutionProvider"
# Where the CUDA runtime lies, among the options of the provider; ONNX Runtime does not see it.
RUNTIME = "remat.cuda.library"
# What the provider takes no functions beside, or what they are.
_EXCLUDED = ("user_compute_stream", "gpu_external_alloc", "gpu_external_free", "gpu_external_empty_cache")
# What a file of requests says it is.
_FORMAT = "remat-requests/1"
# So many events are read at once.
_EVENTS = 4096


class _Settings(ctypes.Structure):
    """`remat_cuda_settings` in C."""

    _fields_ = [
        ("plan", ctypes.c_char_p),
        ("library", ctypes.c_char_p),
        ("device", ctypes.c_int),
        ("record", ctypes.c_int),
    ]


class _Functions(ctypes.Structure):
    """`remat_cuda_functions` in C."""

    _fields_ = [
        ("alloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
        ("empty_cache", ctypes.c_void_p),
        ("session", ctypes.c_int64),
    ]


class _Event(ctypes.Structure):
    """`remat_arena_event` in C."""

    _fields_ = [("address", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("thread", ctypes.c_uint64)]


class Functions:
    """What the CUDA provider of one set of session options calls, and what was counted and recorded of it.

    Args:
        library: The arena library.
        plan: The plan of memory; without it every request gets memory of its own.
        device: The number of the device; that of the thread that needs memory first, unless given.
        runtime: The CUDA runtime; that of the process or of the system, unless given.
        record: Whether requests are recorded.

    Raises:
        ModelError: The plan is none for the CUDA provider, or the library cannot be used.
    """

    def __init__(
        self,
        library: pathlib.Path,
        plan: pathlib.Path | None = None,
        device: int | None = None,
        runtime: str | os.PathLike[str] | None = None,
        record: bool = False,
    ) -> None:
        self._path = os.path.realpath(library)
        self._library = ctypes.CDLL(self._path)
        if not hasattr(self._library, "remat_cuda_open"):
            raise ModelError(f"`{library}` is of an older version, without functions for the CUDA provider: remove it")
        self._library.remat_cuda_open.restype = ctypes.c_char_p
        settings = _Settings(
            None if plan is None else os.fsencode(plan),
            None if runtime is None else os.fsencode(runtime),
            -1 if device is None else device,
            int(record),
        )
        self._functions = _Functions()
        why = self._library.remat_cuda_open(ctypes.byref(settings), ctypes.byref(self._functions))
        if why is not None:
            raise ModelError(why.decode(errors="replace").removeprefix("remat: "))
        self.number = int(self._functions.session)

    @property
    def options(self) -> dict[str, str]:
        """The options of the provider."""
        named = ("alloc", "free", "empty_cache")
        return {f"gpu_external_{name}": str(getattr(self._functions, name)) for name in named}

    @property
    def counts(self) -> _counts.Counts:
        """Where its figures are."""
        return _counts.Counts(_counts.library(pathlib.Path(self._path)), self.number)

    def register(self, options: onnxruntime.SessionOptions) -> None:
        """Lets sessions of these options tell when they load."""
        options.add_session_config_entry("remat.arena.cuda", str(self.number))
        options.register_custom_ops_library(self._path)

    def give_up(self) -> None:
        """No session was made: loading is over, and others may have the functions."""
        number = ctypes.c_int64(self.number)
        self._library.remat_cuda_load_ends(number)
        self._library.remat_cuda_close(number)

    def close_with(self, session: object) -> None:
        """Others may have the functions when a session is gone."""
        weakref.finalize(session, self._library.remat_cuda_close, ctypes.c_int64(self.number))

    def events(self) -> list[tuple[int, int]]:
        """What was recorded since the last call: addresses, and bytes that were requested, or 0 where they were freed."""
        read = self._library.remat_arena_events
        read.argtypes = [ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
        read.restype = ctypes.c_size_t
        room = (_Event * _EVENTS)()
        found: list[tuple[int, int]] = []
        while count := read(self.number, room, _EVENTS):
            found += [(event.address, event.bytes) for event in room[:count]]
        return found


def is_plan(plan: pathlib.Path) -> bool:
    """Whether a plan of memory is for the CUDA provider."""
    return "cuda" in header(plan)


def header(plan: pathlib.Path) -> dict[str, str]:
    """The first lines of a plan of memory, by their first word."""
    found = {}
    with open(plan, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            key, _, value = line.rstrip("\n").partition(" ")
            if key in ("dim", "let", "weights", "load", "plan"):
                break
            found[key] = value
    return found


def place(providers: Sequence[Any] | None) -> int | None:
    """Where the CUDA provider stands among providers; `None` where it does not."""
    names = [provider if isinstance(provider, str) else provider[0] for provider in providers or []]
    return names.index(PROVIDER) if PROVIDER in names else None


def with_functions(
    library: pathlib.Path, plan: pathlib.Path | None, providers: Sequence[Any], record: bool = False
) -> tuple[Functions, list[Any]]:
    """Functions for the CUDA provider among these, and the providers with them.

    Raises:
        UsageError: The provider has options that exclude them.
        ModelError: As of `Functions`.
    """
    at = place(providers)
    if at is None:
        raise UsageError(f"this is for sessions with `{PROVIDER}`: name it in `providers`")
    provider = providers[at]
    options = {} if isinstance(provider, str) else dict(provider[1])
    if wrong := [key for key in _EXCLUDED if key in options]:
        raise UsageError(f"a session with planned memory takes no `{wrong[0]}`: leave it out")
    device = options.get("device_id")
    runtime = options.pop(RUNTIME, None)
    functions = Functions(library, plan, None if device is None else int(device), runtime, record)
    chosen = list(providers)
    chosen[at] = (PROVIDER, options | functions.options)
    return functions, chosen


def section(events: Iterable[tuple[int, int]]) -> list[int]:
    """Events as a file of requests has them: bytes that are requested, or, negative, the number of the request that is
    freed, from -1. What was requested before is left out."""
    numbers: dict[int, int] = {}
    found = []
    count = 0
    for address, size in events:
        if size:
            count += 1
            numbers[address] = count
            found.append(size)
        elif (number := numbers.pop(address, None)) is not None:
            found.append(-number)
    return found


class Recorder:
    """The requests of one session, as they go into a file."""

    def __init__(self, model: pathlib.Path, runtime: str, level: str) -> None:
        self._file: dict[str, Any] = {
            "format": _FORMAT,
            "model": _native.model_hash(model),
            "runtime": runtime,
            "level": level,
            "load": [],
            "runs": [],
        }

    def loaded(self, events: Iterable[tuple[int, int]]) -> None:
        """The session is loaded."""
        self._file["load"] = section(events)

    def ran(
        self,
        dims: Mapping[str, int],
        inputs: Sequence[tuple[str, Sequence[int]]],
        events: Iterable[tuple[int, int]],
    ) -> None:
        """A run ended, with these sizes of open dimensions and shapes of inputs."""
        one = {"dims": dict(dims), "inputs": [[name, list(shape)] for name, shape in inputs], "events": section(events)}
        self._file["runs"].append(one)

    def write(self, path: pathlib.Path) -> None:
        """Writes the file."""
        path.write_text(json.dumps(self._file), encoding="utf-8")


def dims(declared: Mapping[str, Sequence[Any]], feed: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of the dimensions that a model leaves open, by its names for them, or as `INPUT[AXIS]`."""
    found: dict[str, int] = {}
    for name, shape in declared.items():
        for axis, dim in enumerate(shape):
            if not isinstance(dim, int):
                size = int(feed[name].shape[axis])
                key = dim or f"{name}[{axis}]"
                if found.setdefault(key, size) != size:
                    raise UsageError(f"dimension `{key}` is {found[key]} and {size} in one feed")
    return found
