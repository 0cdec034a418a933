"""IREE's own planner, the pass `iree-stream-layout-slices`, on an op `stream.resource.pack` that holds the buffers."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

from .buffers import Buffer

PROGRAM = pathlib.Path(sys.prefix, "bin", "iree-opt")


def missing() -> str | None:
    return None if PROGRAM.exists() else "the package `iree-base-compiler` is not installed"


def place(buffers: list[Buffer]) -> list[int]:
    limit, kinds = 1 << 62, ", ".join(["index"] * (len(buffers) + 1))
    config = f"max_allocation_size = {limit}, min_buffer_offset_alignment = 16, max_buffer_range = {limit}, min_buffer_range_alignment = 16"
    lines = [
        f"util.func public @pack() -> ({kinds}) attributes {{stream.resources = #stream.resource_config<{{{config}}}>}} {{",
        *[f"  %s{at} = arith.constant {b.size} : index" for at, b in enumerate(buffers)],
        f"  %t:{len(buffers) + 1} = stream.resource.pack slices({{",
        ",\n".join(f"    [{b.begin}, {b.end - 1}] = %s{at}" for at, b in enumerate(buffers)),
        "  }) : index",
        f"  util.return {', '.join(f'%t#{at}' for at in range(len(buffers) + 1))} : {kinds}",
        "}",
    ]
    passes = "--pass-pipeline=builtin.module(util.func(iree-stream-layout-slices,cse))"
    run = subprocess.run([PROGRAM, passes, "-"], input="\n".join(lines), capture_output=True, text=True, check=True)
    known = {name: int(value) for name, value in re.findall(r"(%\w+) = arith.constant (\d+) : index", run.stdout)}
    returned = re.search(r"util.return (.*) :", run.stdout)
    assert returned, run.stdout
    return [known[name] for name in returned.group(1).split(", ")][1:]
