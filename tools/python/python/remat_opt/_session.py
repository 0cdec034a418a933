"""Sessions of ONNX Runtime for models that were made for it."""

from __future__ import annotations

import functools
import os
import pathlib
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _counts, _cuda, _native, _process
from ._command import Size
from ._files import Folder, only_model
from .errors import ModelError, UsageError

if TYPE_CHECKING:
    import onnxruntime

    from ._report import Report
    from ._runtime import Session

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
    memory: Size | None = None,
    batch: str | None = None,
    share: bool | str | os.PathLike[str] = False,
    **keywords: Any,
) -> Session:
    """A session of ONNX Runtime for a file that was written earlier. Where its plan of memory lies beside it
    (`PATH.arena`), the session obeys that: the optimization level of the plan is set, and nothing else, and the library
    beside the model, or else the one of this package, follows it. Its `memory()` tells what the library counted. A
    file that moves results to a second memory gets the library in any case.

    Of a loadable form (`remat-opt model.onnx -o DIR --process`) the optimized model is taken where this version of ONNX
    Runtime and this processor are those that it was made for, with its weights mapped. Elsewhere a warning says why not,
    and the portable model that lies beside it is taken. A form that was made for a limit without room for all weights
    keeps some of them in memory, and reads the others ahead in every run (`remat.weights.resident`, bytes).

    A plan for the CUDA provider (`--device cuda`) is obeyed where `providers` name it: the session gets the functions
    that serve its memory, and nothing else of the provider's options changes.

    Args:
        path: The model, or the folder of a loadable form.
        sess_options: Options of yours; what the plan needs is set in them.
        providers: As for `onnxruntime.InferenceSession`; the processor, unless given.
        memory: A limit in bytes (`256 << 20`, `"256MiB"`) for what the runs of the process take, weights apart: runs at
            one time wait for each other, and requests that take more by themselves are run in parts of their
            batch, one after the other. Their outputs have the same bits where that is known; where it is not, a
            warning names the op that may round otherwise. Needs a plan.
        batch: The open dimension that is the batch; unless given, the first one of the first input that has one there.
        share: `True`: runs of all such sessions of this process have one block, in turns; a path: those of all processes
            of one user that name this file. Outputs lie outside, and so do the buffers of a second run of one
            session at one time. Needs a plan, and no limit.
        keywords: Further arguments of `onnxruntime.InferenceSession`.

    Raises:
        ModelError: The folder is no loadable form or is incomplete. What lies beside the model is no plan of memory, or
            there is none and you give a limit or share. Later, when a request takes more than the limit and cannot be divided: `.op` is the op that forbids it, and
            `.details["need_bytes"]` the smallest limit that works.
        UsageError: The limit is no size, or you share and give one.
        OSError: A plan of memory on another system than Linux.
    """
    onnxruntime = _onnxruntime()
    options = sess_options if sess_options is not None else onnxruntime.SessionOptions()
    model = proved = pathlib.Path(os.path.abspath(path))
    if model.is_dir():
        chosen = _process.choose(model, onnxruntime.__version__)
        if chosen.why_portable is not None:
            warnings.warn(f"`{model}`: the portable model is taken, because {chosen.why_portable}", stacklevel=2)
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, _LEVELS[chosen.level])
        if chosen.resident is not None:
            options.add_session_config_entry("remat.weights.resident", chosen.resident)
        model, proved = chosen.model, chosen.portable
    plan = model.with_name(f"{model.name}.arena")
    if plan.exists() and _cuda.is_plan(plan):
        _refuse_on_cuda(memory, batch, share)
        return _on_cuda(model, plan, options, providers, keywords)
    obeyed = _follow(options, model, memory, share)
    return _inference(model, options, providers, keywords, obeyed, memory, batch, share, proved)


def session_options(
    path: str | os.PathLike[str], sess_options: onnxruntime.SessionOptions | None = None
) -> onnxruntime.SessionOptions:
    """Options with which a session of ONNX Runtime that others make obeys the plan of memory beside a model, as `session`
    does: `ORTModel.from_pretrained(folder, session_options=remat_opt.session_options(folder))`. They are for one session of
    that model, and for no other model.

    Args:
        path: The model, or a folder that has one, below it as well.
        sess_options: Options of yours; what the plan needs is set in them.

    Raises:
        UsageError: The folder has no model or several, or is a loadable form; or the plan is for the CUDA provider, which
            needs more than options: take `session`.
        ModelError: What lies beside the model is no plan of memory.
        OSError: A plan of memory on another system than Linux.
    """
    options = sess_options if sess_options is not None else _onnxruntime().SessionOptions()
    model = only_model(pathlib.Path(os.path.abspath(path)))
    plan = model.with_name(f"{model.name}.arena")
    if plan.exists() and _cuda.is_plan(plan):
        raise UsageError(f"`{plan}` is for `{_cuda.PROVIDER}`, which needs more than options: take `remat_opt.session`")
    _follow(options, model, None, False)
    return options


def record_requests(
    path: str | os.PathLike[str],
    feeds: Iterable[Mapping[str, Any]],
    output: str | os.PathLike[str],
    sess_options: onnxruntime.SessionOptions | None = None,
    providers: list[Any] | None = None,
    runs: int = 2,
    **keywords: Any,
) -> pathlib.Path:
    """Records what a session with the CUDA provider requests of the device, for an exact plan of its memory:
    `remat-opt MODEL.onnx -o MODEL.onnx.arena --device cuda --requests OUTPUT`. It needs a device. The memory pattern is
    turned off, as in sessions that follow the plan. Returns where it was written.

    Args:
        path: The model.
        feeds: Inputs by name, NumPy arrays: one feed for each shape; of several shapes sizes become formulas.
        output: Where the requests go, as JSON.
        sess_options: Options of yours: those of the sessions that will follow the plan.
        providers: As for `onnxruntime.InferenceSession`; the CUDA provider and the processor, unless given.
        runs: How often each feed is run: the first run of a shape may request more, to choose algorithms.
        keywords: Further arguments of `onnxruntime.InferenceSession`.

    Raises:
        UsageError: The CUDA provider is not among `providers`, has options that exclude this, or is not in this ONNX
            Runtime. There is no feed, or one states two sizes of a dimension.
    """
    onnxruntime = _onnxruntime()
    if _cuda.PROVIDER not in onnxruntime.get_available_providers():
        raise UsageError("this ONNX Runtime has no CUDA provider: pip install onnxruntime-gpu")
    model = pathlib.Path(os.path.abspath(path))
    options = sess_options if sess_options is not None else onnxruntime.SessionOptions()
    wanted = providers if providers is not None else [_cuda.PROVIDER, "CPUExecutionProvider"]
    levels = {value: name for name, value in _LEVELS.items()}
    level = levels.get(options.graph_optimization_level.name)
    if level is None:
        raise UsageError(f"plans are for other levels than {options.graph_optimization_level.name}: {', '.join(levels)}")
    functions, chosen = _cuda.with_functions(_own_library(), None, wanted, record=True)
    recorder = _cuda.Recorder(model, onnxruntime.__version__, level)
    made = _made(functions, model, options, chosen, keywords)
    recorder.loaded(functions.events())
    declared = {one.name: one.shape for one in made.get_inputs()}
    ran = 0
    for feed in feeds:
        for _ in range(runs):
            # What is freed between runs belongs to none.
            functions.events()
            made.run(None, feed)
            inputs = [(name, feed[name].shape) for name in declared]
            recorder.ran(_cuda.dims(declared, feed), inputs, functions.events())
            ran += 1
    if not ran:
        raise UsageError("nothing ran: give at least one feed and one run")
    target = pathlib.Path(output)
    recorder.write(target)
    return target


def _refuse_on_cuda(memory: Size | None, batch: str | None, share: bool | str | os.PathLike[str]) -> None:
    """What is for the memory of the processor only."""
    given = {"memory": memory is not None, "batch": batch is not None, "share": bool(share)}
    if wrong := [name for name, is_given in given.items() if is_given]:
        raise UsageError(f"`{wrong[0]}` is for the memory of the processor, and the plan is for the CUDA provider")


def _on_cuda(
    model: pathlib.Path,
    plan: pathlib.Path,
    options: onnxruntime.SessionOptions,
    providers: list[Any] | None,
    keywords: dict[str, Any],
) -> Session:
    """A session whose CUDA provider follows a plan."""
    if _cuda.place(providers) is None:
        from ._runtime import Session

        warnings.warn(f"`{plan}` is for `{_cuda.PROVIDER}`, which `providers` do not name: no plan is followed", stacklevel=3)
        return Session(model, options, providers, keywords)
    try:
        level = _LEVELS[_cuda.header(plan)["level"]]
    except KeyError as error:
        raise ModelError(f"`{plan}` names no level of this version: plan it again (`remat-opt`)") from error
    library = model.with_name(_LIBRARY)
    functions, chosen = _cuda.with_functions(library if library.exists() else _own_library(), plan, providers or [])
    options.graph_optimization_level = getattr(_onnxruntime().GraphOptimizationLevel, level)
    return _made(functions, model, options, chosen, keywords)


def _made(
    functions: _cuda.Functions,
    model: pathlib.Path,
    options: onnxruntime.SessionOptions,
    providers: list[Any],
    keywords: dict[str, Any],
) -> Session:
    """A session whose CUDA provider has these functions, for as long as it is there."""
    from ._runtime import Session

    functions.register(options)
    try:
        made = Session(model, options, providers, keywords, functions.counts)
    except BaseException:
        functions.give_up()
        raise
    functions.close_with(made)
    return made


def of_report(
    path: pathlib.Path,
    report: Report,
    sess_options: onnxruntime.SessionOptions | None,
    providers: list[Any] | None,
    memory: Size | None,
    batch: str | None,
    share: bool | str | os.PathLike[str],
    keywords: dict[str, Any],
) -> Session:
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
    arena, pages = report.get("arena_plan"), report.get("pages_library")
    obeyed = None
    if arena is not None:
        obeyed = _obey(options, pathlib.Path(arena["file"]), pathlib.Path(arena["library"]), memory, share)
    elif pages is not None:
        _page(options, path, pathlib.Path(pages))
    _recommended(report, options)
    return _inference(path, options, providers, keywords, obeyed, memory, batch, share)


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        message = "a session needs ONNX Runtime: pip install onnxruntime"
        raise ModuleNotFoundError(message, name="onnxruntime") from error
    return onnxruntime


def _inference(
    path: pathlib.Path,
    options: onnxruntime.SessionOptions,
    providers: list[Any] | None,
    keywords: dict[str, Any],
    obeyed: tuple[_native.ArenaPlans, _counts.Counts | None] | None,
    memory: Size | None,
    batch: str | None,
    share: bool | str | os.PathLike[str],
    proved: pathlib.Path | None = None,
) -> Session:
    from ._parts import Parts, Proof
    from ._runtime import Session

    if obeyed is None:
        if memory is not None or share:
            asked = "a limit of memory" if memory is not None else "a shared block"
            raise ModelError(f"{asked} needs a plan of memory, and none lies beside `{path}`: plan it (`remat-opt`)")
        return Session(path, options, providers, keywords)
    plans, counts = obeyed
    if memory is None:
        return Session(path, options, providers, keywords, counts)
    # Before the session has its weights: then the model is in memory once at a time.
    proof = Proof(proved or path, plans, batch)
    limit = functools.partial(
        Parts,
        model=path,
        plans=plans,
        proof=proof,
        limit=_bytes(memory),
        batch=batch,
        threads=options.intra_op_num_threads,
    )
    return Session(path, options, providers, keywords, counts, limit)


def _follow(
    options: onnxruntime.SessionOptions, model: pathlib.Path, memory: Size | None, share: bool | str | os.PathLike[str]
) -> tuple[_native.ArenaPlans, _counts.Counts | None] | None:
    """Sets what sessions need that follow the plan of memory beside a model, if there is one."""
    plan, library = model.with_name(f"{model.name}.arena"), model.with_name(_LIBRARY)
    if plan.exists():
        return _obey(options, plan, library, memory, share)
    _page(options, model, library)
    return None


def _obey(
    options: onnxruntime.SessionOptions,
    plan: pathlib.Path,
    library: pathlib.Path,
    memory: Size | None,
    share: bool | str | os.PathLike[str],
) -> tuple[_native.ArenaPlans, _counts.Counts | None]:
    """Sets what sessions need that follow a plan of memory. The plans, and where the library counts for the session."""
    try:
        plans = _native.ArenaPlans(plan)
        level = _LEVELS[plans.level]
    except (ValueError, KeyError) as error:
        raise ModelError(
            f"`{plan}` is no plan of memory of this version ({error}): plan it again (`remat-opt`)"
        ) from error
    options.graph_optimization_level = getattr(_onnxruntime().GraphOptimizationLevel, level)
    options.add_session_config_entry("remat.arena.plan", str(plan))
    if memory is not None:
        options.add_session_config_entry("remat.arena.limit", str(_bytes(memory)))
    if share:
        if memory is not None:
            raise UsageError("sessions that share a block have no limit beside it: give `memory` or `share`")
        options.add_session_config_entry("remat.arena.share", "process" if share is True else os.path.abspath(share))
    # Who shares a block has the same library.
    follower = _counts.library(library if library.exists() and not share else _own_library())
    return plans, follower.register(options, plans.block_bytes)


def _page(options: onnxruntime.SessionOptions, model: pathlib.Path, library: pathlib.Path) -> None:
    """Gives sessions of a model that moves results to a second memory the library that does so."""
    if _native.needs_arena_library(model):
        options.register_custom_ops_library(str(library if library.exists() else _own_library()))


def _bytes(memory: Size) -> int:
    """A limit in bytes."""
    try:
        bytes_ = _native.bytes_of(memory) if isinstance(memory, str) else int(memory)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if bytes_ <= 0:
        raise UsageError(f"a limit of memory is a positive number of bytes, not {bytes_}")
    return bytes_


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
