"""Joint graphs into forward and backward, as a plan says."""

from __future__ import annotations

import hashlib
import json
import logging
import statistics
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import torch
from torch import fx
from torch._functorch import partitioners as stock
from torch.utils import _pytree as pytree

from .. import _native
from .._plan import Plan
from . import _cache
from ._budget import Budget, Memory, objects_around, parse
from ._candidates import Candidates, Source
from ._divide import Plannable
from ._dropout import split_dropout
from ._effects import allow, is_random, names_of, refuse_unsupported, results
from ._emit import emit
from ._free import resolved
from ._graph import TrainingGraph
from ._live import Workspace, footprint
from ._measure import ASSUMED_RATE, Costs, channels_last_workspace, measure
from ._moving import is_outside
from ._offload import Offload
from ._peak import free_bytes, has_meter
from ._planned import Planned
from ._plans import Search, longest_of, plan_in_all
from ._report import Report, record
from ._split import Halves, Joint, Split, clean, recomputes_of, remove_tags, saved_nodes, shares_memory, stock_halves
from ._splittable import Splittable
from ._storages import storage_bytes
from ._transfers import taken_by
from ._versions import PartitionerBase, keep_saved
from ._wrappers import bucket_bytes

_log = logging.getLogger("remat_opt")

NOT_KEPT = "no plan keeps the budget; this is the one with the lowest peak that was found"
"""The note of a graph whose plan takes more than was asked for."""
NO_SPLIT = "no split keeps the budget; this is the one with the lowest measured peak"
"""The same behind Inductor."""
_LARGE = 1 << 20
"""Bytes that an op has to read and write for its rate to count: less stays in caches."""


@dataclass(frozen=True)
class Settings:
    """How graphs are split."""

    budget: Budget
    search: Search = field(default_factory=Search)
    form: Literal["exact", "split"] = "exact"
    """`exact`: both graphs have the order and the clones of a plan. `split`: one of several candidates decides what is
    saved, and PyTorch's partitioner and Inductor do the rest."""
    options: dict[str, Any] = field(default_factory=dict)
    """Configuration of Inductor that is not the usual one."""
    tight: dict[str, Any] = field(default_factory=dict)
    """What is added to it for splits that are `is_tight`; without it there are none."""
    is_owned: bool = False
    """Whether a backend compiles both halves. They alone are the key of Inductor's caches then, whatever the budget."""
    is_checked: bool = False
    """Whether gradients are compared with those of the model. Without it, splits whose graphs are ordered and cloned by a
    plan are left out behind Inductor."""
    strict: bool = False
    """Whether failures are raised; otherwise PyTorch's partitioner takes over, with a warning."""
    recomputable: tuple[str, ...] = ()
    """Ops of other packages, and packages, that may run again."""
    offload: Offload | None = None
    """Of `exact`: where values may move to."""

    @property
    def folder(self) -> str | None:
        """Where the second memory of a CPU lies."""
        return None if self.offload is None else self.offload.folder


class Partitioner(PartitionerBase):  # type: ignore[misc]
    """Splits a joint graph so that forward and backward stay within a budget together.

    It has the signature of `torch._functorch.partitioners.min_cut_rematerialization_partition`, and is a
    `CustomPartitionerFn` of Inductor where the version has that.
    """

    def __init__(
        self,
        settings: Settings,
        inner: str,
        split: Split | None = None,
        given: tuple[Mapping[str, Any] | Split, Report] | None = None,
        name: str | None = None,
    ) -> None:
        self.settings = settings
        self.inner = inner
        self.budget = settings.budget
        """That of the last graph: in bytes, where what is free decides."""
        self.name = name
        """Of the graph, in reports; that which Dynamo gives to it, without one."""
        self.given = given
        """The plan or split that is obeyed instead of one within the budget, and the report of the graph, whose totals are
        those of a step of several graphs."""
        self.plannable: Plannable | None = None
        """The last graph, to be planned again."""
        self.split = split
        """The split of the last graph; one that is given is the only one that is looked at."""
        self.last: Report | None = None
        """The report of the last graph that was split."""
        self.candidates: Candidates | None = None
        """What there was to choose from."""
        self.limit = 0
        """The budget in bytes above parameters and inputs; 0 for the lowest peak."""
        self.draws = False
        """Whether the last graph draws random numbers."""
        self.code: tuple[str, str] | None = None
        """Hashes of the last joint graph and of its split: equal ones are the same code."""
        self._is_given = split is not None

    def __getstate__(self) -> dict[str, Any]:
        # Options may be passes, which cannot be pickled.
        own = {"settings": replace(self.settings, options={}), "inner": self.inner, "budget": self.settings.budget}
        own |= {"limit": 0, "draws": False, "_is_given": False}
        return own | dict.fromkeys(("split", "last", "candidates", "code", "given", "plannable", "name"))

    def uuid(self) -> str:
        """What the results depend on besides the graph; part of the key of Inductor's caches."""
        options = "" if self.settings.is_owned else json.dumps(asdict(self.settings), sort_keys=True, default=repr)
        if self.settings.budget.is_free:
            options += f" {free_bytes('cuda' if torch.cuda.is_available() else 'cpu')}"
        return hashlib.sha256(f"remat-opt {_native.VERSION} {self.inner} {options}".encode()).hexdigest()

    @property
    def fusion(self) -> dict[str, Any]:
        """What the split of the last graph adds to the configuration of Inductor."""
        return self.settings.tight if self.split is not None and self.split.is_tight else {}

    def again(self, split: Split | None = None) -> Partitioner:
        """A partitioner for the next compilation of the same graph.

        Args:
            split: What to take, instead of what is expected to be the best.
        """
        partitioner = Partitioner(replace(self.settings, budget=self.budget), self.inner, split)
        partitioner.candidates = self.candidates
        return partitioner

    def __call__(
        self, gm: fx.GraphModule, joint_inputs: Sequence[object], **keywords: Any
    ) -> Halves:
        """Forward and backward of a joint graph."""
        report = self.last = self._fresh_report() if self.given is None else self.given[1]
        start = time.perf_counter()
        try:
            return self._split(gm, joint_inputs, keywords, report)
        except Exception as error:  # Training goes on whatever fails here.
            if self.settings.strict:
                raise
            report.fallback = f"{type(error).__name__}: {error}"
            report.promised_bytes = None
            _log.warning("graph %s is not planned, PyTorch's partitioner takes over: %s", report.graph, error)
            remove_tags(gm.graph)
            return stock_halves(gm, joint_inputs, keywords)
        finally:
            report.seconds = time.perf_counter() - start

    def _fresh_report(self) -> Report:
        return record(Report(inner=self.inner, graph=self.name or graph_name(), rounds=1))

    def _split(
        self, gm: fx.GraphModule, joint_inputs: Sequence[object], keywords: dict[str, Any], report: Report
    ) -> Halves:
        refuse_unsupported(gm.graph)
        split_dropout(gm.graph)
        clean(gm)
        self.draws = any(is_random(node) for node in gm.graph.nodes)
        once = allow(gm.graph, self.settings.recomputable)
        joint = Joint(gm, keywords["num_fwd_outputs"])
        costs = measure(gm.graph)
        if self.given is None:
            report.note_once(once)
            report.note_costs(costs.measured, costs.estimated)
        if self.settings.form == "split":
            workspace, rate = _fit_to_inductor(costs, gm.graph)
        graph = TrainingGraph(gm.graph, joint.backward, costs.by_node, cut=joint.cut, name="torch")
        graph.external_bytes += bucket_bytes()
        gradients = graph.bytes_of(one for one in joint.backward if isinstance(one, fx.Node))
        self.budget = resolved(self.settings.budget, graph.device, graph.external_bytes, gradients)
        if self.given is None:
            report.ops, report.tensors = len(graph.document["ops"]) - 1, graph.tensors_at_once()
            report.external_bytes = graph.external_bytes
            report.budget_bytes = self.budget.total
        if self.settings.form == "split":
            return self._choose(joint, joint_inputs, keywords, graph, costs, workspace, rate, report)
        if self.settings.offload is not None:
            graph.document["paging"] = self.settings.offload.paging(graph.device)
        plain = {node.name: cost.workspace for node, cost in costs.by_node.items() if cost.workspace}
        plan = self._plan(graph, report) if self.given is None else self.given[0]
        assert not isinstance(plan, Split)
        static = keywords.get("static_lifetime_input_indices")
        self.code = joint.key(), _cache.key_of(plan["steps"])
        emitted = emit(graph, plan, self.settings.folder)
        outputs = joint.outputs(emitted)
        saved = saved_nodes(emitted, outputs[len(joint.cut.outputs) :])
        report.saved_bytes = graph.bytes_of(one for one in saved if not is_outside(one.target))
        halves = joint.extract(emitted, outputs, saved, static)
        workspace = Workspace(plain, {})
        takes = footprint(halves, len(joint.cut.outputs), workspace)
        self.plannable = Planned(joint, graph, workspace, static, plan, takes, self.settings.folder)
        return halves

    def _choose(
        self,
        joint: Joint,
        joint_inputs: Sequence[object],
        keywords: dict[str, Any],
        graph: TrainingGraph,
        costs: Costs,
        workspace: Workspace,
        rate: float,
        report: Report,
    ) -> Halves:
        """The best of several splits."""
        durations = {node.name: cost.duration for node, cost in costs.by_node.items()}
        options, tight = self.settings.options, self.settings.tight
        source = Source(joint, graph, joint_inputs, keywords, durations, workspace, rate, options, tight)
        environment = [(device := graph.device), has_meter(device), repr(sorted(options.items())), tight]
        known = self.candidates
        if known is None or known.graph != joint.key():
            known = self.candidates = Candidates(source, self.settings.search, environment)
            longest = longest_of(known.fastest) if self.budget.is_auto else None
            known.allow(self.settings.is_checked, longest)
        self.limit = self.budget.of_candidates(graph.external_bytes, known.baseline)
        if self.given is not None:
            assert isinstance(self.given[0], Split)
            self.split = self.given[0]
        elif not self._is_given:
            self.split = known.choose(self.limit, source.predict)
        assert self.split is not None
        report.split = self.split.name
        self.code = joint.key(), self.split.key
        if self.given is None:
            expected = known.expected(self.split, source.predict)
            report.baseline_bytes = graph.external_bytes + known.baseline
            report.promised_bytes = graph.external_bytes + expected
            report.predicted_bytes = report.promised_bytes
            if expected > self.limit > 0 and not self.settings.is_owned:
                report.notes.append("no split is expected to keep the budget; this is the one with the lowest peak")
                _log.warning("graph %s: no split is expected to keep the budget: %s", report.graph, report.promised_bytes)
            report.overhead = self.split.duration / max(1, known.fastest) - 1
        halves = source.halves(self.split)
        report.recomputes = recomputes_of(halves)
        given = pytree.arg_tree_leaves(*next(iter(halves[0].graph.find_nodes(op="output"))).args)
        saved = [one for one in given[len(joint.cut.outputs) :] if isinstance(one, fx.Node)]
        report.saved_bytes = graph.bytes_of(saved)
        self.plannable = Splittable(source, known, self.split, report.recomputes)
        if self.settings.is_owned and shares_memory(halves[0], saved):
            keep_saved()
        return halves

    def _plan(self, graph: TrainingGraph, report: Report) -> Plan:
        budget = self.budget.of_plan(graph.external_bytes)
        plan, is_kept, report.tensors = plan_in_all(graph, budget, self.settings.search)
        peak, report.moved_bytes = taken_by(graph, plan)
        report.baseline_bytes = graph.external_bytes + int(plan["baseline_peak_bytes"])
        report.promised_bytes = graph.external_bytes + peak + objects_around(peak, report.tensors)
        report.recomputes = len(plan.recomputes)
        report.overhead = plan.duration / max(1, int(plan["baseline_duration"])) - 1
        report.is_optimal, report.gap = plan.is_optimal, plan.gap
        if not is_kept:
            report.notes.append(NOT_KEPT)
            _log.warning(
                "graph %s: no plan keeps %s, the lowest peak found is %d bytes",
                report.graph,
                budget if self.budget.total is None else f"{self.budget.total} bytes",
                report.promised_bytes,
            )
        return plan


def partitioner(
    memory: Memory,
    *,
    time_limit: float = 10.0,
    step_limit: int | None = None,
    threads: int | None = None,
    seed: int = 0,
    recomputable: Collection[str] = (),
) -> Partitioner:
    """A partitioner for `torch._inductor.config.custom_partitioner_fn` (PyTorch 2.9 and later).

    It takes the fastest split whose predicted peak keeps the budget, or the measured one where `backend` has compiled
    the split before. Gradients are not checked and peaks are not measured here: `backend` does both.

    Args:
        memory: As of `backend`.
        time_limit: Seconds to search for a plan.
        step_limit: Most steps of the search for each plan; with one thread and the same seed, every search of the
            same graph gives the same plan, unless `time_limit` ends it before.
        threads: Threads to search with.
        seed: Of the random choices.
        recomputable: As of `backend`.
    """
    search = Search(time_limit=time_limit, step_limit=step_limit, threads=threads, seed=seed)
    settings = Settings(parse(memory), search, form="split", recomputable=names_of(recomputable))
    return Partitioner(settings, "inductor")


def _fit_to_inductor(costs: Costs, graph: fx.Graph) -> tuple[Workspace, float]:
    """Counts for what Inductor fuses only the time that is not spent on memory, and for convolutions the workspace that
    they take in the layout that Inductor gives them.

    Returns:
        Workspace, and bytes that ops read and write in a nanosecond.
    """
    known = stock.get_default_op_list().fusible_ops
    fusible = {
        node: (cost, _moved(node))
        for node, cost in costs.by_node.items()
        if getattr(node.target, "overloadpacket", node.target) in known
    }
    rates = [moved / cost.duration for cost, moved in fusible.values() if cost.duration and moved >= _LARGE]
    # Some compute more than they move: the faster ones show what memory gives.
    rate = statistics.quantiles(rates)[-1] if len(rates) > 1 else ASSUMED_RATE
    for node, (cost, moved) in fusible.items():
        costs.by_node[node] = replace(cost, duration=max(0, cost.duration - int(moved / rate)))
    plain = {node.name: cost.workspace for node, cost in costs.by_node.items() if cost.workspace}
    channels_last = channels_last_workspace(graph)
    for node, size in channels_last.items():
        costs.by_node[node] = replace(costs.by_node[node], workspace=size)
    return Workspace(plain, {node.name: size for node, size in channels_last.items()}), rate


def _moved(node: fx.Node) -> int:
    """Bytes that an op reads and writes."""
    values = [value for one in (node, *node.all_input_nodes) for _, value in results(one)]
    return sum(min(one.numel() * one.element_size(), storage_bytes(one)) for one in values)


def graph_name() -> str:
    """The name that Dynamo gives to the graph that it compiles just now."""
    from torch._guards import CompileContext

    return str(CompileContext.current_compile_id() or "")
