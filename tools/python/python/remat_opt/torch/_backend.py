"""Backends of `torch.compile` that keep a training step within a number of bytes."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import fx

from ..errors import UsageError
from ._budget import Memory, parse
from ._check import Run
from ._code import Inner
from ._compiled import Compiled, Owner
from ._dynamo import copy_of
from ._effects import names_of
from ._offload import Offload, offload_of
from ._partition import Settings, graph_name
from ._plans import MOVES, Search
from ._report import Report, record
from ._sizes import Sizes, is_dynamic, not_fixed
from ._together import processes
from ._versions import configuration, fusion_settings, is_resumed
from ._wrappers import GATHERED, is_gathered

_log = logging.getLogger("remat_opt")


def backend(
    memory: Memory,
    inner: Literal["inductor", "aot_eager"] = "inductor",
    *,
    time_limit: float = 10.0,
    step_limit: int | None = None,
    threads: int | None = None,
    seed: int = 0,
    check: bool = True,
    strict: bool = False,
    recomputable: Collection[str] = (),
    sizes: int = 8,
    offload: Offload | bool | int | str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Backend:
    """A backend of `torch.compile`: a training step, forward and backward, stays within a number of bytes.

        model = torch.compile(model, backend=remat_opt.torch.backend("2GiB"))

    Results of the forward are dropped and computed again in the backward, as few and as cheap as possible; the plan
    knows time and workspace of every op, measured on this machine.

    What counts in `memory`: parameters, buffers and inputs, as far as the graph reads them; all intermediate results,
    in the forward and saved for the backward; the gradients of parameters and inputs; workspace of kernels. What does
    not: the state of the optimizer and what it takes while it runs, gradients of the step before (set them to `None`
    first), the interpreter, and what allocators hold in reserve.

    Failures do not break training: where no plan can be made, PyTorch's own partitioner is used, with a warning of the
    logger `remat_opt` and a note in the report. That goes for graphs inside graphs, shapes that depend on the values of
    tensors, and behind Inductor for models with `fully_shard`. Where no plan keeps the budget, that with the lowest peak is
    taken.

    Several graphs in a step, of a model with graph breaks for instance, share the budget once a step was seen.

    Args:
        memory: The total: bytes (`2 << 30`, `"2GiB"`), or a share (`"60%"`, `0.6`) of what the step takes above
            parameters and inputs without a plan, run by `inner`; or `"auto"`, the lowest peak that costs 5 % of time at
            most; or `"fit"`, what is free on the device when a graph is compiled; or `"min"`.
        inner: What runs the two graphs. `"aot_eager"` runs them op by op, in exactly the order of the plan: the bits of
            the model as it is, and the promised peak. `"inductor"` generates code; it is faster, fuses and reorders,
            so the peak of several ways to split the graph is predicted, PyTorch's own among them, and the fastest that
            should fit is compiled and measured, then the next one, up to four times.
        time_limit: Seconds to search for each plan.
        step_limit: Most steps of the search for each plan; with one thread and the same seed, every search of the
            same graph gives the same plan, unless `time_limit` ends it before.
        threads: Threads to search with.
        seed: Of the random choices.
        check: Whether the first call of a graph compares all gradients with those of the model as it is: the same bits
            for `"aot_eager"`, up to rounding for `"inductor"`. Gradients that are wrong lead to PyTorch's own
            partitioner. The first call takes about three steps for it, and twice the memory of the gradients. Where
            several processes train together, those of all do or none.
        strict: Whether failures are raised instead.
        recomputable: Ops of other packages that may run again, by name (`"my::mask"`) or by package (`"my"`). Others run
            once: nothing says whether they draw random numbers or change something.
        sizes: How many sizes of a graph with dynamic shapes have a plan, made when each first comes; for others the graph
            runs as it is. Such graphs come of batches of another size, a smaller last one for instance.
        offload: Whether values may also move to a second memory until they are needed: pinned memory of the host for a
            CUDA device, a file for a CPU. `True`, or the room there, such as `"8GiB"`, or an `Offload`. With
            `inner="aot_eager"` only.
        options: Configuration of Inductor, as `options` of `torch.compile`.

    Raises:
        UsageError: Arguments that make no sense.
    """
    if inner not in ("inductor", "aot_eager"):
        raise UsageError(f"inner is 'inductor' or 'aot_eager', not {inner!r}")
    second = offload_of(offload)
    if second is not None and inner == "inductor":
        raise UsageError('offload is for inner="aot_eager": behind Inductor nothing moves')
    search = Search(time_limit=time_limit, step_limit=step_limit, threads=threads, seed=seed)
    if second is not None:
        search = replace(search, solver=MOVES)
    settings = Settings(parse(memory), search, strict=strict, recomputable=names_of(recomputable), offload=second)
    if inner == "inductor":
        settings = replace(settings, form="split", is_owned=True, is_checked=check)
    owner = _owner(settings, inner, check, dict(options or {}))
    if isinstance(sizes, bool) or not isinstance(sizes, int) or sizes < 1:
        raise UsageError(f"sizes is a number of sizes, at least 1, not {sizes!r}")
    return Backend(owner, sizes)


def _owner(settings: Settings, inner: str, check: bool, options: Mapping[str, Any]) -> Owner:
    if inner == "inductor":
        tight = {name: value for name, value in fusion_settings().items() if name not in options}
        settings = replace(settings, options=dict(options), tight=tight)
    return Owner(settings, Inner(inner, options), check)


_named: dict[str, Backend] = {}
"""The backends behind `torch.compile(backend="remat")`, by their options: graphs of one call have one of them."""


def compile_remat(
    gm: fx.GraphModule, example_inputs: Sequence[Any], *, mode: Any = None, options: Mapping[str, Any] | None = None
) -> Run:
    """What `torch.compile(model, backend="remat", options={"memory": "2GiB"})` calls.

    Args:
        gm: A graph of Dynamo.
        example_inputs: Of the graph.
        mode: As of `Backend`.
        options: The arguments of `backend`; `memory` has to be among them. Reports are those of `reports()`.

    Raises:
        UsageError: An option is missing or unknown, or the mode is.
    """
    given = dict(options or {})
    if "memory" not in given:
        raise UsageError('say how much: torch.compile(model, backend="remat", options={"memory": "2GiB"})')
    known = inspect.signature(backend).parameters
    if unknown := sorted(given.keys() - known.keys()):
        raise UsageError(f"the backend has no option {unknown[0]!r}, but {', '.join(known)}")
    key = repr(sorted(given.items()))
    if key not in _named:
        _named[key] = backend(**given)
    return _named[key](gm, example_inputs, mode=mode)


class Backend:
    """What `backend` gives: pass it to `torch.compile`."""

    def __init__(self, owner: Owner, sizes: int = 8) -> None:
        self._owner = owner
        self._sizes = sizes
        self._configured: dict[str, Owner] = {}
        """By what `torch.compile` was given besides the backend."""

    @property
    def reports(self) -> list[Report]:
        """One for each graph that was compiled, and for each size of one with dynamic shapes, oldest first; the last plan
        of each."""
        return self._owner.reports

    def __call__(
        self, gm: fx.GraphModule, example_inputs: Sequence[Any], *, mode: Any = None, options: Any = None
    ) -> Run:
        """Compiles a graph of Dynamo.

        Args:
            gm: A graph of Dynamo.
            example_inputs: Of the graph.
            mode: Of `torch.compile`, such as `"reduce-overhead"`: a name for options of Inductor.
            options: Of `torch.compile`: options of Inductor, beside those that the backend was made with.

        Raises:
            UsageError: A mode or an option that Inductor does not have, or either without Inductor.
        """
        owner = self._owner_with(None if mode == "default" else mode, options or {})
        if not _trains(example_inputs):
            return owner.inner.compile(gm, example_inputs)
        part = reason = _cut(gm) or (GATHERED if is_gathered() else None)
        is_refused = reason == GATHERED and owner.inner.name != "aot_eager"
        if reason is not None and (is_refused or not owner.divides(gm)):
            return _unplanned(owner, gm, example_inputs, reason)
        if not any(is_dynamic(one) for one in example_inputs):
            return Compiled(owner, gm, example_inputs, part)
        reason = not_fixed(gm, example_inputs)
        if reason is None and processes() > 1:
            reason = "several processes may meet a size at different times (dynamic shapes)"
        if reason is not None:
            return _unplanned(owner, gm, example_inputs, reason)
        return Sizes(
            copy_of(gm),
            example_inputs,
            lambda graph, inputs, name: Compiled(owner, graph, inputs, part, name),
            owner.reports,
            name=graph_name(),
            inner=owner.inner.name,
            most=self._sizes,
            strict=owner.settings.strict,
        )

    def _owner_with(self, mode: str | None, options: Mapping[str, Any]) -> Owner:
        """What graphs share that are compiled with a mode and options."""
        if mode is None and not options:
            return self._owner
        own = self._owner
        if own.inner.name != "inductor":
            raise UsageError("mode= and options= of torch.compile configure Inductor, which does not run here: "
                             'leave them out, or make the backend with inner="inductor"')
        key = repr((mode, sorted(options.items())))
        if key not in self._configured:
            made = _owner(own.settings, own.inner.name, own.is_checked, {**own.inner.options, **configuration(mode, options)})
            made.reports = own.reports
            self._configured[key] = made
        return self._configured[key]


def _unplanned(owner: Owner, gm: fx.GraphModule, example_inputs: Sequence[Any], reason: str) -> Run:
    if owner.settings.strict:
        raise UsageError(reason)
    report = record(Report(graph=graph_name(), inner=owner.inner.name, fallback=reason))
    owner.reports.append(report)
    _log.warning("graph %s is not planned: %s", report.graph, reason)
    return owner.inner.compile(gm, example_inputs)


def _cut(gm: fx.GraphModule) -> str | None:
    """Why a graph is only a part of a step."""
    reason = getattr(gm, "compile_subgraph_reason", None)
    if reason is not None and reason.graph_break:
        text = "".join(str(reason.reason).strip().splitlines()[:1])
        place = next((f", at {one.filename}:{one.lineno}" for one in reversed(reason.user_stack or ())), "")
        return f"a graph break makes several graphs of the model ({text}{place})"
    return "it is the rest of a model behind a graph break" if is_resumed() else None


def _trains(inputs: Sequence[Any]) -> bool:
    return torch.is_grad_enabled() and any(isinstance(one, torch.Tensor) and one.requires_grad for one in inputs)
