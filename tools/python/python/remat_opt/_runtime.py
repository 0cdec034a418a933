"""The session of ONNX Runtime that follows a plan. This module needs ONNX Runtime; others import it when a session is
made."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
import onnxruntime

from ._counts import Counts, SessionMemory
from ._parts import Parts, Run


class Session(onnxruntime.InferenceSession):
    """An `onnxruntime.InferenceSession` that tells the memory of its runs, and keeps a limit of it.

    With a limit, requests that take more are run in parts of their batch, one after the other; all others run as they
    are. `run` and `run_with_ort_values` do so; runs with an `io_binding` and `run_async` are never divided.
    """

    def __init__(
        self,
        path: pathlib.Path,
        options: onnxruntime.SessionOptions,
        providers: list[Any] | None,
        keywords: Mapping[str, Any],
        counts: Counts | None = None,
        limit: Callable[[Mapping[str, Sequence[Any]]], Parts] | None = None,
    ) -> None:
        super().__init__(str(path), options, providers=providers or ["CPUExecutionProvider"], **keywords)
        self._counts = counts
        self._parts = None if limit is None else limit({one.name: one.shape for one in self.get_inputs()})

    def memory(self) -> SessionMemory | None:
        """What the library counted of this session; `None` for one without a plan of memory."""
        counts = None if self._counts is None else self._counts.read()
        return counts if counts is None or self._parts is None else self._parts.with_waits(counts)

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None) -> Any:
        """As that of `onnxruntime.InferenceSession`.

        Raises:
            ModelError: The request takes more than the limit and cannot be divided: the message names the op that
                forbids it, and the smallest limit that works.
        """

        def whole(feed: Mapping[str, Any]) -> Any:
            return super(Session, self).run(output_names, feed, run_options)

        if self._parts is None:
            return whole(input_feed)
        run = Run(whole=whole, owned=_owned, array=numpy.asarray, part=whole)
        return self._parts.run(self._names(output_names), input_feed, run)

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, Any], run_options: Any = None
    ) -> Any:
        """As that of `onnxruntime.InferenceSession`; raises what `run` raises."""

        def whole(feed: Mapping[str, Any]) -> Any:
            return super(Session, self).run_with_ort_values(output_names, feed, run_options)

        def part(feed: Mapping[str, Any]) -> list[Any]:
            return [value.numpy() for value in whole({name: _value(array) for name, array in feed.items()})]

        if self._parts is None:
            return whole(input_dict_ort_values)
        run = Run(whole=whole, owned=_owned_value, array=lambda value: value.numpy(), part=part)
        results = self._parts.run(self._names(output_names), input_dict_ort_values, run)
        return [_stored(result) if isinstance(result, numpy.ndarray) else result for result in results]

    def _names(self, output_names: Sequence[str] | None) -> list[str]:
        return list(output_names or (output.name for output in self.get_outputs()))


def _value(array: Any) -> Any:
    """An array as a value of the runtime, for as long as the array is there."""
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def _stored(array: Any) -> Any:
    """A copy of an array as a value of the runtime, which has memory of its own."""
    if array.dtype == object:
        return _value(array)
    value = onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(array.shape), array.dtype)
    value.update_inplace(array)
    return value


def _owned(result: Any) -> Any:
    """A result whose memory is its own."""
    return result.copy() if isinstance(result, numpy.ndarray) else result


def _owned_value(result: Any) -> Any:
    return _stored(result.numpy()) if result.is_tensor() else result
