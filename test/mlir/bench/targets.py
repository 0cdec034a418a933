"""What the pass `remat` takes beside searching: `make bench-mlir`.

Generates functions, runs them through `mlir-opt` with and without the plugin, and prints a table: the time to load the plugin, and, for each
size, the time that the pass adds when there is nothing to search (`budget=none`). Every figure is the best of several runs.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile
import time

TYPE = "tensor<64x64xf32>"


def function(operations):
    """A training step in miniature: a chain whose results are all read again, in reverse."""
    lines, forward = [], ["%x"]
    half = operations // 2
    for number in range(half):
        kind = ("exp", "tanh", "sigmoid", "abs")[number % 4]
        lines.append(f"%f{number} = tosa.{kind} {forward[-1]} : ({TYPE}) -> {TYPE}")
        forward.append(f"%f{number}")
    gradient = forward[-1]
    for number in range(operations - half):
        earlier = forward[half - 1 - number % half]
        lines.append(f"%b{number} = tosa.add {gradient}, {earlier} : ({TYPE}, {TYPE}) -> {TYPE}")
        gradient = f"%b{number}"
    body = "\n  ".join(lines)
    return f"func.func @main(%x: {TYPE}) -> {TYPE} {{\n  {body}\n  return {gradient} : {TYPE}\n}}\n"


def best(command, runs):
    """The shortest of several runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plugin", type=pathlib.Path)
    parser.add_argument("--llvm", default=os.environ.get("MLIR_SYS_220_PREFIX", "/usr/lib/llvm-22"))
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 3000, 10000])
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    tool = os.path.join(arguments.llvm, "bin", "mlir-opt")
    load = [f"--load-pass-plugin={arguments.plugin}", f"--load-dialect-plugin={arguments.plugin}"]

    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "f.mlir"
        source.write_text("module {}\n")
        bare = best([tool, source], arguments.runs)
        loaded = best([tool, *load, source], arguments.runs)
        print(f"loading the plugin: {1e3 * (loaded - bare):.0f} ms")
        print("| operations | parse and print | remat, nothing to search | remat, at most 3 s of search |")
        print("|---:|---:|---:|---:|")
        for size in arguments.sizes:
            source.write_text(function(size))
            plain = best([tool, *load, "--pass-pipeline=builtin.module()", source], arguments.runs)

            def run(options, runs):
                return best([tool, *load, f"--pass-pipeline=builtin.module(func.func(remat{{{options}}}))", source], runs) - plain

            without = run("budget=none remarks=false", arguments.runs)
            searched = run("budget=70% time-limit=3s remarks=false", 1)
            print(f"| {size} | {1e3 * plain:.0f} ms | {1e3 * without:.0f} ms | {searched:.2f} s |")


if __name__ == "__main__":
    main()
