"""Runs functions over tensors on native code, lowered by the standard pipeline of MLIR, and measures their heap.

    python test/python/native.py FILE.mlir [FILE.mlir...] [--budgets 80%,60%]     one JSON line for each budget

The first line of a file is the function as it stands. LLVM 22 and the plugin of this project are found where `make` puts them.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from meter import preloaded
from native_driver import driver

LLVM = pathlib.Path(os.environ.get("MLIR_SYS_220_PREFIX", "/usr/lib/llvm-22"))

TO_LINALG = ["tosa-to-linalg-named", "tosa-to-linalg", "tosa-to-tensor", "tosa-to-arith"]
"""From tosa to linalg, per function."""
TO_BUFFERS = [
    "one-shot-bufferize{bufferize-function-boundaries=1}",
    "buffer-deallocation-pipeline",
    "func.func(optimize-allocation-liveness)",
]
LOWER_PAGES = "remat-lower-pages"
"""Between buffers and LLVM, for functions with pages."""
TO_LLVM = [
    "func.func(convert-linalg-to-loops)",
    "expand-strided-metadata",
    "lower-affine",
    "convert-scf-to-cf",
    "convert-math-to-llvm",
    "convert-math-to-libm",
    "canonicalize",
    "finalize-memref-to-llvm",
    "convert-arith-to-llvm",
    "convert-index-to-llvm",
    "convert-cf-to-llvm",
    "convert-func-to-llvm",
    "reconcile-unrealized-casts",
]


class LoweringError(RuntimeError):
    """A tool of MLIR gave up; its words are the message."""


def tool(name, *arguments, **options):
    run = subprocess.run([LLVM / "bin" / name, *arguments], capture_output=True, text=True, check=False, **options)
    if run.returncode != 0:
        raise LoweringError(f"{name}: {run.stderr.strip()[:2000]}")
    return run


def pipeline(*stages):
    """Stages on one function each and on the module, as one pipeline."""
    return f"--pass-pipeline=builtin.module({','.join(stages)})"


def lowered(text, stages, runs, plugin=None):
    """The module as mlir-runner takes it, after `stages` on the functions that `text` holds."""
    plugins = [f"--load-pass-plugin={plugin}", f"--load-dialect-plugin={plugin}"] if plugin else []
    planned = tool("mlir-opt", *plugins, pipeline(*stages), input=text).stdout
    module = planned.rstrip().removesuffix("}") + driver(planned, runs) + "}\n"
    pages = [LOWER_PAGES] if "remat.page_out" in planned else []
    return planned, tool("mlir-opt", *plugins, pipeline(*TO_BUFFERS, *pages, *TO_LLVM), input=module).stdout


def run(llvm, optimize="-O2", libraries=()):
    """What `main` states: peak, bits and times."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(llvm)
        file.flush()
        shared = [LLVM / "lib" / "libmlir_c_runner_utils.so", *libraries]
        options = ["--entry-point-result=void", optimize, *(f"--shared-libs={library}" for library in shared)]
        stated = tool("mlir-runner", *options, file.name, env=preloaded()).stdout
    pairs = [line.split() for line in stated.splitlines()]
    values = lambda key: [value for k, value in pairs if k == key]
    times = [float(t) for t in values("seconds")]
    figures = ("peak_bytes", "output_bytes", "second_peak_bytes", "written_bytes", "read_bytes")
    return {figure: int(values(figure)[0]) for figure in figures if values(figure)} | {
        "bits": values("bits"),
        "sums": [float(s) for s in values("sum")],
        "milliseconds": statistics.median(times) * 1e3 if times else None,
    }


def measure(text, stages=None, runs=3, plugin=None, libraries=()):
    """Peak, time and bits of the function in `text`, lowered through `stages`."""
    _, llvm = lowered(text, stages or [f"func.func({','.join(TO_LINALG)})"], runs, plugin)
    return run(llvm, libraries=libraries)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    for path in given.files:
        print(json.dumps({"file": path.name} | measure(path.read_text(), runs=given.runs)))


if __name__ == "__main__":
    main()
