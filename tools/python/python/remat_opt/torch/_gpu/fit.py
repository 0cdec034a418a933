"""Whether a training script fits a device that is not there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from ...errors import RematError
from .budgets import BUDGETS, BudgetRow, budget_of, budgets, failure
from .devices import Gpu, device as named_device
from .estimate import Estimate, Optimizer, Precision, estimate, estimate_of, largest_batch, size
from .page import page
from .script import load_entry, watch

_NAMES: dict[torch.dtype, Precision] = {torch.bfloat16: "bf16", torch.float16: "fp16"}


@dataclass(frozen=True)
class Fit:
    """What a training script takes. `str()` of it is a report."""

    name: str
    """The script."""
    step: Estimate
    """Its step as it is."""
    budgets: list[BudgetRow] = field(default_factory=list)
    """What less memory costs; empty where that was not asked for, or cannot be said."""
    batches: list[tuple[int, Estimate]] = field(default_factory=list)
    """Batches that were tried, from the smallest; empty where that was not asked for."""
    notes: list[str] = field(default_factory=list)
    """What the reader has to know."""

    @property
    def largest_batch(self) -> int | None:
        """The largest batch that was tried and fits; nothing where none was tried."""
        return max((batch for batch, step in self.batches if step.fits), default=0) if self.batches else None

    def to_json(self) -> str:
        """As an object of JSON."""
        document: dict[str, Any] = {"format": "remat-fit/1", "name": self.name, "step": self.step.as_object()}
        document["budgets"] = [asdict(one) for one in self.budgets]
        batches = [{"batch": batch, "total_bytes": one.total_bytes, "fits": one.fits} for batch, one in self.batches]
        document |= {"batches": batches, "largest_batch": self.largest_batch, "notes": self.notes}
        return json.dumps(document, indent=2)

    def to_html(self) -> str:
        """A page for a browser, one file."""
        return page(self.name, self.step, self.budgets, self.batches, self.notes, self.to_json())

    def __str__(self) -> str:
        lines = [str(self.step)]
        if self.budgets:
            lines += ["", f"{'budget':8}{'takes':>12}  {'fits':5}{'runs on':10}{'added time':>11}   estimated, as plans of `TrainStep`"]
            for one in self.budgets:
                verdict, least = "yes" if one.fits else "no", one.device or "-"
                lines.append(f"{one.budget:8}{size(one.total_bytes):>12}  {verdict:5}{least:10}{one.overhead_permille / 10:>+9.1f} %")
        if self.batches:
            lines += ["", f"largest batch that fits: {self.largest_batch}"]
        return "\n".join([*lines, *(f"note: {one}" for one in self.notes)])


@dataclass(frozen=True)
class Wanted:
    """What is to be said besides what the step takes."""

    settings: str = ""
    """Of the allocator."""
    budgets: Sequence[str] = BUDGETS
    largest_batch: bool = False
    time_limit: float = 10.0
    """Seconds to search for plans."""

    def __post_init__(self) -> None:
        for one in self.budgets:
            budget_of(one)


def fit_script(path: str, arguments: Sequence[str] = (), device: str = "h100", wanted: Wanted = Wanted()) -> Fit:
    """What the training step of a script takes on a device. The script runs up to its third step, without numbers.

    Args:
        path: The script.
        arguments: Its own.
        device: As of `estimate`.
        wanted: What is to be said besides.

    Raises:
        ModelError: It makes no step, or an op does not run without numbers.
        UsageError: The device, a setting or a budget is not known.
    """
    gpu = named_device(device)
    found = watch(path, arguments, gpu)
    step = estimate_of(found.run, gpu, wanted.settings)
    notes = list(found.notes)
    if not (wanted.budgets or wanted.largest_batch):
        return Fit(path, step, notes=notes)
    try:
        module = found.tape.module()
        if len(found.optimizers) > 1:
            raise RematError("several optimizers step: give `--entry FILE:FUNCTION` for what needs one")
    except RematError as error:
        return Fit(path, step, notes=[*notes, failure(error)])
    optimizer = found.optimizers[0] if found.optimizers else None
    precision = None if found.tape.precision is None else _NAMES.get(found.tape.precision)
    return _besides(Fit(path, step, notes=notes), module, found.tape.inputs, device, gpu, optimizer, wanted, precision, None)


def fit_entry(entry: str, device: str = "h100", precision: Precision | None = None, wanted: Wanted = Wanted()) -> Fit:
    """The same for what a function of a file returns: model, inputs, and if there are some optimizer and loss.

    Args:
        entry: `file.py:function`.
        device: As of `estimate`, and so is `precision`.
        precision: Of autocast.
        wanted: What is to be said besides.

    Raises:
        ModelError: The function fails or returns something else, or as of `estimate`.
        UsageError: As of `fit_script`.
    """
    gpu = named_device(device)
    model, inputs, optimizer, loss = (*load_entry(entry, gpu), None, None)[:4]
    step = estimate(model, inputs, device, optimizer, precision=precision, loss=loss, settings=wanted.settings)
    given = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
    return _besides(Fit(entry, step), model, given, device, gpu, optimizer, wanted, precision, loss)


def _besides(
    fit: Fit,
    model: torch.nn.Module,
    inputs: Sequence[Any],
    device: str,
    gpu: Gpu,
    optimizer: Optimizer | None,
    wanted: Wanted,
    precision: Precision | None,
    loss: Any,
) -> Fit:
    rows: list[BudgetRow] = []
    batches: dict[int, Estimate] = {}
    notes = list(fit.notes)
    if wanted.budgets:
        try:
            rows = budgets(
                model,
                inputs,
                gpu,
                optimizer,
                fit.step.total_bytes,
                precision=precision,
                loss=loss,
                settings=wanted.settings,
                wanted=wanted.budgets,
                time_limit=wanted.time_limit,
            )
        except RematError as error:
            notes.append(failure(error))
    if wanted.largest_batch:
        options: Any = {"precision": precision, "loss": loss, "settings": wanted.settings}
        try:
            largest_batch(model, inputs, device, optimizer, seen=batches.__setitem__, **options)
        except RematError as error:
            notes.append(f"other batches are not known: {error.args[0]}")
    return Fit(fit.name, fit.step, rows, sorted(batches.items()), notes)
