"""ggml's own allocator of graphs, compiled from its sources: `REMAT_GGML_SOURCES` is the folder that holds `src/ggml-alloc.c` and `include`,
`vendor/ggml` of the source archive of `ggml-python`, say."""

from __future__ import annotations

import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

from .buffers import Buffer

HERE = pathlib.Path(__file__).parent


def missing() -> str | None:
    if not os.environ.get("REMAT_GGML_SOURCES"):
        return "REMAT_GGML_SOURCES does not say where ggml's sources are"
    return None if shutil.which("cc") else "there is no C compiler `cc`"


@functools.cache
def _program() -> pathlib.Path:
    sources = pathlib.Path(os.environ["REMAT_GGML_SOURCES"])
    program = pathlib.Path(tempfile.mkdtemp(prefix="remat-ggml-"), "drive")
    folders = [f"-I{sources / part}" for part in ("src", "include")]
    # Of the rest of ggml nothing is called.
    options = ["-O2", "-w", "-ffunction-sections", "-Wl,--gc-sections", "-Wl,--unresolved-symbols=ignore-all"]
    subprocess.run(["cc", *options, *folders, "-o", program, HERE / "ggml_drive.c", "-lm"], check=True)
    return program


def place(buffers: list[Buffer]) -> list[int]:
    text = "\n".join([str(len(buffers)), *(f"{b.begin} {b.end} {b.size}" for b in buffers)])
    run = subprocess.run([_program()], input=text, capture_output=True, text=True, check=True)
    return [int(line) for line in run.stdout.split()]
