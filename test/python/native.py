"""Runs functions over tensors on native code, lowered by the passes of MLIR, and measures their heap.

    python test/python/native.py [FILE.mlir...] [--budgets 80%,60%] [--level linalg|tosa] [--options TEXT] [--place] [--json]

Each function runs as it stands and then as the pass `remat` schedules it under each budget; a budget of `none` leaves out the pass, for
functions that are scheduled by hand. Printed are the peak before, the predicted peak, the measured one, and the times. With `--place` results
are arguments, buffers lie in one block, and the predicted peak is its size.

LLVM 22 is taken from MLIR_SYS_220_PREFIX or /usr/lib/llvm-22, the plugin and the library that keeps pages from REMAT_PLUGIN and
REMAT_RUNTIME or where cargo and CMake put them last.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile

from meter import preloaded
from native_driver import TENSOR, driver, product, shape

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLVM = pathlib.Path(os.environ.get("MLIR_SYS_220_PREFIX", "/usr/lib/llvm-22"))
CASES = ROOT / "test" / "mlir" / "native"

CLEAN = ["cse", "canonicalize"]
"""What equal operations are merged and dead ones dropped by: before the schedule, which would count them, and after it."""
TO_LINALG = ["tosa-to-linalg-named", "tosa-to-linalg", "tosa-to-tensor", "tosa-to-arith"]
OWN_BUFFERS = ["empty-tensor-to-alloc-tensor"]
"""Otherwise `cse` merges the empty tensors that results are written into. Where `remat` sees them, it does that itself."""
TO_BUFFERS = [
    "one-shot-bufferize{bufferize-function-boundaries=1}",
    "buffer-deallocation-pipeline",
    "func.func(optimize-allocation-liveness)",
]
RESULTS_TO_ARGUMENTS = [
    TO_BUFFERS[0],
    "buffer-results-to-out-params{hoist-static-allocs=1 modify-public-functions=1}",
    *TO_BUFFERS[1:],
]
"""The callers allocate what the function returns."""
PLACE = ["func.func(remat-place{remarks=false},remat-verify)"]
LOWER_PAGES = ["remat-lower-pages"]
TO_LLVM = [
    "convert-bufferization-to-memref",
    "func.func(convert-linalg-to-loops)",
    "expand-strided-metadata",
    "lower-affine",
    "convert-scf-to-cf",
    "convert-math-to-llvm",
    "convert-math-to-libm",
    "convert-arith-to-llvm",
    "finalize-memref-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
    "convert-index-to-llvm",
    "reconcile-unrealized-casts",
]
LEVELS = {
    "linalg": lambda remat: [*CLEAN, *TO_LINALG, *(remat or OWN_BUFFERS), *CLEAN],
    "tosa": lambda remat: [*CLEAN, *remat, *CLEAN, *TO_LINALG, *OWN_BUFFERS, *CLEAN],
}
"""The passes on each function, with `remat` where the operations are of that dialect."""


class ToolError(RuntimeError):
    """A tool of MLIR gave up; its words are the message."""


@dataclasses.dataclass(frozen=True)
class Built:
    """What was built of this project; `None` where it was not."""

    plugin: pathlib.Path | None
    runtime: pathlib.Path | None

    @classmethod
    def find(cls):
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        plugins = [target / profile / "libremat.so" for profile in ("release", "debug")]
        runtimes = [folder / "lib" / "libremat_runtime.so" for folder in (target / "mlir", ROOT / "build")]
        return cls(newest("REMAT_PLUGIN", plugins), newest("REMAT_RUNTIME", runtimes))


def newest(variable, paths):
    """The path in an environment variable, otherwise the file of these that was built last."""
    if variable in os.environ:
        return pathlib.Path(os.environ[variable])
    return max((path for path in paths if path.exists()), key=lambda path: path.stat().st_mtime, default=None)


def tool(name, *arguments, **options):
    run = subprocess.run([LLVM / "bin" / name, *arguments], capture_output=True, text=True, check=False, **options)
    if run.returncode != 0:
        raise ToolError(f"{name}: {run.stderr.strip()[:2000]}")
    return run.stdout


def optimized(text, passes, plugin):
    """The module after these passes; without a plugin in stock `mlir-opt`."""
    plugins = [f"--load-pass-plugin={plugin}", f"--load-dialect-plugin={plugin}"] if plugin else []
    return tool("mlir-opt", *plugins, f"--pass-pipeline=builtin.module({','.join(passes)})", input=text)


@dataclasses.dataclass(frozen=True)
class Scheduled:
    """A function after the passes on tensors."""

    text: str

    @property
    def promised(self):
        """Peak in bytes that the function states, if it is scheduled."""
        found = re.search(r"remat\.peak = (\d+)", self.text)
        return int(found[1]) if found else None

    @property
    def recomputed(self):
        return self.text.count("remat.recompute ")

    def bytes_of(self, op):
        """Bytes of all tensors that operations of this name take or make."""
        lines = (line for line in self.text.splitlines() if f"{op} " in line)
        return sum(4 * product(shape(TENSOR.search(line)[0])) for line in lines)


def schedule(text, plugin=None, level="linalg", budget=None, options=""):
    """Passes on tensors, with `remat` among them if there is a budget."""
    remat = [f"remat{{budget={budget} {options}}}"] if budget else []
    return Scheduled(optimized(text, [f"func.func({','.join(LEVELS[level](remat))})"], plugin))


def block(scheduled, plugin):
    """Bytes of the block that the buffers of the function are placed in."""
    placed = optimized(scheduled.text, [*RESULTS_TO_ARGUMENTS, *PLACE], plugin)
    return int(re.search(r"remat\.block = (\d+)", placed)[1])


def run(scheduled, built=Built(None, None), runs=0, to_buffers=TO_BUFFERS, **variables):
    """What a run of the function took: peaks, bits, and the fastest of `runs` further calls. The variables are of the environment."""
    text = scheduled.text
    module = text.rstrip().removesuffix("}") + driver(text, runs) + "}\n"
    pages = "remat.page_out" in text
    lowering = [*to_buffers, *(LOWER_PAGES if pages else []), *TO_LLVM]
    libraries = [LLVM / "lib" / "libmlir_c_runner_utils.so", *([built.runtime] if pages else [])]
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(optimized(module, lowering, built.plugin))
        file.flush()
        shared = [f"--shared-libs={library}" for library in libraries]
        said = tool("mlir-runner", "--entry-point-result=void", "-O2", *shared, file.name, env=preloaded(**variables))
    return figures(said)


def figures(said):
    """The lines of the driver; see there."""
    stated = {}
    for line in said.splitlines():
        key, value = line.split()
        stated.setdefault(key, []).append(value)
    times = [int(value) for value in stated.pop("microseconds", [])]
    several = {"bits": stated.pop("bits"), "sums": [float(value) for value in stated.pop("sum")]}
    fastest = {"microseconds": min(times)} if times else {}
    return {key: int(value) for key, (value,) in stated.items()} | several | fastest


def compare(path, built, budgets, level, options, runs, place):
    """One row for each budget."""
    text = path.read_text()
    as_buffers = RESULTS_TO_ARGUMENTS if place else TO_BUFFERS
    before = run(schedule(text, built.plugin, level), built, runs, as_buffers)
    for budget in budgets:
        planned = schedule(text, built.plugin, level, None if budget == "none" else budget, options)
        after = run(planned, built, runs, [*as_buffers, *(PLACE if place else [])])
        promised = block(planned, built.plugin) if place else planned.promised
        yield {
            "case": path.stem,
            "budget": budget,
            "before": before["peak_bytes"],
            "promised": promised,
            "measured": after["peak_bytes"],
            "deviation": after["peak_bytes"] / promised - 1,
            "recomputes": planned.recomputed,
            "time": after["microseconds"] / before["microseconds"],
            "equal": after["bits"] == before["bits"],
        } | {key: value for key, value in after.items() if key in ("second_peak_bytes", "written_bytes", "read_bytes")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, default=sorted(CASES.glob("*.mlir")))
    parser.add_argument("--budgets", default="80%,60%,45%")
    parser.add_argument("--level", choices=LEVELS, default="linalg")
    parser.add_argument("--options", default="", help="further options of the pass, as `device=desktop paging=sync`")
    parser.add_argument("--place", action="store_true", help="buffers in one block")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    built = Built.find()
    if not given.json:
        print("| function | budget | before | predicted | measured | difference | second memory | time | bits |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|---|")
    for path in given.files:
        for row in compare(path, built, given.budgets.split(","), given.level, given.options, given.runs, given.place):
            print(json.dumps(row) if given.json else markdown(row), flush=True)


def markdown(row):
    def mib(figure):
        return f"{row[figure] / 2**20:.2f} MiB" if figure in row else "-"

    memory = " | ".join(map(mib, ("before", "promised", "measured")))
    bits = "equal" if row["equal"] else "DIFFERENT"
    return (
        f"| {row['case']} | {row['budget']} | {memory} | {row['deviation']:+.2%} | {mib('second_peak_bytes')} "
        f"| {row['time']:.2f} x | {bits} |"
    )


if __name__ == "__main__":
    main()
