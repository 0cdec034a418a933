"""A training step as a page for a browser."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import _native
from .dry_run import KINDS, DryRun

if TYPE_CHECKING:
    from .budgets import BudgetRow
    from .estimate import Estimate


def page(
    title: str,
    step: Estimate,
    budgets: Sequence[BudgetRow] = (),
    batches: Sequence[tuple[int, Estimate]] = (),
    notes: Sequence[str] = (),
    report: str = "",
) -> str:
    """One file of HTML, which refers to no other.

    Args:
        title: What it is about.
        step: The step.
        budgets: What less memory would cost.
        batches: Other batches, and what they take.
        notes: What the reader has to know.
        report: The report as JSON; that of the step, unless given.
    """
    from .estimate import size

    left = step.device_bytes - step.total_bytes
    where = f"{step.phase}, {_short(step.line)}" if step.line else step.phase
    figures = [
        {
            "name": step.device,
            "value": f"{size(step.total_bytes)} of {size(step.device_bytes)}",
            "change": ["fits" if step.fits else "does not fit", step.fits],
            "bars": [step.device_bytes, step.total_bytes],
            "about": step.failure or f"{size(left)} are left; estimated, nothing ran on the device",
        },
        {"name": "Peak", "value": step.op, "about": where},
        {
            "name": "Reserved",
            "value": size(step.reserved_bytes),
            "about": f"by PyTorch's allocator, {size(step.allocated_bytes)} of it given out at the peak; and a context of {size(step.context_bytes)}",
        },
    ]
    whole = max(1, step.total_bytes)
    kinds = [(name, step.kinds[name]) for name in KINDS if name in step.kinds]
    kinds += [("reserved besides", step.reserved_bytes - step.allocated_bytes), ("context", step.context_bytes)]
    tables = [
        {
            "heading": "What takes it",
            "about": "At the peak.",
            "head": ["Kind", "Bytes", "Share"],
            "rows": [[name, size(count), f"{100 * count / whole:.1f} %"] for name, count in kinds],
        }
    ]
    if budgets:
        tables.append(
            {
                "heading": "What less memory costs",
                "about": "As a plan of TrainStep; times are estimates from data sheets, no such device was at hand.",
                "head": ["Budget", "Takes", "Fits", "Runs on", "Added time", "Computed again"],
                "rows": [
                    [
                        one.budget,
                        size(one.total_bytes),
                        "yes" if one.fits else "no",
                        one.device or "none that is known",
                        f"+{one.overhead_permille / 10:.1f} %",
                        str(one.recomputes),
                    ]
                    for one in budgets
                ],
            }
        )
    if batches:
        rows = [[str(batch), size(one.total_bytes), "yes" if one.fits else "no"] for batch, one in batches]
        tables.append({"heading": "Batch sizes", "about": "", "head": ["Batch", "Takes", "Fits"], "rows": rows})
    document: dict[str, Any] = {
        "title": title,
        "figures": figures,
        "tables": tables,
        "recorded": _recorded(step.run),
        "summary": [["Device", [step.basis]], *([["Notes", list(notes)]] if notes else [])],
        "report": report or step.to_json(),
    }
    return _native.recorded_page(json.dumps(document))


def _recorded(run: DryRun) -> dict[str, Any]:
    """The last steps of a run, with what was there before as they begin: a step of the page for each allocation."""
    first = _first(run)
    steps: list[list[str]] = []
    lives: dict[int, dict[str, Any]] = {}
    phases = iter(run.marks)
    phase, ends = next(phases, ("", len(run.events)))
    for place, event in enumerate(run.events):
        while place >= ends:
            phase, ends = next(phases, ("", len(run.events)))
        number, one = abs(event), run.allocations[abs(event)]
        if event < 0:
            if place < first:
                lives.pop(number, None)
            elif number in lives:
                lives[number]["to"] = len(steps)
            continue
        if place >= first:
            steps.append([one.op or one.kind, ", ".join(filter(None, (phase.partition(" ")[0], _short(one.line))))])
        at = max(0, len(steps) - 1)
        name = one.op or one.kind
        lives[number] = {"name": name, "about": _short(one.line), "kind": KINDS.index(one.kind), "from": at, "bytes": one.bytes}
    for life in lives.values():
        life["to"] = max(life.get("to", len(steps)), life["from"] + 1)
    if not steps:
        lives = {}
    return {"name": "step", "kinds": list(KINDS), "steps": steps, "lives": list(lives.values())}


def _first(run: DryRun) -> int:
    """Where the second step begins; the first one where there is no other."""
    updates = [count for name, count in run.marks if name.startswith(("optimizer", "step")) and count < len(run.events)]
    return updates[0] if updates else 0


def _short(line: str) -> str:
    return os.path.basename(line)
