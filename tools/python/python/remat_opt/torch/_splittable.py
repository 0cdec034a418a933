"""Graphs behind Inductor, split anew for a part of a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import fx

from ._candidates import Candidates, Source
from ._divide import Moment, Option
from ._live import Footprint
from ._plans import Search
from ._split import Split, recomputes_of


@dataclass(frozen=True)
class Splittable:
    """A `Plannable` whose options are the candidates. To predict what one takes behind Inductor takes about a second, so
    options are rough until they are asked for."""

    source: Source
    candidates: Candidates
    plan: Split
    """The one that runs."""
    recomputes: int
    """Runs of ops in that besides the first ones."""

    @property
    def outputs(self) -> int:
        return len(self.source.joint.cut.outputs)

    @property
    def device(self) -> str:
        return self.source.graph.device

    def gradient_bytes(self) -> int:
        return self.source.graph.bytes_of(one for one in self.source.joint.backward if isinstance(one, fx.Node))

    def running(self) -> Option:
        return Option(self.plan, self._takes(self.plan), self.plan.duration, self.recomputes)

    def options(self, search: Search) -> list[Option]:
        """All candidates, PyTorch's own split without a budget first."""
        usual = self.candidates.usual
        others = [one for one in self.candidates.splits if one != usual]
        return [self._option(usual), *(self._option(one) for one in others)]

    def exact(self, option: Option) -> Option:
        assert isinstance(option.plan, Split)
        return replace(option, takes=self._takes(option.plan), is_rough=False)

    def seen(self, option: Option, forward: int, backward: int) -> Option:
        assert isinstance(option.plan, Split)
        takes = replace(option.takes, forward=forward, backward=backward)
        self.candidates.seen[option.plan.key] = takes
        return replace(option, takes=takes)

    def refined(
        self, graph: int, moments: Sequence[Moment], choice: Mapping[int, Option], limit: int, search: Search
    ) -> Option | None:
        """None: there are no other candidates."""
        return None

    def _takes(self, split: Split) -> Footprint:
        return self.candidates.takes(split, self.source.predict)

    def _option(self, split: Split) -> Option:
        known = self.candidates
        if split.key not in known.least:
            halves = self.source.halves(split)
            known.least[split.key] = self.source.least(split, halves), recomputes_of(halves)
        takes, recomputes = known.least[split.key]
        is_known = split.key in known.predicted or split.key in known.seen
        return Option(split, self._takes(split) if is_known else takes, split.duration, recomputes, is_rough=not is_known)
