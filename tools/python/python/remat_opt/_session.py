"""Sessions of ONNX Runtime for models that were made for it."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    import onnxruntime

    from ._report import Report

_LEVELS = {
    "off": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
# `arena_extend_strategy`, by its name in reports.
_STRATEGIES = {"next_power_of_two": 0, "same_as_requested": 1}


def arena_library(path: str | os.PathLike[str]) -> pathlib.Path:
    """Writes the library with which ONNX Runtime obeys a plan of memory, `libremat_arena.so`, and gives its path. It
    belongs to this package and serves every plan.

    Raises:
        OSError: There is none for this system, or the file cannot be written.
    """
    target = pathlib.Path(path)
    target.write_bytes(_native.arena_library())
    return target


def session(
    path: pathlib.Path,
    report: Report,
    sess_options: onnxruntime.SessionOptions | None,
    providers: list[Any] | None,
    keywords: dict[str, Any],
) -> onnxruntime.InferenceSession:
    """A session with what the report says that the model needs."""
    import onnxruntime

    options = sess_options if sess_options is not None else onnxruntime.SessionOptions()
    needs = report.get("session")
    if needs is not None:
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, _LEVELS[needs["level"]])
        if needs["priority_based_order"]:
            options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
        # What the caller turned off stays off.
        for name in ("enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse"):
            if not needs[name]:
                setattr(options, name, False)
    arena = report.get("arena_plan")
    if arena is not None:
        options.add_session_config_entry("remat.arena.plan", str(arena["file"]))
        options.register_custom_ops_library(str(arena["library"]))
    _recommended(report, options)
    return onnxruntime.InferenceSession(str(path), options, providers=providers or ["CPUExecutionProvider"], **keywords)


def _recommended(report: Report, options: onnxruntime.SessionOptions) -> None:
    """Sets the rest of the best of the settings that were tried: entries, and an arena of the environment, one for
    the process."""
    settings = report.get("settings")
    if settings is None:
        return
    best = next((tried["options"] for tried in settings["tried"] if tried["setting"] == settings["recommended"]), None)
    if best is None:
        return
    import onnxruntime

    options.intra_op_num_threads = best["intra_op_num_threads"]
    for key, value in best["config_entries"].items():
        options.add_session_config_entry(key, value)
    if (arena := best["environment_arena"]) is not None:
        entries = {"arena_extend_strategy": _STRATEGIES[arena["extend_strategy"]]}
        entries |= {
            name: arena[name]
            for name in ("initial_chunk_size_bytes", "max_dead_bytes_per_chunk")
            if arena[name] is not None
        }
        memory = onnxruntime.OrtMemoryInfo(
            "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
        )
        onnxruntime.create_and_register_allocator(memory, onnxruntime.OrtArenaCfg(entries))
