"""How low planners place the same buffers: `python table.py FOLDER [--models FOLDER] [--write PAGE]` prints the table of docs/placement.md.

FOLDER has files in MiniMalloc's format. Columns whose program is missing are left empty, and what is missing is said. Times are wall time
of one call, what the program takes to start included.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from planners import executorch_greedy, ggml, iree, ours, rules, tflm
from planners.buffers import Buffer, height, load, of_model, read

Planner = Callable[[list[Buffer]], int]


def _of(place: Callable[[list[Buffer]], list[int]]) -> Planner:
    return lambda buffers: height(buffers, place(buffers))


PLANNERS: list[tuple[str, str | None, Planner]] = [
    ("by size", None, _of(rules.by_size)),
    ("by breadth", None, _of(rules.by_breadth)),
    ("TFLM", tflm.missing(), tflm.height),
    ("ExecuTorch", executorch_greedy.missing(), _of(executorch_greedy.place)),
    ("IREE", iree.missing(), _of(iree.place)),
    ("ggml", ggml.missing(), _of(ggml.place)),
    ("passes", ours.missing(), _of(lambda buffers: ours.place(buffers, effort=0))),
    ("search", ours.missing(), _of(ours.place)),
    ("longer", ours.missing(), _of(lambda buffers: ours.place(buffers, effort=10 * ours.EFFORT))),
]


def _row(name: str, buffers: list[Buffer]) -> list[str]:
    """Load in KiB, and how far above it each planner ends, with its seconds."""
    least = load(buffers)
    cells = [name, f"{len(buffers):,}", f"{least / 1024:,.0f}"]
    for planner, missing, plan in PLANNERS:
        if missing:
            cells.append("")
            continue
        started = time.perf_counter()
        try:
            above = 100 * (plan(buffers) / least - 1)
        except Exception as error:
            print(f"{planner} on {name}: {error!r}", file=sys.stderr)
            cells.append("fails")
            continue
        cells.append(f"{above:.1f} ({time.perf_counter() - started:.2f})")
    return cells


def _rows(folder: pathlib.Path, models: pathlib.Path | None) -> list[list[str]]:
    rows = [_row(path.stem.removesuffix(".1048576"), read(path)) for path in sorted(folder.glob("*.csv"))]
    for path in sorted(models.glob("*.onnx")) if models else []:
        graph = of_model(path)
        rows.append(_row(path.stem, graph.buffers))
        if not ours.missing():
            order, peak, bound = ours.order(graph)
            moved = graph.ordered(order).buffers
            assert load(moved) == peak
            rows.append(_row(f"{path.stem}, in {'the best' if bound == peak else 'our'} order", moved))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path)
    arguments = parser.parse_args()
    for name, missing, _ in PLANNERS:
        if missing:
            print(f"{name} is left out: {missing}", file=sys.stderr)
    for _, missing, plan in PLANNERS:
        # What is imported and compiled once counts for nobody.
        if not missing:
            plan([Buffer(64, 0, 1)])
    head = ["buffers", "number", "load, KiB", *(name for name, _, _ in PLANNERS)]
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *_rows(arguments.folder, arguments.models)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    print(table)
    if arguments.write:
        text = arguments.write.read_text(encoding="utf-8")
        begin, end = "<!-- bench: planners -->\n", "\n<!-- /bench: planners -->"
        before, rest = text.split(begin)
        arguments.write.write_text(before + begin + table + end + ("\n" + rest).split(end)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
