"""Backends of `torch.compile` that keep a training step within a number of bytes."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import fx

from ..errors import UsageError
from ._budget import Memory, parse
from ._check import Gradients, Run, Trial
from ._effects import names_of
from ._partition import Partitioner, Settings, graph_name
from ._peak import free_bytes, peak_above
from ._plans import Search
from ._report import Report, record
from ._sizes import Sizes, is_dynamic, not_fixed
from ._split import Split
from ._together import Together, processes
from ._versions import fusion_settings, inductor_partitions_with, is_resumed

_log = logging.getLogger("remat_opt")

_ROUNDS = 4
"""Splits of one graph that are compiled, until the measured peak keeps the budget."""
_WORTH = 0.98
"""A further split is compiled where no more than this share of the least measured peak is expected of it."""
_CLOSE = 1.0
"""The largest error of `Gradients.error` that passes: what rounding brings about."""
_DRAWING = ("drop", "rand", "bernoulli", "normal_", "uniform_", "multinomial")
"""What the names of functions contain that draw random numbers."""


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
    logger `remat_opt` and a note in the report. That goes for models that Dynamo cuts into several graphs, graphs inside
    graphs, and shapes that depend on the values of tensors. Where no plan keeps the budget, that with the lowest peak is taken.

    Args:
        memory: The total: bytes (`2 << 30`, `"2GiB"`), or a share (`"60%"`, `0.6`) of what the step takes above
            parameters and inputs without recomputation; or `"auto"`, the lowest peak that costs 5 % of time at most;
            or `"fit"`, what is free on the device when a graph is compiled; or `"min"`.
        inner: What runs the two graphs. `"aot_eager"` runs them op by op, in exactly the order of the plan: the bits of
            the model as it is, and the promised peak. `"inductor"` generates code; it is faster, fuses and reorders,
            so the peak of several ways to split the graph is predicted, and the fastest that should fit is compiled and
            measured, then the next one, up to four times.
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
        options: Configuration of Inductor, as `options` of `torch.compile`.

    Raises:
        UsageError: Arguments that make no sense.
    """
    if inner not in ("inductor", "aot_eager"):
        raise UsageError(f"inner is 'inductor' or 'aot_eager', not {inner!r}")
    search = Search(time_limit=time_limit, step_limit=step_limit, threads=threads, seed=seed)
    settings = Settings(parse(memory), search, strict=strict, recomputable=names_of(recomputable))
    own = dict(options or {})
    if inner == "inductor":
        own = fusion_settings() | own
        settings = replace(settings, form="split", options=repr(sorted(own.items())), is_owned=True)
        settings = replace(settings, is_checked=check)
    if isinstance(sizes, bool) or not isinstance(sizes, int) or sizes < 1:
        raise UsageError(f"sizes is a number of sizes, at least 1, not {sizes!r}")
    return Backend(settings, inner, check, own, sizes)


_named: dict[str, Backend] = {}
"""The backends behind `torch.compile(backend="remat")`, by their options: graphs of one call have one of them."""


def compile_remat(
    gm: fx.GraphModule, example_inputs: Sequence[Any], *, mode: Any = None, options: Mapping[str, Any] | None = None
) -> Run:
    """What `torch.compile(model, backend="remat", options={"memory": "2GiB"})` calls.

    Args:
        gm: A graph of Dynamo.
        example_inputs: Of the graph.
        mode: None but the default one.
        options: The arguments of `backend`; `memory` has to be among them. Reports are those of `reports()`.

    Raises:
        UsageError: An option is missing or unknown, or there is a mode.
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

    def __init__(
        self, settings: Settings, inner: str, check: bool, options: dict[str, Any], sizes: int = 8
    ) -> None:
        self._settings = settings
        self._inner = inner
        self._check = check
        self._options = options
        self._sizes = sizes
        self._checked: dict[tuple[str, str] | None, Report] = {}
        """The reports of what was checked and may be used, by its code."""
        self.reports: list[Report] = []
        """One for each graph that was compiled, and for each size of one with dynamic shapes, oldest first; the last plan
        of each."""

    def __call__(
        self, gm: fx.GraphModule, example_inputs: Sequence[Any], *, mode: Any = None, options: Any = None
    ) -> Run:
        """Compiles a graph of Dynamo.

        Raises:
            UsageError: `torch.compile` was given a mode or options: those of a backend are said when it is made.
        """
        if mode not in (None, "default"):
            raise UsageError(f"mode={mode!r} of torch.compile says nothing to this backend: give backend(options=...)")
        if options:
            raise UsageError("options of torch.compile say nothing to this backend: give backend(options=...)")
        if not _trains(example_inputs):
            return self._compile(gm, example_inputs, None)
        if (reason := _cut(gm)) is not None:
            return self._unplanned(gm, example_inputs, reason)
        if not any(is_dynamic(one) for one in example_inputs):
            return _Compiled(self, gm, example_inputs)
        reason = not_fixed(gm, example_inputs)
        if reason is None and processes() > 1:
            reason = "several processes may meet a size at different times (dynamic shapes)"
        if reason is not None:
            return self._unplanned(gm, example_inputs, reason)
        return Sizes(
            _copy(gm),
            example_inputs,
            lambda graph, inputs: _Compiled(self, graph, inputs),
            self.reports,
            name=graph_name(),
            inner=self._inner,
            most=self._sizes,
            strict=self._settings.strict,
        )

    def _unplanned(self, gm: fx.GraphModule, example_inputs: Sequence[Any], reason: str) -> Run:
        if self._settings.strict:
            raise UsageError(reason)
        report = record(Report(graph=graph_name(), inner=self._inner, fallback=reason))
        self.reports.append(report)
        _log.warning("graph %s is not planned: %s", report.graph, reason)
        return self._compile(gm, example_inputs, None)

    def _compile(self, gm: fx.GraphModule, inputs: Sequence[Any], partitioner: Partitioner | None) -> Run:
        """Compiles with a partitioner, or with PyTorch's own."""
        if self._inner == "aot_eager":
            return _op_by_op(gm, inputs, partitioner)
        from torch._inductor.compile_fx import compile_fx

        if partitioner is None:
            return compile_fx(gm, inputs, config_patches=self._options)
        with inductor_partitions_with(partitioner) as patches:
            return compile_fx(gm, inputs, config_patches=self._options | patches)


class _Compiled:
    """A graph that is compiled, and checked when it runs for the first time."""

    def __init__(self, owner: Backend, gm: fx.GraphModule, example_inputs: Sequence[Any]) -> None:
        self._owner = owner
        self._gm = _copy(gm)
        self._partitioner = Partitioner(owner._settings, owner._inner)
        self._run: Run = owner._compile(gm, example_inputs, self._partitioner)
        self._code = self._partitioner.code
        self._is_checked = False
        self.report = self._partitioner.last or record(Report(inner=owner._inner, fallback="it has no backward"))
        owner.reports.append(self.report)
        if (same := owner._checked.get(self._partitioner.code)) is not None:
            # A size that came as a graph of its own before, for instance.
            self.report.take_check(same)
            self._is_checked = True
        self._together = Together()
        self._is_alone = self._together.is_alone or not _communicates(self._gm)
        """Whether this process may run the graph as often as it likes."""

    def __call__(self, *inputs: Any) -> Any:
        if not self._is_checked and torch.is_grad_enabled():
            self._is_checked = True
            if self._owner._check and not self._together.is_alone and self._partitioner.last is not None:
                self._try_together(inputs)
            elif self.report.fallback is None:
                self._try(inputs)
            self._gm = None  # type: ignore[assignment]
        self.report.calls += 1
        return self._run(*inputs)

    def _try(self, inputs: Sequence[Any]) -> None:
        """Checks gradients and measures the peak; compiles again where either is not as promised."""
        settings = self._owner._settings
        try:
            trial = Trial(inputs)
            if self._owner._inner == "inductor" and self._is_alone:
                reason = self._keep_budget(trial, inputs)
            else:
                reason = self._compare(trial) if self._owner._check else None
            if reason is not None:
                self._give_up(inputs, reason)
            elif self._is_alone and self._owner._check:
                self._owner._checked[self._code] = self.report
        except Exception as error:  # Training goes on whatever fails here.
            if settings.strict:
                raise
            self._give_up(inputs, f"the check failed: {type(error).__name__}: {error}")
        if settings.strict and self.report.fallback is not None:
            raise RuntimeError(self.report.fallback)

    def _try_together(self, inputs: Sequence[Any]) -> None:
        """The same where several processes train together: where one does not use its plan, none does."""
        reason = self._together.reason(self.report.fallback)
        for part in (self._try, self._measure_once):
            if reason is None:
                try:
                    part(inputs)
                except Exception as error:
                    self.report.fallback = self.report.fallback or f"{type(error).__name__}: {error}"
                reason = self._together.reason(self.report.fallback)
        if reason is not None and self.report.fallback is None:
            self._give_up(inputs, reason)
        if reason is not None and self._owner._settings.strict:
            raise RuntimeError(reason)

    def _measure_once(self, inputs: Sequence[Any]) -> None:
        """Measures the peak of a graph that all processes run equally often, so that no other plan is made."""
        if self._is_alone or self._owner._inner != "inductor":
            return
        report = self.report
        self._measure(Trial(inputs), self._run, report)
        report.promised_bytes = max(report.promised_bytes or 0, report.measured_bytes or 0)
        report.notes.append("the graph communicates: its peak was measured, and not planned again")

    def _give_up(self, inputs: Sequence[Any], reason: str) -> None:
        _log.warning("graph %s: PyTorch's partitioner takes over: %s", self.report.graph, reason)
        self.report.fallback, self.report.promised_bytes = reason, None
        self._run = self._owner._compile(_copy(self._gm), inputs, None)

    def _compare(self, trial: Trial) -> str | None:
        """Compares gradients; why they are wrong."""
        mine = trial.gradients(self._run)
        reference, name = self._reference(trial)
        theirs = trial.gradients(reference)
        if mine.same_bits(theirs):
            self.report.gradients = "same bits"
            return None
        error = self.report.gradient_error = mine.error(theirs)
        self.report.gradients = "wrong"
        if error > _CLOSE:
            # Nothing excuses it: what differs as much without a plan says nothing about the plan.
            reason = f"gradients differ from {name}: {error:.2g} times the tolerance"
            if self._is_alone and (own := trial.gradients(reference).error(theirs)) > _CLOSE:
                reason += f"; {name} differs from itself in another run ({own:.2g} times), so nothing can be checked"
            return reason
        # What would explain other bits takes runs that other processes do not make.
        if self._owner._inner == "aot_eager" and not (
            self._is_alone and self._explained(trial, reference, theirs, mine)
        ):
            return f"gradients do not have the bits of {name} (error {error:.2g} of the tolerance)"
        self.report.gradients = "close"
        return None

    def _explained(self, trial: Trial, reference: Run, theirs: Gradients, mine: Gradients) -> bool:
        """Whether bits differ without the plan, too: from run to run, or because PyTorch traces to other kernels."""
        if not trial.gradients(reference).same_bits(theirs):
            self.report.notes.append("the original model differs bitwise from run to run")
            return True
        if trial.gradients(_op_by_op(_copy(self._gm), trial.inputs, None)).same_bits(mine):
            self.report.notes.append("the bits are those of PyTorch's backend aot_eager, not those of the model")
            return True
        return False

    def _reference(self, trial: Trial) -> tuple[Run, str]:
        """What gradients are compared with."""
        device = _device(trial.inputs)
        if self._owner._inner == "inductor" and _draws(self._gm):
            # Inductor draws other random numbers than PyTorch does.
            return self._owner._compile(_copy(self._gm), trial.inputs, None), "Inductor without a plan"
        if self.report.baseline_bytes < free_bytes(device):
            return self._gm, "the model as it is"
        planned = Partitioner(replace(self._owner._settings, form="exact"), "aot_eager")
        self.report.notes.append("gradients were compared with the planned graph run op by op")
        return _op_by_op(_copy(self._gm), trial.inputs, planned), "the planned graph run op by op"

    def _keep_budget(self, trial: Trial, inputs: Sequence[Any]) -> str | None:
        """Measures the peak of what was compiled, and compiles other splits until one keeps the budget and has the
        right gradients; why none is used."""
        known, limit = self._partitioner.candidates, self._partitioner.limit
        assert known is not None
        runs: dict[str, tuple[Report, Run]] = {}
        tried: dict[str, str] = {}
        partitioner, run, report = self._partitioner, self._run, self.report
        while True:
            split = partitioner.split
            assert split is not None
            if split.key not in runs:
                peak = self._measure(trial, run, report)
                known.note(split, peak)
                runs[split.key] = report, run
                tried[split.key] = _outcome(report, ", above the budget" if 0 < limit < peak else "")
            if not known.keeps(split, limit) and len(tried) < _ROUNDS and known.is_worth_trying(limit, _WORTH):
                partitioner, run, report = self._next(inputs, None)
                if report.fallback is None and partitioner.split and partitioner.split.key not in runs:
                    continue
            best = known.best(limit)
            if best.key not in runs:
                partitioner, run, report = self._next(inputs, best)
                known.note(best, self._measure(trial, run, report))
                runs[best.key] = report, run
                tried[best.key] = _outcome(report, "")
            report, run = runs.pop(best.key)
            self._code = None if self._code is None else (self._code[0], best.key)
            report.rounds = len(tried)
            reason = self._take(trial, report, run)
            if reason is None:
                report.tried = list(tried.values())
                known.answer(limit, best)
                self._promise(report, limit)
                return None
            known.reject(best)
            tried[best.key] += f", {reason}"
            if len(tried) >= _ROUNDS or not known.splits:
                return reason
            partitioner, run, report = self._next(inputs, None)
            if report.fallback is not None:
                return report.fallback

    def _measure(self, trial: Trial, run: Run, report: Report) -> int:
        """The peak of a step after the first one, above parameters and inputs."""
        trial.step(run)
        peak = peak_above(trial.prepared(run), _device(trial.inputs))
        report.measured_bytes = report.external_bytes + peak
        return peak

    def _next(self, inputs: Sequence[Any], split: Split | None) -> tuple[Partitioner, Run, Report]:
        """Compiles a split; without one, that which is expected to be the best."""
        partitioner = self._partitioner.again(split)
        run = self._owner._compile(_copy(self._gm), inputs, partitioner)
        assert partitioner.last is not None
        partitioner.last.graph = self.report.graph
        return partitioner, run, partitioner.last

    def _take(self, trial: Trial, report: Report, run: Run) -> str | None:
        """Uses a split, if its gradients are right; why not."""
        if report is not self.report:
            self._owner.reports[self._owner.reports.index(self.report)] = report
        self.report, self._run = report, run
        return self._compare(trial) if self._owner._check else None

    def _promise(self, report: Report, limit: int) -> None:
        """Promises what was asked for, or what was measured, where that is more."""
        assert report.measured_bytes is not None
        wanted = report.external_bytes + limit if limit else 0
        report.promised_bytes = max(wanted, report.measured_bytes)
        if report.measured_bytes > wanted > 0:
            report.notes.append(f"no split keeps {wanted} bytes; this is the one with the lowest measured peak")
            _log.warning("graph %s takes %d bytes, not %d", report.graph, report.measured_bytes, wanted)


def _outcome(report: Report, why: str) -> str:
    """A line about a split that was compiled."""
    assert report.measured_bytes is not None and report.predicted_bytes is not None
    own = report.external_bytes
    return f"{report.split}: expected {report.predicted_bytes - own}, measured {report.measured_bytes - own} bytes{why}"


def _cut(gm: fx.GraphModule) -> str | None:
    """Why a graph is only a part of a step."""
    reason = getattr(gm, "compile_subgraph_reason", None)
    if reason is not None and reason.graph_break:
        text = "".join(str(reason.reason).strip().splitlines()[:1])
        return f"Dynamo cuts the model into several graphs ({text})"
    return "Dynamo cuts the model into several graphs, of which it is a later one" if is_resumed() else None


def _op_by_op(gm: fx.GraphModule, inputs: Sequence[Any], partitioner: Partitioner | None) -> Run:
    """Runs the graphs op by op, and drops each value after its last use."""
    from torch._dynamo.backends.common import aot_autograd

    keywords = {} if partitioner is None else {"partition_fn": partitioner}
    run: Run = aot_autograd(fw_compiler=_interpreted, bw_compiler=_interpreted, **keywords)(gm, inputs)
    return run


def _interpreted(gm: fx.GraphModule, _: Sequence[Any]) -> Callable[[list[Any]], Any]:
    template = fx.Interpreter(gm)

    def run(arguments: list[Any]) -> Any:
        return copy.copy(template).boxed_run(arguments)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _copy(gm: fx.GraphModule) -> fx.GraphModule:
    """A graph that a compiler may change, with the same parameters."""
    graph = fx.Graph()
    output = graph.graph_copy(gm.graph, {}, return_output_node=True)
    assert isinstance(output, tuple)
    graph.output(output[0]).meta = dict(output[1].meta)
    same = fx.GraphModule(gm, graph)
    same.meta = dict(gm.meta)
    return same


def _communicates(gm: fx.GraphModule) -> bool:
    """Whether processes may wait for each other inside of a graph of Dynamo."""
    graphs = [one.graph for one in gm.modules() if isinstance(one, fx.GraphModule)]
    targets = (node.target for graph in graphs for node in graph.nodes)
    return any(word in f"{getattr(one, '__module__', '')} {one}" for one in targets for word in ("c10d", "distributed"))


def _trains(inputs: Sequence[Any]) -> bool:
    return torch.is_grad_enabled() and any(isinstance(one, torch.Tensor) and one.requires_grad for one in inputs)


def _device(inputs: Sequence[Any]) -> str:
    kinds = {one.device.type for one in inputs if isinstance(one, torch.Tensor)}
    return "cuda" if "cuda" in kinds else "cpu"


def _draws(gm: fx.GraphModule) -> bool:
    """Whether a graph of Dynamo may draw random numbers."""
    for node in gm.graph.nodes:
        names = (getattr(node.target, "__name__", ""), str(node.target))
        if node.op in ("call_function", "call_method") and any(
            word in name for name in names for word in _DRAWING
        ):
            return True
    return False
