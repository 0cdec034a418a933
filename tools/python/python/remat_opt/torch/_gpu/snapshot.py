"""Snapshots of PyTorch's allocator, made on a GPU (`torch.cuda.memory._snapshot()`), and what other settings would have reserved."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from ... import _native
from ...errors import ModelError, UsageError
from .._budget import parse
from .estimate import ENDLESS, size

SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:64",
    "max_split_size_mb:256",
    "roundup_power2_divisions:4",
    "garbage_collection_threshold:0.8",
)
"""What is tried, unless told otherwise; the first one is PyTorch's default."""
_ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot", "oom")
_Entry = tuple[str, int, int, int]


@dataclass(frozen=True)
class Tried:
    """What a setting would have reserved."""

    settings: str
    """As in `PYTORCH_CUDA_ALLOC_CONF`; empty for the default."""
    reserved_bytes: int
    """Most that the allocator reserves."""
    allocated_bytes: int
    """Most that it gives out: blocks are rounded up."""
    failure: str | None
    """Why the program does not get to its end; nothing where it does."""

    @property
    def lost_bytes(self) -> int:
        """What is reserved beyond what was ever given out."""
        return self.reserved_bytes - self.allocated_bytes


@dataclass(frozen=True)
class Replay:
    """A recorded program, and what it would have taken with other settings. `str()` of it is a table."""

    device: int
    """Whose record it is, as PyTorch counts devices."""
    settings: str
    """Those of the record."""
    entries: int
    reserved_bytes: int
    """Most that was reserved, by the record."""
    allocated_bytes: int
    """Most that was given out, by the record."""
    is_reproduced: bool
    """Whether the simulation did what was recorded, entry by entry; then the figures of other settings are as good."""
    difference: str | None
    """Where and why not."""
    tried: list[Tried]

    @property
    def lost_bytes(self) -> int:
        """What was reserved beyond what was ever given out: fragments."""
        return self.reserved_bytes - self.allocated_bytes

    def to_json(self) -> str:
        """As an object of JSON."""
        tried = [asdict(one) | {"lost_bytes": one.lost_bytes} for one in self.tried]
        return json.dumps({"format": "remat-replay/1"} | asdict(self) | {"lost_bytes": self.lost_bytes, "tried": tried}, indent=2)

    def __str__(self) -> str:
        checked = "reproduced entry by entry" if self.is_reproduced else f"not reproduced: {self.difference}"
        rows = [
            f"{one.settings or 'default':36}{size(one.reserved_bytes):>12}{size(one.lost_bytes):>12}  {one.failure or ''}".rstrip()
            for one in self.tried
        ]
        return "\n".join(
            [
                f"reserved {size(self.reserved_bytes)}, given out {size(self.allocated_bytes)}, lost {size(self.lost_bytes)}",
                f"device {self.device}, {self.settings or 'default settings'}, {self.entries} entries, {checked}",
                "",
                f"{'settings':36}{'reserved':>12}{'lost':>12}",
                *rows,
            ]
        )


def replay(
    snapshot: Mapping[str, Any] | str | os.PathLike[str],
    settings: Sequence[str] = SETTINGS,
    *,
    device: int | None = None,
    memory: int | str | None = None,
) -> Replay:
    """What PyTorch's allocator reserved in a recorded program, what of it was lost to fragments, and what other settings
    would have reserved. No GPU is needed.

    Record with `torch.cuda.memory._record_memory_history()` before the first allocation, then
    `torch.cuda.memory._dump_snapshot("snapshot.pickle")`. What was there before is asked for first in the simulation; then
    what was recorded is not checked, since nobody knows how its segments came about. Nothing of a pickle runs: it may hold
    lists, dictionaries, texts and numbers.

    Args:
        snapshot: What `_snapshot()` gave, or a file.
        settings: What to try, each as in `PYTORCH_CUDA_ALLOC_CONF`.
        device: Whose record; of several that allocated, one has to be named.
        memory: What the process may reserve, as with `torch.cuda.set_per_process_memory_fraction`: without it, and
            without an out of memory in the record, there is no limit, and `garbage_collection_threshold` does nothing.

    Raises:
        ModelError: The snapshot holds something else, or no record.
        UsageError: A setting is not known, or a device has no record.
    """
    document = snapshot if isinstance(snapshot, Mapping) else _read(snapshot)
    number, trace, segments = _of_device(document, device)
    before = _before(trace, segments)
    given = _settings_of(document)
    allowed = None if memory is None else _bytes(memory)
    free = _left(trace, segments)
    entries = [*before, *trace]
    reserved, requested = _recorded(trace, segments, sum(one[2] for one in before))
    difference = None
    try:
        if before:
            difference = f"{size(sum(one[2] for one in before))} were allocated before the record begins"
        else:
            found = _native.replay_allocations(given, ENDLESS, free, trace)[1]
            requested = found["allocated_peak"]
    except ValueError as error:
        difference = str(error)
    tried = []
    for one in dict.fromkeys([given, *settings]):
        try:
            figures, _, failed = _native.rerun_allocations(one, ENDLESS, free, entries, allowed)
        except ValueError as error:
            raise UsageError(str(error)) from error
        tried.append(Tried(one, figures["reserved_peak"], figures["allocated_peak"], None if failed is None else failed[1]))
    if difference is not None:
        # Blocks are rounded up, whatever segments they lie in.
        requested = min(reserved, max(requested, tried[0].allocated_bytes))
    return Replay(number, given, len(trace), reserved, requested, difference is None, difference, tried)


class _Plain(pickle.Unpickler):
    """Reads what needs no code."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Nothing is looked up."""
        raise ModelError(f"the snapshot names `{module}.{name}`: one of PyTorch holds lists, dictionaries, texts and numbers only")

    def persistent_load(self, _: Any) -> NoReturn:
        """Nothing lies elsewhere."""
        raise ModelError("the snapshot refers to something outside of it")


def _read(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    try:
        with open(path, "rb") as file:
            found = _Plain(file).load()
    except OSError as error:
        raise ModelError(f"`{os.fspath(path)}` cannot be read: {error.strerror}") from error
    except (pickle.UnpicklingError, EOFError, ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"`{os.fspath(path)}` is no pickle: give what `torch.cuda.memory._dump_snapshot` wrote") from error
    if not isinstance(found, dict):
        raise ModelError(f"`{os.fspath(path)}` holds a {type(found).__name__}, no snapshot")
    return found


def _of_device(document: Mapping[str, Any], device: int | None) -> tuple[int, list[_Entry], list[dict[str, Any]]]:
    traces = document.get("device_traces")
    if not isinstance(traces, (list, tuple)) or not isinstance(document.get("segments"), (list, tuple)):
        raise ModelError("the snapshot has no `device_traces` and `segments`: it is none of `torch.cuda.memory._snapshot()`")
    recorded = [place for place, trace in enumerate(traces) if trace]
    if not recorded:
        raise ModelError("the snapshot has no record: call `torch.cuda.memory._record_memory_history()` before the program allocates")
    if device is None and len(recorded) > 1:
        raise UsageError(f"the snapshot has records of the devices {', '.join(map(str, recorded))}: say which with `device`")
    number = recorded[0] if device is None else device
    if number not in recorded:
        raise UsageError(f"the snapshot has no record of device {number}, but of {', '.join(map(str, recorded))}")
    try:
        trace = [_entry(one) for one in traces[number]]
        segments = [_segment(one) for one in document["segments"] if one.get("device", number) == number]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"an entry of the snapshot is not as PyTorch writes it: {type(error).__name__} {error}") from error
    return number, trace, segments


def _entry(one: Mapping[str, Any]) -> _Entry:
    action = one["action"]
    if action not in _ACTIONS:
        # What users wrote into the record.
        return ("snapshot", 0, 0, 0)
    found = (action, one.get("addr", one.get("device_free", 0)), one["size"], one.get("stream", 0))
    _numbers(found[1:], action)
    return found


def _segment(one: Mapping[str, Any]) -> dict[str, Any]:
    """A segment whose numbers are numbers."""
    _numbers([one["address"], one["total_size"], one.get("stream", 0)], "segment")
    for block in one["blocks"]:
        sizes = [block["size"], block.get("address", 0), block.get("requested_size", 0)]
        _numbers(sizes, f"block {block['state']}")
    return dict(one)


def _numbers(values: Iterable[Any], what: str) -> None:
    if not all(isinstance(value, int) and 0 <= value < 1 << 63 for value in values):
        raise ValueError(f"of `{what}`")


def _settings_of(document: Mapping[str, Any]) -> str:
    """Those that the program had, as its snapshot states them."""
    stated = document.get("allocator_settings") or {}
    found = stated.get("PYTORCH_CUDA_ALLOC_CONF", "") if isinstance(stated, Mapping) else ""
    return found if isinstance(found, str) else ""


def _bytes(memory: int | str) -> int:
    total = parse(memory).total
    if total is None:
        raise UsageError(f"`{memory}` is no size of memory")
    return total


def _before(trace: Iterable[_Entry], segments: Iterable[Mapping[str, Any]]) -> list[_Entry]:
    """What was allocated before the record begins, as requests: freed in it, or still there, and not asked for in it."""
    found: list[_Entry] = []
    live: set[int] = set()
    known: set[int] = set()
    for action, address, count, stream in trace:
        if action == "alloc":
            live.add(address)
            known.add(address)
        elif action == "free_completed":
            if address not in live and address not in known:
                found.append(("alloc", address, count, stream))
            live.discard(address)
            known.add(address)
    for segment in segments:
        at = segment["address"]
        for block in segment["blocks"]:
            at = block.get("address", at)
            if block["state"] != "inactive" and at not in known:
                found.append(("alloc", at, block.get("requested_size", block["size"]), segment.get("stream", 0)))
            at += block["size"]
    return found


def _recorded(trace: Sequence[_Entry], segments: Iterable[Mapping[str, Any]], before: int) -> tuple[int, int]:
    """Most that was reserved and most that was asked for, from what the record says of its end and of its changes."""
    sign = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
    reserved = sum(one["total_size"] for one in segments) - sum(sign.get(action, 0) * count for action, _, count, _ in trace)
    most, asked, most_asked = reserved, before, before
    for action, _, count, _ in trace:
        reserved += sign.get(action, 0) * count
        asked += {"alloc": 1, "free_completed": -1}.get(action, 0) * count
        most, most_asked = max(most, reserved), max(most_asked, asked)
    return most, most_asked


def _left(trace: Sequence[_Entry], segments: Iterable[Mapping[str, Any]]) -> int:
    """What the allocator could have of the device, where it once got less than it asked for."""
    sign = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
    reserved = sum(one["total_size"] for one in segments) - sum(sign.get(action, 0) * count for action, _, count, _ in trace)
    least = ENDLESS
    for action, address, count, _ in trace:
        reserved += sign.get(action, 0) * count
        if action == "oom":
            # Its address is what the device had left.
            least = min(least, reserved + address)
    return least
