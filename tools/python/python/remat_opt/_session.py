"""Sessions of ONNX Runtime for models that were made for it."""

from __future__ import annotations

import functools
import os
import pathlib
from typing import TYPE_CHECKING, Any

from . import _native
from ._files import Folder
from .errors import ModelError

if TYPE_CHECKING:
    import onnxruntime

    from ._report import Report

_LEVELS = {
    "off": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
# The name of the library that follows plans of memory.
_LIBRARY = "libremat_arena.so"
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
    path: str | os.PathLike[str],
    sess_options: onnxruntime.SessionOptions | None = None,
    providers: list[Any] | None = None,
    **keywords: Any,
) -> onnxruntime.InferenceSession:
    """A session of ONNX Runtime for a file that was written earlier. Where its plan of memory lies beside it
    (`PATH.arena`), the session obeys that: the optimization level and the number of threads of the plan are set, and
    the library beside the model, or else the one of this package, follows it.

    Args:
        path: The model.
        sess_options: Options of yours; what the plan needs is set in them. Of the plans of several numbers of threads
            within a node, the one for yours; where you set none, the one for most threads that the machine has cores
            for.
        providers: As for `onnxruntime.InferenceSession`; the processor, unless given.
        keywords: Further arguments of `onnxruntime.InferenceSession`.

    Raises:
        ModelError: The plan is for none of your numbers of threads, or is no plan.
        OSError: A plan of memory on another system than Linux.
    """
    onnxruntime = _onnxruntime()
    options = sess_options if sess_options is not None else onnxruntime.SessionOptions()
    model = pathlib.Path(os.path.abspath(path))
    plan = model.with_name(f"{model.name}.arena")
    if plan.exists():
        _obey(options, plan, model.with_name(_LIBRARY))
    return _inference(model, options, providers, keywords)


def of_report(
    path: pathlib.Path,
    report: Report,
    sess_options: onnxruntime.SessionOptions | None,
    providers: list[Any] | None,
    keywords: dict[str, Any],
) -> onnxruntime.InferenceSession:
    """A session with what the report says that the model needs."""
    onnxruntime = _onnxruntime()
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
        _obey(options, pathlib.Path(arena["file"]), pathlib.Path(arena["library"]))
    _recommended(report, options)
    return _inference(path, options, providers, keywords)


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        message = "a session needs ONNX Runtime: pip install onnxruntime"
        raise ModuleNotFoundError(message, name="onnxruntime") from error
    return onnxruntime


def _inference(
    path: pathlib.Path, options: onnxruntime.SessionOptions, providers: list[Any] | None, keywords: dict[str, Any]
) -> onnxruntime.InferenceSession:
    session: onnxruntime.InferenceSession = _onnxruntime().InferenceSession(
        str(path), options, providers=providers or ["CPUExecutionProvider"], **keywords
    )
    return session


def _obey(options: onnxruntime.SessionOptions, plan: pathlib.Path, library: pathlib.Path) -> None:
    """Sets what sessions need that follow a plan of memory."""
    level, threads = _header(plan)
    options.graph_optimization_level = getattr(_onnxruntime().GraphOptimizationLevel, _LEVELS[level])
    chosen = options.intra_op_num_threads
    if chosen == 0:
        cores = os.cpu_count() or 1
        options.intra_op_num_threads = max((n for n in threads if n <= cores), default=min(threads))
    elif chosen not in threads:
        numbers = " or ".join(map(str, sorted(threads)))
        raise ModelError(
            f"`{plan}` is for {numbers} threads within a node, the options say {chosen}: set intra_op_num_threads to "
            f"{numbers}, or plan for {chosen} (`--arena-threads`)"
        )
    options.add_session_config_entry("remat.arena.plan", str(plan))
    options.register_custom_ops_library(str(library if library.exists() else _own_library()))


def _header(plan: pathlib.Path) -> tuple[str, set[int]]:
    """The optimization level and the numbers of threads that a file of plans is for."""
    level, threads = "", set()
    try:
        with open(plan, encoding="utf-8") as lines:
            for line in lines:
                words = line.split()
                if words[:1] == ["level"] and len(words) == 2:
                    level = words[1]
                elif words[:2] == ["plan", "threads"] and len(words) > 2 and words[2].isdecimal():
                    threads.add(int(words[2]))
    except UnicodeDecodeError:
        level = ""
    if level not in _LEVELS or not threads:
        raise ModelError(f"`{plan}` is not a plan of memory")
    return level, threads


@functools.cache
def _own_library() -> pathlib.Path:
    """The library of this package as a file, one for the process: each copy would count and keep blocks of its own."""
    return arena_library(pathlib.Path(_own_folder().name) / _LIBRARY)


@functools.cache
def _own_folder() -> Folder:
    return Folder()


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
