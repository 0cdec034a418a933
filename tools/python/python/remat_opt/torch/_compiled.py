"""A graph of a training step that is compiled, checked against the model when it first runs, and kept in its budget."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import is_fake

from ._budget import parse
from ._check import Gradients, Run, Trial
from ._code import Half, Inner, op_by_op
from ._divide import Option, Plannable
from ._dynamo import communicates, copy_of, without_checkpoints
from ._partition import NO_SPLIT, Partitioner, Settings
from ._peak import Ground, free_bytes, peak_above
from ._report import Report, record
from ._split import Split
from ._splittable import Splittable
from ._steps import PART, Steps
from ._together import Together, processes
from ._wrappers import GATHERED

_log = logging.getLogger("remat_opt")

UNCOUNTED = (
    "code outside of the graphs counts by what it leaves between them, and before the first graph not at all"
    " (on a CPU all of it does in a process of `python -m remat_opt.torch SCRIPT`)"
)
"""The note of a graph of a model that Dynamo has cut, with the place."""

_ROUNDS = 4
"""Splits of one graph that are compiled, until the measured peak keeps the budget."""
_WORTH = 0.95
"""A further split that is not expected to keep the budget is compiled where no more than this share of the least
measured peak is expected of it."""
_CLOSE = 1.0
"""The largest error of `Gradients.error` that passes: what rounding brings about."""


@dataclass
class Owner:
    """What all graphs of one backend share."""

    settings: Settings
    inner: Inner
    is_checked: bool
    """Whether gradients are compared with those of the model."""
    reports: list[Report] = field(default_factory=list)
    """One for each graph that was compiled, oldest first."""
    checked: dict[tuple[str, str] | None, Report] = field(default_factory=dict)
    """The reports of what was checked and may be used, by its code."""
    steps: Steps = field(init=False)

    def __post_init__(self) -> None:
        self.steps = Steps(self.settings)

    def divides(self, gm: fx.GraphModule) -> bool:
        """Whether a graph of Dynamo can share the budget with others of its step. One in which processes wait for each other
        cannot: they would have to plan it again in the same step. Nor can one behind Inductor in several processes."""
        return processes() < 2 or (self.inner.name == "aot_eager" and not communicates(gm))


class Compiled:
    """A graph that is compiled, and checked when it runs for the first time."""

    def __init__(
        self,
        owner: Owner,
        gm: fx.GraphModule,
        example_inputs: Sequence[Any],
        part: str | None = None,
        name: str | None = None,
    ) -> None:
        """Compiles a graph.

        Args:
            owner: Has the budget.
            gm: A graph of Dynamo.
            example_inputs: Of the graph.
            name: Of the graph; that which Dynamo gives to it, without one.
            part: Why others belong to the same step, if they do. It takes as little as it can then, until that step was
                seen.
        """
        self._owner = owner
        self._gm = copy_of(gm)
        settings = replace(owner.settings, budget=parse("min")) if part else owner.settings
        self._partitioner = Partitioner(settings, owner.inner.name, name=name)
        self._number = owner.steps.add(self)
        self._next_plan: Option | None = None
        self._compiled: dict[str, tuple[Partitioner, Run]] = {}
        """Behind Inductor: what has run for parts of a budget, by key of the split."""
        self._run: Run = owner.inner.compile(gm, example_inputs, self._partitioner, self._around)
        self._code = self._partitioner.code
        self._is_checked = False
        self.report = self._partitioner.last or record(Report(inner=owner.inner.name, fallback=_without_backward(part)))
        owner.reports.append(self.report)
        self._is_part = bool(part)
        """Whether others belong to the same step: a plan of the graph is chosen with theirs, and not here."""
        if (same := owner.checked.get(self._partitioner.code)) is not None:
            # A size that came as a graph of its own before, for instance.
            self.report.take_check(same)
            self._is_checked = True
        if part and self.report.fallback is None:
            self.report.budget_bytes = owner.settings.budget.total
            self.report.promised_bytes = self.report.predicted_bytes = self.report.measured_bytes = None
            self.report.notes.append(PART)
            if part != GATHERED and not Ground.can_see():
                self.report.notes.append(f"{UNCOUNTED}: {part}")
        self._together = Together()
        self._is_alone = self._together.is_alone or not communicates(self._gm)
        """Whether this process may run the graph as often as it likes."""
        self._is_agreed = self._together.is_alone or not owner.is_checked or self._partitioner.last is None
        """Whether processes need not decide any more whether they use the first plan. Later ones of a graph in which nobody
        waits for others are for each process to decide."""

    @property
    def plannable(self) -> Plannable | None:
        """What the graph can be planned by again; `None` where it runs without a plan, or where processes wait for each other
        inside of it."""
        return self._partitioner.plannable if self._is_alone and self.report.fallback is None else None

    def take(self, option: Option) -> None:
        """Runs another plan from the next call on."""
        self._next_plan = option

    def _around(self, is_backward: bool, half: Half) -> Half:
        """Has the steps of the backend see a half."""

        def run(arguments: list[Any]) -> Any:
            if (plannable := self.plannable) is None:
                return half(arguments)
            return self._owner.steps.run(self._number, is_backward, plannable.outputs, half, arguments)

        return run

    def _replan(self, inputs: Sequence[Any], option: Option) -> None:
        """Compiles another plan, which is checked as the first one was. Behind Inductor, where a check may fail that an
        earlier plan has passed, that one runs on."""
        before = self._partitioner, self._run, replace(self.report)
        given = option.plan, self.report
        if self._owner.inner.name != "inductor":
            self._compile(inputs, given)
            return
        self._is_part = True
        assert isinstance(option.plan, Split)
        assert self._partitioner.split is not None
        self._compiled[self._partitioner.split.key] = self._partitioner, self._run
        if option.plan.key in self._compiled:
            self._partitioner, self._run = self._compiled[option.plan.key]
            self.report.split = option.plan.name
            return
        try:
            self._compile(inputs, given)
            self._is_checked = True
            with self._owner.steps.paused():
                reason = self._check_part(Trial(inputs))
        except Exception as error:  # Training goes on whatever fails here.
            if self._owner.settings.strict:
                raise
            reason = f"{type(error).__name__}: {error}"
        if reason is None:
            return
        _log.warning("graph %s: the plan before is kept: %s", self.report.graph, reason)
        assert before[0].candidates is not None
        before[0].candidates.reject(option.plan)
        self._owner.reports[self._owner.reports.index(self.report)] = before[2]
        self._partitioner, self._run, self.report = before
        self._owner.steps.refused(self._number)

    def _compile(self, inputs: Sequence[Any], given: tuple[Mapping[str, Any] | Split, Report]) -> None:
        """Compiles a plan that is given."""
        known = self._partitioner.candidates
        self._partitioner = Partitioner(self._owner.settings, self._owner.inner.name, given=given)
        self._partitioner.candidates = known
        self._run = self._owner.inner.compile(copy_of(self._gm), inputs, self._partitioner, self._around)
        self._is_checked = False

    def __call__(self, *inputs: Any) -> Any:
        if self.report.calls == 0 and any(is_fake(one) for one in inputs):
            return self._run(*inputs)  # Dynamo asks for shapes where it cuts a graph into parts.
        if torch.is_grad_enabled():
            self._owner.steps.before(self._number, inputs)
            option, self._next_plan = self._next_plan, None
            if option is not None and self.report.fallback is None:
                self._replan(inputs, option)
        if torch.is_grad_enabled() and not (self._is_checked and self._is_agreed):
            try:
                with self._owner.steps.paused():
                    if not self._is_agreed:
                        self._try_together(inputs)
                    elif self.report.fallback is None:
                        self._try(inputs)
            finally:
                self._is_checked = self._is_agreed = True
        self.report.calls += 1
        return self._run(*inputs)

    def _try(self, inputs: Sequence[Any]) -> None:
        """Checks gradients and measures the peak; compiles again where either is not as promised."""
        settings = self._owner.settings
        try:
            trial = Trial(inputs)
            if self._owner.inner.name == "inductor" and self._is_alone:
                reason = self._check_part(trial) if self._is_part else self._keep_budget(trial, inputs)
            else:
                reason = self._compare(trial) if self._owner.is_checked else None
            if reason is not None:
                self._give_up(inputs, reason)
            elif self._is_alone and self._owner.is_checked:
                # As it is now: a step of several graphs will change it.
                self._owner.checked[self._code] = replace(self.report)
        except Exception as error:  # Training goes on whatever fails here.
            if settings.strict:
                raise
            self._give_up(inputs, f"the check failed: {type(error).__name__}: {error}")
        if settings.strict and self.report.fallback is not None:
            raise RuntimeError(self.report.fallback)

    def _check_part(self, trial: Trial) -> str | None:
        """Measures what a split of a part of a step takes by itself; why its gradients are wrong, if they are."""
        graph, report = self._partitioner.plannable, self.report
        assert isinstance(graph, Splittable)
        expected = graph.running().takes.peak
        peak = self._measure(trial, self._run)
        graph.candidates.note(graph.plan, peak)
        report.tried.append(_outcome(graph.plan, expected, peak, " by itself"))
        report.rounds = len(report.tried)
        reason = self._compare(trial) if self._owner.is_checked else None
        if reason is not None:
            report.tried[-1] += f", {reason}"
        return reason

    def _try_together(self, inputs: Sequence[Any]) -> None:
        """The same where several processes train together: where one does not use its plan, none does."""
        reason = self._together.reason(self.report.fallback)
        for part in (self._try, self._measure_once):
            if reason is None:
                try:
                    # Of what this process has checked before, others may have another plan.
                    if not self._is_checked:
                        part(inputs)
                except Exception as error:
                    self.report.fallback = self.report.fallback or f"{type(error).__name__}: {error}"
                reason = self._together.reason(self.report.fallback)
        if reason is not None and self.report.fallback is None:
            self._give_up(inputs, reason)
        if reason is not None and self._owner.settings.strict:
            raise RuntimeError(reason)

    def _measure_once(self, inputs: Sequence[Any]) -> None:
        """Measures the peak of a graph that all processes run equally often, so that no other plan is made."""
        if self._is_alone or self._owner.inner.name != "inductor":
            return
        report = self.report
        report.measured_bytes = report.external_bytes + self._measure(Trial(inputs), self._run)
        report.promised_bytes = max(report.promised_bytes or 0, report.measured_bytes)
        report.notes.append("the graph communicates: its peak was measured, and not planned again")

    def _give_up(self, inputs: Sequence[Any], reason: str) -> None:
        _log.warning("graph %s: PyTorch's partitioner takes over: %s", self.report.graph, reason)
        self.report.fallback, self.report.promised_bytes = reason, None
        self._run = self._owner.inner.compile(copy_of(self._gm), inputs, None)

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
        is_exact = self._owner.inner.name == "aot_eager"
        # What would explain other bits takes runs that other processes do not make.
        if is_exact and self._is_alone and self._is_as_traced(trial, mine):
            self.report.gradients = "close"
            return None
        if error > _CLOSE:
            # Nothing else excuses it: what differs as much without a plan says nothing about the plan.
            reason = f"gradients differ from {name}: {error:.2g} times the tolerance"
            if self._is_alone and (own := trial.gradients(reference).error(theirs)) > _CLOSE:
                reason += f"; {name} differs from itself in another run ({own:.2g} times), so nothing can be checked"
            return reason
        if is_exact:
            if not self._is_alone or trial.gradients(reference).same_bits(theirs):
                return f"gradients do not have the bits of {name} (error {error:.2g} of the tolerance)"
            self.report.notes.append("the original model differs bitwise from run to run")
        self.report.gradients = "close"
        return None

    def _is_as_traced(self, trial: Trial, mine: Gradients) -> bool:
        """Whether the bits are those that PyTorch's backend `aot_eager` gives without a plan: it traces some models to other
        kernels than eager PyTorch runs."""
        if not trial.gradients(op_by_op(copy_of(self._gm), trial.inputs)).same_bits(mine):
            return False
        self.report.notes.append("the bits are those of PyTorch's backend aot_eager, not those of the model")
        return True

    def _reference(self, trial: Trial) -> tuple[Run, str]:
        """What gradients are compared with."""
        device = _device(trial.inputs)
        if self._owner.inner.name == "inductor" and self._partitioner.draws:
            # Inductor draws other random numbers than PyTorch does.
            return self._owner.inner.compile(copy_of(self._gm), trial.inputs, None), "Inductor without a plan"
        known = self._partitioner.candidates
        taken = self.report.baseline_bytes if known is None else self.report.external_bytes + known.op_by_op
        if taken < free_bytes(device):
            return without_checkpoints(self._gm), "the model as it is"
        planned = Partitioner(replace(self._owner.settings, form="exact"), "aot_eager")
        self.report.notes.append("gradients were compared with the planned graph run op by op")
        return op_by_op(copy_of(self._gm), trial.inputs, planned), "the planned graph run op by op"

    def _keep_budget(self, trial: Trial, inputs: Sequence[Any]) -> str | None:
        """Measures the peak of what was compiled, and compiles other splits until one keeps the budget and has the
        right gradients, and one more that may be faster; why none is used."""
        known, limit = self._partitioner.candidates, self._partitioner.limit
        assert known is not None
        runs: dict[str, tuple[Partitioner, Run, Report]] = {}
        tried: dict[str, str] = {}
        partitioner, run, report = self._partitioner, self._run, self.report
        near: Split | None = None

        def measured(split: Split) -> None:
            peak = self._measure(trial, run)
            report.measured_bytes = report.external_bytes + peak
            known.note(split, peak)
            runs[split.key] = partitioner, run, report
            assert report.predicted_bytes is not None
            expected = report.predicted_bytes - report.external_bytes
            tried[split.key] = _outcome(split, expected, peak, ", above the budget" if 0 < limit < peak else "")

        while True:
            split = partitioner.split
            assert split is not None
            if split.key not in runs:
                measured(split)
            if near is None and not known.keeps(split, limit) and len(tried) < _ROUNDS and known.is_worth_trying(limit, _WORTH):
                partitioner, run, report = self._next(inputs, None)
                if report.fallback is None and partitioner.split and partitioner.split.key not in runs:
                    continue
            best = known.best(limit)
            if near is None and known.keeps(best, limit) and len(tried) < _ROUNDS and (near := known.near(limit, best)):
                partitioner, run, report = self._next(inputs, near)
                if report.fallback is None:
                    continue
            if best.key not in runs:
                partitioner, run, report = self._next(inputs, best)
                measured(best)
            self._partitioner, run, report = runs.pop(best.key)
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

    def _measure(self, trial: Trial, run: Run) -> int:
        """The peak of a step after the first one, above parameters and inputs."""
        with trial.prepared(run) as step:
            step()
            return peak_above(step, _device(trial.inputs))

    def _next(self, inputs: Sequence[Any], split: Split | None) -> tuple[Partitioner, Run, Report]:
        """Compiles a split; without one, that which is expected to be the best."""
        partitioner = self._partitioner.again(split)
        run = self._owner.inner.compile(copy_of(self._gm), inputs, partitioner, self._around)
        assert partitioner.last is not None
        partitioner.last.graph = self.report.graph
        return partitioner, run, partitioner.last

    def _take(self, trial: Trial, report: Report, run: Run) -> str | None:
        """Uses a split, if its gradients are right; why not."""
        if report is not self.report:
            self._owner.reports[self._owner.reports.index(self.report)] = report
        self.report, self._run = report, run
        return self._compare(trial) if self._owner.is_checked else None

    def _promise(self, report: Report, limit: int) -> None:
        """Promises what was asked for, or what was measured, where that is more."""
        assert report.measured_bytes is not None
        wanted = report.external_bytes + limit if limit else 0
        report.promised_bytes = max(wanted, report.measured_bytes)
        if report.measured_bytes > wanted > 0:
            report.notes.append(NO_SPLIT)
            _log.warning("graph %s takes %d bytes, not %d", report.graph, report.measured_bytes, wanted)


def _outcome(split: Split, expected: int, peak: int, why: str) -> str:
    """A line about a split that was compiled.

    Args:
        split: It.
        expected: Bytes above parameters and inputs.
        peak: As measured.
        why: What else there is to say.
    """
    return f"{split.name}: expected {expected}, measured {peak} bytes{why}"


def _without_backward(part: str | None) -> str:
    return f"{part}; this one has no backward" if part else "it has no backward"


def _device(inputs: Sequence[Any]) -> str:
    """The CUDA device of the inputs, or `"cpu"`."""
    places = (one.device for one in inputs if isinstance(one, torch.Tensor))
    return next((str(one) for one in places if one.type == "cuda"), "cpu")
