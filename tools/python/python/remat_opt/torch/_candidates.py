"""Splits to choose from behind Inductor, with the peak of each: predicted first, measured once it was compiled."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from .. import _native
from . import _cache
from ._effects import results
from ._emit import original
from ._graph import TrainingGraph
from ._plans import Search, plan_within
from ._live import Footprint, Workspace, footprint, live_peak
from ._predict import predict
from ._split import Halves, Joint, Split, saved_names
from ._storages import storage_bytes
from ._versions import traced

_FORMAT = 2
"""Of what is stored."""
_SHARES = ("80%", "65%", "50%", "35%", "min")
"""Budgets of our plans, which count more than Inductor keeps."""
_KNOBS = (1.0, 0.8, 0.6, 0.4, 0.2)
"""Values of PyTorch's `activation_memory_budget`."""
_DOUBT = 1.15
"""How much longer than predicted our splits take, held against PyTorch's own: the prediction does not know which
kernels Inductor makes of them (`moe-tiny` of the tests: 1.1 to 1.2)."""
_MARGIN, _STOCK_MARGIN = 1.15, 1.4
"""How much above the predicted peak live values of our splits and of PyTorch's own may be: Inductor never makes some of
them, and orders anew what PyTorch's partitioner leaves (`moe-tiny` of the tests: 1.35)."""
_NEAR = 1.08
"""How much above a budget the prediction of a split may be that is compiled all the same, to be measured: those of
PyTorch's own splits come out up to 6 % too high (`vit-tiny` of the tests)."""
_FASTER = 0.95
"""What share of the predicted time of the split that keeps the budget such a split takes at most."""
_ACCESSES = 2
"""How often a saved value is accessed beyond one that is computed again: the forward writes it, the backward reads."""
_PLANNING = 0.8
"""For how many times the time of one plan all plans together are searched for."""


@dataclass(frozen=True)
class Source:
    """A joint graph in one compilation, and what its ops take."""

    joint: Joint
    graph: TrainingGraph
    """The same as a problem."""
    inputs: Sequence[object]
    keywords: Mapping[str, Any]
    """Of the partitioner."""
    durations: Mapping[str, int]
    """Nanoseconds by node, of ops that are fused without reading and writing memory."""
    workspace: Workspace
    rate: float
    """Bytes that are read or written in a nanosecond."""
    options: Mapping[str, Any]
    """Configuration of Inductor that is not the usual one."""
    tight: Mapping[str, Any]
    """What is added to it for splits that are `is_tight`; empty where there are none."""

    def halves(self, split: Split) -> Halves:
        """Both halves of a split, of a copy of the graph."""
        joint = self.joint if split.steps else self.joint.copy()
        with self._compiling():
            return joint.halves(split, self.graph, self.inputs, self.keywords)

    def predict(self, split: Split) -> Footprint:
        """What a split takes behind Inductor, above parameters and inputs."""
        settings = {**self.options, **(self.tight if split.is_tight else {})}
        with self._compiling(), torch._inductor.config.patch(settings):
            return predict(self.halves(split), len(self.joint.cut.outputs), self.workspace)

    def least(self, split: Split, halves: Halves) -> Footprint:
        """The least that a split may take behind Inductor, told from live values of its halves."""
        margin = _MARGIN if split.knob is None else _STOCK_MARGIN
        return footprint(halves, len(self.joint.cut.outputs), self.workspace).scaled(1 / margin)

    @contextlib.contextmanager
    def _compiling(self) -> Iterator[None]:
        """While it is open, all is as it was when the graph was compiled, in a training step, too."""
        with traced(self.joint.gm.graph), torch.no_grad(), torch._C._DisableAutocast():
            yield


class Candidates:
    """The splits of one graph. What is measured serves all budgets, and later processes."""

    def __init__(self, source: Source, search: Search, environment: object) -> None:
        """Reads splits and peaks from the cache, or looks for splits.

        Args:
            source: The graph.
            search: How plans are searched for.
            environment: What peaks depend on besides the graph, as an object that JSON takes.
        """
        self.graph = source.joint.key()
        """A hash of the graph."""
        versions = [_FORMAT, _native.VERSION, torch.__version__, torch.get_num_threads(), self.graph]
        self._splits_key = _cache.key_of([*versions, environment, asdict(search)])
        self._peaks_key = _cache.key_of([*versions, environment])
        if (stored := _cache.load("splits", self._splits_key)) is None:
            splits, op_by_op = _find(source, search)
            stored = {"splits": [asdict(one) for one in splits], "op_by_op": op_by_op}
            stored["usual"] = asdict(source.predict(next(one for one in splits if _is_usual(one))))
            _cache.store("splits", self._splits_key, stored)
        self.splits = [
            Split(**{name: tuple(value) if isinstance(value, list) else value for name, value in one.items()})
            for one in stored["splits"]
        ]
        """Fastest first."""
        self.fastest = min(one.duration for one in self.splits)
        """Nanoseconds of the fastest split."""
        self.usual = next(one for one in self.splits if _is_usual(one))
        """PyTorch's own split without a budget."""
        usual = _footprint(stored["usual"])
        self.baseline = usual.peak
        """The peak above parameters and inputs of PyTorch's own split without a budget, as Inductor fuses and orders it:
        what shares are of. It is predicted, so that it is the same whatever was compiled before."""
        self.op_by_op: int = stored["op_by_op"]
        """The same of all ops once, in the order in which the graph was traced, nothing fused."""
        known = _cache.load("peaks", self._peaks_key) or {}
        self._rejected: list[str] = known.get("rejected", [])
        self.splits = [one for one in self.splits if one.key not in self._rejected]
        self.predicted = {key: _footprint(one) for key, one in known.get("footprints", {}).items()}
        """What splits take above parameters and inputs, by their key."""
        self.predicted.setdefault(self.usual.key, usual)
        self.measured: dict[str, int] = known.get("measured", {})
        """Peaks of compiled code, with the backward right after the forward."""
        self.seen: dict[str, Footprint] = {}
        """What splits have taken in steps of this process."""
        self.least: dict[str, tuple[Footprint, int]] = {}
        """The least that splits may take, and how many ops they run again, as far as that was told from live values."""
        self._answers: list[tuple[int, str]] = [(limit, key) for limit, key in known.get("answers", [])]
        """For budgets that were kept, the budget and the key of the split."""

    def allow(self, ordered: bool, longest: int | None) -> None:
        """Leaves out splits that are not allowed.

        Args:
            ordered: Whether those with an order of their own are.
            longest: What a split may take in time, in nanoseconds; where all take longer, the fastest is left.
        """
        allowed = [one for one in self.splits if ordered or not one.steps]
        short = [one for one in allowed if longest is None or one.duration <= longest]
        self.splits = short or allowed[:1]

    def choose(self, limit: int, predict: Callable[[Split], Footprint]) -> Split:
        """The fastest split that is expected to stay within a limit; where there is none, that with the lowest expected
        peak.

        A limit is never answered by a higher peak than a larger one was before.

        Args:
            limit: Bytes above parameters and inputs.
            predict: What a split takes that was neither predicted nor measured yet.
        """
        limit = self.limit(limit)
        likely = [one for one in self.splits if self._is_likely(one, limit)]
        for split in likely:
            if self.expected(split, predict) <= limit:
                return split
        lowest: Split | None = None
        for split in sorted(self.splits, key=lambda one: one.live):
            least = None if lowest is None else self.expected(lowest, predict)
            if least is None or (self._is_likely(split, least) and self.expected(split, predict) < least):
                lowest = split
        assert lowest is not None
        return lowest

    def _is_likely(self, split: Split, limit: int) -> bool:
        """Whether a split may stay within a limit, as far as is known without a new prediction."""
        if split.key in self.measured:
            return self.measured[split.key] <= limit
        known = self.predicted.get(split.key)
        margin = _MARGIN if split.knob is None else _STOCK_MARGIN
        return (split.live / margin if known is None else known.peak * self._bias()) <= limit

    def best(self, limit: int) -> Split:
        """The fastest split whose measured peak is within a limit; where there is none, that with the lowest one."""
        tried = [one for one in self.splits if one.key in self.measured]
        limit = self.limit(limit)
        fits = (one for one in tried if self.measured[one.key] <= limit)
        return next(fits, None) or min(tried, key=lambda one: self.measured[one.key])

    def is_worth_trying(self, limit: int, share: float) -> bool:
        """Whether a split that was not measured is expected to keep the limit, or to have no more than a share of the
        least peak that was measured."""
        least = min((self.measured[one.key] for one in self.splits if one.key in self.measured), default=0)
        wanted = max(self.limit(limit), int(least * share))
        return any(self._is_likely(one, wanted) for one in self.splits if one.key not in self.measured)

    def near(self, limit: int, split: Split) -> Split | None:
        """The fastest split that is expected to miss a limit by little, as far as is known without a new prediction; none
        without a clear gain in time.

        Args:
            limit: Bytes above parameters and inputs.
            split: One that keeps the limit, and is slower.
        """
        most = _NEAR * self.limit(limit) / self._bias()
        found = [
            one
            for one in self.splits
            if one.key not in self.measured
            and one.duration <= _FASTER * split.duration
            and one.key in self.predicted
            and self.predicted[one.key].peak <= most
        ]
        return min(found, key=lambda one: (one.duration, self.predicted[one.key].peak), default=None)

    def limit(self, limit: int) -> int:
        """The limit, or what a larger one was answered by, where that is less."""
        there = {one.key for one in self.splits if one.key in self.measured}
        return min([limit, *(self.measured[key] for asked, key in self._answers if asked >= limit and key in there)])

    def expected(self, split: Split, predict: Callable[[Split], Footprint]) -> int:
        """The peak of a split: as measured, or as predicted and corrected by what was measured of others."""
        if split.key in self.measured:
            return self.measured[split.key]
        return int(self._predicted(split, predict).peak * self._bias())

    def takes(self, split: Split, predict: Callable[[Split], Footprint]) -> Footprint:
        """What a split takes: as a step has shown, or as predicted, with the peak that is expected."""
        if split.key in self.seen:
            return self.seen[split.key]
        predicted = self._predicted(split, predict)
        return predicted.scaled(self.expected(split, predict) / max(1, predicted.peak))

    def _predicted(self, split: Split, predict: Callable[[Split], Footprint]) -> Footprint:
        if split.key not in self.predicted:
            self.predicted[split.key] = predict(split)
            self._store()
        return self.predicted[split.key]

    def note(self, split: Split, peak: int) -> None:
        """Keeps what the compiled code of a split took."""
        self.measured[split.key] = max(peak, self.measured.get(split.key, 0))
        self._store()

    def answer(self, limit: int, split: Split) -> None:
        """Keeps which split a limit was answered by, if it stays within the limit."""
        if self.keeps(split, limit) and (limit, split.key) not in self._answers:
            self._answers.append((limit, split.key))
            self._store()

    def keeps(self, split: Split, limit: int) -> bool:
        """Whether the measured peak of a split is within a limit."""
        return split.key in self.measured and self.measured[split.key] <= limit

    def reject(self, split: Split) -> None:
        """Never chooses a split again."""
        self.splits.remove(split)
        self.measured.pop(split.key, None)
        self._rejected.append(split.key)
        self._store()

    def _bias(self) -> float:
        """How much more was measured than predicted, on average."""
        pairs = [(self.measured[key], one.peak) for key, one in self.predicted.items() if key in self.measured and one.peak]
        return sum(peak / one for peak, one in pairs) / len(pairs) if pairs else 1.0

    def _store(self) -> None:
        known: dict[str, Any] = {"footprints": {key: asdict(one) for key, one in self.predicted.items()}}
        known["measured"] = self.measured
        known |= {"answers": self._answers, "rejected": self._rejected}
        _cache.store("peaks", self._peaks_key, known)


def _is_usual(split: Split) -> bool:
    return split.knob == _KNOBS[0] and not split.is_tight


def _footprint(stored: Mapping[str, Any]) -> Footprint:
    """A footprint of the cache, where positions are texts."""
    return Footprint(**{**stored, "shown": {int(place): size for place, size in stored["shown"].items()}})


def _find(source: Source, search: Search) -> tuple[list[Split], int]:
    """Different splits, fastest first, and the peak without recomputation and fusion."""
    found: dict[str, Split] = {}
    for knob in _KNOBS:
        own = Split(f"PyTorch's min-cut at {knob}", (), knob=knob)
        halves = source.halves(own)
        own = _add(found, source, replace(own, saved=saved_names(source.joint, halves)), halves)
        if source.tight:
            tight = replace(own, name=f"{own.name}, less fused", is_tight=True)
            found.setdefault(tight.key, tight)
    is_tight = bool(source.tight)
    shorter = search.part(_PLANNING / len(_SHARES))
    is_kept = True
    for share in _SHARES:
        if not is_kept and share != "min":
            continue
        plan, is_kept = plan_within(source.graph, share, shorter)
        steps = tuple(one["node"] for one in plan["steps"] if one["op"] in ("compute", "recompute"))
        ordered = Split(f"plan of {share}, in its order", (), steps, is_tight=is_tight)
        halves = source.halves(ordered)
        _add(found, source, ordered, halves)
        saved = _origins(source.joint, saved_names(source.joint, halves))
        _add(found, source, Split(f"plan of {share}", saved, is_tight=is_tight), None)
    return sorted(found.values(), key=lambda one: one.duration), int(plan["baseline_peak_bytes"])


def _origins(joint: Joint, names: Sequence[str]) -> tuple[str, ...]:
    """The nodes of the joint graph among those that a planned graph saves: further runs have names of their own."""
    known = {node.name for node in joint.gm.graph.nodes}
    return tuple(sorted({one if one in known else original(one) for one in names}))


def _add(found: dict[str, Split], source: Source, split: Split, halves: Halves | None) -> Split:
    """Adds a split with its time and live values, if there is none of its key."""
    if split.key in found:
        return found[split.key]
    halves = halves or source.halves(split)
    given = {node.name for node in source.joint.gm.graph.find_nodes(op="placeholder")}
    crossing = [node for node in halves[1].graph.find_nodes(op="placeholder") if node.name not in given]
    moved = sum(_ACCESSES * storage_bytes(value) for node in crossing for _, value in results(node))
    computed = sum(source.durations.get(original(node.name), 0) for half in halves for node in half.graph.nodes)
    duration = int((computed + moved / source.rate) * (_DOUBT if split.knob is None else 1.0))
    live = live_peak(halves, len(source.joint.cut.outputs), source.workspace)
    saved = saved_names(source.joint, halves) if not split.steps else ()
    split = replace(split, saved=saved, duration=duration, live=live)
    return found.setdefault(split.key, split)
