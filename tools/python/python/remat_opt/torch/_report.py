"""What a compiled model promises, and what became of it."""

from __future__ import annotations

import collections
import logging
from dataclasses import asdict, dataclass, field
from typing import Any

_log = logging.getLogger("remat_opt")


@dataclass
class Report:
    """One graph that was compiled. Sizes are in bytes; totals contain parameters, buffers and inputs."""

    graph: str = ""
    """Which one: the name that Dynamo gives to it, such as `0/0`."""
    inner: str = ""
    """The compiler behind the plan."""
    ops: int = 0
    """Ops of the joint graph."""
    tensors: int = 0
    """Most tensors that live at once, and one for each gradient: the promise counts objects around them."""
    graphs: int = 1
    """How many graphs share the budget of a step. Totals, `promised_bytes` and others, are those of the step."""
    budget_bytes: int | None = None
    """The total that was asked for; `None` for a share and `"min"`."""
    external_bytes: int = 0
    """Parameters, buffers, inputs and constants, as far as the graph reads them."""
    baseline_bytes: int = 0
    """The total without a plan. Op by op: without recomputation, in the order in which the graph was traced. Behind
    Inductor: what PyTorch's own split takes, as Inductor fuses and orders it, by prediction. Shares such as `"60%"` are
    of what this is above `external_bytes`."""
    promised_bytes: int | None = None
    """The total that a step is said to take at most; `None` where PyTorch's own partitioner was used, and where other graphs
    run in the same step until that was planned as a whole."""
    predicted_bytes: int | None = None
    """The total that was expected before compiling with Inductor."""
    measured_bytes: int | None = None
    """The total that was measured after compiling; `None` where it is not measured."""
    saved_bytes: int = 0
    """What the forward saves for the backward, besides inputs and parameters."""
    recomputes: int = 0
    """Runs of ops besides the first ones."""
    overhead: float = 0.0
    """Time that they add, as a share of the time that all ops take, each measured by itself. Python's time between ops
    is not in it: graphs of many small ops run op by op take longer than it says."""
    is_optimal: bool = False
    """Whether it is proved that no plan within the budget takes less time."""
    gap: float | None = None
    """By what share of its time the plan may be longer than the shortest one; `None` where nothing is proved."""
    moved_bytes: int = 0
    """What a step moves to the second memory, to be moved back later (`offload=`)."""
    split: str = ""
    """Behind Inductor: which of the candidates runs."""
    rounds: int = 0
    """Splits that were compiled, one after another, until the measured peak kept the budget."""
    tried: list[str] = field(default_factory=list)
    """Behind Inductor: the splits that were compiled, what was expected and measured, and why one was rejected."""
    measured_ops: int = 0
    """Distinct calls whose time and workspace were measured."""
    estimated_ops: dict[str, str] = field(default_factory=dict)
    """Nodes whose costs were estimated, and why. Their workspace is not part of the promise."""
    once_ops: list[str] = field(default_factory=list)
    """Ops of other packages that run once, since nothing says that they may run again (`recomputable=`)."""
    calls: int = 0
    """How often the graph has run so far."""
    gradients: str = "unchecked"
    """`"same bits"` or `"close"`, compared with the model without a plan; `"wrong"` where that led to a fallback. Of a
    whole step, that is said of all that it leaves: loss, parameters, buffers, state, gradients, random numbers."""
    check_bytes: int | None = None
    """The total that the first whole step may take, since it is compared with eager PyTorch; `None` where it is not."""
    gradient_error: float | None = None
    """Largest relative error of a gradient that was found, where bits differ."""
    fallback: str | None = None
    """Why PyTorch's own partitioner was used, or eager PyTorch instead of a whole step."""
    notes: list[str] = field(default_factory=list)
    """What else there is to know."""
    seconds: float = 0.0
    """Time of measuring and planning."""

    def note_costs(self, measured: int, estimated: dict[str, str]) -> None:
        """Notes where the costs of ops come from, and warns where most are estimates: the promise knows no workspace of
        theirs.

        Args:
            measured: Distinct calls that were measured.
            estimated: Nodes that were not, and why.
        """
        self.measured_ops, self.estimated_ops = measured, estimated
        if not estimated:
            return
        first, why = next(iter(estimated.items()))
        self.notes.append(f"the workspace of {len(estimated)} ops is unknown, of `{first}` first")
        if len(estimated) > measured:
            _log.warning("graph %s: most ops could not be measured, `%s` first: %s", self.graph, first, why)

    def note_once(self, names: list[str]) -> None:
        """Notes which ops of other packages run once.

        Args:
            names: Of the ops.
        """
        self.once_ops = names
        if names:
            self.notes.append(f"ops of other packages run once, unless `recomputable=` names them: {', '.join(names)}")

    def take_check(self, other: Report) -> None:
        """Takes what was found out about the same code before."""
        for name in ("promised_bytes", "measured_bytes", "gradients", "gradient_error", "rounds"):
            setattr(self, name, getattr(other, name))
        self.tried = list(other.tried)
        self.notes = list(dict.fromkeys([*self.notes, *other.notes]))

    def as_dict(self) -> dict[str, Any]:
        """The report as an object that JSON takes."""
        return asdict(self)

    def __str__(self) -> str:
        if self.fallback is not None:
            return f"graph {self.graph}: not planned: {self.fallback}"
        how = ", as Inductor fuses" if self.inner == "inductor" else ", op by op and nothing fused"
        parts = [
            f"graph {self.graph}: {self.ops} ops",
            f"promised {_mib(self.promised_bytes)} (without a plan{how}, {_mib(self.baseline_bytes)}, "
            f"of which {_mib(self.external_bytes)} are parameters and inputs)",
            f"{self.recomputes} recomputes, +{100 * self.overhead:.1f} % of the ops' time, Python's not counted",
        ]
        if self.moved_bytes:
            parts.append(f"{_mib(self.moved_bytes)} move out and back")
        if self.gap is not None:
            parts.append("no plan is faster" if self.is_optimal else f"at most {100 * self.gap:.1f} % from the fastest plan")
        if self.measured_bytes is not None:
            parts.append(f"measured {_mib(self.measured_bytes)}")
        if self.check_bytes is not None and self.check_bytes > (self.promised_bytes or 0):
            parts.append(f"the first step, compared with eager PyTorch, {_mib(self.check_bytes)}")
        if self.split:
            parts.append(f"split: {self.split}")
        return "; ".join([*parts, f"gradients: {self.gradients}", *self.notes])


_all: collections.deque[Report] = collections.deque(maxlen=1000)


def record(report: Report) -> Report:
    """Adds a report to those of this process."""
    _all.append(report)
    return report


def reports() -> list[Report]:
    """The reports of all graphs that this process compiled, oldest first."""
    return list(_all)


def clear_reports() -> None:
    """Forgets them."""
    _all.clear()


def _mib(value: int | None) -> str:
    return "nothing" if value is None else f"{value / (1 << 20):.1f} MiB"
