"""The main job: a model in, a model that takes less memory out."""

from __future__ import annotations

import json
import os
import pathlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from . import _command as command
from ._command import Seconds, Share, Size, Sizes
from ._files import Folder, Model, model_file, path_of
from ._plan import Plan
from ._progress import ProgressCallback
from ._report import Report
from ._result import Result
from .errors import InfeasibleError, VerificationError

__all__ = ["Result", "optimize"]


def optimize(
    model: Model,
    budget: str | int | float = "auto",
    *,
    output: str | os.PathLike[str] | None = None,
    page: str | os.PathLike[str] | None = None,
    target: Literal["ort", "onnx"] = "ort",
    max_overhead: Share | None = None,
    fission: Literal["off", "exact", "close"] | None = None,
    exact_threads: int | None = None,
    time_limit: Seconds = 10.0,
    solver: str = "auto",
    dims: Mapping[str, int] | None = None,
    fix_dims: Mapping[str, int] | Iterable[str] | None = None,
    shapes: str | Mapping[str, Sizes] | None = None,
    weights: str | os.PathLike[str] | None = None,
    sizes: Mapping[str, int] | None = None,
    device: str | None = None,
    profile: str | os.PathLike[str] | None = None,
    level: Literal["off", "basic", "extended", "all"] = "all",
    arena_plan: bool = True,
    process: bool = False,
    memory: Size | None = None,
    settings: bool = False,
    measure: bool = True,
    step_limit: int | None = None,
    threads: int | None = None,
    memory_limit: Size | None = None,
    seed: int = 0,
    options: Sequence[str] = (),
    progress: ProgressCallback | None = None,
) -> Result:
    """Rewrites a model so that it does the same work in less memory.

    Args:
        model: An `onnx.ModelProto`, what `torch.onnx.export` gives, serialized bytes, or a path (a model whose weights
            lie in files of their own needs its path).
        budget: The peak to stay within: `"auto"` (the lowest whose added time is estimated to stay within `max_overhead`,
            or 5 %), a share of the model's own (`"70%"`, `0.7`), bytes (`512 << 20`, `"512MiB"`), `"min"` (the lowest that
            is found) or `"none"`.
        output: Where to write the model, `.onnx`; with `process` a folder. Without it the files live as long as the result.
        page: Where to write the report as a page for a browser, `.html`: memory over the steps before and after, what
            is computed again, the block.
        target: `"ort"`: ONNX Runtime, whose memory is simulated and measured. `"onnx"`: any runtime that follows the
            order of the file.
        max_overhead: Time that may be added, as a share: `0.05`, `"5%"`.
        fission: Whether large ops may run tile by tile: `"exact"` with the same bits (the default for ONNX Runtime),
            `"close"` with sums in another order, `"off"`. With `"close"` the report says how far outputs lie apart
            (`relative_difference`, for images `psnr_db`).
        exact_threads: The most threads within an op (`intra_op_num_threads`) with which `"exact"` keeps every bit: those
            of the largest machine that runs the model; 64 unless given, and fewer permit more tiles. On
            processors with two kinds of cores each thread counts as four.
        time_limit: Seconds to search, simulate and measure. One measured run of each model comes on top.
        solver: A solver of `docs/solvers`.
        dims: Values of symbolic dimensions to plan at, `{"batch": 8}`: they stay free, the model takes every other
            value, too, and is right for it.
        fix_dims: Symbolic dimensions to fix, `{"n": 512}`, or names of those in `dims`: the inputs of the model declare
            the number, and its sessions refuse every other one. Then fused chains may run tile by tile along them.
        shapes: Sizes that symbolic dimensions have in runs: `"batch=1..64,sequence=1..512"`, or
            `{"batch": range(1, 65), "sequence": [64, 128]}`. One file, and one plan of memory, serves all of them.
        weights: A file of shapes that were seen in runs, and how often: lines `batch=4,sequence=128 17`.
        sizes: Bytes of tensors whose size cannot be inferred.
        device: A device whose times and memory count, or `"cuda"`.
        profile: Measured times per op, as `remat-opt profile` writes them, or `"measured"` to measure them now.
        level: Graph optimization level of the sessions that will run the model.
        arena_plan: Plan the memory of the written model, too: its sessions give every buffer its place in one block.
            Linux, and where the model is measured.
        process: Write the loadable form, a folder (`output`) that `remat_opt.session` loads with the least memory: the
            optimized model, its weights mapped from one file as kernels read them, and its plan of memory.
        memory: Limit of a whole process of Python that loads what is written and runs it: bytes, or `"256MiB"`. Runs get
            what the rest leaves. The report says what the process takes (`process`).
        settings: Try session options that lower the memory of the written model; its sessions have the best.
        measure: Run both models to compare bits, memory and time.
        step_limit: Most steps of the search. With one thread, the same seed and no limit of time in the way, every
            call gives the same plan.
        threads: Threads to search with; 2, or 1 where there is one core.
        memory_limit: Most bytes that this process may take; the search stops there with the best plan so far.
        seed: Of the random choices.
        options: Further options, as on the command line: `["--order-hint", "priority"]`.
        progress: Called now and then with a `Progress`; where it returns `False`, the call ends with the best that
            was found.

    Returns:
        The model, its plan and its report. Where no file takes less than the original model, that is the model
        (`changed` is false). Where a measured peak lies above the predicted one, a warning is issued, and the
        report says so (`within_prediction`).

    Raises:
        InfeasibleError: It is proved that no plan keeps the budget; `.op` names the op that forbids it. Or no file was
            measured within it, to the byte: `.details` says what the closest one takes. Or the process takes more than
            `memory`: `.details` names the ledger that forbids it, and the smallest limit that works. With `options=["--force"]` that
            is a warning, and the closest file is the result.
        LimitError: A limit was reached before a plan was found.
        ModelError: The model cannot be read.
        UsageError: The arguments make no sense.
        KeyboardInterrupt: Within a second of Ctrl-C.
    """
    folder = Folder()
    place = pathlib.Path(folder.name)
    written = path_of(output) if output is not None else place / ("form" if process else "model.onnx")
    plan = place / "plan.json"
    source = model_file(model, place)
    arguments: command.Line = [
        *(source, "-o", written),
        *command.options(emit_plan=plan, budget=command.budget(budget), target=target, solver=solver, seed=seed),
        *command.options(
            time_limit=command.seconds(time_limit), step_limit=step_limit, threads=threads, memory_limit=memory_limit
        ),
        *command.options(
            max_overhead=None if max_overhead is None else command.share(max_overhead), fission=fission, device=device
        ),
        *command.options(exact_threads=exact_threads, process=process, memory=memory),
        *command.options(
            profile=profile, level=level, no_arena_plan=not arena_plan, settings=settings, no_measure=not measure
        ),
        *command.options(report=page and path_of(page)),
        *command.dimensions(dims, fix_dims),
        *command.in_shapes(shapes, weights),
        *command.assigned("size", sizes),
        *options,
    ]
    try:
        report = Report(command.call(arguments, progress))
    except (VerificationError, InfeasibleError) as error:
        # Measured on a busy machine, a model may take more than predicted; whether that matters is the caller's to say. A
        # file above the budget is there only where it was asked for (`--force`).
        about, found = error.details.get("type"), error.report or {}
        is_forced = about == "budget-missed" and found.get("is_written", False)
        if error.report is None or not (about == "prediction-exceeded" or is_forced):
            raise
        warnings.warn(str(error), stacklevel=2)
        report = Report(error.report)
    return Result(
        report,
        Plan(json.loads(plan.read_text(encoding="utf-8"))),
        written if written.exists() and report.get("is_written", True) else source,
        folder,
    )
