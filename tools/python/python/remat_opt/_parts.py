"""Requests in parts of their batch: what a run takes by the plan of memory, and where it is cut so that it takes no
more than a limit."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import _native
from ._counts import SessionMemory
from ._room import ROOM
from .errors import ModelError

# The name of the open dimension that is the number of threads within an op, in plans.
_THREADS = "intra_op_num_threads"


@dataclasses.dataclass(frozen=True)
class Run:
    """A run of the session, of arrays or of what else it takes."""

    whole: Callable[[Mapping[str, Any]], Sequence[Any]]
    """What was given in, results out."""
    owned: Callable[[Any], Any]
    """A result, out of the block."""
    array: Callable[[Any], Any]
    """An input as an array."""
    part: Callable[[Mapping[str, Any]], Sequence[Any]]
    """Arrays by input in, arrays of the outputs out."""


class Proof:
    """That a model computes every member of its batch by itself, or why that is not known."""

    def __init__(self, model: pathlib.Path, plans: _native.ArenaPlans, dim: str | None) -> None:
        self._model = model
        self._ranges = {name: (least, most) for name, least, most in plans.dims if name != _THREADS}
        self._dim = dim
        self._lock = threading.Lock()
        self._found = self._look()

    def of(self, members: int) -> _native.Batch | tuple[str, str | None]:
        """A proof for so many members, or why there is none and the op that it is about."""
        with self._lock:
            if isinstance(self._found, _native.Batch) and members > self._ranges[self._found.dim][1]:
                self._ranges[self._found.dim] = (1, members)
                self._found = self._look()
            return self._found

    def _look(self) -> _native.Batch | tuple[str, str | None]:
        try:
            found = _native.Batch(self._model, self._dim, self._ranges)
            self._ranges.setdefault(found.dim, (1, 1))
            return found
        except ValueError as error:
            return (error.args[0], error.args[1]) if len(error.args) == 2 else (str(error), None)
        finally:
            _give_back()


class Parts:
    """How the requests of a session are run within a limit."""

    def __init__(
        self,
        inputs: Mapping[str, Sequence[Any]],
        *,
        model: pathlib.Path,
        plans: _native.ArenaPlans,
        proof: Proof,
        limit: int,
        batch: str | None,
        threads: int,
    ) -> None:
        self._plans = plans
        self._proved = proof
        self._limit = limit
        self._threads = threads or os.cpu_count() or 1
        self._inputs = {
            name: [_name(name, axis, dim) for axis, dim in enumerate(shape)] for name, shape in inputs.items()
        }
        names = [name for dims in self._inputs.values() for name in dims if name is not None]
        unknown = [name for name, _, _ in plans.dims if name not in (*names, _THREADS)]
        if unknown:
            raise ModelError(f"no input of `{model}` has dimension `{unknown[0]}` of its plan of memory: plan it again")
        if batch is not None and batch not in names:
            known = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
            raise ModelError(f"no input of `{model}` has an open dimension `{batch}`; there are {known or 'none'}")
        # The first axis of the first input that leaves one open, unless the caller knows better.
        firsts = (dims[0] for dims in self._inputs.values() if dims)
        self._dim = batch or next((name for name in firsts if name is not None), None)
        # A plan for one size of the batch alone does not say more of any other.
        self._most = next((most for name, _, most in plans.dims if name == self._dim), sys.maxsize)
        self._lock = threading.Lock()
        self._needed: dict[tuple[tuple[str, int], ...], int | None] = {}
        self._judged: set[tuple[Any, ...]] = set()
        self._has_warned = False
        self._waits = 0
        self._waiting_nanoseconds = 0

    def run(self, names: Sequence[str], feed: Mapping[str, Any], run: Run) -> list[Any]:
        """A request in parts that take no more than the limit, of which most have one. Results are the caller's: they
        are out of the block, so that the next run has it.

        A request that is none that the model takes runs as it is.
        """
        dims = self._dims(feed)
        if dims is None:
            return list(run.whole(feed))
        dim = self._dim or ""
        members = dims.get(dim, 1)
        fits = self._fits(dims)
        # The plan says nothing of more members than it is for.
        if fits and (members <= self._most or isinstance(self._proved.of(members), tuple)):
            with self._room(dims):
                return [run.owned(result) for result in run.whole(feed)]
        batch = self._proof(dims)
        parts = self._divided(dims, members)
        if parts is None:
            raise self._refused(dims, "one member of the batch takes more", self._bytes({**dims, dim: 1}))
        self._warn_of_bits(batch, dims, parts)
        joined = Joined(batch.outputs, names, members)
        for begin, end in parts:
            part = {name: _part(run.array(value), batch.inputs.get(name), begin, end) for name, value in feed.items()}
            with self._room({**dims, dim: end - begin}):
                joined.add(run.part(part), begin, end)
        return joined.whole

    @contextlib.contextmanager
    def _room(self, dims: Mapping[str, int]) -> Iterator[None]:
        """Waits until there is room for a run."""
        with ROOM.held(self._bytes(dims) or 0, self._limit) as waited:
            if waited:
                with self._lock:
                    self._waits += 1
                    self._waiting_nanoseconds += waited
            yield

    def with_waits(self, counts: SessionMemory) -> SessionMemory:
        """What the library counted, and the runs that waited before they began."""
        with self._lock:
            return dataclasses.replace(
                counts,
                waits=(counts.waits or 0) + self._waits,
                waiting_nanoseconds=(counts.waiting_nanoseconds or 0) + self._waiting_nanoseconds,
            )

    def _dims(self, feed: Mapping[str, Any]) -> dict[str, int] | None:
        """The sizes of the open dimensions; `None` where they are not those of a request."""
        dims: dict[str, int] = {}
        for name, named in self._inputs.items():
            shape = _shape(feed.get(name))
            if shape is None or len(shape) != len(named):
                return None
            for dim, size in zip(named, shape, strict=True):
                if dim is not None and dims.setdefault(dim, size) != size:
                    return None
        return dims

    def _bytes(self, dims: Mapping[str, int]) -> int | None:
        """What a run takes; `None`: more than there is."""
        key = tuple(sorted(dims.items()))
        if key not in self._needed:
            if len(self._needed) >= 4096:
                self._needed.clear()
            self._needed[key] = self._plans.run_bytes({**dims, _THREADS: self._threads})
        return self._needed[key]

    def _fits(self, dims: Mapping[str, int]) -> bool:
        need = self._bytes(dims)
        return need is not None and need <= self._limit

    def _divided(self, dims: Mapping[str, int], members: int) -> list[tuple[int, int]] | None:
        """As few parts as fit, of about the same size."""

        def fits(size: int) -> bool:
            return size == 0 or (size <= self._most and self._fits({**dims, self._dim or "": size}))

        most, above = 0, members
        while above - most > 1:
            middle = (most + above) // 2
            most, above = (middle, above) if fits(middle) else (most, middle)
        # Where less may take more, smaller parts are tried.
        for size in range(most, 0, -1):
            count = -(-members // size)
            small, larger = divmod(members, count)
            if fits(small) and (larger == 0 or fits(small + 1)):
                ends = [small * (at + 1) + min(at + 1, larger) for at in range(count)]
                return list(zip([0, *ends[:-1]], ends, strict=True))
        return None

    def _proof(self, dims: Mapping[str, int]) -> _native.Batch:
        """That members of the batch are independent."""
        if self._dim is None:
            raise self._refused(dims, "no input has an open dimension along which it can be divided", None)
        if dims[self._dim] < 2:
            raise self._refused(dims, "one member of the batch takes more", None)
        found = self._proved.of(dims[self._dim])
        if isinstance(found, tuple):
            why, op = found
            raise self._refused(dims, f"it cannot be divided along `{self._dim}`: {why}", None, op)
        return found

    def _refused(self, dims: Mapping[str, int], why: str, need: int | None, op: str | None = None) -> ModelError:
        need = need or self._bytes(dims)
        sizes = ", ".join(f"{name}={size}" for name, size in dims.items())
        takes = "more than any memory has" if need is None else f"{need} bytes"
        return ModelError(
            f"a request of {sizes} takes more than the limit of {self._limit} bytes, and {why}",
            kind="input",
            op=op,
            help=f"The smallest limit that works for it is {takes}.",
            details={"type": "request-exceeds-limit", "need_bytes": need, "limit_bytes": self._limit},
        )

    def _warn_of_bits(self, batch: _native.Batch, dims: dict[str, int], parts: list[tuple[int, int]]) -> None:
        """Says once which op may round otherwise in parts."""
        key = (*sorted(dims.items()), len(parts))
        with self._lock:
            if self._has_warned or key in self._judged:
                return
            self._judged.add(key)
        try:
            op = batch.other_bits(dims, parts, self._threads)
        except ValueError:
            # It is none that the model takes, which the runtime says better.
            return
        if op is None:
            return
        with self._lock:
            if self._has_warned:
                return
            self._has_warned = True
        name, kind = op
        warnings.warn(
            f"requests that are run in parts may differ in the last bits: `{name}` ({kind}) may round otherwise for "
            f"{min(end - begin for begin, end in parts)} of {parts[-1][1]} members of the batch than for all",
            # Of the caller of the session: `run` of this class, `run` of the session.
            stacklevel=4,
        )


class Joined:
    """The outputs of parts, put together as they come."""

    def __init__(self, axes: Mapping[str, int | None], names: Sequence[str], members: int) -> None:
        self._axes = [axes.get(name) for name in names]
        self._members = members
        self.whole: list[Any] = []

    def add(self, results: Sequence[Any], begin: int, end: int) -> None:
        """Takes over what a part gave; nothing of it is held."""
        import numpy

        for at, (axis, result) in enumerate(zip(self._axes, results, strict=True)):
            if axis is None:
                # It is the same in all parts.
                if begin == 0:
                    self.whole.append(numpy.array(result))
                continue
            each = result.shape[axis] // (end - begin)
            if begin == 0:
                shape = [*result.shape[:axis], each * self._members, *result.shape[axis + 1 :]]
                self.whole.append(numpy.empty(shape, result.dtype))
            self.whole[at][_rows(axis, begin * each, end * each)] = result


def _part(array: Any, axis: int | None, begin: int, end: int) -> Any:
    import numpy

    return array if axis is None else numpy.ascontiguousarray(array[_rows(axis, begin, end)])


def _give_back() -> None:
    """What was read of the model goes back to the system, where the C library can do that."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _rows(axis: int, begin: int, end: int) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, slice(begin, end))


def _name(tensor: str, axis: int, dim: Any) -> str | None:
    """The name of an open dimension, as plans have it; `None` for a fixed one."""
    if isinstance(dim, int):
        return None
    return dim if isinstance(dim, str) and dim else f"{tensor}[{axis}]"


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of an array or of a value of the runtime."""
    shape = getattr(value, "shape", None)
    if callable(shape):
        shape = shape()
    return None if shape is None else tuple(shape)
