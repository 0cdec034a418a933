"""Commands on models and graphs that write none."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Union

from . import _command as command
from ._command import Seconds, Share, Size, Sizes
from ._files import Folder, Model, json_file, model_file, path_of
from ._plan import Plan
from ._problem import Problem
from ._progress import ProgressCallback
from ._report import Report

Input = Union[Model, Problem]
"""A model, or a graph."""


def inspect(
    model: Input,
    *,
    plan: Plan | str | os.PathLike[str] | None = None,
    dims: Mapping[str, int] | None = None,
    fix_dims: Mapping[str, int] | Iterable[str] | None = None,
    shapes: str | Mapping[str, Sizes] | None = None,
    weights: str | os.PathLike[str] | None = None,
    memory: Size | None = None,
    options: Sequence[str] = (),
    progress: ProgressCallback | None = None,
) -> Report:
    """Where the memory of a model goes.

    Args:
        model: A model, or a `Problem`.
        plan: The plan under which it runs; its own order, unless given.
        dims: Values of symbolic dimensions: `{"batch": 8}`.
        fix_dims: Symbolic dimensions that are fixed, see `optimize`.
        shapes: Sizes that symbolic dimensions have in runs, see `optimize`: the report has a bound for all of them
            (`range`).
        weights: A file of shapes that were seen in runs, see `optimize`.
        memory: Limit of a whole process that loads the model and runs it, see `optimize`.
        options: Further options of `remat-opt inspect`.
        progress: Called now and then with a `Progress`.

    Returns:
        `remat-inspect/2`: `peak_bytes`, `peak_node`, `resident_at_peak`, `timeline` (bytes `during` and `after` each
        step), what tiles would give (`in_tiles`), what a process takes in ONNX Runtime (`process`).

    Raises:
        InfeasibleError: The process takes more than `memory`.
        ModelError: The model cannot be read.
    """
    with Folder() as folder:
        place = pathlib.Path(folder)
        arguments: command.Line = [
            *("inspect", _input(model, place)),
            *command.options(plan=_plan(plan, place), memory=memory),
            *command.dimensions(dims, fix_dims),
            *command.in_shapes(shapes, weights),
            *options,
        ]
        return Report(command.call(arguments, progress))


def verify(
    model: Input,
    other: Plan | Model,
    *,
    page: str | os.PathLike[str] | None = None,
    dims: Mapping[str, int] | None = None,
    fix_dims: Mapping[str, int] | Iterable[str] | None = None,
    options: Sequence[str] = (),
    progress: ProgressCallback | None = None,
) -> Report:
    """Replays a plan with the independent checker, or runs a rewritten model beside its original in ONNX Runtime.

    Args:
        model: The original, or a `Problem`.
        other: A `Plan` (or the path of one, `.json` or `.sched`), or the rewritten model.
        page: Where to write what was found as a page for a browser, `.html`.
        dims: Values of symbolic dimensions: `{"batch": 8}`.
        fix_dims: Symbolic dimensions that are fixed, see `optimize`.
        options: Further options of `remat-opt verify`.
        progress: Called now and then with a `Progress`.

    Returns:
        Of a plan `remat-verify/1` with its peak and duration, of a model `remat-verify-models/2` with bits, memory
        and time. In a notebook, a plan shows as a drawing of its runs over time.

    Raises:
        VerificationError: The plan breaks rules (`.details["violations"]`), or outputs differ.
        ModelError: A model or the plan cannot be read.
    """
    with Folder() as folder:
        place = pathlib.Path(folder)
        is_plan = isinstance(other, Plan) or (
            isinstance(other, (str, os.PathLike)) and not str(other).endswith(".onnx")
        )
        chart = place / "timeline.svg"
        if isinstance(other, Plan):
            second = json_file(other, place / "plan.json")
        else:
            below = place / "other"
            below.mkdir()
            second = model_file(other, below)
        arguments: command.Line = [
            "verify",
            _input(model, place),
            second,
            *command.options(svg=chart if is_plan else None, report=page and path_of(page)),
        ]
        report = Report(command.call([*arguments, *command.dimensions(dims, fix_dims), *options], progress))
        report.chart = _drawing(chart)
        return report


def sweep(
    model: Input,
    budgets: str | Sequence[str | int | float] = "90%..50%:10%,min",
    *,
    output: str | os.PathLike[str] | None = None,
    page: str | os.PathLike[str] | None = None,
    time_limit: Seconds = 10.0,
    total_time_limit: Seconds | None = None,
    solver: str = "auto",
    fission: Literal["off", "exact", "close"] | None = None,
    exact_threads: int | None = None,
    dims: Mapping[str, int] | None = None,
    fix_dims: Mapping[str, int] | Iterable[str] | None = None,
    shapes: str | Mapping[str, Sizes] | None = None,
    weights: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    step_limit: int | None = None,
    seed: int = 0,
    options: Sequence[str] = (),
    progress: ProgressCallback | None = None,
) -> Report:
    """A plan for each of several budgets: the Pareto front of memory against time.

    Args:
        model: A model, or a `Problem`.
        budgets: Shares (`"80%"`, `0.8`), ranges of shares (`"90%..50%:5%"`), bytes (`512 << 20`, `"512MiB"`),
            `"min"`; as a list, or in one text with commas.
        output: Where to keep the front with all its plans, as JSON; a file that is there is continued.
        page: Where to write the front as a page for a browser, `.html`.
        time_limit: Seconds to search for one budget.
        total_time_limit: Seconds for all of them.
        solver: A solver of `docs/solvers`.
        fission: Whether ops may run tile by tile, see `optimize`.
        exact_threads: Threads with which tiles keep every bit, see `optimize`.
        dims: Values of symbolic dimensions: `{"batch": 8}`.
        fix_dims: Symbolic dimensions that are fixed, see `optimize`.
        shapes: Sizes that symbolic dimensions have in runs, see `optimize`: the report has a bound for all of them
            (`range` of each point).
        weights: A file of shapes that were seen in runs, see `optimize`.
        threads: Threads to search with.
        step_limit: Most steps of the search for one budget.
        seed: Of the random choices.
        options: Further options of `remat-opt sweep`.
        progress: Called now and then with a `Progress`; where it returns `False`, what was found until then is the
            result.

    Returns:
        `remat-sweep/2`: `points`, loose budgets first, each with `peak_bytes`, `overhead_percent` and what is proved.
        In a notebook it shows as a chart.

    Raises:
        InfeasibleError: It is proved that no plan keeps any of the budgets.
        LimitError: No plan was found for any of them.
        ModelError: The model cannot be read.
    """
    with Folder() as folder:
        place = pathlib.Path(folder)
        chart = place / "front.svg"
        if not isinstance(budgets, str):
            budgets = ",".join(command.budget(budget) for budget in budgets)
        arguments: command.Line = [
            *("sweep", _input(model, place)),
            *command.options(
                budgets=budgets, solver=solver, fission=fission, seed=seed, threads=threads, step_limit=step_limit
            ),
            *command.options(exact_threads=exact_threads),
            *command.options(time_limit=command.seconds(time_limit), svg=chart, output=output and path_of(output)),
            *command.options(report=page and path_of(page)),
            *command.options(total_time_limit=None if total_time_limit is None else command.seconds(total_time_limit)),
            *command.dimensions(dims, fix_dims),
            *command.in_shapes(shapes, weights),
            *options,
        ]
        report = Report(command.call(arguments, progress))
        report.chart = _drawing(chart)
        return report


def max_batch(
    model: Input,
    memory: Size,
    batch_dim: str | None = None,
    *,
    fixed_memory: Size | None = None,
    max_overhead: Share = 1.0,
    largest: int | None = None,
    time_limit: Seconds = 60.0,
    solver: str = "auto",
    dims: Mapping[str, int] | None = None,
    fix_dims: Mapping[str, int] | Iterable[str] | None = None,
    shapes: str | Mapping[str, Sizes] | None = None,
    weights: str | os.PathLike[str] | None = None,
    seed: int = 0,
    options: Sequence[str] = (),
    progress: ProgressCallback | None = None,
) -> Report:
    """The largest batch that fits into memory, with and without rematerialization.

    Args:
        model: A model with a symbolic dimension for the batch, or a `Problem`, all of whose sizes grow with the
            batch.
        memory: Memory that there is, of a model for the whole process: bytes, or `"16GiB"`.
        batch_dim: The dimension to enlarge; `None` for a `Problem`.
        fixed_memory: Memory of it that is taken whatever the plan; of a model, unless given, what its process takes
            beside runs.
        max_overhead: Time that may be added, as a share of that without rematerialization at the same size.
        largest: Largest size to try.
        time_limit: Seconds for the call. Where ONNX Runtime is installed, the answer is tried in it: `is_checked`.
        solver: A solver of `docs/solvers`.
        dims: Values of other symbolic dimensions.
        fix_dims: Symbolic dimensions that are fixed, `batch_dim` among them where it is named, see `optimize`.
        shapes: Sizes that the other symbolic dimensions have in runs, see `optimize`: what is found fits with all of
            them (`range`).
        weights: A file of shapes that were seen in runs, see `optimize`.
        seed: Of the random choices.
        options: Further options of `remat-opt max-batch`.
        progress: Called now and then with a `Progress`.

    Returns:
        `remat-max-batch/2`: the sizes `without` and `with`, and all `trials`.

    Raises:
        InfeasibleError: It is proved that not even one fits.
        LimitError: None was found that fits.
        ModelError: The model cannot be read.
    """
    with Folder() as folder:
        source = _input(model, pathlib.Path(folder))
        factor = 1 if isinstance(model, Problem) and batch_dim is None else None
        arguments: command.Line = [
            *("max-batch", source),
            *command.options(
                memory=memory, fixed_memory=fixed_memory, batch_dim=batch_dim, batch_factor=factor, largest=largest
            ),
            *command.options(
                max_overhead=command.share(max_overhead),
                time_limit=command.seconds(time_limit),
                solver=solver,
                seed=seed,
            ),
            *command.dimensions(dims, fix_dims),
            *command.in_shapes(shapes, weights),
            *options,
        ]
        return Report(command.call(arguments, progress))


def _input(model: Input, folder: pathlib.Path) -> pathlib.Path:
    return model._file(folder) if isinstance(model, Problem) else model_file(model, folder)


def _plan(plan: Plan | str | os.PathLike[str] | None, folder: pathlib.Path) -> pathlib.Path | None:
    if plan is None:
        return None
    return json_file(plan, folder / "plan.json") if isinstance(plan, Plan) else path_of(plan)


def _drawing(path: pathlib.Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None
