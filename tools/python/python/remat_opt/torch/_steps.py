"""Steps in which several graphs run, or one several times, or one among code that takes much: they are measured, and
their budget is divided.

A step begins with the first forward after all that earlier ones saved was read. Which graphs run in it, and in which
order, is seen as it happens; the next step of the same order is measured. Moments of it that no plan can change (gradients
that are already there, what runs before and between the graphs) are what `Moment.held` counts.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ._budget import objects_around
from ._code import Half
from ._divide import Moment, Option, Order, Plannable, choose, duration, moments_of, peak
from ._free import resolved
from ._partition import NO_SPLIT, NOT_KEPT, Settings
from ._peak import Ground, Lead, Marks, can_mark
from ._plans import longest_of
from ._report import Report
from ._together import processes
from ._wrappers import Around, after_backward, around

_log = logging.getLogger("remat_opt")

PART = "a part of a step: the budget is divided when all of the step was seen"
"""The note of a graph until then."""
AROUND = "what runs around the graph takes more than was promised for it alone: the step was planned again with that"
"""The note of a graph that is the only one of its step, with results that a loss outside of it keeps, for instance."""
ALONE = "several graphs run in a step of several processes: each is planned for itself, so nothing is promised"
"""The note of a graph whose budget is not divided."""
RETAINED = "a backward ran again (`retain_graph=True`): what is kept for it is not counted, so nothing is promised"
"""The note of such a graph."""
_ROUNDS, _COMPILED_ROUNDS = 3, 2
"""How often the budget of one order of graphs is divided, op by op and behind Inductor, which compiles each change: what
runs between graphs may take other bytes after a change."""
_NOISE = 1 << 20
"""Bytes by which the C library's count of the heap may differ from what a step takes: small blocks that it keeps for later
are among what is taken."""
_KINDS = 8
"""Kinds of steps that are measured."""
_PATIENCE = 100
"""Steps for which a kind of them is waited for, to be measured, after it was seen."""
_MOST = 2000
"""Halves after which a step is taken for ended."""


class Graph(Protocol):
    """A compiled graph."""

    @property
    def report(self) -> Report: ...

    @property
    def plannable(self) -> Plannable | None:
        """`None` where it is not planned."""

    def take(self, option: Option) -> None:
        """Runs a plan from its next call on."""


class _Kind(NamedTuple):
    """What steps are told apart by."""

    order: Order
    sums: int | None
    """Of `Around`: whether its gradients are added up over processes, and what that takes."""
    there: int
    """Bytes that are there when it begins and do not stay: gradients of its parameters, parameters that were gathered."""
    follows: bool = False
    """Whether it has begun without an update of an optimizer since the last one, where that is seen."""

    def found(self, marks: Marks, lead: Lead) -> tuple[list[int], list[int]]:
        """What `Marks.found` gives, above parameters and what the step is given.

        Args:
            marks: Of a step.
            lead: What runs before the first mark.
        """
        live, peaks = ([one + lead.live + self.there for one in values] for values in marks.found())
        return live, [max(peaks[0], lead.peak + self.there), *peaks[1:]]


@dataclass
class _Call:
    """A forward whose backward has not run."""

    graph: int
    saved: list[Any] = field(default_factory=list)
    """Weak references to the storages that it left."""

    def is_over(self) -> bool:
        """Whether the backward cannot run any more."""
        return bool(self.saved) and all(one.expired() for one in self.saved)


@dataclass
class _Known:
    """What is known of steps of one order."""

    moments: list[Moment]
    external: int
    """Bytes of parameters and of what the step is given."""
    calls: Counter[int]
    """How often each graph runs."""
    measured: int | None
    """Most bytes of the measured step above them, where they were seen."""
    rounds: int = 1
    is_settled: bool = False


class Steps:
    """The steps of one backend."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._budget = settings.budget
        self._is_compiled = settings.form == "split"
        """Whether the graphs run behind Inductor."""
        self._graphs: list[Graph] = []
        self._menus: dict[int, list[Option]] = {}
        self._choice: dict[int, Option] = {}
        self._before: dict[int, Option] = {}
        """What graphs ran before the last change."""
        self._calls: list[_Call] = []
        self._order: list[tuple[int, bool]] = []
        self._waiting: list[Counter[int]] = []
        """For each half, the calls that had run their forward and not their backward."""
        self._external: dict[int, int] = {}
        self._around = Around()
        """What wrappers held when the step began."""
        self._gradients: dict[int, int] = {}
        """Bytes of gradients that were there when the step began."""
        self._known: dict[_Kind, _Known] = {}
        self._kept: set[_Kind] = set()
        """Steps of one graph around which nothing takes more than was promised."""
        self._wanted: dict[_Kind, int] = {}
        """Steps that are to be measured, and for how many steps they are still waited for."""
        self._ground = Ground() if Ground.can_see() else None
        self._lead: Lead | None = None
        """Of the step that runs."""
        self._follows = False
        """Of the step that runs, as `_Kind` has it."""
        self._leads: dict[tuple[Order, bool], Lead] = {}
        """The least of the steps of each order, those that follow others apart."""
        self._marks: Marks | None = None
        self._measured: Marks | None = None
        self._is_disturbed = False
        self._is_paused = False
        self._missed = ""
        """The note about a budget that no choice keeps."""

    def add(self, graph: Graph) -> int:
        """Takes in a graph that was compiled, and gives its number."""
        self._graphs.append(graph)
        self._is_disturbed = True
        return len(self._graphs) - 1

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """While it is open, graphs run for other reasons than a step."""
        was, self._is_paused, self._is_disturbed = self._is_paused, True, True
        try:
            yield
        finally:
            self._is_paused = was

    def before(self, number: int, inputs: Sequence[Any]) -> None:
        """Says that a graph is about to be called with gradients."""
        if self._is_paused or self._graphs[number].plannable is None:
            return
        self._calls = [one for one in self._calls if not one.is_over()]
        has_ended = self._order and self._order[-1][1] and not any(one.saved for one in self._calls)
        if not self._order or has_ended or len(self._order) > _MOST:
            self._begin(inputs)
        for one in _tensors(inputs):
            # What an earlier graph or the code between has made is no parameter, and counts as held.
            if (shard := self._around.shards.get(id(one))) is not None:
                self._external[id(one)] = shard
            elif not self._order or _stays(one):
                storage = one.untyped_storage()
                self._external[storage.data_ptr()] = storage.nbytes()
        if not any(is_backward for _, is_backward in self._order):
            self._gradients |= _gradients(inputs, self._around.stays > 0)

    def _begin(self, inputs: Sequence[Any]) -> None:
        """Ends the step that has run, and begins the next one.

        Args:
            inputs: Of its first graph.
        """
        held = around()
        there = _gradients(inputs, held.stays > 0)
        lead, follows = None, False
        if self._ground is not None:
            if self._is_disturbed:
                self._ground.forget()
            # What a new choice of plans takes comes later, and is no part of the step.
            follows = self._ground.follows
            lead = self._ground.first_graph(held.goes + sum(there.values()))
        if self._order:
            self._end()
        self._around, self._gradients, self._follows = held, there, follows
        self._lead = None if lead is None else lead.without(held.gathered)

    def run(self, number: int, is_backward: bool, outputs: int, half: Half, arguments: list[Any]) -> Any:
        """Runs a half of a graph.

        Args:
            number: Of the graph.
            is_backward: Whether it is the backward.
            outputs: How many results of the forward are not saved for the backward.
            half: What runs.
            arguments: Of the half, which empties the list.
        """
        if self._is_paused:
            return half(arguments)
        self._waiting.append(Counter(one.graph for one in self._calls))
        self._order.append((number, is_backward))
        inputs = set() if is_backward else {one.untyped_storage().data_ptr() for one in _tensors(arguments)}
        self._mark()
        results = half(arguments)
        self._mark()
        if is_backward:
            self._finish(number)
        else:
            own = (one.untyped_storage() for one in _tensors(results[outputs:]))
            self._calls.append(_Call(number, [StorageWeakRef(one) for one in own if one.data_ptr() not in inputs]))
            self._withdraw()
        return results

    def _withdraw(self) -> None:
        """Takes back what was promised for a graph alone where others wait for their backward at the same time."""
        if len(self._calls) < 2:
            return
        for report in (self._graphs[one.graph].report for one in self._calls if one.graph not in self._menus):
            self._take_back(report, ALONE if self._is_alone() else PART)

    @staticmethod
    def _take_back(report: Report, why: str) -> None:
        """Takes back a promise.

        Args:
            report: Of a graph.
            why: The note about it.
        """
        report.promised_bytes = None
        if why not in report.notes:
            report.notes.append(why)

    def _is_alone(self) -> bool:
        """Whether graphs are not planned together: processes compile splits together or not at all."""
        return self._is_compiled and processes() > 1

    def refused(self, number: int) -> None:
        """Says that a graph runs what it ran before the last change, since its gradients were wrong with the new plan."""
        self._menus[number] = [one for one in self._menus[number] if not one.is_same(self._choice[number])]
        self._choice[number] = self._before[number]
        for graph in self._menus:
            self._graphs[graph].report.promised_bytes = None

    def _mark(self) -> None:
        if self._marks is not None:
            self._marks.mark()

    def _finish(self, number: int) -> None:
        """Takes the last call of a graph from those that wait. After the last one of all, what autograd still does counts
        (gradients of other modules, sums over processes), and then nothing: nobody knows when the next step comes."""
        waiting = [place for place, one in enumerate(self._calls) if one.graph == number]
        if waiting:
            del self._calls[waiting[-1]]
        else:
            self._take_back(self._graphs[number].report, RETAINED)
        if not self._calls and (self._marks is not None or self._ground is not None):
            marks = self._marks
            after_backward(lambda: self._measure(marks))

    def _measure(self, marks: Marks | None) -> None:
        """Ends the measurement of a step, unless another one has begun."""
        if self._ground is not None:
            self._ground.end_of_step()
        if marks is not None and self._marks is marks:
            marks.mark()
            self._measured, self._marks = marks, None

    def _end(self) -> None:
        """Ends a step; the next one may be measured."""
        there = self._around.goes + sum(self._gradients.values())
        kind, waiting = _Kind(tuple(self._order), self._around.sums, there, self._follows), self._waiting
        external = self._around.stays + sum(self._external.values())
        disturbed, measured = self._is_disturbed, self._measured
        self._order, self._waiting, self._external, self._gradients, self._calls = [], [], {}, {}, []
        self._is_disturbed, self._measured, self._marks = False, None, None
        try:
            if self._is_watched(kind):
                is_sure = self._look(kind, self._lead) if not disturbed else False
                if measured is not None and is_sure and kind in self._wanted:
                    self._note(kind, waiting, external, measured)
                    if self._ground is not None:
                        self._ground.forget()
                if self._is_open(kind):
                    self._wanted[kind] = _PATIENCE
                else:
                    self._wanted.pop(kind, None)
            # Kinds of steps may alternate: the next one need not be of this kind.
            self._wanted = {one: left - 1 for one, left in self._wanted.items() if left > 0}
            if self._wanted:
                self._marks = Marks(self._device())
        except Exception as error:  # Training goes on whatever fails here.
            if self._settings.strict:
                raise
            self._is_paused = True
            _log.warning("the budget of a step is not divided: %s", error)

    def _look(self, kind: _Kind, lead: Lead | None) -> bool:
        """Takes in what ran before a step, and says whether enough is known of that."""
        if self._ground is None:
            return True
        known = self._leads.get((kind.order, kind.follows))
        if lead is not None and (known is not None or self._is_open(kind)):
            self._leads[kind.order, kind.follows] = lead if known is None else lead.least(known)
        # One look is not enough: an evaluation may have run, or another model.
        return known is not None or (lead is not None and not any(lead))

    def _lead_of(self, kind: _Kind) -> Lead:
        """What runs before steps of a kind."""
        found = self._leads.get((kind.order, kind.follows), Lead())
        # What runs before the first of several steps between two updates runs before the others, too, or is no part of them.
        return found if kind.follows else found.least(self._leads.get((kind.order, True), found))

    def _is_open(self, kind: _Kind) -> bool:
        """Whether more is to be measured of a kind of steps."""
        if (known := self._known.get(kind)) is not None:
            return not known.is_settled
        return kind not in self._kept and (kind in self._wanted or len(self._known) + len(self._wanted) < _KINDS)

    def _is_watched(self, kind: _Kind) -> bool:
        """Whether all graphs of a step have plans, and something else may lie beside what they take: other graphs, or
        what runs around the only one, where that is seen."""
        order = kind.order
        if self._is_alone() or any(self._graphs[graph].plannable is None for graph, _ in order):
            return False
        if len(order) > 2:
            return sum(not is_backward for _, is_backward in order) > 1
        return len({graph for graph, _ in order}) == 1 and (not self._is_whole(kind) or can_mark(self._device()))

    def _is_whole(self, kind: _Kind) -> bool:
        """Whether a step is one graph with a promise of its own."""
        order = kind.order
        return len(order) == 2 and kind not in self._known and self._graphs[order[0][0]].report.promised_bytes is not None

    def _keeps(self, kind: _Kind, waiting: Sequence[Counter[int]], marks: Marks) -> bool:
        """Whether a measured step of one graph keeps its promise with what runs around it."""
        order, sums = kind.order, kind.sums or 0
        graph = self._graphs[order[0][0]]
        assert graph.plannable is not None and graph.report.promised_bytes is not None
        promised = graph.report.promised_bytes - graph.report.external_bytes
        live, peaks = kind.found(marks, self._lead_of(kind))
        if marks.has_peaks:
            # Behind Inductor a promise may be just what was measured.
            promised += objects_around(promised, graph.report.tensors) if self._is_compiled else 0
            return max(*peaks, peaks[-1] + sums) <= promised
        # Objects of tensors are among what lies there between the halves; the promise counts those of each half.
        choice = {order[0][0]: graph.plannable.running()}
        most = peak(moments_of(order, waiting, live, peaks, choice, sums), choice)
        return most <= promised + _NOISE + objects_around(most, graph.report.tensors)

    def _device(self) -> str:
        places = (one.plannable.device for one in self._graphs if one.plannable is not None)
        return next((one for one in places if one != "cpu"), "cpu")

    def _note(
        self, kind: _Kind, waiting: Sequence[Counter[int]], external: int, marks: Marks
    ) -> None:
        """Takes in a measured step, and divides the budget anew."""
        order, sums = kind.order, kind.sums or 0
        if self._is_whole(kind):
            if self._keeps(kind, waiting, marks):
                self._kept.add(kind)
                return
            self._graphs[order[0][0]].report.notes.append(AROUND)
        live, peaks = kind.found(marks, self._lead_of(kind))
        for graph in {graph for graph, _ in order}:
            self._offer(graph)
            if marks.has_peaks:
                self._see(graph, order, live, peaks)
        before = self._known.get(kind)
        calls = Counter(graph for graph, is_backward in order if not is_backward)
        most = max(peaks) if marks.has_peaks else None
        known = _Known(moments_of(order, waiting, live, peaks, self._choice, sums), external, calls, most)
        known.rounds = 1 if before is None else before.rounds + 1
        self._known[kind] = known
        moments = [moment for one in self._known.values() for moment in one.moments]
        external = max(one.external for one in self._known.values())
        limit = self._limit(moments, external)
        chosen = {graph: self._choice[graph] for graph in self._menus}
        rounds = _COMPILED_ROUNDS if self._is_compiled else _ROUNDS
        if known.rounds <= rounds and (peak(moments, chosen) > limit or known.rounds == 1):
            calls = sum((one.calls for one in self._known.values()), Counter())
            longest = longest_of(duration(self._fastest(), calls)) if self._budget.is_auto else None
            chosen = self._chosen(moments, calls, limit, longest)
            if longest is None and 0 < limit and peak(moments, chosen) <= limit:
                chosen = self._refined(moments, calls, chosen, limit)
        changed = [graph for graph, one in chosen.items() if not one.is_same(self._choice[graph])]
        for graph in changed:
            self._graphs[graph].take(chosen[graph])
        self._before = dict(self._choice)
        self._choice |= chosen
        known.is_settled = not changed
        self._report(moments, external, limit)

    def _offer(self, graph: int) -> None:
        """Looks for plans of a graph. Behind Inductor, what was measured since tells more of each."""
        if graph in self._menus and not self._is_compiled:
            return
        plannable = self._graphs[graph].plannable
        assert plannable is not None
        running = self._choice[graph] = plannable.running()
        first, *others = plannable.options(self._settings.search)
        # The plan that runs may have a lower peak than all others.
        others = [one for one in others if not one.is_same(running)]
        self._menus[graph] = [running, *others] if running.is_same(first) else [first, *others, running]

    def _see(self, graph: int, order: Order, live: Sequence[int], peaks: Sequence[int]) -> None:
        """Takes in what the plan of a graph has taken in a measured step."""
        plannable, option = self._graphs[graph].plannable, self._choice[graph]
        assert plannable is not None
        most = {False: 0, True: 0}
        for place, (one, is_backward) in enumerate(order):
            if one == graph:
                most[is_backward] = max(most[is_backward], peaks[1 + 2 * place] - live[1 + 2 * place])
        self._replace(graph, option, plannable.seen(option, most[False], most[True]))

    def _replace(self, graph: int, option: Option, better: Option) -> None:
        """Takes one option for another that says more of the same plan."""
        self._menus[graph] = [better if one is option else one for one in self._menus[graph]]
        if self._choice[graph] is option:
            self._choice[graph] = better

    def _chosen(
        self, moments: Sequence[Moment], calls: Counter[int], limit: int, longest: int | None
    ) -> dict[int, Option]:
        """A plan for each graph. Of rough ones, only what would be taken is looked at closely."""
        while True:
            chosen = choose(moments, self._menus, calls, limit, longest)
            rough = [graph for graph, one in chosen.items() if one.is_rough]
            if not rough:
                return chosen
            for graph in rough:
                plannable = self._graphs[graph].plannable
                assert plannable is not None
                self._replace(graph, chosen[graph], plannable.exact(chosen[graph]))

    def _fastest(self) -> dict[int, Option]:
        return {graph: min(menu, key=lambda one: one.duration) for graph, menu in self._menus.items()}

    def _refined(
        self, moments: Sequence[Moment], calls: Counter[int], chosen: dict[int, Option], limit: int
    ) -> dict[int, Option]:
        """A choice with plans that use the room which it leaves, the graph with most time to gain first."""
        fastest = self._fastest()

        def gain(graph: int) -> int:
            return calls[graph] * (chosen[graph].duration - fastest[graph].duration)

        todo = [graph for graph in sorted(chosen, key=gain, reverse=True) if gain(graph) > 0]
        for graph in todo:
            plannable = self._graphs[graph].plannable
            assert plannable is not None
            part = self._settings.search.part(1 / len(todo))
            if (option := plannable.refined(graph, moments, chosen, limit, part)) is not None:
                self._menus[graph].append(option)
                menus = {one: [plan] for one, plan in chosen.items()} | {graph: [chosen[graph], option]}
                chosen = choose(moments, menus, calls, limit)
        return chosen

    def _limit(self, moments: Sequence[Moment], external: int) -> int:
        """Bytes above parameters and inputs that a step may take; 0 for as little as possible."""
        baseline = peak(moments, {graph: menu[0] for graph, menu in self._menus.items()})
        plannables = [one for graph in self._menus if (one := self._graphs[graph].plannable) is not None]
        self._budget = resolved(self._budget, self._device(), external, sum(one.gradient_bytes() for one in plannables))
        limit = self._budget.of_candidates(external, baseline)
        return max(0, limit - objects_around(limit, self._tensors())) if self._budget.total else limit

    def _tensors(self) -> int:
        return sum(self._graphs[graph].report.tensors for graph in self._menus)

    def _report(self, moments: Sequence[Moment], external: int, limit: int) -> None:
        """Says in the report of each graph what the step takes."""
        most = peak(moments, self._choice)
        objects = objects_around(most, self._tensors())
        fastest = self._fastest()
        baseline = peak(moments, {graph: menu[0] for graph, menu in self._menus.items()})
        seen = [one.measured for one in self._known.values() if one.measured is not None]
        measured = max(seen) if seen and self._settled() else None
        missed = f"no plans of its graphs keep the budget of the step, {external + limit} bytes"
        for graph in self._menus:
            report, option = self._graphs[graph].report, self._choice[graph]
            if report.fallback is not None:
                continue
            report.graphs = len(self._menus)
            report.external_bytes = external
            report.baseline_bytes = external + baseline
            report.promised_bytes = external + max(most, measured or 0) + objects
            report.measured_bytes = None if measured is None else external + measured
            report.saved_bytes = option.takes.saved + sum(option.takes.shown.values())
            report.recomputes = option.recomputes
            report.overhead = option.duration / max(1, fastest[graph].duration) - 1
            # What was said of the graph alone, or of an earlier choice.
            report.notes = [one for one in report.notes if one not in (PART, NOT_KEPT, NO_SPLIT, self._missed)]
            if 0 < limit < most:
                report.notes.append(missed)
        self._missed = missed
        if 0 < limit < most and self._settled():
            _log.warning("a step takes %d bytes, not %d", external + most, external + limit)

    def _settled(self) -> bool:
        return all(one.is_settled for one in self._known.values())


def _tensors(values: Sequence[Any]) -> list[torch.Tensor]:
    return [one for one in values if isinstance(one, torch.Tensor)]


def _stays(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a parameter."""
    return isinstance(tensor, torch.nn.Parameter)


def _gradients(values: Sequence[Any], has_buckets: bool) -> dict[int, int]:
    """Bytes of gradients that parameters have, by their place in memory.

    Args:
        values: Parameters are among them.
        has_buckets: Whether gradients may be views of buckets, which are not counted.
    """
    found = {}
    for one in _tensors(values):
        if _stays(one) and (gradient := one.grad) is not None and gradient.layout == torch.strided:
            storage = gradient.untyped_storage()
            if not has_buckets or storage.nbytes() == gradient.numel() * gradient.element_size():
                found[storage.data_ptr()] = storage.nbytes()
    return found
