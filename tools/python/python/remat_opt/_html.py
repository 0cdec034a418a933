"""Results as notebooks show them: tables and drawings without scripts, styles or files from elsewhere."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_WIDTH, _HEIGHT = 640, 160


def text(value: object) -> str:
    """Escaped, whatever names it holds."""
    return html.escape(str(value))


def size(count: int | None) -> str:
    """Bytes in the unit that fits."""
    if count is None:
        return ""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """A table; cells are escaped, but for drawings."""
    first = f"<thead>{_row(head, 'th')}</thead>" if head else ""
    return f"<table>{first}<tbody>{''.join(_row(row, 'td') for row in rows)}</tbody></table>"


def _row(values: Sequence[object], tag: str) -> str:
    cells = "".join(f"<{tag} style='text-align:left'>{_cell(value)}</{tag}>" for value in values)
    return f"<tr>{cells}</tr>"


class Drawing(str):
    """Markup that is shown as it is."""

    __slots__ = ()


def _cell(value: object) -> str:
    return value if isinstance(value, Drawing) else text(value)


def bar(part: float) -> Drawing:
    """A bar as long as `part`, from 0 to 1, of the whole."""
    length = max(0.0, min(1.0, part)) * 200
    shape = f"<rect width='{length:.1f}' height='12' fill='#3b7dd8'/>"
    return Drawing(
        f"<svg width='200' height='12' role='img'><rect width='200' height='12' fill='#e3e6ea'/>{shape}</svg>"
    )


def timeline(values: Sequence[int], name: str) -> Drawing:
    """Bytes over steps, as an area; of many steps the largest of each pixel."""
    most = max(values, default=0) or 1
    share = max(1, -(-len(values) // _WIDTH))
    columns = [max(values[at : at + share]) for at in range(0, len(values), share)]
    wide = _WIDTH / max(1, len(columns))
    lines = [f"V{_HEIGHT - value / most * _HEIGHT:.1f}H{(at + 1) * wide:.1f}" for at, value in enumerate(columns)]
    area = f"<path d='M0,{_HEIGHT}{''.join(lines)}V{_HEIGHT}Z' fill='#3b7dd8'/>"
    title = f"<title>{text(name)}</title>"
    return Drawing(
        f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' width='{_WIDTH}' height='{_HEIGHT}' role='img'>{title}{area}</svg>"
    )


def lines(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The lines of a report (`summary`), each after the word that it begins with; further lines of a word are after none."""
    return [
        ("" if place else entry["name"], line)
        for entry in report["summary"]
        for place, line in enumerate(entry["lines"])
    ]


def summary(report: Mapping[str, Any]) -> str:
    """The lines of a report, and a bar as long as what is left of its memory."""
    before, after = (report["memory"][key] for key in ("before_bytes", "after_bytes"))
    return table(lines(report)) + bar(after / before if before else 1.0)


def proof(certificate: Mapping[str, Any] | None) -> str:
    """What is known of the best plan."""
    return "nothing" if certificate is None else str(certificate["status"]).lower()
