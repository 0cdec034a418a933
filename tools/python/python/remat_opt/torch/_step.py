"""A training step that runs as one plan."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import fx
from torch.utils import _pytree as pytree

from .._plan import Plan
from ..errors import UsageError
from ._bindings import bind
from ._budget import Budget, Memory, objects_around, parse
from ._check import Gradients
from ._eager import Eager
from ._effects import names_of
from ._emit import drop_unused, emit
from ._free import resolved
from ._mapped import Mapped
from ._offload import Offload, offload_of
from ._optimizer import Updates
from ._plans import MOVES, Search, plan_in_all
from ._refusals import refuse_lost
from ._report import Report, record
from ._state import State
from ._step_check import Forms, first_step
from ._trace import tensors_of
from ._transfers import taken_by
from ._update import UPDATE, Update
from ._whole import WholeStep, whole_step


_Recorded = list[tuple[list[torch.Tensor], Update]]
"""State and update of each parameter in one step."""


@dataclass
class _Planned:
    """A step for arguments of certain shapes."""

    step: WholeStep
    module: fx.GraphModule
    plan: Plan
    report: Report
    is_checked: bool
    """Whether its first step was compared with eager PyTorch, or need not be."""


class TrainStep:
    """Forward, loss, backward and the update of all parameters, in the order of one plan.

        step = TrainStep(model, (x, y), "2GiB", optimizer=optimizer)
        for x, y in batches:
            loss = step(x, y)
            scheduler.step()

    No border between forward and backward holds results in memory, and a gradient dies as soon as its parameter is
    updated. The step gives the same bits as `loss.backward(); optimizer.step()` and draws the same random numbers.
    Parameters, buffers and the state of the optimizer are those that came, so checkpoints work as before; `.grad` is
    neither read nor written, except without an optimizer: then gradients are added there.

    The first step of each plan is compared with the same step in eager PyTorch, which takes the memory of eager PyTorch
    and a copy of all that the step changes (`report.check_bytes`). Where they differ, eager PyTorch goes on.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        args: Sequence[Any],
        memory: Memory,
        *,
        optimizer: torch.optim.Optimizer | None = None,
        clip_grad_norm: float | None = None,
        scaler: torch.amp.GradScaler | None = None,
        time_limit: float = 10.0,
        step_limit: int | None = None,
        threads: int | None = None,
        order: Literal["free", "fixed"] = "free",
        solver: str = "search",
        seed: int = 0,
        check: bool = True,
        strict: bool = False,
        recomputable: Collection[str] = (),
        offload: Offload | bool | int | str | None = None,
    ) -> None:
        """Plans a step.

        Args:
            model: `model(*args)` gives the loss, one number.
            args: As those to come. Arguments of other shapes, or a model in another mode, are planned when they come.
            memory: What the step may take at most, in bytes: parameters, buffers, state and arguments included
                (`2 << 30`, `"2GiB"`); a share of what the step takes besides these without recomputation (`"60%"`,
                `0.6`); or `"auto"`, `"fit"` or `"min"`, as of `backend`.
            optimizer: `SGD`, `Adam`, `AdamW`, `RMSprop` or `Adagrad` of PyTorch, in any configuration but fused,
                capturable and differentiable ones. Options may change between steps, as by a scheduler.
            clip_grad_norm: What the norm of all gradients is clipped to before the update, as by
                `torch.nn.utils.clip_grad_norm_(model.parameters(), clip_grad_norm)`; `grad_norm` is what it returns.
            scaler: Scales the gradients, without an optimizer only: `scaler.step(optimizer)` decides when all gradients
                are there whether parameters are updated.
            time_limit: Seconds to search.
            step_limit: Most steps of the search for each plan; with one thread and the same seed, every search of the
                same graph gives the same plan, unless `time_limit` ends it before.
            threads: Threads to search with.
            order: Whether first runs of ops may change their order.
            solver: A solver of `docs/solvers`.
            seed: Of the search.
            check: Whether the first step of each plan is compared with eager PyTorch, bit for bit: loss, parameters,
                buffers, state of the optimizer, gradients, random numbers. Where that would not fit into the free
                memory, it is left out and the report says so. Processes that train together use all of their plans or
                none.
            strict: Whether a step that differs raises `RuntimeError`, instead of a warning and eager PyTorch from then
                on. The state is that before the step.
            recomputable: Ops of other packages that may run again, by name (`"my::mask"`) or by package (`"my"`). Others run
                once: nothing says whether they draw random numbers or change something.
            offload: Whether values, gradients among them, may also move to a second memory until they are needed, as of
                `backend`. `Offload(state=True)` has the optimizer's state there all the time.

        Raises:
            ModelError: The model gives no loss.
            UnsupportedGraph: A part of the step cannot be planned; `.op` names it.
            UsageError: The optimizer cannot be part of a step, the model has hooks that would not run or is wrapped for
                several processes, or arguments make no sense, alone or together.
        """
        _refuse_together(optimizer, clip_grad_norm, scaler)
        refuse_lost(model, optimizer)
        self.model = model
        self.optimizer = optimizer
        self._budget: Budget = parse(memory)
        self._offload = offload_of(offload)
        if self._offload is not None and solver == "search":
            solver = MOVES
        self._search = Search(
            time_limit=time_limit, step_limit=step_limit, threads=threads, order=order, solver=solver, seed=seed
        )
        self._updates = None if optimizer is None else Updates(optimizer, self._mapped())
        self._clip_grad_norm, self._scaler = clip_grad_norm, scaler
        self._check, self._strict = check, strict
        self._recomputable = names_of(recomputable)
        self._eager = Eager(model, self._updates, clip_grad_norm, scaler)
        self.grad_norm: torch.Tensor | None = None
        """The norm of all gradients of the last step before they were clipped; `None` without `clip_grad_norm`."""
        self._planned: dict[Any, _Planned] = {}
        self._last = self._for(args)

    @property
    def report(self) -> Report:
        """What the plan of the last arguments promises."""
        return self._last.report

    @property
    def plan(self) -> Plan:
        """The plan for the last arguments."""
        return self._last.plan

    def __call__(self, *args: Any) -> torch.Tensor:
        """Makes a step and gives the loss, without gradient."""
        refuse_lost(self.model, self.optimizer)
        planned, updates = self._current(args)
        if not planned.is_checked:
            return self._first(planned, args, updates)
        if planned.report.fallback is not None:
            return self._eager_step(args)
        return self._run(planned, args, updates)

    def _mapped(self) -> Mapped | None:
        """Where the state of the optimizer lies, if not in memory."""
        if self._offload is None or not self._offload.state:
            return None
        if any(one.device.type != "cpu" for one in self.model.parameters()):
            raise UsageError("Offload(state=True) is for models on a CPU: on a device the state stays where it is")
        return Mapped(self._offload.folder)

    def _first(self, planned: _Planned, args: Sequence[Any], updates: _Recorded) -> torch.Tensor:
        """Makes the first step of a plan, compared with that of eager PyTorch."""
        report, step = planned.report, planned.step
        forms = Forms(
            planned=lambda: self._run(planned, args, updates),
            eager=lambda: self._eager_step(args),
            traced=lambda: self._run(replace(planned, module=step.in_traced_order()), args, updates),
            planned_gradients=lambda: self._gradients(planned, args, updates),
            gradient_bytes=sum(one.meta["val"].nbytes for one in _computed(step).values() if updates),
            eager_gradients=lambda: self._eager_gradients(step, args),
        )
        loss = first_step(self.model, State(self.model, self._updates), forms, report, strict=self._strict)
        planned.is_checked = True
        if report.fallback is not None:
            report.promised_bytes = None
            warnings.warn(f"eager PyTorch makes the steps, not the plan: {report.fallback}", stacklevel=3)
        return loss

    def _eager_step(self, args: Sequence[Any]) -> torch.Tensor:
        loss = self._eager.step(args)
        self.grad_norm = self._eager.norm
        return loss

    def _run(self, planned: _Planned, args: Sequence[Any], updates: _Recorded) -> torch.Tensor:
        """Makes a planned step and gives the loss."""
        own, step = dict(self.model.named_parameters()), planned.step
        loss, *gradients = self._forward(planned.module, step, args, updates)
        if step.norm is not None:
            self.grad_norm = gradients.pop()
        memory = Counter(one.untyped_storage().data_ptr() for one in gradients)
        for name, gradient in zip(step.gradients, gradients, strict=True):
            _accumulate(own[name], gradient, memory[gradient.untyped_storage().data_ptr()] > 1)
        if self._updates is not None and self.optimizer is not None:
            self._updates.advance([own[name] for name in step.updated])
            self.optimizer._opt_called = True  # type: ignore[attr-defined]  # Schedulers ask for it.
        return loss

    def _forward(
        self, module: fx.GraphModule, step: WholeStep, args: Sequence[Any], updates: _Recorded
    ) -> list[torch.Tensor]:
        """Runs a graph of a step, which updates parameters, state and buffers."""
        inputs = list(self._inputs(step, args, updates))
        with torch.no_grad(), torch._C._DisableAutocast():
            results: list[torch.Tensor] = module.forward(*inputs)
        return results

    def _gradients(self, planned: _Planned, args: Sequence[Any], updates: _Recorded) -> Gradients:
        """What a planned step computes, which is made for it without counting. Parameters are no numbers after their
        update, whatever its rate, so that who reads them too late computes none either."""
        gradients = _computed(planned.step)
        module = _module(planned.step, planned.plan, [planned.step.traced.loss, *gradients.values()])
        for node in module.graph.find_nodes(op="call_function", target=UPDATE):
            with module.graph.inserting_after(node):
                module.graph.call_function(torch.ops.aten.fill_.Scalar, (node.args[0], float("nan")))
        bind(module.graph)
        module.recompile()
        loss, *values = self._forward(module, planned.step, args, updates)
        return self._as_gradients(loss, dict(zip(gradients, values, strict=True)))

    def _eager_gradients(self, step: WholeStep, args: Sequence[Any]) -> Gradients:
        """What eager PyTorch computes of that."""
        loss, found = self._eager.gradients(args)
        return self._as_gradients(loss, {name: one for name, one in found.items() if name in _computed(step)})

    def _as_gradients(self, loss: torch.Tensor, gradients: Mapping[str, torch.Tensor]) -> Gradients:
        """For comparison, on the CPU."""
        values = tuple(one.detach().cpu().clone() for one in (loss, *self.model.buffers()))
        names = [name for name, one in self.model.named_parameters() if one.requires_grad]
        found = (gradients.get(name) for name in names)
        return Gradients(values, tuple(None if one is None else one.detach().cpu().clone() for one in found))

    def _current(self, args: Sequence[Any]) -> tuple[_Planned, _Recorded]:
        """The plan for arguments, and state and update of each parameter in this step."""
        planned = self._last = self._for(args)
        if planned.is_checked and planned.report.fallback is not None:
            return planned, []
        updates = self._record(planned.step)
        if [update.program for _, update in updates] != planned.step.programs:
            # An option changed what is done, not only a number of it.
            del self._planned[self._key(args)]
            planned = self._last = self._for(args)
            updates = self._record(planned.step)
        return planned, updates

    def _record(self, step: WholeStep) -> _Recorded:
        if self._updates is None:
            return []
        own = dict(self.model.named_parameters())
        updated = [own[name] for name in step.updated]
        for name, parameter in zip(step.updated, updated, strict=True):
            if not self._updates.has(parameter):
                raise UsageError(f"parameter `{name}` is not among those of the optimizer any more, it was replaced")
        states = [self._updates.state(one) for one in updated]
        return list(zip(states, self._updates.record(updated), strict=True))

    def _inputs(self, step: WholeStep, args: Sequence[Any], updates: _Recorded) -> Iterator[torch.Tensor]:
        """The inputs of the graph, in its order."""
        own, buffers = dict(self.model.named_parameters()), dict(self.model.named_buffers())
        for name in step.traced.parameters:
            yield own[name].detach()
        for name in step.traced.buffers:
            yield buffers[name]
        for one in tensors_of(args):
            yield one.detach()
        if self._scaler is not None:
            tangent = step.traced.tangent.meta["val"]
            yield self._scaler.scale(torch.ones(tangent.shape, device=tangent.device)).to(tangent.dtype)
        numbers: dict[Update, torch.Tensor] = {}
        for state, update in updates:
            yield from state
            if update not in numbers:
                numbers[update] = torch.tensor(update.scalars, dtype=torch.float64)
            yield numbers[update]

    def _for(self, args: Sequence[Any]) -> _Planned:
        key = self._key(args)
        if key not in self._planned:
            self._planned[key] = self._make(args)
        return self._planned[key]

    def _key(self, args: Sequence[Any]) -> Any:
        """What a plan is made for."""
        leaves, spec = pytree.tree_flatten(tuple(args))
        values = tuple(
            (one.shape, one.stride(), one.dtype, one.device) if isinstance(one, torch.Tensor) else repr(one)
            for one in leaves
        )
        modes = tuple(one.training for one in self.model.modules())
        frozen = tuple(one.requires_grad for one in self.model.parameters())
        devices = {one.device.type for one in self.model.parameters()}
        casts = tuple((one, torch.is_autocast_enabled(one), torch.get_autocast_dtype(one)) for one in sorted(devices))
        groups = () if self.optimizer is None else tuple(len(one["params"]) for one in self.optimizer.param_groups)
        return values, str(spec), modes, frozen, casts, groups

    def _make(self, args: Sequence[Any]) -> _Planned:
        start = time.perf_counter()
        step = whole_step(
            self.model,
            args,
            self._updates,
            scaled=self._scaler is not None,
            clip_grad_norm=self._clip_grad_norm,
            recomputable=self._recomputable,
        )
        if self._offload is not None:
            step.source.document["paging"] = self._offload.paging(step.source.device)
            step.folder = self._offload.folder
        gradients = step.source.bytes_of(step.traced.gradients[name] for name in step.gradients)
        asked = resolved(self._budget, step.source.device, step.source.external_bytes, gradients)
        plan, keeps, tensors = plan_in_all(step.source, asked.of_plan(step.source.external_bytes), self._search)
        module = _module(step, plan, step.outputs)
        bind(module.graph)
        module.recompile()
        report = _report(step, plan, asked, keeps, tensors)
        report.seconds = time.perf_counter() - start
        if not keeps:
            warnings.warn(report.notes[-1], stacklevel=4)
        return _Planned(step, module, plan, record(report), is_checked=not self._check)


def _refuse_together(
    optimizer: torch.optim.Optimizer | None, clip_grad_norm: float | None, scaler: torch.amp.GradScaler | None
) -> None:
    """Refuses arguments that make no sense together."""
    if clip_grad_norm is not None:
        if isinstance(clip_grad_norm, bool) or not isinstance(clip_grad_norm, (int, float)) or not clip_grad_norm > 0:
            raise UsageError(f"clip_grad_norm is a positive number, not {clip_grad_norm!r}")
        if optimizer is None:
            raise UsageError(
                "clip_grad_norm needs optimizer: without one, gradients add up in `.grad`, and "
                "torch.nn.utils.clip_grad_norm_ clips them there"
            )
    if scaler is not None:
        if not isinstance(scaler, torch.amp.GradScaler):
            raise UsageError(f"scaler is a torch.amp.GradScaler, not a {type(scaler).__name__}")
        if optimizer is not None:
            raise UsageError(
                f"GradScaler cannot be part of a planned step with {type(optimizer).__name__}: whether parameters are "
                "updated depends on all gradients; leave optimizer out and call scaler.step(optimizer)"
            )


def _computed(step: WholeStep) -> dict[str, fx.Node]:
    """The gradients that a planned step computes, by name of the parameter: all, or with an optimizer those of what it
    updates."""
    return {name: step.traced.gradients[name] for name in step.updated or step.gradients}


def _module(step: WholeStep, plan: Plan, outputs: Sequence[fx.Node]) -> fx.GraphModule:
    """The graph of a plan, which returns the values of some nodes at its end."""
    emitted = emit(step.source, plan, step.folder)
    emitted.graph.output(tuple(emitted.at_end[one] for one in outputs))
    drop_unused(emitted.graph)
    emitted.graph.lint()
    return fx.GraphModule(step.traced.root, emitted.graph)


def _report(step: WholeStep, plan: Plan, budget: Budget, keeps: bool, tensors: int) -> Report:
    external = step.source.external_bytes
    runs = max(1, int(plan["baseline_duration"]))
    peak, moved = taken_by(step.source, plan)
    report = Report(
        graph="step",
        inner="eager",
        ops=len(step.source.document["ops"]),
        tensors=tensors,
        budget_bytes=budget.total,
        external_bytes=external,
        baseline_bytes=external + int(plan["baseline_peak_bytes"]),
        promised_bytes=external + peak + objects_around(peak, tensors),
        moved_bytes=moved,
        recomputes=len(plan.recomputes),
        overhead=plan.duration / runs - 1,
        is_optimal=plan.is_optimal,
        gap=plan.gap,
        rounds=1,
    )
    report.note_once(step.once)
    report.note_costs(step.costs.measured, step.costs.estimated)
    if not keeps:
        asked = budget.total if budget.total is not None else budget.share
        report.notes.append(f"no plan within {asked} was found: the step takes up to {report.promised_bytes} bytes")
    return report


def _accumulate(parameter: torch.nn.Parameter, gradient: torch.Tensor, shared: bool) -> None:
    if parameter.grad is not None:
        parameter.grad += gradient
        return
    whole = gradient.untyped_storage().nbytes() == gradient.nbytes and gradient.stride() == parameter.stride()
    # As autograd does: a gradient has the layout of its parameter, and memory of its own.
    parameter.grad = gradient if whole and not shared else torch.empty_like(parameter).detach().copy_(gradient)
