"""Results as one page for a browser: a chart and a table for each task, without scripts and without anything from elsewhere."""

import html
import itertools

from cases import KINDS, TASKS

_STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:66em;padding:0 1em;color:#1c2430;background:#fff}
table{border-collapse:collapse;margin:1em 0;font-size:13px;width:100%}
td,th{padding:.25em .6em;text-align:left;border-bottom:1px solid #d9dee5}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}tr.no td{color:#6b7480}svg{max-width:100%;height:auto}
text{font:12px system-ui,sans-serif;fill:#1c2430}.case{font-weight:600}.bar{fill:#3b7dd8}.wrong{fill:#c3c9d1}
.mark{stroke:#d8453b;stroke-width:2}.one{stroke:#8a93a0;stroke-dasharray:3 3}"""
_NAMES, _WIDTH, _LINE = 300, 420, 18
_MOST = 1.5
"""Share at which a bar ends that is longer."""


def page(results):
    """The page of results, an object of `fit-bench/1`."""
    machine = results["machine"]
    memory = f"{machine['memory_bytes'] / 2**30:.0f} GiB"
    where = f"{machine['processor']}, {machine['cores']} cores, {memory}, {machine['system']}, one thread"
    where += f"; {results['rounds']} rounds, {results['time_limit_seconds']:g} s to search, malloc {results['malloc']}"
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    parts = [f"<h1>Memory of models: a scoreboard</h1><p>{_text(where)}.<br>{_text(versions)}</p>", _legend()]
    for task, rows in itertools.groupby(results["rows"], key=lambda row: row["task"]):
        found = list(rows)
        parts.append(f"<h2>{_text(task)}</h2><p>{_text(TASKS[task])}</p>{_chart(task, found)}{_table(found)}")
    skipped = "".join(f"<li>{_text(one['system'])}: {_text(one['reason'])}</li>" for one in results["skipped"])
    parts.append(f"<h2>Skipped</h2><ul>{skipped}</ul>" if skipped else "")
    head = f'<meta charset="utf-8"><title>Memory of models</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _legend():
    kinds = "; ".join(f"{name}: {what}" for name, what in KINDS.items())
    return (
        "<p>A bar is what was measured, as a share of the original, the dashed line; the red mark is what was promised. "
        "Grey rows have no rank, because their answer is not that of the original, bit for bit. "
        f"Time is the median of ratios to the original in one process. {_text(kinds)}.</p>"
    )


def _chart(task, rows):
    """Bars of all cases of a task, the best first."""
    lines, y = [], 0
    scale = _WIDTH / _MOST
    for (case, kind), several in itertools.groupby(rows, key=lambda row: (row["case"], row["kind"])):
        y += _LINE
        lines.append(f'<text class="case" x="0" y="{y + 13}">{_text(case)} ({kind})</text>')
        for row in several:
            y += _LINE
            name = f"{row['system']}: {row['setting']}"
            lines.append(f'<text x="{_NAMES - 8}" y="{y + 13}" text-anchor="end">{_text(name)}</text>')
            if row["share"] is None:
                lines.append(f'<text x="{_NAMES}" y="{y + 13}">{_text(row["status"])}</text>')
                continue
            look = "bar" if row["rank"] else "wrong"
            long = min(row["share"], _MOST) * scale
            size = f'width="{long:.1f}" height="{_LINE - 5}"'
            lines.append(f'<rect class="{look}" x="{_NAMES}" y="{y + 3}" {size}/>')
            lines.append(f'<text x="{_NAMES + long + 6:.1f}" y="{y + 13}">{row["share"]:.0%}</text>')
            if row["predicted_bytes"] is not None:
                x = _NAMES + min(row["predicted_bytes"] / row["measured_bytes"] * row["share"], _MOST) * scale
                lines.append(f'<path class="mark" d="M{x:.1f},{y + 1}v{_LINE - 1}"/>')
    x = _NAMES + scale
    lines.append(f'<path class="one" d="M{x:.1f},{_LINE}V{y + _LINE}"/>')
    wide, high = _NAMES + _WIDTH + 60, y + _LINE + 4
    title = f"<title>{_text(task)}: measured bytes as a share of the original</title>"
    return f'<svg role="img" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}">{title}{"".join(lines)}</svg>'


def _table(rows):
    heads = ["model", "kind", "rank", "system", "setting", "promised, MB", "measured, MB", "share", "time", "made in, s", "answer"]
    numbers = {2, 5, 6, 7, 8, 9}

    def line(cells, tag):
        made = (f"<{tag}{' class=n' if at in numbers else ''}>{_text(cell)}</{tag}>" for at, cell in enumerate(cells))
        return "".join(made)

    body = "".join(f"<tr{'' if row['rank'] else ' class=no'}>{line(_cells(row), 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{line(heads, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row):
    """The cells of a row as text; nothing where nothing is known."""

    def shown(value, form):
        return "" if value is None else form(value)

    def megabytes(count):
        return f"{count / 1e6:.2f}"

    answer = "same bits" if row["kind"] != "buffers" else "apart"
    return [
        *(row["case"], row["kind"], shown(row["rank"], str), row["system"], row["setting"]),
        *(shown(row["predicted_bytes"], megabytes), shown(row["measured_bytes"], megabytes)),
        *(shown(row["share"], "{:.0%}".format), shown(row["time_ratio"], "{:.2f}".format)),
        *(shown(row["prepare_seconds"], "{:.1f}".format), row["reason"] or answer),
    ]


def _text(value):
    return html.escape(str(value))
