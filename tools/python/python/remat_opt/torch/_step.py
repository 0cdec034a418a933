"""A training step that runs as one plan."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import fx
from torch.utils import _pytree as pytree

from .._plan import Plan
from ..errors import UsageError
from ._budget import Budget, Memory, objects_around, parse
from ._emit import drop_unused, emit
from ._optimizer import Updates
from ._plans import Search, plan_within
from ._report import Report, record
from ._trace import tensors_of
from ._update import Update
from ._whole import WholeStep, whole_step


@dataclass(frozen=True)
class _Planned:
    """A step for arguments of certain shapes."""

    step: WholeStep
    module: fx.GraphModule
    plan: Plan
    report: Report


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
    """

    def __init__(
        self,
        model: torch.nn.Module,
        args: Sequence[Any],
        memory: Memory,
        *,
        optimizer: torch.optim.Optimizer | None = None,
        time_limit: float = 10.0,
        threads: int | None = None,
        order: Literal["free", "fixed"] = "free",
        solver: str = "search",
        seed: int = 0,
    ) -> None:
        """Plans a step.

        Args:
            model: `model(*args)` gives the loss, one number.
            args: As those to come. Arguments of other shapes, or a model in another mode, are planned when they come.
            memory: What the step may take at most, in bytes: parameters, buffers, state and arguments included
                (`2 << 30`, `"2GiB"`); a share of what the step takes besides these without recomputation (`"60%"`,
                `0.6`); or `"min"`.
            optimizer: `SGD`, `Adam`, `AdamW`, `RMSprop` or `Adagrad` of PyTorch, in any configuration but fused,
                capturable and differentiable ones. Options may change between steps, as by a scheduler.
            time_limit: Seconds to search.
            threads: Threads to search with.
            order: Whether first runs of ops may change their order.
            solver: A solver of `docs/solvers`.
            seed: Of the search.

        Raises:
            ModelError: The model gives no loss.
            UnsupportedGraph: A part of the step cannot be planned; `.op` names it.
            UsageError: The optimizer cannot be part of a step, or `memory` makes no sense.
        """
        self.model = model
        self.optimizer = optimizer
        self._budget: Budget = parse(memory)
        self._search = Search(time_limit=time_limit, threads=threads, order=order, solver=solver, seed=seed)
        self._updates = None if optimizer is None else Updates(optimizer)
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
        if self.optimizer is not None:
            _refuse_hooks(self.optimizer)
        own = dict(self.model.named_parameters())
        planned, updates = self._current(args, own)
        step = planned.step
        inputs = list(self._inputs(step, args, own, updates))
        with torch.no_grad(), torch._C._DisableAutocast():
            loss, *gradients = planned.module.forward(*inputs)
        del inputs
        memory = Counter(one.untyped_storage().data_ptr() for one in gradients)
        for name, gradient in zip(step.gradients, gradients, strict=True):
            _accumulate(own[name], gradient, memory[gradient.untyped_storage().data_ptr()] > 1)
        if self._updates is not None and self.optimizer is not None:
            self._updates.advance([own[name] for name in step.updated])
            self.optimizer._opt_called = True  # type: ignore[attr-defined]  # Schedulers ask for it.
        result: torch.Tensor = loss
        return result

    def _current(
        self, args: Sequence[Any], own: Mapping[str, torch.nn.Parameter]
    ) -> tuple[_Planned, list[tuple[list[torch.Tensor], Update]]]:
        """The plan for arguments, and state and update of each parameter in this step."""
        planned = self._last = self._for(args)
        updates = self._record(planned.step, own)
        if [update.program for _, update in updates] != planned.step.programs:
            # An option changed what is done, not only a number of it.
            del self._planned[self._key(args)]
            planned = self._last = self._for(args)
            updates = self._record(planned.step, own)
        return planned, updates

    def _record(
        self, step: WholeStep, own: Mapping[str, torch.nn.Parameter]
    ) -> list[tuple[list[torch.Tensor], Update]]:
        if self._updates is None:
            return []
        updated = [own[name] for name in step.updated]
        states = [self._updates.state(one) for one in updated]
        return list(zip(states, self._updates.record(updated), strict=True))

    def _inputs(
        self,
        step: WholeStep,
        args: Sequence[Any],
        own: Mapping[str, torch.nn.Parameter],
        updates: Sequence[tuple[list[torch.Tensor], Update]],
    ) -> Iterator[torch.Tensor]:
        """The inputs of the graph, in its order."""
        buffers = dict(self.model.named_buffers())
        for name in step.traced.parameters:
            yield own[name].detach()
        for name in step.traced.buffers:
            yield buffers[name]
        for one in tensors_of(args):
            yield one.detach()
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
        step = whole_step(self.model, args, self._updates)
        budget = self._budget.of_plan(step.source.external_bytes)
        if isinstance(budget, int):
            budget = max(1, budget - objects_around(budget))
        plan, keeps = plan_within(step.source, budget, self._search)
        emitted = emit(step.source, plan)
        emitted.graph.output(tuple(emitted.at_end[one] for one in step.outputs))
        drop_unused(emitted.graph)
        emitted.graph.lint()
        report = _report(step, plan, self._budget, keeps)
        report.seconds = time.perf_counter() - start
        if not keeps:
            warnings.warn(report.notes[-1], stacklevel=4)
        return _Planned(step, fx.GraphModule(step.traced.root, emitted.graph), plan, record(report))


def _report(step: WholeStep, plan: Plan, budget: Budget, keeps: bool) -> Report:
    external = step.source.external_bytes
    runs = max(1, int(plan["baseline_duration"]))
    report = Report(
        graph="step",
        inner="eager",
        ops=len(step.source.document["ops"]),
        budget_bytes=budget.total,
        external_bytes=external,
        baseline_bytes=external + int(plan["baseline_peak_bytes"]),
        promised_bytes=external + plan.peak_bytes + objects_around(plan.peak_bytes),
        recomputes=len(plan.recomputes),
        overhead=plan.duration / runs - 1,
        is_optimal=plan.is_optimal,
        rounds=1,
    )
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


def _refuse_hooks(optimizer: torch.optim.Optimizer) -> None:
    hooks = (*optimizer._optimizer_step_pre_hooks, *optimizer._optimizer_step_post_hooks)
    if hooks:
        raise UsageError("hooks of the optimizer's step would not run in a planned step")
