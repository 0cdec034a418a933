"""Plans."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from . import _html


class Plan(dict[str, Any]):
    """A plan: which op runs when, and when results are freed. The object of a plan file (`docs/plan-format.md`), as a
    dictionary.

    It was replayed by the checker; `remat_opt.verify` does so again, and takes plans from anywhere.
    """

    @property
    def steps(self) -> list[dict[str, Any]]:
        """What happens, in order: `{"op": "compute", "node": name}`, `recompute`, `{"op": "free", "tensor": name}`,
        and transfers."""
        steps: list[dict[str, Any]] = self["steps"]
        return steps

    @property
    def order(self) -> list[str]:
        """Names of the ops in the order in which they run, with those that run again."""
        return [step["node"] for step in self.steps if step["op"] in ("compute", "recompute")]

    @property
    def recomputes(self) -> list[str]:
        """Names of the ops that run again, once for each time."""
        return [step["node"] for step in self.steps if step["op"] == "recompute"]

    @property
    def peak_bytes(self) -> int:
        """Most bytes that are resident at one step."""
        return int(self["peak_bytes"])

    @property
    def duration(self) -> int:
        """Time of all steps: nanoseconds for models, the unit of the graph for graphs."""
        return int(self["duration"])

    @property
    def certificate(self) -> dict[str, Any] | None:
        """What the solver proved: `status` is `OPTIMAL` where no plan within the budget is better, `bound` what every
        plan takes at least."""
        return self.get("certificate")

    @property
    def is_optimal(self) -> bool:
        """Whether it is proved that no plan within the budget takes less time."""
        return self.certificate is not None and self.certificate["status"] == "OPTIMAL"

    @property
    def gap(self) -> float | None:
        """By what share of its time the plan may be longer than the shortest one; `None` without a bound."""
        gap = (self.certificate or {}).get("gap")
        return None if gap is None else float(gap)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan as a file, which `remat-opt verify` and `remat-opt --plan` take."""
        pathlib.Path(path).write_text(json.dumps(self, indent=2) + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        peak, again = _html.size(self.peak_bytes), len(self.recomputes)
        return f"<Plan of {self.get('model', '')!r}: peak {peak}, {again} recomputes>"

    def _repr_html_(self) -> str:
        rows = [
            ("peak", _html.size(self.peak_bytes)),
            ("duration", self.duration),
            ("recomputes", len(self.recomputes)),
            ("proved", _html.proof(self.certificate)),
        ]
        return f"<strong>{_html.text(self.get('model', ''))}</strong>{_html.table(rows)}"
