"""What less memory costs in time on a device that is not there: plans of a training step for several budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from ... import _native
from ..._plan import Plan
from ...errors import RematError, UsageError
from .._budget import Budget, parse
from .._optimizer import Updates
from .._plans import Search, plan_within
from .._whole import WholeStep, whole_step
from .devices import Gpu, smallest
from .estimate import ENDLESS, PRECISIONS, Optimizer, Precision, as_loss, twin_of, with_twins, without_numbers
from .kernels import AsOnCuda

BUDGETS = ("100%", "80%", "60%", "40%", "min")
"""Shares of what a step takes besides parameters, state and inputs."""
_MATRICES = ("mm", "addmm", "bmm", "baddbmm")


@dataclass(frozen=True)
class BudgetRow:
    """A training step within a budget, as `TrainStep` would make it."""

    budget: str
    """As it was asked for; `none` is the step as it is."""
    total_bytes: int
    """What the process takes of the device."""
    fits: bool
    device: str | None
    """The known device with the least memory that has so much; nothing where none has."""
    overhead_permille: int
    """Estimated time that is added, in thousandths of that of the step."""
    recomputes: int
    """How many ops run again."""


def budgets(
    model: torch.nn.Module,
    inputs: Sequence[Any],
    gpu: Gpu,
    optimizer: Optimizer | None,
    as_it_is: int,
    *,
    precision: Precision | None = None,
    loss: Callable[[Any], torch.Tensor] | None = None,
    settings: str = "",
    wanted: Sequence[str] = BUDGETS,
    time_limit: float = 10.0,
) -> list[BudgetRow]:
    """The step as it is, then a plan for each budget, from the largest to the smallest. A row with more memory never
    takes longer. Times are estimates from data sheets.

    Args:
        model: As of `estimate`, and so are `inputs`, `optimizer`, `precision`, `loss` and `settings`.
        inputs: What the model is called with.
        gpu: The device.
        optimizer: One of the model's parameters, or what makes one of them.
        as_it_is: What the process takes without a plan, in bytes.
        precision: Of autocast.
        loss: Of what the model returns.
        settings: Of the allocator.
        wanted: Shares (`"60%"`), `"auto"`, `"min"`, or sizes with parameters and state (`"8GiB"`).
        time_limit: Seconds to search, for all of them.

    Raises:
        RematError: The step cannot be planned.
        UsageError: A budget makes no sense.
    """
    plain = _row("none", as_it_is, gpu, 0, 0)
    asked = [budget_of(one) for one in wanted]
    # PyTorch traces backwards of some losses on `meta` without their gradients, so these tensors say that they are of a CPU.
    fake = FakeTensorMode(allow_non_fake_inputs=True)

    def made(value: Any) -> Any:
        with fake:
            return without_numbers(value, "cpu")

    with with_twins(model, make=made) as twins:
        updates = twin_of(optimizer, twins)
        for group in updates.param_groups if updates is not None else ():
            # A plan updates one parameter after the other.
            group.update(fused=None, capturable=False)
        module = _Loss(model, None if precision is None else PRECISIONS[precision], loss)
        given = [made(one) for one in inputs]
        step = whole_step(module, given, None if updates is None else Updates(updates), gpu=gpu, name="step")
    search = Search(time_limit=time_limit / max(1, len(wanted)))
    external = step.source.external_bytes
    found: list[tuple[str, Plan]] = []
    # What is found for a tight budget counts for looser ones.
    places = sorted(range(len(wanted)), key=lambda place: _order(asked[place].of_plan(external)))
    for place in places:
        found.append((wanted[place], plan_within(step.source, asked[place].of_plan(external), search)[0]))
    rows = [plain] + [_of(text, plan, step, gpu, settings) for text, plan in reversed(found)]
    return [plain] + [_best(row, rows) for row in rows[1:]]


def budget_of(text: str) -> Budget:
    """A budget for a device that is not there.

    Raises:
        UsageError: It is none, or depends on what is free.
    """
    budget = parse(text)
    if budget.is_free:
        raise UsageError(f"`{text}` is what is free on a device that is here: give a size, a share, `auto` or `min`")
    return budget


class _Loss(torch.nn.Module):
    """A model whose result is its loss, by the kernels of CUDA."""

    def __init__(self, model: torch.nn.Module, precision: torch.dtype | None, loss: Callable[[Any], torch.Tensor] | None) -> None:
        super().__init__()
        self.model = model
        self._precision, self._loss = precision, loss

    def forward(self, *inputs: Any) -> torch.Tensor:
        with AsOnCuda(self._precision, is_traced=True):
            return as_loss(self.model(*inputs), self._loss)


def _order(budget: int | str) -> tuple[int, float]:
    if budget in ("min", "auto"):
        return 0, float(budget == "auto")
    return (1, float(budget.rstrip("%"))) if isinstance(budget, str) else (2, float(budget))


def _row(text: str, total: int, gpu: Gpu, overhead: int, recomputes: int) -> BudgetRow:
    least = smallest(total)
    return BudgetRow(text, total, total <= gpu.total, None if least is None else least.name, overhead, recomputes)


def _of(text: str, plan: Plan, step: WholeStep, gpu: Gpu, settings: str) -> BudgetRow:
    figures, _, _ = _native.simulate_allocations(settings, ENDLESS, ENDLESS, list(_requests(plan, step, gpu)))
    baseline = int(plan["baseline_duration"])
    overhead = max(0, -(-1000 * (plan.duration - baseline) // max(1, baseline)))
    return _row(text, figures["reserved_peak"] + gpu.context, gpu, overhead, len(plan.recomputes))


def _best(row: BudgetRow, rows: Sequence[BudgetRow]) -> BudgetRow:
    """The row, by the fastest of the plans that take no more."""
    known = [one for one in rows if one.total_bytes <= row.total_bytes]
    return replace(min(known, key=lambda one: (one.overhead_permille, one.total_bytes)), budget=row.budget)


def _requests(plan: Plan, step: WholeStep, gpu: Gpu) -> Iterator[tuple[int, int]]:
    """What a plan asks of the allocator: the number of a block and its bytes, or -1 where it goes."""
    document = step.source.document
    storages, tensors = document["storages"], document["tensors"]
    defines: Mapping[str, list[int]] = {op["name"]: sorted({tensors[one]["storage"] for one in op["defines"]}) for op in document["ops"]}
    workspace = {op["name"]: op.get("workspace", 0) for op in document["ops"]}
    of_name = {tensor["name"]: tensor["storage"] for tensor in tensors}
    live: set[int] = set()
    last = len(storages)
    for place, storage in enumerate(storages):
        if storage["role"] == "external" and storage["bytes"]:
            live.add(place)
            yield place, storage["bytes"]
    packets = {getattr(getattr(node.target, "overloadpacket", None), "__name__", "") for node in step.source.nodes.values()}
    if packets & set(_MATRICES):
        yield last + 1, gpu.matmul
        yield last + 2, 1 << 20
    for one in plan.steps:
        if one["op"] == "free":
            if (place := of_name[one["tensor"]]) in live:
                live.remove(place)
                yield place, -1
            continue
        for place in defines[one["node"]]:
            if place not in live and storages[place]["bytes"]:
                live.add(place)
                yield place, storages[place]["bytes"]
        if workspace[one["node"]]:
            yield last, workspace[one["node"]]
            yield last, -1


def failure(error: RematError) -> str:
    """Why there are no plans, in a line."""
    return f"no plans for budgets: {error.args[0]}"
