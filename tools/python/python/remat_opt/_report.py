"""The reports of commands."""

from __future__ import annotations

import json
from typing import Any

from . import _html

# Rows of a table of tensors.
_MOST = 10


def _line(point: dict[str, Any]) -> str:
    """A plan of a front."""
    if point.get("peak_bytes") is None:
        return f"  {point['budget']:>8}  {point['found']}"
    return f"  {point['budget']:>8}  {_html.size(point['peak_bytes']):>10}  {point['overhead_percent']:+8.2f} %  {point['found']}"


class Report(dict[str, Any]):
    """What a command reports: the object that it prints with `--format json`, as a dictionary; `remat-opt explain FORM`
    prints the schema of a form.

    `print` shows a few lines of it, `json()` gives all. In a notebook it shows as a table, with a drawing where there is something to draw.
    """

    chart: str | None = None
    """A drawing that came with it, as SVG."""

    @property
    def format(self) -> str:
        """Name and version of the form: `remat-inspect/2`."""
        return str(self["format"])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),), {"chart": self.chart}

    def json(self) -> str:
        """The object as text, as the command line prints it."""
        return json.dumps(self, indent=2)

    def __str__(self) -> str:
        """A few lines; `json` has all of it."""
        lines = [repr(self)]
        if "summary" in self:
            lines += [f"{word:8} {line}" for word, line in _html.lines(self)]
        elif "points" in self:
            lines += [_line(point) for point in self["points"]]
        elif "trials" in self:
            lines.append(f"batch {self['without']} without rematerialization, {self['with']} with it")
        elif "peak_bytes" in self:
            lines.append(f"peak {_html.size(self['peak_bytes'])}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.get('format')} of {self.get('model', '')!r}>"

    def _repr_html_(self) -> str:
        parts = [f"<strong>{_html.text(self.get('model') or self.get('format'))}</strong>"]
        if "summary" in self:
            parts.append(_html.summary(self))
        elif "timeline" in self:
            parts.append(self._memory())
        elif "points" in self:
            parts.append(self._front())
        elif "trials" in self:
            rows = [("without rematerialization", self["without"]), ("with it", self["with"])]
            parts.append(_html.table(rows, ("batch", "")))
        else:
            rows = [(key, value) for key, value in self.items() if isinstance(value, (str, int, float, bool))]
            parts.append(_html.table(rows))
        if self.chart is not None:
            parts.append(self.chart)
        return "".join(parts)

    def _memory(self) -> str:
        """Of `inspect`: memory over time, and what is resident at the peak."""
        drawing = _html.timeline([moment["during"] for moment in self["timeline"]], "bytes while each op runs")
        op = f"<code>{_html.text(self['peak_node'])}</code>"
        peak = f"{_html.size(self['peak_bytes'])} at step {self['peak_step']}, {op}"
        rows = [(one["tensor"], _html.size(one["bytes"])) for one in self["resident_at_peak"][:_MOST]]
        return f"<p>peak {peak}</p>{drawing}{_html.table(rows, ('resident at the peak', 'size'))}"

    def _front(self) -> str:
        """Of `sweep`: what was found for each budget."""
        rows = [
            (
                point["budget"],
                point["found"],
                _html.size(point["peak_bytes"]),
                "" if point["overhead_percent"] is None else f"{point['overhead_percent']:+.2f} %",
            )
            for point in self["points"]
        ]
        return _html.table(rows, ("budget", "plan", "peak", "added time"))
